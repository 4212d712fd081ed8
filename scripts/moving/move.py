"""The steps of a move, from the check to the end; scripts/move-partition.py says what they are for.

Who owns the rows is decided by names alone. The table has its name on the source, or on the target, or for a moment (step 5) on
neither; never on both:

  step         source     target           front points to   remembered (phase)
  1 check      t          -                source            -
  2 copy       t          t__incoming      source            copy
  3 follow     t          t__incoming      source            follow, with the place in the source's binary log
  4 fence      t__moved   t__incoming      source            switch
  5 own        t__moved   t                source            switch
  6 point      t__moved   t                target            switch
  7 end        -          t                target            -

A statement that goes to the wrong server finds no table there: an error, not a lost row. Steps 4 to 6 happen while the fronts' tables are held, so
clients of a front wait and see no error. `resume` looks which of these lines it finds and goes on from there; `abort` goes
back, up to step 4. A session with changes to make holds a named lock of its server, so that what a dead run has begun is over
before another run looks.
"""

import json
import re
import time

from sqlkit.hosts import HostDown, HostError
from sqlkit.sessions import Session

from . import binlog, copying, state
from .fronts import Front, Refused, named
from .reader import Reader, position, prepared

_INCOMING, _MOVED = "__incoming", "__moved"
_NAME_CHARACTERS_MAX = 54
_BATCH_GROUPS, _BATCH_BYTES = 200, 4 << 20
_CLOSE_SECONDS = 0.3
_AGAIN_SECONDS = 0.5


def _comparable(definition):
    return re.sub(r" AUTO_INCREMENT=\d+", "", definition)


