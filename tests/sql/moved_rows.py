#!/usr/bin/env python3
"""Rows that move while others wait for them: what a locking read, an UPDATE or a DELETE finds then.

    tests/sql/moved_rows.sh [--engine PANDO] [--peer InnoDB] [--cases 400 | --all] [--seed N] [--case TEXT]

One session moves rows (another primary key, the same unique value in another row, another value of the key) and does
not commit; a second one reads or writes by every kind of key, at every level; then the first commits, or rolls back.
Both engines play the same; what the second has seen, whether it waited, and what is left must be the same.

A case is `table/level/move/end/read`. --case plays all whose name has the text in it, and prints them.
"""

import argparse
import itertools
import pathlib
import random
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from histories.moves import ENDS, LEVELS, MOVES, READS, TABLES, is_of_use, may_wait_alone, steps_of
from histories.player import Player
from sqlkit import engines, program
from sqlkit.server import PrivateServer

_CACHE_MB = 32
# Most of the time both wait for InnoDB's table of transactions.
_THREADS = 8


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--peer", default="InnoDB")
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--all", action="store_true", help="every case there is")
    program.add_seed(parser)
    parser.add_argument("--case", metavar="TEXT", help="only cases with this in their name, shown statement by statement")
    return parser.parse_args()


class _Pair:
    """Both engines with a table of their own."""

    def __init__(self, server, arguments, number):
        self.players = [Player(server, engine, f"m{number}_{engine.lower()}", 2, "READ COMMITTED")
                        for engine in (arguments.engine, arguments.peer)]

    def close(self):
        for player in self.players:
            player.end()
            player.close()

    def play(self, case):
        """What each engine did: the events, and the rows that are left."""
        return [self._play(player, case) for player in self.players]

    @staticmethod
    def _play(player, case):
        table, level, move, end, read = case
        shape = TABLES[table]
        player.set_level(level)
        player.begin(shape.create, shape.rows)
        events = [(step.sql, player.play(step)) for step in steps_of(shape, MOVES[move], ENDS[end], READS[read])
                  if step.session not in player.waiting()]
        player.end()
        return events, player.rows(), player.rows_by("FORCE INDEX (u)", "tok IS NULL OR tok IS NOT NULL")


def _answers(events):
    """The answers without who waited, and whether the reader did."""
    flat = [event for _, step in events for event in step]
    return [event for event in flat if event[0] == "answer"], ("waits", 1) in flat


def _differences(case, played):
    (events, rows, by_key), (peer_events, peer_rows, _) = played
    if rows != by_key:
        return f"{rows} by the table, {by_key} by the key"
    answers, waited = _answers(events)
    peer_answers, peer_waited = _answers(peer_events)
    # InnoDB's own trouble: it locks more than the rows that it gives, also for its own transaction.
    if any(answer[2][0] == "error" for answer in peer_answers):
        return None
    if READS[case[-1]].endswith("SKIP LOCKED"):
        mine, other = ([set(answer[2][1]) for answer in all_of if answer[2][0] == "rows"] for all_of in (answers, peer_answers))
        return None if mine[0] >= other[0] else f"{mine} passes by more than {other}"
    if waited != peer_waited:
        return None if may_wait_alone(case, waited) else f"only one waits: {events} {peer_events}"
    if answers != peer_answers:
        return f"{answers}\n    {peer_answers}"
    if rows != peer_rows:
        return f"left {rows}, {peer_rows}"
    return None


def _cases(arguments):
    every = [case for case in itertools.product(TABLES, LEVELS, MOVES, ENDS, READS) if is_of_use(*case)]
    if arguments.case:
        return [case for case in every if arguments.case in "/".join(case)]
    random.Random(arguments.seed).shuffle(every)
    return every if arguments.all else every[:arguments.cases]


def _run(server, arguments, number, cases, wrong):
    pair = _Pair(server, arguments, number)
    try:
        while cases:
            try:
                case = cases.pop()
            except IndexError:
                break
            played = pair.play(case)
            difference = _differences(case, played)
            if arguments.case:
                for engine, (events, rows, _) in zip((arguments.engine, arguments.peer), played):
                    print("/".join(case), engine, *(f"\n  {sql}: {event}" for sql, event in events), f"\n  {rows}")
            if difference:
                wrong.append(f"{'/'.join(case)}: {difference}")
    except BaseException as error:  # pylint: disable=broad-except
        wrong.append(f"a player failed: {error!r}")
        raise
    finally:
        pair.close()


def main():
    arguments = _arguments()
    print(f"seed {arguments.seed}")
    both = (arguments.engine, arguments.peer)
    options = [option for engine in both for option in engines.options(engine, _CACHE_MB)]
    options += ["--pando-lock-wait-timeout=1000", "--innodb-lock-wait-timeout=3"]
    cases, wrong = _cases(arguments), []
    count = len(cases)
    with PrivateServer("moved", options, engines.needs_plugin(both)) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE IF NOT EXISTS test")
        threads = [threading.Thread(target=_run, args=(server, arguments, number, cases, wrong))
                   for number in range(1 if arguments.case else _THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if wrong:
            program.end_wrong(server, sorted(wrong))
    print(f"{count} cases, both engines alike")
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
