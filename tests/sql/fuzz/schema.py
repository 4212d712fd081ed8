"""Random tables, and what the database says of them afterwards, for the generators of statements."""

import dataclasses

from fuzz import values


@dataclasses.dataclass
class Column:
    """A column as INFORMATION_SCHEMA.COLUMNS has it."""
    name: str
    family: str
    type: str
    nullable: bool
    is_generated: bool
    is_automatic: bool
    collation: str = ""

    @property
    def is_exact(self):
        """Whether equal values are the same bytes."""
        return self.family not in ("text", "enum", "set", "json")


@dataclasses.dataclass
class Table:
    """A table; `keys` has each key's columns and whether it is unique."""
    name: str
    columns: list
    keys: dict
    is_versioned: bool = False
    is_partitioned: bool = False
    period: str = ""

    def scope(self, alias=None):
        """For Expressions."""
        return [(f"{alias or self.name}.{column.name}", column.family) for column in self.columns]

    def writable(self):
        """The columns that statements may give values."""
        return [column for column in self.columns if not column.is_generated and not column.name.startswith("row_")]

    def order(self, alias=None):
        """Leaves only rows that are the same in all columns without an order."""
        name = alias or self.name
        return ", ".join(f"{name}.{c.name}" if c.is_exact else f"HEX({name}.{c.name})" for c in self.columns)

    def in_unique(self, column):
        """Whether a unique key has it."""
        return any(unique and column in columns for columns, unique in self.keys.values())


def read(session, database):
    """The base tables of a database."""
    tables = {}
    for name, kind, options in session.query(
            "SELECT table_name, table_type, create_options FROM information_schema.tables WHERE table_schema = "
            f"'{database}' AND table_type <> 'VIEW' ORDER BY table_name").rows:
        if kind.decode() == "SEQUENCE":
            continue
        tables[name.decode()] = Table(name.decode(), [], {}, kind.decode() == "SYSTEM VERSIONED",
                                      b"partitioned" in (options or b""))
    for row in session.query(
            "SELECT table_name, column_name, data_type, column_type, is_nullable, extra, collation_name, generation_expression"
            f" FROM information_schema.columns WHERE table_schema = '{database}' ORDER BY table_name, ordinal_position").rows:
        name, column, data, whole, nullable, extra, collation, generated = ((cell or b"").decode("utf-8", "replace") for cell in row)
        if name in tables:
            tables[name].columns.append(Column(
                column, values.family(data, whole), whole, nullable == "YES", generated != "" or "GENERATED" in extra,
                "auto_increment" in extra, collation))
    for row in session.query(
            "SELECT table_name, index_name, column_name, non_unique FROM information_schema.statistics WHERE table_schema = "
            f"'{database}' ORDER BY table_name, index_name, seq_in_index").rows:
        name, key, column, is_not_unique = (cell.decode("utf-8", "replace") for cell in row)
        if name in tables:
            tables[name].keys.setdefault(key, ([], is_not_unique == "0"))[0].append(column)
    for table in tables.values():
        if any(column.name == "date_1" for column in table.columns):
            table.period = "app"
    return tables


# --- definitions --------------------------------------------------------------------------

def _default(rng, kind):
    if kind.family in ("datetime", "timestamp"):
        fraction = kind.sql.partition("(")[2].rstrip(")")
        return f" DEFAULT CURRENT_TIMESTAMP({fraction})" + rng.choice(("", f" ON UPDATE CURRENT_TIMESTAMP({fraction})"))
    if rng.random() < 0.3 and kind.family in ("int", "dec", "float"):
        return f" DEFAULT ({rng.choice(('1 + 1', '7 % 4', 'ABS(-3)', 'LENGTH(' + chr(39) + 'abc' + chr(39) + ')'))})"
    if kind.family in ("int", "dec", "float"):
        return f" DEFAULT {rng.choice(('0', '1', '5'))}"
    if kind.family == "text" and "TEXT" not in kind.sql:
        return f" DEFAULT {rng.choice((chr(39) * 2, repr('a'), '(UPPER(' + repr('a') + '))'))}"
    return ""


def column(rng, name, kind=None):
    """(definition, kind) of a random column."""
    kind = kind or values.kind(rng)
    text = f"{name} {kind.sql}"
    if rng.random() < 0.35:
        text += " NOT NULL"
    elif kind.family == "timestamp":
        text += " NULL"
    if rng.random() < 0.3:
        text += _default(rng, kind)
    if rng.random() < 0.06 and ("NOT NULL" not in text or "DEFAULT" in text):
        text += " INVISIBLE"
    if kind.family == "text" and rng.random() < 0.04:
        text = text.replace("TEXT ", "TEXT COMPRESSED ", 1)
    return text, kind


# Not DATE and its like of what may be a zero date: whether that is NULL depends on sql_mode, at the time of writing for a key, of reading
# for a scan.
_GENERATED = {"int": ("{} % 7", "{} + 1", "ABS({}) DIV 3", "{} IS NULL"), "date": ("DAYOFMONTH({})", "MONTH({})"),
              "datetime": ("HOUR({})", "SECOND({})"), "text": ("CHAR_LENGTH({})", "LEFT({}, 2)", "UPPER({})"),
              "dec": ("FLOOR({}) % 5", "ROUND({}, 1)"), "json": ("JSON_VALUE({}, '$.a')",), "time": ("HOUR({})",)}
_GENERATED_TYPES = {"HOUR": "INT", "SECOND": "INT", "DAYOFMONTH": "INT", "MONTH": "INT", "CHAR_LENGTH": "INT", "LEFT": "VARCHAR(10)",
                    "UPPER": "VARCHAR(300)", "ROUND": "DECIMAL(20,3)", "JSON_VALUE": "VARCHAR(50)"}


