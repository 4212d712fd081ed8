#!/usr/bin/env python3
"""Random transactions of two or three sessions, interleaved statement by statement the same way each time.

    tests/sql/compare_histories.sh [--engine PANDO] [--peer InnoDB] [--rounds 60] [--seed N] [--round N] [--plant] [--show HOW]

Two kinds of rounds take turns:

compare   The same interleaving on both engines: every answer, who waits and who goes on, and the rows in the end
          must be the same. Rounds of single rows at READ COMMITTED; everything at REPEATABLE READ and
          SERIALIZABLE. Where engines may rightly lock different things (InnoDB locks from record to record, PANDO
          exactly what was asked for; PANDO locks also what was looked for by its whole key and is not there), one may
          wait where the other does not. From there on the two are different histories, so the round ends there:
          how often is in the summary. The same goes for deadlocks, whose victims may differ.
serial    One engine alone at SERIALIZABLE, or at REPEATABLE READ with statements that all lock: what the committed
          transactions saw and left must be what they see and leave when they are run one after the other, in the
          order of their commits.

--plant: serial rounds at READ COMMITTED, which must be noticed.
"""

import argparse
import collections
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from histories.player import DEADLOCK, Player, Stuck, next_step
from histories.program import CREATE, ROWS, Program
from sqlkit import engines, program
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import PrivateServer

_SESSIONS = 3
_CACHE_MB = 32
# level, style of the statements, all of them lock
_COMPARED = [("READ COMMITTED", "points", False), ("REPEATABLE READ", "points", False),
             ("REPEATABLE READ", "ranges", False), ("SERIALIZABLE", "ranges", False)]
_SERIAL = [("SERIALIZABLE", "ranges", False), ("REPEATABLE READ", "ranges", True)]


class Wrong(Exception):
    """A round failed."""


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--peer", default="InnoDB")
    parser.add_argument("--rounds", type=int, default=60)
    program.add_seed(parser)
    parser.add_argument("--round", type=int, help="only this round of the seed")
    parser.add_argument("--only", choices=["compare", "serial"], help="only this kind of rounds")
    parser.add_argument("--show", metavar="HOW", help="print rounds that ended so, such as \"PANDO waited alone\"")
    parser.add_argument("--plant", action="store_true", help="plant a fault; succeeds when it is noticed")
    return parser.parse_args()


def _is_deadlock(events):
    return any(event[0] == "answer" and event[2] == DEADLOCK for event in events)


def _waits(events):
    return {event[1] for event in events if event[0] == "waits"}


def _compare(rng, players, choice, log):
    """One round of comparing; says how it ended."""
    level, style, locking = choice
    sessions = rng.choice([2, 2, 3])
    steps = Program(rng, sessions, style, locking).steps
    for player in players:
        player.set_level(level)
        player.begin(CREATE, ROWS)
    engine, peer = players
    try:
        while steps:
            step = next_step(steps, engine.waiting())
            if step is None:
                raise Wrong("everybody waits")
            first, second = engine.play(step), peer.play(step)
            log.append((step, first, second))
            if _is_deadlock(first) or _is_deadlock(second):
                return "a deadlock" if _is_deadlock(first) and _is_deadlock(second) else "a deadlock in one"
            if engine.waiting() != peer.waiting():
                return f"{(engine if engine.waiting() > peer.waiting() else peer).engine} waited alone"
            if first != second:
                raise Wrong("answers differ")
        if engine.contents() != peer.contents():
            raise Wrong(f"rows differ: {engine.contents()} {peer.contents()}")
        return "same to the end"
    finally:
        for player in players:
            player.end()
            player.contents()


