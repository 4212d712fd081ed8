"""Output for people: aligned tables, units, colours on a terminal only."""

import os
import sys
import time

_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


def colour(text, name):
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m"


def heading(text):
    print(f"\n{colour(text, 'bold')}", flush=True)


def good(text):
    print(f"  {colour('ok', 'green')}    {text}", flush=True)


def bad(text):
    print(f"  {colour('WRONG', 'red')} {text}", flush=True)


def note(text):
    print(f"  {text}", flush=True)


class Checks:
    """Says what held and what did not, and remembers whether all did."""

    def __init__(self):
        self.failed = []

    def check(self, held, text, otherwise=None):
        """Record one condition; `otherwise` says what was seen instead."""
        if held:
            good(text)
        else:
            bad(text if otherwise is None else f"{text}: {otherwise}")
            self.failed.append(text)
        return held


class Table:
    """Rows of text; the first column is aligned left, the others right."""

    def __init__(self, *header):
        self._rows = [header]

    def add(self, *cells):
        self._rows.append(cells)

    def print(self, indent="  "):
        widths = [max(len(str(cell)) for cell in column) for column in zip(*self._rows)]
        for number, row in enumerate(self._rows):
            cells = [str(cell).ljust(width) if place == 0 else str(cell).rjust(width)
                     for place, (cell, width) in enumerate(zip(row, widths))]
            line = indent + "  ".join(cells).rstrip()
            if number == 0:
                line = colour(line, "dim")
            elif str(row[-1]).startswith("NO"):
                line = colour(line, "red")
            print(line)
        sys.stdout.flush()


def seconds(value):
    if value < 0.01:
        return f"{value * 1000:.2f} ms"
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def size(value):
    if value < 1 << 20:
        return f"{value / 1024:.0f} KiB"
    return f"{value / (1 << 20):.1f} MiB" if value < 1 << 30 else f"{value / (1 << 30):.2f} GiB"


def ratio(first, second):
    """How many times the second the first is."""
    return "-" if second <= 0 else f"{first / second:.2f}x"


class Stopwatch:
    """`with Stopwatch() as watch: ...`, then `watch.seconds`."""

    def __enter__(self):
        self._begin, self.seconds = time.perf_counter(), 0.0
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self._begin
