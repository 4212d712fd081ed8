"""Many sessions on the same tables of one engine. Nothing is compared but tables with their keys at the end; the server must not die,
no statement may hang, and the log must not tell of a bug."""

import collections
import itertools
import random
import threading
import time

from fuzz import schema, selects
from fuzz.changes import Changes
from fuzz.definitions import Definitions
from fuzz.sides import Side
from fuzz.steps import How, Step
from sqlkit import agreement, engines
from sqlkit.client import ConnectionLost, SqlError

_DATABASE = "crowd"
_STATEMENT_SECONDS_MAX, _HANG_SECONDS = 4, 120
_RECENT = 30
# A damaged key, a bug, a table that the engine does not know: no statement may be told of these.
_NEVER = {1034, 1194, 1296, 1815, 1932}
_ODD = {1016, 1017, 1025, 1030, 1033}  # told of at the end


class Client(threading.Thread):
    """One session that goes on until it is told to end."""

    def __init__(self, server, engine, rng, numbers, ended):
        super().__init__(daemon=True)
        self.server, self.engine, self.rng, self.numbers, self.ended = server, engine, rng, numbers, ended
        self.recent = collections.deque(maxlen=_RECENT)
        self.odd = []
        self.statements, self.lost, self.since, self.thread_id = 0, None, None, 0
        self._tables, self._tables_until = [], 0

    def run(self):
        while not self.ended.is_set():
            try:
                self._session()
            except SqlError as error:
                self.recent.append(f"  -> {error}, of the session itself")
            except ConnectionLost as lost:
                if self.ended.is_set():
                    return
                # Killed by another client, or the server has died: a new connection tells.
                try:
                    self.server.connect(timeout=_HANG_SECONDS).close()
                except (ConnectionLost, SqlError):
                    self.lost = lost
                    return

    def _session(self):
        with self.server.connect(_DATABASE, timeout=_HANG_SECONDS * 2) as session:
            self.thread_id = session.thread_id
            session.query(f"SET SESSION default_storage_engine = {self.engine}, lock_wait_timeout = 2, {self.engine}_lock_wait_timeout = 1, "
                          f"max_statement_time = {_STATEMENT_SECONDS_MAX}")
            session.query(selects.constants(self.rng))
            for _ in range(200):
                if self.ended.is_set():
                    return
                for step in self._some(session):
                    self._ask(session, step.sql.replace("<<engine>>", self.engine).replace("<<side>>", f"crowd{session.thread_id}-")
                              .replace("<<dir>>", str(self.server.dir / "tmp")))

    def _ask(self, session, sql):
        self.recent.append(f"{time.monotonic():.2f} {sql[:2000]}")
        self.since, self.statements = time.monotonic(), self.statements + 1
        try:
            return session.query(sql)
        except SqlError as error:
            self.recent.append(f"  -> {error.number}")
            if error.number in _NEVER | _ODD:
                self.odd.append((error.number, f"{error.message}: {sql[:1500]}"))
            return None
        finally:
            self.since = None

    def _some(self, session):
        rng = self.rng
        if time.monotonic() > self._tables_until or not self._tables:
            # One that was dropped while it was read has no columns.
            self._tables = [table for table in schema.read(session, _DATABASE).values() if len(table.writable()) > 1]
            self._tables_until = time.monotonic() + 1
        if len(self._tables) < 2:
            self._tables = []
            return [Step(schema.create(rng, f"t{next(self.numbers)}"), How.DDL)]
        if len(self._tables) > 6 and rng.random() < 0.05:
            return [Step(f"DROP TABLE {rng.choice(self._tables).name}", How.DDL)]
        choice = rng.random()
        if choice < 0.35:
            return [Step(selects.Selects(rng, self._tables).any()[0], How.SELECT)]
        if choice < 0.7:
            return Changes(rng, self._tables, True).any()
        if choice < 0.85:
            return Changes(rng, self._tables, True).transaction()
        if choice < 0.88:
            return [Step(selects.settings(rng), How.QUIET)]
        if choice < 0.9:
            verb = rng.choice(("KILL QUERY", "KILL QUERY", "KILL"))
            others = [row[0].decode() for row in session.query("SELECT id FROM information_schema.processlist WHERE db = 'crowd'").rows]
            return [Step(f"{verb} {rng.choice(others)}", How.QUIET)]
        return Definitions(rng, self._tables, self.numbers, True).any()


