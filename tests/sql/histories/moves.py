"""What `moved_rows.py` plays: tables whose rows are found by a key `u` on `tok`, ways to move a row, and reads that meet it.

`tok` is a number in all tables but those where it is text; `{2}` in a statement is the value that stands for 2."""

import dataclasses
import re

from .program import Step


@dataclasses.dataclass(frozen=True)
class Shape:
    """One table."""
    columns: str
    text: bool = False
    null: bool = False

    @property
    def create(self):
        return f"CREATE TABLE {{table}} ({self.columns}) ENGINE={{engine}}" + self._partitions()

    def _partitions(self):
        return " PARTITION BY HASH (tok) PARTITIONS 3" if "PRIMARY KEY (pos, tok)" in self.columns else ""

    def value(self, number):
        return f"'{'abcdefghijkl'[number]}{number}'" if self.text else str(number)

    @property
    def rows(self):
        rows = [(n * 10, self.value(n), n % 3) for n in range(1, 6)]
        rows += [(60, "NULL", 0), (70, "NULL", 1)] if self.null else []
        return [_Row(row) for row in rows]


class _Row(tuple):
    def __str__(self):
        return f"({', '.join(map(str, self))})"


_INT = "pos INT PRIMARY KEY, tok INT, w INT"
TABLES = {
    "unique": Shape(f"{_INT}, UNIQUE u (tok)"),
    "nullable": Shape(f"{_INT}, UNIQUE u (tok), KEY k (w)", null=True),
    "composite": Shape(f"{_INT}, UNIQUE u (tok, w)"),
    "prefix": Shape("pos INT PRIMARY KEY, tok VARCHAR(20), w INT, UNIQUE u (tok(1))", text=True),
    "text": Shape("pos INT PRIMARY KEY, tok VARCHAR(20) COLLATE latin1_swedish_ci, w INT, UNIQUE u (tok)", text=True),
    "virtual": Shape(f"{_INT}, v INT AS (tok) VIRTUAL INVISIBLE, UNIQUE u (v)"),
    "partitions": Shape("pos INT, tok INT, w INT, PRIMARY KEY (pos, tok), UNIQUE u (tok)"),
    "hidden": Shape("pos INT, tok INT, w INT, UNIQUE u (tok)"),
    "plain": Shape(f"{_INT}, KEY u (tok)"),
    "plain_text": Shape("pos INT PRIMARY KEY, tok VARCHAR(20) COLLATE latin1_swedish_ci, w INT, KEY u (tok)", text=True),
}

LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]

MOVES = {
    "row up": ["UPDATE {table} SET pos = 100 WHERE pos = 20"],
    "row down": ["UPDATE {table} SET pos = 5 WHERE pos = 20"],
    "anew up": ["DELETE FROM {table} WHERE pos = 20", "INSERT INTO {table} (pos, tok, w) VALUES (100, {2}, 7)"],
    "anew down": ["DELETE FROM {table} WHERE pos = 20", "INSERT INTO {table} (pos, tok, w) VALUES (5, {2}, 7)"],
    "anew there": ["DELETE FROM {table} WHERE pos = 20", "INSERT INTO {table} (pos, tok, w) VALUES (20, {2}, 7)"],
    "replace": ["REPLACE INTO {table} (pos, tok, w) VALUES (100, {2}, 2)"],
    "key up": ["UPDATE {table} SET tok = {7} WHERE pos = 20"],
    "key down": ["UPDATE {table} SET tok = {0} WHERE pos = 20"],
    "both": ["UPDATE {table} SET tok = {7}, pos = 5 WHERE pos = 20"],
    "swap": ["UPDATE {table} SET tok = {9} WHERE pos = 20", "UPDATE {table} SET tok = {2} WHERE pos = 40",
             "UPDATE {table} SET tok = {4} WHERE pos = 20"],
    "there and back": ["UPDATE {table} SET pos = 100 WHERE pos = 20", "UPDATE {table} SET pos = 20 WHERE pos = 100"],
    "delete": ["DELETE FROM {table} WHERE pos = 20"],
    "insert": ["INSERT INTO {table} (pos, tok, w) VALUES (25, {7}, 1)"],
    "value": ["UPDATE {table} SET w = 9 WHERE pos = 20"],
}

ENDS = {"commit": "COMMIT", "rollback": "ROLLBACK"}

