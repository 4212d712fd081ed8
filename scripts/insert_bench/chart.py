"""The curve of a run as one self-contained SVG file: speed over rows, and longest statement over rows."""

import html

_WIDTH, _LEFT, _RIGHT = 760, 80, 130
_PANEL_HEIGHT, _GAP, _TOP = 250, 76, 84
_COLOURS = ["#1f6f43", "#c2571a", "#2f5d9b", "#7a3f8f"]
_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #333 } .title { font-size: 18px; font-weight: 600; fill: #111 }
  .small { font-size: 12px; fill: #666 } .end { text-anchor: end } .middle { text-anchor: middle }
  .grid { stroke: #e3e3e3 } .axis { stroke: #888 } .line { fill: none; stroke-width: 2.5 }
"""


def svg(results, rows, cache_mb):
    """The chart of the results of `measure.run`, one line for each engine."""
    height = _TOP + 2 * _PANEL_HEIGHT + _GAP + 60
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
             f"<style>{_STYLE}</style>", f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
             f'<text x="16" y="30" class="title">{rows:,} rows in random key order, cache {cache_mb} MiB</text>',
             '<text x="16" y="50" class="small">primary key and three secondary keys, 1000 rows a statement, '
             "each commit durable</text>"]
    parts += _panel(results, rows, _TOP, "rows per second", "rows_per_second", _thousands)
    parts += _panel(results, rows, _TOP + _PANEL_HEIGHT + _GAP, "longest statement, seconds", "longest_seconds",
                    lambda value: f"{value:g}")
    return "\n".join(parts + ["</svg>"]) + "\n"


def _panel(results, rows, top, title, field, show):
    """One set of axes with a line for each engine."""
    right, bottom = _WIDTH - _RIGHT, top + _PANEL_HEIGHT
    step, steps = _steps(max(one[field] for result in results for one in result["slices"]))

    def x(value):
        return _LEFT + (right - _LEFT) * value / rows

    def y(value):
        return bottom - _PANEL_HEIGHT * value / (step * steps)

    parts = [f'<text x="{_LEFT}" y="{top - 10}">{title}</text>']
    for number in range(steps + 1):
        value = number * step
        parts.append(f'<line class="{"grid" if number else "axis"}" x1="{_LEFT}" x2="{right}" y1="{y(value):.1f}" '
                     f'y2="{y(value):.1f}"/><text class="small end" x="{_LEFT - 8}" y="{y(value) + 4:.1f}">'
                     f"{show(value)}</text>")
    for tenth in range(0, 11, 2):
        parts.append(f'<text class="small middle" x="{x(rows * tenth / 10):.1f}" y="{bottom + 18}">'
                     f"{_thousands(rows * tenth / 10)}</text>")
    parts.append(f'<text class="small middle" x="{(_LEFT + right) / 2}" y="{bottom + 36}">rows in the table</text>')
    labels = []
    for number, result in enumerate(results):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [(x(one["rows_before"] + one["rows"] / 2), y(one[field])) for one in result["slices"]]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline class="line" stroke="{colour}" points="{path}"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" fill="{colour}"/>' for px, py in points]
        labels.append((points[-1][1], result["engine"], colour))
    return parts + _labels(labels, right)


def _labels(labels, right):
    """Names at the ends of the lines, moved apart where they would touch."""
    parts, last = [], None
    for place, name, colour in sorted(labels):
        if last is not None:
            place = max(place, last + 17)
        last = place
        parts.append(f'<text x="{right + 8}" y="{place + 4:.1f}" style="fill:{colour};font-weight:600">'
                     f"{html.escape(name)}</text>")
    return parts


def _steps(largest):
    """A round step and how many of them reach the largest value."""
    step = 10.0 ** -6
    while True:
        for factor in (1, 2, 5):
            if step * factor * 6 >= largest:
                return step * factor, max(1, -int(-largest // (step * factor)))
        step *= 10


def _thousands(value):
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
