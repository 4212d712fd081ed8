#!/usr/bin/env python3
"""How long statements over many rows take at REPEATABLE READ and at READ COMMITTED, beside another engine in the same server.

    make build && scripts/bench-statements.py [--rows 1000000] [--runs 3] [--only UPDATE] [--engines PANDO,InnoDB]

One private server, a table of four columns and a key for each engine, filled alike. Each statement runs alone, so often
for each engine in turn, in a transaction that is then rolled back (the statement alone is timed) or, with `commit`, in
one of its own. The medians are printed in milliseconds, and the first engine's as a multiple of the second's.
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
from sqlkit.server import PrivateServer

_LEVELS = ["REPEATABLE READ", "READ COMMITTED"]


def _statements(rows):
    """Name, statement, and whether it is a transaction of its own. {t} is the engine's table, {s} one for sums."""
    return [
        ("UPDATE ... LIKE '%dd%'", "UPDATE {t} SET n = n + 1 WHERE c LIKE '%dd%'", True),
        ("UPDATE ... LIKE, no row matches", "UPDATE {t} SET n = n + 1 WHERE c LIKE '%no such%'", True),
        ("UPDATE ... n = n + 1", "UPDATE {t} SET n = n + 1", True),
        ("UPDATE ... n = n + 1 of a tenth", f"UPDATE {{t}} SET n = n + 1 WHERE id BETWEEN {rows // 2} AND {rows // 2 + rows // 10}",
         True),
        ("DELETE of a tenth, by the primary key", f"DELETE FROM {{t}} WHERE id BETWEEN {rows // 4} AND {rows // 4 + rows // 10 - 1}",
         False),
        ("DELETE ... LIKE '%dd1%'", "DELETE FROM {t} WHERE c LIKE '%dd1%'", False),
        ("INSERT ... SELECT ... GROUP BY", "INSERT INTO {s} SELECT n MOD 100, COUNT(*) FROM {t} GROUP BY n MOD 100", False),
        ("INSERT ... SELECT k, COUNT(*) ... GROUP BY k", "INSERT INTO {s} SELECT k, COUNT(*) FROM {t} GROUP BY k", False),
        ("SELECT COUNT(*) ... FOR UPDATE", "SELECT COUNT(*) FROM {t} FOR UPDATE", False),
        ("SELECT SUM(n) ... FOR UPDATE", "SELECT SUM(n) FROM {t} FOR UPDATE", False),
    ]


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--engines", default="PANDO,InnoDB")
    parser.add_argument("--levels", default=",".join(_LEVELS))
    parser.add_argument("--only", default="", help="statements whose names have this in them")
    parser.add_argument("--cache-mb", type=int, default=1024)
    return parser.parse_args()


def _fill(session, engine, rows):
    session.query(f"CREATE TABLE t_{engine} (id INT UNSIGNED PRIMARY KEY, n INT NOT NULL, k INT NOT NULL, c VARCHAR(40) NOT NULL, "
                  f"KEY (k)) ENGINE={engine} CHARACTER SET latin1")
    session.query(f"CREATE TABLE s_{engine} (n INT NOT NULL, c BIGINT NOT NULL) ENGINE={engine}")
    session.query(f"INSERT INTO t_{engine} SELECT seq, seq * 7919 MOD 1000003, seq * 31 MOD 1000, MD5(seq) FROM seq_1_to_{rows}")


def _run(session, engine, statement, is_committed):
    session.query("SELECT 1" if is_committed else "BEGIN")
    begun = time.monotonic()
    session.query(statement.format(t=f"t_{engine}", s=f"s_{engine}"))
    took = time.monotonic() - begun
    session.query("SELECT 1" if is_committed else "ROLLBACK")
    time.sleep(0.2)
    return took * 1000


def _table(session, arguments, engines):
    print("| statement | level | " + " | ".join(f"{engine} ms" for engine in engines) + " | ratio |")
    print("| --- | --- |" + " --- |" * (len(engines) + 1), flush=True)
    for level in arguments.levels.split(","):
        session.query(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        for name, statement, is_committed in _statements(arguments.rows):
            if arguments.only not in name:
                continue
            times = {engine: [] for engine in engines}
            for _ in range(arguments.runs):
                for engine in engines:
                    times[engine].append(_run(session, engine, statement, is_committed))
            medians = [statistics.median(times[engine]) for engine in engines]
            ratio = f"{medians[0] / medians[1]:.2f}" if len(medians) > 1 else ""
            cells = [name, level] + [f"{median:,.0f}" for median in medians] + [ratio]
            print("| " + " | ".join(cells) + " |", flush=True)


def main():
    arguments = _arguments()
    engines = arguments.engines.split(",")
    options = [f"--pando-cache-size={arguments.cache_mb}M", f"--innodb-buffer-pool-size={arguments.cache_mb}M",
               "--innodb-log-file-size=1G", "--innodb-flush-log-at-trx-commit=1", "--pando-flush-log-at-trx-commit=1"]
    with PrivateServer("statements", options, plugin=True) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE IF NOT EXISTS test")
        with server.connect("test", timeout=3600) as session:
            for engine in engines:
                _fill(session, engine, arguments.rows)
            time.sleep(5)
            _table(session, arguments, engines)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
