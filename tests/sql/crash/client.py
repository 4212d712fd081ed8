"""One client of the crash test: random transactions, and the record of what was acknowledged."""

import random
import threading

from crash.model import State, item_text
from crash.schema import ACCOUNTS, DATABASE
from sqlkit.client import ConnectionLost, SqlError

_DEADLOCK, _LOCK_TIMEOUT = 1213, 1205
_ITEM_IDS, _PARTS_TAGS_KEPT = 3000, 400


class UnexpectedAnswer(Exception):
    """The server's answer contradicts the model, before any crash."""


class Client:
    """Its state and model outlive the connection and the server."""

    def __init__(self, number, seed):
        self.number, self.random = number, random.Random(f"{seed}/{number}")
        self.state, self.in_flight = State(), None
        self.next_seq = 1
        self.commits = self.rollbacks = self.deadlocks = 0
        self.error = None
        self._session = self._thread = None
        self._stop = False

    def start(self, server):
        """Work in a thread until the server goes away, or `stop`."""
        self._stop = False
        self._session = server.connect(DATABASE)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self):
        """Let it end its transaction."""
        self._stop = True

    def join(self):
        self._thread.join()
        self._session.close()

    def _work(self):
        try:
            while not self._stop:
                self._transaction()
        except ConnectionLost:
            pass
        except Exception as error:  # the main thread reports it
            self.error = error

    # --- transactions ---------------------------------------------------------------------

    def _transaction(self):
        seq, self.next_seq = self.next_seq, self.next_seq + 1
        draft = self.state.draft()
        try:
            if self.random.random() < 0.25:
                self._single_statement(draft, seq)
            else:
                self._several_statements(draft, seq)
        except SqlError as error:
            if error.number not in (_DEADLOCK, _LOCK_TIMEOUT):
                raise
            self.deadlocks += 1
            self._query("ROLLBACK")

    def _single_statement(self, draft, seq):
        """Autocommit: the statement is its own commit."""
        sql = self.random.choice([self._insert_items, self._update_items, self._delete_items,
                                  self._insert_parts])(draft, seq)
        if sql:
            self._commit(draft, *sql)

    def _several_statements(self, draft, seq):
        self._query("START TRANSACTION")
        steps = [self._insert_items, self._update_items, self._delete_items, self._insert_parts,
                 self._delete_parts]
        for step in self.random.choices(steps, k=self.random.randint(0, 4)):
            self._step(step, draft, seq)
        if self.random.random() < 0.15:
            self._query("SAVEPOINT here")
            saved = draft.savepoint()
            for step in self.random.choices(steps, k=2):
                self._step(step, draft, seq)
            self._query("ROLLBACK TO here")
            draft.rollback_to(saved)
        self._transfer(draft, seq)
        if self.random.random() < 0.1:
            self._query("ROLLBACK")
            self.rollbacks += 1
        else:
            self._commit(draft, "COMMIT", 0)

    def _step(self, step, draft, seq):
        sql = step(draft, seq)
        if sql:
            self._query(*sql)

    def _query(self, sql, affected=None):
        result = self._session.query(sql)
        if affected is not None and result.affected != affected:
            raise UnexpectedAnswer(f"client {self.number}: {result.affected} rows affected, "
                                   f"expected {affected}: {sql[:300]}")

    def _commit(self, draft, sql, affected):
        """Run the statement that commits. Until its answer is there, anything may be true."""
        self.in_flight = draft
        try:
            self._query(sql, affected)
        except SqlError:
            self.in_flight = None
            raise
        draft.apply()
        self.in_flight = None
        self.commits += 1

    # --- steps: change the draft, give the statement and how many rows it must affect ------

    def _insert_items(self, draft, seq):
        wanted = {self.random.randrange(_ITEM_IDS) for _ in range(self.random.randint(1, 12))}
        fresh = [item_id for item_id in wanted if draft.item(item_id) is None]
        if not fresh:
            return None
        for item_id in fresh:
            draft.items[item_id] = (seq, seq)
        rows = ", ".join(f"({self.number}, {item_id}, {seq}, {seq}, '{item_text(self.number, item_id, seq)}')"
                         for item_id in fresh)
        return f"INSERT INTO items VALUES {rows}", len(fresh)

    def _update_items(self, draft, seq):
        """A range of items gets a new version (and so new keys), some a tag of NULL."""
        first = self.random.randrange(_ITEM_IDS)
        present = [item_id for item_id in range(first, first + 25)
                   if draft.item(item_id) not in (None, (seq, None))]
        present = present[:8]
        if not present:
            return None
        texts = " ".join(f"WHEN {item_id} THEN '{item_text(self.number, item_id, seq)}'" for item_id in present)
        for item_id in present:
            draft.items[item_id] = (seq, None)
        numbers = ", ".join(map(str, present))
        return (f"UPDATE items SET version = {seq}, tag = NULL, text = CASE id {texts} END "
                f"WHERE client = {self.number} AND id IN ({numbers})", len(present))

    def _delete_items(self, draft, _seq):
        first = self.random.randrange(_ITEM_IDS)
        last = first + self.random.choice([0, 1, 5, 20])
        present = [item_id for item_id in range(first, last + 1) if draft.item(item_id) is not None]
        for item_id in present:
            draft.items[item_id] = None
        return f"DELETE FROM items WHERE client = {self.number} AND id BETWEEN {first} AND {last}", len(present)

    def _insert_parts(self, draft, seq):
        if draft.part(seq) is not None:
            return None
        count = self.random.choice([1, 2, 3, 7, 20, 400]) if self.random.random() < 0.2 else 4
        draft.parts[seq] = count
        rows = ", ".join(f"({self.number}, {seq}, {n}, '{item_text(self.number, seq, n)[:200]}')"
                         for n in range(count))
        return f"INSERT INTO parts VALUES {rows}", count

    def _delete_parts(self, draft, _seq):
        tags = [tag for tag in draft.base.parts if draft.part(tag) is not None][:20]
        if not tags or len(draft.base.parts) < _PARTS_TAGS_KEPT and self.random.random() < 0.7:
            return None
        tag = self.random.choice(tags)
        count = draft.part(tag)
        draft.parts[tag] = None
        return f"DELETE FROM parts WHERE client = {self.number} AND tag = {tag}", count

    def _transfer(self, draft, seq):
        """Takes from one table, gives to another, notes it in a third. Now and then it gives before it
        takes, so that transactions can deadlock."""
        source, target = self.random.randrange(ACCOUNTS), self.random.randrange(ACCOUNTS)
        amount = self.random.randint(1, 100)
        changes = [f"UPDATE debtors SET balance = balance - {amount}, moves = moves + 1 WHERE id = {source}",
                   f"UPDATE creditors SET balance = balance + {amount}, moves = moves + 1 WHERE id = {target}"]
        if self.random.random() < 0.2:
            changes.reverse()
        for sql in changes:
            self._query(sql, 1)
        self._query(f"INSERT INTO journal VALUES ({self.number}, {seq}, {source}, {target}, {amount})", 1)
        draft.journal[seq] = (source, target, amount)
