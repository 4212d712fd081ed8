#!/usr/bin/env python3
"""How long LOAD DATA takes of a file into a table that has rows, as each month's file does.

    make build && scripts/bench-monthly.py [--engines PANDO,InnoDB] [--rows 1000000] [--file-rows 500000] [--runs 3]
                                              [--shapes behind,between,ignore,between-ignore,replace]

The table has a primary key and three others, one of two columns and one of a text. `behind`: the file's primary keys follow those of
the table. `between`: each lies between two of the table's. `ignore` and `between-ignore` are the same with IGNORE, which LOCAL implies; `replace` is `behind` with
REPLACE, which PANDO inserts row by row.
Printed: seconds (medians). Each load goes into a copy of the table with so many rows; cache 1 GiB.
"""

import argparse
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import engines, program
from sqlkit.server import PrivateServer

_CACHE_MB = 1024
_COLUMNS = "id BIGINT PRIMARY KEY, a INT, b INT, c VARCHAR(40), d DATETIME, KEY (a), KEY (b, d), KEY (c)"
_ROW = "(seq * 7919) % 1000003, (seq * 104729) % 99991, MD5(seq), '2020-01-01' + INTERVAL seq SECOND"
_BEHIND, _BETWEEN = "2 * {rows} + seq", "2 * seq + 1"
_SHAPES = {"behind": (_BEHIND, ""), "between": (_BETWEEN, ""), "ignore": (_BEHIND, "IGNORE"), "between-ignore": (_BETWEEN, "IGNORE"),
           "replace": (_BEHIND, "REPLACE")}


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="PANDO,InnoDB")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--file-rows", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shapes", default=",".join(_SHAPES))
    return parser.parse_args()


def _load(session, engine, shape, file, arguments):
    """Seconds of one load."""
    session.query("DROP TABLE IF EXISTS t")
    session.query(f"CREATE TABLE t ({_COLUMNS}) ENGINE={engine}")
    session.query(f"INSERT INTO t SELECT 2 * seq, {_ROW} FROM seq_1_to_{arguments.rows}")
    begun = time.monotonic()
    session.query(f"LOAD DATA INFILE '{file}' {_SHAPES[shape][1]} INTO TABLE t")
    seconds = time.monotonic() - begun
    counts = {session.number(f"SELECT COUNT(*) FROM t FORCE INDEX ({index})") for index in ("PRIMARY", "a", "c")}
    if counts != {arguments.rows + arguments.file_rows}:
        raise SystemExit(f"{engine}, {shape}: {sorted(counts)} rows")
    return seconds


def main():
    arguments = _arguments()
    print("| shape | engine | seconds | rows a second |")
    print("| --- | --- | --- | --- |")
    for shape in arguments.shapes.split(","):
        key = _SHAPES[shape][0]
        for engine in arguments.engines.split(","):
            options = engines.options(engine, _CACHE_MB)
            with PrivateServer("monthly", options, plugin=engines.needs_plugin([engine])) as server:
                with server.connect(timeout=3600) as session:
                    session.query("CREATE DATABASE monthly")
                    session.query("USE monthly")
                    file = server.dir / "file.txt"
                    session.query(f"SELECT {key.format(rows=arguments.rows)}, {_ROW} FROM seq_1_to_{arguments.file_rows} "
                                  f"INTO OUTFILE '{file}'")
                    seconds = statistics.median(_load(session, engine, shape, file, arguments) for _ in range(arguments.runs))
            print(f"| {shape} | {engine} | {seconds:.1f} | {arguments.file_rows / seconds:,.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
