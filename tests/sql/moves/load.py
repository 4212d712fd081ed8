"""Transfers between accounts through several fronts, with a journal; what was acknowledged, and how long clients waited."""

import random
import threading
import time

from sqlkit.client import ConnectionLost, SqlError

_MONEY, _ROWS_A_STATEMENT = 100, 1000
MONEY_TABLE = "CREATE TABLE money (id INT PRIMARY KEY, v INT NOT NULL, note VARCHAR(40), KEY v (v))"
JOURNAL_TABLE = "CREATE TABLE journal (id BIGINT PRIMARY KEY, source INT NOT NULL, target INT NOT NULL)"
_NO_REMOTE_TABLE, _ERROR_REPEATED_SECONDS = 12702, 60
# Whoever has no answer then is taken to hang; servers that are stopped on purpose are killed before.
_ANSWER_SECONDS = 120
_CLIENT_NAMES = 10_000_000


class _Client(threading.Thread):
    """One session, another one after an error, until told to stop."""

    def __init__(self, load, number):
        super().__init__(daemon=True)
        self._load, self._front, self._number, self._random = load, load.fronts[number % len(load.fronts)], number, random.Random(f"{load.seed}/{number}")
        self.done, self.unknown, self.errors, self.longest = set(), set(), [], 0.0

    def run(self):
        session, sequence, last = None, 0, time.monotonic()
        while not self._load.ended.is_set():
            sequence += 1
            name, committing = self._number * _CLIENT_NAMES + sequence, False
            try:
                session = session or self._front.connect("d", timeout=_ANSWER_SECONDS)
                source, target = sorted(self._random.sample(range(self._load.accounts), 2))
                for sql in ("START TRANSACTION", f"UPDATE money SET v = v - 1, note = 'less {name}' WHERE id = {source}",
                            f"UPDATE money SET v = v + 1 WHERE id = {target}",
                            f"INSERT INTO journal VALUES ({name}, {source}, {target})"):
                    session.query(sql)
                committing = True
                session.query("COMMIT")
                self.done.add(name)
            except (SqlError, ConnectionLost) as error:
                self.errors.append(str(error))
                if committing:
                    self.unknown.add(name)
                if session:
                    session.close()
                session = None
                time.sleep(0.02)
            now = time.monotonic()
            self.longest, last = max(self.longest, now - last), now
        if session:
            session.close()


class Load:
    """`with load.running(): ...` has clients at work."""

    def __init__(self, fronts, writers, accounts, seed):
        self.fronts, self._writers, self.accounts, self.seed = fronts, writers, accounts, seed
        self.ended, self._clients, self._begun = threading.Event(), [], 0
        self.done, self.unknown = set(), set()

    def open_accounts(self):
        with self.fronts[0].connect("d") as session:
            for first in range(0, self.accounts, _ROWS_A_STATEMENT):
                session.query("INSERT INTO money (id, v) VALUES " + ", ".join(
                    f"({number}, {_MONEY})" for number in range(first, min(self.accounts, first + _ROWS_A_STATEMENT))))

    def start(self):
        self.ended.clear()
        self._clients = []
        for _ in range(self._writers):
            self._begun += 1
            self._clients.append(_Client(self, self._begun))
        for client in self._clients:
            client.start()

    def stop(self):
        """The errors that clients saw, and the longest time in seconds from one commit of a client to its next."""
        self.ended.set()
        for client in self._clients:
            client.join()
            self.done |= client.done
            self.unknown |= client.unknown
        errors = [error for client in self._clients for error in client.errors]
        return errors, max((client.longest for client in self._clients), default=0.0)

    def problems(self):
        """What the front's tables have and should not, or lack."""
        try:
            with self.fronts[0].connect("d", timeout=_ANSWER_SECONDS) as session:
                journal = session.query("SELECT id, source, target FROM journal").rows
                rows = _rows_of_money(session)
        except (SqlError, ConnectionLost) as error:
            return [f"the front cannot read: {error}"]
        found = []
        there = [int(row[0]) for row in journal]
        if self.done - set(there):
            found.append(f"acknowledged and lost: {sorted(self.done - set(there))[:10]}")
        if set(there) - self.done - self.unknown:
            found.append(f"there though refused before the commit: {sorted(set(there) - self.done - self.unknown)[:10]}")
        if len(rows) != self.accounts or len(there) != len(set(there)):
            found.append(f"{len(rows)} accounts, {len(there)} entries of {len(set(there))}")
        expected = dict.fromkeys(range(self.accounts), _MONEY)
        for _, source, target in journal:
            expected[int(source)] -= 1
            expected[int(target)] += 1
        wrong = {int(key): (int(value), expected[int(key)]) for key, value in rows if int(value) != expected[int(key)]}
        return found + ([f"accounts differ from the journal: {dict(list(wrong.items())[:10])}"] if wrong else [])


def _rows_of_money(session):
    """Spider repeats an error of opening a table for a second (spider_table_init_error_interval), though the table is another one by now."""
    deadline = time.monotonic() + _ERROR_REPEATED_SECONDS
    while True:
        try:
            return session.query("SELECT id, v FROM money").rows
        except SqlError as error:
            if error.number != _NO_REMOTE_TABLE or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
