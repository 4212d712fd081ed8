#!/usr/bin/env python3
"""Queries answered in the engine: the same answers as the server's, byte for byte.

    tests/sql/pushdown.sh [--queries 1500] [--seed 1] [--tables 12] [--rows-share 0.4]

Random queries (`pushdown/queries.py`) over random tables (`pushdown/tables.py`), alone and joined, in PANDO and in InnoDB.
Each is asked three times: of PANDO with pando_pushdown ON and OFF, of InnoDB, and in every tenth case inside a transaction that
has changed rows. What has to be equal: ON and OFF always, what they warn of included; InnoDB too, but for the warnings, and
where equal texts that are not the same leave the answer to the order of rows, and what the optimizer says while it makes a
plan; and of a sum with more than 65 digits the last
ones, which the server rounds as rows come. Warnings are compared as the set of what is said: how often each is said, and
whether at all, depends on how many rows a plan computes an expression of, as it does between the server's own plans (in one query of
fifty at most). The last digits of a sum, mean or
variance of DOUBLEs are those of the order of rows, which is another in another plan: see `_rounded`. How many queries the engine answered is
told, and has to be a good part of them. A part of the queries gives rows, not groups: there conditions are pushed to
scans, and how many rows these have passed by is told. In the end a row is deleted in one engine only, which has to be noticed.
"""

import argparse
import itertools
import pathlib
import random as randoms
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from pushdown import queries, selects, tables
from sqlkit import engines, program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_SHARE_ANSWERED_MIN = 0.2
_DIGITS_SURE = 65
_OF_ORDER = re.compile(r"(?:STD|STDDEV_SAMP|VARIANCE|VAR_SAMP|AVG)\(")
_DOUBLE = 5
_DIGITS_OF_MEAN = 12
_NOTHING = 1e-20
# Of queries of which one plan warns and the other does not, as it computes an expression of no row.
_SILENT_SHARE_MAX = 0.02
_NO_SUCH_COLUMN = 1054


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1500)
    parser.add_argument("--tables", type=int, default=12)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--rows-share", type=float, default=0.4, help="of queries that give rows")
    parser.add_argument("--selects-share", type=float, default=0.35, help="of queries of any shape, before the others")
    parser.add_argument("--prepared-share", type=float, default=0.15, help="of queries that are prepared and executed again")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reasons", action="store_true", help="tell why SELECTs were left to the server")
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def _answer(session, statement, prepared=None):
    """What a statement answers; `prepared`: the name under which it was prepared."""
    try:
        result = session.query(f"EXECUTE {prepared}" if prepared else statement)
    except SqlError as error:
        return ("error", error.number)
    warnings = session.query("SHOW WARNINGS").rows if result.warnings else ()
    # At which row of a plan something is said is that plan's.
    said = frozenset((level, code, re.sub(rb" at row [0-9]+$", b"", text)) for level, code, text in warnings)
    return (tuple(result.columns), _rounded([tuple(row) for row in result.rows], result.types, statement), said)


def _difference(first, second):
    """Where two answers differ, in a few words."""
    if first[0] == "error" or second[0] == "error" or first[0] != second[0]:
        return f"{first[:2]}\n  instead of {second[:2]}"
    rows = [pair for pair in itertools.zip_longest(first[1], second[1]) if pair[0] != pair[1]][:5]
    warnings = " and ".join(str(sorted(answer[2], key=repr)[:3]) for answer in (first, second))
    return "\n".join(f"  {one}\n  instead of {other}" for one, other in rows) or f"warnings {warnings}"


def _shown(statement):
    """The parts of the outermost select list."""
    parts, depth, quoted = [""], 0, False
    for at, letter in enumerate(statement):
        quoted ^= letter == "'"
        depth += 0 if quoted else (letter == "(") - (letter == ")")
        is_outer = not depth and not quoted
        if is_outer and statement.startswith(" FROM ", at):
            break
        if letter == "," and is_outer:
            parts.append("")
        else:
            parts[-1] += letter
    parts[0] = re.sub(r"^SELECT (/\* select \*/ )?", "", parts[0])
    return [part.strip() for part in parts]


def _rounded(rows, types, statement):
    """Rows with so many digits of means and variances of DOUBLEs as are the same in whatever order values are added up: a few
    thousand lose up to four of sixteen digits. Only where such a
    value is shown alone: where something is done with it, the engine leaves the query to the server."""
    open_columns = [number for number, (part, of_type) in enumerate(zip(_shown(statement), types))
                    if of_type == _DOUBLE and _OF_ORDER.match(part)]
    if not open_columns or re.match(r"SELECT (/\* select \*/ )?DISTINCT ", statement):
        return rows

    def rounded(cell):
        return cell and (b"%.*g" % (_DIGITS_OF_MEAN, float(cell)) if abs(float(cell)) > _NOTHING else b"0")

    return [tuple(rounded(cell) if number in open_columns else cell for number, cell in enumerate(row)) for row in rows]


