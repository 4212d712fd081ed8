#!/usr/bin/env python3
"""A primary and a replica, killed and exchanged under load.

    tests/sql/replication.sh [--rounds 2] [--clients 4] [--seed N] [--engine PANDO] [--format ROW] [--show] [SCENARIO ...]

Clients run multi-row, multi-table transactions on the primary; each knows which rows it must find after its last
acknowledged commit. The replica applies in parallel (optimistic), by GTID, its position is kept in a table of
the engine. Scenarios:

  kill-replica   kill -9 of the replica while it applies: it goes on where its position says
  two-engines    a replica without a binary log, its position in another engine: the order of commits is kept
  kill-primary   kill -9 of the primary: binary log, tables and replica agree, nothing acknowledged is lost
  fail-over      semi-synchronous: the primary dies, the replica takes over, the old primary comes back as replica
  switch-over    a schema change on the replica first, then the roles change, and back

After each round both servers hold every acknowledged transaction, none in part, the same rows, the same positions;
CHECK TABLE is clean and every index agrees with its table. `--show` prints the statements as they run: those of
docs/high-availability.md. At the end damage is done on purpose, to see that the checks would find it.
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from replicas.scenarios import FAILURES, SCENARIOS, Scenario
from sqlkit import member, program


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="only these; default: all")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--clients", type=int, default=4)
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--format", help="of the binary log; default: chosen for each scenario")
    parser.add_argument("--show", action="store_true", help="print the statements that are run")
    parser.add_argument("--keep", action="store_true", help="keep the servers' directories after a failure")
    arguments = parser.parse_args()
    unknown = set(arguments.scenarios) - set(SCENARIOS)
    if unknown:
        parser.error(f"no scenario {', '.join(sorted(unknown))}; there are: {', '.join(SCENARIOS)}")
    return arguments


def main():
    arguments = _arguments()
    member.show = arguments.show
    print(f"replication: engine {arguments.engine}, seed {arguments.seed}", flush=True)
    try:
        for name in arguments.scenarios or SCENARIOS:
            scenario = Scenario(arguments, name)
            print(f"{name} ({scenario.format})", flush=True)
            problems = SCENARIOS[name](scenario)
            if problems:
                print("\n".join(problems), file=sys.stderr)
                return 1
    except FAILURES as error:
        print(f"WRONG: {error}", file=sys.stderr)
        return 1
    print("all held")
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
