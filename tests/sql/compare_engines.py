#!/usr/bin/env python3
"""The same random SQL for two engines; every answer must be the same.

    tests/sql/compare_engines.sh [--engine PANDO] [--peer InnoDB] [--rounds 40] [--steps 250]
                                 [--seconds N] [--seed N] [--round N] [--alters SHARE] [--plant]

Each round makes random tables (all column types, many collations, keys of every kind) and runs inserts,
updates, deletes, replaces, transactions with savepoints, DDL and queries, in one session that writes and
one that only reads. Rows, affected rows, warnings and error numbers are compared after each statement.
A difference is made short and printed as a script; `--seed S --round R` runs that round again.
--plant changes a row behind one engine's back, which must be noticed.
"""

import argparse
import collections
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from compare.program import Program
from compare.shrink import Shrinker
from compare.sides import Difference, Side, run_step
from compare.steps import Mode
from sqlkit import engines, program
from sqlkit.client import ConnectionLost
from sqlkit.server import PrivateServer

_CACHE_MB = 32
_ROWS_SHOWN = 8


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--peer", default="InnoDB")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--seconds", type=float, help="go on for so long, whatever --rounds says")
    program.add_seed(parser)
    parser.add_argument("--round", type=int, help="only this round of the seed")
    parser.add_argument("--shrink-seconds", type=float, default=60)
    parser.add_argument("--alters", type=float, default=0.0, help="share of steps that change columns (0.3)")
    parser.add_argument("--plant", action="store_true", help="plant a difference; succeeds when it is noticed")
    parser.add_argument("--option", action="append", default=[], help="one more server option")
    return parser.parse_args()


class Planter:
    """Deletes a row of the first engine's table after its n-th successful insert, when asked to."""

    def __init__(self, wanted):
        self._wanted, self._inserts = wanted, 0

    def __call__(self, number, step, sides):
        if number == 0:
            self._inserts = 0
        if self._wanted and step.mode is Mode.STATUS and step.sql.startswith("INSERT INTO"):
            self._inserts += 1
            if self._inserts == 20:
                table = step.sql.split("`")[1]
                sides[0].behind_its_back(f"DELETE FROM `{table}` LIMIT 1")


class Failure(Exception):
    """A round failed; `steps` led there."""

    def __init__(self, number, steps, cause):
        super().__init__(number)
        self.number, self.steps, self.cause = number, steps, cause


def _round(number, arguments, sides, counts):
    """One round: new tables, one random program."""
    rng = random.Random(f"{arguments.seed}/{number}")
    program, planter, steps = Program(rng, arguments.steps, arguments.alters), Planter(arguments.plant), []
    for side in sides:
        side.begin()
    try:
        for step in program.steps():
            steps.append(step)
            ok = run_step(step, sides)
            planter(len(steps) - 1, step, sides)
            program.done(ok)
            counts[(step.sql.split()[0] if step.mode is not Mode.CHECK else "CHECK", ok)] += 1
    except (Difference, ConnectionLost) as cause:
        raise Failure(number, steps, cause) from cause
    finally:
        for side in sides:
            side.close()


def _rounds(arguments):
    if arguments.round is not None:
        yield arguments.round
        return
    begin, number = time.monotonic(), 0
    while (number < arguments.rounds if arguments.seconds is None
           else time.monotonic() - begin < arguments.seconds):
        number += 1
        yield number


def _show_answer(engine, answer):
    print(f"  {engine}: {answer[0]} {'' if answer[0] == 'rows' else answer[1:]}")
    if answer[0] == "rows":
        print(f"    {len(answer[1])} rows")
        for row in answer[1][:_ROWS_SHOWN]:
            print(f"    {row}")


def _show_difference(difference, sides):
    print(f"difference at: {difference.step.text()}")
    first, second = difference.first, difference.second
    if first[0] == second[0] == "rows":
        # Only what one of them lacks, when the order is not the matter.
        missing = collections.Counter(first[1]) - collections.Counter(second[1])
        extra = collections.Counter(second[1]) - collections.Counter(first[1])
        if missing or extra:
            print(f"  only {sides[0].engine}: {list(missing.elements())[:_ROWS_SHOWN]}")
            print(f"  only {sides[1].engine}: {list(extra.elements())[:_ROWS_SHOWN]}")
            print(f"  ({len(first[1])} and {len(second[1])} rows)")
            return
    for side, answer in zip(sides, (first, second)):
        _show_answer(side.engine, answer)


def _explain(failure, arguments, server, sides):
    """Shrink the failing round and print it as a script."""
    print(f"round {failure.number} FAILED at step {len(failure.steps)}; again with: "
          f"--seed {arguments.seed} --round {failure.number} --steps {arguments.steps}")
    if isinstance(failure.cause, ConnectionLost):
        print(f"the server went away: {failure.cause}\n--- the end of its log\n{server.log_text()[-4000:]}---")
    else:
        _show_difference(failure.cause, sides)
    shrinker = Shrinker(server, sides, Planter(arguments.plant), failure.cause,
                        arguments.shrink_seconds)
    steps, again = shrinker.shrink(failure.steps)
    print(f"--- {len(steps)} steps " + ("that are enough" if again else "(it did not fail again)"))
    for step in steps:
        print(step.text())
    print("---")
    if again:
        try:
            difference = shrinker.replay(steps)
            if difference is not None:
                _show_difference(difference, sides)
        except ConnectionLost as lost:
            print(f"the server went away: {lost}")


def _summary(counts, rounds, seconds):
    refused = sum(count for (_, ok), count in counts.items() if not ok)
    kinds = collections.Counter()
    for (verb, _), count in counts.items():
        kinds[verb] += count
    shown = ", ".join(f"{verb} {count}" for verb, count in kinds.most_common(14))
    print(f"no difference: {rounds} rounds, {sum(kinds.values())} statements in {seconds:.0f} s, {refused} of them "
          f"refused by both alike ({shown})")


def _run(arguments, server):
    sides = [Side(server, arguments.engine, "cmp_a"), Side(server, arguments.peer, "cmp_b")]
    counts, begin, rounds = collections.Counter(), time.monotonic(), 0
    try:
        for number in _rounds(arguments):
            _round(number, arguments, sides, counts)
            rounds += 1
    except Failure as failure:
        if arguments.plant:
            print(f"the planted difference was noticed, at step {len(failure.steps)} of round {failure.number}")
            return 0
        _explain(failure, arguments, server, sides)
        return 1
    if arguments.plant:
        print("the planted difference was NOT noticed")
        return 1
    _summary(counts, rounds, time.monotonic() - begin)
    return 0


def main():
    arguments = _arguments()
    print(f"compare_engines: {arguments.engine} and {arguments.peer}, seed {arguments.seed}", flush=True)
    chosen = list(dict.fromkeys([arguments.engine, arguments.peer]))
    options = [option for engine in chosen for option in engines.options(engine, _CACHE_MB, 0)]
    # Nothing here outlives the run; InnoDB's DDL is slow when it syncs.
    options += ["--innodb-flush-method=nosync", *arguments.option]
    with PrivateServer("compare", options, plugin=engines.needs_plugin(chosen)) as server:
        return _run(arguments, server)


if __name__ == "__main__":
    sys.exit(program.run(main))
