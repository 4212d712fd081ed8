"""Random DDL. Each change comes with what to do to the generator's picture of the table when both engines
accepted it."""

from compare.steps import Mode, Step
from compare.tables import generated_column, random_column, random_key, random_table
from compare.types import Type


def random_schema_change(rng, tables):
    """Steps, and a function to call when all of them succeeded."""
    table = rng.choice(tables)
    kinds = [(_add_column, 4), (_drop_column, 2), (_add_key, 4), (_drop_key, 2), (_rename_column, 1), (_widen, 2),
             (_truncate, 2), (_maintain, 3), (_other_engine, 1), (_rename_table, 1), (_new_table, 2)]
    kind = rng.choices([one for one, _ in kinds], [weight for _, weight in kinds])[0]
    sqls, on_success = kind(rng, table, tables)
    return [Step(_lenient(sql), Mode.NUMBER) for sql in sqls], on_success


def _lenient(sql):
    """Whether old rows meet a strict SQL mode is asked only where an engine copies them."""
    if sql.startswith(("ALTER", "CREATE INDEX", "CREATE UNIQUE")):
        return f"SET STATEMENT sql_mode = 'NO_ENGINE_SUBSTITUTION' FOR {sql}"
    return sql


def _nothing():
    pass


def _add_column(rng, table, _tables):
    column = random_column(rng, f"c{table.fresh_number()}")
    if rng.random() < 0.15:
        column = generated_column(rng, table.columns, column.name) or column
    if column.type.family == "json":
        # Whether '' in old rows is checked to be JSON depends on whether the rows are copied.
        column.nullable = True
    place = rng.choice(["", "", " FIRST", f" AFTER `{rng.choice(table.columns).name}`"])

    def on_success():
        at = len(table.columns)
        if place == " FIRST":
            at = 0
        elif place:
            at = [one.name for one in table.columns].index(place.split("`")[1]) + 1
        table.columns.insert(at, column)
    return [f"ALTER TABLE `{table.name}` ADD COLUMN {column.sql()}{place}"], on_success


def _drop_column(rng, table, tables):
    free = [column for column in table.columns if not any(key.has_column(column.name) for key in table.keys)]
    if not free or len(table.columns) < 2:
        return _maintain(rng, table, tables)
    column = rng.choice(free)
    return [f"ALTER TABLE `{table.name}` DROP COLUMN `{column.name}`"], lambda: table.columns.remove(column)


def _add_key(rng, table, tables):
    name = f"k{table.fresh_number()}"
    if rng.random() < 0.2 and not any(key.name == "PRIMARY" for key in table.keys):
        name = "PRIMARY"
    primary = name == "PRIMARY"
    key = random_key(rng, table.writable() if primary else table.columns, name, unique=True if primary else None)
    if key is None or len(table.keys) > 5:
        return _drop_key(rng, table, tables)

    def on_success():
        table.keys.append(key)
        if name == "PRIMARY":
            for part in key.parts:
                table.column(part[0]).nullable = False
    if name == "PRIMARY" or rng.random() < 0.7:
        sql = f"ALTER TABLE `{table.name}` ADD {key.sql()}"
    else:
        sql = f"CREATE {key.sql().replace('KEY', 'INDEX', 1).replace(' (', f' ON `{table.name}` (', 1)}"
    if not key.unique:
        return [sql], on_success
    # InnoDB checks unique keys in the order in which they were made, until the table is rebuilt.
    return [sql, f"ALTER TABLE `{table.name}` FORCE"], on_success


def _drop_key(rng, table, tables):
    droppable = [key for key in table.keys if key.name != "PRIMARY" or not table.auto_increment()]
    if not droppable:
        return _maintain(rng, table, tables)
    key = rng.choice(droppable)
    what = "PRIMARY KEY" if key.name == "PRIMARY" else f"KEY `{key.name}`"
    return [f"ALTER TABLE `{table.name}` DROP {what}"], lambda: table.keys.remove(key)


def _rename_column(rng, table, _tables):
    column, name = rng.choice(table.columns), f"c{table.fresh_number()}"

    def on_success():
        for key in table.keys:
            key.parts = [(name if part[0] == column.name else part[0], *part[1:]) for part in key.parts]
        column.name = name
    return [f"ALTER TABLE `{table.name}` RENAME COLUMN `{column.name}` TO `{name}`"], on_success


_WIDER = {"TINYINT": "SMALLINT", "SMALLINT": "INT", "MEDIUMINT": "INT", "INT": "BIGINT", "CHAR(1)": "CHAR(3)",
          "VARCHAR(3)": "VARCHAR(30)", "VARCHAR(24)": "VARCHAR(64)", "VARBINARY(20)": "VARBINARY(90)",
          "BINARY(3)": "VARBINARY(9)", "FLOAT": "DOUBLE", "TINYTEXT": "TEXT", "DECIMAL(10,2)": "DECIMAL(14,2)"}


def _widen(rng, table, tables):
    wider = [(column, old, new) for column in table.columns for old, new in _WIDER.items()
             if column.type.sql.split(" ")[0] == old and not column.auto_increment and column.generated is None]
    if not wider:
        return _add_column(rng, table, tables)
    column, old, new = rng.choice(wider)
    kind = column.type
    changed = Type(kind.sql.replace(old, new, 1), kind.family, kind.literals, kind.random, kind.key, kind.prefix_max,
                   kind.exact, kind.summable)
    before = column.type

    def on_success():
        column.type = changed
    column.type = changed
    sql = f"ALTER TABLE `{table.name}` MODIFY {column.sql()}"
    column.type = before
    return [sql], on_success


def _truncate(_rng, table, _tables):
    sqls = [f"TRUNCATE TABLE `{table.name}`"]
    return sqls + ([table.raise_auto_increment_sql()] if table.auto_increment() else []), _nothing


def _maintain(rng, table, _tables):
    return [rng.choice([f"ANALYZE TABLE `{table.name}`", f"OPTIMIZE TABLE `{table.name}`",
                        f"FLUSH TABLES `{table.name}`", f"ALTER TABLE `{table.name}` FORCE",
                        f"ALTER TABLE `{table.name}` ENGINE={{engine}}"])], _nothing


def _other_engine(rng, table, _tables):
    """To another engine and back. The way there may be refused; then the way back changes nothing."""
    other = rng.choice(["InnoDB", "Aria", "MyISAM"])
    return [f"ALTER TABLE `{table.name}` ENGINE={other}", f"ALTER TABLE `{table.name}` ENGINE={{engine}}"], _nothing


def _rename_table(_rng, table, _tables):
    name = f"{table.name.split('_')[0]}_{table.fresh_number()}"

    def on_success():
        table.name = name
    return [f"RENAME TABLE `{table.name}` TO `{name}`"], on_success


def _new_table(rng, table, tables):
    """The table is dropped, and another one gets its name."""
    new = random_table(rng, table.name)

    def on_success():
        tables[tables.index(table)] = new
    return [f"DROP TABLE `{table.name}`", new.create_sql()], on_success
