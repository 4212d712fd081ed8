"""Random INSERT, UPDATE, DELETE and their kin. Where an outcome depends on the order in which rows are
met (LIMIT, unique keys), the statement names a total order: engines may differ in it otherwise."""

from compare.conditions import condition
from compare.steps import Mode, Step


def random_change(rng, tables):
    """One statement that changes rows, as a Step."""
    kinds = [(_insert, 24), (_update, 14), (_delete, 5), (_insert_select, 2), (_join_change, 2), (_fill, 1)]
    kind = rng.choices([one for one, _ in kinds], [weight for _, weight in kinds])[0]
    table = rng.choice(tables)
    return Step(kind(rng, table, tables), Mode.STATUS)


def _insert(rng, table, _tables):
    verb, tail = rng.choice([("INSERT", False)] * 4 + [("INSERT IGNORE", False), ("REPLACE", False), ("INSERT", True)])
    columns = [column for column in table.writable() if rng.random() > _omitted_share(column)] or table.writable()
    count = rng.choice([1, 1, 1, 2, 3, 6, 30])
    automatic = table.auto_increment()
    if automatic and verb == "INSERT" and not tail and rng.random() < 0.7:
        # Only one row at a time: how many numbers a longer statement uses up is the engine's business.
        columns, count = [column for column in columns if column is not automatic] or table.writable(), 1
    elif automatic and automatic not in columns:
        columns = [automatic] + columns
    rows = ", ".join(_row(rng, columns) for _ in range(count))
    names = ", ".join(f"`{column.name}`" for column in columns)
    sql = f"{verb} INTO `{table.name}` ({names}) VALUES {rows}"
    if tail:
        column = rng.choice(table.writable())
        value = rng.choice([f"VALUES(`{column.name}`)", _assigned(rng, column)])
        sql += f" ON DUPLICATE KEY UPDATE `{column.name}` = {value}"
    return sql


def _omitted_share(column):
    """How often an INSERT leaves the column out; mostly one that has something to fall back on."""
    return 0.1 if column.nullable or column.default is not None else 0.005


def _row(rng, columns):
    return "(" + ", ".join("DEFAULT" if rng.random() < _omitted_share(column) / 4 and not column.auto_increment
                           else column.literal(rng) for column in columns) + ")"


def _assigned(rng, column):
    """A new value for a column in an UPDATE."""
    if column.type.family == "integer" and not column.auto_increment and rng.random() < 0.4:
        return f"`{column.name}` {rng.choice(['+ 1', '- 1', '+ 10'])}"
    return column.literal(rng)


def _where(rng, table, share=0.9):
    return f" WHERE {condition(rng, table)}" if rng.random() < share else ""


def _update(rng, table, _tables):
    writable = table.writable()
    columns = rng.sample(writable, min(len(writable), rng.choice([1, 1, 2, 3])))
    sets = ", ".join(f"`{column.name}` = {_assigned(rng, column)}" for column in columns)
    ignore = rng.random() < 0.12
    sql = f"UPDATE {'IGNORE ' if ignore else ''}`{table.name}` SET {sets}{_where(rng, table)}"
    limited = rng.random() < 0.2
    if limited or any(table.in_unique_key(column.name) for column in columns):
        sql += f" ORDER BY {table.total_order()}"
    return sql + (f" LIMIT {rng.randint(0, 4)}" if limited else "")


def _delete(rng, table, _tables):
    sql = f"DELETE FROM `{table.name}`{_where(rng, table, 0.97)}"
    if rng.random() < 0.4:
        sql += f" ORDER BY {table.total_order()} LIMIT {rng.randint(0, 5)}"
    return sql


def fill(rng, table, count):
    """Many rows at once, the same whenever it runs: each value is picked by a hash of the row's number."""
    values = []
    for column in table.writable():
        if column.type.family in ("integer", "decimal", "float") and rng.random() < 0.7:
            number = f"seq % {rng.choice([3, 20, 100, 10000, 10000])}"
            values.append(number if not column.auto_increment else "60 + seq")
        else:
            picks = ", ".join(column.literal(rng) for _ in range(12))
            values.append(f"ELT(1 + CRC32(CONCAT(seq, '{column.name}')) % 12, {picks})"
                          if not column.auto_increment else "60 + seq")
    names = ", ".join(f"`{column.name}`" for column in table.writable())
    return (f"INSERT IGNORE INTO `{table.name}` ({names}) SELECT {', '.join(values)} "
            f"FROM seq_1_to_{count} ORDER BY seq")


def _fill(rng, table, _tables):
    return fill(rng, table, rng.choice([10, 100, 800]))


def _insert_select(rng, table, tables):
    source = rng.choice(tables)
    values = []
    for column in table.writable():
        same = [one for one in source.columns if one.type.family == column.type.family]
        values.append(f"`{rng.choice(same).name}`" if same and not column.auto_increment else column.literal(rng))
    names = ", ".join(f"`{column.name}`" for column in table.writable())
    return (f"{rng.choice(['INSERT', 'INSERT IGNORE', 'REPLACE'])} INTO `{table.name}` ({names}) "
            f"SELECT {', '.join(values)} FROM `{source.name}`{_where(rng, source)} "
            f"ORDER BY {source.total_order()} LIMIT {rng.randint(1, 12)}")


def _join_change(rng, table, tables):
    """DELETE or UPDATE through a join; only columns that are in no unique key are assigned."""
    other = rng.choice(tables)
    pairs = [(mine.name, its.name) for mine in table.columns for its in other.columns
             if mine.type.family == its.type.family]
    if other is table or not pairs:
        return _delete(rng, table, tables)
    mine, its = rng.choice(pairs)
    join = f"`{table.name}` JOIN `{other.name}` ON `{table.name}`.`{mine}` = `{other.name}`.`{its}`"
    where = f" WHERE {condition(rng, other, prefix=f'`{other.name}`.')}"
    free = [column for column in table.writable() if not table.in_unique_key(column.name)]
    if free and rng.random() < 0.6:
        column = rng.choice(free)
        return f"UPDATE {join} SET `{table.name}`.`{column.name}` = {column.literal(rng)}{where}"
    return f"DELETE `{table.name}` FROM {join}{where}"
