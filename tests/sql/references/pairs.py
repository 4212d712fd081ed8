"""Random tables with random constraints, and random statements: two engines must do the same."""

import pathlib

from sqlkit.client import SqlError

_TABLES = 4
_STATEMENTS_OF_A_SCHEMA = 60
_ACTIONS = ("RESTRICT", "CASCADE", "SET NULL", "NO ACTION")
# What a constraint may be on: the child's columns and the parent's.
_COLUMNS = (("a", "id"), ("b", "id"), ("a", "a"), ("s", "s"), ("a, b", "a, b"), ("id", "id"), ("b", "a"))
_SOME_DEPTH = 3
_REFUSALS = {1062, 1451, 1452, 1761}


def _schema(rng, engine):
    """CREATE TABLE statements, parents first."""
    created = []
    for number in range(_TABLES):
        parts = ["id INT PRIMARY KEY", "a INT", "b INT", "s VARCHAR(10)", "v INT",
                 rng.choice(("KEY (a)", "UNIQUE (a)", "KEY (a, v)")), rng.choice(("KEY (s)", "UNIQUE (s)", "KEY (s DESC)")),
                 "KEY (a, b)"]
        if rng.random() < 0.3:
            parts += ["w INT AS (a + 1) VIRTUAL", "KEY (w)"]
        elif rng.random() < 0.3:
            parts += ["w INT AS (v MOD 8) STORED", "KEY (w)"]
            if number:
                parts.append(f"FOREIGN KEY (w) REFERENCES t{rng.randrange(number)} (id)"
                             f" ON DELETE {rng.choice(('CASCADE', 'RESTRICT'))}")
        for _ in range(rng.choice((0, 1, 1, 2, 2))):
            own, other = rng.choice(_COLUMNS)
            # InnoDB does not see that a row is its own parent by a key which comes later than that of the child.
            last = number if other == "id" and own != "id" else number - 1
            parent = rng.randint(max(0, number - _SOME_DEPTH), max(0, last))
            if parent == number and last < number:
                continue
            actions = [rng.choice(_ACTIONS if own != "id" else _ACTIONS[:2]) for _ in range(2)]
            parts.append(f"FOREIGN KEY ({own}) REFERENCES t{parent} ({other}) ON DELETE {actions[0]} ON UPDATE {actions[1]}")
        created.append(f"CREATE TABLE t{number} ({', '.join(parts)}) ENGINE={engine}")
    if rng.random() < 0.4:
        # A cycle, or at least a parent that was made after its child.
        own, other = rng.choice(_COLUMNS)
        actions = [rng.choice(_ACTIONS if own != "id" else _ACTIONS[:2]) for _ in range(2)]
        created.append(f"ALTER TABLE t0 ADD FOREIGN KEY ({own}) REFERENCES t{rng.randrange(1, _TABLES)} ({other})"
                       f" ON DELETE {actions[0]} ON UPDATE {actions[1]}")
    return created


def _value(rng):
    return "NULL" if rng.random() < 0.15 else str(rng.randrange(6))


def _row(rng):
    text = "NULL" if rng.random() < 0.2 else f"'{rng.choice('abcABC')}'"
    return f"({rng.randrange(8)}, {_value(rng)}, {_value(rng)}, {text}, {rng.randrange(100)})"


def _assignment(rng):
    column = rng.choice(("id", "a", "a", "b", "s", "v"))
    value = f"'{rng.choice('abcABC')}'" if column == "s" else _value(rng) if column != "id" else str(rng.randrange(8))
    return f"{column} = {value}"


def _where(rng):
    return rng.choice(("id = {}", "a = {}", "id > {}", "b = {}", "id IN ({0}, {0} + 2)")).format(rng.randrange(8))


def _of_two_tables(rng, ignore):
    """One row of a table and those that it names, so that the order does not depend on a plan."""
    one, other = rng.sample(range(_TABLES), 2)
    tables = f"t{one} AS x STRAIGHT_JOIN t{other} AS y ON y.id = x.a"
    return rng.choice((
        f"DELETE{ignore} x, y FROM {tables} WHERE x.id = {rng.randrange(8)}",
        f"UPDATE{ignore} {tables} SET x.b = {_value(rng)}, y.v = {rng.randrange(100)} WHERE x.id = {rng.randrange(8)}",
    ))


def _load(rng, file):
    """A LOAD DATA; the rows stand in a comment, where they are read from."""
    rows = ";".join(_row(rng)[1:-1].replace("NULL", "\\N").replace(", ", ",").replace("'", "") for _ in range(rng.randrange(1, 5)))
    how = rng.choice(("", "IGNORE ", "REPLACE "))
    return (f"LOAD DATA INFILE '{file}' {how}INTO TABLE t{rng.randrange(_TABLES)} FIELDS TERMINATED BY ','"
            f" LINES TERMINATED BY ';' (id, a, b, s, v) /*{rows}*/")


