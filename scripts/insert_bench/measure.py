"""One engine's run: rows per second of each slice of the rows, statement times, disk."""

import sys
import time

from insert_bench.statements import COLUMNS, statements
from sqlkit import engines, report

DATABASE, TABLE = "bench", "orders"


def run(server, engine, rows, slices, seed):
    """Insert all rows. Returns a dict for the JSON report."""
    with server.connect() as session:
        session.query(f"CREATE DATABASE {DATABASE}")
        session.query(f"USE {DATABASE}")
        session.query(f"CREATE TABLE {TABLE} ({COLUMNS}) ENGINE={engine} DEFAULT CHARSET latin1")
        recorder = _Recorder(server, engine, rows, slices)
        for count, sql in statements(TABLE, rows, seed):
            begin = time.perf_counter()
            session.query(sql)
            recorder.statement(count, time.perf_counter() - begin)
        result = recorder.finish()
        if engine.upper() != "BLACKHOLE":
            with report.Stopwatch() as watch:
                result["rows_found"] = session.number(f"SELECT COUNT(*) FROM {TABLE}")
            result["count_seconds"] = watch.seconds
    server.stop()
    result["disk_bytes_after_stop"] = engines.disk_bytes(engines.table_files(server.data_dir, DATABASE, TABLE))
    return result


class _Recorder:
    """Collects statement times and closes a slice whenever its rows are in."""

    def __init__(self, server, engine, rows, slices):
        self._server, self._engine, self._rows = server, engine, rows
        self._slice_rows = max(1, rows // slices)
        self._done, self._slices, self._all = 0, [], []
        self._begin = self._slice_begin = time.perf_counter()
        self._slice_done, self._times = 0, []
        self._waited = 0.0  # for the server; the rest of the time is the client's
        self._io = _written_bytes(server)
        self._shown = 0.0

    def statement(self, count, seconds):
        self._done += count
        self._times.append(seconds)
        self._waited += seconds
        if self._done - self._slice_done >= self._slice_rows or self._done == self._rows:
            self._close_slice()
        self._progress()

    def _close_slice(self):
        now, written = time.perf_counter(), _written_bytes(self._server)
        count = self._done - self._slice_done
        self._slices.append({
            "rows_before": self._slice_done, "rows": count,
            "rows_per_second": count / (now - self._slice_begin),
            "longest_seconds": max(self._times), "p99_seconds": _p99(self._times),
            "written_bytes": written - self._io,
        })
        self._all += self._times
        self._slice_begin, self._slice_done, self._times, self._io = now, self._done, [], written

    def _progress(self):
        now = time.perf_counter()
        if sys.stderr.isatty() and (now - self._shown > 0.5 or self._done == self._rows):
            self._shown = now
            speed = self._done / (now - self._begin)
            print(f"\r  {self._engine}: {self._done / self._rows:6.1%}  {speed:9,.0f} rows/s\x1b[K",
                  end="\n" if self._done == self._rows else "", file=sys.stderr, flush=True)

    def finish(self):
        seconds = self._slice_begin - self._begin
        return {
            "engine": self._engine, "rows": self._done, "seconds": seconds,
            "rows_per_second": self._done / seconds, "client_share": 1 - self._waited / seconds,
            "first_rows_per_second": self._slices[0]["rows_per_second"],
            "last_rows_per_second": self._slices[-1]["rows_per_second"],
            "longest_seconds": max(self._all), "p99_seconds": _p99(self._all),
            "written_bytes": sum(one["written_bytes"] for one in self._slices),
            "slices": self._slices,
        }


def _p99(times):
    return sorted(times)[min(len(times) - 1, len(times) * 99 // 100)]


def _written_bytes(server):
    """Bytes the server process caused to be written to the disk so far."""
    with open(f"/proc/{server.pid()}/io", encoding="ascii") as file:
        return int(dict(line.split(": ") for line in file.read().splitlines())["write_bytes"])
