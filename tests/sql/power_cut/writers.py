"""Clients that write to tables of all of them while the tables are altered: transfers, changes of rows, large values.

A transaction of a writer moves an amount from an account of one table to one of another, writes a line of its journal and
changes some of its items. After a crash the journal says which transactions there are; everything else follows.
"""

import random
import threading

from power_cut.disk import BEGUN, DONE
from sqlkit.client import SqlError

DATABASE = "shared"
TABLES = ("debtors", "creditors", "journal", "items")
_ACCOUNTS, _BALANCE = 40, 1000
_RETRY = (1205, 1213)
_SIZES = (0, 3, 900, 17_000, 60_000)


def create(session, engine):
    session.query(f"CREATE DATABASE {DATABASE}")
    for table in ("debtors", "creditors"):
        session.query(f"CREATE TABLE {DATABASE}.{table} (id INT PRIMARY KEY, balance INT NOT NULL, KEY (balance)) ENGINE={engine}")
        rows = ", ".join(f"({number}, {_BALANCE})" for number in range(_ACCOUNTS))
        session.query(f"INSERT INTO {DATABASE}.{table} VALUES {rows}")
    session.query(f"CREATE TABLE {DATABASE}.journal (writer INT, n INT, debtor INT, creditor INT, amount INT, body MEDIUMBLOB, "
                  f"tag VARCHAR(40), PRIMARY KEY (writer, n), KEY (tag)) ENGINE={engine} PARTITION BY HASH (writer) PARTITIONS 3")
    session.query(f"CREATE TABLE {DATABASE}.items (writer INT, id INT, version INT, body MEDIUMTEXT, PRIMARY KEY (writer, id), "
                  f"KEY (version), KEY (body(20))) ENGINE={engine}")


class Writer:
    """Its `history` has what each transaction did, from number 1 on."""

    def __init__(self, number, seed):
        self.number = number
        self._random = random.Random(f"{seed}/writer {number}")
        self._ids = 0
        self._live = []
        self.history = []
        self.error = self._thread = None

    def start(self, server, disk, over):
        self._thread = threading.Thread(target=self._work, args=(server, disk, over), daemon=True)
        self._thread.start()

    def join(self):
        self._thread.join()

    def _work(self, server, disk, over):
        try:
            with server.connect(DATABASE, timeout=60) as session:
                while not over.is_set():
                    self._transaction(session, disk)
        except Exception as error:  # the main thread reports it
            self.error = f"writer {self.number}: {error}"

    def _transaction(self, session, disk):
        number = len(self.history) + 1
        line = (self._random.randrange(_ACCOUNTS), self._random.randrange(_ACCOUNTS), self._random.randint(1, 50),
                self._random.choice(_SIZES))
        items = self._items(number)
        self.history.append((line, items))
        disk.mark(self.number, number, BEGUN)
        while True:
            try:
                for sql in self._statements(number, line, items):
                    session.query(sql)
                break
            except SqlError as error:
                if error.number not in _RETRY:
                    raise
                session.query("ROLLBACK")
        disk.mark(self.number, number, DONE)

    def _items(self, number):
        """Changes: id -> (version, size of the text), or None for a deleted one."""
        changes = {}
        for _ in range(self._random.choice([0, 1, 1, 5])):
            if self._live and self._random.random() < 0.6:
                name = self._random.choice(self._live)
            else:
                self._ids += 1
                name = self._ids
            if name in self._live and self._random.random() < 0.3:
                changes[name] = None
            else:
                changes[name] = (number, self._random.choice(_SIZES))
        for name, change in changes.items():
            if name in self._live and change is None:
                self._live.remove(name)
            elif name not in self._live and change is not None:
                self._live.append(name)
        return changes

    def _statements(self, number, line, items):
        debtor, creditor, amount, size = line
        yield "START TRANSACTION"
        yield f"UPDATE debtors SET balance = balance - {amount} WHERE id = {debtor}"
        yield f"UPDATE creditors SET balance = balance + {amount} WHERE id = {creditor}"
        yield (f"INSERT INTO journal (writer, n, debtor, creditor, amount, body, tag) VALUES ({self.number}, {number}, {debtor}, "
               f"{creditor}, {amount}, REPEAT('{_letter(number)}', {size}), 'tag {number}')")
        for name, change in items.items():
            if change is None:
                yield f"DELETE FROM items WHERE writer = {self.number} AND id = {name}"
            else:
                yield (f"INSERT INTO items (writer, id, version, body) VALUES ({self.number}, {name}, {change[0]}, "
                       f"REPEAT('{_letter(change[0])}', {change[1]})) ON DUPLICATE KEY UPDATE version = VALUES(version), "
                       "body = VALUES(body)")
        yield "COMMIT"


def _letter(number):
    return chr(ord("a") + number % 26)


def problems(session, writers, known):
    """What does not hold; `known` as of Recording.known."""
    found = []
    balances = {"debtors": [_BALANCE] * _ACCOUNTS, "creditors": [_BALANCE] * _ACCOUNTS}
    for writer in writers:
        done, begun = known.get(writer.number, (0, 0))
        lines = {int(row[0]): row[1:] for row in session.query(
            "SELECT n, debtor, creditor, amount, LENGTH(body), body = REPEAT(CHAR(97 + n % 26), LENGTH(body)), tag "
            f"FROM {DATABASE}.journal WHERE writer = {writer.number}").rows}
        expected = {n: _line_cells(n, writer.history[n - 1][0]) for n in range(1, begun + 1)}
        last = max(lines, default=0)
        if not done <= last <= begun:
            found.append(f"writer {writer.number}: {last} transactions are there, {done} acknowledged, {begun} begun")
        wrong = [n for n in range(1, min(last, begun) + 1) if lines.get(n) != expected[n]]
        if wrong or len(lines) != last:
            n = wrong[0] if wrong else 0
            found.append(f"writer {writer.number}: {len(wrong)} wrong lines, the first {n}: {lines.get(n)}, not {expected.get(n)}")
        for n in lines:
            if n <= begun:
                debtor, creditor, amount, _ = writer.history[n - 1][0]
                balances["debtors"][debtor] -= amount
                balances["creditors"][creditor] += amount
        found += _items_hold(session, writer, min(last, begun))
    for table, expected in balances.items():
        there = [int(row[0]) for row in session.query(f"SELECT balance FROM {DATABASE}.{table} ORDER BY id").rows]
        if there != expected:
            found.append(f"{table}: the balances are not those of the journal")
    return found


def _line_cells(number, line):
    return (*(str(value).encode() for value in line), b"1", f"tag {number}".encode())


def _items_hold(session, writer, last):
    items = {}
    for _, changes in writer.history[:last]:
        items.update(changes)
    expected = {name: change for name, change in items.items() if change is not None}
    rows = session.query("SELECT id, version, LENGTH(body), body = REPEAT(CHAR(97 + version % 26), LENGTH(body)) "
                         f"FROM {DATABASE}.items WHERE writer = {writer.number}").rows
    there = {int(row[0]): (int(row[1]), int(row[2])) for row in rows}
    if there != expected or any(row[3] != b"1" for row in rows):
        return [f"writer {writer.number}: items are {len(there)}, not {len(expected)}, or have other values"]
    return []
