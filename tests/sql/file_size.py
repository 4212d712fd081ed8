#!/usr/bin/env python3
"""A limit on the size of files (RLIMIT_FSIZE, ulimit -f) while the server runs.

    tests/sql/file_size.sh

The system sends SIGXFSZ to whoever writes beyond the limit, which ends a process that does nothing about it. The engine ignores
it, and the write fails.

1. Of a table's file: an error of the statement. When the limit is lifted everything goes on, and after a kill each acknowledged row
   is there.
2. Of the log: the engine is read-only, and the client is told that its change is in doubt. Others see it until the restart. What comes
   later is refused, and nobody sees it.
"""

import argparse
import os
import pathlib
import resource
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_LIMIT_BYTES = 16 << 20
_FEW_ROWS, _MANY_ROWS = 1000, 20000   # of 2 KiB that do not compress: less than the limit, and more


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def _ignores_signal(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("SigIgn:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGXFSZ - 1) & 1)
    return False


def _limit(server, limit):
    resource.prlimit(server.pid(), resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def _content(session):
    return tuple(int(value) for value in session.query("SELECT COUNT(*), COALESCE(SUM(CRC32(v)), 0) FROM t").rows[0])


def _load(session, first, rows):
    session.query("INSERT INTO t SELECT seq, CONCAT(" + ", ".join(f"UNHEX(SHA2(seq * 64 + {i}, 512))" for i in range(32)) +
                  f") FROM seq_{first}_to_{first + rows - 1}")


def _meet_limit(server, checks):
    with server.connect("f", timeout=300) as session, server.connect("f") as other:
        before = _content(session)
        refused = None
        try:
            _load(session, 1 + _FEW_ROWS, _MANY_ROWS)
        except SqlError as error:
            refused = error
        checks.check(refused and "os error 27" in str(refused) + str(session.query("SHOW WARNINGS").rows),
                     f"a load meets the limit: {refused}")
        checks.check(_content(session) == _content(other) == before, "nothing of it is there, others read")
        checks.check(session.query("SHOW GLOBAL STATUS LIKE 'Pando_read_only_latched'").rows[0][1] == b"0", "the log has not failed")


def _fail_log(server, checks):
    with server.connect("f") as session, server.connect("f") as other:
        session.query("CREATE TABLE s (id INT PRIMARY KEY) ENGINE=PANDO")
        session.query("INSERT INTO s VALUES (1)")
        _limit(server, 4096)
        errors = []
        for row in (2, 3):
            try:
                session.query(f"INSERT INTO s VALUES ({row})")
            except SqlError as error:
                errors.append(error)
        _limit(server, resource.RLIM_INFINITY)
        checks.check([error.number for error in errors] == [1180, 1180], "commits are refused", str(errors))
        checks.check(["in doubt" in str(error) for error in errors] == [True, False], "the first is in doubt, the second is not",
                     str(errors))
        ids = [int(row[0]) for row in other.query("SELECT id FROM s ORDER BY id").rows]
        checks.check(ids == [1, 2], "others see what is in doubt, and no more", str(ids))
    server.kill()
    server.start()
    with server.connect("f") as session:
        ids = [int(row[0]) for row in session.query("SELECT id FROM s ORDER BY id").rows]
        checks.check(ids == [1], "after the restart there is what was acknowledged", str(ids))
        session.query("INSERT INTO s VALUES (4)")


def main():
    arguments = _arguments()
    checks = report.Checks()
    plugin = engines.needs_plugin(["PANDO"])
    report.heading("A limit on the size of files")
    with PrivateServer("fsize", engines.options("PANDO", 64) + ["--pando-log-file-size=4M", "--skip-innodb", "--default-storage-engine=PANDO"], plugin=plugin, keep=arguments.keep) as server:
        checks.check(_ignores_signal(server.pid()), "the server ignores SIGXFSZ")
        with server.connect() as session:
            session.query("CREATE DATABASE f")
            session.query("CREATE TABLE f.t (id INT PRIMARY KEY, v BLOB) ENGINE=PANDO")
            session.query("USE f")
            _load(session, 1, _FEW_ROWS)
        _limit(server, _LIMIT_BYTES)
        _meet_limit(server, checks)
        _limit(server, resource.RLIM_INFINITY)
        with server.connect("f", timeout=300) as session:
            _load(session, 1 + _FEW_ROWS, _MANY_ROWS)
            after = _content(session)
            checks.check(after[0] == _FEW_ROWS + _MANY_ROWS, "without the limit it goes on")
        server.kill()
        server.start()
        with server.connect("f", timeout=300) as session:
            checks.check(_content(session) == after, "after a kill all rows are there")
            said = engines.check_table(session, "PANDO", "t")
            checks.check(not said, "CHECK TABLE is content", said)
        _fail_log(server, checks)
        if checks.failed:
            program.show_log(server)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(program.run(main))
