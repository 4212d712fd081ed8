"""The two engines under comparison: a database each in one server, the same sessions in both."""

import re

from compare.steps import READER, WRITER, Mode
from sqlkit import agreement, engines
from sqlkit.client import SqlError

_SECONDS_MAX = 600
# What would make answers depend on the time, on a text's length, or on who waits for whom.
_SETTINGS = "timestamp = 1200000000, time_zone = '+00:00', max_sort_length = 8192, lock_wait_timeout = 2"
_NO_SUCH_TABLE = 1146
# With these the outcome of a statement was the same; their texts may name an engine.
_TEXT_MATTERS = {1062, 1048, 1364, 1265, 1366, 1406, 1264, 1292}


class Difference(Exception):
    """The engines disagree on a step."""

    def __init__(self, step, first, second):
        super().__init__(step.text())
        self.step, self.first, self.second = step, first, second


class Side:
    """One engine, its database, a writing and a reading session."""

    def __init__(self, server, engine, name):
        self.engine, self.database, self._server = engine, name, server
        self._sessions = {}

    def begin(self):
        """An empty database and new sessions."""
        self.close()
        with self._server.connect(timeout=_SECONDS_MAX) as session:
            session.query(f"DROP DATABASE IF EXISTS {self.database}")
            session.query(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4")
        for number in (WRITER, READER):
            session = self._server.connect(self.database, timeout=_SECONDS_MAX)
            session.query(f"SET SESSION default_storage_engine = {self.engine}, {_SETTINGS}")
            self._sessions[number] = session

    def close(self):
        for session in self._sessions.values():
            session.close()
        self._sessions = {}

    def execute(self, step):
        """The answer in the form in which it is compared."""
        session = self._sessions[step.session]
        if step.mode is Mode.CHECK:
            return self._check(session, step.sql)
        try:
            clustering = " CLUSTERING=YES" if self.engine == "PANDO" else ""
            result = session.query(step.sql.replace("{engine}", self.engine).replace("{clustering}", clustering))
        except SqlError as error:
            text = error.message if error.number in _TEXT_MATTERS and step.mode is not Mode.NUMBER else ""
            if re.match(r"(UPDATE|DELETE)\b", step.sql):
                # The server counts rows that it is given; an engine that evaluates the condition does not give all.
                text = re.sub(r" at row \d+$", "", text)
            return ("error", error.number, re.sub(self.database, "db", text))
        if step.mode is Mode.ROWS:
            return ("rows", sorted(result.rows, key=repr))
        if step.mode is Mode.ORDERED:
            return ("rows", result.rows)
        if step.mode is Mode.STATUS:
            # How often a condition is evaluated, and so how often it warns, is up to the plan.
            is_planned = re.match(r"(UPDATE|DELETE)\b", step.sql)
            return ("done", result.affected, None if is_planned else result.warnings)
        return ("done",)

    def behind_its_back(self, sql):
        """A change that only this side gets: for the test of the test."""
        self._sessions[WRITER].query(sql)

    def _check(self, session, table):
        """Empty when the table is sound and all its keys agree."""
        try:
            session.query(f"SELECT 1 FROM `{table}` LIMIT 0")  # fails alike when making the table failed alike
            said = engines.check_table(session, self.engine, f"`{table}`")
            found = agreement.compare(session, self.database, table)
        except SqlError as error:
            return ("error", error.number, error.message if error.number != _NO_SUCH_TABLE else "")
        return ("checked", said, found.differences)


def run_step(step, sides):
    """Run on both; True when it succeeded. Raises Difference, ConnectionLost."""
    first, second = (side.execute(step) for side in sides)
    if first != second or first[0] == "checked" and first != ("checked", "", []):
        raise Difference(step, first, second)
    return first[0] != "error"
