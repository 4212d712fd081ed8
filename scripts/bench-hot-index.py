#!/usr/bin/env python3
"""What writers notice while an index is added to their table, beside another engine; and what OPTIMIZE gives back.

    make build && scripts/bench-hot-index.py [--rows 5000000] [--engines PANDO,InnoDB] [--writers 2]

For each engine a private server of its own, with the same cache and durability. Writers insert, update and
delete single rows at random, each change committed at once, a pause of a millisecond between them, and remember what
each took: alone for a while, then during `ALTER TABLE ... ADD KEY, ALGORITHM=INPLACE, LOCK=NONE` of one index and of a
unique one. A histogram shows both. At the end three quarters of the rows are deleted, and the files are
weighed before and after OPTIMIZE TABLE, beside which the writers go on, too.
"""

import argparse
import pathlib
import random
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import program
from sqlkit.server import PrivateServer

_BOUNDS_MS = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
_PAUSE = 0.001


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--engines", default="PANDO,InnoDB")
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument("--alone-seconds", type=int, default=10)
    parser.add_argument("--cache-mb", type=int, default=512)
    parser.add_argument("--flush", type=int, default=1, help="flush_log_at_trx_commit of both engines")
    parser.add_argument("--no-optimize", action="store_true", help="only the indexes")
    return parser.parse_args()


def _options(engine, arguments):
    if engine == "PANDO":
        return [f"--pando-cache-size={arguments.cache_mb}M", "--pando-direct-io=ON",
                f"--pando-flush-log-at-trx-commit={arguments.flush}", "--innodb-buffer-pool-size=16M"]
    if engine == "InnoDB":
        return [f"--innodb-buffer-pool-size={arguments.cache_mb}M", "--innodb-flush-method=O_DIRECT",
                f"--innodb-flush-log-at-trx-commit={arguments.flush}", "--innodb-log-file-size=1G"]
    return []


class Writer(threading.Thread):
    """Changes single rows and remembers how long each change took."""

    def __init__(self, server, number, rows):
        super().__init__(daemon=True)
        self._session = server.connect("test", timeout=600)
        self._ended = threading.Event()
        self._random = random.Random(number)
        self._rows = rows
        # Its own ids, so that writers do not wait for each other.
        self._next_id = rows + 1 + number * 100_000_000
        self._latencies = []
        self.failed = None

    def _statement(self):
        kind = self._random.randrange(4)
        row = self._random.randrange(self._rows) + 1
        if kind == 0:
            return f"UPDATE t SET a = {self._random.randrange(1_000_000)} WHERE id = {row}"
        if kind == 1:
            return f"DELETE FROM t WHERE id = {row}"
        self._next_id += 1
        return (f"INSERT INTO t VALUES ({self._next_id}, {self._random.randrange(1_000_000)}, "
                f"{self._next_id * 2}, MD5({self._next_id}), NOW())")

    def run(self):
        try:
            while not self._ended.is_set():
                statement = self._statement()
                begun = time.monotonic()
                self._session.query(statement)
                self._latencies.append((time.monotonic() - begun) * 1000)
                self._ended.wait(_PAUSE)
        except Exception as error:  # pylint: disable=broad-except
            self.failed = error

    def take(self):
        latencies, self._latencies = self._latencies, []
        return latencies

    def stop(self):
        self._ended.set()
        self.join()


class Writers:
    """Several of them."""

    def __init__(self, server, count, rows):
        self._all = [Writer(server, number, rows) for number in range(count)]

    def __enter__(self):
        for writer in self._all:
            writer.start()
        return self

    def __exit__(self, kind, *_):
        for writer in self._all:
            writer.stop()
            if writer.failed and kind is None:
                raise writer.failed

    def take(self):
        """Latencies in milliseconds since the last call, ascending."""
        return sorted(one for writer in self._all for one in writer.take())


