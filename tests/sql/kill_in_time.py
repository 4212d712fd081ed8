#!/usr/bin/env python3
"""KILL QUERY and max_statement_time end a statement soon, whatever it is doing.

    tests/sql/kill_in_time.sh [--engine PANDO] [--rows 40000] [--seconds-max 20] [--only NAME]

Each long statement is begun, left alone for a while, and killed; how long it goes on is measured, at several moments of its life. Then
it is given a limit of time. It has to end soon, with the error that says so, and the table must be as before and work. How soon is
told; the test's limit is generous, because other programs may have the processors.
"""

import argparse
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_INTERRUPTED, _TIME_EXCEEDED = 1317, 1969
# Of a killed ALTER, and of CHECK and its like, whose answer is a row, the text says it.
_SAYS_SO = ("Operation failed", "interrupted", "exceeded", "Killed", "killed", "aborted")
_BEFORE = ("DROP TABLE IF EXISTS target", "CREATE TABLE target LIKE t", "ROLLBACK")
_WAIT_SECONDS_MAX = 60

_STATEMENTS = {
    "pushed sum": "SELECT SUM(a * b), COUNT(*) FROM t JOIN (SELECT 1 UNION SELECT 2) AS x WHERE a % 7 <> 8",
    "pushed groups": "SELECT id, COUNT(*), SUM(b), MIN(c) FROM t GROUP BY id, c HAVING COUNT(*) > 1",
    "pushed groups of text": "SELECT c, COUNT(*), SUM(b), COUNT(DISTINCT a) FROM t GROUP BY c ORDER BY 2 LIMIT 3",
    "pushed case": "SELECT SUM(CASE " + " ".join(f"WHEN a = {i} THEN {i}" for i in range(300)) + " END) FROM t",
    "scan with a condition": "SELECT COUNT(*) FROM t WHERE c LIKE '%zz%zz%' AND d LIKE '%y%y%y%y%z%'",
    "sort": "SELECT id, c FROM t ORDER BY d, c, a LIMIT 190000, 1",
    "join": "SELECT COUNT(*) FROM t JOIN t AS u ON t.a = u.a AND t.b < u.b",
    "index scan": "SELECT COUNT(d) FROM t FORCE INDEX (by_c) WHERE c > ''",
    "locking scan": "SELECT COUNT(*) FROM t WHERE d LIKE '%zz%' FOR UPDATE",
    "update": "UPDATE t SET b = b + 1",
    "update of a key": "UPDATE t SET c = CONCAT(c, 'x')",
    "delete": "DELETE FROM t",
    "insert select": "INSERT INTO target SELECT * FROM t",
    "replace select": "REPLACE INTO target SELECT * FROM t",
    "create select": "CREATE TABLE made ENGINE={engine} SELECT id, c, d FROM t",
    "load": "LOAD DATA INFILE '{file}' INTO TABLE target",
    "check": "CHECK TABLE t EXTENDED",
    "checksum": "CHECKSUM TABLE t EXTENDED",
    "analyze": "ANALYZE TABLE t PERSISTENT FOR ALL",
    "optimize": "OPTIMIZE TABLE t",
    "add index": "ALTER TABLE t ADD KEY later (d, a)",
    "add unique": "ALTER TABLE t ADD UNIQUE KEY later (d, id)",
    "copy": "ALTER TABLE t FORCE, ALGORITHM=COPY",
}


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--rows", type=int, default=40000)
    parser.add_argument("--seconds-max", type=float, default=20.0)
    parser.add_argument("--only", action="append", help="only this statement, may be given several times")
    return parser.parse_args()


def _run(session, statement):
    """(how it ended, when)."""
    try:
        rows = session.query(statement).rows
        text = " ".join((cell or b"").decode("utf-8", "replace") for row in rows[:3] for cell in row)
        ended = "killed" if any(word in text for word in _SAYS_SO) else "done"
    except SqlError as error:
        ended = "killed" if error.number in (_INTERRUPTED, _TIME_EXCEEDED) or any(w in error.message for w in _SAYS_SO) else str(error)
    return ended, time.monotonic()


