"""A client that changes definitions: of the load's own tables, and of tables that come and go."""

import copy
import random

from chaos.worker import Worker, Wrong
from sqlkit.client import SqlError

# Columns and keys that are added to tables of the load, and dropped again; the clients name the columns they mean.
_COLUMNS = {("people", "extra"): "INT NOT NULL DEFAULT 7", ("people", "more"): "VARCHAR(20) DEFAULT 'more'"}
_KEYS = {("documents", "size"): "KEY {name} (version, client)", ("people", "again"): "UNIQUE KEY {name} (note(20), client, id)",
         ("journal", "amount"): "KEY {name} (amount)", ("secrets", "twice"): "KEY {name} (text(10), id)"}
_TABLES_MAX = 5
_NOT_INSTANT = 1845
_PARTITIONS = " PARTITION BY HASH (id) PARTITIONS 3"


class Definer(Worker):
    """State: which of the columns and keys there are, and table -> ids of its rows."""

    def __init__(self, seed, weather, engine):
        super().__init__("definer", weather)
        self._random, self._engine = random.Random(f"{seed}/definer"), engine
        self._there = {"columns": set(), "keys": set(), "tables": {}}
        self._unknown = None
        self._emptying = None   # a table whose TRUNCATE has no answer
        self._next = 0
        self.changes = 0

    def opened(self, session):
        self.look(session)

    def finish(self, session):
        self.look(session)

    # --- what must be there ---------------------------------------------------------------

    def look(self, session):
        if self._emptying:
            # Of a partitioned table some partitions may be empty and others not (docs/decisions/0015), and the binary
            # log may not have the statement: it is repeated.
            self.query(session, f"TRUNCATE TABLE {self._emptying}")
            self._there["tables"][self._emptying], self._emptying = set(), None
        found = self._read(session)
        if found == self._there:
            self._unknown = None
        elif found == self._unknown:
            self._there, self._unknown = self._unknown, None
        else:
            raise Wrong(f"definitions: found {_short(found)}, acknowledged {_short(self._there)}, "
                        f"on its way {_short(self._unknown)}")

    def _read(self, session):
        tables = {table for table, _ in [*_COLUMNS, *_KEYS]}
        texts = {table: self._definition(session, table) for table in tables}
        columns = {(table, column) for table, column in _COLUMNS if f"\n  `{column}` " in texts[table]}
        keys = {(table, key) for table, key in _KEYS if f"KEY `{key}` (" in texts[table]}
        tables = {}
        for (name,) in self.query(session, "SHOW TABLES LIKE 'coming\\_%'").rows:
            name = name.decode()
            rows = self.query(session, f"SELECT id, text = MD5(id) FROM {name}").rows
            if any(right != b"1" for _, right in rows):
                raise Wrong(f"{name}: rows with wrong content")
            tables[name] = {int(number) for number, _ in rows}
        return {"columns": columns, "keys": keys, "tables": tables}

    def _definition(self, session, table):
        # Not from information_schema: a table that it cannot open, for want of a file, has no columns there, and nothing is said.
        return self.query(session, f"SHOW CREATE TABLE {table}").rows[0][1].decode()

    # --- statements -----------------------------------------------------------------------

    def step(self, session):
        if self._unknown is not None or self._emptying:
            self.look(session)
        after = copy.deepcopy(self._there)
        names = list(after["tables"])
        steps = [self._column, self._key, self._insert, self._rename, self._truncate]
        steps += [self._drop] * 2 if len(names) >= _TABLES_MAX else [self._create] * 2
        step = self._random.choice(steps)
        if not names and step in (self._insert, self._rename, self._truncate, self._drop):
            step = self._create
        sql = step(after, self._random.choice(names) if names else None)
        self._unknown = after
        try:
            self.query(session, sql)
        except SqlError as error:
            # It is refused as a whole, or TRUNCATE is repeated.
            self._unknown = None
            self.look(session)
            if error.number == _NOT_INSTANT:
                # After some thousand instant changes the rows have to be written anew once.
                self.query(session, f"ALTER TABLE {sql.split()[2]} FORCE")
                return
            raise
        self._there, self._unknown, self._emptying = after, None, None
        self.changes += 1

    def _column(self, after, _name):
        place = self._random.choice(sorted(_COLUMNS))
        table, column = place
        if place in after["columns"]:
            after["columns"].remove(place)
            return f"ALTER TABLE {table} DROP COLUMN {column}, ALGORITHM=INSTANT"
        after["columns"].add(place)
        return f"ALTER TABLE {table} ADD COLUMN {column} {_COLUMNS[place]}, ALGORITHM=INSTANT"

    def _key(self, after, _name):
        place = self._random.choice(sorted(_KEYS))
        table, key = place
        if place in after["keys"]:
            after["keys"].remove(place)
            return f"ALTER TABLE {table} DROP KEY {key}, ALGORITHM=INPLACE"
        after["keys"].add(place)
        return f"ALTER TABLE {table} ADD {_KEYS[place].format(name=key)}, ALGORITHM=INPLACE"

    def _create(self, after, _name):
        name = self._fresh_name()
        after["tables"][name] = set()
        partitions = _PARTITIONS if self._random.random() < 0.3 else ""
        return (f"CREATE TABLE {name} (id INT PRIMARY KEY, text VARCHAR(100) NOT NULL, KEY text (text)) "
                f"ENGINE={self._engine}{partitions}")

    def _fresh_name(self):
        self._next += 1
        return f"coming_{self._next}"

    def _insert(self, after, name):
        ids = after["tables"][name]
        first = max(ids, default=0) + 1
        new = range(first, first + self._random.choice([1, 10, 500]))
        ids.update(new)
        return f"INSERT INTO {name} (id, text) VALUES " + ", ".join(f"({number}, MD5({number}))" for number in new)

    def _rename(self, after, name):
        new = self._fresh_name()
        after["tables"][new] = after["tables"].pop(name)
        return f"RENAME TABLE {name} TO {new}"

    def _truncate(self, after, name):
        after["tables"][name] = set()
        self._emptying = name
        return f"TRUNCATE TABLE {name}"

    def _drop(self, after, name):
        del after["tables"][name]
        return f"DROP TABLE {name}"


def _short(state):
    if state is None:
        return None
    return {**state, "tables": {name: f"{len(ids)} rows" for name, ids in sorted(state["tables"].items())}}
