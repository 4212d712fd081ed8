#!/usr/bin/env python3
"""Queries of applications: with pando_pushdown, without, and of InnoDB's tables in the same server.

    scripts/bench-applications.py [--schemas events,blog,sensors,pages] [--runs 3] [--cache-mb 2048]

The schemas and their queries are in scripts/applications: users, their events and subscriptions (100,000, 2,000,000 and 150,000 rows); and a blog with a
shop in WordPress's tables (100,000 posts with 1,000,000 values by key); readings of sensors (2,500,000 in partitions by month, with DOUBLEs), alarms and
bills; pages of newest entries with their authors (300,000). Loading takes about three minutes. Each query is asked in turns, the medians of its
times are shown, in milliseconds, and who answered it with pando_pushdown=ON. What is slower than both others by more than a third is marked; answers of ON and OFF
that are not the same rows end with status 1 (but for queries whose LIMIT cuts rows that are equal: these are told). The last digits of sums of
DOUBLEs are open.
"""

import argparse
import pathlib
import re
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import engines, program
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_DIRECTORY = ROOT / "scripts" / "applications"
_SECONDS_MAX = 60
_SLOWER = 4 / 3
_MILLISECONDS_SEEN = 20


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", default="events,blog,sensors,pages")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cache-mb", type=int, default=2048)
    return parser.parse_args()


def _statements(name):
    text = (_DIRECTORY / name).read_text(encoding="utf-8")
    return [part.strip() for part in re.sub(r"^--.*\n", "", text).split(";\n") if part.strip()]


def _load(session, schema):
    for engine in ("PANDO", "InnoDB"):
        database = f"{schema}_{engine.lower()}"
        session.query(f"CREATE DATABASE {database}")
        session.query(f"USE {database}")
        session.query(f"SET default_storage_engine = {engine}")
        for statement in _statements(f"{schema}.sql"):
            session.query(statement)
        tables = [row[0].decode() for row in session.query("SHOW TABLES").rows]
        session.query(f"ANALYZE TABLE {', '.join(tables)}")
        print(f"{schema}: {len(tables)} tables of {engine} are there", flush=True)


def _cell(value):
    """The last digits of sums of DOUBLEs are open."""
    return f"{float(value):.11g}" if value and re.fullmatch(rb"-?\d+\.\d{8,}(e-?\d+)?", value) else value


def _ask(session, way, schema, statement):
    session.query(f"USE {schema}_{'innodb' if way == 'InnoDB' else 'pando'}")
    session.query(f"SET pando_pushdown = {'OFF' if way == 'OFF' else 'ON'}")
    begin = time.monotonic()
    try:
        rows = sorted(repr(tuple(map(_cell, row))) for row in session.query(statement).rows)
    except SqlError as error:
        rows = [f"error {error.number}"]
    return (time.monotonic() - begin) * 1000, rows


def _pushed(session):
    return int(session.query("SHOW STATUS LIKE 'Pando_queries_pushed'").rows[0][1])


def _compare(session, schema, runs):
    """Whether all answers are the same."""
    is_same, totals = True, dict.fromkeys(("ON", "OFF", "InnoDB"), 0)
    print(f"{'engine':>9} {'without':>9} {'InnoDB':>9}  by      query ({schema}; milliseconds)")
    for statement in _statements(f"{schema}.queries.sql"):
        times, answers = {way: [] for way in totals}, {}
        before = _pushed(session)
        for _ in range(runs):
            for way, of_way in times.items():
                took, answers[way] = _ask(session, way, schema, statement)
                of_way.append(took)
        by = "engine" if _pushed(session) > before else "server"
        medians = {way: statistics.median(of_way) for way, of_way in times.items()}
        for way, median in medians.items():
            totals[way] += median
        on = medians["ON"]
        mark = " <" if on > _MILLISECONDS_SEEN and on > _SLOWER * min(medians["OFF"], medians["InnoDB"]) else ""
        if answers["ON"] != answers["OFF"]:
            mark += " DIFFERS"
            is_same &= "LIMIT" in statement
        print(f"{on:9.1f} {medians['OFF']:9.1f} {medians['InnoDB']:9.1f}  {by}{mark}  {statement[:110]}", flush=True)
    print(f"{totals['ON']:9.0f} {totals['OFF']:9.0f} {totals['InnoDB']:9.0f}  all of {schema}")
    return is_same


def main():
    """Runs it all."""
    arguments = _arguments()
    options = engines.options("PANDO", arguments.cache_mb) + engines.options("InnoDB", arguments.cache_mb)
    is_same = True
    with PrivateServer("applications", options, plugin=engines.needs_plugin(["PANDO"])) as server:
        with server.connect() as session:
            for schema in arguments.schemas.split(","):
                _load(session, schema)
            session.query(f"SET max_statement_time = {_SECONDS_MAX}")
            for schema in arguments.schemas.split(","):
                is_same &= _compare(session, schema, arguments.runs)
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(program.run(main))