def run(server, engine, rng, sessions, seconds):
    """(statements, problems)."""
    Side(server, engine, _DATABASE).begin()
    numbers, ended, problems = itertools.count(1), threading.Event(), []
    clients = [Client(server, engine, random.Random(rng.random()), numbers, ended) for _ in range(sessions)]
    for client in clients:
        client.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until and not problems:
        time.sleep(0.5)
        for client in clients:
            since = client.since
            if since is not None and time.monotonic() - since > _HANG_SECONDS:
                problems.append(f"a statement hangs: {client.recent[-1][:3000]}\n{_state(server)}")
            if client.lost is not None:
                problems.append(f"the server is gone: {client.lost}")
        if "a bug was found" in server.log_text():
            problems.append("the log tells of a bug")
        if any(not client.is_alive() for client in clients) and not problems:
            problems.append("a client has died")
    ended.set()
    for client in clients:
        client.join(_HANG_SECONDS)
        problems += [f"{number} {what}" for number, what in client.odd if number in _NEVER]
        for number, what in client.odd[:3]:
            print(f"  {number} {what[:400]}")
    problems = problems or _check(server, engine)
    if problems:
        for number, client in enumerate(clients):
            problems.append(f"--- session {number}\n" + "\n".join(client.recent))
    return sum(client.statements for client in clients), problems


def _state(server):
    try:
        with server.connect(timeout=60) as session:
            rows = session.query("SHOW FULL PROCESSLIST").rows + session.query("SHOW ENGINE PANDO STATUS").rows
            return "\n".join(" | ".join((cell or b"-").decode("utf-8", "replace")[:1500] for cell in row) for row in rows)
    except (ConnectionLost, SqlError) as error:
        return f"(no state: {error})"


def _definition(session, name):
    try:
        return session.query(f"SHOW CREATE TABLE {_DATABASE}.{name}").rows[0][1].decode()
    except SqlError as error:
        return f"SHOW CREATE TABLE -> {error}"


def _roll_back_prepared(session):
    """A session that goes away just now has its transaction still, and leaves it a moment later."""
    until = time.monotonic() + _HANG_SECONDS
    while (left := session.query("XA RECOVER").rows) and time.monotonic() < until:
        for row in left:
            try:
                session.query(f"XA ROLLBACK '{row[3].decode()}'")
            except SqlError:
                time.sleep(0.05)


def _check(server, engine):
    problems = []
    with server.connect(timeout=300) as session:
        _roll_back_prepared(session)
        for name in schema.read(session, _DATABASE):
            try:
                said = engines.check_table(session, engine, f"{_DATABASE}.{name}")
                found = agreement.compare(session, _DATABASE, name).differences
            except SqlError as error:
                said, found = "", [str(error)]
            if said or found:
                problems.append(f"{name}: CHECK TABLE says {said!r}, keys {found}\n{_definition(session, name)}")
        try:
            session.query(f"DROP DATABASE {_DATABASE}")
        except SqlError as error:
            left = sorted(str(path.relative_to(server.data_dir)) for path in (server.data_dir / _DATABASE).glob("**/*"))
            # Files of triggers are the server's, which loses them in renames that meet.
            left = [path for path in left if not path.endswith((".TRN", ".TRG"))]
            if left:
                problems.append(f"{error}; left: {left}")
            for path in (server.data_dir / _DATABASE).glob("*.TR?"):
                path.unlink()
    return problems
