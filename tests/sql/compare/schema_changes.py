"""Random DDL; changes of columns are in column_changes.py. Each change comes with what to do to the generator's picture of the table when both engines
accepted it."""

from compare.column_changes import column_change, several_column_changes
from compare.steps import Mode, Step
from compare.tables import random_key, random_table


def random_schema_change(rng, tables):
    """Steps, and a function to call when all of them succeeded."""
    table = rng.choice(tables)
    kinds = [(_change_column, 12), (_add_key, 4), (_drop_key, 2), (_truncate, 2), (_maintain, 3), (_other_engine, 1), (_rename_table, 1), (_new_table, 2)]
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


def random_column_changes(rng, tables):
    """As random_schema_change, but of columns only."""
    sqls, on_success = _change_column(rng, rng.choice(tables), tables)
    return [Step(_lenient(sql), Mode.NUMBER) for sql in sqls], on_success


def _change_column(rng, table, tables):
    change = several_column_changes(rng, table) if rng.random() < 0.3 else column_change(rng, table)
    if change is None:
        return _maintain(rng, table, tables)
    clause, on_success = change
    return [f"ALTER TABLE `{table.name}` {clause}"], on_success


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
