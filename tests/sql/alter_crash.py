#!/usr/bin/env python3
"""kill -9 of a server in the midst of instant ALTERs.

    tests/sql/alter_crash.sh [--rounds 10] [--points 12 | --every-step] [--tables 4] [--seed N] [--engine PANDO]

Each client changes the columns of a table of its own again and again (add anywhere, drop, move, rename, widen,
several at once, a key renamed; one of the tables is partitioned, one is renamed in the same statement) and
writes rows in between. The server is killed at a random moment. After each restart every table must be
as after the last acknowledged statement, or as after the one on its way: its definition, every value of
every row, and CHECK TABLE; nothing else may be left in the database's directory.

Then the server dies (by a library loaded into it) in the midst of single ALTERs: before its n-th write, sync, rename or
removal of its logs, the log of DDL and the files with definitions; at some n, or at each one (--every-step).
"""

import argparse
import copy
import dataclasses
import pathlib
import random
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import PrivateServer
from two_phase.killer import Killer

_DATABASE = "alters"
_LOAD_SECONDS = (0.05, 1.0)
_TYPES = {"int": ["TINYINT", "SMALLINT", "INT", "BIGINT"], "text": ["VARCHAR(20)", "VARCHAR(60)", "VARCHAR(600)", "TEXT"]}
_COLUMNS_MAX = 12
_STEPS_MAX = 100


@dataclasses.dataclass
class Column:
    name: str
    kind: str
    width: int
    default: object

    def sql(self):
        default = f"'{self.default}'" if self.kind == "text" else self.default
        return f"{self.name} {_TYPES[self.kind][self.width]} NOT NULL DEFAULT {default}"


@dataclasses.dataclass
class Table:
    """What a table is to be: its columns beside `id`, in order, and for each id the values."""
    name: str
    columns: list
    rows: dict
    key: str = "k1"

    def expected(self):
        names = [column.name for column in self.columns]
        types = [_TYPES[column.kind][column.width].lower() for column in self.columns]
        rows = {number: [row[name] for name in names] for number, row in self.rows.items()}
        return self.name, names, types, self.key, rows


