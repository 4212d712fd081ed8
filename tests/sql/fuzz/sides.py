"""The two databases of one server that get the same statements."""

import re

from fuzz.steps import How
from sqlkit import agreement, engines
from sqlkit.client import SqlError

_SECONDS_MAX = 600
_SETTINGS = ("timestamp = 1200000000, max_sort_length = 8192, lock_wait_timeout = 2, innodb_lock_wait_timeout = 2, "
             "group_concat_max_len = 100000, max_statement_time = 300, max_session_mem_used = 4294967296")
# Other ways to the same answers. What depends on them is not a matter of the engine.
PLANS = ("optimizer_switch = 'index_merge=off,index_condition_pushdown=off,semijoin=off,materialization=off,derived_merge=off,"
         "condition_pushdown_for_derived=off,condition_pushdown_for_subquery=off,condition_pushdown_from_having=off,"
         "split_materialized=off,exists_to_in=off,in_to_exists=on,subquery_cache=off,extended_keys=off'",
         "optimizer_switch = 'in_to_exists=off,outer_join_with_cache=off,semijoin_with_cache=off,mrr=on,mrr_sort_keys=on', "
         "join_cache_level = 8, in_predicate_conversion_threshold = 2",
         "join_cache_level = 0, in_predicate_conversion_threshold = 0, optimizer_use_condition_selectivity = 1, use_stat_tables = 'never', "
         "sort_buffer_size = 1024, tmp_memory_table_size = 65536")
_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$")


def _cell(cell):
    """Numbers that are not whole have as many digits as any order of rows gives."""
    if cell is not None and (b"." in cell or b"e" in cell) and _NUMBER.match(cell) and len(cell) < 300:
        return b"%.10g" % float(cell)
    return cell


def rows(result):
    """The rows of an answer as a sorted list."""
    return sorted((tuple(_cell(cell) for cell in row) for row in result.rows), key=repr)


class Side:
    """One engine with a database, one session."""

    def __init__(self, server, engine, name, plan=None):
        self.engine, self.database, self.plan = engine, name, plan
        self._server, self._session, self.has_pushdown = server, None, engine.upper() == "PANDO"

    def begin(self, settings=()):
        """An empty database."""
        self.close()
        with self._server.connect(timeout=_SECONDS_MAX) as session:
            for row in session.query("XA RECOVER").rows:
                name = row[3].decode()
                if name.startswith(self.database):
                    session.query(f"XA ROLLBACK '{name}'")
            session.query(f"DROP DATABASE IF EXISTS {self.database}")
            session.query(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4")
        directory = self._server.dir / self.database
        directory.mkdir(exist_ok=True)
        directory.chmod(0o777)
        for file in directory.iterdir():
            file.unlink()
        self._session = self._server.connect(self.database, timeout=_SECONDS_MAX)
        self._session.query(f"SET SESSION default_storage_engine = {self.engine}, {_SETTINGS}")
        if self.plan is not None:
            self._session.query(f"SET SESSION {PLANS[self.plan]}")
        for setting in settings:
            self._session.query(setting)

    def close(self):
        """Ends the session."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def session(self):
        """For other questions."""
        return self._session

    def _text(self, step):
        return (step.sql.replace("<<engine>>", self.engine).replace("<<side>>", self.database)
                .replace("<<dir>>", str(self._server.dir / self.database)))

    def execute(self, step):
        """What came of it, in the form in which it is compared."""
        if step.how is How.CHECK:
            return self._check(step.sql)
        try:
            result = self._session.query(self._text(step))
        except SqlError as error:
            return ("error", error.number, error.message)
        if step.how in (How.ROWS, How.SELECT):
            return ("rows", rows(result), result.warnings)
        if step.how in (How.ORDERED, How.ORDERED_SELECT):
            return ("rows", [tuple(_cell(cell) for cell in row) for row in result.rows], result.warnings)
        return ("done", result.affected if step.how is How.DONE else 0)

    def without_pushdown(self, step):
        """The same answer with the server doing the work."""
        self._session.query("SET pando_pushdown = OFF")
        try:
            return self.execute(step)
        finally:
            self._session.query("SET pando_pushdown = ON")

    def with_plans(self, step):
        """Answers by other plans."""
        answers = []
        for plan in PLANS:
            names = re.findall(r"(\w+) = ", plan)
            self._session.query("SET SESSION " + plan)
            try:
                answers.append(self.execute(step))
                if self.has_pushdown:
                    answers.append(self.without_pushdown(step))
            finally:
                self._session.query("SET SESSION " + ", ".join(f"{name} = DEFAULT" for name in names))
        return answers

    def has_hash_key(self):
        """Whether some table has a key that the server keeps unique itself."""
        return self._session.number("SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = "
                                    f"'{self.database}' AND index_type = 'HASH'") > 0

    def _check(self, table):
        try:
            self._session.query(f"SELECT 1 FROM {table} LIMIT 0")
        except SqlError as error:
            return ("error", error.number, error.message)
        try:
            said = engines.check_table(self._session, self.engine, table)
            if self.engine.upper() != "PANDO":
                return ("checked", said, [])
            # In a session of its own: sql_mode may change what the questions mean.
            with self._server.connect(self.database, timeout=_SECONDS_MAX) as session:
                found = agreement.compare(session, self.database, table).differences
        except SqlError as error:
            return ("error", error.number, error.message)
        return ("checked", said, found)


def shown(answer):
    """An answer for people."""
    if answer[0] != "rows":
        return repr(answer)[:400]
    return f"{len(answer[1])} rows, {answer[2]} warnings: {repr(answer[1][:6])[:700]}"


def shown_difference(first, second):
    """What one has and the other has not."""
    if first[0] == second[0] == "rows" and first[1] != second[1]:
        one, other = list(first[1]), list(second[1])
        for row in list(one):
            if row in other:
                one.remove(row)
                other.remove(row)
        return f"  only the first: {repr(one[:5])[:900]}\n  only the second: {repr(other[:5])[:900]}\n  ({len(first[1])} and {len(second[1])} rows)"
    return f"  the first: {shown(first)}\n  the second: {shown(second)}"
