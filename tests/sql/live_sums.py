#!/usr/bin/env python3
"""Queries of every kind beside clients that move money: each snapshot has all of the money.

    tests/sql/live_sums.sh [--seconds 12] [--writers 4] [--readers 3] [--seed N] [--engine PANDO]

Writers move money between the accounts of a table, and accounts to other ids, in the midst of the others or behind them
all. Readers open a snapshot and ask in many ways, in random order: sums that the engine answers from columns and that the
server adds up from rows, by the table and by each of its keys, up and down, in groups and in parts, one account after
the other, and for the first and last of them. All answers in one snapshot must agree, and the sum and the number of accounts never
change. A checkpoint each second and a small log see to it that rows come from memory, from buffers and from leaves
meanwhile. At the end CHECK TABLE is clean, and a row that is changed by one must be noticed.
"""

import argparse
import pathlib
import random
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from sqlkit import engines, patience, program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_ACCOUNTS = 3000
_START = 1000
_DATABASE = "bank"
_TABLE = """CREATE TABLE accounts (
    id BIGINT PRIMARY KEY, branch INT NOT NULL, balance BIGINT NOT NULL, note VARCHAR(40),
    KEY by_balance (balance), KEY by_branch (branch, balance), KEY by_note (note)) ENGINE=%s"""
_RETRIED = (1205, 1213)  # a lock not got in time, a deadlock


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--readers", type=int, default=3)
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


class Worker(threading.Thread):
    """A client that does something until it is told to stop, and keeps the error that ended it."""

    def __init__(self, server, seed, work):
        super().__init__()
        self.rng, self.done, self.error = random.Random(seed), 0, None
        self._server, self._work, self._told_to_end = server, work, threading.Event()
        self.start()

    def run(self):
        try:
            with self._server.connect(_DATABASE) as session:
                while not self._told_to_end.is_set():
                    self.done += self._work(session, self.rng)
        except Exception as error:  # pylint: disable=broad-except
            self.error = f"{type(error).__name__}: {error}"

    def end(self):
        """Lets it finish what it is at."""
        self._told_to_end.set()
        self.join()


def _write(session, rng):
    """A transaction of a writer. Returns 1 if it was committed."""
    try:
        session.query("START TRANSACTION")
        for _ in range(rng.choice((1, 1, 1, 2, 20))):
            rows = session.query(f"SELECT id, balance FROM accounts WHERE id >= {rng.randrange(_ACCOUNTS * 10)} "
                                 "ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED").rows
            if len(rows) < 2:
                continue
            (rich, money), (poor, _) = (tuple(map(int, row)) for row in rows)
            if rng.random() < 0.25:
                # Behind all others, or somewhere among them.
                place = rng.randrange(_ACCOUNTS * 10) if rng.random() < 0.7 else time.time_ns() // 1000
                session.query(f"DELETE FROM accounts WHERE id = {rich}")
                taken = session.query(f"SELECT 1 FROM accounts WHERE id = {place} FOR UPDATE").rows
                new = rich if taken else place
                session.query(f"INSERT INTO accounts VALUES ({new}, {new % 7}, {money}, 'moved {new % 500}')")
            else:
                amount = rng.randrange(1, 100)
                session.query(f"UPDATE accounts SET balance = balance - {amount} WHERE id = {rich}")
                session.query(f"UPDATE accounts SET balance = balance + {amount}, note = 'got {amount}' WHERE id = {poor}")
        session.query("ROLLBACK" if rng.random() < 0.1 else "COMMIT")
        return 1
    except SqlError as error:
        if error.number not in _RETRIED:
            raise
        session.query("ROLLBACK")
        return 0


def _total(session, sql):
    """Sum and number of what a query gives row by row: the last column, and how many rows."""
    rows = session.query(sql).rows
    return sum(int(row[-1]) for row in rows), len(rows)


def _sums(session, sql):
    """The same of rows that have both."""
    rows = session.query(sql).rows
    return sum(int(row[0] or 0) for row in rows), sum(int(row[1]) for row in rows)


def _one_by_one(session):
    """Steps through the table with a query for each piece."""
    total, count, last = 0, 0, -1
    while True:
        rows = session.query(f"SELECT id, balance FROM accounts WHERE id > {last} ORDER BY id LIMIT 400").rows
        if not rows:
            return total, count
        total, count, last = total + sum(int(row[1]) for row in rows), count + len(rows), int(rows[-1][0])


