"""Tables whose content can be told from the row's number, so that any part of them can be checked."""

DATABASE = "bad_input"
ROWS = 20_000

_TEXT = "CONCAT(SHA2(CONCAT({salt}, id), 512), SHA2(CONCAT(id, {salt}), 256))"


def create(session, engine, table, salt):
    """A table of 20,000 rows of about 200 bytes that hardly compress, with a unique and another key."""
    session.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, other INT NOT NULL, text VARCHAR(200) NOT NULL, "
                  f"UNIQUE KEY other (other), KEY text (text(16))) ENGINE={engine} DEFAULT CHARSET utf8mb4")
    session.query(f"INSERT INTO {table} SELECT seq, {_other('seq')}, {_text(salt).replace('id', 'seq')} "
                  f"FROM seq_1_to_{ROWS}")


def _text(salt):
    return _TEXT.format(salt=salt)


def _other(number):
    return f"{number} * 7919 % 20011 + {number} DIV 20011 * 20011"


def are_right(session, table, salt, hint="USE INDEX ()"):
    """Whether a reading of the whole table finds every row, each with its right content."""
    row = session.query(f"SELECT COUNT(*), SUM(id), SUM(text = {_text(salt)} AND other = {_other('id')}) "
                        f"FROM {table} {hint}").rows[0]
    return tuple(map(int, row)) == (ROWS, ROWS * (ROWS + 1) // 2, ROWS)


def row_is_right(session, table, salt, number):
    """Whether a look-up of one row finds it with its right content."""
    rows = session.query(f"SELECT text = {_text(salt)} AND other = {_other('id')} FROM {table} "
                         f"WHERE id = {number}").rows
    return rows == [(b"1",)]
