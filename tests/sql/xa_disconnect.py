#!/usr/bin/env python3
"""XA COMMIT and XA ROLLBACK by others at the moment in which the preparing connection goes away.

    tests/sql/xa_disconnect.sh [--rounds 400] [--seed N] [--engine PANDO]

A connection prepares a transaction and closes; others try to commit it, or to roll it back, again and again until
the server says that it is done. Then it is: the row is there, or not, and nothing is locked or prepared any more, also after
kill -9 and a restart. (The server lets go of the transaction before the engine hears that the connection is closed.)
"""

import argparse
import pathlib
import random
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_NOT_KNOWN = 1397  # XAER_NOTA: held by a connection still, or done by another
_RESOLVERS = 2


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def _resolve(session, statement, done, errors):
    """Tries until this or another resolver was told that it is done."""
    while not done.is_set() and not errors:
        try:
            session.query(statement)
            done.set()
        except SqlError as error:
            if error.number != _NOT_KNOWN:
                errors.append(f"{statement}: {error}")


def _round(number, server, resolvers, commits):
    """Returns what went wrong."""
    done, errors = threading.Event(), []
    statement = f"XA {'COMMIT' if commits else 'ROLLBACK'} 'x{number}'"
    preparer = server.connect("test")
    for sql in (f"XA START 'x{number}'", f"INSERT INTO t VALUES ({number}, {number % 7})", f"XA END 'x{number}'",
                f"XA PREPARE 'x{number}'"):
        preparer.query(sql)
    threads = [threading.Thread(target=_resolve, args=(session, statement, done, errors)) for session in resolvers]
    for thread in threads:
        thread.start()
    preparer.close()
    for thread in threads:
        thread.join()
    return errors


def _compare(session, expected):
    """What is not as it was acknowledged."""
    found = {int(row[0]) for row in session.query("SELECT id FROM t").rows}
    problems = [f"{len(rows)} transactions {what}, as {min(rows)}"
                for what, rows in (("were acknowledged and are not there", expected - found),
                                   ("were rolled back and are there", found - expected)) if rows]
    prepared = session.query("XA RECOVER").rows
    if prepared:
        problems.append(f"{len(prepared)} transactions are prepared still")
    return problems


def main():
    """The test."""
    arguments = _arguments()
    report.note(f"{arguments.rounds} transactions, {arguments.engine}, seed {arguments.seed}")
    rng, checks, expected = random.Random(arguments.seed), report.Checks(), set()
    options = engines.options(arguments.engine, 64) + ["--loose-pando-lock-wait-timeout=3"]
    with PrivateServer("xa-disconnect", options, plugin=engines.needs_plugin([arguments.engine]),
                       keep=arguments.keep) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE IF NOT EXISTS test")
            session.query(f"CREATE TABLE test.t (id INT PRIMARY KEY, n INT, KEY (n)) ENGINE={arguments.engine}")
        resolvers = [server.connect("test") for _ in range(_RESOLVERS)]
        errors = []
        for number in range(arguments.rounds):
            commits = rng.random() < 0.7
            errors += _round(number, server, resolvers, commits)
            if commits:
                expected.add(number)
        checks.check(not errors, "every statement was answered", "; ".join(errors[:5]))
        for session in resolvers:
            session.close()
        with server.connect("test") as session:
            problems = _compare(session, expected)
            checks.check(not problems, f"{len(expected)} commits and {arguments.rounds - len(expected)} rollbacks are done",
                         "; ".join(problems))
        server.kill()
        server.start()
        with server.connect("test") as session:
            problems = _compare(session, expected)
            checks.check(not problems, "also after a kill and a restart", "; ".join(problems))
            found = engines.check_table(session, arguments.engine, "t")
            checks.check(found == "", "CHECK TABLE is content", found)
            if not checks.failed:
                session.query("DELETE FROM t")  # nothing is locked
        if checks.failed:
            program.show_log(server)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
