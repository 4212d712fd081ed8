"""Clients that append to lists, move tokens, read both in every way, and write down what they saw."""

import dataclasses
import itertools
import random
import threading
import time

from sqlkit.client import ConnectionLost, SqlError

LISTS, TOKENS, WEIGHT = 12, 10, 7
LEVELS = ("SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED")
_LOCKS = ("", "", " FOR UPDATE", " LOCK IN SHARE MODE")
_REFUSED = {1205, 1213, 1020, 1412, 1317, 1062}
_POSITIONS = itertools.count(100)


@dataclasses.dataclass
class Read:
    """What one statement saw: `lists` has a tuple of elements for each key; `how` is "" for a plain read."""
    lists: dict
    how: str
    statement: str


@dataclasses.dataclass
class Transaction:
    """What one did. `state`: committed, aborted, or unknown."""
    number: int
    level: str
    state: str = "unknown"
    appends: list = dataclasses.field(default_factory=list)  # (key, element), in order
    reads: list = dataclasses.field(default_factory=list)    # (how many appends were before, Read)
    has_moved: bool = False
    wrong: list = dataclasses.field(default_factory=list)    # what is wrong whatever others did


def set_up(session, engine):
    """Empty lists, and tokens."""
    session.query(f"CREATE TABLE lists (id INT PRIMARY KEY, u INT UNIQUE, s INT, p VARCHAR(20), v TEXT NOT NULL, KEY (s), UNIQUE (p(3))) ENGINE={engine}")
    session.query("INSERT INTO lists VALUES " + ", ".join(f"({k}, {1000 + k}, {k % 3}, '{100 + k}', '')" for k in range(LISTS)))
    session.query(f"CREATE TABLE tokens (pos INT PRIMARY KEY, tok INT UNIQUE, g INT, w INT, KEY (g)) ENGINE={engine}")
    session.query("INSERT INTO tokens VALUES " + ", ".join(f"({k}, {k}, {k % 2}, {WEIGHT})" for k in range(TOKENS)))


class Client(threading.Thread):
    """One session; `done` is the list of its transactions."""

    def __init__(self, server, seed, level, numbers, ended):
        super().__init__(daemon=True)
        self.server, self.rng, self.level, self.numbers, self.ended = server, random.Random(seed), level, numbers, ended
        self.done, self.failed = [], None

    def run(self):
        try:
            with self.server.connect("test", timeout=300) as session:
                session.query(f"SET SESSION TRANSACTION ISOLATION LEVEL {self.level}")
                session.query("SET SESSION lock_wait_timeout = 5")
                while not self.ended.is_set():
                    self._transaction(session)
        except (ConnectionLost, SqlError) as error:
            self.failed = repr(error)

    def _transaction(self, session):
        rng, made = self.rng, Transaction(next(self.numbers), self.level)
        self.done.append(made)
        is_reader = rng.random() < 0.35
        try:
            session.query("BEGIN")
            for _ in range(rng.randint(2, 6)):
                if is_reader:
                    rng.choice((self._read, self._range, self._tokens))(session, made, "")
                else:
                    rng.choice((self._append, self._append, self._read, self._range, self._tokens, self._move))(session, made, rng.choice(_LOCKS))
                if rng.random() < 0.2:
                    time.sleep(rng.random() * 0.004)
            if rng.random() < 0.12:
                session.query("ROLLBACK")
                made.state = "aborted"
                return
            session.query("COMMIT")
            made.state = "committed"
        except SqlError as error:
            if error.number not in _REFUSED:
                raise
            session.query("ROLLBACK")
            made.state = "aborted"

    def _where(self, key):
        return self.rng.choice((f"id = {key}", f"u = {1000 + key}", f"p = '{100 + key}'"))

    def _append(self, session, made, _how):
        key, element = self.rng.randrange(LISTS), next(self.numbers)
        made.appends.append((key, element))
        changed = session.query(f"UPDATE lists SET v = CONCAT(v, '{element},') WHERE {self._where(key)}").affected
        if changed != 1:
            made.wrong.append(f"an append to list {key} changed {changed} rows")

    def _note(self, session, made, statement, how, expected):
        rows = session.query(statement + how).rows
        lists = {int(row[0]): tuple(int(part) for part in row[1].decode().split(",") if part) for row in rows}
        made.reads.append((len(made.appends), Read(lists, how, statement + how)))
        if set(lists) != set(expected) or len(rows) != len(lists):
            made.wrong.append(f"{statement}{how}: lists {sorted(lists)} in {len(rows)} rows, there are {sorted(expected)}")

    def _read(self, session, made, how):
        key = self.rng.randrange(LISTS)
        self._note(session, made, f"SELECT id, v FROM lists WHERE {self._where(key)}", how, [key])

    def _range(self, session, made, how):
        low = self.rng.randrange(LISTS)
        high = min(LISTS - 1, low + self.rng.randint(1, 6))
        inside, group = range(low, high + 1), self.rng.randrange(3)
        condition, expected = self.rng.choice((
            (f"id BETWEEN {low} AND {high}", inside), (f"u BETWEEN {1000 + low} AND {1000 + high}", inside),
            (f"s = {group}", [k for k in range(LISTS) if k % 3 == group]), ("1", range(LISTS)),
            (f"p >= '{100 + low}' AND p <= '{100 + high}'", inside), (f"u BETWEEN {1000 + low} AND {1000 + high} ORDER BY u DESC", inside),
            (f"id >= {low} ORDER BY id DESC", range(low, LISTS))))
        self._note(session, made, f"SELECT id, v FROM lists WHERE {condition}", how, expected)

    def _move(self, session, made, _how):
        token, place = self.rng.randrange(TOKENS), next(_POSITIONS)
        made.has_moved = True
        if self.rng.random() < 0.6:
            changed = session.query(f"UPDATE tokens SET pos = {place} WHERE tok = {token}").affected
        else:
            changed = session.query(f"DELETE FROM tokens WHERE tok = {token}").affected
            session.query(f"INSERT INTO tokens VALUES ({place}, {token}, {token % 2}, {WEIGHT})")
        if changed != 1:
            made.wrong.append(f"a move of token {token} changed {changed} rows")

    def _tokens(self, session, made, how):
        if self.level == "REPEATABLE READ" and made.has_moved:
            return  # what it moved may have been moved by others since its snapshot, which still has the row as it was
        if self.level == "READ COMMITTED" and how:
            how = ""  # locking reads may miss rows that were moved before they began: docs/isolation.md
        low = self.rng.randrange(TOKENS)
        statement, expected = self.rng.choice((
            ("SELECT tok FROM tokens", range(TOKENS)), ("SELECT tok FROM tokens FORCE INDEX (tok) WHERE tok >= 0", range(TOKENS)),
            (f"SELECT tok FROM tokens WHERE tok BETWEEN {low} AND {low + 4}", range(low, min(TOKENS, low + 5))),
            ("SELECT tok FROM tokens WHERE g = 1", range(1, TOKENS, 2)), ("SELECT tok FROM tokens ORDER BY tok DESC", range(TOKENS)),
            ("SELECT w FROM tokens", [WEIGHT] * TOKENS), ("SELECT SUM(w) FROM tokens", [WEIGHT * TOKENS]), ("SELECT COUNT(*) FROM tokens", [TOKENS]),
            ("SELECT COUNT(*) FROM tokens GROUP BY g", [TOKENS // 2] * 2)))
        found = sorted(int(row[0] or 0) for row in session.query(statement + how).rows)
        if found != sorted(expected):
            made.wrong.append(f"{statement}{how}: {found}, there are {sorted(expected)}")
