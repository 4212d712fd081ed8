"""Random statements over the tables of one client: which tables there are, and what can be done to them."""

import dataclasses

_TABLES_MAX = 6
_TYPES = {
    "number": ["INT", "BIGINT", "MEDIUMINT", "INT DEFAULT 7"],
    "text": ["VARCHAR(40)", "VARCHAR(90) CHARACTER SET latin1", "VARCHAR(40) COLLATE utf8mb4_bin", "VARCHAR(60) DEFAULT 'abc'",
             "VARCHAR(50) COLLATE utf8mb4_unicode_ci"],
    "choice": ["ENUM('a','b','c')", "ENUM('c','b','a')", "ENUM('b','a','c','d')"],
    "large": ["MEDIUMBLOB"],
    "reference": ["INT", "BIGINT"],
}
_KINDS = ["choice", "large", "number", "text"]
_LARGE_SIZES = (10, 20_000, 50_000)
_RANGES = (100, 200, 300, 400)


@dataclasses.dataclass
class Table:
    """What the steps have to know of a table. `ranges`: name of a partition -> its upper bound."""
    columns: dict
    keys: list
    ranges: dict = None
    hashed: bool = False
    sequence: bool = False
    twin_of: tuple = None
    parent: bool = False

    def copy(self, **changes):
        new = dataclasses.replace(self, columns=dict(self.columns), keys=list(self.keys),
                                  ranges=dict(self.ranges) if self.ranges is not None else None)
        return dataclasses.replace(new, **changes)


@dataclasses.dataclass
class Step:
    kind: str
    sql: str
    done: object
    parts: bool = False
    vanish: tuple = None


def _nothing():
    return None