_BOTH = "SELECT SUM(balance), COUNT(*) FROM accounts"
_WAYS = {
    "sum": lambda s: _sums(s, _BOTH),
    "sum in groups": lambda s: _sums(s, f"{_BOTH} GROUP BY branch"),
    "sum in parts": lambda s: _sums(s, f"{_BOTH} WHERE id < 9000 UNION ALL {_BOTH} WHERE id >= 9000"),
    "sum by balance": lambda s: _sums(s, "SELECT SUM(balance), COUNT(*) FROM accounts FORCE INDEX (by_balance) "
                                         "WHERE balance > -1000000000"),
    "sum by branch": lambda s: _sums(s, "SELECT SUM(balance), COUNT(*) FROM accounts FORCE INDEX (by_branch) "
                                        "WHERE branch >= 0 GROUP BY branch"),
    "sum by note": lambda s: _sums(s, "SELECT SUM(balance), COUNT(*) FROM accounts FORCE INDEX (by_note) "
                                      "WHERE note >= '' OR note IS NULL"),
    "rows": lambda s: _total(s, "SELECT id, balance FROM accounts"),
    "rows down": lambda s: _total(s, "SELECT id, balance FROM accounts ORDER BY id DESC"),
    "rows by balance": lambda s: _total(s, "SELECT balance FROM accounts FORCE INDEX (by_balance) ORDER BY balance"),
    "rows down by balance": lambda s: _total(
        s, "SELECT balance FROM accounts FORCE INDEX (by_balance) ORDER BY balance DESC"),
    "rows down by branch": lambda s: _total(
        s, "SELECT branch, balance FROM accounts FORCE INDEX (by_branch) ORDER BY branch DESC, balance DESC"),
    "pieces": _one_by_one,
}
_ENDS = (
    ("last", "SELECT MAX(id) FROM accounts", "SELECT id FROM accounts ORDER BY id DESC LIMIT 1",
     "SELECT MAX(id) FROM accounts WHERE balance > -1000000000"),
    ("richest", "SELECT MAX(balance) FROM accounts", "SELECT balance FROM accounts ORDER BY balance DESC LIMIT 1",
     "SELECT MAX(balance) FROM accounts IGNORE INDEX (by_balance, by_branch)"),
    ("poorest", "SELECT MIN(balance) FROM accounts", "SELECT balance FROM accounts ORDER BY balance LIMIT 1",
     "SELECT MIN(balance) FROM accounts IGNORE INDEX (by_balance, by_branch)"),
)


def _read(session, rng):
    """A snapshot of a reader. Returns how many answers agreed; raises where one did not."""
    if rng.random() < 0.5:
        session.query(f"SET pando_pushdown = {rng.choice(('ON', 'OFF'))}")
    session.query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    ways = rng.sample(sorted(_WAYS), 5)
    for way in ways:
        found = _WAYS[way](session)
        if found != (_ACCOUNTS * _START, _ACCOUNTS):
            again = {way: _WAYS[way](session) for way in _WAYS}
            raise AssertionError(f"{way}: {found}; asked again in the same snapshot: {again}")
    for what, *ways_to_ask in _ENDS:
        found = [session.number(sql) for sql in ways_to_ask]
        if len(set(found)) > 1:
            raise AssertionError(f"the {what}: {dict(zip(ways_to_ask, found))}")
    session.query("COMMIT")
    return len(ways) + len(_ENDS)


def _fill(session, engine):
    session.query(f"CREATE DATABASE {_DATABASE}")
    session.query(f"USE {_DATABASE}")
    session.query(_TABLE % engine)
    rows = ", ".join(f"({number * 10}, {number % 7}, {_START}, 'new')" for number in range(_ACCOUNTS))
    session.query(f"INSERT INTO accounts VALUES {rows}")


def _ask_at_once(server):
    """Many who ask a server that has just started for its counters. Returns how many got them."""
    sessions, answers = [server.connect() for _ in range(24)], []
    together = threading.Barrier(len(sessions))

    def ask(session):
        together.wait()
        answers.append(len(session.query("SHOW GLOBAL STATUS LIKE 'Pando%'").rows))
        session.close()

    threads = [threading.Thread(target=ask, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(count > 10 for count in answers), len(sessions)


def _notices_damage(session):
    """Whether a reader finds that a row is changed."""
    session.query("UPDATE accounts SET balance = balance + 1 ORDER BY id LIMIT 1")
    try:
        _read(session, random.Random(1))
        return False
    except AssertionError:
        return True


def main():
    """The test."""
    arguments = _arguments()
    report.note(f"{arguments.writers} writers, {arguments.readers} readers, {arguments.engine}, seed {arguments.seed}")
    checks = report.Checks()
    options = engines.options(arguments.engine, 64, flush_at_commit=2)
    if arguments.engine.upper() == "PANDO":
        options += ["--pando-checkpoint-period=1", "--pando-log-file-size=4M"]
    with PrivateServer("live-sums", options, plugin=True, keep=arguments.keep) as server, \
            server.connect() as session:
        answered, asked = _ask_at_once(server)
        checks.check(answered == asked, "many at once get the counters of a server that has just started", f"{answered} of {asked}")
        _fill(session, arguments.engine)
        seeds = random.Random(arguments.seed)
        writers = [Worker(server, seeds.random(), _write) for _ in range(arguments.writers)]
        readers = [Worker(server, seeds.random(), _read) for _ in range(arguments.readers)]
        patience.pass_time(arguments.seconds, lambda: any(worker.error for worker in writers + readers) or
                           all(any(worker.done for worker in workers) for workers in (writers, readers)))
        for worker in writers + readers:
            worker.end()
        for worker in writers + readers:
            if worker.error:
                report.bad(worker.error)
        commits, answers = (sum(worker.done for worker in workers) for workers in (writers, readers))
        checks.check(not any(worker.error for worker in readers), f"{answers} answers agree")
        checks.check(not any(worker.error for worker in writers), f"{commits} transactions were committed or rolled back")
        checks.check(commits > 0 and answers > 0, "both did something")
        found = engines.check_table(session, arguments.engine, "accounts")
        checks.check(found == "", "CHECK TABLE is content", found)
        checks.check(_notices_damage(session), "a row that is changed is noticed")
        if checks.failed:
            program.show_log(server)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
