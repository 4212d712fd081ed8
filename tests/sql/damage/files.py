"""Damaged files: what each damage does to a table, and what must be seen of it."""

import dataclasses
import os
import re
import shutil
import typing

from damage import rows
from sqlkit import engines
from sqlkit.client import SqlError

# 1030 got an error from the engine, 1033 incorrect information in file, 1034 index is corrupt, 1194 and
# 1195 crashed, 1712 index is corrupted, 1815 internal error, 1877 tablespace, 1296 engine's own message,
# 1017, 1146 and 1932 the file is not there.
_CLEAR_ERRORS = {1017, 1030, 1033, 1034, 1146, 1194, 1195, 1296, 1712, 1815, 1877, 1932}
_SAMPLE = range(1, rows.ROWS + 1, 97)


def _flip(path):
    """Turn over eight bytes in each of three places in the middle of the file."""
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        for share in (0.3, 0.5, 0.7):
            file.seek(int(size * share))
            old = file.read(8)
            file.seek(-len(old), os.SEEK_CUR)
            file.write(bytes(byte ^ 0xFF for byte in old))


def _cut_in_half(path):
    os.truncate(path, os.path.getsize(path) // 2)


def _empty(path):
    os.truncate(path, 0)


def _zero_the_start(path):
    with open(path, "r+b") as file:
        file.write(bytes(16384))


def _put_another_there(path):
    """The file of a table that has as many rows, but others."""
    shutil.copyfile(str(path).replace("/exchanged.", "/bystander."), path)


@dataclasses.dataclass
class Case:
    """One table, one damaged file."""
    table: str
    title: str
    file: str       # name in the table's directory
    harm: typing.Callable
    part_lost: bool = False   # only a part of the rows is out of reach
    key_only: bool = False    # only reading through the key named `other` is, and REPAIR TABLE builds it anew
    needs_text: bool = True   # the log must say what was expected and what was found
    harmless: bool = False    # the file is for people and tools; the engine does not need it


PANDO_CASES = [
    Case("flipped", "corrupted blocks in the rows", "main.pando", _flip, part_lost=True),
    Case("flipped_key", "corrupted blocks in a key", "key-other.pando", _flip, key_only=True),
    Case("halved", "the rows cut in half", "main.pando", _cut_in_half),
    Case("halved_key", "a key cut in half", "key-other.pando", _cut_in_half, key_only=True),
    Case("emptied_key", "an empty file for a key", "key-other.pando", _empty, key_only=True),
    Case("zeroed_key", "the superblocks of a key zeroed", "key-other.pando", _zero_the_start, key_only=True),
    Case("gone_key", "the file of a key gone", "key-other.pando", os.unlink, key_only=True, needs_text=False),
    Case("emptied", "an empty file for the rows", "main.pando", _empty),
    Case("zeroed", "the superblocks zeroed", "main.pando", _zero_the_start),
    Case("exchanged", "the file of another table", "main.pando", _put_another_there),
    Case("gone", "the file of the rows gone", "main.pando", os.unlink, needs_text=False),
    Case("scribbled", "a damaged status.pando", "status.pando", _flip, harmless=True),
]
# For the development of this test only: that engine is not what is tested.
INNODB_CASES = [
    Case("flipped", "a corrupted block", "flipped.ibd", _flip, part_lost=True, needs_text=False),
    Case("halved", "the file cut in half", "halved.ibd", _cut_in_half, needs_text=False),
    Case("gone", "the file gone", "gone.ibd", os.unlink, needs_text=False),
]


def run(server, engine, checks):
    """Make all tables, stop, harm all but one, start, and look at each."""
    cases = PANDO_CASES if engine.upper() == "PANDO" else INNODB_CASES
    with server.connect() as session:
        session.query(f"CREATE DATABASE {rows.DATABASE}")
        session.query(f"USE {rows.DATABASE}")
        for salt, case in enumerate(cases, 1):
            rows.create(session, engine, case.table, salt)
        rows.create(session, engine, "bystander", 0)
    server.stop()
    for case in cases:
        case.harm(_path(server, case))
    server.start()
    pid = server.pid()
    with server.connect(rows.DATABASE, timeout=600) as session:
        _bystander_goes_on(session, engine, checks, "beside damaged tables")
        for salt, case in enumerate(cases, 1):
            _look(server, session, case, salt, checks)
            checks.check(server.is_running() and server.pid() == pid, f"{case.title}: the server goes on")
        _bystander_goes_on(session, engine, checks, "after all of that")
        for case in cases:
            _drop(server, session, case, checks)
    server.stop()
    server.start()
    with server.connect(rows.DATABASE) as session:
        _bystander_goes_on(session, engine, checks, "after a restart")


def _path(server, case):
    for path in engines.table_files(server.data_dir, rows.DATABASE, case.table):
        if path.name == case.file:
            return path
    raise FileNotFoundError(f"{case.file} of table {case.table}")


def _bystander_goes_on(session, engine, checks, when):
    """The table that nobody touched is complete, sound and can be written to."""
    number = rows.ROWS + 1
    session.query(f"INSERT INTO bystander VALUES ({number}, {number} + 100000, 'new')")
    session.query(f"DELETE FROM bystander WHERE id = {number}")
    said = engines.check_table(session, engine, "bystander")
    checks.check(rows.are_right(session, "bystander", 0) and not said,
                 f"{when}: the undamaged table is complete, sound, and takes writes", said or "rows are wrong")


def _look(server, session, case, salt, checks):
    """The damage is told clearly to client and log; what it does not reach is still there."""
    if case.harmless:
        error = _error_of(session, f"SELECT * FROM {case.table} LIMIT 1")
        checks.check(error is None and rows.are_right(session, case.table, salt), f"{case.title}: the table works",
                     str(error))
        return
    if case.key_only:
        _look_at_key(server, session, case, salt, checks)
        return
    since = server.log_size()
    error = _error_of(session, f"SELECT SUM(CRC32(text)) FROM {case.table} USE INDEX ()")
    told = "; ".join(row[2].decode("utf-8", "replace") for row in session.query("SHOW WARNINGS").rows)
    checks.check(error is not None and error.number in _CLEAR_ERRORS, f"{case.title}: a clear error ({error})",
                 f"got {error or 'no error'}")
    said = _check_says(session, case.table)
    checks.check(said not in ("", "OK"), f"{case.title}: CHECK TABLE says so ({said[:100]})", said)
    if case.needs_text:
        checks.check(_log_line(server.log_text(), case) is not None,
                     f"{case.title}: the log names file, offset, expected and found",
                     "new lines of the log: " + server.log_text(since)[-1500:])
        checks.check(_log_line(told, case) is not None, f"{case.title}: SHOW WARNINGS does too", repr(told))
    if case.part_lost:
        _rest_is_there(session, case, salt, checks)


def _look_at_key(server, session, case, salt, checks):
    """The table goes on without the key, and gets it back. Damage inside is met by reading, or found by CHECK TABLE."""
    by_key = f"SELECT SUM(CRC32(text)) FROM {case.table} FORCE INDEX (other) WHERE other >= 0"
    error = _error_of(session, by_key)
    checks.check(error is None or error.number in _CLEAR_ERRORS, f"{case.title}: rows or a clear error ({error})", str(error))
    said = _check_says(session, case.table)
    checks.check("other" in said and "orrupt" in said, f"{case.title}: CHECK TABLE names the key ({said[:100]})", said)
    log = server.log_text()
    if case.needs_text:
        checks.check(_log_line(log, case) is not None, f"{case.title}: the log names file, offset, expected and found",
                     log[-1500:])
    checks.check(re.search(rf"key other of table \S*{case.table} is damaged.*REPAIR TABLE", log) is not None,
                 f"{case.title}: the log names table and key, and says what to do", log[-1500:])
    error = _error_of(session, by_key)
    checks.check(error is None and rows.are_right(session, case.table, salt), f"{case.title}: all rows are there",
                 str(error))
    number = rows.ROWS + 1
    error = _error_of(session, f"INSERT INTO {case.table} VALUES ({number}, {number} + 100000, 'new')")
    checks.check(error is not None and error.number == 1712,
                 f"{case.title}: nobody gets a new value of the unique key ({error})", str(error))
    error = (_error_of(session, f"UPDATE {case.table} SET text = CONCAT(text, 'x') WHERE id = 5") or
             _error_of(session, f"UPDATE {case.table} SET text = LEFT(text, CHAR_LENGTH(text) - 1) WHERE id = 5"))
    checks.check(error is None, f"{case.title}: rows change otherwise", str(error))
    said = "; ".join(row[3].decode("utf-8", "replace") for row in session.query(f"REPAIR TABLE {case.table} QUICK").rows)
    checks.check(said == "OK", f"{case.title}: REPAIR TABLE builds the key anew", said)
    error = _error_of(session, by_key)
    said = _check_says(session, case.table)
    checks.check(error is None and said == "OK" and rows.are_right(session, case.table, salt),
                 f"{case.title}: all is well then", f"{error} {said}")


def _error_of(session, sql):
    try:
        session.query(sql)
    except SqlError as error:
        return error
    return None


def _check_says(session, table):
    try:
        result = session.query(f"CHECK TABLE {table}").rows
    except SqlError as error:
        return str(error)
    return "; ".join(row[3].decode("utf-8", "replace") for row in result)


def _log_line(log, case):
    """The line that names the damaged file, an offset, what was expected and what was found."""
    for line in log.splitlines():
        if f"{case.table}.pando/{case.file}" in line and re.search(r"offset \d+.*expected .*found ", line):
            return line
    return None


def _rest_is_there(session, case, salt, checks):
    """Rows outside the bad block are read by their primary key, right or with an error, never wrong."""
    right = refused = wrong = 0
    for number in _SAMPLE:
        try:
            if rows.row_is_right(session, case.table, salt, number):
                right += 1
            else:
                wrong += 1
        except SqlError:
            refused += 1
    checks.check(wrong == 0 and right > len(_SAMPLE) // 2,
                 f"{case.title}: of {len(_SAMPLE)} rows {right} are read, {refused} refused, none is wrong",
                 f"{right} right, {refused} refused, {wrong} wrong")


def _drop(server, session, case, checks):
    """A damaged table can be dropped, and leaves no file behind."""
    error = _error_of(session, f"DROP TABLE {case.table}")
    left = engines.table_files(server.data_dir, rows.DATABASE, case.table)
    checks.check(error is None and not left, f"{case.title}: DROP TABLE removes the table", f"{error}, left: {left}")