_U = "FORCE INDEX (u)"
READS = {
    "up": f"SELECT pos, tok, w FROM {{table}} {_U} WHERE {{tok}} >= {{0}} ORDER BY {{tok}} FOR UPDATE",
    "down": f"SELECT pos, tok, w FROM {{table}} {_U} WHERE {{tok}} >= {{0}} ORDER BY {{tok}} DESC FOR UPDATE",
    "range up": f"SELECT pos, tok, w FROM {{table}} {_U} WHERE {{tok}} BETWEEN {{2}} AND {{3}} ORDER BY {{tok}} FOR UPDATE",
    "range down": f"SELECT pos, tok, w FROM {{table}} {_U} WHERE {{tok}} BETWEEN {{1}} AND {{4}} ORDER BY {{tok}} DESC"
                  " LOCK IN SHARE MODE",
    "key alone": f"SELECT tok FROM {{table}} {_U} WHERE {{tok}} >= {{1}} ORDER BY {{tok}} LOCK IN SHARE MODE",
    "point": f"SELECT pos, tok, w FROM {{table}} {_U} WHERE {{tok}} = {{2}} FOR UPDATE",
    "points": f"SELECT pos, tok, w FROM {{table}} {_U} WHERE {{tok}} IN ({{2}}, {{4}}, {{7}}) ORDER BY {{tok}} FOR UPDATE",
    "new point": f"SELECT pos, tok, w FROM {{table}} {_U} WHERE {{tok}} = {{7}} FOR UPDATE",
    "condition": f"SELECT pos, tok, w FROM {{table}} {_U} WHERE {{tok}} BETWEEN {{1}} AND {{7}} AND w <> 1"
                 " ORDER BY {tok} FOR UPDATE",
    "limit": f"SELECT pos, tok, w FROM {{table}} {_U} WHERE {{tok}} >= {{2}} ORDER BY {{tok}} LIMIT 1 FOR UPDATE",
    "skip": f"SELECT pos, tok, w FROM {{table}} {_U} WHERE {{tok}} >= {{0}} ORDER BY {{tok}} FOR UPDATE SKIP LOCKED",
    "no wait": f"SELECT pos, tok, w FROM {{table}} {_U} WHERE {{tok}} >= {{0}} ORDER BY {{tok}} FOR UPDATE NOWAIT",
    "max": f"SELECT MAX({{tok}}) FROM {{table}} {_U} WHERE {{tok}} <= {{3}} FOR UPDATE",
    "delete": f"DELETE t FROM {{table}} t {_U} WHERE {{tok}} BETWEEN {{2}} AND {{3}}",
    "update": f"UPDATE {{table}} {_U} SET w = w + 100 WHERE {{tok}} BETWEEN {{2}} AND {{7}}",
    "update down": f"UPDATE {{table}} {_U} SET w = w + 100 WHERE {{tok}} >= {{2}} ORDER BY {{tok}} DESC LIMIT 4",
    "move on": f"UPDATE {{table}} {_U} SET pos = pos + 1000 WHERE {{tok}} BETWEEN {{2}} AND {{7}}",
    "insert select": f"INSERT INTO {{table}} (pos, tok, w) SELECT pos + 500, NULL, w FROM {{table}} {_U}"
                     " WHERE {tok} BETWEEN {2} AND {3}",
    "rows up": "SELECT pos, tok, w FROM {table} FORCE INDEX (PRIMARY) WHERE pos >= 0 ORDER BY pos FOR UPDATE",
    "rows down": "SELECT pos, tok, w FROM {table} FORCE INDEX (PRIMARY) WHERE pos >= 0 ORDER BY pos DESC FOR UPDATE",
    "rows": "SELECT pos, tok, w FROM {table} USE INDEX () FOR UPDATE",
    "delete rows": "DELETE FROM {table} WHERE w >= 1",
    "update rows": "UPDATE {table} SET w = w + 100 WHERE w >= 1",
}


def is_of_use(table, level, move, end, read):
    """Whether the case can be played, and tells something."""
    shape = TABLES[table]
    if "FORCE INDEX (PRIMARY)" in READS[read] and "PRIMARY" not in shape.columns:
        return False
    # Of these nobody waits, or the move fails.
    if read == "insert select" and (table == "partitions" or level == "READ COMMITTED"):
        return False
    return not (move == "replace" and "UNIQUE" not in shape.columns)


def may_wait_alone(case, is_first):
    """Whether only one engine may wait: InnoDB for a row beside the one that is wanted; PANDO for a row of which only other
    columns than the key's are being changed, where InnoDB locks the entry alone."""
    return case[-1] == ("key alone" if is_first else "max")


def _filled(sql, shape):
    sql = re.sub(r"\{(\d)\}", lambda match: shape.value(int(match[1])), sql)
    return sql.replace("{tok}", "v" if "VIRTUAL" in shape.columns else "tok")


def steps_of(shape, move, end, read):
    """The mover's statements, the other's, and the ends."""
    steps = [Step(0, _filled(sql, shape)) for sql in move]
    steps.append(Step(1, _filled(read, shape), read.startswith("SELECT")))
    return [*steps, Step(0, end), Step(1, "COMMIT")]
