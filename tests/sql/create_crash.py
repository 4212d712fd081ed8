#!/usr/bin/env python3
"""Death in the midst of CREATE TABLE of a partitioned table, and a power cut that undoes what the recovery did with its files.

    tests/sql/create_crash.sh [--points 6 | --every-step] [--seed N]

A library loaded into the server ends it before its n-th write, sync, rename or removal of its logs, the log of DDL and the
files with definitions. The next start drops what there is of the table, and is killed. Then .frm and .par are put back if they
were removed and the directory not synced before the log of DDL was told: a power cut may do so. After the third start there
is no table of the name, or a whole one, and the name is free.
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

_DATABASE = "creates"
_STATEMENT = "CREATE TABLE made (id INT PRIMARY KEY) ENGINE=PANDO PARTITION BY HASH (id) PARTITIONS 2"
_USE = ("INSERT INTO made VALUES (1), (2)", "SELECT * FROM made ORDER BY id", "DROP TABLE made")
_OPTIONS = ["--skip-innodb", "--default-storage-engine=PANDO"]
_NEVER = 10_000


def _create(server, killer, step):
    """Dies at this step. Returns what the steps were, and whether the server lives."""
    with server.connect() as session:
        session.query(f"DROP DATABASE IF EXISTS {_DATABASE}")
        session.query(f"CREATE DATABASE {_DATABASE}")
        session.query(f"USE {_DATABASE}")
        killer.kill_at(step, "before")
        try:
            session.query(_STATEMENT)
            lived = True
        except ConnectionLost:
            lived = False
    steps = killer.steps()
    killer.rest()
    server.kill()
    return steps, lived


def _not_durable(steps, files):
    """Of these files those whose removal the log of DDL was told of, and a power cut can still undo."""
    there, removed, back = set(files), set(), set()
    for step in steps:
        what, name = step.split()
        if what == "unlink" and name in there:
            there.remove(name)
            removed.add(name)
        elif step == f"sync {_DATABASE}":
            removed.clear()
        elif step == "write ddl_recovery.log":
            back |= removed
    return back


def _recover_and_lose(server, killer):
    """What recovery does with the files of the definition may not last. Returns which of them are back."""
    directory = server.data_dir / _DATABASE
    files = {name: (directory / name).read_bytes() for name in ("made.frm", "made.par") if (directory / name).exists()}
    killer.kill_at(_NEVER, "before")
    server.start()
    back = _not_durable(killer.steps(), files)
    killer.rest()
    server.kill()
    for name in back:
        (directory / name).write_bytes(files[name])
    server.start()
    return sorted(back)


def _verify(server, lived):
    with server.connect(_DATABASE) as session:
        there = session.query("SHOW TABLES").rows
        if lived and not there:
            return ["the table is gone"]
        try:
            for sql in _USE if there else (_STATEMENT, *_USE):
                session.query(sql)
        except SqlError as error:
            return [f"{'a table of the name is' if there else 'nothing of the name is'} there: {error}"]
    return []


def _run(server, killer, arguments):
    rng = random.Random(arguments.seed)
    steps, _ = _create(server, killer, _NEVER)
    server.start()
    points = range(1, len(steps) + 1)
    if not arguments.every_step:
        points = sorted(rng.sample(points, min(arguments.points, len(points))))
    deaths = 0
    for step in points:
        steps, lived = _create(server, killer, step)
        back = _recover_and_lose(server, killer)
        problems = _verify(server, lived)
        print(f"    step {step:2}: {'survived' if lived else 'died before ' + steps[-1]}, back again: {', '.join(back) or 'nothing'}: "
              f"{'WRONG' if problems else 'ok'}", flush=True)
        if problems:
            return problems
        deaths += not lived
    if not deaths:
        return ["no server died: the library that kills does not work"]
    print(f"all held: {deaths} deaths")
    return []


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=6, help="how many times to die")
    parser.add_argument("--every-step", action="store_true", help="at every one")
    program.add_seed(parser)
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def main():
    arguments = _arguments()
    print(f"create_crash: seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="pando-killer.", dir="/tmp") as directory:
        killer = Killer(directory)
        killer.haunt(ddl=True, directories=True)
        with PrivateServer("creates", _OPTIONS, keep=arguments.keep) as server:
            problems = _run(server, killer, arguments)
            if problems:
                program.end_wrong(server, problems)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
