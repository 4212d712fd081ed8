"""Random transactions of two or three sessions on one small table, and an order in which their statements are
meant to run. What one waits for is not foreseen: a session that waits is passed by until it goes on.

Every statement says which key it reads by, so that both engines have the same plan: what is locked depends on
what is read.
"""

import dataclasses

CREATE = ("CREATE TABLE {table} (id INT PRIMARY KEY, k INT, u INT, v INT NOT NULL, KEY k (k), UNIQUE u (u))"
          " ENGINE={engine}")
ROWS = [(n * 10, n % 3, n * 10 if n % 4 else None, n) for n in range(1, 9)]
_IDS = [5, 10, 15, 20, 30, 35, 40, 50, 60, 70, 80, 85]


@dataclasses.dataclass(frozen=True)
class Step:
    """One statement; `{table}` stands for the table."""
    session: int
    sql: str
    reads: bool = False


class Program:
    """`style`: "points" uses the primary key's single values only, "ranges" everything. `locking`: every
    reading statement locks what it reads."""

    def __init__(self, rng, sessions, style, locking, statements=(2, 5)):
        self._rng, self._style, self._locking = rng, style, locking
        queues = [self._transaction(session, rng.randint(*statements)) for session in range(sessions)]
        self.steps = []
        while any(queues):
            queue = rng.choice([queue for queue in queues if queue])
            self.steps.append(queue.pop(0))

    def _transaction(self, session, count):
        rng = self._rng
        steps, has_savepoint = [], False
        for _ in range(count):
            # Where a savepoint is the first statement, the rollback to it ends the transaction in the engine, with its locks: the server does not
            # know of an older state. What was answered until then is in no order of commits.
            if steps and rng.random() < 0.08:
                verb = "ROLLBACK TO s" if has_savepoint else "SAVEPOINT s"
                steps.append(Step(session, verb))
                has_savepoint = True
            else:
                steps.append(self._statement(session))
        steps.append(Step(session, "ROLLBACK" if rng.random() < 0.15 else "COMMIT"))
        return steps

    def _statement(self, session):
        rng = self._rng
        kind = rng.choices(["select", "update", "insert", "delete", "upsert"], [35, 30, 20, 10, 5])[0]
        if kind == "select":
            hint, condition = self._where()
            lock = rng.choice(["FOR UPDATE", "LOCK IN SHARE MODE"] + ([] if self._locking else ["", "", ""]))
            return Step(session, f"SELECT * FROM {{table}} {hint} WHERE {condition} {lock}".strip(), True)
        if kind == "update":
            hint, condition = self._where()
            return Step(session, f"UPDATE {{table}} {hint} SET {self._change()} WHERE {condition}")
        if kind == "delete":
            hint, condition = self._where()
            return Step(session, f"DELETE t FROM {{table}} t {hint} WHERE {condition}")
        values = f"VALUES ({rng.choice(_IDS)}, {rng.randrange(4)}, {self._unique()}, {rng.randrange(100)})"
        if kind == "insert":
            verb = rng.choice(["INSERT", "INSERT", "INSERT IGNORE"])
            return Step(session, f"{verb} INTO {{table}} {values}")
        return Step(session, f"INSERT INTO {{table}} {values} ON DUPLICATE KEY UPDATE v = v + 100")

    def _unique(self):
        # With one unique key less to meet in, points stay points.
        return "NULL" if self._style == "points" else self._rng.choice(["NULL", *_IDS])

    def _change(self):
        changes = ["v = v + 1", "v = v + 1", f"v = {self._rng.randrange(100)}"]
        if self._style != "points":
            changes += [f"k = {self._rng.randrange(4)}", f"u = {self._unique()}", "k = k + 1"]
        return self._rng.choice(changes)

    def _where(self):
        rng = self._rng
        point = rng.choice(_IDS)
        if self._style == "points":
            return "FORCE INDEX (PRIMARY)", f"id = {point}"
        low, high = sorted(rng.sample(_IDS, 2))
        return rng.choice([
            ("FORCE INDEX (PRIMARY)", f"id = {point}"),
            ("FORCE INDEX (PRIMARY)", f"id = {point}"),
            ("FORCE INDEX (PRIMARY)", f"id BETWEEN {low} AND {high}"),
            ("FORCE INDEX (PRIMARY)", f"id > {high}"),
            ("FORCE INDEX (k)", f"k = {rng.randrange(4)}"),
            ("FORCE INDEX (k)", f"k >= {rng.randrange(1, 4)}"),
            ("FORCE INDEX (u)", f"u = {point}"),
            ("FORCE INDEX (u)", f"u BETWEEN {low} AND {high}"),
            ("FORCE INDEX (u)", "u IS NULL"),
            ("USE INDEX ()", f"v % 3 = {rng.randrange(3)}"),
        ])