def _row(name, latencies, seconds=None):
    counts, rest = [], latencies
    for bound in _BOUNDS_MS:
        counts.append(sum(1 for one in rest if one <= bound))
        rest = [one for one in rest if one > bound]
    counts.append(len(rest))
    at = lambda share: latencies[min(len(latencies) - 1, int(share * len(latencies)))] if latencies else 0.0
    took = f"{seconds:.1f} s" if seconds else ""
    cells = [name, took, f"{len(latencies):,}", f"{at(0.5):.2f}", f"{at(0.99):.1f}", f"{at(1.0):.1f}"]
    print("| " + " | ".join(cells + [f"{count:,}" if count else "" for count in counts]) + " |", flush=True)


def _header():
    bounds = [f"to {bound:g}" for bound in _BOUNDS_MS] + [f"above {_BOUNDS_MS[-1]:g}"]
    cells = ["while", "took", "changes", "median ms", "p99", "longest"] + bounds
    print("| " + " | ".join(cells) + " |\n| --- |" + " --- |" * (len(cells) - 1))


def _size_mb(server):
    files = [path for path in (server.data_dir / "test").rglob("*") if path.is_file()]
    return sum(path.stat().st_blocks * 512 for path in files) / (1 << 20)


def _timed(session, sql):
    begun = time.monotonic()
    session.query(sql)
    return time.monotonic() - begun


def _shrink(engine, session, server, writers, rows):
    for part in range(20):
        low, high = rows * part // 20, rows * (part + 1) // 20
        session.query(f"DELETE FROM t WHERE id > {low} AND id <= {high} AND id % 4 <> 0")
    # Deleted rows stay as long as somebody might read them: files are weighed once that is over.
    time.sleep(2)
    before = _size_mb(server)
    writers.take()
    seconds = _timed(session, "OPTIMIZE TABLE t")
    _row("OPTIMIZE TABLE", writers.take(), seconds)
    deadline = time.monotonic() + 60
    sizes = [_size_mb(server)]
    while time.monotonic() < deadline and (len(sizes) < 5 or sizes[-1] < sizes[-5]):
        time.sleep(1)
        sizes.append(_size_mb(server))
    print(f"\n{engine}: files before OPTIMIZE {before:.0f} MiB, after it {sizes[0]:.0f} MiB, "
          f"{len(sizes) - 1} s later {sizes[-1]:.0f} MiB\n", flush=True)


def _run(engine, arguments):
    rows = arguments.rows
    with PrivateServer("hot-index", _options(engine, arguments), plugin=True) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE IF NOT EXISTS test")
        with server.connect("test", timeout=3600) as session:
            session.query("CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, a INT NOT NULL, b BIGINT NOT NULL, "
                          f"c CHAR(32) NOT NULL, d DATETIME NOT NULL) ENGINE={engine} CHARACTER SET latin1")
            session.query(f"INSERT INTO t SELECT seq, seq * 7919 MOD 1000003, seq * 2, MD5(seq), NOW() "
                          f"FROM seq_1_to_{rows}")
            print(f"\n{engine}, {rows:,} rows, {arguments.writers} writers, files {_size_mb(server):.0f} MiB\n")
            _header()
            with Writers(server, arguments.writers, rows) as writers:
                time.sleep(2)
                writers.take()
                time.sleep(arguments.alone_seconds)
                _row("nothing else", writers.take())
                for name, keys in [("ADD KEY", "ADD KEY a (a, c)"), ("ADD UNIQUE KEY", "ADD UNIQUE KEY b (b)"),
                                   ("ADD two KEYs", "ADD KEY d (d), ADD KEY c (c)")]:
                    writers.take()
                    seconds = _timed(session, f"ALTER TABLE t {keys}, ALGORITHM=INPLACE, LOCK=NONE")
                    _row(name, writers.take(), seconds)
                if not arguments.no_optimize:
                    _shrink(engine, session, server, writers, rows)


def main():
    arguments = _arguments()
    for engine in arguments.engines.split(","):
        _run(engine, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
