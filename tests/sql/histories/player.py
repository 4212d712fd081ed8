"""Plays a program on one engine, statement by statement, and tells what happened.

After each statement it is waited for until every session has answered or waits for a lock, as the engine's
table of transactions says; the time that takes does not matter. Events:

    ("waits", session)              the statement sent last waits
    ("answer", session, answer)     it, or one that waited, is answered
"""

import threading
import time

from sqlkit.client import SqlError

DEADLOCK = ("error", 1213)
# InnoDB renews its table of transactions when nobody has read it for a tenth of a second.
_INNODB_PAUSE_S = 0.11
_PATIENCE_S = 120


class Stuck(Exception):
    """A statement neither answers nor waits for a lock, or everybody waits."""


class _Waiters:
    """The sessions of a server that wait for a lock, by the engine's table of transactions, for all players of the server: if
    each read InnoDB's by itself, none of them would ever leave it in peace for as long as it needs to be renewed."""

    _of_servers, _guard = {}, threading.Lock()

    def __init__(self, engine):
        self._table, self._pause_s = f"information_schema.{engine}_TRX", _INNODB_PAUSE_S if engine.upper() == "INNODB" else 0
        self._lock = threading.Lock()
        self._began = self._ended = float("-inf")
        self._sessions = set()

    @classmethod
    def of(cls, server, engine):
        with cls._guard:
            return cls._of_servers.setdefault((server.socket, engine), cls(engine))

    def now(self, control):
        """Those who wait at a moment after this is called."""
        called = time.monotonic()
        with self._lock:
            if self._began <= called:
                time.sleep(max(0, self._ended + self._pause_s - time.monotonic()))
                self._began = time.monotonic()
                rows = control.query(f"SELECT trx_mysql_thread_id FROM {self._table} WHERE trx_state = 'LOCK WAIT'").rows
                self._ended = time.monotonic()
                self._sessions = {int(row[0]) for row in rows}
            return self._sessions


class Player:
    """One engine with its own table and sessions."""

    def __init__(self, server, engine, table, sessions, level):
        self.engine, self.table = engine, table
        self._waiters = _Waiters.of(server, engine)
        self._control = server.connect("test", timeout=_PATIENCE_S)
        self._sessions = [server.connect("test", timeout=_PATIENCE_S) for _ in range(sessions)]
        self._pending = {}
        self.set_level(level)

    def set_level(self, level):
        for session in self._sessions:
            session.query(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")

    def close(self):
        for session in [*self._sessions, self._control]:
            session.close()

    def begin(self, create, rows):
        """A new table; transactions begin."""
        self._control.query(f"DROP TABLE IF EXISTS {self.table}")
        self._control.query(create.format(table=self.table, engine=self.engine))
        values = ", ".join(str(row).replace("None", "NULL") for row in rows)
        self._control.query(f"INSERT INTO {self.table} VALUES {values}")
        for session in self._sessions:
            session.query("BEGIN")

    def end(self):
        """Whoever waits is woken, everything is rolled back."""
        for number in list(self._pending):
            self._control.query(f"KILL QUERY {self._sessions[number].thread_id}")
            self._answer(number)
        for session in self._sessions:
            session.query("ROLLBACK")

    def waiting(self):
        return set(self._pending)

    def play(self, step):
        """The events of one statement, those of others that it let go on included."""
        self._sessions[step.session].send(step.sql.format(table=self.table))
        self._pending[step.session] = step
        events = []
        if self._settle() and step.session in self._pending and not self._answered(step.session):
            events.append(("waits", step.session))
        for session in sorted(self._pending):
            if self._answered(session):
                events.append(("answer", session, self._answer(session)))
        return events

    def contents(self):
        """All rows, and what the secondary keys say of them."""
        rows = self.rows()
        by_key = [sorted(self._control.query(
            f"SELECT {key}, id FROM {self.table} FORCE INDEX ({key}) WHERE {key} IS NULL OR {key} >= 0").rows, key=repr)
            for key in ("k", "u")]
        expected = [sorted(((row[column], row[0]) for row in rows), key=repr) for column in (1, 2)]
        if by_key != expected:
            raise AssertionError(f"{self.engine}: a key and its table disagree: {by_key} {expected}")
        return rows

    def rows(self):
        """All rows."""
        return self.rows_by("USE INDEX ()", "1")

    def rows_by(self, hint, condition):
        """The rows as they are found so."""
        return sorted(self._control.query(f"SELECT * FROM {self.table} {hint} WHERE {condition}").rows, key=repr)

    def _answered(self, session):
        return self._sessions[session].has_answer()

    def _answer(self, session):
        step = self._pending.pop(session)
        try:
            result = self._sessions[session].receive()
        except SqlError as error:
            return ("error", error.number)
        return ("rows", sorted(result.rows, key=repr)) if step.reads else ("done", result.affected)

    def _settle(self):
        """Until all that were sent have answered or wait. Twice if somebody waits: locks that were given back by
        the first to answer have been handed on by the second time."""
        first = next(iter(self._pending)) if len(self._pending) == 1 else None
        if first is not None and self._sessions[first].has_answer(0.005):
            return True
        deadline = time.monotonic() + _PATIENCE_S
        for _ in range(2):
            while not self._is_settled():
                if time.monotonic() > deadline:
                    raise Stuck(f"{self.engine}: {self._pending}")
                time.sleep(0.001)
        return True

    def _is_settled(self):
        silent = [session for session in self._pending if not self._answered(session)]
        if not silent:
            return True
        waiting = self._waiters.now(self._control)
        # In this order: who has answered since does not wait any more.
        return all(self._sessions[session].thread_id in waiting or self._answered(session) for session in silent)


def next_step(steps, waiting):
    """Takes the first step of a session that does not wait; None when there is none."""
    for position, step in enumerate(steps):
        if step.session not in waiting:
            return steps.pop(position)
    return None