class Move:
    """One move. `at` is told of each step, for whoever watches."""

    def __init__(self, hosts, arguments, say, at=lambda step: None):
        self._arguments, self._say, self._at = arguments, say, at
        self.source, self.target = hosts[arguments.source], hosts[arguments.target]
        self.fronts = [Front(host, arguments.table) for name, host in hosts.items()
                       if name == "front" or name.startswith("front-")]
        self.part, self.state, self.reader, self._snapshot = "", None, None, None
        self.database, _, self.table = arguments.table.partition(".")
        self._kept, self._formatted = set(), None
        self._from = self._to = None

    # --- the beginning ----------------------------------------------------------------------

    def run(self):
        """The whole move, or what is left of it."""
        if self._arguments.resume or self._arguments.abort:
            name = self._find_move()
        else:
            name = self._find_shard_table()
        try:
            self._to, self._from = (Session(host, f"pando_move.{name}") for host in (self.target, self.source))
            self.state = state.load(self._to, name)
            if self._arguments.abort:
                self._abort()
                return
            if self.state and not self._arguments.resume:
                raise Refused(f"a move of {name} has begun: --resume finishes it, --abort undoes it")
            if not self.state:
                self._check(name)
            self._go_on()
        finally:
            for session in (self._to, self._from, self._snapshot):
                if session:
                    session.close()

    def _find_move(self):
        """The move that the target remembers."""
        arguments = self._arguments
        with Session(self.target) as session:
            moves = [move for move in state.find(session, arguments.table) if arguments.partition in (None, move.part)
                     and move.source == arguments.source]
        if len(moves) != 1:
            raise Refused(f"{self.target} remembers {'several moves' if moves else 'no move'} of {arguments.table} from {arguments.source}"
                          + ("; give --partition" if moves else ""))
        self.part = moves[0].part
        self.database, _, self.table = moves[0].name.partition(".")
        return moves[0].name

    def _find_shard_table(self):
        """What the table is called on the shards."""
        arguments, found = self._arguments, set()
        for front in self.fronts:
            source, target = front.server(arguments.source), front.server(arguments.target)
            part, database, table = front.part_on(arguments.source, arguments.partition, front.definition())
            if not database and source["Db"] != target["Db"]:
                raise Refused(f"{front}: the servers {arguments.source} and {arguments.target} name different databases")
            found.add((part, database or source["Db"] or front.database, table))
        if len(found) > 1:
            raise Refused(f"the fronts do not agree: {sorted(found)}")
        if found:
            self.part, self.database, self.table = found.pop()
        if not re.fullmatch(r"\w+\.\w+", f"{self.database}.{self.table}", re.ASCII):
            raise Refused(f"{self.database}.{self.table}: only names of letters, digits and _")
        return f"{self.database}.{self.table}"

    # --- 1 check ----------------------------------------------------------------------------

    def _check(self, name):
        if self.source.name == self.target.name:
            raise Refused("source and target are the same server")
        if len(self.table) > _NAME_CHARACTERS_MAX or any(len(front.table) > _NAME_CHARACTERS_MAX for front in self.fronts):
            raise Refused(f"names of more than {_NAME_CHARACTERS_MAX} characters leave no room for names beside them")
        settings = self._from.query("SELECT @@server_id AS id, @@log_bin AS log, @@binlog_format AS format, @@binlog_row_image AS image, "
                                    "@@sync_binlog AS sync")[0]
        for wrong, text in ((settings["log"] != "1", "it writes no binary log"),
                            (settings["format"] != "ROW", "binlog_format has to be ROW, for all sessions"),
                            (settings["image"] != "FULL", "binlog_row_image has to be FULL"),
                            (settings["sync"] != "1", "sync_binlog has to be 1: what the log loses in a crash would be on the target alone")):
            if wrong:
                raise Refused(f"{self.source}: {text}")
        if self._to.value("SELECT @@server_id") == settings["id"]:
            raise Refused(f"{self.source} and {self.target} have the same server_id")
        if self._to.value("SELECT @@read_only") != "0":
            raise Refused(f"{self.target} is read_only")
        engine = self._check_table()
        for session, end in ((self._to, ""), (self._to, _INCOMING), (self._from, _MOVED)):
            if self._has(session, end):
                raise Refused(f"{session.host} has a table {self.database}.{self.table}{end} already")
        if not self._to.query(f"SELECT 1 FROM information_schema.schemata WHERE schema_name = '{self.database}'"):
            raise Refused(f"{self.target} has no database {self.database}")
        state.create(self._to, engine)
        definition = self._definition()
        self.state = state.State(name, self.source.name, int(settings["id"]), self._arguments.table, self.part, "copy", "", 0, definition,
                                 json.dumps({str(front): front.definition() for front in self.fronts}))
        state.begin(self._to, self.state)
        self._at("checked")

    def _check_table(self):
        """The engine, when the table can be moved by its rows."""
        where = f"table_schema = '{self.database}' AND table_name = '{self.table}'"
        rows = self._from.query(f"SELECT engine, table_type FROM information_schema.tables WHERE {where}")
        if not rows or rows[0]["table_type"] != "BASE TABLE":
            raise Refused(f"{self.source} has no table {self.database}.{self.table} (or it is a view, or has system versions)")
        engine = rows[0]["engine"]
        asked = (
            (f"SELECT 1 FROM information_schema.engines WHERE engine = '{engine}' AND transactions = 'YES'", False, f"{engine} has no transactions"),
            (f"SELECT 1 FROM information_schema.statistics WHERE {where} AND index_name = 'PRIMARY'", False, "it has no primary key"),
            (f"SELECT 1 FROM information_schema.triggers WHERE event_object_schema = '{self.database}' AND event_object_table = '{self.table}'",
             True, "it has triggers"),
            ("SELECT 1 FROM information_schema.referential_constraints WHERE "
             f"(constraint_schema = '{self.database}' AND table_name = '{self.table}') OR "
             f"(unique_constraint_schema = '{self.database}' AND referenced_table_name = '{self.table}')", True, "it has foreign keys"),
            (f"SELECT 1 FROM information_schema.columns WHERE {where} AND data_type = 'float'", True,
             "it has a FLOAT column, of which a dump has six digits only: make it DOUBLE"))
        for sql, refuse, text in asked:
            if bool(self._from.query(sql)) == refuse:
                raise Refused(f"{self.database}.{self.table}: {text}")
        return engine

    def _has(self, session, end=""):
        return bool(session.query(f"SELECT 1 FROM information_schema.tables WHERE table_schema = '{self.database}' "
                                  f"AND table_name = '{self.table}{end}'"))

    def _name(self, end=""):
        return named(self.database, self.table + end)

    def _definition(self, end=""):
        return self._from.query(f"SHOW CREATE TABLE {self._name(end)}")[0]["Create Table"]

    # --- the steps from what is found -------------------------------------------------------

    def _mend(self, front, target=None):
        """What a crash has made of a front's table is made good: it has no rows."""
        definition = self.state.front_definition(front)
        if definition and front.mend(definition, self.part, self.source.name, target):
            self._say(f"{front}: its table was damaged by a crash and is made anew")

    def _go_on(self):
        if self.state.phase == "differs":
            if not self._arguments.keep_old:
                raise self._difference()
            self._end()
            return
        if self.state.phase == "switch" and self._has(self._from):
            # The rename did not happen.
            state.set_phase(self._to, self.state, "follow")
        if self.state.phase != "switch":
            if not self._has(self._from):
                raise Refused(f"{self.source} has no {self.database}.{self.table} any more: --abort undoes the move")
            if self.state.phase == "follow" and self.state.source_id != int(self._from.value("SELECT @@server_id")):
                self._say(f"{self.source} is another server than before: the copy begins anew")
                self.state.phase = "copy"
            if self.state.phase == "copy":
                self._copy()
            self._open_reader()
            try:
                self._follow()
                self._cut_over()
            finally:
                self.reader.close()
        else:
            self._finish_cut_over()
        self._compare()
        self._end()

    # --- 2 copy -----------------------------------------------------------------------------

    def _copy(self):
        source_id = self._from.value("SELECT @@server_id")
        self._to.query(f"DROP TABLE IF EXISTS {self._name(_INCOMING)}")
        definition = self._definition()
        state.restart(self._to, self.state, source_id, definition)
        self._to.query(f"USE `{self.database}`")
        # Defaults that were allowed when the table was made; not another engine.
        self._to.query("SET sql_mode = 'NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES'")
        start = f"CREATE TABLE `{self.table}`"
        self._to.query(f"CREATE TABLE `{self.table}{_INCOMING}`" + definition[len(start):])
        begin = time.monotonic()
        reader = Reader(self.source, self._log_table(), position(self.source))
        try:
            copy = copying.begun(self.source, self.database, self.table, reader, self._arguments.lock_seconds,
                                 self._arguments.doubt_seconds)
        finally:
            reader.close()
        self._at("copying")
        try:
            with Session(self.target, f"pando_load.{self.state.name}") as session:
                session.query(f"USE `{self.database}`")
                copy.load(session, self._name(_INCOMING))
        except BaseException:
            copy.cancel()
            raise
        self._to.query("BEGIN")
        self._to.query(state.place_sql(self.state.name, copy.place))
        state.set_phase(self._to, self.state, "follow")
        self._to.query("COMMIT")
        self.state.log_file, self.state.log_offset = copy.place.file, copy.place.offset
        self._say(f"copied in {time.monotonic() - begin:.1f} s, as of {copy.place} of {self.source}")
        self._at("copied")

    # --- 3 follow ---------------------------------------------------------------------------

    def _log_table(self):
        return binlog.Table(self.database, self.table, self.table + _INCOMING)

    def _open_reader(self):
        self.reader = Reader(self.source, self._log_table(), self.state.place)
        self.reader.open = state.prepared(self._to, self.state.name)
        self._kept = set(self.reader.open)
        self._formatted = None

    def _catch_up(self, end=None):
        """Applies what the source's log has up to its end. The number of transactions that changed the table."""
        end = end or position(self._from)
        batch, size, count, groups = [], 0, 0, 0
        for group in self.reader.read_to(end):
            for text in group.texts:
                if not self._is_own(text):
                    raise Refused(f"{self.source} has changed the table by a statement, not by rows: {text[:200]}. "
                                  "--abort, and begin again when there are no such statements")
            batch += group.changes
            size += sum(map(len, group.changes))
            count, groups = count + bool(group.changes), groups + 1
            if groups >= _BATCH_GROUPS or size >= _BATCH_BYTES:
                self._apply(batch)
                batch, size, groups = [], 0, 0
        self._apply(batch)
        return count

    def _is_own(self, text):
        return re.fullmatch(rf"ALTER TABLE `{re.escape(self.database)}`\.`{re.escape(self.table)}` RENAME TO .*", text) is not None

    def _apply(self, changes):
        """In one transaction: the changes, what is prepared and waits, and how far that is."""
        name, waiting = self.state.name, {xid: held for xid, held in self.reader.open.items() if held}
        if changes and self._formatted != self.reader.format:
            self._to.query(f"BINLOG '{self.reader.format}'")
            self._formatted = self.reader.format
        statements = ["BEGIN"] + [f"BINLOG '{change}'" for change in changes]
        statements += state.prepared_sql(name, self._kept, waiting)
        statements += [state.place_sql(name, self.reader.place), "COMMIT"]
        try:
            self._to.query(";\n".join(statements))
        except HostError as error:
            raise Refused(f"{self.target} cannot do what {self.source} has done: {error}. --abort, and begin again") from error
        self._kept = set(waiting)

    def _follow(self):
        begin, total, deadline = time.monotonic(), 0, time.monotonic() + self._arguments.follow_seconds
        while True:
            round_begin = time.monotonic()
            total += self._catch_up()
            if time.monotonic() - round_begin < _CLOSE_SECONDS:
                break
            if time.monotonic() > deadline:
                raise Refused(f"{self.source} is changed faster than {self.target} follows; --resume goes on when there is less to do")
        self._say(f"followed {total} transactions in {time.monotonic() - begin:.1f} s")
        self._at("followed")

    # --- 4 to 6, while clients wait ---------------------------------------------------------

    def _cut_over(self):
        for front in self.fronts:
            front.probe(self.part, self.source.name, self.target.name, self.table + _INCOMING)
            front.prepare(self.part, self.source.name, self.target.name)
        deadline = time.monotonic() + self._arguments.doubt_seconds
        while True:
            begin = time.monotonic()
            self._limit(self._arguments.answer_seconds)
            try:
                reason = self._try_cut_over()
            finally:
                for front in self.fronts:
                    front.release()
            self._limit(None)
            if not reason:
                self._say(f"clients waited {(time.monotonic() - begin) * 1000:.0f} ms for the switch")
                return
            if time.monotonic() > deadline:
                raise Refused(f"{reason}; --resume tries again, --abort undoes the move")
            time.sleep(_AGAIN_SECONDS)
            self._catch_up()

    def _limit(self, seconds):
        """While clients wait, nobody waits for a server that hangs."""
        for waiting in (self._from, self._to, self.reader):
            waiting.limit = seconds
        for front in self.fronts:
            front.limit = seconds or front.limit

    def _try_cut_over(self):
        """Why it could not be now; nothing when it is done."""
        lock_seconds = self._arguments.lock_seconds
        try:
            for front in self.fronts:
                front.hold(lock_seconds)
            self._from.query(f"SET lock_wait_timeout = {lock_seconds}")
            self._from.query(f"LOCK TABLES {self._name()} WRITE")
        except HostError as error:
            if error.number != copying.LOCK_WAIT_TIMEOUT:
                raise
            self._anew()
            return f"somebody uses the table for more than {lock_seconds} s ({error})"
        self._at("locked")
        doubt = self._still_open()
        if doubt:
            self._from.query("UNLOCK TABLES")
            return doubt
        self._must_be_as_copied()
        self._set_automatic_value()
        state.set_phase(self._to, self.state, "switch")
        self._at("fencing")
        try:
            self._from.query(f"ALTER TABLE {self._name()} RENAME TO {self._name(_MOVED)}")
        except HostError as error:
            self._anew()
            if not self._has(self._from):
                raise
            state.set_phase(self._to, self.state, "follow")
            return f"{self.source} could not rename it: {error}"
        self._at("fenced")
        self._own_and_point()
        self._from.query("UNLOCK TABLES")
        return None

    def _anew(self):
        """An error ends a session; another one for the source."""
        self._from.close()
        self._from = Session(self.source, f"pando_move.{self.state.name}", self._arguments.answer_seconds)

    def _still_open(self):
        """Catches up. Which XA transactions could still change the table, though it is locked: those whose session is gone."""
        listed = prepared(self._from)
        self.reader.ended.clear()
        self._catch_up()
        # What is not listed was never prepared (a crash between log and engine), and cannot be committed.
        self.reader.open = {xid: held for xid, held in self.reader.open.items() if xid in listed or not held}
        doubtful = sorted(xid for xid in listed - self.reader.ended if self.reader.open.get(xid, True))
        if doubtful:
            return (f"{self.source}: transactions are prepared and nobody ends them: {', '.join(doubtful)}; "
                    "end them with scripts/spider.py resolve, or XA COMMIT or XA ROLLBACK")
        return None

    def _must_be_as_copied(self):
        if _comparable(self._definition()) != _comparable(self.state.definition):
            raise Refused(f"{self.database}.{self.table} has another definition than when it was copied; --abort, and begin again")

    def _set_automatic_value(self):
        sql = ("SELECT auto_increment AS n FROM information_schema.tables WHERE table_schema = '{}' AND table_name = '{}'")
        value = self._from.value(sql.format(self.database, self.table))
        if value != "NULL" and value != self._to.value(sql.format(self.database, self.table + _INCOMING)):
            self._to.query(f"ALTER TABLE {self._name(_INCOMING)} AUTO_INCREMENT = {value}")

    def _own_and_point(self, again=False):
        """Steps 5 and 6, as far as they are not done. A front that does not answer does not stop the others."""
        if not self._has(self._to):
            self._to.query(f"RENAME TABLE {self._name(_INCOMING)} TO {self._name()}")
            self._at("owned")
            if self._arguments.compare != "none":
                self._snapshot = Session(self.target, limit=self._arguments.answer_seconds)
                self._snapshot.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                self._snapshot.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                self._snapshot.limit = None
        silent = []
        for front in self.fronts:
            try:
                self._point(front, again)
            except HostDown as error:
                silent.append(str(error))
        if silent:
            raise HostDown("; ".join(silent))

    def _point(self, front, again):
        if again:
            self._mend(front, self.target.name)
            if front.points_to(self.part) != self.target.name:
                front.prepare(self.part, self.source.name, self.target.name)
        if front.points_to(self.part) != self.target.name:
            front.swap()
            self._at(f"pointed {front}")
            if front.points_to(self.part) != self.target.name:
                raise Refused(f"{front} still points to {self.source}; --resume goes on")

    def _finish_cut_over(self):
        """A run died after the fence: nobody can write to the source's table."""
        if not self._has(self._to):
            if not self._has(self._from, _MOVED) or not self._has(self._to, _INCOMING):
                raise Refused(f"neither {self.source} nor {self.target} has the table as this move left it")
            self._open_reader()
            try:
                doubt = self._still_open()
            finally:
                self.reader.close()
            if doubt:
                raise Refused(f"{doubt}, then --resume")
        self._own_and_point(again=True)

    # --- 7 end ------------------------------------------------------------------------------

    def _compare(self):
        """The source's table as it was left with the target's as it was taken over. Clients work meanwhile."""
        if self._arguments.compare == "none" or not self._has(self._from, _MOVED):
            return
        if not self._snapshot:
            self._say(f"not compared, because a run died in between: {self._name(_MOVED)} stays on {self.source}")
            self._arguments.keep_old = True
            return
        sql = "SELECT COUNT(*) AS n FROM {}" if self._arguments.compare == "count" else "CHECKSUM TABLE {} EXTENDED"
        with self._snapshot:
            sums = [list(session.query(sql.format(name))[0].values())[-1]
                    for session, name in ((self._from, self._name(_MOVED)), (self._snapshot, self._name()))]
        if sums[0] != sums[1]:
            self._say(f"{self._arguments.compare}: {sums[0]} on {self.source}, {sums[1]} on {self.target}")
            state.set_phase(self._to, self.state, "differs")
            raise self._difference()
        self._say(f"{self._arguments.compare} of both: {sums[0]}")
        self._at("compared")

    def _difference(self):
        return Refused(f"the rows on {self.target} are not those of {self._name(_MOVED)} on {self.source}; both are there. "
                       "--resume --keep-old ends the move and leaves them so")

    def _end(self):
        for front in self.fronts:
            front.clean()
        self._at("cleaned")
        if not self._arguments.keep_old:
            self._from.query(f"DROP TABLE IF EXISTS {self._name(_MOVED)}")
        self._at("dropped")
        state.end(self._to, self.state.name)
        self._say(f"{self.database}.{self.table} is on {self.target}"
                  + (f"; the old rows stay on {self.source} as {self.table}{_MOVED}" if self._arguments.keep_old else ""))

    # --- back -------------------------------------------------------------------------------

    def _abort(self):
        if not self.state:
            raise Refused("another run has ended the move")
        if self.state.phase in ("switch", "differs") and self._has(self._to):
            raise Refused(f"{self.target} owns the table already; --resume finishes the move")
        if not self._has(self._from) and self._has(self._from, _MOVED):
            self._from.query(f"RENAME TABLE {self._name(_MOVED)} TO {self._name()}")
        self._at("unfenced")
        self._to.query(f"DROP TABLE IF EXISTS {self._name(_INCOMING)}")
        for front in self.fronts:
            self._mend(front)
            front.clean()
        state.end(self._to, self.state.name)
        self._say(f"undone: {self.database}.{self.table} is on {self.source}, as before")
