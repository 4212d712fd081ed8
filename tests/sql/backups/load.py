"""What goes on while a backup is taken: transfers between accounts of two engines, and DDL."""

import random
import threading
import time

from sqlkit.client import ConnectionLost, SqlError

DATABASE = "bank"
ACCOUNTS, BALANCE = 40, 1000
_RETRIED = {1205, 1213, 1020, 1412}

SCHEMA = [
    f"CREATE DATABASE {DATABASE}",
    f"CREATE TABLE {DATABASE}.p (id INT PRIMARY KEY, balance BIGINT NOT NULL, pad VARCHAR(200), KEY (balance)) ENGINE=PANDO",
    f"CREATE TABLE {DATABASE}.i (id INT PRIMARY KEY, balance BIGINT NOT NULL) ENGINE=InnoDB",
    f"CREATE TABLE {DATABASE}.journal_p (id BIGINT AUTO_INCREMENT PRIMARY KEY, tag VARCHAR(40) NOT NULL UNIQUE, amount INT,"
    " pad VARCHAR(1000)) ENGINE=PANDO",
    f"CREATE TABLE {DATABASE}.journal_i (tag VARCHAR(40) PRIMARY KEY, amount INT) ENGINE=InnoDB",
    f"CREATE TABLE {DATABASE}.parts (id INT, tag VARCHAR(40), PRIMARY KEY (id, tag)) ENGINE=PANDO"
    " PARTITION BY HASH (id) PARTITIONS 3",
]


def create(session, engines=("PANDO", "InnoDB")):
    """The tables, with the accounts in them."""
    for statement in SCHEMA:
        if "InnoDB" in engines or "InnoDB" not in statement:
            session.query(statement)
    for table in ("p", "i") if "InnoDB" in engines else ("p",):
        session.query(f"INSERT INTO {DATABASE}.{table} (id, balance) SELECT seq, {BALANCE} FROM {DATABASE}.seq_1_to_{ACCOUNTS}")


class Writer(threading.Thread):
    """Transfers between the engines until it is told to stop; notes its longest statement."""

    def __init__(self, server, number, seed):
        super().__init__(daemon=True)
        self._server, self._number = server, number
        self._rng = random.Random(seed * 100 + number)
        self._stop_asked = threading.Event()
        self.done, self.longest, self.error = 0, 0.0, None

    def stop(self):
        self._stop_asked.set()
        self.join()

    def run(self):
        try:
            with self._server.connect(DATABASE) as session:
                while not self._stop_asked.is_set():
                    began = time.monotonic()
                    self._transfer(session)
                    self.longest = max(self.longest, time.monotonic() - began)
        except ConnectionLost:
            pass
        except SqlError as error:
            self.error = str(error)

    def _transfer(self, session):
        amount, one, other = self._rng.randrange(1, 50), *self._rng.sample(range(1, ACCOUNTS + 1), 2)
        tag = f"{self._number}.{self.done}"
        try:
            session.query("BEGIN")
            session.query(f"UPDATE p SET balance = balance - {amount}, pad = REPEAT('x', {amount}) WHERE id = {one}")
            session.query(f"UPDATE i SET balance = balance + {amount} WHERE id = {other}")
            session.query(f"INSERT INTO journal_p (tag, amount, pad) VALUES ('{tag}', {amount}, REPEAT('{one}', 300))")
            session.query(f"INSERT INTO journal_i VALUES ('{tag}', {amount})")
            session.query(f"INSERT INTO parts VALUES ({one}, '{tag}')")
            session.query("COMMIT")
            self.done += 1
        except SqlError as error:
            if error.number not in _RETRIED:
                raise
            session.query("ROLLBACK")


class Definer(threading.Thread):
    """DDL: tables come, get rows, columns, indexes and names, and go."""

    def __init__(self, server, seed):
        super().__init__(daemon=True)
        self._server, self._rng = server, random.Random(seed)
        self._prefix = f"d{seed % 1000}_"
        self._stop_asked = threading.Event()
        self.done, self.error = 0, None

    def stop(self):
        self._stop_asked.set()
        self.join()

    def run(self):
        try:
            with self._server.connect(DATABASE) as session:
                while not self._stop_asked.is_set():
                    self._one(session)
        except ConnectionLost:
            pass
        except SqlError as error:
            self.error = str(error)

    def _one(self, session):
        name, rows = f"{self._prefix}{self.done}", self._rng.choice([10, 3000, 9000])
        statements = [
            f"CREATE TABLE {name} (a INT PRIMARY KEY, b VARCHAR(100)) ENGINE=PANDO",
            f"INSERT INTO {name} SELECT seq, REPEAT(seq, 9) FROM seq_1_to_{rows}",
            f"ALTER TABLE {name} ADD COLUMN c INT DEFAULT 7 FIRST",
            f"ALTER TABLE {name} ADD KEY (b)",
            f"ALTER TABLE {name} MODIFY b VARCHAR(100) CHARACTER SET utf8mb4, ALGORITHM=COPY",
            f"RENAME TABLE {name} TO r{name}",
            f"DELETE FROM r{name} WHERE a % 3 = 0",
        ]
        for statement in statements:
            if self._stop_asked.is_set():
                return
            session.query(statement)
        if self.done > 2:
            session.query(f"DROP TABLE IF EXISTS r{self._prefix}{self.done - 3}")
        if self._rng.random() < 0.3:
            session.query(f"TRUNCATE TABLE r{name}")
        self.done += 1


class Load:
    """Writers and DDL at once, in a `with` block."""

    def __init__(self, server, writers, seed, with_ddl=True):
        self.writers = [Writer(server, number + 1000 * (seed % 1000), seed) for number in range(writers)]
        self._others = [Definer(server, seed)] if with_ddl else []

    def __enter__(self):
        for thread in self.writers + self._others:
            thread.start()
        return self

    def __exit__(self, *_):
        for thread in self.writers + self._others:
            thread.stop()

    def problems(self):
        return [thread.error for thread in self.writers + self._others if thread.error]

    def longest(self):
        """Seconds of the slowest transfer since the last call."""
        longest = max(writer.longest for writer in self.writers)
        for writer in self.writers:
            writer.longest = 0.0
        return longest

    def done(self):
        return sum(writer.done for writer in self.writers)