class Trial:
    """One statement, killed at several moments."""

    def __init__(self, server, arguments, name):
        self.server, self.arguments, self.name = server, arguments, name
        self.statement = _STATEMENTS[name].format(engine=arguments.engine, file=server.dir / "tmp" / "rows.txt")

    def _prepare(self, session):
        for statement in _BEFORE:
            session.query(statement)
        session.query("DROP TABLE IF EXISTS made")
        session.query("ALTER TABLE t DROP KEY IF EXISTS later")

    def killed_after(self, seconds):
        """(how it ended, seconds it went on after the KILL)."""
        with self.server.connect("test", timeout=_WAIT_SECONDS_MAX * 3) as session, self.server.connect() as killer:
            self._prepare(session)
            session.query("BEGIN")
            found = []
            thread = threading.Thread(target=lambda: found.append(_run(session, self.statement)))
            begin = time.monotonic()
            thread.start()
            thread.join(seconds)
            killed = time.monotonic()
            killer.query(f"KILL QUERY {session.thread_id}")
            thread.join(_WAIT_SECONDS_MAX)
            if not found:
                return "hangs", _WAIT_SECONDS_MAX, seconds
            ended, when = found[0]
            session.query("ROLLBACK")
            return ended, max(0.0, when - killed), when - begin

    def limited_to(self, seconds):
        """The same with a limit of time."""
        with self.server.connect("test", timeout=_WAIT_SECONDS_MAX * 3) as session:
            self._prepare(session)
            session.query("BEGIN")
            begin = time.monotonic()
            ended, when = _run(session, f"SET STATEMENT max_statement_time = {seconds} FOR {self.statement}")
            session.query("ROLLBACK")
            return ended, max(0.0, when - begin - seconds), when - begin


def _fill(session, arguments, server):
    session.query("CREATE DATABASE IF NOT EXISTS test")
    session.query("USE test")
    session.query(f"CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(100), d VARCHAR(200), KEY by_a (a), KEY by_c (c)) "
                  f"ENGINE={arguments.engine}")
    session.query("INSERT INTO t SELECT seq, seq % 1000, seq % 7919, CONCAT('text ', seq * 7919 % 100003), REPEAT(CHAR(97 + seq % 26), 40 + seq % 100) "
                  f"FROM seq_1_to_{arguments.rows}")
    session.query(f"SELECT * INTO OUTFILE '{server.dir / 'tmp' / 'rows.txt'}' FROM t")


def _state(session, rows):
    found = session.query("SELECT COUNT(*), SUM(a), SUM(b), SUM(CRC32(c)) FROM t").rows[0]
    return found if int(found[0]) == rows else f"{found[0]} rows"


def main():
    """Runs it."""
    arguments = _arguments()
    checks, table = report.Checks(), report.Table("statement", "ms after KILL", "worst", "ms over the limit", "")
    options = engines.options(arguments.engine, 128, 0) + ["--innodb-flush-method=nosync"]
    with PrivateServer("kill", options, plugin=engines.needs_plugin([arguments.engine])) as server:
        with server.connect() as session:
            _fill(session, arguments, server)
            before = _state(session, arguments.rows)
            for name in _STATEMENTS:
                if arguments.only and name not in arguments.only:
                    continue
                trial, late, ended = Trial(server, arguments, name), [], []
                for seconds in (0.02, 0.15, 0.5):
                    how, after, whole = trial.killed_after(seconds)
                    if how == "done" and whole < seconds + 0.05:
                        continue  # it was too quick to be killed
                    ended.append(how)
                    late.append(after)
                how, over, _ = trial.limited_to(0.1)
                ended.append(how)
                table.add(name, f"{1000 * sum(late) / max(1, len(late)):.0f}", f"{1000 * max(late or [0]):.0f}", f"{1000 * over:.0f}",
                          "" if set(ended) <= {"killed"} else f"{ended}")
                checks.check(max(late + [over]) < arguments.seconds_max and not set(ended) - {"killed", "done"}, f"{name} ends when it is killed",
                             f"{ended}, {[round(seconds, 3) for seconds in late]} s after KILL, {over:.3f} s over its limit")
            checks.check(before == _state(session, arguments.rows), "the rows are as before")
            checks.check(engines.check_table(session, arguments.engine, "t") == "", "CHECK TABLE has nothing to say")
    table.print()
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
