"""What one client knows of its own rows: the model that runs beside the server.

A client changes rows that nobody else changes, so after each of its transactions it can say exactly
what must be in them. `State` is that knowledge for the last acknowledged commit; a transaction works
on a copy-on-write `Draft` of it, which replaces the state when the commit is acknowledged. When the
server dies before the answer to a commit came, the draft is kept as `in_flight`: after the restart
the rows must be those of the state or those of the draft, in all tables alike.
"""

import zlib


class State:
    """The rows of one client after a commit."""

    def __init__(self):
        self.items = {}    # id -> (version, tag)
        self.parts = {}    # tag -> number of rows
        self.journal = {}  # seq -> (source account, target account, amount)

    def draft(self):
        return Draft(self)


class Draft:
    """Changes of one transaction on top of a state; None means deleted."""

    def __init__(self, base):
        self.base = base
        self.items, self.parts, self.journal = {}, {}, {}

    def savepoint(self):
        return dict(self.items), dict(self.parts), dict(self.journal)

    def rollback_to(self, saved):
        self.items, self.parts, self.journal = (dict(part) for part in saved)

    def item(self, item_id):
        if item_id in self.items:
            return self.items[item_id]
        return self.base.items.get(item_id)

    def part(self, tag):
        if tag in self.parts:
            return self.parts[tag]
        return self.base.parts.get(tag)

    def is_empty(self):
        return not (self.items or self.parts or self.journal)

    def apply(self):
        """Put the changes into the base state."""
        for changes, rows in self._pairs():
            for key, value in changes.items():
                if value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = value

    def applied_copy(self):
        """The state as it would be with the changes."""
        copy = State()
        copy.items, copy.parts, copy.journal = (dict(rows) for _, rows in self._pairs())
        other = Draft(copy)
        other.items, other.parts, other.journal = self.items, self.parts, self.journal
        other.apply()
        return copy

    def _pairs(self):
        return ((self.items, self.base.items), (self.parts, self.base.parts),
                (self.journal, self.base.journal))


_FILLER = "".join(f"{zlib.crc32(str(n).encode()):08x}" for n in range(256))


def item_text(client, item_id, version):
    """The text an item must have: of many lengths, and different for each version."""
    mark = zlib.crc32(f"{client}/{item_id}/{version}".encode())
    start, length = mark % 1024, mark // 1024 % 400
    return f"{client}/{item_id}/{version}/" + _FILLER[start:start + length]
