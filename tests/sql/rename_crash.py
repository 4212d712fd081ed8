#!/usr/bin/env python3
"""Death in the midst of RENAME TABLE that lets partitioned tables change places.

    tests/sql/rename_crash.sh [--every-step] [--engine PANDO]

To the server such a statement is several steps, which its recovery takes back one after the other. A library loaded into the server ends it
before its n-th rename or removal of a file with definitions, or sync of a database's directory: in between the files of a table have two
names. With --every-step also before the n-th write or sync of its logs. After the restart all tables and their rows are as before the
statement or as after it, and nothing else is in the databases' directories.
"""

import argparse
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from sqlkit import program
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import PrivateServer
from two_phase.killer import Killer

_DATABASES = ["renames", "others"]
_TABLES = {"a": "HASH (id) PARTITIONS 3", "b": "KEY (id) PARTITIONS 2",
           "c": "RANGE (id) (PARTITION low VALUES LESS THAN (3), PARTITION high VALUES LESS THAN (10))"}
_STATEMENTS = {
    "two change places, by way of another database": "RENAME TABLE a TO others.x, b TO a, others.x TO b",
    "three in a ring": "RENAME TABLE a TO x, b TO a, c TO b, x TO c",
}
_NEVER = 10_000


def _create(session, engine):
    for name in _DATABASES:
        session.query(f"DROP DATABASE IF EXISTS {name}")
        session.query(f"CREATE DATABASE {name}")
    session.query(f"USE {_DATABASES[0]}")
    for name, partitions in _TABLES.items():
        session.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, was CHAR(1)) ENGINE={engine} PARTITION BY {partitions}")
        session.query(f"INSERT INTO {name} SELECT seq, '{name}' FROM seq_1_to_6")


def _read(session):
    """Name of a table -> its definition and rows."""
    found = {}
    for database in _DATABASES:
        for (name,) in session.query(f"SHOW TABLES FROM {database}").rows:
            table = f"{database}.`{name.decode()}`"
            definition = session.query(f"SHOW CREATE TABLE {table}").rows[0][1].decode()
            found[table] = f"{definition} {session.query(f'SELECT * FROM {table} ORDER BY id').rows}"
    return found


def _leftovers(server, tables):
    found = {f"{database}.`{path.name.split('.')[0].split('#P#')[0]}`" for database in _DATABASES
             for path in (server.data_dir / database).iterdir() if path.name != "db.opt"}
    return [f"left over in a database's directory: {name}" for name in sorted(found - set(tables))]


def _rename(server, killer, statement, step):
    """Dies at this step. Returns what the steps were, and whether the server lives."""
    with server.connect(_DATABASES[0]) as session:
        killer.kill_at(step, "before")
        try:
            session.query(statement)
            lived = True
        except ConnectionLost:
            lived = False
    steps = killer.steps()
    killer.rest()
    return steps, lived


def _verify(server, before, after, engine):
    with server.connect(_DATABASES[0]) as session:
        try:
            found = _read(session)
        except SqlError as error:
            return [f"a table cannot be read: {error}"]
        if found not in (before, after):
            return [f"the tables are {found}, before {before}, after {after}"]
        problems = _leftovers(server, found)
        if found == after:
            _create(session, engine)
        return problems


def _die(server, killer, statement, arguments):
    """Returns how many times the server died, and what does not hold."""
    with server.connect() as session:
        _create(session, arguments.engine)
        before = _read(session)
        steps, _ = _rename(server, killer, statement, _NEVER)
        after = _read(session)
        _create(session, arguments.engine)
    count, deaths = len(steps), 0
    # The next order is for a server that has had none.
    server.kill()
    server.start()
    for step in range(1, count + 1):
        steps, lived = _rename(server, killer, statement, step)
        server.kill()
        server.start()
        problems = _verify(server, before, after, arguments.engine)
        where = "survived" if lived else f"died before {steps[-1]}"
        print(f"    step {step:2} of {count}: {where}: {'WRONG' if problems else 'ok'}", flush=True)
        if problems:
            return deaths, problems
        deaths += not lived
    return deaths, []


def _run(server, killer, arguments):
    total = 0
    for what, statement in _STATEMENTS.items():
        print(f"{what}: {statement}", flush=True)
        deaths, problems = _die(server, killer, statement, arguments)
        if problems:
            return problems
        total += deaths
    if not total:
        return ["no server died: the library that kills does not work"]
    print(f"all held: {total} deaths in the midst of {len(_STATEMENTS)} statements")
    return []


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every-step", action="store_true", help="die also at the logs")
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def main():
    arguments = _arguments()
    is_own = arguments.engine.upper() == "PANDO"
    with tempfile.TemporaryDirectory(prefix="pando-killer.", dir="/tmp") as directory:
        killer = Killer(directory)
        killer.haunt(ddl=True, directories=True, logs=arguments.every_step)
        options = ["--skip-innodb", "--default-storage-engine=PANDO"] if is_own else []
        with PrivateServer("renames", options, plugin=is_own, keep=arguments.keep) as server:
            problems = _run(server, killer, arguments)
            if problems:
                program.end_wrong(server, problems)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
