#!/usr/bin/env python3
"""The star schema benchmark's 13 queries and TPC-H's 22, with the engine answering, without, and of InnoDB: equal answers.

    tests/sql/pushdown_suites.sh [--rows 4000] [--seed 1]

The tables are small and random (`pushdown/star.py`, `pushdown/tpch.py`). Some queries are asked in the words of the
benchmark, whose derived tables the server merges; answers are compared byte for byte, and it is told which of them the
engine answered.
"""

import argparse
import pathlib
import random as randoms
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from pushdown import star, tpch
from sqlkit import engines, program, report
from sqlkit.server import PrivateServer

# Queries that the engine answers at least, so that the comparison says something.
_ANSWERED_MIN = {"star": 12, "tpch": 20}


def _fill(session, suite, database, engine, made):
    session.query(f"CREATE DATABASE {database}")
    session.query(f"USE {database}")
    for table, columns in suite.TABLES.items():
        session.query(f"CREATE TABLE {table} ({columns}) ENGINE={engine}")
        for begin in range(0, len(made[table]), 500):
            session.query(f"INSERT INTO {table} VALUES " + ", ".join(made[table][begin:begin + 500]))
        session.query(f"ANALYZE TABLE {table}")


def _pushed(session):
    return int(session.query("SHOW GLOBAL STATUS LIKE 'Pando_queries_pushed'").rows[0][1])


def _answer(session, database, statement, pushdown):
    session.query(f"USE {database}")
    session.query(f"SET pando_pushdown = {pushdown}")
    before = _pushed(session)
    result = session.query(statement)
    rows = [tuple(row) for row in result.rows]
    return (tuple(result.columns), rows, result.warnings), _pushed(session) > before


def _compare(session, checks, name, suite, made):
    for engine in ("PANDO", "InnoDB"):
        _fill(session, suite, f"{name}_{engine.lower()}", engine, made)
    answered = []
    for query, statement in suite.QUERIES.items():
        on, was_answered = _answer(session, f"{name}_pando", statement, "ON")
        off, _ = _answer(session, f"{name}_pando", statement, "OFF")
        innodb, _ = _answer(session, f"{name}_innodb", statement, "OFF")
        if was_answered:
            answered.append(query)
        checks.check(on == off, f"{name} {query}: {len(on[1])} rows, ON as OFF", f"{on}\n  instead of {off}")
        checks.check(on == innodb, f"{name} {query}: as InnoDB", f"{on}\n  instead of {innodb}")
    checks.check(len(answered) >= _ANSWERED_MIN[name], f"{name}: the engine answered {', '.join(answered)}")


def main():
    """Runs it all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4000, help="of the largest table")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    checks = report.Checks()
    plugin = engines.needs_plugin(["PANDO"])
    with PrivateServer("suites", engines.options("PANDO", 64), plugin=plugin) as server:
        with server.connect() as session:
            for name, suite in (("star", star), ("tpch", tpch)):
                report.heading(f"{name}, {arguments.rows} rows, seed {arguments.seed}")
                _compare(session, checks, name, suite, suite.rows(randoms.Random(arguments.seed), arguments.rows))
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
