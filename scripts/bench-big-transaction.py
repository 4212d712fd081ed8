#!/usr/bin/env python3
"""One very large transaction beside others: its commit, its rollback, its memory, and what others notice.

    make build && scripts/bench-big-transaction.py [--rows 10000000] [--engine PANDO]

On a private server a transaction inserts, updates or deletes all rows of a table of narrow rows, once to
commit and once to roll back. Meanwhile another client updates single rows of a second table, a transaction
each, a hundred times a second at most; its latencies are compared with those before. The server's
resident memory is sampled throughout; the block cache is filled to its limit first, so that what comes on
top is the transaction's.
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

_OTHER_ROWS = 100_000


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--quiet-seconds", type=int, default=10, help="how long the other client is alone")
    parser.add_argument("--cache-mb", type=int, default=256)
    parser.add_argument("--write-set-mb", type=int, default=64)
    return parser.parse_args()


class OtherClient(threading.Thread):
    """Updates single rows, and remembers how long each took."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self._session = server.connect("test")
        self._ended = threading.Event()
        self._latencies = []
        self._random = random.Random(1)

    def run(self):
        while not self._ended.is_set():
            row = self._random.randrange(_OTHER_ROWS)
            begun = time.monotonic()
            self._session.query(f"UPDATE other SET b = b + 1 WHERE a = {row}")
            took = time.monotonic() - begun
            self._latencies.append(took)
            self._ended.wait(max(0.0, 0.01 - took))

    def take(self):
        """Median, 99th percentile and maximum in milliseconds since the last call."""
        latencies, self._latencies = sorted(self._latencies), []
        if not latencies:
            return "no answers"
        at = lambda share: latencies[min(len(latencies) - 1, int(share * len(latencies)))] * 1000
        return f"{at(0.5):6.1f} {at(0.99):7.1f} {at(1.0):7.1f}"

    def stop(self):
        self._ended.set()
        self.join()


class Memory(threading.Thread):
    """The server's largest resident memory."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self._status = pathlib.Path(f"/proc/{pid}/status")
        self._ended = threading.Event()
        self._most = 0

    def now_mb(self):
        for line in self._status.read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
        return 0

    def run(self):
        while not self._ended.wait(0.05):
            self._most = max(self._most, self.now_mb())

    def take(self):
        most, self._most = self._most, self.now_mb()
        return most

    def stop(self):
        self._ended.set()
        self.join()


def _timed(session, statement):
    begun = time.monotonic()
    session.query(statement)
    return time.monotonic() - begun


def _prepare(session, arguments):
    session.query("CREATE DATABASE IF NOT EXISTS test")
    session.query("USE test")
    session.query(f"CREATE TABLE other (a INT PRIMARY KEY, b INT NOT NULL) ENGINE={arguments.engine}")
    session.query(f"INSERT INTO other SELECT seq, 0 FROM seq_0_to_{_OTHER_ROWS - 1}")
    session.query("CREATE TABLE big (a INT PRIMARY KEY, b INT NOT NULL, c VARCHAR(20) NOT NULL)"
                  f" ENGINE={arguments.engine}")


def _steps(rows):
    insert = f"INSERT INTO big SELECT seq, seq % 1000, CONCAT('row ', seq) FROM seq_1_to_{rows}"
    update = "UPDATE big SET b = b + 1, c = CONCAT('new ', a)"
    return [("insert", insert, "ROLLBACK"), ("insert", insert, "COMMIT"), ("update", update, "ROLLBACK"),
            ("update", update, "COMMIT"), ("delete", "DELETE FROM big", "ROLLBACK"),
            ("delete", "DELETE FROM big", "COMMIT")]


def main():
    arguments = _arguments()
    options = ["--plugin-maturity=unknown", f"--innodb-buffer-pool-size={arguments.cache_mb}M"]
    if arguments.engine == "PANDO":
        options += [f"--pando-cache-size={arguments.cache_mb}M",
                    f"--pando-write-set-memory={arguments.write_set_mb}M"]
    with PrivateServer("big", options=options) as server, server.connect() as session:
        _prepare(session, arguments)
        memory, other = Memory(server.pid()), OtherClient(server)
        memory.start()
        other.start()
        other.take()
        time.sleep(arguments.quiet_seconds)
        print(f"{arguments.rows} rows, {arguments.engine}; cache {arguments.cache_mb} MB, "
              f"write set {arguments.write_set_mb} MB")
        print("                     statement s  end s | others ms: median   p99     max | memory MB before  most")
        print(f"{'alone':40}| {'':10} {other.take()} | {memory.now_mb():17}")
        for name, statement, end in _steps(arguments.rows):
            before = memory.now_mb()
            memory.take()
            session.query("BEGIN")
            took = _timed(session, statement)
            ended = _timed(session, end)
            print(f"{name + ', ' + end.lower():20} {took:11.1f} {ended:7.3f}| {'':10} {other.take()} "
                  f"| {before:17} {memory.take():5}", flush=True)
            time.sleep(3)
            after = other.take()
            print(f"{'  the 3 s after':40}| {'':10} {after}", flush=True)
        counted = session.number("SELECT COUNT(*) FROM big")
        assert counted == 0, f"{counted} rows are left"
        other.stop()
        memory.stop()


if __name__ == "__main__":
    sys.exit(program.run(main))
