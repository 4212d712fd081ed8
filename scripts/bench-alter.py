#!/usr/bin/env python3
"""How long changes of columns take, on a small and on a large table, beside another engine.

    make build && scripts/bench-alter.py [--rows 1000,1000000] [--engines PANDO,InnoDB] [--times 9]

On a private server with durable commits. Each statement runs `--times` times on every table, the tables in
turns; medians are shown. What the other engine cannot do instantly is left out after its first copy.
"""

import argparse
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import program
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_TABLE = ("id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(200) NOT NULL, c DATETIME NOT NULL, d INT NOT NULL, "
          "e TINYINT NOT NULL, KEY a (a), KEY d (d, a)")
# What is measured, and how it is undone.
_CHANGES = [
    ("add a column at the end", "ADD x INT NOT NULL DEFAULT 5", "DROP x"),
    ("add three columns, in front and between", "ADD x TEXT FIRST, ADD y INT DEFAULT 1 AFTER a, "
     "ADD z DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP AFTER id", "DROP x, DROP y, DROP z"),
    ("drop a column", "DROP f", "ADD f INT DEFAULT 6"),
    ("rename a column", "RENAME COLUMN a TO a2", "RENAME COLUMN a2 TO a"),
    ("move a column", "MODIFY b VARCHAR(200) NOT NULL FIRST", "MODIFY b VARCHAR(200) NOT NULL AFTER a"),
    ("TINYINT to BIGINT", "MODIFY e BIGINT NOT NULL", None),
    ("VARCHAR(200) to VARCHAR(300)", "MODIFY b VARCHAR(300) NOT NULL", None),
    ("rename a key", "RENAME KEY d TO d2", "RENAME KEY d2 TO d"),
]


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1000,1000000")
    parser.add_argument("--engines", default="PANDO,InnoDB")
    parser.add_argument("--times", type=int, default=9)
    return parser.parse_args()


def _create(session, name, engine, rows):
    session.query(f"CREATE TABLE {name} ({_TABLE}, f INT DEFAULT 6) ENGINE={engine} CHARACTER SET latin1")
    session.query(f"INSERT INTO {name} SELECT seq, seq MOD 1000, REPEAT(MD5(seq), 3), NOW(), seq * 7 MOD 100003, 1, 2 "
                  f"FROM seq_1_to_{rows}")


def _timed(session, sql):
    begun = time.monotonic()
    session.query(sql)
    return (time.monotonic() - begun) * 1000


def _measure(session, tables, change, times):
    _, do, undo = change
    took = {name: [] for name in tables}
    for turn in range(times if undo else 1):
        for name in tables:
            if took[name] is None:
                continue
            try:
                took[name].append(_timed(session, f"ALTER TABLE {name} {do}, ALGORITHM=INSTANT"))
                if undo:
                    session.query(f"ALTER TABLE {name} {undo}")
            except SqlError:
                if turn == 0:
                    took[name] = None
    return took


def main():
    arguments = _arguments()
    tables = {f"{engine.lower()}_{rows}": (engine, int(rows))
              for engine in arguments.engines.split(",") for rows in arguments.rows.split(",")}
    with PrivateServer("alter", ["--innodb-buffer-pool-size=512M"], plugin=True) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE bench")
        with server.connect("bench", timeout=3600) as session:
            for name, (engine, rows) in tables.items():
                _create(session, name, engine, rows)
            print("| change | " + " | ".join(f"{engine}, {rows:,} rows" for engine, rows in tables.values()) + " |")
            print("| --- |" + " --- |" * len(tables))
            for change in _CHANGES:
                took = _measure(session, tables, change, arguments.times)
                cells = [f"{statistics.median(took[name]):.1f} ms" if took[name] else "copies" for name in tables]
                print(f"| {change[0]} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
