#!/usr/bin/env python3
"""The demonstration: real flights in a PANDO table and in an InnoDB table, side by side.

    demo/run.py [--engine PANDO] [--peer InnoDB] [--runs 5]

    1. enrich the source files, load them into both engines          (loading.py)
    2. the ten queries of the air-traffic benchmark on both          (querying.py)
    3. a new column; updates and deletes, rolled back and committed  (changing.py)
    4. kill -9 in the middle of inserts, restart, look for each row  (crashing.py)

Everything happens in a private server in a new directory under /tmp, gone afterwards. Exit status 0
only if all answers were equal and every check held.
"""

import argparse
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "demo")]

# pylint: disable=wrong-import-position
import changing
import crashing
import loading
import querying
from sqlkit import engines, program, report
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import PrivateServer, ServerFailed

_CACHE_MB = 256


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", default="PANDO", help="the engine shown (%(default)s)")
    parser.add_argument("--peer", default="InnoDB", help="the engine beside it (%(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each query (%(default)s)")
    return parser.parse_args()


def _sides(engine, peer):
    """Engine and peer, each with a database of its own; also when both are the same."""
    return [loading.Side(engine, "flights_" + engine.lower()),
            loading.Side(peer, "flights_peer_" + peer.lower())]


def _demonstrate(server, arguments, checks):
    sides = _sides(arguments.engine, arguments.peer)
    loading.load(server, sides, checks)
    querying.query(server, sides, arguments.runs, checks)
    changing.change(server, sides, checks)
    crashing.crash(server, sides[0], checks)


def main():
    arguments = _arguments()
    checks, begin = report.Checks(), time.monotonic()
    chosen = [arguments.engine, arguments.peer]
    options = [option for engine in dict.fromkeys(chosen)
               for option in engines.options(engine, _CACHE_MB)]
    try:
        with PrivateServer("demo", options, plugin=engines.needs_plugin(chosen)) as server:
            try:
                _demonstrate(server, arguments, checks)
            except BaseException:
                program.show_log(server)
                raise
    except (SqlError, ConnectionLost, ServerFailed) as error:
        print(f"the demonstration stopped: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    seconds = time.monotonic() - begin
    if checks.failed:
        report.heading(f"{len(checks.failed)} of the checks failed, after {seconds:.0f} s:")
        for text in checks.failed:
            report.bad(text)
        return 1
    report.heading(f"Everything held. {seconds:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
