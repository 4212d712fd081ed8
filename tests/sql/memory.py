#!/usr/bin/env python3
"""Everything that takes memory at once, within one limit (pando_memory).

    tests/sql/memory.sh [--memory 384] [--tables 40] [--connections 20] [--seconds 30] [--big-rows 300000] [--seed N]

Connections insert into random tables with four keys each, so that all of their memtables fill together. Beside them run long
transactions that end in ROLLBACK, locking reads of many rows, bulk loads, index builds, and SELECTs with large groups and joins. The resident memory
of the server, above what it took with all connections open and idle and 2 MiB for each of them at work (which is the server's), stays
within the limit and a tenth; so does what the engine itself counts; nobody gets an error; afterwards every table's keys agree with its rows.

The full size, as in docs/bounds.md: --memory 1024 --tables 500 --connections 200 --big-rows 5000000 --seconds 600.
"""

import argparse
import pathlib
import random
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer
from sqlkit.watched import Watched

_MIB = 1 << 20
_LOCK_TROUBLES = (1205, 1213)
_FIGURES = ("memory_bytes", "cache_bytes", "memtable_bytes", "memtable_unwritten_bytes", "write_set_bytes", "load_memory_bytes",
            "query_memory_bytes", "row_locks", "buffer_bytes", "buffer_bytes_kept", "heap_bytes")
# What the server takes for a connection that is at work, in MiB.
_CONNECTION = 2
# On a slow machine it takes longer until there is too little.
_MORE_SECONDS_MAX = 600


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", type=int, default=384, help="pando_memory in MiB")
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--connections", type=int, default=20, help="that insert; others come on top")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--big-rows", type=int, default=300_000, help="of the table that is locked and queried")
    program.add_seed(parser)
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


class _Clients:
    """Threads that each do one thing again and again until they are stopped, and what went wrong."""

    def __init__(self, server, seed):
        self._server, self._seed = server, seed
        self._threads, self._stop = [], threading.Event()
        self.errors, self.done = [], {}

    def add(self, work, number):
        session = self._server.connect("m", timeout=600)
        rng = random.Random(f"{self._seed} {work.__name__} {number}")
        self._threads.append(threading.Thread(target=self._run, args=(work, session, rng, number)))

    def count(self):
        return len(self._threads)

    def start(self):
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, work, session, rng, number):
        while not self._stop.is_set():
            try:
                work(session, rng, number)
                name = work.__name__.strip("_")
                self.done[name] = self.done.get(name, 0) + 1
            except SqlError as error:
                if error.number not in _LOCK_TROUBLES:
                    self.errors.append(f"{work.__name__}: {error}")
                    return
        session.close()


def _row(rng):
    return (f"seq * {rng.randrange(3, 1 << 20) | 1} % 2147483647, seq ^ {rng.randrange(1 << 20)}, "
            f"MD5(seq + {rng.randrange(1 << 20)}), RAND() * 1000")


def _inserter(tables):
    def inserter(session, rng, _):
        rows = rng.choice((1, 20, 500, 3000))
        session.query(f"INSERT INTO t{rng.randrange(tables)} (a, b, c, d) SELECT {_row(rng)} FROM seq_1_to_{rows}")
    return inserter


def _long_transaction(tables):
    def long_transaction(session, rng, _):
        session.query("BEGIN")
        for _ in range(3):
            session.query(f"INSERT INTO t{rng.randrange(tables)} (a, b, c, d) SELECT {_row(rng)} FROM seq_1_to_40000")
        session.query("ROLLBACK")
    return long_transaction


def _locker(rows):
    def locker(session, rng, _):
        low = rng.randrange(rows)
        session.query("BEGIN")
        session.query(f"SELECT COUNT(a) FROM big WHERE id BETWEEN {low} AND {low + 300_000} AND id % 2 = 0 FOR UPDATE")
        session.query("COMMIT")
    return locker


def _loader(session, rng, number):
    session.query(f"CREATE OR REPLACE TABLE load{number} LIKE t0")
    session.query(f"INSERT INTO load{number} (a, b, c, d) SELECT {_row(rng)} FROM seq_1_to_200000")
    session.query(f"ALTER TABLE load{number} ADD KEY (c, a), ALGORITHM=INPLACE")


def _analyst(session, rng, _):
    session.query(rng.choice((
        "SELECT c, COUNT(*), SUM(a) FROM big GROUP BY c ORDER BY 2 DESC LIMIT 5",
        "SELECT COUNT(*), SUM(x.d) FROM big x JOIN big y ON x.a = y.b",
        "SELECT b, c, MAX(d) FROM big GROUP BY b, c ORDER BY 3 LIMIT 3",
        "SELECT COUNT(DISTINCT c) FROM big")))


def _prepare(server, arguments):
    with server.connect(timeout=600) as session:
        session.query("CREATE DATABASE m")
        session.query("USE m")
        for number in range(arguments.tables):
            session.query(f"CREATE TABLE t{number} (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT, c VARCHAR(40), d DOUBLE, "
                          "KEY (a), KEY (b), KEY (c), KEY (d, a)) ENGINE=PANDO")
        session.query("CREATE TABLE big LIKE t0")
        session.query(f"INSERT INTO big (a, b, c, d) SELECT {_row(random.Random(1))} FROM seq_1_to_{arguments.big_rows}")


