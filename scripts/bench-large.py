#!/usr/bin/env python3
"""Rows with large values, from 100 bytes to 64 MB: insert, read and change of a small column, change of the value, scans.

    make build && scripts/bench-large.py [--sizes 100,16K,4M] [--total-mb 256] [--runs 3] [--engines PANDO,InnoDB,ROCKSDB]

For each size and engine a private server of its own, with the same cache, a table (id, n INT, x LONGBLOB) of random bytes,
`--total-mb` in all but at most 100,000 rows. Each step is timed `--runs` times; medians are printed in milliseconds, with what
the server's process has written to disk per byte of values while rows were inserted, and while a small column of all rows was changed (the
last of these, after a pause for background work). Values that no server can have for its settings (MyRocks' rows end at 3 GB) are said to fail.
"""

import argparse
import pathlib
import random as randoms
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import engines, program
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_UNITS = {"K": 1 << 10, "M": 1 << 20}
_ROWS_MAX = 100_000
_POINTS = 200
_AT_ONCE_BYTES = 4 << 20


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100,1K,16K,256K,4M,64M")
    parser.add_argument("--total-mb", type=int, default=256)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--engines", default="PANDO,InnoDB,ROCKSDB")
    parser.add_argument("--cache-mb", type=int, default=1024)
    return parser.parse_args()


def _bytes(text):
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1] in _UNITS else int(text)


def _written(pid):
    lines = pathlib.Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


class Table:
    """A table of one engine, whose rows have values of one size."""

    def __init__(self, session, engine, size, rows):
        self.session, self.size, self.rows = session, size, rows
        session.query(f"CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL, x LONGBLOB) ENGINE={engine}")

    def insert(self):
        """Fills it with random bytes, in statements of at most 4 MB, or one row."""
        random, at_once = randoms.Random(self.size), max(1, _AT_ONCE_BYTES // self.size)
        for begin in range(0, self.rows, at_once):
            rows = range(begin, min(begin + at_once, self.rows))
            values = ", ".join(f"({row}, 0, x'{random.randbytes(self.size).hex()}')" for row in rows)
            self.session.query(f"INSERT INTO t VALUES {values}")

    def points(self, statement, count=_POINTS):
        """Asks for single rows, spread over the table."""
        for point in range(min(count, self.rows)):
            self.session.query(statement.format(id=point * 7919 % self.rows))

    def steps(self):
        """Names and what to do."""
        query = self.session.query
        return [
            (f"{_POINTS} reads of n", lambda: self.points("SELECT n FROM t WHERE id = {id}")),
            (f"{_POINTS} changes of n", lambda: self.points("UPDATE t SET n = n + 1 WHERE id = {id}")),
            ("20 reads of x", lambda: self.points("SELECT MD5(x) FROM t WHERE id = {id}", 20)),
            ("20 changes of x", lambda: self.points("UPDATE t SET x = CONCAT(SUBSTR(x, 2), 'y') WHERE id = {id}", 20)),
            ("SUM(n)", lambda: query("SELECT SUM(n) FROM t")),
            ("SUM(LENGTH(x))", lambda: query("SELECT SUM(LENGTH(x)) FROM t")),
            ("all: n = n + 1", lambda: query("UPDATE t SET n = n + 1")),
        ]


def _timed(work):
    begun = time.monotonic()
    work()
    return (time.monotonic() - begun) * 1000


def _measure(engine, size, arguments):
    """Figures by name."""
    total = arguments.total_mb << 20
    rows = max(4, min(_ROWS_MAX, total // size))
    options = engines.options(engine, arguments.cache_mb) + ["--max-allowed-packet=1G"]
    if engine.upper() == "INNODB":
        options.append("--innodb-log-file-size=2G")
    figures = {}
    with PrivateServer("large", options, plugin=engines.needs_plugin([engine])) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE large")
        with server.connect("large", timeout=3600) as session:
            table, pid = Table(session, engine, size, rows), server.pid()
            before = _written(pid)
            figures["insert"] = _timed(table.insert)
            time.sleep(5)
            figures["written/byte, insert"] = (_written(pid) - before) / (rows * size)
            for name, work in table.steps():
                figures[name] = statistics.median(_timed(work) for _ in range(arguments.runs))
            before = _written(pid)
            table.session.query("UPDATE t SET n = n + 1")
            time.sleep(5)
            figures["written/byte, all: n = n + 1"] = (_written(pid) - before) / (rows * size)
            session.query("DROP TABLE t")
    return rows, figures


def _print(size, rows, names, found):
    print(f"\n{size}: {rows} rows\n")
    print("| step | " + " | ".join(names) + " | " + f"{names[0]} as a multiple |")
    print("| --- |" + " --- |" * (len(names) + 1))
    for step in next(iter(found.values())):
        digits = 2 if step.startswith("written") else 0
        cells = [f"{found[name][step]:,.{digits}f}" if name in found else "fails" for name in names]
        ratios = [f"{found[names[0]][step] / found[name][step]:.2f} of {name}" for name in names[1:]
                  if name in found and names[0] in found and found[name][step]]
        print(f"| {step} | " + " | ".join(cells) + " | " + ", ".join(ratios) + " |", flush=True)


def main():
    arguments = _arguments()
    names = arguments.engines.split(",")
    print("Milliseconds; bytes written per byte of values.")
    for size in arguments.sizes.split(","):
        found, rows = {}, 0
        for name in names:
            try:
                rows, found[name] = _measure(name, _bytes(size), arguments)
            except SqlError as error:
                print(f"{name}, {size}: {error}", flush=True)
        if found:
            _print(size, rows, names, found)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
