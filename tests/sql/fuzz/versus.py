"""One round: a random program for two engines, and what to do about a difference."""

import collections
import itertools
import random
import re

from fuzz import known, schema, selects
from fuzz.changes import Changes
from fuzz.definitions import Definitions
from fuzz.sides import PLANS, Side
from fuzz.steps import How, Step
from sqlkit.client import ConnectionLost

_TABLES_MAX = 5
_SELECTS = (How.SELECT, How.ORDERED_SELECT)
_SHARE_SELECT, _SHARE_CHANGE, _SHARE_TRANSACTION, _SHARE_SETTINGS = 0.5, 0.33, 0.05, 0.03


class Difference(Exception):
    """The sides disagree."""

    def __init__(self, step, first, second, what):
        super().__init__(step.text())
        self.step, self.first, self.second, self.what = step, first, second, what


class Undecided(Exception):
    """A stated difference that leaves the databases different: the round is over."""


class Bug(Exception):
    """The server's log tells of a bug of the engine."""


class Program:
    """The random program: the next steps depend on what is in the database now."""

    def __init__(self, rng, length):
        self.rng, self.length = rng, length
        self.tables, self._numbers = {}, itertools.count(1)
        self.is_large = rng.random() < 0.15

    def steps(self, read):
        """Yields steps; `read()` tells of the tables."""
        rng, made = self.rng, 0
        yield Step(selects.settings(rng), How.QUIET)
        yield Step(selects.constants(rng), How.QUIET)
        for _ in range(rng.randint(1, 1 if self.is_large else 3)):
            yield Step(schema.create(rng, f"t{next(self._numbers)}"), How.DDL)
        while made < self.length:
            self.tables = read()
            if self.is_large and made == 0 and self.tables:
                made += 1
                yield from Changes(rng, self.tables.values()).thousands()
            if not self.tables:
                yield Step(schema.create(rng, f"t{next(self._numbers)}"), How.DDL)
                made += 1
                continue
            if len(self.tables) > _TABLES_MAX:
                yield Step(f"DROP TABLE {rng.choice(list(self.tables))}", How.DDL)
                continue
            for step in self._some():
                made += 1
                yield step
        for table in list(read()):
            yield Step(table, How.CHECK)

    def _some(self):
        rng, tables = self.rng, list(self.tables.values())
        choice = rng.random()
        if choice < _SHARE_SELECT:
            text, is_ordered = selects.Selects(rng, tables, self.is_large).any()
            if rng.random() < 0.04:
                return [Step(f"{rng.choice(('EXPLAIN', 'EXPLAIN FORMAT=JSON', 'EXPLAIN EXTENDED', 'ANALYZE FORMAT=JSON'))} {text}", How.QUIET)]
            return [Step(text, How.ORDERED_SELECT if is_ordered else How.SELECT)]
        choice -= _SHARE_SELECT
        if choice < _SHARE_CHANGE:
            steps = Changes(rng, tables).any()
            if any(table.is_versioned for table in tables):
                steps = [Step(f"SET timestamp = {1200000000 + next(self._numbers)}", How.QUIET)] + steps
            return steps
        choice -= _SHARE_CHANGE
        if self.is_large and rng.random() < 0.7:
            return Changes(rng, tables).update_some()
        if choice < _SHARE_TRANSACTION:
            return Changes(rng, tables).transaction()
        choice -= _SHARE_TRANSACTION
        if choice < _SHARE_SETTINGS:
            return [Step(selects.settings(rng), How.QUIET)]
        return Definitions(rng, tables, self._numbers).any()


