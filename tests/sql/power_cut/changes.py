"""Clients that change tables by statements of every kind, each in two databases of its own.

What a statement makes of the tables is not modelled but read from the server after it: definitions and rows of all tables of
the client. So `history` has after each statement the state that a power cut must leave, or that of the next statement. What
the statements themselves do is for other tests.
"""

import hashlib
import random
import re
import threading

from power_cut import writers
from power_cut.disk import BEGUN, DONE
from power_cut.steps import SharedSteps, Steps
from sqlkit.client import SqlError


def read(session, databases):
    """What is there: `(database, None)` for each database, `(database, table)` -> definition and rows, or the error."""
    found = {}
    for (database,) in session.query("SHOW DATABASES").rows:
        if database.decode() in databases:
            found[database.decode(), None] = "database"
    for database in [database for database, _ in found]:
        for (name,) in session.query(f"SHOW TABLES FROM `{database}`").rows:
            found[database, name.decode()] = table(session, database, name.decode())
    return found


def table(session, database, name):
    try:
        shown = definition(session, database, name)
        return f"{shown} WITH {_rows(session, database, name, '1' if 'SEQUENCE=1' in shown else 'id')}"
    except SqlError as error:
        return f"UNUSABLE: {error}"


def definition(session, database, name):
    text = session.query(f"SHOW CREATE TABLE `{database}`.`{name}`").rows[0][1].decode("utf-8", "replace")
    return re.sub(r" AUTO_INCREMENT=\d+", "", text)


def _rows(session, database, name, order):
    rows = session.query(f"SELECT * FROM `{database}`.`{name}` ORDER BY {order}").rows
    return f"{len(rows)} rows {hashlib.md5(repr(rows).encode()).hexdigest()}"


class Statement:
    """A statement and what it made of the tables. `parts`: it is done table by table, `vanish`: the table that it
    replaces, which may be gone."""

    def __init__(self, kind, sql, after, parts=False, vanish=None):
        self.kind, self.sql, self.after, self.parts, self.vanish = kind, sql, after, parts, vanish


class Changer:
    """One client. Its statements are numbered from 1 on; number 0 is the start."""

    def __init__(self, number, engine, seed, load_file, all_kinds):
        self.number = number
        self.databases = (f"c{number}_a", f"c{number}_b")
        self._steps = self._make_steps(engine, random.Random(f"{seed}/changer {number}"), load_file, all_kinds)
        self.history = []
        self.refused = {}
        self.error = self._thread = None

    def create(self, session):
        for database in self.databases:
            session.query(f"CREATE DATABASE {database}")
        self.history = [Statement("start", "", self.read(session))]

    def _make_steps(self, engine, rng, load_file, all_kinds):
        return Steps(self.databases, engine, rng, load_file, all_kinds)

    def read(self, session):
        """The state of what the client changes."""
        return read(session, self.databases)

    def start(self, server, disk, over):
        self._thread = threading.Thread(target=self._work, args=(server, disk, over), daemon=True)
        self._thread.start()

    def join(self):
        self._thread.join()

    def _work(self, server, disk, over):
        step = None
        try:
            with server.connect(timeout=60) as session:
                while not over.is_set():
                    step = self._steps.next()
                    self._do(session, disk, step)
        except Exception as error:  # the main thread reports it
            self.error = f"changer {self.number}: {error!r}, at {step and step.sql}"

    def _do(self, session, disk, step):
        number = len(self.history)
        disk.mark(self.number, number, BEGUN)
        try:
            session.query(step.sql)
            refused = None
        except SqlError as error:
            refused = error
        disk.mark(self.number, number, DONE)
        after = self.read(session)
        if refused is None:
            step.done()
        else:
            key = f"{step.kind}: {refused.number}"
            self.refused[key] = self.refused.get(key, 0) + 1
        self._steps.keep_only({key for key in after if key[1] is not None}, {key[0] for key in after if key[1] is None})
        self.history.append(Statement(step.kind, step.sql, after, step.parts, step.vanish))


class SharedChanger(Changer):
    """Alters the tables of the writers. Of these it knows the definitions only."""

    def _make_steps(self, engine, rng, load_file, all_kinds):
        return SharedSteps(writers.DATABASE, writers.TABLES, rng, all_kinds)

    def create(self, session):
        self.history = [Statement("start", "", self.read(session))]

    def read(self, session):
        found = {}
        for name in writers.TABLES:
            try:
                found[writers.DATABASE, name] = definition(session, writers.DATABASE, name)
            except SqlError as error:
                found[writers.DATABASE, name] = f"UNUSABLE: {error}"
        return found


def problems(found, changer, known):
    """What of the state found is neither as acknowledged nor as after the statement on its way."""
    done, begun = known.get(changer.number, (0, 0))
    before, statement = changer.history[done].after, changer.history[begun]
    if found in (before, statement.after):
        return []
    wrong = [f"{key[0]}.{key[1]} is {short(found.get(key))}, acknowledged {short(before.get(key))}, "
             f"after the statement on its way {short(statement.after.get(key))}"
             for key in sorted(set(found) | set(before) | set(statement.after), key=str)
             if not _is_allowed(key, found, before, statement)]
    differing = [key for key in set(before) | set(statement.after) if before.get(key) != statement.after.get(key)]
    in_part = {found.get(key) == before.get(key) for key in differing if key[1] is not None}
    if not wrong and len(in_part) > 1 and not statement.parts and not statement.vanish:
        wrong = ["done in part: " + "; ".join(
            f"{key[0]}.{key[1]} as {'before' if found.get(key) == before.get(key) else 'after'}"
            for key in sorted(differing, key=str))]
    if wrong:
        wrong.append(f"  the last statement of client {changer.number}, {'on its way' if begun > done else 'acknowledged'}: "
                     + statement.sql[:200])
    return wrong


def _is_allowed(key, found, before, statement):
    allowed = [before.get(key), statement.after.get(key)]
    if key[1] is None and not any(table for database, table in before if database == key[0]):
        # The server does not sync the data directory after it has made one in it, and asks no engine to.
        allowed.append(None)
    if statement.vanish == key:
        allowed.append(None)
    return found.get(key) in allowed


def short(text):
    return text if text is None else re.sub(r"\s+", " ", text)[:400]
