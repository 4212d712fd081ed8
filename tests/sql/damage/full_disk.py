"""A full disk: the data directory is a small file system in memory, filled by inserts."""

import os
import re
import shutil
import subprocess
import time

from sqlkit import agreement, engines
from sqlkit.client import SqlError

DATABASE = "full_disk"
_MIB = 1 << 20
_ROOM, _BALLAST = 160 * _MIB, 48 * _MIB
_ROWS_PER_INSERT, _ROW_BYTES = 200, 2000
# 3 error writing file, 1021 disk full and 1026 error on write are the server's own, of its files; 1114 table full.
_CLEAR_ERRORS = {3, 1021, 1026, 1114}
_SECONDS_TO_GO_ON = 120
_ANSWER_SECONDS = 600  # of a million rows on a slow machine, too
_PARTITIONED = ("parted_1", "parted_2", "parted_3")


class Inserts:
    """Inserts rows that do not compress and counts the acknowledged ones."""

    def __init__(self, server):
        self._server, self.acknowledged, self._next = server, 0, 1
        self.longest = 0.0

    def until_error(self):
        """Returns the error and the warnings with it. A statement that hangs ends in ConnectionLost."""
        with self._server.connect(DATABASE, timeout=_ANSWER_SECONDS) as session:
            while True:
                try:
                    self.once(session)
                except SqlError as error:
                    told = session.query("SHOW WARNINGS").rows
                    return error, "; ".join(row[2].decode("utf-8", "replace") for row in told)

    def once(self, session):
        rows = ", ".join(f"({number}, {number * 7919 % 1000003}, '{os.urandom(_ROW_BYTES // 2).hex()}')"
                         for number in range(self._next, self._next + _ROWS_PER_INSERT))
        self._next += _ROWS_PER_INSERT
        begin = time.monotonic()
        try:
            session.query(f"INSERT INTO filler VALUES {rows}")
        finally:
            self.longest = max(self.longest, time.monotonic() - begin)
        self.acknowledged += _ROWS_PER_INSERT


def run(server, engine, checks):
    """`server` has been started and stopped once, so its data directory is there."""
    with MemoryDisk(server) as disk:
        server.start()
        with server.connect() as session:
            session.query(f"CREATE DATABASE {DATABASE}")
            session.query(f"USE {DATABASE}")
            session.query(f"CREATE TABLE filler (id INT PRIMARY KEY, other INT NOT NULL, text VARCHAR({_ROW_BYTES}) "
                          f"NOT NULL, KEY other (other)) ENGINE={engine} DEFAULT CHARSET latin1")
            session.query(f"CREATE TABLE bystander (id INT PRIMARY KEY, text CHAR(32), KEY (text)) ENGINE={engine}")
            session.query(f"CREATE TABLE loaded (id INT PRIMARY KEY, a INT, b CHAR(32), c CHAR(32), KEY (b)) ENGINE={engine}")
            session.query("INSERT INTO bystander SELECT seq, MD5(seq) FROM seq_1_to_10000")
            for name in _PARTITIONED:
                session.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, text CHAR(32), KEY (text)) ENGINE={engine} "
                              "PARTITION BY HASH (id) PARTITIONS 5")
                session.query(f"INSERT INTO {name} SELECT seq, MD5(seq) FROM seq_1_to_1000")
        disk.limit(_ROOM)
        disk.put_ballast("first", _BALLAST)
        disk.put_ballast("second", _BALLAST)
        inserts = Inserts(server)
        _fill(server, engine, inserts, checks)
        if engine.upper() == "PANDO":
            _tables_go(server, checks)
        disk.drop_ballast("first")
        _goes_on(server, inserts, checks)
        _fill(server, engine, inserts, checks)
        server.kill()
        disk.drop_ballast("second")
        server.start()
        _nothing_is_lost(server, engine, inserts, checks, "after kill -9 on the full disk and a restart with room")
        _goes_on(server, inserts, checks)
        _nothing_is_lost(server, engine, inserts, checks, "at the end")
        server.kill()


def _fill(server, engine, inserts, checks):
    pid, since = server.pid(), server.log_size()
    error, told = inserts.until_error()
    checks.check(error.number in _CLEAR_ERRORS and re.search(r"full|space|room", error.message),
                 f"the disk is full after {inserts.acknowledged} rows: a clear error ({error})", str(error))
    checks.check(server.is_running() and server.pid() == pid, "the server goes on")
    if engine.upper() == "PANDO":
        clear = re.compile(r"no space left.*\.(pando|log) at offset \d+")
        log = server.log_text(since)
        checks.check(clear.search(told), "SHOW WARNINGS names file and offset", told)
        checks.check(clear.search(log), "the log does too", log[-1500:])
    if engine.upper() == "PANDO":
        _errors_name_what_is_full(server, error, checks)
        _no_table_is_made(server, checks)
    _bulk_load_fails(server, engine, checks)
    _nothing_is_lost(server, engine, inserts, checks, "on the full disk")


