#!/usr/bin/env python3
"""Very many tables in one server: its starts, memory and descriptors, with few files open at once.

    tests/sql/many_tables.sh [--tables 300] [--clients 4] [--statements 2000] [--open-files 128]

1. Tables with three keys are made by several clients, each with a row.
2. The server is stopped and started: how long that takes, and what it holds before anybody has asked for a table.
3. Clients run random statements over all tables, each on tables of its own, of which it knows the rows; then the server is killed in the
   midst of it and started again: every table has its rows, by each key.

What is held and taken is printed; memory and descriptors beside limits, those of memory growing with the number of tables. The full run
is --tables 20000 --statements 40000. Not part of the tests of every change: what a process has resident depends on the machine.
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
from sqlkit.client import ConnectionLost
from sqlkit.server import PrivateServer
from sqlkit.watched import Watched

_DATABASE = "many"
_KEYS = ("a", "b", "c")
# What a table may hold of memory that nobody asks for, and that many use one after the other, in KiB.
_IDLE_KIB_OF_TABLE, _USED_KIB_OF_TABLE = 8, 64
# Memory that does not grow with the number of tables: caches, sessions, what is in use at once.
_MEMORY_MIB = 700
# The catalog's and the log's files come on top of the tables'.
_OTHER_DESCRIPTORS = 16


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--statements", type=int, default=2000, help="random statements before the kill, of all clients")
    parser.add_argument("--open-files", type=int, default=128, help="pando_open_files")
    program.add_seed(parser)
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


class Client:
    """Changes tables that nobody else changes, and knows the sums of their columns."""

    def __init__(self, number, arguments):
        self.number, self._arguments = number, arguments
        self._rng = random.Random(f"{arguments.seed}/{number}")
        self.tables = range(number, arguments.tables, arguments.clients)
        # By table: rows by id, as (a, b, c). Where a statement was on its way, what is known of before and of after.
        self.rows, self.on_the_way = {}, None
        self.statements, self.error = 0, None
        self._thread = None

    def start(self, server, work):
        """`work` in a thread, with a session."""
        def run():
            try:
                with server.connect(_DATABASE, timeout=600) as session:
                    work(self, session)
            except ConnectionLost:
                pass
            except Exception as error:  # the main thread reports it
                self.error = error
        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def join(self):
        self._thread.join()

    def make(self, session):
        for number in self.tables:
            session.query(f"CREATE TABLE t{number} (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(20), KEY (a), KEY (b, a), "
                          "KEY (c)) ENGINE=PANDO")
            self._change(session, number, f"INSERT INTO t{number} VALUES (1, {number}, 7, 'c{number}')", {1: (number, 7)})

    def wander(self, session):
        for _ in range(self._arguments.statements // self._arguments.clients):
            self._step(session)

    def wander_on(self, session):
        """Until the server goes away."""
        while True:
            self._step(session)

    def _step(self, session):
        number = self._rng.choice(self.tables)
        rows, kind = self.rows[number], self._rng.randrange(5)
        if kind == 0:
            first, value = self._rng.randrange(2, 1000), self._rng.randrange(1000)
            new = {row: (value, row) for row in range(first, first + self._rng.randrange(1, 6))}
            values = ", ".join(f"({row}, {a}, {b}, 'c{a}')" for row, (a, b) in new.items())
            self._change(session, number, f"REPLACE INTO t{number} VALUES {values}", {**rows, **new})
        elif kind == 1:
            self._change(session, number, f"UPDATE t{number} SET a = a + 1, c = CONCAT('c', a)",
                         {row: (a + 1, b) for row, (a, b) in rows.items()})
        elif kind == 2 and len(rows) > 3:
            last = max(rows)
            self._change(session, number, f"DELETE FROM t{number} WHERE id = {last}",
                         {row: of for row, of in rows.items() if row != last})
        else:
            problem = self.look(session, number, self._rng.choice(("PRIMARY", *_KEYS)))
            if problem:
                raise AssertionError(problem)
        self.statements += 1

    def _change(self, session, number, sql, after):
        self.on_the_way = (number, after)
        session.query(sql)
        self.rows[number], self.on_the_way = after, None

    def look(self, session, number, key):
        """What is wrong with a table by one of its keys."""
        condition = {"PRIMARY": "id > 0", "a": "a > -1", "b": "b > -1", "c": "c > ''"}[key]
        found = session.query(f"SELECT id, a, b, c FROM t{number} FORCE INDEX (`{key}`) WHERE {condition}").rows
        found = {int(row): (int(a), int(b), c.decode()) for row, a, b, c in found}
        expected = {row: (a, b, f"c{a}") for row, (a, b) in self.rows[number].items()}
        return None if found == expected else f"t{number} by {key}: {found}, and not {expected}"

    def check(self, session):
        """All its tables, after a kill."""
        if self.on_the_way:
            (number, after), self.on_the_way = self.on_the_way, None
            if self.look(session, number, "PRIMARY"):
                self.rows[number] = after
        for number in self.tables:
            for key in ("PRIMARY", self._rng.choice(_KEYS)):
                problem = self.look(session, number, key)
                if problem:
                    raise AssertionError(problem)


class Measured:
    """The figures of a server with its tables, beside their limits."""

    def __init__(self, server, arguments, checks):
        self._server, self._arguments, self._checks = server, arguments, checks
        self._watched = Watched(server)
        self._empty = self._watched.memory()
        self._stop = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self):
        while not self._stop.wait(0.05):
            self._watched.descriptors()

    def start(self, what):
        begin = time.monotonic()
        self._server.start()
        report.note(f"a start {what}: {time.monotonic() - begin:.1f} s")

    def memory(self, what, kib_of_table, more_mib=0):
        now = self._watched.memory()
        limit = self._empty + more_mib + kib_of_table * self._arguments.tables // 1024 + 1
        each = (now - self._empty) * 1024 / self._arguments.tables
        self._checks.check(now <= limit, f"{what}: {now} MiB resident of {limit}, an empty server {self._empty}; "
                           f"{each:.1f} KiB more for each table", f"{now} MiB")

    def descriptors(self):
        limit = self._arguments.open_files + _OTHER_DESCRIPTORS
        self._stop.set()
        most = self._watched.most
        self._checks.check(0 < most <= limit, f"{most} descriptors at most of {limit}", str(most))


def _all(server, clients, work, checks, what):
    """All clients at once. Seconds."""
    begin = time.monotonic()
    for client in clients:
        client.start(server, work)
    for client in clients:
        client.join()
    seconds = time.monotonic() - begin
    errors = [f"client {client.number}: {client.error!r}" for client in clients if client.error]
    checks.check(not errors, f"{what}: {seconds:.1f} s", "\n".join(errors))
    return seconds


def _run(server, arguments, checks):
    clients = [Client(number, arguments) for number in range(arguments.clients)]
    measured = Measured(server, arguments, checks)
    with server.connect() as session:
        session.query(f"CREATE DATABASE {_DATABASE}")
    _all(server, clients, Client.make, checks, f"{arguments.tables} tables are made by {arguments.clients} clients")
    measured.memory("with all tables just made", _USED_KIB_OF_TABLE, _MEMORY_MIB)
    begin = time.monotonic()
    server.stop()
    report.note(f"a stop: {time.monotonic() - begin:.1f} s")
    measured.start("after a clean stop")
    measured.memory("before anybody asks for a table", _IDLE_KIB_OF_TABLE)
    seconds = _all(server, clients, Client.wander, checks, f"{arguments.statements} random statements")
    report.note(f"{arguments.statements / seconds:.0f} statements a second")
    measured.memory("after these", _USED_KIB_OF_TABLE, _MEMORY_MIB)
    for client in clients:
        client.start(server, Client.wander_on)
    time.sleep(3)
    server.kill()
    for client in clients:
        client.join()
    measured.start("after a kill")
    measured.memory("after its recovery", _USED_KIB_OF_TABLE, _MEMORY_MIB)
    _all(server, clients, Client.check, checks, "each table has its rows by its keys")
    measured.memory("after that", _USED_KIB_OF_TABLE, _MEMORY_MIB)
    measured.descriptors()
    begin = time.monotonic()
    with server.connect(timeout=1200) as session:
        session.query(f"DROP DATABASE {_DATABASE}")
    report.note(f"all are dropped: {time.monotonic() - begin:.1f} s")
    left = [path.name for path in (server.data_dir / _DATABASE).glob("*")] if (server.data_dir / _DATABASE).exists() else []
    checks.check(not left, "no file is left", str(left[:5]))


def main():
    arguments = _arguments()
    checks = report.Checks()
    plugin = engines.needs_plugin(["PANDO"])
    options = engines.options("PANDO", 64) + [f"--pando-open-files={arguments.open_files}"]
    report.heading(f"{arguments.tables} tables with {len(_KEYS)} keys, {arguments.open_files} open files, seed {arguments.seed}")
    with PrivateServer("many", options, plugin=plugin, keep=arguments.keep) as server:
        _run(server, arguments, checks)
        if checks.failed:
            program.show_log(server)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
