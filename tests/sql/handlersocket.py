#!/usr/bin/env python3
"""Rows read and written through the plugin HandlerSocket, which calls the engine's handler without SQL.

    tests/sql/handlersocket.sh [--engine PANDO]

The same requests go to a table of the engine and to one of InnoDB: answers and rows must be equal. (No test of the
server's driver, because the plugin leaves memory behind at shutdown, whatever the engine.)
"""

import argparse
import pathlib
import socket
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from sqlkit import engines, handlersocket, program, report
from sqlkit.server import PrivateServer

OPEN = [["P", 1, "test", "t", "PRIMARY", "id,a,b"], ["P", 2, "test", "t", "a", "id,a,b"]]
READS = [
    [1, "=", 1, 2], [1, "=", 1, 9], [1, ">=", 1, 2, 10, 0], [1, ">", 1, 2, 1, 1], [1, "<=", 1, 3, 2, 0],
    [1, "<", 1, 3, 5, 0], [1, ">", 1, 99, 5, 0], [1, "<", 1, 1, 5, 0],
    [2, "=", 1, 10, 5, 0], [2, "=", 1, 10, 1, 1], [2, ">", 1, 10, 5, 0], [2, "<", 1, 20, 5, 0], [2, ">=", 1, 11, 1, 0],
    [2, "<=", 1, 15, 9, 0],
]
WRITES = [
    [1, "+", 3, 5, 50, "five"], [1, "+", 3, 5, 50, "again"], [1, "+", 3, 6, 10, "six"],
    [1, "=", 1, 1, 1, 0, "U", 1, 11, "ONE"], [1, "=", 1, 3, 1, 0, "D"], [1, "=", 1, 77, 1, 0, "D"],
    [2, "=", 1, 20, 10, 0, "D"], [1, ">=", 1, 5, 10, 0, "U", 5, 51, "FIVE"],
]


def talk(path, requests):
    """The answers to these requests over one connection."""
    answers = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(300)
        connection.connect(path)
        with connection.makefile("rwb") as stream:
            for request in OPEN + requests:
                stream.write("\t".join(str(part) for part in request).encode() + b"\n")
                stream.flush()
                answers.append((request, stream.readline().rstrip(b"\n")))
    return answers


def run(engine):
    """All answers and the rows afterwards."""
    with PrivateServer("handlersocket", engines.options(engine, 32), plugin=True, start=False) as server:
        reading, writing = f"{server.data_dir}/hs.sock", f"{server.data_dir}/hsw.sock"
        server.start(engines.options(engine, 32) + [
            "--plugin-load-add=handlersocket.so", "--open-files-limit=20000", "--handlersocket-address=/",
            f"--handlersocket-port={reading}", f"--handlersocket-port-wr={writing}", "--handlersocket-threads=2",
            "--handlersocket-threads-wr=1"])
        with server.connect() as session:
            session.query("CREATE DATABASE IF NOT EXISTS test")
            session.query("CREATE TABLE test.t (id INT PRIMARY KEY, a INT, b VARCHAR(10), KEY a (a)) "
                          f"ENGINE={engine}")
            session.query("INSERT INTO test.t VALUES (1, 10, 'one'), (2, 10, 'two'), (3, 20, 'three'), (4, 30, NULL)")
            answers = talk(reading, READS) + talk(writing, WRITES) + talk(reading, READS)
            rows = [session.query(f"SELECT * FROM test.t FORCE INDEX ({key}) ORDER BY {order}").rows
                    for key, order in (("PRIMARY", "id"), ("a", "a, id"))]
            damage = engines.check_table(session, engine, "test.t")
            kept = client_keeps(session, engine, reading, writing)
            session.query("ALTER TABLE test.t ADD c INT")
            session.query("DROP TABLE test.t")
        return answers, rows, damage, kept


def client_keeps(session, engine, reading, writing):
    """Whether scripts/sqlkit/handlersocket.py gets what it put, whatever the bytes, over two tables as over two servers."""
    for name in ("one", "two"):
        session.query(f"CREATE TABLE test.{name} (k VARBINARY(20) PRIMARY KEY, v BLOB) ENGINE={engine}")
    tables = {name: handlersocket.Table("", reading, writing, "test", name) for name in ("one", "two")}
    spread = handlersocket.Spread(tables)
    values = {bytes([first, 0, first]): bytes(range(256)) * (first + 1) for first in range(40)} | {b"nothing": None, b"empty": b""}
    there = [spread.put(key, value) for key, value in values.items()]
    kept = not any(there) and all(spread.get(key) == [key, value] for key, value in values.items())
    kept &= spread.put(b"empty", b"no more") and spread.get(b"empty") == [b"empty", b"no more"]
    kept &= spread.delete(b"empty") and not spread.delete(b"empty") and spread.get(b"empty") is None
    parts = [session.number(f"SELECT COUNT(*) FROM test.{name}") for name in tables]
    # A thread of the plugin keeps its tables while any of its clients is connected.
    for table in tables.values():
        table.__exit__()
    session.query("DROP TABLE test.one, test.two")
    return kept and min(parts) > 5 and sum(parts) == 41


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="PANDO")
    engine = parser.parse_args().engine
    report.heading(f"HandlerSocket: {engine}")
    if not any(pathlib.Path("/usr/lib").glob("**/plugin/handlersocket.so")):
        report.note("skipped: the server has no plugin handlersocket")
        return 0
    checks = report.Checks()
    answers, rows, damage, kept = run(engine)
    expected, expected_rows, _, _ = run("InnoDB")
    checks.check(kept, "the Python client gets what it put, spread over two tables")
    checks.check(not damage, "the table is whole", damage)
    for (request, answer), (_, wanted) in zip(answers, expected):
        if answer != wanted:
            checks.check(False, f"{request}", f"{answer} instead of {wanted}")
    checks.check(answers == expected, f"{len(answers)} requests are answered as by InnoDB")
    checks.check(rows == expected_rows, "the rows are the same", f"{rows} instead of {expected_rows}")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
