#!/usr/bin/env python3
"""More tables' files than the process may open: the engine's files share the descriptors that pando_open_files allows.

    tests/sql/open_files.sh [--partitions 1500] [--tables 200] [--limit 700]

1. With a limit of 700 open files, a table of 1,500 partitions with a key (3,000 files) is made, filled, changed, read, checked,
   renamed and dropped, with the server killed and restarted in between. Meanwhile others connect, and no more descriptors are held
   than allowed.
2. Many tables with three keys each, and random statements over all of them. With --tables 20000 that takes a while: time of the
   start, memory and descriptors are printed.
3. Without any descriptor to be had a statement is refused for that reason, not for another; tables and their .frm stay as they are,
   and when descriptors are there again, all goes on.
"""

import argparse
import os
import pathlib
import random
import re
import resource
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer
from sqlkit.watched import Watched

_CONNECTIONS = 20


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1500)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--limit", type=int, default=700, help="open files that the server may have")
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def _one(session, sql):
    return tuple(int(value) for value in session.query(sql).rows[0])


def _connections_work(server):
    sessions = [server.connect() for _ in range(_CONNECTIONS)]
    answers = [_one(session, "SELECT 1") for session in sessions]
    for session in sessions:
        session.close()
    return answers == [(1,)] * _CONNECTIONS


def _partitions(server, arguments, checks):
    parts, watched = arguments.partitions, Watched(server)
    allowed = arguments.limit // 3 + 8   # the catalog's and the log's files come on top
    with server.connect(timeout=300) as session:
        session.query("CREATE DATABASE many")
        session.query("USE many")
        session.query("CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY (v)) ENGINE=PANDO "
                      f"PARTITION BY HASH (id) PARTITIONS {parts}")
        session.query(f"INSERT INTO t SELECT seq, seq % 100 FROM seq_1_to_{2 * parts}")
        watched.descriptors()
        session.query("UPDATE t SET v = v + 1000 WHERE id % 7 = 0")
        watched.descriptors()
        checks.check(_connections_work(server), f"{_CONNECTIONS} others connect beside {parts} partitions in use")
        expected = _one(session, "SELECT COUNT(*), SUM(v), COUNT(DISTINCT v) FROM t USE INDEX ()")
        by_key = _one(session, "SELECT COUNT(*), SUM(v), COUNT(DISTINCT v) FROM t FORCE INDEX (v) WHERE v >= 0")
        checks.check(expected == by_key and expected[0] == 2 * parts, "rows and key agree", f"{expected} {by_key}")
        watched.descriptors()
        checks.check(0 < watched.most <= allowed, f"{watched.most} descriptors of {allowed} are held at most", str(watched.most))
    server.kill()
    server.start()
    with server.connect("many", timeout=300) as session:
        found = _one(session, "SELECT COUNT(*), SUM(v), COUNT(DISTINCT v) FROM t")
        checks.check(found == expected, "after a kill all rows are there", f"{found} and not {expected}")
        session.query("DELETE FROM t WHERE id % 2 = 0")
        said = engines.check_table(session, "PANDO", "t")
        checks.check(not said, "CHECK TABLE is content", said)
        checks.check(watched.value(session, "Pando_files_reopened") > 0, "files were closed, and opened again")
        watched.descriptors()
        session.query("RENAME TABLE t TO u")
        found = _one(session, "SELECT COUNT(*) FROM u")
        checks.check(found == (parts,), "after a rename the rows are there", str(found))
        watched.descriptors()
        checks.check(watched.most <= allowed, f"recovery and CHECK TABLE hold no more ({watched.most})", str(watched.most))
    server.stop()
    server.start()
    with server.connect("many", timeout=300) as session:
        session.query("DROP TABLE u")
        checks.check(not engines.table_files(server.data_dir, "many", "u"), "it is dropped, with its files")
        checks.check(_connections_work(server), "others connect")


def _tables(server, arguments, checks):
    count, watched, rng = arguments.tables, Watched(server), random.Random(1)
    allowed = arguments.limit // 3 + 8
    sums = {}
    with server.connect("many", timeout=300) as session:
        begin = time.monotonic()
        for number in range(count):
            session.query(f"CREATE TABLE t{number} (id INT PRIMARY KEY, a INT, b INT, c INT, KEY (a), KEY (b), KEY (c)) "
                          "ENGINE=PANDO")
            session.query(f"INSERT INTO t{number} VALUES (1, {number}, {number} * 2, 3)")
            sums[number] = number
            if number % 50 == 0:
                watched.descriptors()
        made = time.monotonic() - begin
        _wander(session, rng, sums, count, watched)
        memory = watched.memory()
        checks.check(watched.most <= allowed, f"{count} tables: {watched.most} descriptors at most; made in {made:.0f} s, "
                     f"{memory} MiB resident", str(watched.most))
    server.kill()
    begin = time.monotonic()
    server.start()
    recovered = time.monotonic() - begin
    with server.connect("many", timeout=300) as session:
        wrong = [number for number in sums
                 if _one(session, f"SELECT SUM(a) FROM t{number}") != (sums[number],) or
                 _one(session, f"SELECT SUM(a) FROM t{number} FORCE INDEX (a) WHERE a > -1000000") != (sums[number],)]
        checks.check(not wrong, f"after a kill (start of {recovered:.1f} s) every table has its rows", f"wrong: {wrong[:10]}")
        watched.descriptors()
        checks.check(watched.most <= allowed, f"{watched.most} descriptors at most, {watched.memory()} MiB resident",
                     str(watched.most))
    server.stop()
    begin = time.monotonic()
    server.start()
    report.note(f"a start with {count} tables after a clean stop: {time.monotonic() - begin:.1f} s")
    with server.connect("many", timeout=300) as session:
        session.query("DROP DATABASE many")
        checks.check(_connections_work(server), "others connect")


