"""What a client knows of its own rows, and the transaction that may or may not be in them.

A client changes rows that nobody else changes, so it can say what must be there after each of its commits. Of a commit
whose answer did not come both are allowed, all of it or nothing; of a commit that was refused nothing may be there.
"""

_SHOWN_MAX = 3


class State:
    """Rows after a commit: table -> key -> cells."""

    def __init__(self, tables):
        self.rows = {table: {} for table in tables}

    def draft(self):
        return Draft(self)

    def with_draft(self, draft):
        """The rows as they are when the draft is committed."""
        after = State(self.rows)
        for table, rows in self.rows.items():
            merged = {**rows, **draft.changes[table]}
            after.rows[table] = {key: cells for key, cells in merged.items() if cells is not None}
        return after


class Draft:
    """Changes of one transaction; None is a deleted row."""

    def __init__(self, state):
        self._state = state
        self.changes = {table: {} for table in state.rows}

    def get(self, table, key):
        """The cells of a row as the transaction sees it; None if there is none."""
        changes = self.changes[table]
        return changes[key] if key in changes else self._state.rows[table].get(key)

    def put(self, table, key, cells):
        self.changes[table][key] = cells

    def keys(self, table):
        """Keys of the rows there are, in order."""
        changes = self.changes[table]
        kept = {key for key in self._state.rows[table] if key not in changes}
        return sorted(kept | {key for key, cells in changes.items() if cells is not None})

    def savepoint(self):
        return {table: dict(rows) for table, rows in self.changes.items()}

    def rollback_to(self, saved):
        self.changes = {table: dict(rows) for table, rows in saved.items()}


def differences(expected, found):
    """The first few differences between two sets of rows by table, as text."""
    lines = []
    for table in expected:
        one, other = expected[table], found[table]
        keys = [key for key in sorted(one.keys() | other.keys()) if one.get(key) != other.get(key)]
        lines += [f"{table} {key}: expected {one.get(key)}, found {other.get(key)}" for key in keys[:_SHOWN_MAX]]
        if len(keys) > _SHOWN_MAX:
            lines.append(f"{table}: and {len(keys) - _SHOWN_MAX} more")
    return "; ".join(lines)
