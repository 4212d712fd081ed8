#!/usr/bin/env python3
"""A partition of a Spider table moved between shards by scripts/move-partition.py while clients write, and deaths in the midst.

    tests/sql/move_partition.sh [--all] [--rounds N] [--writers 4] [--accounts 400] [--seed N] [--engine PANDO]
                              [PART ...]

  moves     a partition goes to another shard and back under transfers: no client sees an error, the sums hold, and
            how long clients waited (--rounds: how often)
  values    a table without a front, with columns of all kinds, is changed in many ways while it moves
  refusals  wrong arguments, tables that cannot be moved, a front that cannot reach the target, transactions in doubt;
            with --all also long transactions, changes that stop a move, a failover of the source, rows that differ
  deaths    kill -9 of the script, the source, the target or the front at a step; then --resume or --abort. One server at most
            has the table at any time, every acknowledged transfer is there, nothing is left over. With --all each
            party dies at each step; without, a few do
  renames   a front dies while its tables change their names (--rounds)
  chances   one or two of them die at a random moment (--rounds; only with --all)
"""

import argparse
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from moves.deaths import chances, deaths, renames
from moves.refusals import refusals
from moves.scene import Scene
from moves.values import values
from sqlkit import program, report, spider

PARTS = ("moves", "values", "refusals", "deaths", "renames", "chances")


def _moves(scene, checks, arguments):
    waits = []
    for number in range(arguments.rounds):
        source, target = ("shard2", "shard3") if number % 2 == 0 else ("shard3", "shard2")
        scene.load.start()
        time.sleep(0.3)
        before = len(scene.load.done)
        status, text = scene.move(source, target)
        time.sleep(0.3)
        errors, longest = scene.load.stop()
        problems = scene.load.problems() + scene.left_over() + ([] if scene.owners() == [target] else [scene.owners()])
        if not checks.check(status == 0 and not errors and not problems,
                            f"from {source} to {target}: {len(scene.load.done) - before} transfers meanwhile, no error, the sums hold, "
                            f"the longest took {longest * 1000:.0f} ms", [text, errors[:3], problems]):
            return
        waits += [int(line.split()[2]) for line in text.splitlines() if line.startswith("clients waited")]
    report.note(f"       clients waited for the switch: {statistics.median(waits):.0f} ms (median), {max(waits)} ms (maximum of {len(waits)})")
    if arguments.rounds % 2:
        status, text = scene.move("shard3", "shard2")
        checks.check(status == 0, "and back", text)
    status, text = scene.move("shard2", "shard1", part="m2", file=scene.file_of_mover())
    checks.check(status == 0 and not scene.load.problems(), "the other partition of the same shard, to one that has a partition, by "
                 "an account with the rights that it needs", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these; default: all")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--accounts", type=int, default=400)
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--keep", action="store_true", help="keep the servers' directories after a failure")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
    if not spider.is_installed():
        report.note("skipped: the server has no engine Spider (mariadb-plugin-spider)")
        return 0
    checks, parts = report.Checks(), arguments.parts or PARTS[:6 if arguments.all else 5]
    report.heading(f"Partitions moved between shards of {arguments.engine}, seed {arguments.seed}")
    with Scene(arguments) as scene:
        if "moves" in parts:
            _moves(scene, checks, arguments)
        if "values" in parts:
            values(scene, checks)
        if "refusals" in parts:
            refusals(scene, checks, arguments)
        if "deaths" in parts and not checks.failed:
            deaths(scene, checks, arguments)
        if "renames" in parts and not checks.failed:
            renames(scene, checks, arguments)
        if "chances" in parts and not checks.failed:
            chances(scene, checks, arguments)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
