#!/usr/bin/env python3
"""kill -9 while prepared transactions that nobody resolves are logged anew.

    tests/sql/forgotten_prepares.sh [--rounds 3] [--seed N]

Two transactions are prepared and forgotten by their connections: a small one, and one that has spilled its rows into the table's files.
Others write until so much log is kept for the two that the engine logs them anew. The server dies at a random write or sync of
its log about then, and again at one soon after the beginning of its next start, where they are logged anew at once if they were
not before. Each time both are prepared and locked. In the end one is committed and one rolled back; a kill and a restart later
the rows of the one are there, those of the other are not, the tables' keys agree, and the log is not kept for anybody.
"""

import argparse
import pathlib
import random
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import PrivateServer, ServerFailed
from two_phase.killer import Killer

_LOCK_WAIT = 1205
_DUE_BYTES = 128 << 20  # a quarter of what the log may be
_LARGE_ROWS = 20_000
_WAIT_SECONDS = 300


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    program.add_seed(parser)
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def _status(session, name):
    return session.query(f"SHOW GLOBAL STATUS LIKE 'Pando_{name}'").rows[0][1]


def _prepare(server, number, statement):
    """Leaves a prepared transaction behind."""
    with server.connect("test") as session:
        for sql in (f"XA START 'x{number}'", statement, f"XA END 'x{number}'", f"XA PREPARE 'x{number}'"):
            session.query(sql)


def _write(session):
    """Some 4 MB of log: the row is another one each time."""
    session.query("INSERT INTO filler VALUES (1, REPEAT('x', 4000000)) "
                  "ON DUPLICATE KEY UPDATE b = REPEAT(IF(b LIKE 'x%', 'y', 'x'), 4000000)")


def _write_until_death(server, killer, steps):
    """Returns how many prepares were logged anew, as far as was heard, and whether the server died."""
    renewed = 0
    end = time.monotonic() + _WAIT_SECONDS
    try:
        with server.connect("test") as session:
            written = int(_status(session, "log_written_bytes"))
            while int(_status(session, "log_written_bytes")) - written < _DUE_BYTES - (8 << 20):
                _write(session)
            killer.kill_at(*steps)
            while time.monotonic() < end:
                _write(session)
                renewed = int(_status(session, "log_prepares_renewed"))
                time.sleep(0.1)
        return renewed, False
    except (ConnectionLost, OSError):
        return renewed, True


def _start_and_die(server, killer, steps):
    """A start that ends soon; whether it did."""
    killer.kill_at(*steps)
    try:
        server.start()
        end = time.monotonic() + 4
        with server.connect("test") as session:
            while time.monotonic() < end:
                session.query("REPLACE INTO filler VALUES (2, UUID())")
                time.sleep(0.05)
    except (ConnectionLost, ServerFailed, OSError):
        return True
    finally:
        killer.rest()
        server.kill()
    return False


def _problems(session, names, rows):
    """What is wrong while the transactions are prepared."""
    found = {row[-1] for row in session.query("XA RECOVER").rows}
    found = {name.decode() if isinstance(name, bytes) else name for name in found}
    wrong = [] if found == set(names) else [f"prepared: {sorted(found)} instead of {sorted(names)}"]
    for key in rows:
        try:
            session.query(f"SELECT * FROM t WHERE id = {key} FOR UPDATE")
            wrong.append(f"row {key} is not locked")
        except SqlError as error:
            if error.number != _LOCK_WAIT:
                wrong.append(f"row {key}: {error}")
    return wrong


