#!/usr/bin/env python3
"""Keys are added and dropped while others write, and the server is killed now and then.

    tests/sql/hot_index.sh [--rounds 10] [--writers 3] [--rows 3000] [--seed N] [--engine PANDO]

Writers insert, update and delete rows of one table, in transactions with savepoints and rollbacks, with values
that repeat now and then, while one more client adds and drops keys, unique ones and others, several at
once, without locks. Adding a unique key may fail with "Duplicate entry"; nothing else may. A writer may meet
a duplicate only while there is a unique key. In half of the rounds the server is killed with -9 in the
midst. After each round every key must have the rows of the table (counts and checksums, read by the key),
CHECK TABLE is clean, and no file of a key that is not there is left.
"""

import argparse
import collections
import pathlib
import random
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import PrivateServer

_DATABASE = "hot"
_REPEATED = 100  # values of `u` below this come again and again
_DUPLICATE, _DEADLOCK, _LOCK_TIMEOUT = 1062, 1213, 1205
# name: definition, column that its scans begin with, unique.
_KEYS = {
    "plain": ("KEY plain (a)", "a", False),
    "wide": ("KEY wide (b, a DESC)", "b", False),
    "part": ("KEY part (b(3))", "b", False),
    "one": ("UNIQUE KEY one (u)", "u", True),
    "two": ("UNIQUE KEY two (b, u)", "b", True),
    "rows": ("KEY `rows` (b, a){clustering}", "b", False),
    "sole": ("UNIQUE KEY sole (u){clustering}", "u", True),
}


class Writer(threading.Thread):
    def __init__(self, server, number, seed, stop):
        super().__init__()
        self._server, self._random, self._stop_event = server, random.Random(f"{seed}/{number}"), stop
        self.outcomes, self.slowest, self.error = collections.Counter(), 0.0, None

    def run(self):
        try:
            with self._server.connect(_DATABASE) as session:
                while not self._stop_event.is_set():
                    self._transaction(session)
        except ConnectionLost:
            pass
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def _transaction(self, session):
        rng = self._random
        try:
            if rng.random() < 0.3:
                self._timed(session, self._change())
                self.outcomes["autocommit"] += 1
                return
            self._timed(session, "BEGIN")
            for step in range(rng.randrange(1, 8)):
                if rng.random() < 0.2:
                    self._timed(session, f"SAVEPOINT s{step}")
                    self._try(session, self._change())
                    self._timed(session, f"ROLLBACK TO s{step}")
                else:
                    self._try(session, self._change())
            last = "ROLLBACK" if rng.random() < 0.25 else "COMMIT"
            self._timed(session, last)
            self.outcomes[last.lower()] += 1
        except SqlError as error:
            if error.number not in (_DUPLICATE, _DEADLOCK, _LOCK_TIMEOUT):
                raise
            self.outcomes[error.number] += 1
            session.query("ROLLBACK")

    def _try(self, session, sql):
        try:
            self._timed(session, sql)
        except SqlError as error:
            if error.number != _DUPLICATE:
                raise
            self.outcomes[_DUPLICATE] += 1

    def _timed(self, session, sql):
        begun = time.monotonic()
        try:
            session.query(sql)
        finally:
            self.slowest = max(self.slowest, time.monotonic() - begun)

    def _change(self):
        rng = self._random
        row, value = rng.randrange(1, 1 << 20), self._value()
        kind = rng.random()
        if kind < 0.35:
            return f"INSERT INTO t (a, b, u, c) VALUES ({rng.randrange(1000)}, {self._text()}, {value}, 'new')"
        if kind < 0.5:
            return f"DELETE FROM t WHERE id >= {row % 5000} LIMIT {rng.randrange(1, 4)}"
        if kind < 0.7:
            return f"UPDATE t SET u = {value} WHERE id >= {row % 5000} LIMIT 1"
        if kind < 0.85:
            return f"UPDATE t SET b = {self._text()}, a = a + 1 WHERE id >= {row % 5000} LIMIT {rng.randrange(1, 4)}"
        if kind < 0.95:
            return f"REPLACE INTO t (id, a, b, u, c) VALUES ({row % 5000}, 7, {self._text()}, {value}, 'replaced')"
        return f"UPDATE t SET id = {row} WHERE id >= {row % 5000} LIMIT 1"

    def _value(self):
        rng = self._random
        if rng.random() < 0.05:
            return str(rng.randrange(_REPEATED))
        return "NULL" if rng.random() < 0.1 else str(rng.randrange(_REPEATED, 1 << 45))

    def _text(self):
        rng = self._random
        return "NULL" if rng.random() < 0.1 else f"'{rng.choice(['Aa', 'aA', 'bee', 'c '])}{rng.randrange(200)}'"


