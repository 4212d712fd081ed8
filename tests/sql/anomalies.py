#!/usr/bin/env python3
"""Many clients, random transactions, and a judge who knows what each level promises.

    tests/sql/anomalies.sh [--engine PANDO] [--seconds 12] [--clients 10] [--level LEVEL] [--seed N]

Clients append to lists, move tokens from row to row, and read lists and tokens by every kind of key, plain and with locks, in ranges, up
and down, and by aggregates that the engine answers. From what they saw it follows which transaction came before which
(`anomalies/judge.py`): at SERIALIZABLE that must be no circle; snapshots must be whole; no append may be lost, none that was rolled back be
seen; each token must be met once. In the end histories with planted anomalies are judged, which has to be noticed.
"""

import argparse
import collections
import itertools
import pathlib
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from anomalies import clients
from anomalies.judge import Judge
from sqlkit import engines, patience, program, report
from sqlkit.server import PrivateServer

_TO_JUDGE = 20  # transactions of a level, at least


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--seconds", type=float, default=12, help="in all, for all levels")
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--level", choices=clients.LEVELS)
    program.add_seed(parser)
    return parser.parse_args()


def _committed(crowd):
    return sum(one.state == "committed" for client in crowd for one in list(client.done))


def _history(server, arguments, level, seconds):
    """(transactions, the lists in the end, clients' failures)."""
    with server.connect("test") as session:
        session.query("DROP TABLE IF EXISTS lists, tokens")
        clients.set_up(session, arguments.engine)
        ended, numbers = threading.Event(), itertools.count(1)
        # Of all levels together, the promises of each still hold for its own transactions.
        levels = itertools.cycle(clients.LEVELS) if level is None else itertools.repeat(level)
        crowd = [clients.Client(server, f"{arguments.seed}/{level}/{n}", next(levels), numbers, ended) for n in range(arguments.clients)]
        for client in crowd:
            client.start()
        patience.pass_time(seconds, lambda: any(client.failed for client in crowd) or _committed(crowd) > _TO_JUDGE)
        ended.set()
        for client in crowd:
            client.join(400)
        final = {int(row[0]): [int(part) for part in row[1].decode().split(",") if part] for row in session.query("SELECT id, v FROM lists").rows}
        failures = [client.failed for client in crowd if client.failed] + ["a client hangs" for client in crowd if client.is_alive()]
        for table in ("lists", "tokens"):
            said = engines.check_table(session, arguments.engine, table)
            failures += [f"CHECK TABLE {table}: {said}"] if said else []
    return [one for client in crowd for one in client.done], final, failures


def _planted():
    """Histories that no level allows, or SERIALIZABLE does not."""
    def made(number, level, appends, reads):
        return clients.Transaction(number, level, "committed", appends, [(len(appends) if how == "after" else 0, clients.Read(lists, "", "planted"))
                                                                        for how, lists in reads])
    skew = [made(1, "SERIALIZABLE", [(0, 11)], [("before", {1: ()})]), made(2, "SERIALIZABLE", [(1, 12)], [("before", {0: ()})])]
    torn = [made(1, "REPEATABLE READ", [(0, 11), (1, 12)], []), made(2, "REPEATABLE READ", [], [("before", {0: (11,)}), ("before", {1: ()})])]
    lost = [made(1, "READ COMMITTED", [(0, 11)], []), made(2, "READ COMMITTED", [(1, 12)], [])]
    between = [made(1, "READ COMMITTED", [(0, 11), (0, 12)], []), made(2, "READ COMMITTED", [], [("before", {0: (11,)})])]
    fine = [made(1, "SERIALIZABLE", [(0, 11)], [("before", {1: ()})]), made(2, "SERIALIZABLE", [(1, 12)], [("before", {0: (11,)})])]
    return {"write skew": (skew, {0: [11], 1: [12]}), "a torn snapshot": (torn, {0: [11], 1: [12]}), "a lost append": (lost, {0: [], 1: [12]}),
            "a read between two appends": (between, {0: [11, 12], 1: []})}, (fine, {0: [11], 1: [12]})


def main():
    """Runs it."""
    arguments, checks = _arguments(), report.Checks()
    report.heading(f"{arguments.clients} clients of {arguments.engine}, seed {arguments.seed}")
    levels = [arguments.level] if arguments.level else list(clients.LEVELS) + [None]
    options = engines.options(arguments.engine, 64, 0) + ["--innodb-flush-method=nosync", "--innodb-lock-wait-timeout=5"]
    with PrivateServer("anomalies", options, plugin=engines.needs_plugin([arguments.engine])) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE IF NOT EXISTS test")
        for level in levels:
            transactions, final, failures = _history(server, arguments, level, arguments.seconds / len(levels))
            states = collections.Counter(one.state for one in transactions)
            found = Judge(transactions, final).run() + failures
            checks.check(not found, f"{level or 'all levels together'}: {states['committed']} transactions, {states['aborted']} rolled back, "
                         f"{sum(map(len, final.values()))} appends", f"{len(found)} anomalies:\n    " + "\n    ".join(found[:12]))
            checks.check(states["committed"] > _TO_JUDGE, "there was something to judge")
    planted, fine = _planted()
    for name, (transactions, final) in planted.items():
        checks.check(Judge(transactions, final).run(), f"{name} is noticed")
    checks.check(not Judge(*fine).run(), "a good history is not blamed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