def _is_short(session):
    """Whether there was too little memory: memtables were written early, and transactions spilled."""
    return all(Watched.value(session, f"Pando_{name}") for name in ("memtable_seals_early", "spills"))


def _watch(server, arguments, clients):
    """The most that was seen of the server's memory, the engine's figures at that moment, and the most of each."""
    watched, most, then, figures = Watched(server), 0, {}, dict.fromkeys(_FIGURES, 0)
    with server.connect(timeout=600) as session:
        begin = time.monotonic()
        while not clients.errors and (time.monotonic() < begin + arguments.seconds or
                                      time.monotonic() < begin + arguments.seconds + _MORE_SECONDS_MAX and not _is_short(session)):
            memory = watched.memory()
            rows = session.query("SHOW GLOBAL STATUS LIKE 'Pando_%'").rows
            now = {name: int(value) for name, value in ((name.decode()[6:].lower(), value) for name, value in rows) if name in _FIGURES}
            if memory > most:
                most, then = memory, now
            figures = {name: max(value, now[name]) for name, value in figures.items()}
            time.sleep(0.2)
        waits = [watched.value(session, f"Pando_{name}") for name in ("memtable_seals_early", "memory_waits", "spills",
                                                                      "query_spill_files", "memory_wait_time")]
    return most, then, figures, waits


def _in_mib(figures):
    return ", ".join(f"{name} {value // _MIB if 'bytes' in name else value}" for name, value in figures.items())


def _keys_agree(server, tables):
    wrong = []
    with server.connect("m", timeout=600) as session:
        for table in [f"t{number}" for number in range(tables)]:
            counts = {int(session.query(f"SELECT COUNT(*) FROM {table} {hint}").rows[0][0]) for hint in
                      ("USE INDEX ()", "FORCE INDEX (a) WHERE a > -1", "FORCE INDEX (c) WHERE c > ''")}
            if len(counts) > 1:
                wrong.append((table, counts))
    return wrong


def _run(server, arguments, checks):
    _prepare(server, arguments)
    server.stop()
    server.start()
    clients = _Clients(server, arguments.seed)
    for number in range(arguments.connections):
        clients.add(_inserter(arguments.tables), number)
    for number in range(3):
        clients.add(_long_transaction(arguments.tables), number)
        clients.add(_analyst, number)
    for number in range(2):
        clients.add(_locker(arguments.big_rows), number)
        clients.add(_loader, number)
    idle = Watched(server).memory()
    clients.start()
    most, then, figures, waits = _watch(server, arguments, clients)
    clients.stop()
    limit = arguments.memory
    report.note(f"idle {idle} MiB, at most {most} MiB ({(most - idle) / limit:.2f} of the limit above idle, {most / limit:.2f} in all)")
    report.note(f"the engine's figures then, in MiB: {_in_mib(then)}")
    report.note(f"most of each, in MiB: {_in_mib(figures)}")
    report.note("sealed early {}, waits {}, spills {}, files of queries {}, waited {:.1f} s".format(*waits[:4], waits[4] / 1e6))
    report.note(f"statements: {clients.done}")
    checks.check(not clients.errors, "nobody got an error", str(clients.errors[:3]))
    servers = idle + _CONNECTION * clients.count()
    checks.check(most - servers <= limit * 1.1, f"without the server's own, memory stays within {limit} MiB and a tenth", f"{most - servers} MiB")
    checks.check(figures["memory_bytes"] <= limit * 1.1 * _MIB, "so does what the engine counts", f"{figures['memory_bytes'] // _MIB} MiB")
    checks.check(waits[0] > 0 and waits[2] > 0, "memtables were written early, and transactions spilled", str(waits))
    checks.check(min(clients.done.get(name, 0) for name in ("inserter", "long_transaction", "locker", "loader", "analyst")) > 0,
                 "everybody got on", str(clients.done))
    wrong = _keys_agree(server, arguments.tables)
    checks.check(not wrong, "every table's keys agree", str(wrong[:3]))


def main():
    arguments = _arguments()
    checks = report.Checks()
    plugin = engines.needs_plugin(["PANDO"])
    options = [f"--pando-memory={arguments.memory}M", "--pando-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=8M",
               "--tmp-memory-table-size=1M", "--aria-pagecache-buffer-size=8M", "--sort-buffer-size=256K", "--join-buffer-size=256K",
               f"--max-connections={arguments.connections + 50}"]
    report.heading(f"{arguments.connections} connections, {arguments.tables} tables with four keys, {arguments.memory} MiB, "
                   f"{arguments.seconds:.0f} s (--seed {arguments.seed})")
    with PrivateServer("memory", options, plugin=plugin, keep=arguments.keep) as server:
        _run(server, arguments, checks)
        if checks.failed:
            program.show_log(server)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
