"""Random WHERE conditions, mostly on the columns of some key, so that the optimizer has indexes to use."""

import unicodedata

_COMPARISONS = ("=", "=", "=", "<", "<=", ">", ">=", "<>", "<=>")


def condition(rng, table, prefix="", key=None):
    """A condition on one table; `prefix` goes before column names."""
    columns = _columns(rng, table, key)
    parts = [_simple(rng, column, prefix) for column in columns]
    joint = " OR " if rng.random() < 0.15 else " AND "
    return "(" + joint.join(parts) + ")"


def _columns(rng, table, key):
    if key is None and table.keys and rng.random() < 0.8:
        key = rng.choice(table.keys)
    if key is None:
        return rng.sample(table.columns, min(len(table.columns), rng.choice([1, 1, 2])))
    count = rng.randint(1, len(key.parts))
    return [table.column(part[0]) for part in key.parts[:count]]


def _simple(rng, column, prefix):
    name = f"{prefix}`{column.name}`"
    kind = rng.random()
    if kind < 0.6:
        return f"{name} {rng.choice(_COMPARISONS)} {_value(rng, column)}"
    if kind < 0.72:
        least, most = _value(rng, column), _value(rng, column)
        # The server makes one equality of bounds that are equal in the connection's collation, whatever the column's: with every engine, where a
        # key is used.
        if least != most and _folded(least) == _folded(most):
            most = least
        return f"{name} {rng.choice(['', '', 'NOT '])}BETWEEN {least} AND {most}"
    if kind < 0.84:
        values = ", ".join(_value(rng, column) for _ in range(rng.randint(1, 5)))
        return f"{name} {rng.choice(['', '', '', 'NOT '])}IN ({values})"
    if kind < 0.94 or not column.type.family.startswith("string"):
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    pattern = rng.choice(["a%", "A%", "%", "_", "ab%", "é%", "c%", "s%", " %"])
    return f"{name} LIKE '{pattern}'"


def _folded(literal):
    """A text as the connection's collation sees it, about."""
    letters = unicodedata.normalize("NFD", literal.strip("'").rstrip().casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _value(rng, column):
    return column.type.literal(rng) if not column.auto_increment else str(rng.choice([1, 5, 30, 60, 1000, 1003, 1010]))
