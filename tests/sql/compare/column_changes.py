"""Changes of columns: clauses of ALTER TABLE. Each comes with what to do to the generator's picture of the table
when both engines accepted it."""

import dataclasses

from compare.tables import generated_column, random_column


def column_change(rng, table):
    """One clause and its function; None when no column can be changed so."""
    kinds = [(_add, 4), (_drop, 2), (_rename, 1), (_widen, 3), (_append, 2), (_move, 2), (_nullable, 2), (_default, 1)]
    kind = rng.choices([one for one, _ in kinds], [weight for _, weight in kinds])[0]
    return kind(rng, table, list(table.columns)) or _add(rng, table, list(table.columns))


def several_column_changes(rng, table):
    """Up to five clauses, no two of them of the same column."""
    free, clauses, functions = list(table.columns), [], []
    for _ in range(rng.randint(2, 5)):
        kind = rng.choice([_add, _add, _drop, _rename, _widen, _append, _move, _nullable, _default])
        before = list(free)
        change = kind(rng, table, free)
        if change is None or len(table.columns) - len(clauses) < 2:
            free[:] = before
            continue
        clauses.append(change[0])
        functions.append(change[1])

    def on_success():
        for function in functions:
            function()
    return (", ".join(clauses), on_success) if clauses else None


def _take(rng, columns, accepts):
    """One of the columns that may still be changed, which it then may not any more."""
    fit = [column for column in columns if accepts(column)]
    if not fit:
        return None
    column = rng.choice(fit)
    columns[:] = [one for one in columns if one is not column]
    return column


def _add(rng, table, free):
    # A column that is computed from one that changes in the same statement is another matter.
    column = random_column(rng, f"c{table.fresh_number()}")
    if len(free) == len(table.columns) and rng.random() < 0.15:
        column = generated_column(rng, table.columns, column.name) or column
    if column.type.family == "json":
        # Whether '' in old rows is checked to be JSON depends on whether the rows are copied.
        column.nullable = True
    places = ["", "", " FIRST"]
    if free:
        places.append(f" AFTER `{rng.choice(free).name}`")
    place = rng.choice(places)
    return f"ADD COLUMN {column.sql()}{place}", lambda: _put(table, column, place)


def _put(table, column, place):
    at = len(table.columns)
    if place == " FIRST":
        at = 0
    elif place:
        names = [one.name for one in table.columns]
        name = place.split("`")[1]
        at = names.index(name) + 1 if name in names else at
    table.columns.insert(at, column)


def _is_in_key(table, column):
    return any(key.has_column(column.name) for key in table.keys)


def _drop(rng, table, free):
    column = _take(rng, free, lambda one: not _is_in_key(table, one))
    if column is None or len(table.columns) < 2:
        return None
    return f"DROP COLUMN `{column.name}`", lambda: table.columns.remove(column)


def _rename(rng, table, free):
    column, name = _take(rng, free, lambda one: True), f"c{table.fresh_number()}"
    if column is None:
        return None

    def on_success():
        for key in table.keys:
            key.parts = [(name if part[0] == column.name else part[0], *part[1:]) for part in key.parts]
        column.name = name
    return f"RENAME COLUMN `{column.name}` TO `{name}`", on_success


def _modified(column, changed, place=""):
    """MODIFY to what `changed` is."""
    def on_success():
        for field in dataclasses.fields(column):
            setattr(column, field.name, getattr(changed, field.name))
    return f"MODIFY {changed.sql()}{place}", on_success


_WIDER = {"TINYINT": "SMALLINT", "SMALLINT": "INT", "MEDIUMINT": "INT", "INT": "BIGINT", "CHAR(1)": "CHAR(3)",
          "VARCHAR(3)": "VARCHAR(30)", "VARCHAR(24)": "VARCHAR(64)", "VARCHAR(200)": "VARCHAR(300)",
          "VARCHAR(64)": "TEXT", "VARBINARY(20)": "VARBINARY(90)", "VARBINARY(90)": "BLOB", "BINARY(3)": "BINARY(9)",
          "BINARY(9)": "VARBINARY(10)", "FLOAT": "DOUBLE", "TINYTEXT": "TEXT", "TEXT": "LONGTEXT", "TINYBLOB": "BLOB",
          "BLOB": "LONGBLOB", "DECIMAL(10,2)": "DECIMAL(14,2)"}


def _is_plain(column):
    return not column.auto_increment and column.generated is None and column.type.family != "json"


def _widen(rng, table, free):

    def wider(column):
        old = column.type.sql.split(" ")[0]
        text = _WIDER.get(old)
        # A key part must have a length.
        if text is None or (text.endswith(("TEXT", "BLOB")) and _is_in_key(table, column)):
            return None
        return text
    column = _take(rng, free, lambda one: _is_plain(one) and wider(one) is not None)
    if column is None:
        return None
    old = column.type.sql.split(" ")[0]
    changed_type = dataclasses.replace(column.type, sql=column.type.sql.replace(old, wider(column), 1))
    return _modified(column, dataclasses.replace(column, type=changed_type))


def _append(rng, table, free):
    """More members of ENUM and SET; sometimes so many that values need another byte."""
    column = _take(rng, free, lambda one: _is_plain(one) and one.type.family in ("enum", "set"))
    if column is None or len(column.type.sql) > 2000:
        return None
    count = rng.choice([1, 3, 6] + ([300] if column.type.family == "enum" else []))
    if column.type.family == "set" and column.type.sql.count(",") + count > 60:
        return None
    members = [f"'m{table.fresh_number()}'" for _ in range(count)]
    sql = column.type.sql[:-1] + "," + ",".join(members) + ")"
    more = dataclasses.replace(column.type, sql=sql, literals=column.type.literals + (members[0], members[-1]))
    return _modified(column, dataclasses.replace(column, type=more))


def _move(rng, table, free):
    """Another place among the columns."""
    names = [one.name for one in free]
    column = _take(rng, free, _is_plain)
    if column is None:
        return None
    places = [" FIRST"] + [f" AFTER `{one}`" for one in names if one != column.name]
    place = rng.choice(places)

    def on_success():
        table.columns.remove(column)
        _put(table, column, place)
    return f"MODIFY {column.sql()}{place}", on_success


def _nullable(rng, table, free):
    # NULL in a key that was the table's order makes InnoDB and others go by another one.
    column = _take(rng, free, lambda one: _is_plain(one) and not one.nullable and not _is_in_key(table, one))
    if column is None:
        return None
    return _modified(column, dataclasses.replace(column, nullable=True))


def _default(rng, table, free):
    column = _take(rng, free, lambda one: _is_plain(one) and one.default is not None and "CURRENT" not in one.default)
    if column is None:
        return None
    return _modified(column, dataclasses.replace(column, default=rng.choice(column.type.literals[:4])))
