"""A client with transactions over all kinds of tables."""

import hashlib
import random

from chaos.model import State, differences
from chaos.schema import ACCOUNTS
from chaos.worker import Worker, Wrong
from sqlkit.client import SqlError

# How its rows are read: columns of the key behind `client`, and the other cells.
_READS = {
    "journal": "seq, source, target, amount",
    "people": "id, email, number, note",
    "parents": "id, name",
    "children": "id, parent, text",
    "documents": "id, version, MD5(body)",
    "secrets": "id, text",
}
_IDS, _JOURNAL_MAX, _DOCUMENTS = 300, 600, 40
_DOCUMENT_BYTES = (100, 16_000, 20_000, 60_000, 250_000)
_NO_PARENT, _DUPLICATE = 1452, 1062


class Writer(Worker):
    """Its rows are its own, but for the accounts: each transfer of its journal changes two."""

    def __init__(self, number, seed, weather):
        super().__init__(f"writer {number}", weather)
        self.number, self.random = number, random.Random(f"{seed}/{number}")
        self.state, self.in_flight = State(_READS), None
        self.moved = dict.fromkeys(range(ACCOUNTS), 0)   # by its acknowledged transfers
        self.commits = self.rollbacks = 0
        self._seq = 0
        self._moving = None        # account -> amount, of the transaction under way
        self._refused_commit = False

    # --- sessions -------------------------------------------------------------------------

    def opened(self, session):
        self.look(session)

    def look(self, session):
        """Its rows are those of the last acknowledged commit, or else those of the one that was on its way."""
        found = self.read(session)
        if found == self.state.rows:
            self.in_flight = None
            return
        if self.in_flight is not None:
            after = self.state.with_draft(self.in_flight)
            if found == after.rows:
                self._accept(after)
                return
        unknown = "" if self.in_flight is None else \
            f" (not those of the commit on its way, either: {differences(after.rows, found)})"
        raise Wrong(f"its rows are not those of its acknowledged commits: {differences(self.state.rows, found)}{unknown}")

    def read(self, session):
        """Its rows in the shape of the model."""
        found = {}
        for table, columns in _READS.items():
            rows = self.query(session, f"SELECT {columns} FROM {table} WHERE client = {self.number}").rows
            found[table] = {int(row[0]): tuple(map(_cell, row[1:])) for row in rows}
        return found

    def finish(self, session):
        self.look(session)

    # --- transactions ---------------------------------------------------------------------

    def step(self, session):
        if self._refused_commit:
            # What was refused must not be there.
            self.look(session)
            self._refused_commit = False
        self._seq += 1
        self._moving = {}
        draft = self.state.draft()
        if self.random.random() < 0.3:
            sql = self.random.choice(_CHANGES)(self, draft)
            if sql:
                self._commit(session, draft, sql)
            return
        self.query(session, "START TRANSACTION")
        for change in self.random.choices(_CHANGES, k=self.random.randint(0, 4)):
            self._change(session, change, draft)
        if self.random.random() < 0.15:
            self.query(session, "SAVEPOINT here")
            saved = draft.savepoint()
            self._change(session, self.random.choice(_CHANGES), draft)
            self._must_be_refused(session)
            self.query(session, "ROLLBACK TO here")
            draft.rollback_to(saved)
        self._transfer(session, draft)
        if self.random.random() < 0.1:
            self.query(session, "ROLLBACK")
            self.rollbacks += 1
        else:
            self._commit(session, draft, "COMMIT")

    def _change(self, session, change, draft):
        sql = change(self, draft)
        if sql:
            self.query(session, sql)

    def _commit(self, session, draft, sql):
        """Until its answer is there, anything may be true; a refusal means that nothing is there."""
        self.in_flight = draft
        try:
            self.query(session, sql)
        except SqlError:
            self.in_flight, self._refused_commit = None, True
            raise
        self._accept(self.state.with_draft(draft))

    def _accept(self, state):
        self.state, self.in_flight = state, None
        for account, amount in (self._moving or {}).items():
            self.moved[account] += amount
        self._moving = None
        self.commits += 1

    def _must_be_refused(self, session):
        """Statements against a constraint."""
        people = sorted(self.state.rows["people"])
        for number, sql in [(_NO_PARENT, f"INSERT INTO children VALUES ({self.number}, -1, -1, 'no parent')")] + \
                [(_DUPLICATE, f"INSERT INTO people (client, id, email, number, note) SELECT client, -1, email, -1, '' "
                              f"FROM people WHERE client = {self.number} LIMIT 1")] * bool(people):
            try:
                affected = self.query(session, sql).affected
            except SqlError as error:
                if error.number != number:
                    raise
                continue
            if affected:
                raise Wrong(f"a statement was done against a constraint: {sql}")

    # --- changes: each alters the draft and gives its statement ----------------------------

    def _insert_people(self, draft):
        fresh = [number for number in {self.random.randrange(_IDS) for _ in range(self.random.randint(1, 10))}
                 if draft.get("people", number) is None]
        rows = []
        for number in fresh:
            note = self._text(200)
            cells = (f"{self.number}-{number}-{self._seq}@example", number * 7 if number % 3 else None, note)
            draft.put("people", number, cells)
            rows.append(f"({self.number}, {number}, '{cells[0]}', {'NULL' if cells[1] is None else cells[1]}, '{note}')")
        return fresh and f"INSERT INTO people (client, id, email, number, note) VALUES {', '.join(rows)}"

    def _update_people(self, draft):
        low = self.random.randrange(_IDS)
        chosen = [number for number in draft.keys("people") if low <= number < low + 20]
        for number in chosen:
            email, other, note = draft.get("people", number)
            draft.put("people", number, (f"{self._seq}-{self.number}-{number}", other, note))
        return chosen and (f"UPDATE people SET email = CONCAT('{self._seq}-{self.number}-', id) "
                           f"WHERE client = {self.number} AND id BETWEEN {low} AND {low + 19}")

    def _delete_people(self, draft):
        low = self.random.randrange(_IDS)
        for number in draft.keys("people"):
            if low <= number < low + 10:
                draft.put("people", number, None)
        return f"DELETE FROM people WHERE client = {self.number} AND id BETWEEN {low} AND {low + 9}"

    def _insert_family(self, draft):
        """Children of a parent that is there, or the parent."""
        parents = draft.keys("parents")
        if not parents or self.random.random() < 0.3:
            number = self.random.randrange(_IDS)
            if draft.get("parents", number) is not None:
                return None
            name = self._text(60)
            draft.put("parents", number, (name,))
            return f"INSERT INTO parents VALUES ({self.number}, {number}, '{name}')"
        parent, rows = self.random.choice(parents), []
        for number in {self.random.randrange(4 * _IDS) for _ in range(8)}:
            if draft.get("children", number) is None:
                text = self._text(100)
                draft.put("children", number, (parent, text))
                rows.append(f"({self.number}, {number}, {parent}, '{text}')")
        return rows and f"INSERT INTO children VALUES {', '.join(rows)}"

    def _delete_parent(self, draft):
        """Its children go with it."""
        parents = draft.keys("parents")
        if not parents:
            return None
        parent = self.random.choice(parents)
        draft.put("parents", parent, None)
        for number in draft.keys("children"):
            if draft.get("children", number)[0] == parent:
                draft.put("children", number, None)
        return f"DELETE FROM parents WHERE client = {self.number} AND id = {parent}"

    def _put_document(self, draft):
        number, size = self.random.randrange(_DOCUMENTS), self.random.choice(_DOCUMENT_BYTES)
        body = self.random.randbytes(size // 2).hex()
        if self.random.random() < 0.5:
            body = (body[:200] * (size // 200 + 1))[:size]
        draft.put("documents", number, (self._seq, hashlib.md5(body.encode()).hexdigest()))
        return f"REPLACE INTO documents VALUES ({self.number}, {number}, {self._seq}, '{body}')"

    def _delete_document(self, draft):
        number = self.random.randrange(_DOCUMENTS)
        if draft.get("documents", number) is not None:
            draft.put("documents", number, None)
        return f"DELETE FROM documents WHERE client = {self.number} AND id = {number}"

    def _put_secrets(self, draft):
        numbers, rows = {self.random.randrange(_IDS) for _ in range(5)}, []
        for number in numbers:
            text = self._text(200)
            draft.put("secrets", number, (text,))
            rows.append(f"({self.number}, {number}, '{text}')")
        return f"INSERT INTO secrets VALUES {', '.join(rows)} ON DUPLICATE KEY UPDATE text = VALUES(text)"

    def _forget_journal(self, draft):
        """The oldest half, once it is long."""
        keys = draft.keys("journal")
        if len(keys) < _JOURNAL_MAX:
            return None
        last = keys[len(keys) // 2]
        for seq in keys:
            if seq <= last:
                draft.put("journal", seq, None)
        return f"DELETE FROM journal WHERE client = {self.number} AND seq <= {last}"

    def _transfer(self, session, draft):
        """From one account to another, at times in an order in which transfers deadlock."""
        source, target = self.random.sample(range(ACCOUNTS), 2)
        if self.random.random() < 0.8:
            source, target = min(source, target), max(source, target)
        amount = self.random.randint(-100, 100)
        for account, change in ((source, -amount), (target, amount)):
            self.query(session, f"UPDATE accounts SET balance = balance + ({change}) WHERE id = {account}")
            self._moving[account] = self._moving.get(account, 0) + change
        self.query(session, f"INSERT INTO journal VALUES ({self.number}, {self._seq}, {source}, {target}, {amount})")
        draft.put("journal", self._seq, (source, target, amount))

    def _text(self, length_max):
        return 't' + self.random.randbytes(self.random.randint(4, length_max // 2 - 1)).hex()


_CHANGES = [Writer._insert_people, Writer._insert_people, Writer._update_people, Writer._delete_people, Writer._insert_family,
            Writer._insert_family, Writer._insert_family, Writer._delete_parent, Writer._put_document, Writer._put_document,
            Writer._delete_document, Writer._put_secrets, Writer._forget_journal]


def _cell(value):
    if value is None:
        return None
    text = value.decode("utf-8", "replace")
    # A sum of 32 hexadecimal digits may have no letter.
    return int(text) if len(text) < 32 and text.lstrip("-").isdigit() else text
