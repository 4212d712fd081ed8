"""Clients that write to parents and children at once, and what must hold afterwards."""

import random
import time

from sqlkit.client import ConnectionLost, SqlError

DATABASE = "refs"
_IDS = 40
# Refused by a constraint; a duplicate; a deadlock; a timeout; the table has changed, or is just being exchanged.
_REFUSED = {1451, 1452, 1761, 1216, 1217}
_EXPECTED = _REFUSED | {1062, 1213, 1205, 1020, 1412, 1317, 1146, 1048}
# What XA says of a transaction that is not what it was thought to be.
_ROLLED_BACK = {1397, 1399, 1402, 1613, 1614}
_LEVELS = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
# Child, its columns, the parent and its columns.
_REFERENCES = [
    ("restricted", "p", "parents", "id"),
    ("cascaded", "p", "parents", "id"),
    ("nulled", "code", "parents", "code"),
    ("deep", "c", "cascaded", "id"),
    ("tree", "up", "tree", "id"),
    ("pairs_of", "a, b", "pairs", "a, b"),
]
_KEYS = [("restricted", "p"), ("cascaded", "p"), ("nulled", "code"), ("deep", "c"), ("tree", "up"), ("parents", "code"),
         ("pairs_of", "a")]
DAMAGES = [
    "INSERT INTO restricted (p, v) VALUES (1000, 0)",
    "INSERT INTO nulled (code, v) VALUES ('nobody', 0)",
    "INSERT INTO tree (id, up) VALUES (2000, 1999)",
    "INSERT INTO pairs_of (a, b) VALUES (1, 1000)",
]


