#!/usr/bin/env python3
"""Random SQL, much of it odd, for two engines; or for one engine in many sessions.

    tests/sql/fuzz.sh [--engine PANDO] [--peer InnoDB] [--statements N | --seconds N] [--seed N] [--round N] [--length 120]
                      [--sessions N] [--report DIR] [--go-on] [--plant]

Without --sessions, each round makes random tables (every type, many collations, keys of all kinds, generated and invisible columns,
partitions, versions) in two databases and sends both the same statements (`fuzz/`): DDL, changes of rows, transactions, prepared
statements, procedures, HANDLER, and queries with expressions that may be thousands of parts long or deep. Rows, affected rows and
error numbers have to be the same; queries are asked with pando_pushdown on and off. In the end CHECK TABLE and a comparison of all keys
with the rows. Differences that are stated in `fuzz/known.py`, and those that the peer shows with itself by another plan, are counted.

With --sessions, so many clients do all this at once in one database, KILL among it. Nothing is compared, but the server must live,
no statement may hang, and tables and keys have to agree.

A failure is made short, and printed with its seed and round; of a death the log has the backtrace. --plant changes a row behind one
engine's back, which must be noticed.
"""

import argparse
import collections
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from fuzz import crowd, partitioned, versus
from fuzz.sides import shown_difference
from fuzz.steps import How
from sqlkit import engines, program
from sqlkit.client import ConnectionLost
from sqlkit.server import PrivateServer

_CACHE_MB = 32
_LINE_SHOWN_MAX = 6000


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--peer", default="InnoDB")
    parser.add_argument("--statements", type=int, default=1500)
    parser.add_argument("--seconds", type=float, help="go on for so long, whatever --statements says")
    parser.add_argument("--length", type=int, default=120, help="statements of a round")
    program.add_seed(parser)
    parser.add_argument("--round", type=int, help="only this round of the seed")
    parser.add_argument("--sessions", type=int, default=0, help="so many sessions at once, nothing compared")
    parser.add_argument("--shrink-seconds", type=float, default=60)
    parser.add_argument("--report", type=pathlib.Path, help="a directory for reports of failures")
    parser.add_argument("--go-on", action="store_true", help="go on after a failure")
    parser.add_argument("--plant", action="store_true", help="plant a difference; succeeds when it is noticed")
    parser.add_argument("--partitions", action="store_true", help="of sessions: mostly partitioned tables, see fuzz/partitioned.py")
    parser.add_argument("--option", action="append", default=[], help="one more server option")
    return parser.parse_args()