def _end(server, small, large, commits_small):
    """Resolves both, and says what is wrong after one more kill."""
    before = {}
    with server.connect("test") as session:
        for name in (small, large):
            commits = (name == small) == commits_small
            session.query(f"XA {'COMMIT' if commits else 'ROLLBACK'} 'x{name}'")
        before = {name: int(session.query(f"SELECT COUNT(*) FROM t WHERE who = {name}").rows[0][0]) for name in (small, large)}
    wrong = []
    expected = {small: 1 if commits_small else 0, large: 0 if commits_small else _LARGE_ROWS}
    server.kill()
    server.start()
    with server.connect("test") as session:
        after = {name: int(session.query(f"SELECT COUNT(*) FROM t WHERE who = {name}").rows[0][0]) for name in (small, large)}
        if not before == after == expected:
            wrong.append(f"rows: {before}, after a restart {after}, instead of {expected}")
        if session.query("XA RECOVER").rows:
            wrong.append("something is prepared still")
        found = engines.check_table(session, "PANDO", "t")
        if found:
            wrong.append(found)
        if _status(session, "log_holder") or int(_status(session, "log_held_bytes")):
            wrong.append(f"the log is kept for {_status(session, 'log_holder')}")
        session.query("DELETE FROM t")  # nothing is locked
    return wrong


def _round(server, killer, number, rng):
    """Returns a word about what happened, and what is wrong."""
    small, large = 2 * number + 1, 2 * number + 2
    _prepare(server, small, f"INSERT INTO t VALUES (0, {small}, 'small')")
    _prepare(server, large, f"INSERT INTO t SELECT seq, {large}, REPEAT('large', 20) FROM seq_1_to_{_LARGE_ROWS}")
    names, wrong, keys = (f"x{small}", f"x{large}"), [], (0, 1, _LARGE_ROWS)
    steps = (rng.randint(8, 40), rng.choice(("before", "after")))
    renewed, died = _write_until_death(server, killer, steps)
    killer.rest()
    server.kill()
    again = _start_and_die(server, killer, (rng.randint(1, 16), rng.choice(("before", "after"))))
    server.start()
    with server.connect("test") as session:
        wrong += _problems(session, names, keys)
        end = time.monotonic() + _WAIT_SECONDS
        while int(_status(session, "log_held_bytes")) > _DUE_BYTES and time.monotonic() < end:
            time.sleep(0.1)
        held, kept = int(_status(session, "log_held_bytes")), int(_status(session, "log_kept_bytes"))
        if held > _DUE_BYTES or kept > 4 * _DUE_BYTES:
            wrong.append(f"{held} bytes of log are held and {kept} kept")
        wrong += _problems(session, names, keys)
    wrong += _end(server, small, large, rng.random() < 0.5)
    return f"died {'at' if died else 'not at'} {steps[1]} {steps[0]} with {renewed} heard of, again: {again}", died, wrong


def main():
    """The test."""
    arguments = _arguments()
    report.note(f"{arguments.rounds} rounds, seed {arguments.seed}")
    rng, checks, deaths = random.Random(arguments.seed), report.Checks(), 0
    options = engines.options("PANDO", 64) + ["--pando-lock-wait-timeout=1", "--pando-log-file-size=4M",
                                              "--pando-write-set-memory=1M", "--max-allowed-packet=16M"]
    with tempfile.TemporaryDirectory(prefix="pando-killer.", dir="/tmp") as directory:
        killer = Killer(directory)
        killer.haunt()
        with PrivateServer("forgotten", options, keep=arguments.keep) as server:
            with server.connect() as session:
                session.query("CREATE DATABASE IF NOT EXISTS test")
                session.query("CREATE TABLE test.t (id INT PRIMARY KEY, who INT, s VARCHAR(200), KEY (who)) ENGINE=PANDO")
                session.query("CREATE TABLE test.filler (id INT PRIMARY KEY, b LONGBLOB) ENGINE=PANDO")
            for number in range(arguments.rounds):
                what, died, wrong = _round(server, killer, number, rng)
                deaths += died
                checks.check(not wrong, f"round {number}: {what}", "; ".join(wrong))
                if wrong:
                    program.show_log(server)
                    break
    checks.check(deaths > 0, f"{deaths} deaths while there was something to be logged anew", "the library that kills does not work")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