def _statement(rng, file):
    table = f"t{rng.randrange(_TABLES)}"
    ignore = " IGNORE" if rng.random() < 0.3 else ""
    into = f"{table} (id, a, b, s, v) VALUES {_row(rng)}"
    selected = f"SELECT id + {rng.randrange(3)}, a, b, s, v FROM t{rng.randrange(_TABLES)} WHERE {_where(rng)} ORDER BY id"
    return rng.choices((
        f"INSERT{ignore} INTO {into}",
        f"INSERT{ignore} INTO {into}, {_row(rng)}, {_row(rng)}",
        f"INSERT INTO {into} ON DUPLICATE KEY UPDATE {_assignment(rng)}",
        f"INSERT INTO {into}, {_row(rng)} ON DUPLICATE KEY UPDATE {_assignment(rng)}, {_assignment(rng)}",
        f"INSERT{ignore} INTO {table} (id, a, b, s, v) {selected}",
        f"REPLACE INTO {into}",
        f"REPLACE INTO {into}, {_row(rng)}",
        f"UPDATE{ignore} {table} SET {_assignment(rng)}, {_assignment(rng)} WHERE {_where(rng)} ORDER BY id",
        f"UPDATE{ignore} {table} SET {_assignment(rng)} WHERE {_where(rng)} ORDER BY id",
        f"DELETE{ignore} FROM {table} WHERE {_where(rng)} ORDER BY id",
        f"DELETE FROM {table} ORDER BY id DESC LIMIT 1",
        _of_two_tables(rng, ignore), _load(rng, file), f"TRUNCATE TABLE {table}",
        "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE SAVEPOINT s",
        "SET foreign_key_checks = 0", "SET foreign_key_checks = 1",
    ), (16, 8, 6, 2, 3, 4, 2, 6, 12, 10, 2, 3, 4, 0.3, 2, 2, 2, 2, 2, 1, 0.5, 2))[0]


def _write_file(sql, file):
    if sql.startswith("LOAD"):
        file.write_text(sql.partition("/*")[2][:-2] + ";", encoding="ascii")


def _play(session, sql):
    try:
        result = session.query(sql)
        return ("ok", result.affected)
    except SqlError as error:
        return ("error", error.number)


def _same(sql, own, other):
    """Of several errors that a changed row has, the engines may tell different ones."""
    if sql.startswith(("UPDATE", "INSERT INTO")) and own[0] == other[0] == "error":
        return own == other or (not sql.startswith("INSERT") or "ON DUPLICATE" in sql) and {own[1], other[1]} <= _REFUSALS
    return own == other


def _rows(session):
    return [session.query(f"SELECT * FROM t{number} ORDER BY id").rows for number in range(_TABLES)]


def _script(history):
    return ";\n".join(history) + ";"


def _check_keys(session):
    """The rows by each key are those of the table."""
    for number in range(_TABLES):
        for key in ("a", "s", "a_2"):
            by_rows = session.query(f"SELECT id, a, s FROM t{number} USE INDEX () ORDER BY id").rows
            by_key = session.query(f"SELECT id, a, s FROM t{number} FORCE INDEX ({key})"
                                   f" WHERE {key[0]} IS NULL OR {key[0]} IS NOT NULL ORDER BY id").rows
            if by_rows != by_key:
                return f"t{number}: {by_rows} by its rows, {by_key} by key {key}"
    return None


def _compare_schema(sessions, engines, rng, file):
    """What is different; None: nothing."""
    for session, engine in zip(sessions, engines):
        session.query("ROLLBACK")
        session.query("SET foreign_key_checks = 0")
        for number in range(_TABLES):
            session.query(f"DROP TABLE IF EXISTS t{number}")
        session.query("SET foreign_key_checks = 1")
    state = rng.getstate()
    history = _schema(rng, engines[0])
    rng.setstate(state)
    peers = _schema(rng, engines[1])
    for own, other in zip(history, peers):
        answers = [_play(session, sql) for session, sql in zip(sessions, (own, other))]
        if answers[0] != answers[1]:
            return f"{_script(history)}\n-- {own}\n-- {answers}"
        if answers[0][0] == "error":
            return None
    for _ in range(_STATEMENTS_OF_A_SCHEMA):
        sql = _statement(rng, file)
        if sql == "SET foreign_key_checks = 0" and any("KEY (a, v)" in create for create in peers):
            # InnoDB looks for the parent of a row once more when another column of that key changes.
            continue
        history.append(sql)
        _write_file(sql, file)
        answers = [_play(session, sql) for session in sessions]
        rows = [_rows(session) for session in sessions]
        if not _same(sql, *answers) or rows[0] != rows[1]:
            return f"{_script(history)}\n-- {answers}\n-- {rows[0]}\n-- {rows[1]}"
    problem = _check_keys(sessions[0])
    return f"{_script(history)}\n-- {problem}" if problem else None


def compare(server, engine, peer, statements, rng):
    """Plays about so many statements. What is different; None: nothing."""
    sessions = []
    try:
        for name in (engine, peer):
            session = server.connect()
            sessions.append(session)
            session.query(f"CREATE DATABASE pairs_{name.lower()}")
            session.query(f"USE pairs_{name.lower()}")
        for _ in range(max(1, statements // _STATEMENTS_OF_A_SCHEMA)):
            problem = _compare_schema(sessions, (engine, peer), rng, pathlib.Path(server.dir) / "rows.txt")
            if problem:
                return f"{engine} and {peer} differ:\n{problem}"
    finally:
        for session in sessions:
            session.close()
    print(f"{statements} statements, the same in {engine} and {peer}")
    return None