class Client:
    """Changes one table. `state` is what was acknowledged, `in_flight` what a statement on its way makes of it."""

    def __init__(self, number, engine, seed):
        self.number, self._engine = number, engine
        self._random = random.Random(f"{seed}/{number}")
        self._fresh = 0
        self.partitioned = number % 4 == 1
        self.renames = number % 4 == 2
        self.state = Table(f"t{number}_0", [Column("c0", "int", 1, 0)], {})
        self.in_flight = self.error = self._session = self._thread = None
        self.alters = 0

    def create(self, session):
        tail = " PARTITION BY HASH (id) PARTITIONS 3" if self.partitioned else ""
        session.query(f"CREATE TABLE {self.state.name} (id INT PRIMARY KEY, {self.state.columns[0].sql()}, "
                      f"fixed INT DEFAULT 1, KEY k1 (fixed)) ENGINE={self._engine}{tail}")

    def start(self, server):
        self._session = server.connect(_DATABASE)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def join(self):
        self._thread.join()
        self._session.close()

    def _work(self):
        try:
            while True:
                after = copy.deepcopy(self.state)
                sql = self._alter(after) if self._random.random() < 0.7 else self._write(after)
                self.in_flight = after
                self._session.query(sql)
                self.alters += sql.startswith("ALTER")
                self.state, self.in_flight = after, None
        except ConnectionLost:
            pass
        except Exception as error:  # the main thread reports it
            self.error = f"{error}, at {sql}"

    def alter_once(self, session):
        """One ALTER; says whether the server lived to answer."""
        after = copy.deepcopy(self.state)
        sql = self._alter(after)
        self.in_flight = after
        try:
            session.query(sql)
        except ConnectionLost:
            return False
        self.alters += 1
        self.state, self.in_flight = after, None
        return True

    def write_once(self, session):
        after = copy.deepcopy(self.state)
        session.query(self._write(after))
        self.state = after

    def _write(self, table):
        new = {}
        first = max(table.rows, default=0) + 1
        for number in range(first, first + self._random.choice([1, 3, 40])):
            new[number] = {column.name: self._value(column) for column in table.columns}
        table.rows.update(new)
        names = ", ".join(column.name for column in table.columns)
        values = ", ".join(f"({number}, " + ", ".join(repr(row[c.name]) for c in table.columns) + ")"
                           for number, row in new.items())
        return f"INSERT INTO {table.name} (id, {names}) VALUES {values}"

    def _value(self, column):
        if column.kind == "int":
            bits = (7, 15, 31, 63)[column.width]
            return self._random.choice([0, -1, -(1 << bits), (1 << bits) - 1, self._random.randint(-99, 99)])
        return self._random.choice(["", "x", "a value", "y" * (20, 60, 600, 1000)[column.width]])

    def _alter(self, table):
        if self.partitioned and self._random.random() < 0.4:
            return self._move_partitions(table)
        clauses, touched = [], set()
        for _ in range(self._random.choice([1, 1, 2, 4])):
            step = self._random.choice([self._add, self._add, self._drop, self._move, self._rename, self._widen])
            clause = step(table, touched)
            if clause:
                clauses.append(clause)
        if not clauses or self._random.random() < 0.15:
            self._fresh += 1
            clauses.append(f"RENAME KEY {table.key} TO k{self._fresh}")
            table.key = f"k{self._fresh}"
        old = table.name
        if self.renames and self._random.random() < 0.3:
            self._fresh += 1
            table.name = f"t{self.number}_{self._fresh}"
            clauses.append(f"RENAME TO {table.name}")
        return f"ALTER TABLE {old} {', '.join(clauses)}"

    def _move_partitions(self, table):
        """The server renames partitions one by one, and their files after them."""
        if self._random.random() < 0.5:
            return f"ALTER TABLE {table.name} FORCE, ALGORITHM=COPY"
        self._fresh += 1
        old, table.name = table.name, f"t{self.number}_{self._fresh}"
        return f"RENAME TABLE {old} TO {table.name}"

    def _free(self, table, touched):
        free = [column for column in table.columns if column.name not in touched]
        return self._random.choice(free) if free else None

    def _add(self, table, touched):
        if len(table.columns) >= _COLUMNS_MAX:
            return None
        self._fresh += 1
        kind = self._random.choice(["int", "text"])
        default = self._random.randint(-100, 100) if kind == "int" else self._random.choice(["", "some text"])
        column = Column(f"c{self._fresh}", kind, self._random.randint(0, 2), default)
        touched.add(column.name)
        for row in table.rows.values():
            row[column.name] = default
        first = self._random.random() < 0.5
        table.columns.insert(0 if first else len(table.columns), column)
        return f"ADD {column.sql()}{' FIRST' if first else ''}"

    def _drop(self, table, touched):
        column = self._free(table, touched)
        if column is None or len(table.columns) < 2:
            return None
        touched.add(column.name)
        table.columns.remove(column)
        for row in table.rows.values():
            del row[column.name]
        return f"DROP {column.name}"

    def _move(self, table, touched):
        column = self._free(table, touched)
        if column is None:
            return None
        touched.add(column.name)
        table.columns.remove(column)
        table.columns.insert(0, column)
        return f"MODIFY {column.sql()} FIRST"

    def _rename(self, table, touched):
        column = self._free(table, touched)
        if column is None:
            return None
        self._fresh += 1
        old, column.name = column.name, f"c{self._fresh}"
        touched.update((old, column.name))
        for row in table.rows.values():
            row[column.name] = row.pop(old)
        return f"RENAME COLUMN {old} TO {column.name}"

    def _widen(self, table, touched):
        column = self._free(table, touched)
        if column is None or column.width == 3:
            return None
        touched.add(column.name)
        column.width += 1
        return f"MODIFY {column.sql()}"


def _read(session, number):
    """The client's table as it is, in the form of `Table.expected`; None if there is not just one."""
    names = [row[0].decode() for row in session.query(f"SHOW TABLES LIKE 't{number}\\_%'").rows]
    if len(names) != 1:
        return names
    columns = session.query("SELECT column_name, IF(character_maximum_length IS NULL, "
                            "data_type, column_type) FROM information_schema.columns WHERE table_schema = "
                            f"'{_DATABASE}' AND table_name = '{names[0]}' AND column_name NOT IN ('id', 'fixed') "
                            "ORDER BY ordinal_position").rows
    keys = session.query("SELECT index_name FROM information_schema.statistics WHERE table_schema = "
                         f"'{_DATABASE}' AND table_name = '{names[0]}' AND index_name <> 'PRIMARY'").rows
    texts = [kind.startswith((b"varchar", b"text")) for _, kind in columns]
    listed = ", ".join(name.decode() for name, _ in columns)
    rows = {}
    for row in session.query(f"SELECT id, {listed} FROM {names[0]}").rows:
        rows[int(row[0])] = [value.decode() if text else int(value) for value, text in zip(row[1:], texts)]
    return (names[0], [name.decode() for name, _ in columns], [kind.decode() for _, kind in columns],
            keys[0][0].decode() if len(keys) == 1 else keys, rows)