class Steps:
    """Gives one statement after the other; `done` of a step says that it was carried out."""

    def __init__(self, databases, engine, rng, load_file, all_kinds):
        self._databases, self._engine, self._random, self._load_file = databases, engine, rng, load_file
        self._all_kinds = all_kinds
        self._there = set(databases)
        self._tables = {}
        self._fresh = 0

    def next(self):
        while True:
            step = self._random.choices(_STEPS, _WEIGHTS)[0](self)
            if step is not None:
                return step

    def keep_only(self, tables, databases):
        """Forgets tables that are not there any more."""
        self._tables = {key: table for key, table in self._tables.items() if key in tables}
        self._there = databases

    # --- names ----------------------------------------------------------------------------

    def _name(self, what):
        self._fresh += 1
        return f"{what}{self._fresh}"

    def _place(self, what="t"):
        # Names come again, so that what one table leaves behind is in the way of the next.
        database = self._random.choice(sorted(self._there))
        if self._random.random() < 0.5:
            free = [f"again{n}" for n in range(3) if (database, f"again{n}") not in self._tables]
            if free:
                return database, self._random.choice(free)
        return database, self._name(what)

    def _pick(self, wanted=lambda table: not table.sequence):
        keys = sorted(key for key, table in self._tables.items() if wanted(table))
        return self._random.choice(keys) if keys else None

    def _step(self, kind, sql, changes=None, **how):
        """`changes`: key -> Table, or None for a table that goes."""
        def done():
            for key, table in (changes or {}).items():
                if table is None:
                    self._tables.pop(key, None)
                else:
                    self._tables[key] = table
        return Step(kind, sql, done, **how)

    # --- new tables -----------------------------------------------------------------------

    def _column(self, kind):
        return self._random.choice(_TYPES[kind])

    def _definition(self):
        """Columns and keys of a new table, as text and as Table."""
        columns = {self._name("c"): self._random.choice(_KINDS) for _ in range(self._random.randint(1, 4))}
        parts = ["id INT NOT NULL"] + [f"{name} {self._column(kind)}" for name, kind in columns.items()]
        parts.append("PRIMARY KEY (id)")
        keys = []
        for name, kind in columns.items():
            if kind != "large" and self._random.random() < 0.5:
                keys.append(self._name("k"))
                parts.append(f"KEY {keys[-1]} ({name})")
        return f"({', '.join(parts)}) ENGINE={self._engine}", Table(columns, keys)

    def _partitions(self, table):
        how = self._random.choice(["range", "range", "hash", "key"])
        if how == "range":
            table.ranges = {f"p{bound}": bound for bound in _RANGES[:2]}
            parts = ", ".join(f"PARTITION {name} VALUES LESS THAN ({bound})" for name, bound in table.ranges.items())
            return f" PARTITION BY RANGE (id) ({parts})"
        table.hashed = True
        return f" PARTITION BY {how.upper()} (id) PARTITIONS {self._random.randint(1, 3)}"

    def _create(self):
        if len(self._tables) >= _TABLES_MAX or not self._there:
            return None
        key = self._place()
        text, table = self._definition()
        kind = "create"
        if self._all_kinds and self._random.random() < 0.35:
            text, kind = text + self._partitions(table), "create partitioned"
        return self._step(kind, f"CREATE TABLE {_sql(key)} {text}", {key: table})

    def _create_like(self):
        old = self._pick()
        if old is None or len(self._tables) >= _TABLES_MAX:
            return None
        key = self._place()
        return self._step("create like", f"CREATE TABLE {_sql(key)} LIKE {_sql(old)}",
                          {key: self._tables[old].copy(twin_of=None, parent=False)})

    def _create_select(self):
        old = self._pick()
        if old is None or len(self._tables) >= _TABLES_MAX:
            return None
        key = self._place()
        table = self._tables[old].copy(keys=[], ranges=None, hashed=False, twin_of=None, parent=False)
        return self._step("create select", f"CREATE TABLE {_sql(key)} (PRIMARY KEY (id)) ENGINE={self._engine} SELECT * FROM "
                          f"{_sql(old)}", {key: table})

    def _replace(self):
        key, other = self._pick(), self._pick()
        if key is None or self._tables[key].parent or not self._is_whole(key):
            return None
        if other != key and self._random.random() < 0.4:
            table = self._tables[other].copy(keys=[], ranges=None, hashed=False, twin_of=None, parent=False)
            return self._step("create or replace select", f"CREATE OR REPLACE TABLE {_sql(key)} (PRIMARY KEY (id)) "
                              f"ENGINE={self._engine} SELECT * FROM {_sql(other)}", {key: table}, vanish=key)
        text, table = self._definition()
        return self._step("create or replace", f"CREATE OR REPLACE TABLE {_sql(key)} {text}", {key: table}, vanish=key)

    def _drop(self):
        if len(self._tables) < _TABLES_MAX - 2:
            return None
        keys = sorted(self._tables)
        chosen = self._random.sample(keys, self._random.choice([1, 1, 2]) if self._all_kinds else 1)
        if any(self._tables[key].sequence for key in chosen):
            return self._step("drop sequence", f"DROP TABLE {_sql(chosen[0])}", {chosen[0]: None})
        names = ", ".join(_sql(key) for key in chosen)
        return self._step("drop", f"DROP TABLE {names}", {key: None for key in chosen}, parts=len(chosen) > 1)

    def _is_whole(self, key):
        """Whether the server changes it in one step, or it is to be tried all the same."""
        return self._all_kinds or key is None or not (self._tables[key].hashed or self._tables[key].ranges)

    def _truncate(self):
        key = self._pick()
        if not self._is_whole(key):
            return None
        return key and self._step("truncate", f"TRUNCATE TABLE {_sql(key)}")

    # --- names of tables --------------------------------------------------------------------

    def _rename(self):
        key = self._pick(lambda table: True)
        if key is None or not self._there:
            return None
        new = self._place("r")
        return self._step("rename", f"RENAME TABLE {_sql(key)} TO {_sql(new)}", {key: None, new: self._tables[key]})

    def _swap(self):
        one, two = self._pick(), self._pick()
        if one is None or one == two or not self._is_whole(one) or not self._is_whole(two):
            return None
        between = (one[0], "between")
        sql = (f"RENAME TABLE {_sql(one)} TO {_sql(between)}, {_sql(two)} TO {_sql(one)}, {_sql(between)} TO {_sql(two)}")
        return self._step("swap", sql, {one: self._tables[two], two: self._tables[one]})

    def _drop_database(self):
        if len(self._there) < 2 or self._random.random() < 0.4:
            return None
        database = self._random.choice(sorted(self._there))
        if not all(self._is_whole(key) for key in self._tables if key[0] == database):
            return None
        return self._step("drop database", f"DROP DATABASE {database}", parts=True)

    def _create_database(self):
        gone = [database for database in self._databases if database not in self._there]
        return self._step("create database", f"CREATE DATABASE {self._random.choice(gone)}") if gone else None

    # --- ALTER TABLE ------------------------------------------------------------------------

    def _alter(self, kind, key, clauses, table, new=None):
        if new is not None:
            return self._step(kind, f"ALTER TABLE {_sql(key)} {clauses}, RENAME TO {_sql(new)}", {key: None, new: table})
        return self._step(kind, f"ALTER TABLE {_sql(key)} {clauses}", {key: table})

    def _alter_instant(self):
        key = self._pick()
        if key is None:
            return None
        table = self._tables[key].copy(twin_of=None)
        names = sorted(table.columns)
        what = self._random.choice(["add", "add", "drop", "move", "rename"])
        if what == "add" or not names:
            kind, name = self._random.choice(_KINDS), self._name("c")
            clauses = f"ADD COLUMN {name} {self._column(kind)}" + self._random.choice(["", " FIRST", " AFTER id"])
            table.columns[name] = kind
        elif what == "drop":
            name = self._random.choice(names)
            clauses = f"DROP COLUMN {name}"
            del table.columns[name]
        elif what == "move":
            name = self._random.choice(names)
            clauses = f"MODIFY {name} {_TYPES[table.columns[name]][0]} AFTER id"
        else:
            name, new = self._random.choice(names), self._name("c")
            clauses = f"RENAME COLUMN {name} TO {new}"
            table.columns[new] = table.columns.pop(name)
        renamed = self._place("r") if self._all_kinds and self._there and self._random.random() < 0.15 else None
        return self._alter(f"alter: {what}", key, clauses, table, renamed)

    def _alter_key(self):
        key = self._pick()
        if key is None:
            return None
        table = self._tables[key].copy(twin_of=None)
        names = [name for name, kind in sorted(table.columns.items()) if kind != "large"]
        if table.keys and self._random.random() < 0.5:
            name = self._random.choice(table.keys)
            table.keys.remove(name)
            return self._alter("alter: drop key", key, f"DROP KEY {name}", table)
        if not names:
            return None
        table.keys.append(self._name("k"))
        unique = self._random.random() < 0.3
        columns = f"{self._random.choice(names)}, id" if unique else self._random.choice(names)
        clauses = f"ADD {'UNIQUE ' if unique else ''}KEY {table.keys[-1]} ({columns})"
        return self._alter("alter: add key", key, clauses, table)

    def _alter_copy(self):
        key = self._pick()
        if key is None:
            return None
        table = self._tables[key].copy(twin_of=None)
        names = sorted(table.columns)
        renamed = self._place("r") if self._all_kinds and self._there and self._random.random() < 0.15 else None
        if not names or self._random.random() < 0.3:
            how = self._random.choice(["FORCE", "FORCE, ALGORITHM=COPY", f"ENGINE={self._engine}"])
            return self._alter("alter: force", key, how, table, renamed)
        name = self._random.choice(names)
        kind = table.columns[name]
        if kind == "number" and self._random.random() < 0.3:
            table.columns[name] = kind = "text"
        clauses = f"MODIFY {name} {self._column(kind)}" + self._random.choice(["", ", ALGORITHM=COPY"])
        return self._alter("alter: type", key, clauses, table, renamed)

    # --- partitions -------------------------------------------------------------------------

    def _partition(self):
        key = self._pick(lambda table: table.ranges is not None)
        if key is None:
            return None
        table = self._tables[key].copy(twin_of=None)
        names = list(table.ranges)
        last = max(table.ranges.values())
        what = self._random.choice(["add", "add", "drop", "truncate", "reorganize", "rebuild", "convert", "exchange", "exchange"])
        if what == "add":
            name = self._name("p")
            table.ranges[name] = last + 100
            return self._alter("add partition", key, f"ADD PARTITION (PARTITION {name} VALUES LESS THAN ({last + 100}))", table)
        name = self._random.choice(names)
        if what == "drop" and len(names) > 1:
            del table.ranges[name]
            return self._alter("drop partition", key, f"DROP PARTITION {name}", table)
        if what == "truncate":
            return self._alter("truncate partition", key, f"TRUNCATE PARTITION {name}", table)
        if what == "reorganize":
            return self._reorganize(key, table, names)
        if what == "rebuild":
            return self._alter("rebuild partition", key, f"REBUILD PARTITION {name}", table)
        if what == "convert" and len(names) > 1 and self._there:
            new = self._place("v")
            del table.ranges[name]
            return self._step("convert partition", f"ALTER TABLE {_sql(key)} CONVERT PARTITION {name} TO TABLE {_sql(new)}",
                              {key: table, new: table.copy(ranges=None)})
        return self._exchange(key, table, name)

    def _reorganize(self, key, table, names):
        bounds = sorted(table.ranges.values())
        if len(bounds) > 2 and self._random.random() < 0.5:
            old = [name for name in names if table.ranges[name] in bounds[-2:]]
            new = {self._name("p"): bounds[-1]}
        else:
            old = [self._random.choice(names)]
            upper = table.ranges[old[0]]
            middle = (max([bound for bound in bounds if bound < upper], default=upper - 50) + upper) // 2
            new = {self._name("p"): middle, self._name("p"): upper}
        old.sort(key=lambda name: table.ranges[name])
        for name in old:
            del table.ranges[name]
        table.ranges.update(new)
        parts = ", ".join(f"PARTITION {name} VALUES LESS THAN ({bound})" for name, bound in new.items())
        return self._alter("reorganize partition", key, f"REORGANIZE PARTITION {', '.join(old)} INTO ({parts})", table)

    def _exchange(self, key, table, name):
        twin = self._pick(lambda other: other.twin_of == (key, tuple(table.columns.items()), tuple(table.keys)))
        if twin is not None:
            return self._step("exchange partition", f"ALTER TABLE {_sql(key)} EXCHANGE PARTITION {name} WITH TABLE {_sql(twin)}")
        twin = self._pick(lambda other: other.twin_of == ("like", key) and other.ranges)
        if twin is not None:
            new = self._tables[twin].copy(ranges=None, twin_of=(key, tuple(table.columns.items()), tuple(table.keys)))
            return self._step("remove partitioning", f"ALTER TABLE {_sql(twin)} REMOVE PARTITIONING", {twin: new})
        if not self._there:
            return None
        twin = self._place("w")
        return self._step("create like", f"CREATE TABLE {_sql(twin)} LIKE {_sql(key)}", {twin: table.copy(twin_of=("like", key))})

    def _hash_partitions(self):
        key = self._pick(lambda table: table.hashed)
        if key is None:
            return None
        table = self._tables[key].copy(twin_of=None)
        if self._random.random() < 0.6:
            return self._alter("add hash partition", key, "ADD PARTITION PARTITIONS 1", table)
        return self._alter("coalesce partition", key, "COALESCE PARTITION 1", table)

    # --- keys between tables, sequences -----------------------------------------------------

    def _child(self):
        parent = self._pick(lambda table: not table.hashed and table.ranges is None and not table.sequence)
        if parent is None or parent[0] not in self._there or len(self._tables) >= _TABLES_MAX:
            return None
        key = (parent[0], self._name("child"))
        action = self._random.choice(["CASCADE", "RESTRICT", "SET NULL"])
        sql = (f"CREATE TABLE {_sql(key)} (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES {_sql(parent)} (id) "
               f"ON DELETE {action}) ENGINE={self._engine}")
        return self._step("create child", sql, {key: Table({"parent": "reference"}, [])})

    def _sequence(self):
        key = self._pick(lambda table: table.sequence)
        if key is None:
            if not self._there:
                return None
            key = self._place("s")
            sql = f"CREATE SEQUENCE {_sql(key)} CACHE {self._random.choice([1, 3, 50])} ENGINE={self._engine}"
            return self._step("create sequence", sql, {key: Table({}, [], sequence=True)})
        if self._random.random() < 0.7:
            return self._step("next value", f"SELECT NEXT VALUE FOR {_sql(key)}")
        if self._random.random() < 0.5:
            return self._step("alter sequence", f"ALTER SEQUENCE {_sql(key)} RESTART {self._random.randint(1, 5000)}")
        return self._step("drop sequence", f"DROP SEQUENCE {_sql(key)}", {key: None})

    # --- rows -------------------------------------------------------------------------------

    def _insert(self):
        key = self._pick()
        if key is None:
            return None
        table = self._tables[key]
        room = max(table.ranges.values()) if table.ranges else 400
        ids = sorted(self._random.sample(range(max(room, 1)), min(self._random.choice([1, 5, 40]), max(room, 1))))
        rows = ", ".join(f"({', '.join([str(number)] + [self._value(kind) for kind in table.columns.values()])})" for number in ids)
        names = ", ".join(["id", *table.columns])
        return self._step("insert", f"INSERT IGNORE INTO {_sql(key)} ({names}) VALUES {rows}")

    def _value(self, kind):
        if kind == "number":
            return str(self._random.choice([0, 1, -5, self._random.randint(-30000, 30000)]))
        if kind == "text":
            return self._random.choice(["''", "'Ab'", "'ab '", "NULL", f"'word {self._random.randint(0, 99)}'"])
        if kind == "choice":
            return self._random.choice(["'a'", "'b'", "'c'", "NULL"])
        if kind == "reference":
            return "NULL"
        return f"REPEAT('{self._random.choice('xyz')}', {self._random.choice(_LARGE_SIZES)})"

    def _update(self):
        key = self._pick(lambda table: not table.sequence and bool(table.columns))
        if key is None:
            return None
        name = self._random.choice(sorted(self._tables[key].columns))
        value = self._value(self._tables[key].columns[name])
        return self._step("update", f"UPDATE {_sql(key)} SET {name} = {value} WHERE id % 7 = {self._random.randrange(7)}")

    def _delete(self):
        key = self._pick()
        return key and self._step("delete", f"DELETE FROM {_sql(key)} WHERE id % 5 = {self._random.randrange(5)}")

    def _load(self):
        key = self._pick(lambda table: not table.sequence and table.ranges is None and "parent" not in table.columns)
        if key is None:
            return None
        return self._step("load", f"LOAD DATA INFILE '{self._load_file}' IGNORE INTO TABLE {_sql(key)} (id)")