def _sayings(said, statement):
    """What was said, by what says it: of a literal, or of values of rows."""
    kinds = {}
    for level, code, text in said:
        value = re.search(rb"'(.*)'", text)
        literal = value[1] if value and value[1] in statement.encode() else b""
        kinds.setdefault((level, code, re.sub(rb"'.*'", b"", text), literal), set()).add(text)
    return kinds


def _said_alike(first, second, statement):
    """Whether the same is said; a plan that computes an expression of no row says nothing of it."""
    first, second = (_sayings(said, statement) for said in (first, second))
    return all(first[kind] == second[kind] for kind in first.keys() & second.keys())


def _is_said_of_pairs(on, off, statement):
    """Whether all that the engine does not warn of may be said of rows of several tables, of which its plan looks at fewer: where it hears anything of
    these itself, the answer is the server's, so it never warns of more."""
    return on[2] < off[2] and (" JOIN " in statement or statement.count("SELECT ") > 1)


def _nearly(answer):
    """The answer with no more digits of a number than the server always has: a sum with more depends on the order of
    rows, in each engine."""
    if answer[0] == "error":
        return answer

    def short(cell):
        is_long = isinstance(cell, bytes) and len(cell) > _DIGITS_SURE and re.fullmatch(rb"-?[0-9]+\.[0-9]+", cell)
        return cell[:_DIGITS_SURE] if is_long else cell

    return (answer[0], [tuple(short(cell) for cell in row) for row in answer[1]], answer[2])


def _quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _counter(session, name):
    return int(session.query(f"SHOW GLOBAL STATUS LIKE 'Pando_{name}'").rows[0][1])


def _fill(session, name, engine, columns, key, rows):
    head, tail = key
    definitions = ", ".join(column.definition() for column in columns)
    session.query(f"CREATE TABLE {name} ({head}, {definitions}{tail}) ENGINE={engine}")
    for begin in range(0, len(rows), 200):
        session.query(f"INSERT INTO {name} VALUES " + ", ".join(rows[begin:begin + 200]))
    # Columns are read of what has come to the leaves; every other table has not.
    if engine == "PANDO" and len(rows) % 2 == 0:
        session.query(f"OPTIMIZE TABLE {name}")


def _change(session, random, name, columns):
    """Changes rows in an open transaction; the same for the same random numbers."""
    column = random.choice(columns)
    for statement in (f"UPDATE {name} SET {column.name} = {column.value(random)} WHERE id % 7 = 3",
                      f"DELETE FROM {name} WHERE id % 11 = 5",
                      f"INSERT INTO {name} SELECT id + 100000, {', '.join(c.name for c in columns)} FROM {name}"
                      " WHERE id % 13 = 1 AND id < 100000"):
        _answer(session, statement)


