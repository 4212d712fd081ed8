"""A client that reads: what its queries over whole tables give is known, whatever is written meanwhile."""

import random

from chaos.schema import ACCOUNTS, BALANCE, BATCH_ROWS
from chaos.worker import Worker, Wrong

_TOTAL = ACCOUNTS * BALANCE
# Queries with one number, and what it must be.
_QUERIES = [
    ("SELECT SUM(balance) FROM accounts", _TOTAL),
    ("SELECT SUM(balance) FROM accounts FORCE INDEX (balance) WHERE balance > -1000000000", _TOTAL),
    ("SELECT COUNT(*) FROM children c LEFT JOIN parents p ON p.client = c.client AND p.id = c.parent WHERE p.id IS NULL", 0),
    (f"SELECT COUNT(*) FROM (SELECT batch FROM loaded GROUP BY batch HAVING COUNT(*) <> {BATCH_ROWS}) part", 0),
    ("SELECT COUNT(*) FROM (SELECT email FROM people GROUP BY email HAVING COUNT(*) > 1) twice", 0),
    ("SELECT SUM(s.total) FROM (SELECT id, SUM(balance) AS total FROM accounts GROUP BY id) s", _TOTAL),
]
# Pairs that must agree within one snapshot.
_PAIRS = [
    ("SELECT COUNT(*), SUM(amount) FROM journal USE INDEX ()",
     "SELECT COUNT(*), SUM(amount) FROM journal FORCE INDEX (source) WHERE source >= 0"),
    ("SELECT COUNT(*), SUM(CRC32(text)) FROM secrets USE INDEX ()",
     "SELECT COUNT(*), SUM(CRC32(text)) FROM secrets FORCE INDEX (text) WHERE text >= ''"),
    ("SELECT COUNT(*), SUM(CRC32(body)) FROM documents USE INDEX ()",
     "SELECT COUNT(*), SUM(CRC32(body)) FROM documents FORCE INDEX (version) WHERE version >= 0"),
]


class Analyst(Worker):
    """Of the primary or of the replica."""

    def __init__(self, name, seed, weather):
        super().__init__(name, weather)
        self._random = random.Random(f"{seed}/{name}")

    def step(self, session):
        if self._random.random() < 0.7:
            sql, expected = self._random.choice(_QUERIES)
            found = int(self.query(session, sql).rows[0][0] or 0)
            if found != expected:
                raise Wrong(f"{found} and not {expected}: {sql}")
            return
        self.query(session, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        one, other = self._random.choice(_PAIRS)
        first, second = self.query(session, one).rows, self.query(session, other).rows
        self.query(session, "COMMIT")
        if first != second:
            raise Wrong(f"in one snapshot {first} and {second}: {one}; {other}")
