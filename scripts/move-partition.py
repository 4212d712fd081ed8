#!/usr/bin/env python3
"""Moves a partition of a Spider table, or a whole table, to another server while clients go on writing.

    move-partition.py --servers FILE --from SHARD --to SHARD [--partition NAME] DATABASE.TABLE [--resume | --abort]

FILE is the option file of scripts/spider.py: [client-front] is the front ([client-front-2] another), every other section
[client-NAME] the primary of a shard, under the name that CREATE SERVER gave it. DATABASE.TABLE is the front's table. In a file
without a front it is the table on the servers, and clients have to be sent to the target by others.

  1 check    binary log, definition, free names
  2 copy     a dump at a known place of the source's binary log goes to the target, as TABLE__incoming
  3 follow   what the source's binary log says of the table since then, until little is left
  4 switch   the front's table is held, the source's is locked, the rest of the log applied; then the source's table is renamed to
             TABLE__moved, the target's to TABLE, and the front's partition points to the target. Clients wait, for less
             than a second if no transaction is long
  5 end      both sides are compared, the old table is dropped

Whatever dies in between, one server at most has the table under its name, and a write that goes to the other fails. A run with --resume
finishes the move, one with --abort undoes it; the latter until the target has the table.

It needs the clients mariadb, mariadb-dump and mariadb-binlog. Source: log_bin, binlog_format=ROW, sync_binlog=1. The table
needs a primary key; no triggers, foreign keys or FLOAT columns. The definition must not change meanwhile.
Exit status: 0 moved (or undone), 1 refused or something did not answer, 2 wrong usage.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from moving.binlog import NotReadable
from moving.fronts import Refused
from moving.move import Move
from sqlkit.hosts import HostDown, HostError, Hosts


def arguments_of(words=None):
    """The arguments, checked against the file; and its hosts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", metavar="DATABASE.TABLE")
    parser.add_argument("--servers", required=True, metavar="FILE")
    parser.add_argument("--from", dest="source", required=True, metavar="SHARD")
    parser.add_argument("--to", dest="target", required=True, metavar="SHARD")
    parser.add_argument("--partition", metavar="NAME", help="which one, when several are on the source")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="finish a move that was begun")
    again.add_argument("--abort", action="store_true", help="undo a move that was begun")
    parser.add_argument("--compare", choices=["checksum", "count", "none"], default="checksum",
                        help="what is compared at the end, while clients work; default: checksum")
    parser.add_argument("--keep-old", action="store_true", help="leave the source's table as TABLE__moved")
    parser.add_argument("--lock-seconds", type=int, default=1, metavar="N",
                        help="how long clients may wait for a transaction in the switch, before it is tried again; default: 1")
    parser.add_argument("--doubt-seconds", type=float, default=30, metavar="N",
                        help="for how long it is tried again, also while transactions are in doubt; default: 30")
    parser.add_argument("--answer-seconds", type=float, default=10, metavar="N",
                        help="in the switch: how long a server may take for an answer, before clients are let go; default: 10")
    parser.add_argument("--follow-seconds", type=float, default=3600, metavar="N",
                        help="how long it may take to come close to the source; default: 3600")
    arguments = parser.parse_args(words)
    if not re.fullmatch(r"\w+\.\w+", arguments.table, re.ASCII):
        parser.error("the table is DATABASE.TABLE, with names of letters, digits and _")
    hosts = Hosts(arguments.servers).all
    for name in (arguments.source, arguments.target):
        if name not in hosts:
            parser.error(f"the file names no shard {name}")
    return arguments, hosts


def run(arguments, hosts, at=lambda step: None):
    """The exit status."""
    move = Move(hosts, arguments, lambda text: print(text, flush=True), at)
    try:
        move.run()
        return 0
    except Refused as error:
        print(f"refused: {error}", file=sys.stderr)
    except (NotReadable, HostDown, HostError, OSError) as error:
        again = "; --resume goes on from here, --abort undoes what was done" if move.state else ""
        print(f"error: {error}{again}", file=sys.stderr)
    return 1


def main():
    try:
        arguments, hosts = arguments_of()
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return run(arguments, hosts)


if __name__ == "__main__":
    sys.exit(main())
