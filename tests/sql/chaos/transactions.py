"""A client with XA transactions whose connections go away between PREPARE and COMMIT."""

import random
import time

from chaos.schema import DATABASE
from chaos.worker import Worker, Wrong
from sqlkit.client import SqlError

_NUMBER, _ROWS, _KEPT_MAX = 0, 3, 600
_NOT_KNOWN = 1397   # XAER_NOTA
_LEAVING_SECONDS = 180


class XaClient(Worker):
    """Each transaction inserts a few rows of the ledger: all of them are there, or none."""

    def __init__(self, seed, weather):
        super().__init__("XA client", weather)
        self._random = random.Random(f"{seed}/xa")
        self._next = 0
        self._there = set()        # numbers of committed transactions
        self._prepared = set()     # acknowledged PREPARE, nobody has resolved it
        self._unknown = {}         # number -> the statement without an answer: "PREPARE", "COMMIT" or "ROLLBACK"
        self._leaving = set()      # numbers whose rows are being deleted, or may have been
        self.commits = self.rollbacks = 0

    def opened(self, session):
        session.query("SET sql_log_bin = 0")
        self.look(session)

    def finish(self, session):
        self.look(session)
        for number in sorted(self._prepared):
            self._resolve(session, number)
        self.look(session)

    # --- what must be there ---------------------------------------------------------------

    def look(self, session):
        """Decides what is unknown; all else must be as it was acknowledged."""
        if self._leaving:
            keys = [str(number * 10 + place) for number in sorted(self._leaving) for place in range(_ROWS)]
            self.query(session, f"DELETE FROM ledger WHERE client = {_NUMBER} AND id IN ({', '.join(keys)})")
            self._there -= self._leaving
            self._leaving = set()
        listed = self._listed(session)
        rows = self.query(session, "SELECT id DIV 10, COUNT(*), SUM(amount) FROM ledger GROUP BY id DIV 10").rows
        found = {int(number) for number, _, _ in rows}
        broken = [int(row[0]) for row in rows if (int(row[1]), int(row[2])) != (_ROWS, 0)]
        if broken:
            raise Wrong(f"transactions are there in part: {broken}")
        for number, statement in list(self._unknown.items()):
            if number in listed:
                self._prepared.add(number)
            elif number in found and statement == "COMMIT":
                self._prepared.discard(number)
                self._there.add(number)
            elif number not in found and statement in ("PREPARE", "ROLLBACK"):
                self._prepared.discard(number)
            del self._unknown[number]
        if found != self._there or listed != self._prepared:
            raise Wrong(f"committed: missing {sorted(self._there - found)}, too many {sorted(found - self._there)}; prepared: "
                        f"missing {sorted(self._prepared - listed)}, too many {sorted(listed - self._prepared)}")

    def _listed(self, session):
        return {int(row[3].decode()[1:]) for row in self.query(session, "XA RECOVER").rows}

    # --- transactions ---------------------------------------------------------------------

    def step(self, session):
        if self._unknown:
            self.look(session)
        if len(self._there) > _KEPT_MAX:
            self._forget(session)
        if self._prepared and self._random.random() < 0.5:
            self._resolve(session, self._random.choice(sorted(self._prepared)))
            return
        self._next += 1
        self._prepare(self._next)

    def _prepare(self, number):
        """In a connection of its own, which ends before or after the transaction does."""
        with self.weather.connect(DATABASE, 300) as session:
            session.query("SET sql_log_bin = 0")
            amount = self._random.randint(1, 1000)
            rows = ", ".join(f"({_NUMBER}, {number * 10 + place}, {value})"
                             for place, value in enumerate((amount, -2 * amount, amount)))
            for sql in (f"XA START 'x{number}'", f"INSERT INTO ledger VALUES {rows}", f"XA END 'x{number}'"):
                self.query(session, sql)
            self._run(session, "PREPARE", number)
            self._prepared.add(number)
            if self._random.random() < 0.3:
                self._resolve(session, number)

    def _resolve(self, session, number):
        """XA COMMIT or XA ROLLBACK. The connection that prepared it may still be on its way out."""
        statement = self._random.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        until = time.monotonic() + _LEAVING_SECONDS
        while True:
            try:
                self._run(session, statement, number)
                break
            except SqlError as error:
                if error.number != _NOT_KNOWN:
                    raise
            if time.monotonic() > until:
                raise Wrong(f"XA {statement} 'x{number}': unknown, and it was prepared {_LEAVING_SECONDS} s ago")
        self._prepared.discard(number)
        if statement == "COMMIT":
            self._there.add(number)
            self.commits += 1
        else:
            self.rollbacks += 1

    def _run(self, session, statement, number):
        self._unknown[number] = statement
        try:
            self.query(session, f"XA {statement} 'x{number}'")
        except SqlError as error:
            if error.number == _NOT_KNOWN:
                del self._unknown[number]
            raise
        del self._unknown[number]

    def _forget(self, session):
        """The rows of its oldest half go, when nothing is prepared: a scan would wait for those rows."""
        for number in sorted(self._prepared):
            self._resolve(session, number)
        self._leaving = set(sorted(self._there)[:_KEPT_MAX // 2])
        self.look(session)