class SharedSteps:
    """Statements that leave the columns that the writers use."""

    def __init__(self, database, tables, rng, all_kinds):
        self._all_kinds = all_kinds
        self._database, self._tables, self._random = database, tables, rng
        self._columns, self._keys = ({table: [] for table in tables} for _ in range(2))
        self._parts = 3
        self._fresh = 0

    def keep_only(self, _tables, _databases):
        """Nothing of this goes."""

    def next(self):
        table = self._random.choice(self._tables)
        columns, keys = self._columns[table], self._keys[table]
        self._fresh += 1
        new = f"x{self._fresh}"
        what = self._random.choice(["column", "column", "key", "key", "copy", "parts"])
        if what == "column" and len(columns) < 4 and self._random.random() < 0.6:
            place = self._random.choice(["", " FIRST"])
            return self._step("shared: add column", table, f"ADD COLUMN {new} INT DEFAULT {self._fresh}{place}",
                              lambda: columns.append(new))
        if what == "column" and columns:
            return self._step("shared: drop column", table, f"DROP COLUMN {columns[0]}", lambda: columns.pop(0))
        if what == "key" and keys:
            return self._step("shared: drop key", table, f"DROP KEY {keys[0]}", lambda: keys.pop(0))
        if what == "key":
            column = {"journal": "amount", "items": "version"}.get(table, "balance")
            return self._step("shared: add key", table, f"ADD KEY {new} ({column})", lambda: keys.append(new))
        if what == "parts" and self._all_kinds:
            return self._hash_parts()
        if table == "journal" and not self._all_kinds:
            table = "items"
        return self._step("shared: copy", table, self._random.choice(["FORCE, ALGORITHM=COPY", "FORCE"]), _nothing)

    def _hash_parts(self):
        def change(by):
            self._parts += by
        if self._parts < 5:
            return self._step("shared: add partition", "journal", "ADD PARTITION PARTITIONS 1", lambda: change(1))
        return self._step("shared: coalesce", "journal", "COALESCE PARTITION 2", lambda: change(-2))

    def _step(self, kind, table, clauses, done):
        return Step(kind, f"ALTER TABLE {self._database}.{table} {clauses}", done)


def _sql(key):
    return f"{key[0]}.{key[1]}"


_CHOICES = {
    Steps._create: 8, Steps._create_like: 2, Steps._create_select: 4, Steps._replace: 5, Steps._drop: 6, Steps._truncate: 4,
    Steps._rename: 5, Steps._swap: 3, Steps._drop_database: 2, Steps._create_database: 12, Steps._alter_instant: 10,
    Steps._alter_key: 7, Steps._alter_copy: 7, Steps._partition: 14, Steps._hash_partitions: 3, Steps._child: 2,
    Steps._sequence: 4, Steps._insert: 12, Steps._update: 4, Steps._delete: 3, Steps._load: 2,
}
_STEPS, _WEIGHTS = list(_CHOICES), list(_CHOICES.values())
