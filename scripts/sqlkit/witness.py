"""Who is told when a statement takes too long, and what the machine did meanwhile.

    with Witness(server, clients, command) as witness: ...
    witness.print()

A client is anything with `running`: None, or (when its statement began, the statement). As soon as one has run for a
second, the witness writes down what everybody does, what the engine says of itself, and what the disk is doing; once a second a
probe writes 4 KiB and syncs them, so that a disk that stands still can be told from an engine that does.
"""

import os
import subprocess
import threading
import time

from . import report
from .client import ConnectionLost, SqlError

_LONG_SECONDS = 1.0
_LOOK_SECONDS = 0.1
_PROBE_SECONDS = 1.0
_DISK_PROBE_NAME = "witness-probe"


class Witness:
    """Watches from two threads of its own; `long` lists the statements of over a second."""

    def __init__(self, server, clients, command=None):
        self._server, self._clients, self._command = server, clients, command
        self._session = server.connect(timeout=60)
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=part, daemon=True) for part in (self._look, self._probe)]
        self._seen, self._begin = set(), time.monotonic()
        self.syncs = []  # (when, how long), the probe's
        self.long = []  # (when, statement)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join(60)

    def print(self):
        """The probe's slowest syncs."""
        slowest = sorted(self.syncs, key=lambda sync: -sync[1])[:3]
        report.note("slowest syncs of 4 KiB beside it: " + ", ".join(
            f"{report.seconds(seconds)} at {when - self._begin:,.0f} s" for when, seconds in slowest))

    def _look(self):
        while not self._ended.wait(_LOOK_SECONDS):
            now = time.monotonic()
            for client in self._clients:
                running = client.running
                if running and now - running[0] > _LONG_SECONDS and running not in self._seen:
                    self._seen.add(running)
                    self.long.append(running)
                    self._testify(running)

    def _testify(self, running):
        begin, sql = running
        report.heading(f"{begin - self._begin:,.1f} s: a statement takes over {_LONG_SECONDS:.0f} s: {sql[:100]}")
        if self._command:
            subprocess.run([*self._command.split(), str(self._server.pid())], check=False)
        with open("/proc/diskstats", encoding="ascii") as file:
            for line in file:
                name, *counts = line.split()[2:]
                if int(counts[9]) > 0 and not name.startswith(("loop", "ram")):
                    report.note(f"disk {name}: {counts[8]} requests under way")
        report.note("last syncs of the probe: " + ", ".join(report.seconds(seconds) for _, seconds in self.syncs[-3:]))
        try:
            for row in self._session.query("SELECT ID, TIME_MS, STATE, INFO FROM INFORMATION_SCHEMA.PROCESSLIST "
                                           "WHERE COMMAND <> 'Sleep' AND ID <> CONNECTION_ID()").rows:
                report.note("  ".join("" if cell is None else cell.decode("utf-8", "replace")[:100] for cell in row))
            for row in self._session.query("SHOW ENGINE PANDO STATUS").rows:
                report.note(row[2].decode("utf-8", "replace"))
        except (SqlError, ConnectionLost) as error:
            report.note(f"the witness was refused: {error}")

    def _probe(self):
        path = self._server.dir / _DISK_PROBE_NAME
        with open(path, "wb", buffering=0) as file:
            while not self._ended.wait(_PROBE_SECONDS):
                begin = time.monotonic()
                os.pwrite(file.fileno(), bytes(4096), 0)
                os.fdatasync(file.fileno())
                self.syncs.append((begin, time.monotonic() - begin))
