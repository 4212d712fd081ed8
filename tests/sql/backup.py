#!/usr/bin/env python3
"""Backups of a server in use: that each is one moment of all engines, and that nobody is harmed.

    tests/sql/backup.sh [--rounds 2] [--writers 8] [--seed N] [--only NAME]

rounds   8 writers make transfers between PANDO and InnoDB tables with DDL beside. Each backup is restored: the sums
         hold, CHECK TABLE is clean, and all tables are as the binary log replayed up to the backup's position has them.
         The rest of the binary log brings the restored server to where the original is (a point in time), and
         increments and a replica come from backups. The full run is --rounds 50.
alone    --pando-only: chosen tables, and restoring beside no other engine.
trouble  kill -9 of the tool and of the server in the middle; a target that is not empty; a full disk; tampered bytes.
others   mariadb-backup alone is warned; mariadb-dump, a copy of a stopped data directory, and one of a frozen server.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from backups import alone, others, rounds, tool, trouble
from sqlkit import program

_PARTS = {"rounds": rounds.run, "alone": alone.run, "trouble": trouble.run, "others": others.run}


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--writers", type=int, default=8)
    program.add_seed(parser)
    parser.add_argument("--only", choices=_PARTS, action="append")
    return parser.parse_args()


def main():
    arguments = _arguments()
    print(f"seed {arguments.seed}", flush=True)
    arguments.dir = pathlib.Path(tempfile.mkdtemp(prefix="pando-backups.", dir="/tmp"))
    try:
        if not tool.mariadb_backup():
            print("mariadb-backup is not installed: PANDO alone", flush=True)
        for name, part in _PARTS.items():
            if not arguments.only or name in arguments.only:
                part(arguments)
    finally:
        shutil.rmtree(arguments.dir, ignore_errors=True)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