class Changer(threading.Thread):
    """Adds and drops keys."""

    def __init__(self, server, engine, seed, stop):
        super().__init__()
        self._server, self._random, self._stop_event = server, random.Random(f"{seed}/changer"), stop
        self._clustering = " CLUSTERING=YES" if engine == "PANDO" else ""
        self.outcomes, self.error = collections.Counter(), None

    def run(self):
        try:
            with self._server.connect(_DATABASE) as session:
                while not self._stop_event.is_set():
                    self._change(session)
        except ConnectionLost:
            pass
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def _definition(self, name):
        return _KEYS[name][0].replace("{clustering}", self._clustering)

    def _change(self, session):
        rng, there = self._random, set(_keys_of(session))
        add = [name for name in _KEYS if name not in there and rng.random() < 0.5]
        drop = [name for name in there if rng.random() < 0.6]
        parts = [f"DROP KEY `{name}`" for name in drop] + [f"ADD {self._definition(name)}" for name in add]
        if not parts:
            return
        try:
            if rng.random() < 0.8:
                # Without this hardly any unique key could be added.
                session.query(f"UPDATE t SET u = NULL WHERE u < {_REPEATED}")
            session.query(f"ALTER TABLE t {', '.join(parts)}, ALGORITHM=NOCOPY, LOCK=NONE")
            self.outcomes["altered"] += 1
        except SqlError as error:
            if error.number not in (_DUPLICATE, _DEADLOCK, _LOCK_TIMEOUT):
                raise
            self.outcomes[error.number] += 1


def _keys_of(session):
    rows = session.query("SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = "
                         f"'{_DATABASE}' AND table_name = 't' AND index_name <> 'PRIMARY'").rows
    return [row[0].decode() for row in rows]


def _create(session, engine, rows):
    session.query("CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT, a INT, b VARCHAR(20), u BIGINT, c VARCHAR(40), "
                  f"PRIMARY KEY (id)) ENGINE={engine}")
    session.query("INSERT INTO t (a, b, u, c) SELECT seq % 1000, CONCAT('Aa', seq % 200), seq, 'old' FROM "
                  f"seq_1_to_{rows}")


def _verify(session, server, engine):
    problems = []
    for name in _keys_of(session):
        column = _KEYS[name][1]
        least = "''" if column == "b" else "-1"
        for read in ("id, a, b, u, c", f"id, {column}"):
            sums = [session.query(f"SELECT COUNT(*), COALESCE(SUM(CRC32(CONCAT_WS('|', {read}))), 0) FROM t "
                                  f"FORCE INDEX (`{key}`) WHERE {column} >= {least} OR {column} IS NULL").rows[0]
                    for key in ("PRIMARY", name)]
            if sums[0] != sums[1]:
                problems.append(f"key {name} ({read}): {sums[1]}, the table {sums[0]}")
    said = engines.check_table(session, engine, "t")
    if said:
        problems.append(f"CHECK TABLE: {said}")
    files = list((server.data_dir / _DATABASE / "t.pando").glob("*.pando"))
    # Rows, the description, and the keys.
    if files and len(files) != 2 + len(_keys_of(session)):
        problems.append(f"files {[file.name for file in files]}, keys {_keys_of(session)}")
    return problems


def _round(server, arguments, number, kill):
    stop = threading.Event()
    seed = f"{arguments.seed}/{number}"
    writers = [Writer(server, n, seed, stop) for n in range(arguments.writers)]
    changer = Changer(server, arguments.engine, seed, stop)
    threads = [*writers, changer]
    for thread in threads:
        thread.start()
    time.sleep(random.Random(seed).uniform(0.5, 2) if kill else arguments.seconds)
    if kill:
        server.kill()
    stop.set()
    for thread in threads:
        thread.join()
    if kill:
        server.start()
    problems = [f"{type(thread).__name__}: {thread.error!r}" for thread in threads if thread.error]
    with server.connect(_DATABASE) as session:
        problems += _verify(session, server, arguments.engine)
    written = sum((writer.outcomes for writer in writers), collections.Counter())
    slowest = max(writer.slowest for writer in writers) * 1000
    print(f"round {number:2}{' (killed)' if kill else ''}: writers {dict(written)}, slowest {slowest:.0f} ms; keys "
          f"{dict(changer.outcomes)}: {'WRONG' if problems else 'ok'}", flush=True)
    return problems, changer.outcomes["altered"]


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=3, help="of a round without a kill")
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def main():
    arguments = _arguments()
    print(f"hot_index: engine {arguments.engine}, seed {arguments.seed}", flush=True)
    altered = 0
    with PrivateServer("hot_index", engines.options(arguments.engine, 32),
                       plugin=engines.needs_plugin([arguments.engine]), keep=arguments.keep) as server:
        with server.connect() as session:
            session.query(f"CREATE DATABASE {_DATABASE}")
        with server.connect(_DATABASE) as session:
            _create(session, arguments.engine, arguments.rows)
        for number in range(1, arguments.rounds + 1):
            problems, done = _round(server, arguments, number, number % 2 == 0)
            altered += done
            if problems:
                program.end_wrong(server, problems)
    if not altered:
        print("no ALTER succeeded", file=sys.stderr)
        return 1
    print(f"all held: {arguments.rounds} rounds, {altered} ALTERs")
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
