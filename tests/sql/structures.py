#!/usr/bin/env python3
"""Queries whose structure is random, and whose conditions are simple: the engine's answers are the server's.

    tests/sql/structures.sh [--queries 600] [--seed 1]

`pushdown.sh` looks for faults in expressions and types; there, conditions leave so little that a join of the wrong kind is seldom seen. Here all
columns are integers of few values, some of them NULL, one table is empty, and what is random is how joins, derived tables, views, set
operations, groups, windows and subqueries stand within each other. Each query is asked with pando_pushdown ON and OFF; so that the engine is asked at
all, tables have some hundred rows. One answer is changed on purpose, which has to be noticed.
"""

import argparse
import pathlib
import random as randoms
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_TABLES = {"p": 400, "q": 300, "r": 350, "none": 0}
_COLUMNS = ("a", "b", "c")
_VALUES = 120
_SHARE_ANSWERED_MIN = 0.3
_DEPTH_MAX = 3
_SECONDS_MAX = 5


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


class Structure:
    """One query."""

    def __init__(self, random):
        self.random = random
        self.number = 0

    def _alias(self):
        self.number += 1
        return f"t{self.number}"

    def source(self, depth):
        """A table of FROM, and its columns."""
        random = self.random
        alias = self._alias()
        if depth >= _DEPTH_MAX or random.random() < 0.6:
            table = random.choice(("p", "p", "q", "q", "r", "none", "v"))
            return f"{table} {alias}", [f"{alias}.{column}" for column in _COLUMNS]
        return f"({self.derived(depth + 1)}) {alias}", [f"{alias}.{column}" for column in _COLUMNS]

    def joined(self, depth, most=2):
        """FROM, and its columns."""
        random = self.random
        text, columns = self.source(depth)
        for _ in range(random.randint(0, most)):
            if random.random() < 0.15:
                inner, more = self.joined(depth + 1, 1)
                table = f"({inner})"
            else:
                table, more = self.source(depth)
            kind = random.choice(("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "STRAIGHT_JOIN"))
            on = f"{random.choice(columns)} = {random.choice(more)}"
            while random.random() < 0.35:
                on += f" AND {self.condition(depth, columns + more)}"
            text += f" {kind} {table} ON {on}"
            columns = columns + more
        return text, columns

    def _simple(self, columns):
        random = self.random
        one, other, value = random.choice(columns), random.choice(columns), random.randrange(_VALUES)
        return random.choice((f"{one} = {other}", f"{one} < {other}", f"{one} <=> {other}", f"{one} IS NULL", f"{one} IS NOT NULL",
                              f"{one} > {value}", f"{one} < {value}", f"{one} <> {value}", f"{one} IN ({value}, {value + 1}, {value + 2})",
                              f"{one} BETWEEN {value // 2} AND {value}", f"NOT ({one} > {value} AND {other} < {value})"))

    def condition(self, depth, columns):
        """A condition on some columns, now and then with a query in it."""
        random = self.random
        chance = random.random()
        if chance < 0.12:
            return f"({self.condition(depth, columns)} OR {self._simple(columns)})"
        if chance > 0.2 or depth >= _DEPTH_MAX:
            return self._simple(columns)
        text, more = self.joined(depth + 1, 1)
        tie = f"{random.choice(more)} {random.choice(('=', '=', '<=>', '='))} {random.choice(columns)}"
        where = random.choice((tie, f"{tie} AND {self._simple(more)}", self._simple(more)))
        no, one, value = random.choice(("", "NOT ")), random.choice(columns), random.choice(more)
        return random.choice((
            f"{no}EXISTS (SELECT 1 FROM {text} WHERE {where})",
            f"{one} {no}IN (SELECT {value} FROM {text} WHERE {where})",
            f"{one} {random.choice(('=', '<', '>='))} (SELECT {random.choice(('MIN', 'MAX', 'COUNT'))}({value}) FROM {text} WHERE {where})"))

    def _where(self, depth, columns):
        random = self.random
        if random.random() < 0.4:
            return ""
        return " WHERE " + " AND ".join(self.condition(depth, columns) for _ in range(random.randint(1, 2)))

    def derived(self, depth):
        """A query that has the columns a, b and c."""
        random = self.random
        text, columns = self.joined(depth)
        where = self._where(depth, columns)
        shown = [random.choice(columns) for _ in _COLUMNS]
        chance = random.random()
        if chance < 0.4:
            query = f"SELECT {random.choice(('', '', 'DISTINCT '))}" + \
                f"{', '.join(f'{one} AS {name}' for one, name in zip(shown, _COLUMNS))} FROM {text}{where}"
        elif chance < 0.65:
            having = random.choice(("", "", " HAVING COUNT(*) > 1"))
            rollup = random.choice(("", "", "", " WITH ROLLUP")) if not having else ""
            query = f"SELECT {shown[0]} AS a, COUNT(*) AS b, {random.choice(('MAX', 'MIN', 'SUM', 'COUNT'))}({shown[2]}) AS c FROM {text}{where}" \
                    f" GROUP BY {shown[0]}{rollup}{having}"
        elif chance < 0.75:
            query = f"SELECT COUNT(*) AS a, MAX({shown[1]}) AS b, MIN({shown[2]}) AS c FROM {text}{where}"
        elif chance < 0.85:
            query = f"SELECT {shown[0]} AS a, COUNT(*) OVER (PARTITION BY {shown[1]}) AS b, RANK() OVER (ORDER BY {shown[2]}) AS c FROM {text}{where}"
        else:
            query = f"SELECT {', '.join(f'{one} AS {name}' for one, name in zip(shown, _COLUMNS))} FROM {text}{where}"
            operation = random.choice(("UNION", "UNION ALL", "UNION ALL", "EXCEPT", "INTERSECT"))
            more, others = self.joined(depth + 1, 1)
            query += f" {operation} SELECT {', '.join(random.choice(others) for _ in _COLUMNS)} FROM {more}{self._where(depth + 1, others)}"
        return query

    def query(self):
        """The whole: one row says how many there are, and what is in them."""
        random = self.random
        text, columns = self.joined(0, 3)
        where = self._where(0, columns)
        shown = [random.choice(columns) for _ in range(3)]
        if random.random() < 0.6:
            values = ", ".join(f"COUNT({one}), SUM({one})" for one in shown)
            return f"SELECT COUNT(*), {values} FROM {text}{where}"
        if random.random() < 0.5:
            value = random.choice((f"COUNT({shown[1]})", f"SUM({shown[1]})", "COUNT(*)", f"COUNT(DISTINCT {shown[2]})"))
            limit = random.choice(("", " LIMIT 7", " LIMIT 5, 9"))
            return f"SELECT {shown[0]}, {value} FROM {text}{where} GROUP BY {shown[0]} ORDER BY 1{random.choice((' DESC', ''))}{limit}"
        limit = random.choice((" LIMIT 20", " LIMIT 3, 20", ""))
        return f"SELECT {', '.join(shown)} FROM {text}{where} ORDER BY {random.choice(('1, 2, 3', '3 DESC, 1, 2', '2, 1 DESC, 3'))}{limit}"


def _load(session, random):
    for table, rows in _TABLES.items():
        session.query(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b INT, c INT NOT NULL, KEY (a)) ENGINE=PANDO")
        for _ in range(rows):
            values = [str(random.randrange(_VALUES)) if random.random() < 0.9 else "NULL" for _ in range(2)]
            session.query(f"INSERT INTO {table} (a, b, c) VALUES ({', '.join(values)}, {random.randrange(_VALUES)})")
    session.query("CREATE VIEW v AS SELECT q.a, r.b, q.c FROM q JOIN r ON r.c = q.c AND r.a > 20")
    session.query(f"ANALYZE TABLE {', '.join(_TABLES)}")


def _answer(session, statement):
    try:
        return [tuple(row) for row in session.query(statement).rows]
    except SqlError as error:
        return error.number


_TOO_LONG = 1969


def _pushed(session):
    return int(session.query("SHOW STATUS LIKE 'Pando_queries_pushed'").rows[0][1])


def main():
    """Runs it all."""
    arguments = _arguments()
    checks = report.Checks()
    random = randoms.Random(arguments.seed)
    report.heading(f"{arguments.queries} queries, seed {arguments.seed}")
    plugin = engines.needs_plugin(["PANDO"])
    with PrivateServer("structures", engines.options("PANDO", 64), plugin=plugin, keep=arguments.keep) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE structures")
            session.query("USE structures")
            # 10.11 loses rows of outer joins within each other that it keeps in join buffers, of InnoDB's tables, too.
            session.query(f"SET max_statement_time = {_SECONDS_MAX}, optimizer_switch = 'outer_join_with_cache=off'")
            _load(session, random)
            before, given_up, rows = _pushed(session), 0, 0
            for _ in range(arguments.queries):
                statement = Structure(random).query()
                answers = []
                for way in ("ON", "OFF"):
                    session.query(f"SET pando_pushdown = {way}")
                    answers.append(_answer(session, statement))
                if _TOO_LONG in answers:
                    given_up += 1
                    continue
                rows += len(answers[0]) if isinstance(answers[0], list) else 0
                if answers[0] != answers[1]:
                    checks.check(False, f"ON as OFF: {statement}", f"  {str(answers[0])[:300]}\n  instead of {str(answers[1])[:300]}")
                    if arguments.keep:
                        break
            answered = _pushed(session) - before
            session.query("SET pando_pushdown = ON")
            asked = "SELECT COUNT(*) FROM p LEFT JOIN (SELECT q.a FROM q JOIN r ON r.c = q.c) x ON x.a = p.a"
            first = _answer(session, asked)
            session.query("DELETE FROM r ORDER BY c LIMIT 100")
            checks.check(first != _answer(session, asked), "rows lost on purpose are noticed")
    checks.check(answered > arguments.queries * _SHARE_ANSWERED_MIN,
                 f"the engine answered {answered} of {arguments.queries} queries, {rows} rows; {given_up} took too long")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
