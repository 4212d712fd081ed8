#!/usr/bin/env python3
"""Death in the midst of ALTER TABLE that copies a table with foreign keys, and may give it another name.

    tests/sql/copy_crash.sh [--points 9 | --every-step] [--seed N] [--engine PANDO]

A library loaded into the server ends it before its n-th write, sync, rename or removal of its logs, the log of DDL and the
files with definitions. After the restart all tables, their rows and their foreign keys are as before the statement or as
after it, nothing else is in the database's directory, and the foreign keys are in force. Without --every-step the
points are chosen at random in the second half of each statement, where the server's recovery goes forward.
"""

import argparse
import pathlib
import random
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from sqlkit import program
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import PrivateServer
from two_phase.killer import Killer

_DATABASE = "copies"
_TABLES = [
    "CREATE TABLE parent (id INT PRIMARY KEY, v INT) ENGINE={engine}",
    "CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id)) ENGINE={engine}",
    "CREATE TABLE grandchild (id INT PRIMARY KEY, child INT, CONSTRAINT named FOREIGN KEY (child) REFERENCES child (id)) "
    "ENGINE={engine}",
    "INSERT INTO parent VALUES (1, 10), (2, 20)",
    "INSERT INTO child VALUES (1, 1)",
    "INSERT INTO grandchild VALUES (1, 1)",
]
_STATEMENTS = {
    "a parent, under its name": "ALTER TABLE parent MODIFY v BIGINT, ALGORITHM=COPY",
    "a parent, under another name": "ALTER TABLE parent MODIFY v BIGINT, ALGORITHM=COPY, RENAME TO new_parent",
    "both, under another name": "ALTER TABLE child FORCE, ALGORITHM=COPY, RENAME TO new_child",
}
_NEVER = 10_000


def _create(session, engine):
    session.query("SET foreign_key_checks = 0")
    session.query(f"DROP DATABASE IF EXISTS {_DATABASE}")
    session.query("SET foreign_key_checks = 1")
    session.query(f"CREATE DATABASE {_DATABASE}")
    session.query(f"USE {_DATABASE}")
    for sql in _TABLES:
        session.query(sql.format(engine=engine))


def _read(session):
    """Name of a table -> its definition and rows."""
    found = {}
    for (name,) in session.query("SHOW TABLES").rows:
        table = f"`{name.decode()}`"
        definition = session.query(f"SHOW CREATE TABLE {table}").rows[0][1].decode()
        found[name.decode()] = f"{definition} {session.query(f'SELECT * FROM {table} ORDER BY id').rows}"
    return found


def _in_force(session, tables):
    """Every parent is held by its child."""
    problems = []
    for name in sorted(tables):
        if "grandchild" in name:
            continue
        try:
            session.query(f"DELETE FROM `{name}` WHERE id = 1")
            problems.append(f"{name}: a row that another one refers to could be deleted")
        except SqlError as error:
            if error.number != 1451:
                problems.append(f"{name}: {error}")
    return problems


def _leftovers(server, tables):
    names = {path.name.split(".")[0] for path in (server.data_dir / _DATABASE).iterdir()} - {"db"}
    return [f"left over in the database's directory: {name}" for name in sorted(names - set(tables))]


def _alter(server, killer, statement, step, engine):
    """Dies at this step. Returns what the steps were, the tables before, and those after if the server lives."""
    with server.connect() as session:
        _create(session, engine)
        before = _read(session)
        killer.kill_at(step, "before")
        try:
            session.query(statement)
            return killer.steps(), before, _read(session)
        except ConnectionLost:
            return killer.steps(), before, None


def _verify(server, before, after):
    with server.connect(_DATABASE) as session:
        try:
            found = _read(session)
            if found not in (before, after):
                return [f"the tables are {found}, before {before}, after {after}"]
            return _in_force(session, found) + _leftovers(server, found)
        except SqlError as error:
            return [f"a table cannot be read: {error}"]


def _die(server, killer, statement, arguments, rng):
    """Returns how many times the server died, and what does not hold."""
    steps, _, after = _alter(server, killer, statement, _NEVER, arguments.engine)
    killer.rest()
    # The last step may come after the statement.
    points = range(1, len(steps) + 1)
    if not arguments.every_step:
        late = points[len(points) // 2:]
        points = sorted(rng.sample(late, min(arguments.points // len(_STATEMENTS), len(late))))
    deaths = 0
    for step in points:
        steps, before, lived = _alter(server, killer, statement, step, arguments.engine)
        killer.rest()
        server.kill()
        server.start()
        problems = _verify(server, before, after)
        where = "survived" if lived else f"died before {steps[-1]}"
        print(f"    step {step:2} of about {points[-1]}: {where}: {'WRONG' if problems else 'ok'}", flush=True)
        if problems:
            return deaths, problems
        deaths += not lived
    return deaths, []


def _run(server, killer, arguments):
    rng = random.Random(arguments.seed)
    total = 0
    for what, statement in _STATEMENTS.items():
        print(f"{what}: {statement}", flush=True)
        deaths, problems = _die(server, killer, statement, arguments, rng)
        if problems:
            return problems
        total += deaths
    if not total:
        return ["no server died: the library that kills does not work"]
    print(f"all held: {total} deaths in the midst of {len(_STATEMENTS)} statements")
    return []


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=9, help="how many times to die")
    parser.add_argument("--every-step", action="store_true", help="at every one")
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def main():
    arguments = _arguments()
    print(f"copy_crash: engine {arguments.engine}, seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="pando-killer.", dir="/tmp") as directory:
        killer = Killer(directory)
        killer.haunt(ddl=True)
        options = ["--skip-innodb", "--default-storage-engine=PANDO"] if arguments.engine.upper() == "PANDO" else []
        with PrivateServer("copies", options, plugin=arguments.engine.upper() == "PANDO", keep=arguments.keep) as server:
            problems = _run(server, killer, arguments)
            if problems:
                program.end_wrong(server, problems)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