class Run:
    """A table in both engines, and what was asked of it."""

    def __init__(self, session, checks, random, number, rows, shares):
        self.session, self.checks, self.random = session, checks, random
        self.pando, self.innodb = f"p{number}", f"i{number}"
        self.rows_share, self.selects_share, self.prepared_share = shares
        self.columns = tables.columns(random)
        key = tables.key(random, self.columns)
        literals = [f"({row + 1}, {', '.join(c.value(random) for c in self.columns)})" for row in range(rows)]
        _fill(session, self.pando, "PANDO", self.columns, key, literals)
        _fill(session, self.innodb, "InnoDB", self.columns, key, literals)
        self.names = [{"t": self.pando}, {"t": self.innodb}]
        self.dimensions = [self._dimension(letter) for letter in "de"]
        # Two equal texts that are not the same may be told of in any order.
        self.is_determined = all(self._is_determined(self.pando, column) for column in self.columns) and all(
            self._is_determined(self.names[0][letter], column)
            for letter, of in zip("de", self.dimensions) for column in of)
        self.innodb_differs = self.warnings_differ = self.silent = self.asked_for_groups = 0

    def _dimension(self, letter):
        """A smaller table that the first one can be joined with; its key is unique, or not a key."""
        random = self.random
        columns = tables.dimension(random, letter)
        is_key = random.random() < 0.7
        keys = random.sample(columns[0].literals, 20) if is_key else random.choices(columns[0].literals, k=25)
        literals = [f"({value}, {', '.join(c.value(random) for c in columns[1:])})" for value in keys]
        head = columns[0].definition() + (" PRIMARY KEY" if is_key else "")
        for names, engine in zip(self.names, ("PANDO", "InnoDB")):
            names[letter] = names["t"] + letter
            _fill(self.session, names[letter], engine, columns[1:], (head, ""), literals)
        return columns

    def drop(self):
        """Drops its tables."""
        self.session.query(f"DROP TABLE {', '.join(name for names in self.names for name in names.values())}")

    def _is_determined(self, table, column):
        if column.family != "text":
            return True
        counts = self.session.query(f"SELECT COUNT(DISTINCT {column.name}), COUNT(DISTINCT BINARY {column.name})"
                                    f" FROM {table}").rows[0]
        return counts[0] == counts[1]

    def ask(self, count):
        """Asks random queries; False: one of the answers was wrong."""
        session = self.session
        for number in range(count):
            in_transaction = number % 10 == 9
            if in_transaction:
                seed = self.random.random()
                session.query("BEGIN")
                _change(session, randoms.Random(seed), self.pando, self.columns)
                _change(session, randoms.Random(seed), self.innodb, self.columns)
            is_of_rows = self.random.random() < self.rows_share
            make = queries.rows_query if is_of_rows else queries.query
            if self.random.random() < self.selects_share:
                make, is_of_rows = selects.query, False
            statement = make(self.random, self.columns, self.dimensions)
            self.asked_for_groups += not is_of_rows
            good = self._ask_one(statement)
            if in_transaction:
                session.query("ROLLBACK")
            if not good:
                return False
        return True

    def _ask_one(self, statement):
        session = self.session
        session.query("SET pando_pushdown = ON")
        pando = statement.format(**self.names[0])
        on = _answer(session, pando)
        session.query("SET pando_pushdown = OFF")
        off = _answer(session, pando)
        innodb = self._as_named(_answer(session, statement.format(**self.names[1])))
        if "error" not in (on[0], off[0]) and on[2] != off[2] and self._same((*on[:2], off[2]), off, statement) and (
                _said_alike(on[2], off[2], pando) or self._is_said_of_plan(on, off, pando) or _is_said_of_pairs(on, off, pando)):
            self.warnings_differ += 1
            self.silent += 1
            on = (*on[:2], off[2])
        elif not self._same(on, off, statement) and not self._is_servers(pando):
            self.checks.check(False, f"ON as OFF: {pando}", _difference(on, off) + self._warnings(pando) + self._columns())
            return False
        if not self._same(_nearly(on), _nearly(innodb), statement):
            if on[:2] == innodb[:2] and "error" not in (on[0], innodb[0]):
                # How many rows a condition warns of depends on the server's plan, which is another one in InnoDB.
                self.warnings_differ += 1
            elif self.is_determined and not selects.OPEN.search(statement):
                self.checks.check(False, f"as InnoDB: {pando}", _difference(on, innodb))
                return False
            else:
                self.innodb_differs += 1
        return self.random.random() >= self.prepared_share or on[0] == "error" or self._ask_again(pando)

    def _ask_again(self, pando):
        """Asks it prepared. Without the engine it is prepared anew: the server's own later executions differ from its first now and then."""
        answers = {}
        for way in ("ON", "OFF"):
            self.session.query(f"SET pando_pushdown = {way}")
            if _answer(self.session, f"PREPARE again FROM {_quoted(pando)}")[0] == "error":
                return True
            answers[way] = [_answer(self.session, pando, "again") for _ in range(3)]
            self.session.query("DEALLOCATE PREPARE again")
        for number, (on, off) in enumerate(zip(answers["ON"], answers["OFF"]), 1):
            if number > 1 and off == ("error", _NO_SUCH_COLUMN):
                # The server's own: in a later execution it does not find some columns any more.
                continue
            if on[0] != "error":
                on = (*on[:2], off[2])
            if not self._same(on, off, pando) and not self._is_servers(pando):
                self.checks.check(False, f"ON as OFF, execution {number}: {pando}", _difference(on, off) + self._columns())
                return False
        return True

    def _as_named(self, answer):
        """The answer of InnoDB, with PANDO's tables in the names of columns, which are the text of their expressions."""
        if answer[0] == "error":
            return answer
        return (tuple(re.sub(rf"\b{self.innodb}([de]?)\b", rf"{self.pando}\1", name) for name in answer[0]), *answer[1:])

    def _is_said_of_plan(self, on, off, pando):
        """Whether all that the server warns of, and the engine does not, the optimizer says while it makes a plan."""
        self.session.query("SET pando_pushdown = OFF")
        plan = _answer(self.session, f"EXPLAIN {pando}")
        return on[2] < off[2] == on[2] | plan[2] if plan[0] != "error" else False

    def _is_servers(self, pando):
        """Whether the answer depends on the order of peers, or of what is put together, and is the server's own: it met rows in
        another order only because a part of the query (a derived table) was answered for it."""
        if not re.search(r" OVER |GROUP_CONCAT|STD|VAR", pando):
            return False
        self.session.query("SET pando_pushdown = ON")
        declined = self._declined()
        _answer(self.session, pando)
        if self._declined() > declined:
            return True
        try:
            plan = self.session.query(f"EXPLAIN {pando}").rows
        except SqlError:
            return False
        return not any(b"PUSHED SELECT" in tuple(row) for row in plan)

    def _declined(self):
        """How many SELECTs were left to the server, be it while they ran."""
        total = self.session.query("SELECT IFNULL(SUM(queries), 0) FROM information_schema.pando_queries_declined")
        return int(total.rows[0][0])

    def _columns(self):
        """What the columns of its tables are."""
        return "".join(f"\n  {column.name} {column.sql_type}" for of in [self.columns] + self.dimensions for column in of)

    def _warnings(self, statement):
        """What each way warns of."""
        told = []
        for way in ("ON", "OFF"):
            self.session.query(f"SET pando_pushdown = {way}")
            answer = _answer(self.session, statement)
            if answer[0] != "error":
                told += [f"\n  {way}: {row}" for row in sorted(answer[2], key=repr)[:5]]
        return "".join(told)

    def notices_a_lost_row(self):
        """Whether a row that one engine does not have makes a difference."""
        self.session.query(f"DELETE FROM {self.pando} WHERE id = 1")
        self.session.query("SET pando_pushdown = ON")
        statement = "SELECT COUNT(*), MIN(id) FROM {}"
        answers = [_answer(self.session, statement.format(name)) for name in (self.pando, self.innodb)]
        return not self._same(*answers, statement)

    def _same(self, first, second, statement):
        if first == second or first[0] == "error" or second[0] == "error":
            return first == second
        if "HAVING" in statement and first[:2] == second[:2]:
            # How often HAVING is evaluated, and warns, depends on the plan.
            return True
        if self.is_determined and selects.ORDERED.search(statement) and not selects.TEXT.search(statement):
            # By all that is shown.
            return False
        if selects.SELECT in statement and "LIMIT" in statement and len(first[1]) == len(second[1]):
            # Which of equal rows come first is open; and so which of them are among those, if they are not the same.
            return first[0] == second[0] and (not self.is_determined or sorted(first[1], key=repr) == sorted(second[1], key=repr))
        if (queries.ROWS in statement or selects.SELECT in statement) and "LIMIT" not in statement:
            return (first[0], sorted(first[1], key=repr)) == (second[0], sorted(second[1], key=repr)) and \
                first[2] == second[2]
        # Without an order for all of its rows the answer is a set.
        if "GROUP BY" in statement and ("ORDER BY" not in statement or "derived" in statement):
            if "LIMIT" in statement:
                return len(first[1]) == len(second[1])
            key = repr
            return sorted(first[1], key=key) == sorted(second[1], key=key) and first[0] == second[0]
        return False