def generated(rng, name, columns):
    """(definition, kind) of a column computed from one of `columns`, or None."""
    usable = [(other, kind) for other, kind in columns if kind.family in _GENERATED]
    if not usable:
        return None
    other, source = rng.choice(usable)
    expression = rng.choice(_GENERATED[source.family]).format(other)
    sql = _GENERATED_TYPES.get(expression.partition("(")[0], "BIGINT")
    how = rng.choice(("VIRTUAL", "VIRTUAL", "STORED"))
    family = {"DECIMAL(20,3)": "dec"}.get(sql, "text" if "CHAR" in sql else "int")
    return f"{name} {sql} AS ({expression}) {how}", values.Kind(sql, family, "300" not in sql, 5 if "CHAR" in sql else 0)


def key(rng, name, columns, unique=None):
    """A key over some of the columns, given as (name, kind); None when none can be in one."""
    usable = [(other, kind) for other, kind in columns if kind.key or kind.prefix]
    if not usable:
        return None
    parts = []
    for other, kind in rng.sample(usable, min(len(usable), rng.choice((1, 1, 1, 2, 2, 3)))):
        is_whole = kind.key and (not kind.prefix or rng.random() < 0.75)
        parts.append(other + ("" if is_whole else f"({rng.randint(1, kind.prefix)})") + rng.choice(("", "", "", "", " DESC")))
    unique = rng.random() < 0.3 if unique is None else unique
    return f"{'UNIQUE ' if unique else ''}KEY {name} ({', '.join(parts)})"


def _hash_unique(rng, columns):
    """A unique key that the server keeps by a hash."""
    long = [other for other, kind in columns if kind.family in ("text", "binary") and not kind.key]
    return f"UNIQUE KEY hashed ({rng.choice(long)})" if long else None


def _partitions(rng, name, columns):
    integers = [other for other, kind in columns if kind.family == "int"]
    choices = [f"PARTITION BY KEY ({name}) PARTITIONS {rng.randint(1, 4)}"]
    if name in integers:
        choices += [f"PARTITION BY HASH ({name}) PARTITIONS {rng.randint(1, 5)}",
                    f"PARTITION BY RANGE ({name}) (PARTITION p0 VALUES LESS THAN (0), PARTITION p1 VALUES LESS THAN (5), "
                    "PARTITION p2 VALUES LESS THAN (50), PARTITION p3 VALUES LESS THAN MAXVALUE)",
                    f"PARTITION BY LIST ({name}) (PARTITION p0 VALUES IN (0, 1, 2, 3), PARTITION p1 DEFAULT)",
                    f"PARTITION BY RANGE ({name}) SUBPARTITION BY HASH ({name}) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS "
                    "THAN (7), PARTITION p1 VALUES LESS THAN MAXVALUE)"]
    return rng.choice(choices)


def create(rng, name):
    """A CREATE TABLE."""
    columns = [column(rng, f"c{number}") for number in range(rng.randint(1, 7))]
    kinds = [(text.split()[0], kind) for text, kind in columns]
    head, kinds_of_keys = [], list(kinds)
    primary = rng.random()
    if primary < 0.3:
        head = [f"id {rng.choice(('INT', 'BIGINT UNSIGNED', 'SMALLINT'))} NOT NULL", "PRIMARY KEY (id)"]
    elif primary < 0.5:
        head = ["id INT UNSIGNED NOT NULL AUTO_INCREMENT", "PRIMARY KEY (id)"]
    if head:
        kinds_of_keys.append(("id", values.Kind("INT", "int")))
    elif primary < 0.8:
        # Whole columns: InnoDB misses rows behind other keys when a primary key has the first character of an expanding text.
        text = key(rng, "x", [(other, values.Kind(kind.sql, kind.family, kind.key)) for other, kind in kinds if kind.key], True)
        if text:
            head = [text.replace("UNIQUE KEY x", "PRIMARY KEY")]
    body = [text for text, _ in columns]
    if rng.random() < 0.35:
        for number in range(rng.randint(1, 2)):
            made = generated(rng, f"g{number}", kinds)
            if made:
                body.append(made[0])
                kinds_of_keys.append((f"g{number}", made[1]))
    body += [text for text in (key(rng, f"k{n}", kinds_of_keys) for n in range(rng.choice((0, 1, 1, 2, 2, 3, 4)))) if text]
    if rng.random() < 0.12:
        body += [text for text in [_hash_unique(rng, kinds)] if text]
    if rng.random() < 0.08:
        integers = [other for other, kind in kinds if kind.family == "int"]
        body += [f"CONSTRAINT positive CHECK ({rng.choice(integers)} <> 13)"] if integers else []
    tail, kind = "", rng.random()
    if kind < 0.08:
        tail = " WITH SYSTEM VERSIONING" + rng.choice(("", "", " PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION pn CURRENT)"))
    elif kind < 0.16 and not any("KEY hashed" in text for text in body):
        body += ["date_1 DATE NOT NULL", "date_2 DATE NOT NULL", "PERIOD FOR app(date_1, date_2)"]
    elif kind < 0.3 and "id" in (head or [""])[0].split():
        body = [text for text in body if "UNIQUE" not in text]
        tail = " " + _partitions(rng, "id", [("id", values.Kind("INT", "int"))])
    elif kind < 0.36 and not head:
        body = [text for text in body if "UNIQUE" not in text]
        other, of = rng.choice(kinds)
        tail = " " + _partitions(rng, other, [(other, of)])
    return f"CREATE TABLE {name} ({', '.join(head[:1] + body + head[1:])}) DEFAULT CHARSET utf8mb4{tail}"