def _shrink(rounds, steps, cause, seconds):
    """The shortest failing list found in the time; (steps, whether they failed again)."""
    deadline = time.monotonic() + seconds
    if not rounds.fails(steps, cause):
        return steps, False
    # Most of what reads is not needed.
    reads = (How.SELECT, How.ORDERED_SELECT, How.ROWS)
    for shorter in ([step for step in steps[:-1] if step.how not in reads] + steps[-1:],
                    [step for step in steps[:-1] if not step.sql.startswith("SELECT")] + steps[-1:]):
        if len(shorter) < len(steps) and rounds.fails(shorter, cause):
            steps = shorter
    size = max(1, len(steps) // 2)
    while time.monotonic() < deadline:
        for end in range(len(steps), 0, -size):
            shorter = steps[:max(0, end - size)] + steps[end:]
            if time.monotonic() > deadline:
                break
            if shorter and rounds.fails(shorter, cause):
                steps = shorter
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return steps, True


def _report(arguments, number, steps, cause, rounds):
    lines = [f"FAILED: seed {arguments.seed} round {number} at step {len(steps)}; again with --seed {arguments.seed} --round {number} "
             f"--length {arguments.length}"]
    if isinstance(cause, ConnectionLost):
        lines += [f"the server went away: {cause}", rounds.server.log_text(max(0, rounds.server.log_size() - 9000)),
                  f"the last statement: {steps[-1].text()[:_LINE_SHOWN_MAX]}"]
    shorter, again = _shrink(rounds, steps, cause, arguments.shrink_seconds)
    lines.append(f"--- {len(shorter)} steps " + ("that are enough" if again else "(it did not fail again)"))
    lines += [step.text()[:_LINE_SHOWN_MAX] for step in (shorter if again else shorter[-40:])]
    if isinstance(cause, versus.Difference):
        found = rounds.replay(shorter, rounds.sides()) if again else cause
        found = found if isinstance(found, versus.Difference) else cause
        lines += [f"--- {found.what} at: {found.step.text()[:_LINE_SHOWN_MAX]}", shown_difference(found.first, found.second)]
    elif isinstance(cause, versus.Bug):
        lines += ["--- the log", str(cause)]
    text = "\n".join(lines)
    print(text, flush=True)
    if arguments.report:
        arguments.report.mkdir(parents=True, exist_ok=True)
        (arguments.report / f"{arguments.seed}-{number}.txt").write_text(text)


def _versus(arguments, server):
    counts, begin, failures, number = collections.Counter(), time.monotonic(), 0, 0
    rounds = versus.Rounds(server, arguments, counts)
    while True:
        number = arguments.round or number + 1
        steps = []
        try:
            rounds.run(number, steps, plant=arguments.plant)
        except (versus.Difference, versus.Bug, ConnectionLost) as cause:
            if arguments.plant:
                print(f"the planted difference was noticed, at step {len(steps)}")
                return 0
            if isinstance(cause, versus.Difference) and rounds.is_of_the_peer(steps, cause):
                counts["stated: the peer differs from itself by another plan"] += 1
            else:
                failures += 1
                _report(arguments, number, steps, cause, rounds)
                if not arguments.go_on:
                    break
            if not server.is_running():
                server.start()
            rounds.log_seen = server.log_size()
        spent = time.monotonic() - begin
        if arguments.round or (counts["statements"] >= arguments.statements if arguments.seconds is None else spent > arguments.seconds):
            break
    if arguments.plant:
        print("the planted difference was NOT noticed")
        return 1
    shown = "\n".join(f"  {count:7} {what}" for what, count in sorted(counts.items()))
    print(f"{number} rounds in {time.monotonic() - begin:.0f} s, {failures} failures\n{shown}")
    return 1 if failures else 0


def _crowd(arguments, server):
    rng = random.Random(arguments.seed)
    seconds = arguments.seconds or 60
    begin, number, total = time.monotonic(), 0, 0
    while time.monotonic() - begin < seconds:
        number += 1
        statements, problems = crowd.run(server, arguments.engine, rng, arguments.sessions, min(30, seconds))
        total += statements
        if problems:
            text = "\n".join([f"FAILED: seed {arguments.seed}, round {number} of {arguments.sessions} sessions", *problems,
                              server.log_text(max(0, server.log_size() - 12000))])
            print(text[:20000])
            if arguments.report:
                arguments.report.mkdir(parents=True, exist_ok=True)
                (arguments.report / f"crowd-{arguments.seed}-{number}.txt").write_text(text)
            return 1
    print(f"{number} rounds of {arguments.sessions} sessions, {total} statements, no failure")
    return 0


def main():
    """Runs it."""
    arguments = _arguments()
    print(f"fuzz: {arguments.engine}" + (f" and {arguments.peer}" if not arguments.sessions else f", {arguments.sessions} sessions")
          + f", seed {arguments.seed}", flush=True)
    if arguments.partitions:
        partitioned.use()
    chosen = list(dict.fromkeys([arguments.engine, arguments.peer]))
    options = [option for engine in chosen for option in engines.options(engine, _CACHE_MB, 0)]
    options += ["--innodb-flush-method=nosync", "--max-allowed-packet=64M", "--event-scheduler=OFF", "--table-open-cache=400", *arguments.option]
    with PrivateServer("fuzz", options, plugin=engines.needs_plugin(chosen)) as server:
        return _crowd(arguments, server) if arguments.sessions else _versus(arguments, server)


if __name__ == "__main__":
    sys.exit(program.run(main))