def _errors_name_what_is_full(server, error, checks):
    """A statement that commits names its table, as the server's other errors do; the commit of a transaction has none."""
    checks.check("'filler' is full" in error.message, "the statement's error names its table", str(error))
    ends = {"COMMIT": ("BEGIN", "COMMIT"), "XA PREPARE": ("XA START 'x'", "XA END 'x'", "XA PREPARE 'x'")}
    for name, (begin, *end) in ends.items():
        with server.connect(DATABASE, timeout=_ANSWER_SECONDS) as session:
            session.query(begin)
            session.query("INSERT INTO filler SELECT -seq, seq, REPEAT(MD5(RAND()), 60) FROM seq_1_to_200")
            met, told = None, ""
            try:
                for statement in end:
                    session.query(statement)
            except SqlError as refused:
                met = refused
                told = "; ".join(row[2].decode("utf-8", "replace") for row in session.query("SHOW WARNINGS").rows)
            said = f"The disk is full during {name}: no space left"
            checks.check(met and met.number == 1114 and said in met.message, f"{name} says that the disk is full", str(met))
            checks.check(re.search(r"no space left.* \./\S+ at offset", told), "SHOW WARNINGS names the file within the data directory",
                         told)


def _no_table_is_made(server, checks):
    """The server prints the engine's number; one of its own has misleading words."""
    names, error = [f"extra{number}" for number in range(200)], None
    with server.connect(DATABASE, timeout=_ANSWER_SECONDS) as session:
        for position, name in enumerate(names):
            try:
                session.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, a INT, b INT, KEY (a), KEY (b), KEY (a, b)) ENGINE=PANDO")
            except SqlError as met:
                error, names = met, names[:position]
                break
        checks.check(error and re.search(r"[Nn]o space left|is full|disk full", error.message), f"CREATE TABLE says that the disk is full ({error})",
                     str(error))
        for name in names:
            session.query(f"DROP TABLE {name}")


def _bulk_load_fails(server, engine, checks):
    """It writes files itself, under a strict mode that makes errors of warnings."""
    with server.connect(DATABASE, timeout=_ANSWER_SECONDS) as session:
        session.query("SET sql_mode = 'STRICT_ALL_TABLES'")
        error = None
        try:
            session.query("TRUNCATE TABLE loaded")
            session.query("INSERT INTO loaded SELECT seq, RAND() * 1000000, MD5(RAND()), MD5(RAND()) FROM seq_1_to_1000000")
        except SqlError as met:
            error = met
        checks.check(error and error.number in _CLEAR_ERRORS, f"a bulk load ends with a clear error ({error})", str(error))
        checks.check(session.number("SELECT COUNT(*) FROM loaded") == 0, "and has left no row")


def _tables_go(server, checks):
    """The engine keeps some of its log for statements that make space, or that the server could not take back: of a
    partitioned table it removes and renames its own file first."""
    first, second, third = _PARTITIONED
    with server.connect(DATABASE, timeout=_ANSWER_SECONDS) as session:
        for statement in (f"DROP TABLE {first}", f"RENAME TABLE {second} TO moved", f"TRUNCATE TABLE {third}"):
            error = None
            try:
                session.query(statement)
            except SqlError as met:
                error = met
            checks.check(error is None, f"on the full disk: {statement}", str(error))
        rows = [session.number(f"SELECT COUNT(*) FROM {name}") for name in ("moved", third)]
        checks.check(rows == [1000, 0], "the tables are as they were left", str(rows))


def _nothing_is_lost(server, engine, inserts, checks, when):
    with server.connect(DATABASE, timeout=_ANSWER_SECONDS) as session:
        found = session.number("SELECT COUNT(*) FROM filler")
        checks.check(found == inserts.acknowledged, f"{when}: exactly the {inserts.acknowledged} acknowledged rows "
                     "are there", f"{found} are")
        right = session.number("SELECT SUM(text = MD5(id)) FROM bystander")
        checks.check(right == 10000, f"{when}: the other table is complete", str(right))
        for table in ("filler", "bystander"):
            said = engines.check_table(session, engine, table)
            differences = agreement.compare(session, DATABASE, table).differences
            checks.check(not said and not differences, f"{when}: {table} is sound", f"{said} {differences}")


def _goes_on(server, inserts, checks):
    """With room again, inserts work without a restart."""
    before, error = inserts.acknowledged, None
    deadline = time.monotonic() + _SECONDS_TO_GO_ON
    with server.connect(DATABASE, timeout=_ANSWER_SECONDS) as session:
        while inserts.acknowledged < before + 2000 and time.monotonic() < deadline:
            try:
                inserts.once(session)
            except SqlError as now:
                error = now
                time.sleep(0.2)
    checks.check(inserts.acknowledged >= before + 2000, "with room again, inserts go on", f"last error: {error}")


class MemoryDisk:
    """Replaces the data directory by a file system in memory that holds the same files."""

    def __init__(self, server):
        self._server = server
        self._place = server.data_dir
        self._aside = server.dir / "data.disk"

    def __enter__(self):
        self._place.rename(self._aside)
        self._place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1G,mode=0700", "pando-full-disk", self._place], check=True)
        # Holes stay holes: most of an empty InnoDB log is one.
        subprocess.run(["cp", "-a", "--sparse=always", f"{self._aside}/.", self._place], check=True)
        return self

    def __exit__(self, *_):
        self._server.kill()
        subprocess.run(["umount", "--lazy", self._place], check=False)
        self._place.rmdir()
        self._aside.rename(self._place)

    def limit(self, room):
        """From now on there are `room` bytes more than are in use."""
        used = shutil.disk_usage(self._place).used
        subprocess.run(["mount", "-o", f"remount,size={used + room}", self._place], check=True,
                       capture_output=True)

    def put_ballast(self, name, size):
        with open(self._place / f"ballast-{name}", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)

    def drop_ballast(self, name):
        (self._place / f"ballast-{name}").unlink()