def create(session, engine):
    """The tables, with some parents in them."""
    session.query(f"CREATE DATABASE {DATABASE}")
    session.query(f"USE {DATABASE}")
    for sql in (
            "parents (id INT PRIMARY KEY, code VARCHAR(20), v INT, UNIQUE code (code))",
            "pairs (a INT, b INT, v INT, PRIMARY KEY (a, b))",
            "restricted (id INT AUTO_INCREMENT PRIMARY KEY, p INT, v INT, KEY p (p), FOREIGN KEY (p) REFERENCES parents (id))",
            "cascaded (id INT AUTO_INCREMENT PRIMARY KEY, p INT, v INT, t TEXT, KEY p (p), KEY (v),"
            " FOREIGN KEY (p) REFERENCES parents (id) ON DELETE CASCADE ON UPDATE CASCADE)",
            "nulled (id INT AUTO_INCREMENT PRIMARY KEY, code VARCHAR(30), v INT, KEY code (code, v),"
            " FOREIGN KEY (code) REFERENCES parents (code) ON DELETE SET NULL ON UPDATE CASCADE)",
            "deep (id INT AUTO_INCREMENT PRIMARY KEY, c INT, KEY c (c), FOREIGN KEY (c) REFERENCES cascaded (id)"
            " ON DELETE CASCADE)",
            "tree (id INT PRIMARY KEY, up INT, KEY up (up), FOREIGN KEY (up) REFERENCES tree (id) ON DELETE SET NULL)",
            "pairs_of (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT, KEY a (a, b),"
            " FOREIGN KEY (a, b) REFERENCES pairs (a, b) ON UPDATE CASCADE)"):
        session.query(f"CREATE TABLE {sql} ENGINE={engine}")
    session.query(f"CREATE TABLE late (id INT AUTO_INCREMENT PRIMARY KEY, p INT, KEY p (p)) ENGINE={engine}")
    session.query(f"CREATE TABLE loaded (id INT AUTO_INCREMENT PRIMARY KEY, p INT, KEY p (p),"
                  f" FOREIGN KEY (p) REFERENCES parents (id) ON DELETE CASCADE) ENGINE={engine}")
    for number in range(_IDS // 2):
        session.query(f"INSERT INTO parents (id, code, v) VALUES ({number}, 'c{number}', 0)")


def violations(session):
    """Children without parents, and keys that do not agree with their tables."""
    found = []
    is_late = session.number("SELECT COUNT(*) FROM information_schema.referential_constraints"
                             f" WHERE constraint_schema = '{DATABASE}' AND table_name = 'late'")
    references = _REFERENCES + [("loaded", "p", "parents", "id")] + [("late", "p", "parents", "id")] * is_late
    for child, columns, parent, parent_columns in references:
        pairs = list(zip(columns.split(", "), parent_columns.split(", ")))
        given = " AND ".join(f"c.{column} IS NOT NULL" for column, _ in pairs)
        match = " AND ".join(f"c.{column} = p.{parent_column}" for column, parent_column in pairs)
        orphans = session.number(f"SELECT COUNT(*) FROM {child} c WHERE {given} AND NOT EXISTS"
                                 f" (SELECT 1 FROM {parent} p WHERE {match})")
        if orphans:
            found.append(f"{child}: {orphans} rows have no parent in {parent}")
    for table, key in _KEYS:
        sums = [session.query(f"SELECT COUNT(*), BIT_XOR(CRC32({key})) FROM {table} {hint}").rows
                for hint in ("USE INDEX ()", f"FORCE INDEX ({key}) WHERE {key} IS NULL OR {key} IS NOT NULL")]
        if sums[0] != sums[1]:
            found.append(f"{table}: {sums[0]} by its rows, {sums[1]} by key {key}")
    return found


def rows(session):
    """How many rows each table has."""
    tables = ["parents", "pairs"] + [reference[0] for reference in _REFERENCES]
    return ", ".join(str(session.number(f"SELECT COUNT(*) FROM {table}")) for table in tables)


def resolve(session, rng):
    """Decides about what is prepared and has no connection."""
    for row in session.query("XA RECOVER").rows:
        name = row[3].decode() if isinstance(row[3], bytes) else row[3]
        session.query(f"XA {rng.choice(('COMMIT', 'ROLLBACK'))} '{name}'")


class Client:
    """One connection with random transactions, until the server goes."""

    def __init__(self, server, seed):
        self._server, self._rng = server, random.Random(seed)
        self.done = self.refused = 0
        self.problem = None

    def run(self):
        """Of a thread."""
        try:
            while True:
                with self._server.connect(DATABASE) as session:
                    prepared = None
                    while not prepared:
                        prepared = self._transaction(session)
                # It is without a connection for a while, some to the end.
                time.sleep(self._rng.uniform(0, 0.05))
                if self._rng.random() < 0.95:
                    with self._server.connect(DATABASE) as session:
                        self._expect(session, f"XA {self._rng.choice(('COMMIT', 'ROLLBACK'))} '{prepared}'")
        except ConnectionLost:
            pass
        except SqlError as error:
            self.problem = f"client: {error.number} {error}"

    def _transaction(self, session):
        rng = self._rng
        session.query(f"SET SESSION TRANSACTION ISOLATION LEVEL {rng.choice(_LEVELS)}")
        if rng.random() < 0.3:
            self._statement(session, self._choose())
            return None
        if rng.random() < 0.15:
            return self._prepare(session)
        session.query("BEGIN")
        for _ in range(rng.randrange(1, 6)):
            if not self._statement(session, self._choose()):
                break
        session.query(rng.choices(("COMMIT", "ROLLBACK"), (5, 1))[0])
        return None

    def _prepare(self, session):
        """The name of a prepared transaction, if it is to be left to others."""
        rng = self._rng
        name = f"x{rng.getrandbits(60)}"
        session.query(f"XA START '{name}'")
        for _ in range(rng.randrange(1, 6)):
            if not self._statement(session, self._choose()):
                break
        if not self._expect(session, f"XA END '{name}'") or not self._expect(session, f"XA PREPARE '{name}'"):
            self._expect(session, f"XA ROLLBACK '{name}'")
            return None
        if rng.random() < 0.5:
            return name
        self._expect(session, f"XA {rng.choice(('COMMIT', 'ROLLBACK'))} '{name}'")
        return None

    @staticmethod
    def _expect(session, sql):
        """False: it had been rolled back."""
        try:
            session.query(sql)
        except SqlError as error:
            if error.number not in _ROLLED_BACK | _EXPECTED:
                raise
            return False
        return True

    def _statement(self, session, sql):
        """False: the transaction is over."""
        try:
            session.query(sql)
            self.done += 1
        except SqlError as error:
            if error.number not in _EXPECTED:
                raise
            self.refused += error.number in _REFUSED
            return error.number in (1451, 1452, 1062, 1761)
        return True

    def _choose(self):
        """A statement."""
        rng = self._rng
        some, other = rng.randrange(_IDS), rng.randrange(_IDS)
        a, b = rng.randrange(4), rng.randrange(4)
        return rng.choice((
            f"INSERT INTO parents (id, code, v) VALUES ({some}, 'c{some}', 0)",
            f"INSERT IGNORE INTO parents (id, code, v) VALUES ({some}, 'c{some}', 0), ({other}, 'c{other}', 1)",
            f"REPLACE INTO parents (id, code, v) VALUES ({some}, 'c{some}', 7)",
            f"DELETE FROM parents WHERE id = {some}",
            f"DELETE FROM parents WHERE id BETWEEN {some} AND {some} + 3",
            f"DELETE IGNORE FROM parents WHERE id > {some}",
            f"UPDATE parents SET id = {other} WHERE id = {some}",
            f"UPDATE parents SET code = 'c{other}' WHERE id = {some}",
            f"UPDATE parents SET v = v + 1 WHERE id < {some}",
            f"INSERT INTO restricted (p, v) VALUES ({some}, 0)",
            f"INSERT IGNORE INTO restricted (p, v) VALUES ({some}, 0), ({other}, 1)",
            f"UPDATE restricted SET p = {some} WHERE p = {other}",
            f"DELETE FROM restricted WHERE p = {some} OR v > 3",
            "DELETE FROM restricted LIMIT 10",
            f"INSERT INTO cascaded (p, v, t) VALUES ({some}, {other}, REPEAT('x', {some} * 20)), ({some}, {other}, 'y')",
            f"UPDATE cascaded SET p = {other} WHERE p = {some}",
            f"DELETE FROM cascaded WHERE v = {some}",
            f"INSERT INTO nulled (code, v) VALUES ('c{some}', {other})",
            f"UPDATE nulled SET code = 'c{some}' WHERE code IS NULL LIMIT 3",
            "DELETE FROM nulled WHERE code IS NULL",
            f"INSERT INTO deep (c) SELECT id FROM cascaded WHERE p = {some} LIMIT 3",
            f"INSERT INTO deep (c) VALUES ({some})",
            f"INSERT INTO tree (id, up) VALUES ({some}, {some})",
            f"INSERT INTO tree (id, up) VALUES ({some}, {other})",
            f"UPDATE tree SET up = {other} WHERE id = {some}",
            f"DELETE FROM tree WHERE id = {some}",
            f"INSERT INTO pairs (a, b, v) VALUES ({a}, {b}, 0)",
            f"UPDATE pairs SET b = {b} WHERE a = {a} AND b = {other} % 4",
            f"DELETE FROM pairs WHERE a = {a}",
            f"INSERT INTO pairs_of (a, b) VALUES ({a}, {b})",
            f"UPDATE pairs_of SET b = {b} WHERE a = {a}",
            f"DELETE FROM pairs_of WHERE a = {a} LIMIT 5",
            f"INSERT INTO late (p) VALUES ({some}), ({other})",
            f"UPDATE late SET p = {some} WHERE p = {other}",
            f"DELETE FROM late WHERE p = {some}",
            f"INSERT INTO loaded (p) VALUES ({some}), ({other})",
            "SELECT COUNT(*) FROM parents FOR UPDATE",
            "SELECT * FROM restricted WHERE v >= 0 LOCK IN SHARE MODE",
        ))


class Loader(Client):
    """Loads many children at once into a table that was emptied."""

    def _transaction(self, session):
        session.query(f"SET SESSION TRANSACTION ISOLATION LEVEL {self._rng.choice(_LEVELS)}")
        self._statement(session, "TRUNCATE TABLE loaded")
        self._statement(session, "INSERT INTO loaded (p) SELECT parents.id FROM parents, seq_1_to_600")
        session.query("DO SLEEP(0.1)")


class Alterer(Client):
    """Changes the tables meanwhile."""

    def _transaction(self, session):
        if self._rng.random() < 0.3:
            for sql in ("ALTER TABLE late DROP FOREIGN KEY IF EXISTS late_p", "DO SLEEP(0.03)",
                        "DELETE FROM late WHERE p NOT IN (SELECT id FROM parents)",
                        "ALTER TABLE late ADD CONSTRAINT late_p FOREIGN KEY (p) REFERENCES parents (id) ON DELETE CASCADE"
                        + self._rng.choice(("", ", ALGORITHM=COPY"))):
                self._statement(session, sql)
            return
        table = self._rng.choice(("parents", "restricted", "cascaded", "nulled", "tree", "pairs_of"))
        self._statement(session, self._rng.choice((
            f"ALTER TABLE {table} FORCE, ALGORITHM=COPY",
            f"ALTER TABLE {table} ADD COLUMN extra INT",
            f"ALTER TABLE {table} DROP COLUMN IF EXISTS extra",
            f"ALTER TABLE {table} ADD INDEX IF NOT EXISTS more (id)",
            f"ALTER TABLE {table} DROP INDEX IF EXISTS more",
            "RENAME TABLE pairs TO pairs_away, pairs_away TO pairs",
        )))
        session.query("DO SLEEP(0.05)")

    def _statement(self, session, sql):
        try:
            return super()._statement(session, sql)
        except SqlError as error:
            # The column is there already; a prepared transaction without a connection has changed the table.
            if error.number not in (1060, 1025) and "in use by a prepared transaction" not in str(error):
                raise
            return True
