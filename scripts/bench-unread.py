#!/usr/bin/env python3
"""Writes that read nothing, with a cache smaller than the data: a replica's, and REPLACE and DELETE by primary key.

    scripts/bench-unread.py [--part apply,statements] [--rows 1000000] [--changes 60000] [--cache 32] [--repeats 3]

Part `apply`: a table of this many rows with four keys besides its primary key, the same on a source and a replica. The replica stands while the
source inserts, changes and deletes rows at random keys, 20 in a transaction; measured is how long the replica takes to apply them, with one
thread. PANDO with pando_read_free_rpl OFF and PK_SK, and InnoDB.

Part `statements`: a table with a primary key (two numbers), and an index on them the other way round. REPLACE of 50 rows at random keys
in a statement, then DELETE of one row by its key, 100 in a transaction. PANDO without and with pando_blind_replace and
pando_blind_delete_primary_key, and InnoDB.

Tables' files are read past the operating system's cache. The median of the repeats is shown, and each of them.
"""

import argparse
import pathlib
import random
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.member import Member
from sqlkit.server import PrivateServer

_COLUMNS = "id BIGINT PRIMARY KEY, a INT, b BIGINT, c VARCHAR(40), d DATETIME, e INT, KEY (a), KEY (b), KEY (c), KEY (d)"
_TEXT = "SUBSTRING(MD5(n), 1, 1 + n % 30)"
_PIECE = 20000
# A replica without memory may be slow; it is not to be given up.
_PATIENCE_S = 3600


def _direct(engine):
    return ["--pando-direct-io"] if engine == "PANDO" else ["--innodb-flush-method=O_DIRECT"]


def _values(first, count, scatter):
    """A SELECT of rows; keys are spread over the range by a multiplication modulo a prime."""
    return (f"SELECT (n * 2654435761 + {scatter}) % 4294967291, n % 100003, (n * 40503) % 4294967291, {_TEXT}, "
            f"'2020-01-01' + INTERVAL n % 100000000 SECOND, 0 FROM (SELECT seq AS n FROM seq_{first}_to_{first + count - 1}) AS numbers")


def _fill(session, rows):
    session.query("CREATE DATABASE IF NOT EXISTS test")
    session.query("USE test")
    session.query("CREATE TABLE t (" + _COLUMNS + ")")
    for first in range(0, rows, _PIECE):
        session.query("INSERT INTO test.t " + _values(first, min(_PIECE, rows - first), 0))


def _key(n):
    return (n * 2654435761) % 4294967291


def _change(session, rows, changes, seed, kind):
    choose = random.Random(seed)
    for first in range(0, changes, 20):
        session.query("BEGIN")
        for n in range(first, min(first + 20, changes)):
            if kind == "insert":
                session.query(f"INSERT INTO test.t VALUES ({_key(rows + n)}, {choose.randrange(100003)}, {choose.randrange(1 << 32)}, "
                              f"'{choose.randrange(1 << 60):x}', '2024-01-01' + INTERVAL {choose.randrange(10**8)} SECOND, 0)")
            elif kind == "update":
                session.query(f"UPDATE test.t SET e = e + 1, a = {choose.randrange(100003)} WHERE id = {_key(choose.randrange(rows))}")
            else:
                session.query(f"DELETE FROM test.t WHERE id = {_key(n)}")
        session.query("COMMIT")


def _apply(engine, modes, options):
    """Rows a second by mode and kind of change, a list for the repeats."""
    figures = {mode: {} for mode in modes}
    common = ["--sync-binlog=0", "--binlog-format=ROW", "--loose-innodb-stats-auto-recalc=0", f"--default-storage-engine={engine}"]
    with Member("source", 1, engine, common, cache_mb=1024) as source, \
         Member("replica", 2, engine, common + _direct(engine) + ["--slave-parallel-threads=0"], cache_mb=options.cache) as replica:
        source.allow_replicas()
        with source.connect() as session:
            _fill(session, options.rows)
        replica.follow(source)
        seed = 0
        for repeat in range(options.repeats):
            for mode in modes:
                if mode:
                    replica.run(f"SET GLOBAL pando_read_free_rpl={mode}")
                for kind in ("insert", "update", "delete"):
                    replica.wait_for(source.written(), _PATIENCE_S)
                    replica.run("STOP SLAVE SQL_THREAD")
                    seed += 1
                    with source.connect("test") as session:
                        _change(session, options.rows + seed * options.changes, options.changes, seed, kind) if kind == "insert" else \
                            _change(session, options.rows, options.changes, seed, kind)
                    wanted = source.written()
                    while replica.slave_status()["Gtid_IO_Pos"] != wanted:
                        time.sleep(0.1)
                    begin = time.monotonic()
                    replica.run("START SLAVE SQL_THREAD")
                    replica.wait_for(wanted, _PATIENCE_S)
                    figures[mode].setdefault(kind, []).append(options.changes / (time.monotonic() - begin))
                    report.note(f"{engine} {mode} {kind} {repeat}: {figures[mode][kind][-1]:,.0f}")
                with source.connect("test") as session:
                    # What was deleted comes back for the next.
                    for first in range(0, options.changes, _PIECE):
                        session.query("INSERT IGNORE INTO test.t " + _values(first, min(_PIECE, options.changes - first), 0))
        replica.wait_for(source.written(), _PATIENCE_S)
        sums = [member.value("SELECT CONCAT(COUNT(*), ' ', SUM(CRC32(CONCAT_WS(',', id, a, b, c, d, e)))) FROM test.t")
                for member in (source, replica)]
        assert sums[0] == sums[1], f"the replica differs: {sums}"
        with replica.connect() as session:
            told = engines.check_table(session, engine, "test.t")
            assert not told, told
    return figures