def main():
    """Runs it all."""
    arguments = _arguments()
    checks = report.Checks()
    random = randoms.Random(arguments.seed)
    report.heading(f"{arguments.queries} queries over {arguments.tables} tables, seed {arguments.seed}")
    plugin = engines.needs_plugin(["PANDO"])
    with PrivateServer("pushdown", engines.options("PANDO", 64), plugin=plugin, keep=arguments.keep) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE pushdown")
            session.query("USE pushdown")
            session.query("SET max_error_count = 65535")
            session.query("SET sql_mode = '', @five = 5, @word = 'ab', @day = '2020-01-01'")
            before = _counter(session, "queries_pushed")
            differing = asked = warned = silent = 0
            for number in range(arguments.tables):
                run = Run(session, checks, random, number, arguments.rows + number % 2,
                          (arguments.rows_share, arguments.selects_share, arguments.prepared_share))
                count = arguments.queries // arguments.tables
                run.ask(count)
                asked += run.asked_for_groups
                differing += run.innodb_differs
                warned += run.warnings_differ
                silent += run.silent
                if number == arguments.tables - 1:
                    checks.check(run.notices_a_lost_row(), "a row lost on purpose is noticed")
                if not (arguments.keep and checks.failed):
                    run.drop()
                else:
                    break
            if arguments.reasons:
                status = session.query("SHOW ENGINE PANDO STATUS").rows[0][2].decode()
                print(status[status.find("SELECTs left to the server"):])
            answered = _counter(session, "queries_pushed") - before
            filtered = _counter(session, "rows_filtered") + _counter(session, "rows_skipped")
    checks.check(answered >= asked * _SHARE_ANSWERED_MIN,
                 f"the engine answered {answered} of {asked} queries; {differing} answers of InnoDB differ where the"
                 f" order of rows decides, {warned} in nothing but warnings of expressions that one plan has of no row")
    checks.check(silent <= 2 + arguments.queries * _SILENT_SHARE_MAX,
                 f"one of ON and OFF is silent of an expression in {silent} of {arguments.queries} queries")
    checks.check(filtered > arguments.queries, f"{filtered} rows were passed by")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