def _verify(session, client, engine):
    try:
        found = _read(session, client.number)
    except SqlError as error:
        return [f"table {client.number} cannot be read: {error}"]
    if client.in_flight is not None and found == client.in_flight.expected():
        client.state = client.in_flight
    elif found != client.state.expected():
        way = client.in_flight.expected()[:4] if client.in_flight else None
        return [f"table {client.number} is {found[:4]}, acknowledged {client.state.expected()[:4]}, on its way {way}; "
                f"rows {_first_difference(found[-1], client.state.expected()[-1])}"]
    client.in_flight = None
    said = engines.check_table(session, engine, client.state.name)
    return [f"CHECK TABLE {client.state.name}: {said}"] if said else []


def _first_difference(found, expected):
    if not isinstance(found, dict):
        return "cannot be read"
    for number in sorted(set(found) | set(expected)):
        if found.get(number) != expected.get(number):
            return f"differ: {number}: {found.get(number)}, acknowledged {expected.get(number)}"
    return "agree"


def _leftovers(server, clients):
    # The server forgets this file of its own, whichever the engine, when it dies after making it.
    files = [path.name for path in (server.data_dir / _DATABASE).iterdir() if path.suffix != ".par"]
    known = {"db"} | {client.state.name for client in clients}
    return [f"left over in the database's directory: {file}" for file in sorted(files) if file.split(".")[0].split("#P#")[0] not in known]


def _round(server, clients, engine, rng):
    for client in clients:
        client.start(server)
    time.sleep(rng.uniform(*_LOAD_SECONDS))
    server.kill()
    for client in clients:
        client.join()
    on_the_way = sum(client.in_flight is not None for client in clients)
    problems = [f"client {client.number}: {client.error}" for client in clients if client.error]
    server.start()
    with server.connect(_DATABASE) as session:
        for client in clients:
            problems += _verify(session, client, engine)
    return on_the_way, problems + _leftovers(server, clients)


def _die(server, killer, client, step, engine):
    """Dies at this step of an ALTER. Returns where (None: there are not so many), and what does not hold."""
    with server.connect(_DATABASE) as session:
        client.write_once(session)
        killer.kill_at(step, "before")
        client.alter_once(session)
    died = len(killer.steps()) >= step
    where = killer.steps()[-1] if died else None
    killer.rest()
    server.kill()
    server.start()
    with server.connect(_DATABASE) as session:
        return where, _verify(session, client, engine)


def _points(arguments, clients, rng):
    """Steps to die at, and the client whose ALTER it is."""
    if not arguments.every_step:
        for _ in range(arguments.points):
            yield rng.randint(1, 24), rng.choice(clients)
        return
    for client in clients[:3]:
        for step in range(1, _STEPS_MAX):
            yield step, client


def _die_at_steps(server, killer, clients, arguments, rng):
    deaths, over = 0, set()
    for step, client in _points(arguments, clients, rng):
        if client.number in over:
            continue
        where, problems = _die(server, killer, client, step, arguments.engine)
        problems += _leftovers(server, clients)
        print(f"table {client.number}, step {step:2}: {'died before ' + where if where else 'survived'}: "
              f"{'WRONG' if problems else 'ok'}", flush=True)
        if problems:
            return deaths, problems
        deaths += where is not None
        if where is None and arguments.every_step:
            over.add(client.number)
    return deaths, [] if deaths or not arguments.points else ["no server died: the library that kills does not work"]


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--points", type=int, default=12, help="steps of single ALTERs to die at")
    parser.add_argument("--every-step", action="store_true", help="every one, for three kinds of tables")
    parser.add_argument("--tables", type=int, default=4)
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def _run(server, killer, arguments):
    rng = random.Random(arguments.seed)
    clients = [Client(number, arguments.engine, arguments.seed) for number in range(arguments.tables)]
    with server.connect() as session:
        session.query(f"CREATE DATABASE {_DATABASE}")
    with server.connect(_DATABASE) as session:
        for client in clients:
            client.create(session)
    for number in range(1, arguments.rounds + 1):
        on_the_way, problems = _round(server, clients, arguments.engine, rng)
        print(f"round {number:2}: {sum(c.alters for c in clients)} ALTERs so far, {on_the_way} statements on "
              f"the way: {'WRONG' if problems else 'ok'}", flush=True)
        if problems:
            return problems
    deaths, problems = _die_at_steps(server, killer, clients, arguments, rng)
    if not problems:
        print(f"all held: {arguments.rounds} rounds, {sum(c.alters for c in clients)} ALTERs, {deaths} deaths at steps")
    return problems


def main():
    arguments = _arguments()
    print(f"alter_crash: engine {arguments.engine}, seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="pando-killer.", dir="/tmp") as directory:
        killer = Killer(directory)
        killer.haunt(ddl=True)
        with PrivateServer("alters", engines.options(arguments.engine, 32),
                           plugin=engines.needs_plugin([arguments.engine]), keep=arguments.keep) as server:
            problems = _run(server, killer, arguments)
            if problems:
                program.end_wrong(server, problems)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