def _statements(engine, modes, options):
    figures = {mode: {} for mode in modes}
    with PrivateServer("unread", engines.options(engine, options.cache, 2) + _direct(engine), plugin=engine == "PANDO") as server:
        with server.connect() as session:
            session.query("CREATE DATABASE IF NOT EXISTS test")
            session.query("USE test")
            session.query(f"CREATE TABLE t (a INT, b INT, c INT, d VARCHAR(100), PRIMARY KEY (a, b), KEY (b, a)) ENGINE={engine}")
            for first in range(0, options.rows, _PIECE):
                session.query("INSERT INTO t SELECT (seq * 7919) % 1000003, seq % 10, 0, REPEAT(MD5(seq), 3) "
                              f"FROM seq_{first}_to_{min(first + _PIECE, options.rows) - 1}")
            for repeat in range(options.repeats):
                for mode in modes:
                    if mode:
                        session.query(f"SET SESSION pando_blind_replace={mode}, pando_blind_delete_primary_key={mode}")
                    choose = random.Random(f"{engine}{mode}{repeat}")
                    # A row's key follows from its number.
                    def key(n):
                        return (n * 7919) % 1000003, n % 10
                    begin = time.monotonic()
                    for _ in range(0, options.changes, 50):
                        rows = ",".join("({}, {}, {}, '{}')".format(*key(choose.randrange(options.rows)), repeat, (f"{choose.random()}" * 5)[:90])
                                        for _ in range(50))
                        session.query("REPLACE INTO t VALUES " + rows)
                    figures[mode].setdefault("REPLACE", []).append(options.changes / (time.monotonic() - begin))
                    begin = time.monotonic()
                    for _ in range(0, options.changes, 100):
                        session.query("BEGIN")
                        for _ in range(100):
                            a, b = key(choose.randrange(options.rows))
                            session.query(f"DELETE FROM t WHERE a = {a} AND b = {b}")
                        session.query("COMMIT")
                    figures[mode].setdefault("DELETE", []).append(options.changes / (time.monotonic() - begin))
                    report.note(f"{engine} {mode} {repeat}: " + ", ".join(f"{kind} {values[-1]:,.0f}" for kind, values in figures[mode].items()))
            told = engines.check_table(session, engine, "test.t")
            assert not told, told
    return figures


def _show(title, run, modes, options):
    report.heading(title)
    figures = {"InnoDB": run("InnoDB", [""], options)[""]}
    figures |= {f"PANDO, {mode}": by_kind for mode, by_kind in run("PANDO", modes, options).items()}
    kinds = list(figures["InnoDB"])
    table = report.Table("rows a second", *(cell for kind in kinds for cell in (kind, "of InnoDB's", "runs")))
    for name, by_kind in figures.items():
        cells = []
        for kind in kinds:
            median = statistics.median(by_kind[kind])
            cells += [f"{median:,.0f}", f"{median / statistics.median(figures['InnoDB'][kind]):.2f}",
                      " ".join(f"{value:,.0f}" for value in by_kind[kind])]
        table.add(name, *cells)
    table.print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="apply,statements")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=60_000)
    parser.add_argument("--cache", type=int, default=32, help="MiB")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    parts = options.part.split(",")
    if "apply" in parts:
        _show("A replica applies rows", _apply, ["OFF", "PK_SK"], options)
    if "statements" in parts:
        _show("Statements at random keys", _statements, ["OFF", "ON"], options)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
