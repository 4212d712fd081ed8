#!/usr/bin/env python3
"""Everything at once: a mixed load on a primary with a replica, while troubles come and go.

    tests/sql/chaos.sh [--minutes 3] [--seed N] [--only kill disk ...] [--engine PANDO]

Clients write to tables of eight kinds (shared accounts, a partitioned journal, unique keys, parents and children, large values,
encrypted rows, bulk loads, XA transactions), change definitions, and read over whole tables. Meanwhile, at random: kill -9,
SIGTERM, kill -9 of the replica; hardly any file, thread, memory or disk to be had for a moment; a file of a table of its own with
bits turned over. Troubles that this machine cannot make (no root, no control groups) are named and left out.

Checked, by each client itself and at the end of each round: nothing acknowledged is lost, nothing refused is there; every error is
in chaos/errors.py for the trouble in force and says what is wrong; after each trouble every client gets something done within
three minutes; CHECK TABLE, keys and constraints; the replica comes to the primary's position (it may be slow, not stuck) and is the
same. At the end damage is done on purpose, to see that the checks would find it. A failed run keeps the servers' directories, and says where they are.
"""

import argparse
import os
import pathlib
import random
import sys
import tempfile
import time
from contextlib import ExitStack

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from chaos import proof, schema
from chaos.analyst import Analyst
from chaos.definitions import Definer
from chaos.disk import SmallDisk
from chaos.loader import Loader
from chaos.scene import Scene
from chaos.transactions import XaClient
from chaos.troubles import ThreadsGroup
from chaos.writer import Writer
from sqlkit import program
from sqlkit.member import Member, NotReplicating

_TROUBLES_A_ROUND = 4
# When the server ends an ALTER TABLE after a crash, it writes it to the binary log without the mark of DDL. An optimistic replica then
# applies changes of the table beside it: they wait for its commit, it waits for their metadata locks, for a day.
_REPLICA = ["--slave-parallel-mode=conservative"]
_KEYS = "1;770A8A65DA156D24EE2A093277530142\n"


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.5, help="after these no round is begun")
    parser.add_argument("--writers", type=int, default=4)
    program.add_seed(parser)
    parser.add_argument("--only", nargs="+", metavar="TROUBLE", help="only these kinds of trouble")
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--no-keep", action="store_true", help="do not keep the servers' directories after a failure")
    return parser.parse_args()


def _options(directory):
    """Of both servers."""
    keys = directory / "keys.txt"
    keys.write_text(_KEYS, encoding="ascii")
    return ["--binlog-format=ROW", "--plugin-load-add=file_key_management.so", f"--file-key-management-filename={keys}",
            "--secure-file-priv=", "--loose-pando-lock-wait-timeout=5", "--max-connections=100", "--thread-cache-size=0",
            "--innodb-buffer-pool-size=32M"]


def _primary_options(rng, base):
    """New ones at each start: small caches and frequent checkpoints, so that troubles meet every kind of work."""
    return base + [f"--loose-pando-cache-size={rng.choice([16, 64])}M",
                   f"--loose-pando-checkpoint-period={rng.choice([1, 2, 30])}",
                   f"--loose-pando-log-file-size={rng.choice([1, 4, 16])}M",
                   f"--loose-pando-background-threads={rng.choice([1, 2, 4])}"]


def _run(scene, arguments):
    """Rounds until it is time. Returns the problems found."""
    kinds = [kind for kind in scene.possible() if not arguments.only or kind.name in arguments.only]
    begin, number, deck = time.monotonic(), 0, []
    while time.monotonic() - begin < 60 * arguments.minutes:
        number += 1
        while len(deck) < _TROUBLES_A_ROUND:
            # All kinds come equally often.
            deck = scene.random.sample(kinds, len(kinds)) + deck
        chosen, deck = deck[-_TROUBLES_A_ROUND:], deck[:-_TROUBLES_A_ROUND]
        before, since = sum(worker.done for worker in scene.workers), time.monotonic()
        print(f"round {number}: {', '.join(kind.name for kind in reversed(chosen))}", flush=True)
        problems = scene.round(chosen)
        print(f"  {sum(worker.done for worker in scene.workers) - before} steps in {time.monotonic() - since:.0f} s: "
              + ("WRONG" if problems else "ok"), flush=True)
        if problems:
            break
    if not scene.problems:
        scene.problems += proof.unnoticed(scene.primary.server, scene.workers)
    _report(scene, number)
    return scene.problems


def _report(scene, rounds):
    print(f"{rounds} rounds; troubles: {dict(scene.had)}; ended for want of memory: {scene.deaths}")
    print("steps: " + ", ".join(f"{worker.name} {worker.done}" for worker in scene.workers + scene.readers))
    met = {**scene.weather.met, **scene.replica_weather.met}
    print("errors of clients: " + ", ".join(f"{name} {error}: {count}" for (name, error), count in sorted(met.items())))


def main():
    arguments = _arguments()
    print(f"chaos: engine {arguments.engine}, seed {arguments.seed}", flush=True)
    rng = random.Random(arguments.seed)
    with ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pando-chaos.", dir="/tmp")))
        options, keep = _options(directory), not arguments.no_keep
        primary = stack.enter_context(Member("primary", 1, arguments.engine, options, keep))
        # Its binary log is not on the small disk: the server waits a minute before it tries again to write one.
        primary.server.stop()
        logs = primary.server.dir / "logs"
        logs.mkdir()
        base = primary.server.options + [f"--log-bin={logs}/binlog"]
        replica = stack.enter_context(Member("replica", 2, arguments.engine, options + _REPLICA, keep))
        scene = Scene(primary, replica, arguments.engine, rng)
        scene.options = lambda: _primary_options(rng, base)
        scene.threads_group = stack.enter_context(ThreadsGroup())
        if os.geteuid() == 0:
            scene.disk = stack.enter_context(SmallDisk(primary.server))
        scene.start_primary()
        primary.allow_replicas()
        replica.follow(primary)
        with primary.connect() as session:
            schema.create(session, arguments.engine)
        scene.workers = [Writer(number, arguments.seed, scene.weather) for number in range(1, arguments.writers + 1)]
        scene.workers += [XaClient(arguments.seed, scene.weather), Loader(arguments.seed, scene.weather, directory),
                          Definer(arguments.seed, scene.weather, arguments.engine),
                          Analyst("analyst", arguments.seed, scene.weather)]
        scene.definers = [worker for worker in scene.workers if isinstance(worker, (Loader, Definer))]
        replica.wait_for(primary.written())
        scene.readers = [Analyst("analyst of the replica", arguments.seed, scene.replica_weather)]
        problems = _run(scene, arguments)
        if problems:
            for member in (primary, replica):
                print(f"{member.name}: {member.server.error_log}", file=sys.stderr)
            program.end_wrong(primary.server, problems)
    print("all held")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(program.run(main))
    except NotReplicating as failure:
        sys.exit(f"WRONG: {failure}")