def _wander(session, rng, sums, count, watched):
    """Random statements over all tables."""
    for step in range(min(4 * count, 4000)):
        number = rng.randrange(count)
        kind = rng.randrange(4)
        if kind == 0:
            row = rng.randrange(2, 1000000)
            session.query(f"INSERT IGNORE INTO t{number} VALUES ({row}, 5, {row}, {row % 7})")
            sums[number] = _one(session, f"SELECT SUM(a) FROM t{number}")[0]
        elif kind == 1:
            session.query(f"UPDATE t{number} SET b = b + 1 WHERE id = 1")
        elif kind == 2:
            session.query(f"SELECT * FROM t{number} FORCE INDEX (b) WHERE b > 0")
        else:
            found = _one(session, f"SELECT SUM(a) FROM t{number}")
            assert found == (sums[number],), f"t{number}: {found} and not {sums[number]}"
        if step % 50 == 0:
            watched.descriptors()


_TABLES_OF_SHORTAGE = {"plain": "", "parts": " PARTITION BY HASH (id) PARTITIONS 3"}
# The server opens each table's .frm anew for each of them.
_IN_SHORTAGE = ["SELECT COUNT(*), SUM(v) FROM {}", "ALTER TABLE {} ADD COLUMN w INT, ALGORITHM=INSTANT",
                "ALTER TABLE {} ADD KEY v (v), ALGORITHM=INPLACE", "UPDATE {} SET v = v"]


def _refusal(session, sql):
    """The error's text; of a success the SQL."""
    try:
        session.query(sql)
    except SqlError as error:
        return f"{error} " + "; ".join(row[2].decode() for row in session.query("SHOW WARNINGS").rows)
    return f"done: {sql}"


def _no_descriptor(server, checks):
    with server.connect(timeout=300) as session:
        session.query("CREATE DATABASE short")
        session.query("USE short")
        for name, partitions in _TABLES_OF_SHORTAGE.items():
            session.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT) ENGINE=PANDO{partitions}")
            session.query(f"INSERT INTO {name} SELECT seq, seq FROM seq_1_to_1000")
        files = {path: path.read_bytes() for path in (server.data_dir / "short").glob("*.frm")}
        limits = resource.prlimit(server.pid(), resource.RLIMIT_NOFILE)
        wrong, refused, done = [], 0, set()
        for name in _TABLES_OF_SHORTAGE:
            for sql in _IN_SHORTAGE:
                session.query("FLUSH TABLES")
                resource.prlimit(server.pid(), resource.RLIMIT_NOFILE, (3, limits[1]))
                said = _refusal(session, sql.format(name))
                resource.prlimit(server.pid(), resource.RLIMIT_NOFILE, limits)
                if said.startswith("done"):
                    done.add(sql.format(name))   # the server had one of its own to give up
                    continue
                refused += 1
                if not re.search(r"\b24\b|too many open files|from the .par file", said, re.I):
                    wrong.append(f"{sql.format(name)}: {said}")
        checks.check(refused and not wrong, f"without descriptors statements say what is wanting ({refused} refused)", "; ".join(wrong))
        untouched = [path for path in files if not any(f"ALTER TABLE {path.stem} " in sql for sql in done)]
        checks.check(len(files) == 2 and all(path.exists() for path in files) and
                     all(path.read_bytes() == files[path] for path in untouched), "no .frm was touched")
        found = [_one(session, f"SELECT COUNT(*), SUM(v) FROM {name}") for name in _TABLES_OF_SHORTAGE]
        checks.check(found == [(1000, 500500)] * 2, "afterwards the rows are there", str(found))
        for name in _TABLES_OF_SHORTAGE:
            for sql in _IN_SHORTAGE:
                if sql.format(name) not in done:
                    session.query(sql.format(name))
        session.query("DROP DATABASE short")


def main():
    arguments = _arguments()
    checks = report.Checks()
    plugin = engines.needs_plugin(["PANDO"])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and arguments.limit > hard:
        report.note(f"the limit of open files is {hard} here")
    options = engines.options("PANDO", 64) + ["--max-connections=60", f"--open-files-limit={arguments.limit}"]
    resource.setrlimit(resource.RLIMIT_NOFILE, (arguments.limit, arguments.limit))
    report.heading(f"{arguments.partitions} partitions and {arguments.tables} tables with {arguments.limit} open files "
                   f"(here {soft} are usual)")
    with PrivateServer("files", options, plugin=plugin, keep=arguments.keep) as server:
        _partitions(server, arguments, checks)
        _tables(server, arguments, checks)
        _no_descriptor(server, checks)
        if checks.failed:
            program.show_log(server)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(program.run(main))
