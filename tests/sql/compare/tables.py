"""Random tables, and what the generators of statements must know of them."""

import dataclasses
import typing
import zlib

from compare.types import Type, integer_type, random_type

_FIRST_AUTO_INCREMENT = 1000


@dataclasses.dataclass
class Column:
    name: str
    type: Type
    nullable: bool
    auto_increment: bool = False
    default: typing.Optional[str] = None
    on_update: bool = False
    generated: typing.Optional[str] = None  # expression and where its value is kept

    def sql(self):
        if self.generated is not None:
            return f"`{self.name}` {self.type.sql} GENERATED ALWAYS AS {self.generated}"
        text = f"`{self.name}` {self.type.sql}{' NULL' if self.nullable else ' NOT NULL'}"
        if self.auto_increment:
            return text + " AUTO_INCREMENT"
        if self.default is not None:
            text += f" DEFAULT {self.default}"
        if self.on_update:
            text += f" ON UPDATE {self.default}"
        return text

    def literal(self, rng):
        """A value for an INSERT or a comparison; now and then one that the column must refuse."""
        if self.auto_increment:
            # Never reaches the counter, so that counters do not depend on failed statements.
            return str(rng.randint(1, 60))
        share = 0.15 if self.nullable else 0.01
        return "NULL" if rng.random() < share else self.type.literal(rng)


@dataclasses.dataclass
class Key:
    name: str
    parts: typing.List[typing.Tuple[str, int, bool]]  # column, prefix length or 0, descending
    unique: bool
    clustering: bool = False  # for engines that can

    def sql(self):
        parts = ", ".join(f"`{name}`{f'({prefix})' if prefix else ''}{' DESC' if down else ''}"
                          for name, prefix, down in self.parts)
        if self.name == "PRIMARY":
            return f"PRIMARY KEY ({parts})"
        option = "{clustering}" if self.clustering else ""
        return f"{'UNIQUE ' if self.unique else ''}KEY `{self.name}` ({parts}){option}"

    def has_column(self, name):
        return any(part[0] == name for part in self.parts)


@dataclasses.dataclass
class Table:
    name: str
    columns: typing.List[Column]
    keys: typing.List[Key]
    next_number: int = 0

    def column(self, name):
        return next(column for column in self.columns if column.name == name)

    def fresh_number(self):
        """For names that were never used in this table."""
        self.next_number += 1
        return self.next_number

    def writable(self):
        """The columns that a statement may give values to."""
        return [column for column in self.columns if column.generated is None]

    def auto_increment(self):
        return next((column for column in self.columns if column.auto_increment), None)

    def in_unique_key(self, name):
        return any(key.unique and key.has_column(name) for key in self.keys)

    def total_order(self, prefix=""):
        """An ORDER BY list that leaves only identical rows without an order."""
        return ", ".join(f"{prefix}`{column.name}`" if column.type.exact else f"HEX({prefix}`{column.name}`)"
                         for column in self.columns)

    def create_sql(self):
        parts = [column.sql() for column in self.columns] + [key.sql() for key in self.keys]
        tail = f" AUTO_INCREMENT={_FIRST_AUTO_INCREMENT}" if self.auto_increment() else ""
        return f"CREATE TABLE `{self.name}` ({', '.join(parts)}) DEFAULT CHARSET utf8mb4{tail}"

    def raise_auto_increment_sql(self):
        return f"ALTER TABLE `{self.name}` AUTO_INCREMENT={_FIRST_AUTO_INCREMENT}"


def random_column(rng, name):
    column = Column(name, random_type(rng), rng.random() < 0.6)
    if column.type.sql.startswith("TIMESTAMP") and not column.nullable or rng.random() < 0.2 and \
            column.type.family in ("datetime", "timestamp"):
        fraction = column.type.sql.partition("(")[2].rstrip(")")
        column.default, column.on_update = f"CURRENT_TIMESTAMP({fraction})", rng.random() < 0.5
    elif rng.random() < 0.3 and column.type.family not in ("json", "bit", "inet6", "inet4", "uuid"):
        column.default = column.type.literals[0]
    return column


_NUMBER = Type("INT", "integer", ("0", "1", "2", "5", "2008", "-1"), lambda rng: str(rng.randint(-6, 12)),
               summable=True)


def generated_column(rng, table_columns, name):
    """A column computed from another one; None when there is none to compute from."""
    expressions = {"integer": "`{}` % 7", "date": "YEAR(`{}`)", "datetime": "HOUR(`{}`)", "decimal": "FLOOR(`{}`) % 5"}
    usable = [column for column in table_columns if not column.auto_increment and column.generated is None
              and (column.type.family in expressions or column.type.sql.startswith(("VARCHAR", "TEXT")))]
    if not usable:
        return None
    source = rng.choice(usable)
    expression = expressions.get(source.type.family, "CHAR_LENGTH(`{}`)").format(source.name)
    return Column(name, _NUMBER, True, generated=f"({expression}) {rng.choice(['VIRTUAL', 'VIRTUAL', 'STORED'])}")


def random_key(rng, table_columns, name, unique=None):
    """A key over one to three columns that can be in one; None when there are none."""
    usable = [column for column in table_columns if column.type.key or column.type.prefix_max]
    if not usable:
        return None
    count = min(len(usable), rng.choice([1, 1, 1, 2, 2, 3]))
    parts = []
    for column in rng.sample(usable, count):
        whole = column.type.key and (not column.type.prefix_max or rng.random() < 0.75)
        prefix = 0 if whole else rng.randint(1, column.type.prefix_max)
        parts.append((column.name, prefix, rng.random() < 0.12))
    # Not drawn from `rng`: a seed keeps giving the tables it gave before keys could cluster.
    is_clustering = zlib.crc32(repr((name, parts)).encode()) % 5 < 2
    return Key(name, parts, rng.random() < 0.3 if unique is None else unique, is_clustering)


def random_table(rng, name):
    columns = [random_column(rng, f"c{number}") for number in range(rng.randint(1, 7))]
    if rng.random() < 0.25:
        columns.insert(rng.randint(0, len(columns)), generated_column(rng, columns, "g0") or random_column(rng, "g0"))
    table = Table(name, columns, [], next_number=100)
    _add_primary_key(rng, table)
    for number in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):
        key = random_key(rng, table.columns, f"k{number}")
        if key is not None:
            table.keys.append(key)
    return table


def _add_primary_key(rng, table):
    choice = rng.random()
    if choice < 0.3:
        table.columns.insert(0, Column("id", integer_type(rng), False))
        table.keys.append(Key("PRIMARY", [("id", 0, rng.random() < 0.1)], True))
    elif choice < 0.5:
        small = Type("INT UNSIGNED", "integer", ("1",), summable=True)
        table.columns.insert(0, Column("id", small, False, auto_increment=True))
        table.keys.append(Key("PRIMARY", [("id", 0, False)], True))
    elif choice < 0.8:
        key = random_key(rng, table.writable(), "PRIMARY", unique=True)
        if key is not None:
            for part in key.parts:
                table.column(part[0]).nullable = False
            table.keys.append(key)
