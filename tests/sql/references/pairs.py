"""Random tables with random constraints, and random statements: two engines must do the same."""

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


def _statement(rng):
    table = f"t{rng.randrange(_TABLES)}"
    ignore = " IGNORE" if rng.random() < 0.3 else ""
    into = f"{table} (id, a, b, s, v) VALUES {_row(rng)}"
    return rng.choices((
        f"INSERT{ignore} INTO {into}",
        f"INSERT{ignore} INTO {into}, {_row(rng)}, {_row(rng)}",
        f"INSERT INTO {into} ON DUPLICATE KEY UPDATE {_assignment(rng)}",
        f"REPLACE INTO {into}",
        f"UPDATE{ignore} {table} SET {_assignment(rng)}, {_assignment(rng)} WHERE {_where(rng)} ORDER BY id",
        f"UPDATE{ignore} {table} SET {_assignment(rng)} WHERE {_where(rng)} ORDER BY id",
        f"DELETE{ignore} FROM {table} WHERE {_where(rng)} ORDER BY id",
        f"DELETE FROM {table} ORDER BY id DESC LIMIT 1",
        "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s",
    ), (8, 4, 3, 2, 3, 6, 5, 1, 1, 1, 1, 1, 1))[0]


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


def _compare_schema(sessions, engines, rng):
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
        sql = _statement(rng)
        history.append(sql)
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
            problem = _compare_schema(sessions, (engine, peer), rng)
            if problem:
                return f"{engine} and {peer} differ:\n{problem}"
    finally:
        for session in sessions:
            session.close()
    print(f"{statements} statements, the same in {engine} and {peer}")
    return None
