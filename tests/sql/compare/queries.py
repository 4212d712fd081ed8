"""Random SELECTs whose answers do not depend on what an engine is free to choose: the order of equal
rows, which of several equal strings stands for a group, the order of a floating sum."""

from compare.conditions import condition
from compare.steps import WRITER, Mode, Step


def random_query(rng, tables, session):
    kinds = [(_rows, 5), (_ordered, 3), (_nth, 2), (_grouped, 2), (_aggregate, 2), (_join, 2), (_nested, 1),
             (_covering, 3)]
    kind = rng.choices([one for one, _ in kinds], [weight for _, weight in kinds])[0]
    sql, mode = kind(rng, rng.choice(tables), tables)
    if session == WRITER and kind in (_rows, _covering, _ordered) and rng.random() < 0.15:
        sql += rng.choice([" FOR UPDATE", " LOCK IN SHARE MODE", " FOR UPDATE SKIP LOCKED", " FOR UPDATE NOWAIT"])
    return Step(sql, mode, session)


def _from(rng, table, key):
    """The table, mostly with the wish to be read through `key`."""
    if key is None:
        return f"`{table.name}`" + (" USE INDEX ()" if rng.random() < 0.3 else "")
    hint = rng.choice(["FORCE", "FORCE", "USE", "IGNORE"])
    return f"`{table.name}` {hint} INDEX (`{key.name}`)"


def _any_key(rng, table):
    return rng.choice(table.keys) if table.keys and rng.random() < 0.8 else None


def _rows(rng, table, _tables):
    key = _any_key(rng, table)
    return f"SELECT * FROM {_from(rng, table, key)} WHERE {condition(rng, table, key=key)}", Mode.ROWS


def _covering(rng, table, _tables):
    """Only columns of one key, so that its index may answer alone."""
    key = _any_key(rng, table)
    if key is None:
        return _rows(rng, table, _tables)
    names = ", ".join(f"`{part[0]}`" for part in key.parts)
    where = f" WHERE {condition(rng, table, key=key)}" if rng.random() < 0.7 else ""
    return f"SELECT {names} FROM {_from(rng, table, key)}{where}", Mode.ROWS


def _ordered(rng, table, _tables):
    """ORDER BY the columns of a key in its order or the reverse one; a total order where strings are."""
    key = _any_key(rng, table)
    if key is None:
        return f"SELECT * FROM `{table.name}` ORDER BY {table.total_order()} LIMIT {rng.randint(1, 20)}", Mode.ORDERED
    reverse = rng.random() < 0.5
    names = [part[0] for part in key.parts if not part[1]]
    order = ", ".join(f"`{name}`{' DESC' if down != reverse else ''}"
                      for name, prefix, down in key.parts if not prefix)
    if not order:
        return _nth(rng, table, _tables)
    exact = all(table.column(name).type.exact for name in names)
    limit = f" LIMIT {rng.randint(1, 20)}" + (f" OFFSET {rng.randint(1, 5)}" if rng.random() < 0.3 else "")
    where = f" WHERE {condition(rng, table, key=key)}" if rng.random() < 0.6 else ""
    selected = ", ".join(f"`{name}`" for name in names)
    if exact:
        return f"SELECT {selected} FROM {_from(rng, table, key)}{where} ORDER BY {order}{limit}", Mode.ORDERED
    return (f"SELECT * FROM {_from(rng, table, key)}{where} ORDER BY {order}, {table.total_order()}{limit}",
            Mode.ORDERED)


def _nth(rng, table, _tables):
    """How many rows are below the n-th in the order of a key: the same whichever equal row is the n-th."""
    key = _any_key(rng, table)
    column = table.column(key.parts[0][0]) if key else rng.choice(table.columns)
    direction, comparison = rng.choice([("", "<"), (" DESC", ">")])
    where = f" WHERE {condition(rng, table, key=key)}" if rng.random() < 0.4 else ""
    nth = (f"SELECT `{column.name}` FROM {_from(rng, table, key)}{where} ORDER BY `{column.name}`{direction} "
           f"LIMIT 1 OFFSET {rng.randint(0, 12)}")
    return f"SELECT COUNT(*) FROM `{table.name}` WHERE `{column.name}` {comparison} ({nth})", Mode.ROWS


def _aggregates(rng, table, prefix=""):
    parts = ["COUNT(*)"]
    for column in rng.sample(table.columns, min(3, len(table.columns))):
        name = f"{prefix}`{column.name}`"
        choices = [f"COUNT({name})", f"COUNT(DISTINCT {name})"]
        if column.type.exact and column.type.family not in ("bit", "year"):  # the server shows their MIN in two ways
            choices += [f"MIN({name})", f"MAX({name})"]
        if column.type.summable:
            choices.append(f"SUM({name})")
        parts.append(rng.choice(choices))
    return ", ".join(parts)


def _aggregate(rng, table, _tables):
    key = _any_key(rng, table)
    where = f" WHERE {condition(rng, table, key=key)}" if rng.random() < 0.7 else ""
    return f"SELECT {_aggregates(rng, table)} FROM {_from(rng, table, key)}{where}", Mode.ROWS


def _grouped(rng, table, _tables):
    key = _any_key(rng, table)
    columns = [table.column(part[0]) for part in key.parts] if key else rng.sample(table.columns, 1)
    columns = columns[:rng.randint(1, len(columns))]
    by = ", ".join(f"`{column.name}`" for column in columns)
    shown = "".join(f"`{column.name}`, " for column in columns if column.type.exact)
    where = f" WHERE {condition(rng, table)}" if rng.random() < 0.4 else ""
    if rng.random() < 0.25:
        return f"SELECT COUNT(*) FROM (SELECT DISTINCT {by} FROM {_from(rng, table, key)}{where}) AS d", Mode.ROWS
    return f"SELECT {shown}{_aggregates(rng, table)} FROM {_from(rng, table, key)}{where} GROUP BY {by}", Mode.ROWS


def _pairs(table, other):
    return [(mine.name, its.name) for mine in table.columns for its in other.columns
            if mine.type.family == its.type.family]


def _join(rng, table, tables):
    other = rng.choice(tables)
    pairs = _pairs(table, other)
    if not pairs:
        return _aggregate(rng, table, tables)
    mine, its = rng.choice(pairs)
    kind = rng.choice(["JOIN", "LEFT JOIN", "STRAIGHT_JOIN"])
    where = f" WHERE {condition(rng, table, prefix='a.')}" if rng.random() < 0.7 else ""
    return (f"SELECT {_aggregates(rng, table, 'a.')}, {_aggregates(rng, other, 'b.')} FROM `{table.name}` AS a "
            f"{kind} `{other.name}` AS b ON a.`{mine}` = b.`{its}`{where}", Mode.ROWS)


def _nested(rng, table, tables):
    other = rng.choice(tables)
    pairs = _pairs(table, other)
    if not pairs:
        return _rows(rng, table, tables)
    mine, its = rng.choice(pairs)
    inside = f"SELECT `{its}` FROM `{other.name}` AS b WHERE {condition(rng, other, prefix='b.')}"
    if rng.random() < 0.5:
        return f"SELECT * FROM `{table.name}` AS a WHERE a.`{mine}` {rng.choice(['', 'NOT '])}IN ({inside})", Mode.ROWS
    return (f"SELECT * FROM `{table.name}` AS a WHERE {rng.choice(['', 'NOT '])}EXISTS "
            f"({inside} AND b.`{its}` = a.`{mine}`)", Mode.ROWS)