def _serial(rng, player, choice, log, level=None):
    """One round of a serial check; says how many transactions committed."""
    claimed, style, locking = choice
    player.set_level(level or claimed)
    player.begin(CREATE, ROWS)
    steps = Program(rng, _SESSIONS, style, locking).steps
    done, sent, committed, over = collections.defaultdict(list), {}, [], set()
    try:
        while steps:
            step = next_step(steps, player.waiting() | over)
            if step is None:
                break
            sent[step.session] = step
            events = player.play(step)
            log.append((step, events, []))
            for event in events:
                if event[0] != "answer":
                    continue
                session, answer = event[1], event[2]
                done[session].append((sent[session], answer))
                if answer == DEADLOCK:
                    over.add(session)
                elif sent[session].sql == "COMMIT":
                    committed.append(session)
        if player.waiting():
            raise Wrong("everybody waits")
        _replay(player, [done[session] for session in committed])
        return len(committed)
    finally:
        player.end()


def _replay(player, transactions):
    """The same transactions again, each as a whole, in the order of their commits."""
    found = player.contents()
    player.end()
    player.begin(CREATE, ROWS)
    for transaction in transactions:
        for step, answer in transaction:
            again = player.play(step)
            if again != [("answer", step.session, answer)]:
                raise Wrong(f"no order of commits: {step} had {answer}, alone it has {again}")
    if player.contents() != found:
        raise Wrong(f"no order of commits: {found} is left, alone {player.contents()}")


def _show(log):
    for step, first, second in log:
        print(f"  {step.session}: {step.sql}\n      {first}" + (f"\n      {second}" if second else ""))


def _round(number, arguments, players, counts):
    rng = random.Random(f"{arguments.seed}/{number}")
    log = []
    kind = arguments.only or ("serial" if arguments.plant or number % 2 else "compare")
    try:
        if kind == "serial":
            level = "READ COMMITTED" if arguments.plant else None
            committed = _serial(rng, players[0], rng.choice(_SERIAL), log, level)
            counts["serial", f"{committed} committed"] += 1
        else:
            choice = rng.choice(_COMPARED)
            how = _compare(rng, players, choice, log)
            counts[choice[0] + ", " + choice[1], how] += 1
            if how == arguments.show:
                print(f"round {number}, {choice[0]}: {how}")
                _show(log)
    except (Wrong, Stuck, AssertionError) as wrong:
        print(f"round {number} FAILED: {wrong}")
        _show(log)
        print(f"again with: --seed {arguments.seed} --round {number}")
        return False
    return True


def _run(arguments, server):
    with server.connect() as session:
        session.query("CREATE DATABASE IF NOT EXISTS test")
    players = [Player(server, arguments.engine, "a", _SESSIONS, "REPEATABLE READ")]
    if not arguments.plant:
        players.append(Player(server, arguments.peer, "b", _SESSIONS, "REPEATABLE READ"))
    counts = collections.Counter()
    numbers = range(1, arguments.rounds + 1) if arguments.round is None else [arguments.round]
    try:
        for number in numbers:
            if not _round(number, arguments, players, counts):
                print("the planted fault was noticed" if arguments.plant else "")
                return 0 if arguments.plant else 1
    finally:
        for player in players:
            player.close()
    if arguments.plant:
        print("the planted fault was NOT noticed")
        return 1
    for (what, how), count in sorted(counts.items()):
        print(f"  {what}: {how}: {count}")
    print(f"no difference in {sum(counts.values())} rounds")
    return 0


def main():
    arguments = _arguments()
    print(f"compare_histories: {arguments.engine} and {arguments.peer}, seed {arguments.seed}", flush=True)
    chosen = list(dict.fromkeys([arguments.engine, arguments.peer]))
    options = [option for engine in chosen for option in engines.options(engine, _CACHE_MB, 0)]
    options += ["--innodb-flush-method=nosync", "--innodb-lock-wait-timeout=1000"]
    if engines.needs_plugin(chosen):
        options.append("--loose-pando-lock-wait-timeout=1000")
    with PrivateServer("histories", options, plugin=engines.needs_plugin(chosen)) as server:
        try:
            return _run(arguments, server)
        except (ConnectionLost, SqlError) as error:
            print(error, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(program.run(main))
