"""Do a table and its indexes hold the same rows?

Each index is read from end to end twice, once by its own columns alone (where it has all it needs,
the server reads nothing else) and once for whole rows (each entry leads to its row), and both
readings are compared with a scan of the table: number of rows and a sum of checksums.
"""

import dataclasses


@dataclasses.dataclass
class Agreement:
    """What was read, where it differed, and readings the optimizer did not do by the index."""
    indexes: list
    differences: list
    not_by_index: list


@dataclasses.dataclass
class _Part:
    column: str
    prefix: bool
    nullable: bool


def compare(session, database, table):
    """Compare all indexes of a table with the table."""
    indexes = _indexes(session, database, table)
    every_column = _columns(session, database, table)
    name = f"`{database}`.`{table}`"
    scan = f"{name} USE INDEX ()"
    result = Agreement(list(indexes), [], [])
    whole = _read(session, [f"SELECT {_sums(every_column)} FROM {scan}"])
    for index, parts in indexes.items():
        columns = [part.column for part in parts]
        forced = f"{name} FORCE INDEX (`{index}`)"
        own = _read(session, [f"SELECT {_sums(columns)} FROM {forced}"])
        table_own = _read(session, [f"SELECT {_sums(columns)} FROM {scan}"])
        if own != table_own:
            result.differences.append(f"{index}: its columns {own}, by table scan {table_own}")
        statements = _whole_row_statements(forced, parts, every_column)
        if not all(_uses(session, statement, index) for statement in statements):
            result.not_by_index.append(index)
        rows = _read(session, statements)
        if rows != whole:
            result.differences.append(f"{index}: its rows {rows}, by table scan {whole}")
    return result


def _indexes(session, database, table):
    indexes = {}
    for index, column, prefix, nullable in session.query(
            "SELECT index_name, column_name, sub_part, nullable FROM information_schema.statistics "
            f"WHERE table_schema = '{database}' AND table_name = '{table}' AND ignored = 'NO' "
            "ORDER BY index_name, seq_in_index").rows:
        part = _Part(column.decode(), prefix is not None, nullable == b"YES")
        indexes.setdefault(index.decode(), []).append(part)
    return indexes


def _columns(session, database, table):
    return [row[0].decode() for row in session.query(
        "SELECT column_name FROM information_schema.columns "
        f"WHERE table_schema = '{database}' AND table_name = '{table}' ORDER BY ordinal_position").rows]


def _sums(columns):
    """Count and a checksum in which NULL and the empty string differ and columns cannot run together."""
    parts = ", ".join(f"IFNULL(HEX(CONCAT(`{column}`)), '-')" for column in columns)
    return f"COUNT(*), IFNULL(SUM(CRC32(CONCAT_WS('|', {parts}))), 0)"


def _whole_row_statements(forced, parts, columns):
    """Statements that read all rows through the index, in one or two halves."""
    first = parts[0]
    if first.nullable:
        return [f"SELECT {_sums(columns)} FROM {forced} WHERE `{first.column}` IS {what}"
                for what in ("NULL", "NOT NULL")]
    if first.prefix:
        # Control characters come before the blanks that a short text is filled with.
        return [f"SELECT {_sums(columns)} FROM {forced} WHERE `{first.column}` {what} ''" for what in (">=", "<")]
    order = ", ".join(f"`{part.column}`" for part in parts if not part.prefix)
    every = ", ".join(f"`{column}`" for column in columns)  # with invisible ones
    return [f"SELECT {_sums(columns)} FROM (SELECT {every} FROM {forced} ORDER BY {order} LIMIT 1000000000) AS t"]


def _uses(session, statement, index):
    return any(index.encode() in (row[5], row[6]) for row in session.query("EXPLAIN " + statement).rows
               if len(row) > 6)


def _read(session, statements):
    """Sum of the counts and of the checksums over the statements."""
    totals = [0, 0]
    for statement in statements:
        row = session.query(statement).rows[0]
        totals = [total + int(cell) for total, cell in zip(totals, row)]
    return tuple(totals)
