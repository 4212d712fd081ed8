"""A random program: tables, then changes, queries, transactions and DDL, step by step. The generator
sees whether a step succeeded (`done`), because the next ones depend on the tables there are."""

import itertools

from compare.changes import fill, random_change
from compare.queries import random_query
from compare.schema_changes import random_column_changes, random_schema_change
from compare.steps import READER, WRITER, Mode, Step
from compare.tables import random_table

_SWITCHES = ("mrr=on,mrr_sort_keys=on", "mrr=on,mrr_cost_based=off", "index_condition_pushdown=off",
             "index_merge=off", "extended_keys=off", "semijoin=off,materialization=off", "rowid_filter=off",
             "mrr=off", "join_cache_bka=on,mrr=on", "loosescan=on", "index_merge_sort_intersection=on")
_MODES = ("STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
          "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ENGINE_SUBSTITUTION", "NO_ENGINE_SUBSTITUTION")


class Program:
    """Iterate over `steps()`; call `done(ok)` after each."""

    def __init__(self, rng, length, alters=0.0):
        """`alters`: the share of steps that change columns, beside all others."""
        self._rng, self._length, self._alters = rng, length, alters
        self._tables = []
        self._in_transaction = self._reading = False
        self._ok = True

    def done(self, ok):
        """Tell whether the step just given succeeded (on both engines)."""
        self._ok = ok

    def steps(self):
        yield from self._settings()
        yield from self._create()
        for number in range(1, self._length + 1):
            yield from self._one()
            if number % 25 == 0 or number == self._length:
                yield from self._look()
        yield from self._end()

    def _settings(self):
        rng = self._rng
        for session in (WRITER, READER):
            for setting in (f"optimizer_switch = '{rng.choice(_SWITCHES)}'", f"sql_mode = '{rng.choice(_MODES)}'",
                            f"join_cache_level = {rng.randint(0, 8)}"):
                yield Step(f"SET SESSION {setting}", Mode.NUMBER, session)
            level = rng.choice(["REPEATABLE-READ", "REPEATABLE-READ", "READ-COMMITTED"])
            yield Step(f"SET SESSION tx_isolation = '{level}'", Mode.NUMBER, session)

    def _create(self):
        for number in itertools.count():
            table = random_table(self._rng, f"t{number}")
            yield Step(table.create_sql(), Mode.NUMBER)
            if self._ok:
                self._tables.append(table)
            if len(self._tables) == 3:
                break
        for table in self._tables:
            if self._rng.random() < 0.6:
                yield Step(fill(self._rng, table, self._rng.choice([20, 200, 200, 900])), Mode.STATUS)

    def _one(self):
        if self._rng.random() < self._alters:
            yield from self._schema(random_column_changes)
            return
        choice = self._rng.random()
        if choice < 0.45:
            yield random_change(self._rng, self._tables)
        elif choice < 0.72:
            yield random_query(self._rng, self._tables, WRITER)
        elif choice < 0.82:
            yield from self._reader()
        elif choice < 0.95:
            yield from self._transaction()
        else:
            yield from self._schema(random_schema_change)

    def _transaction(self):
        """Begins, ends, or sets and goes back to savepoints."""
        if not self._in_transaction:
            self._in_transaction = True
            yield Step("START TRANSACTION", Mode.NUMBER)
            return
        name = self._rng.choice(["one", "two"])
        sql = self._rng.choice([f"SAVEPOINT {name}", f"ROLLBACK TO {name}", f"ROLLBACK TO {name}",
                                f"RELEASE SAVEPOINT {name}", "COMMIT", "ROLLBACK"])
        if sql in ("COMMIT", "ROLLBACK"):
            self._in_transaction = False
        yield Step(sql, Mode.NUMBER)
        if sql.startswith("ROLLBACK"):
            yield self._everything(self._rng.choice(self._tables), WRITER)

    def _reader(self):
        """Another session: queries on what it is allowed to see, in a transaction or not. It begins by
        reading every table, so that both engines take its snapshot now."""
        if not self._reading and self._rng.random() < 0.5:
            self._reading = True
            yield Step("START TRANSACTION", Mode.NUMBER, READER)
            for table in self._tables:
                yield self._everything(table, READER)
        elif self._reading and self._rng.random() < 0.25:
            yield from self._stop_reading()
        else:
            yield random_query(self._rng, self._tables, READER)

    def _stop_reading(self):
        if self._reading:
            self._reading = False
            yield Step("COMMIT", Mode.NUMBER, READER)

    def _schema(self, generate):
        """DDL commits the writer's transaction, and waits for readers of the table."""
        yield from self._stop_reading()
        steps, on_success = generate(self._rng, self._tables)
        self._in_transaction = False
        all_ok = True
        for step in steps:
            yield step
            all_ok = all_ok and self._ok
        if all_ok:
            on_success()

    def _look(self):
        """All rows of all tables, as the writer and as another session sees them."""
        for table in self._tables:
            yield self._everything(table, WRITER)
            yield self._everything(table, READER)

    def _end(self):
        yield from self._stop_reading()
        yield Step(self._rng.choice(["COMMIT", "ROLLBACK"]), Mode.NUMBER)
        for table in self._tables:
            yield self._everything(table, WRITER)
            yield Step(table.name, Mode.CHECK)

    @staticmethod
    def _everything(table, session):
        return Step(f"SELECT * FROM `{table.name}`", Mode.ROWS, session)
