#!/usr/bin/env python3
"""A server that dies at every step of its logs while it commits in two engines and the binary log.

    tests/sql/two_phase.sh [--points 10 | --all] [--seed N] [--coordinators binlog,tc]

Clients commit transactions in a PANDO and an InnoDB table, in one of them, and as the user's XA. The server is
killed (SIGKILL, by a library loaded into it) before or after its n-th write to, or sync of, the binary log, tc.log,
InnoDB's log or Pando's log, and started again. Then both engines and the binary log agree on every
transaction, what was acknowledged is there, what the user has prepared can be committed, and what he has not
is gone. (With tc.log instead of the binary log the server promises less: model.problems says what.) --all tries every n until nothing is left to die at; otherwise some points are chosen at random.
"""

import argparse
import pathlib
import random
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program
from sqlkit.server import PrivateServer
from two_phase import model
from two_phase.killer import Killer

_TRANSACTIONS = 5  # of each client and round: one of each kind
_STEPS_MAX = 200


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10, help="places to die at, for each coordinator")
    parser.add_argument("--all", action="store_true", help="every place")
    parser.add_argument("--coordinators", default="binlog,tc")
    program.add_seed(parser)
    return parser.parse_args()


def _options(coordinator):
    options = engines.options("PANDO", 16) + engines.options("InnoDB", 16)
    if coordinator == "binlog":
        options += ["--log-bin=binlog", "--binlog-format=STATEMENT", "--sync-binlog=1"]
    return options


class Run:
    """One server and one coordinator, killed again and again."""

    def __init__(self, server, killer, coordinator):
        self._server, self._killer, self._coordinator = server, killer, coordinator
        self._acknowledged, self._prepared = {}, set()
        self._next_id = 0

    def point(self, step, when, clients):
        """Returns where it died (None: it had fewer steps), and what does not hold."""
        workers = []
        for number in range(clients):
            workers.append(model.Client(self._server, number, self._next_id, _TRANSACTIONS))
            self._next_id += _TRANSACTIONS
        self._killer.kill_at(step, when)
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        died = len(self._killer.steps()) >= step
        self._killer.rest()
        self._server.kill()
        wrong = [f"client: {worker.error}" for worker in workers if worker.error]
        for worker in workers:
            self._acknowledged |= worker.acknowledged
            self._prepared |= worker.prepared
        self._server.start()
        with self._server.connect(model.DATABASE) as session:
            resolved = model.resolve_xa(session, self._prepared)
            wrong += model.problems(session, self._acknowledged, self._prepared, self._coordinator == "binlog")
        if not died:
            return None, wrong
        return f"{when} {self._killer.steps()[-1]}, {clients} clients, {resolved} XA to resolve", wrong


def _points(arguments, rng):
    """Steps, whether before or after them, and how many clients."""
    if arguments.all:
        for clients in (1, 4):
            for step in range(1, _STEPS_MAX):
                for when in ("before", "after"):
                    yield step, when, clients
    else:
        for _ in range(arguments.points):
            yield rng.randint(1, 30), rng.choice(["before", "after"]), rng.choice([1, 1, 4])


def _run(coordinator, killer, arguments):
    rng = random.Random(f"{arguments.seed}/{coordinator}")
    died = 0
    with PrivateServer("two-phase", _options(coordinator)) as server:
        with server.connect() as session:
            model.create(session)
        run = Run(server, killer, coordinator)
        over = set()
        for step, when, clients in _points(arguments, rng):
            if clients in over:
                continue
            where, wrong = run.point(step, when, clients)
            print(f"{coordinator}: step {step:3}: {where or 'survived'}: {'WRONG' if wrong else 'ok'}", flush=True)
            if wrong:
                program.end_wrong(server, wrong)
            died += where is not None
            if where is None and arguments.all:
                over.add(clients)
    if not died:
        raise SystemExit("no server died: the library that kills does not work")
    return died


def main():
    arguments = _arguments()
    print(f"two_phase: seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="pando-killer.", dir="/tmp") as directory:
        killer = Killer(directory)
        killer.haunt()
        died = sum(_run(coordinator, killer, arguments) for coordinator in arguments.coordinators.split(","))
    print(f"all agreed after {died} deaths")
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
