"""The Spider front's side of a move: where a partition points to, the table held, and one that points elsewhere put in its place.

A Spider table has no rows, so a new one is made beside it and takes its name by RENAME. (Neither ALTER SERVER, which other tables
use too, nor ALTER TABLE ... REORGANIZE PARTITION, which copies the rows through Spider.)
"""

import re
import time

from sqlkit.hosts import HostDown, HostError, quoted
from sqlkit.sessions import Session

_NEXT, _BEFORE, _PROBE = "__next", "__before", "__probe"
_SERVER = re.compile(r'\b(?:srv|server)\s+"([^"]+)"')
_TABLE = re.compile(r'\b(?:table|tbl)\s+"([^"]+)"')
_DATABASE = re.compile(r'\b(?:database|db)\s+"([^"]+)"')
_COMMENT = re.compile(r"COMMENT ?= ?'((?:[^']|'')*)'")
_SEEN_SECONDS, _ANSWER_SECONDS = 10, 60


class Refused(Exception):
    """What was asked cannot be done, or not be done safely; nothing was changed by it."""


def named(database, table):
    return f"`{database}`.`{table}`"


class Front:
    """One front, and its table."""

    def __init__(self, host, table):
        self.host, self.limit = host, _ANSWER_SECONDS
        self.database, _, self.table = table.partition(".")
        self._holder = None

    def __str__(self):
        return str(self.host)

    def _name(self, end=""):
        return named(self.database, self.table + end)

    def definition(self):
        return self._in_session(lambda session: session.query(f"SHOW CREATE TABLE {self._name()}")[0]["Create Table"])

    def _in_session(self, work):
        with Session(self.host, f"pando_move.{self.database}.{self.table}", self.limit) as session:
            return work(session)

    # --- what the definition says -----------------------------------------------------------

    @staticmethod
    def parts(definition):
        """Partition ('' for the whole table) -> its line, comment with that of the table behind."""
        if "ENGINE=SPIDER" not in definition.upper():
            raise Refused("the front's table is not one of Spider")
        head, *lines = re.split(r"\n[( ]+(?=PARTITION `)", definition)
        table = _COMMENT.search(head[head.rindex("ENGINE="):])
        table = table[1] if table else ""
        found = {}
        for line in lines:
            comment = _COMMENT.search(line)
            found[re.match(r"PARTITION `([^`]*)`", line)[1]] = f"{comment[1] if comment else ''} {table}"
        return found or {"": table}

    def part_on(self, server, part, definition):
        """The partition to move, and the table and the database that it has on its shard."""
        parts = self.parts(definition)
        servers = {name: _SERVER.search(text)[1] for name, text in parts.items() if _SERVER.search(text)}
        there = [name for name in parts if servers.get(name) == server and part in (None, name)]
        if len(there) != 1:
            known = ", ".join(f"{name or 'the table'} on {servers.get(name, '?')}" for name in parts)
            raise Refused(f"{self}: {'no partition' if not there else 'several partitions'} of {self.database}.{self.table} on {server}"
                          f"{'' if there else ' of that name' if part else ''}: {known}" + ("; give --partition" if there else ""))
        text = parts[there[0]]
        table, database = _TABLE.search(text), _DATABASE.search(text)
        return there[0], database[1] if database else None, table[1] if table else self.table

    def server(self, name):
        """The row of mysql.servers."""
        rows = self.host.query(f"SELECT Host, Port, Db FROM mysql.servers WHERE Server_name = {quoted(name)}")
        if not rows:
            raise Refused(f"{self}: it knows no server {name}; CREATE SERVER {name} FOREIGN DATA WRAPPER mysql OPTIONS (HOST '...', "
                          "PORT ..., DATABASE '...', USER '...', PASSWORD '...') first")
        return rows[0]

    def points_to(self, part, definition=None):
        text = self.parts(definition or self.definition()).get(part, "")
        found = _SERVER.search(text)
        return found[1] if found else None

    @staticmethod
    def pointed(definition, part, source, target, end, table=None):
        """The definition with another name, and the partition on the target."""
        name = re.match(r"CREATE TABLE `((?:[^`]|``)*)`", definition)
        text = f"CREATE TABLE `{name[1]}{end}`{definition[name.end():]}"
        start = text.rindex(f"PARTITION `{part}` COMMENT") if part else text.rindex("COMMENT=")
        comment = _COMMENT.search(text, start)
        new = re.sub(rf'\b((?:srv|server)\s+)"{re.escape(source)}"', rf'\1"{target}"', comment[0])
        if new == comment[0]:
            raise Refused(f'the comment of the partition has to name the server: {comment[0]}')
        if table:
            new = _TABLE.sub(f'table "{table}"', new) if _TABLE.search(new) else f'{new[:-1]}, table "{table}"\''
        return text[:comment.start()] + new + text[comment.end():]

    # --- what is done -----------------------------------------------------------------------

    def _beside(self, session, end, part, source, target, table=None):
        """Makes a table beside the table."""
        definition = session.query(f"SHOW CREATE TABLE {self._name()}")[0]["Create Table"]
        self._drop(session, end)
        session.query(f"USE `{self.database}`")
        session.query(self.pointed(definition, part, source, target, end, table))

    def _drop(self, session, end=""):
        session.query(f"DROP TABLE IF EXISTS {self._name(end)}")
        # A crash may leave these rows, and the name is not free then.
        session.query(f"DELETE FROM mysql.spider_tables WHERE {self._rows(end)}")

    def _rows(self, end=""):
        """Which rows of mysql.spider_tables belong to a table: one, or one for each partition."""
        name = self.table + end
        return (f"db_name = {quoted(self.database)} AND (table_name = {quoted(name)} "
                f"OR LEFT(table_name, {len(name) + 3}) = {quoted(name + '#P#')})")

    def prepare(self, part, source, target):
        """Makes the table that will take the place."""
        self._in_session(lambda session: self._beside(session, _NEXT, part, source, target))

    def is_sound(self):
        """RENAME of a partitioned Spider table does not survive every crash (10.11.18): the table, a file of it or rows of
        mysql.spider_tables may be missing."""
        try:
            parts = self.parts(self.definition())
        except HostError:
            return False
        return int(self.host.value(f"SELECT COUNT(*) FROM mysql.spider_tables WHERE {self._rows()}")) == len(parts)

    def mend(self, definition, part, source, target):
        """Makes the table anew if a crash has damaged it, as it was or, with a target, pointing there."""
        if self.is_sound():
            return False

        def work(session):
            self._drop(session)
            session.query(f"USE `{self.database}`")
            session.query(self.pointed(definition, part, source, target, "") if target else definition)
        self._in_session(work)
        return True

    def probe(self, part, source, target, table):
        """Whether the front can read the table on the target: account, address, database."""
        self._in_session(lambda session: self._beside(session, _PROBE, part, source, target, table))
        try:
            self.host.query(f"SELECT 1 FROM {self._name(_PROBE)} {f'PARTITION (`{part}`)' if part else ''} LIMIT 1")
        except HostError as error:
            raise Refused(f"the front cannot read {table} on {target}: {error}") from error
        finally:
            self._in_session(lambda session: self._drop(session, _PROBE))

    def hold(self, seconds):
        """Waits until nobody uses the table, and lets nobody begin."""
        self._holder = Session(self.host, limit=self.limit)
        # Otherwise Spider locks the tables on the shards too.
        self._holder.query("SET spider_local_lock_table = 1")
        self._holder.query(f"SET lock_wait_timeout = {seconds}")
        self._holder.query(f"LOCK TABLES {self._name()} WRITE")

    def release(self):
        if self._holder:
            try:
                self._holder.query("UNLOCK TABLES")
            except (HostDown, HostError):
                pass  # the session has ended, and with it the lock
            self._holder.close()
            self._holder = None

    def swap(self):
        """The prepared table takes the place: at once when the table is held, before whoever waits for it."""
        with Session(self.host, f"pando_move.{self.database}.{self.table}", self.limit) as session:
            number = session.value("SELECT CONNECTION_ID()")
            session.query(f"SET lock_wait_timeout = {max(1, int(self.limit / 2))}")
            self._drop(session, _BEFORE)
            session.send(f"RENAME TABLE {self._name()} TO {self._name(_BEFORE)}, {self._name(_NEXT)} TO {self._name()};\n")
            if self._holder:
                self._wait_until_waiting(number)
            self.release()
            session.receive()

    def _wait_until_waiting(self, number):
        deadline = time.monotonic() + _SEEN_SECONDS
        sql = (f"SELECT COUNT(*) AS n FROM information_schema.processlist WHERE id = {number} "
               "AND state = 'Waiting for table metadata lock'")
        while self._holder.value(sql) != "1" and time.monotonic() < deadline:
            time.sleep(0.005)

    def clean(self):
        """Takes away what a move has made beside the table."""
        self._in_session(lambda session: [self._drop(session, end) for end in (_NEXT, _BEFORE, _PROBE)])
