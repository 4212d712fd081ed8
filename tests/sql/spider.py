#!/usr/bin/env python3
"""Tables over three shards through the engine Spider.

    tests/sql/spider.sh [--engine PANDO] [--statements 300] [--kills 2] [--seed N] [PART ...]

  types        values and NULLs of all types go to the shards and come back
  statements   random statements on a table over shards and on an InnoDB table: same answers, errors, rows
  loads        LOAD DATA, automatic values of two sessions, SELECT ... FOR UPDATE of two sessions
  kills        transfers between shards (XA) while a shard or the front is killed at random: after
               `scripts/spider.py resolve` the sums hold, what was acknowledged is there, nothing is in doubt
  bad-input    a shard that is down, wrong credentials, another definition: clear errors, nothing in part
  defects      what Spider does wrong is the same over InnoDB shards
  renames      the front is killed in RENAME until that has damaged a table; it is made anew (only when named)
  full-disk    the disk of a shard is full, then not (only when named; needs root)

With --engine InnoDB everything runs with InnoDB shards.
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from spidertest import defects, faults, statements, transfers
from sqlkit import program, report, spider

PARTS = ("types", "statements", "loads", "kills", "bad-input", "defects")
ONLY_NAMED = ("full-disk", "renames")


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these; default: all")
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--statements", type=int, default=300)
    parser.add_argument("--kills", type=int, default=2)
    program.add_seed(parser)
    parser.add_argument("--keep", action="store_true", help="keep the servers' directories after a failure")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS + ONLY_NAMED)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are: {', '.join(PARTS + ONLY_NAMED)}")
    return arguments


def main():
    arguments = _arguments()
    if not spider.is_installed():
        report.note("skipped: the server has no engine Spider (mariadb-plugin-spider)")
        return 0
    checks, parts = report.Checks(), arguments.parts or PARTS
    report.heading(f"Three shards of {arguments.engine} behind Spider, seed {arguments.seed}")
    with spider.Cluster(3, 0, arguments.engine, keep=arguments.keep,
                        shard_options=["--innodb-lock-wait-timeout=5"]) as cluster:
        cluster.connect_shards("d")
        if "types" in parts:
            statements.types(cluster, checks)
        if "statements" in parts:
            statements.random_statements(cluster, checks, arguments.statements, arguments.seed)
        if "loads" in parts:
            transfers.loads(cluster, checks)
        if "kills" in parts:
            transfers.kills(cluster, checks, arguments.kills, arguments.seed)
        if "bad-input" in parts:
            faults.bad_input(cluster, checks)
        if "defects" in parts:
            defects.defects(cluster, checks)
        if "renames" in parts:
            defects.renames(cluster, checks)
        if "full-disk" in parts:
            faults.full_disk(cluster, checks)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