class Runner:
    """Runs steps on two sides and compares."""

    def __init__(self, sides, counts):
        self.sides, self.counts = sides, counts

    def step(self, step):
        """True when both did it. Raises Difference, Undecided, ConnectionLost."""
        first, second = (side.execute(step) for side in self.sides)
        if step.how is How.DDL and known.is_refused_manner(first) != known.is_refused_manner(second):
            self.counts["done at once by one of them only"] += 1
            plain = Step(re.sub(r", ALGORITHM=\w+(, LOCK=NONE)?", "", step.sql), How.DDL)
            first, second = (side.execute(plain) if known.is_refused_manner(answer) else answer
                             for side, answer in zip(self.sides, (first, second)))
        if step.how in _SELECTS and self.sides[0].has_pushdown:
            self._compare_pushdown(step, first)
        if self._same(first, second):
            return first[0] != "error"
        why = known.reason(step, first, second)
        if why is None and re.match("REPLACE|LOAD.* REPLACE ", step.sql) and self.sides[0].has_hash_key():
            why = "REPLACE counts a row that was the same as two, where the server keeps a key unique by a hash"
        if why is None and self.sides[0].has_hash_key():
            why = known.reason_by_hash_keys(step, first, second)
        if why is None and step.how in _SELECTS and self._depends_on_plan(step, first, second):
            why = "the answer depends on the plan"
        if why is None:
            raise Difference(step, first, second, "the engines differ")
        self.counts["stated: " + why] += 1
        if step.how not in _SELECTS and known.ends_round(step, first, second):
            raise Undecided(why)
        return False

    @staticmethod
    def _same(first, second):
        if first[0] == "checked":
            return first == second == ("checked", "", [])
        return first[:2] == second[:2]

    def _compare_pushdown(self, step, first):
        other = self.sides[0].without_pushdown(step)
        warns_by_plan = re.search(r"HAVING|JOIN|\(SELECT|LIMIT|OVER|UNION|EXCEPT|INTERSECT|EXECUTE", step.sql)
        if first[:2] == other[:2]:
            if first[0] != "error" and not warns_by_plan and first[2] != other[2]:
                # Looking for ranges of keys warns, too. `matrix.sh` compares warnings of tables without keys.
                self.counts["stated: pushdown: other warnings"] += 1
            return
        if first[:2] != other[:2] and (known.may_depend_on_evaluation(first, other) or self._depends_on_plan(step, first, other)):
            self.counts["stated: pushdown: the answer depends on the plan"] += 1
            return
        raise Difference(step, first, other, "with pushdown and without")

    def _depends_on_plan(self, step, first, second):
        if known.may_depend_on_evaluation(first, second):
            return True
        innodb = [answer[:2] for answer in self.sides[1].with_plans(step)] + [second[:2]]
        if len(set(map(repr, innodb))) > 1:
            return True
        return False


class Rounds:
    """Makes rounds, repeats and shortens them."""

    def __init__(self, server, arguments, counts):
        self.server, self.arguments, self.counts = server, arguments, counts
        self.log_seen = 0

    def sides(self, peer_plan=None):
        """Fresh sides."""
        first, second = self.arguments.engine, self.arguments.peer
        if peer_plan is not None:
            return [Side(self.server, second, "fuzz_a"), Side(self.server, second, "fuzz_b", peer_plan)]
        return [Side(self.server, first, "fuzz_a"), Side(self.server, second, "fuzz_b")]

    def run(self, number, steps, plant=False):
        """One new round; its steps are appended to `steps`. `plant`: a row of the first side is lost on the way."""
        rng = random.Random(f"{self.arguments.seed}/{number}")
        program, sides = Program(rng, self.arguments.length), self.sides()
        runner, cached = Runner(sides, self.counts), [None]

        def read():
            if cached[0] is None:
                cached[0] = schema.read(sides[0].session(), sides[0].database)
            return cached[0]
        for side in sides:
            side.begin()
        try:
            for step in program.steps(read):
                steps.append(step)
                ok = runner.step(step)
                if step.how in (How.DDL, How.QUIET):
                    cached[0] = None if step.how is How.DDL or step.sql.startswith(("ALTER", "CREATE", "DROP")) else cached[0]
                self.counts["statements"] += 1
                self.counts["refused by both"] += not ok
                if plant and ok and step.how is How.DONE and step.sql.startswith("INSERT"):
                    table = step.sql.partition(" INTO ")[2].split()[0]
                    sides[0].session().query(f"DELETE FROM {table} LIMIT 1")
                self.check_log()
        except Undecided:
            self.counts["rounds ended early"] += 1
        finally:
            for side in sides:
                side.close()

    def check_log(self):
        """Raises Bug when the log tells of one that was contained."""
        size = self.server.log_size()
        if size == self.log_seen:
            return
        text = self.server.log_text(self.log_seen)
        self.log_seen = size
        if "a bug was found" in text or "is corrupt" in text.lower() and "pando" in text.lower():
            raise Bug(text[:6000])

    def replay(self, steps, sides):
        """The difference that the steps lead to, or None."""
        if not self.server.is_running():
            self.server.start()
        self.log_seen = self.server.log_size()
        runner = Runner(sides, collections.Counter())
        try:
            for side in sides:
                side.begin()
            for step in steps:
                runner.step(step)
                self.check_log()
        except (Difference, Bug) as found:
            return found
        except Undecided:
            return None
        finally:
            for side in sides:
                side.close()
        return None

    def is_of_the_peer(self, steps, difference):
        """Whether the peer disagrees with itself, by other plans, at the same step."""
        for plan in range(len(PLANS)):
            try:
                found = self.replay(steps, self.sides(plan))
            except ConnectionLost:
                return False
            if isinstance(found, Difference) and found.step == difference.step:
                return True
        return False

    def fails(self, steps, cause):
        """Whether the steps fail in the manner of `cause`."""
        try:
            found = self.replay(steps, self.sides())
        except ConnectionLost:
            return isinstance(cause, ConnectionLost)
        if isinstance(cause, Difference):
            return isinstance(found, Difference) and found.what == cause.what and found.first[0] == cause.first[0] \
                and found.second[0] == cause.second[0]
        return isinstance(found, Bug) and isinstance(cause, Bug)
