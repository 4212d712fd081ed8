#!/usr/bin/env python3
"""Foreign keys: under concurrent clients and kill -9 every child keeps its parent, and random statements do what they do in InnoDB.

    tests/sql/foreign_keys.sh [--engine PANDO] [--peer InnoDB] [--rounds 3] [--statements 600] [--clients 8] [--seconds 3]
                              [--lock-budget N] [--seed N]

First, clients insert, change and delete parents and children of tables with every action, and of one that refers to itself, each in
transactions of a few statements at a random isolation level, some of them prepared and left without a connection; one more client
alters the tables, and adds a constraint that was dropped, and one loads children. Each round ends with kill -9. Then no child is
without its parent, and every key has the rows of its table.

Then random tables with random constraints get random statements, on both engines: answers, errors, affected rows and all rows must be
the same. At last so many statements are CREATE, ALTER, RENAME, DROP and TRUNCATE among others, with foreign_key_checks on and off: also
error texts, SHOW CREATE TABLE and INFORMATION_SCHEMA must be the same.
"""

import argparse
import pathlib
import random
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from references import clients, definitions, pairs
from sqlkit import engines, patience, program
from sqlkit.server import PrivateServer

_CACHE_MB = 32


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--peer", default="InnoDB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3, help="of a round, at most")
    parser.add_argument("--lock-budget", type=int, help="pando_lock_budget, 1000 or more")
    parser.add_argument("--statements", type=int, default=600, help="of the comparison; 0: none")
    program.add_seed(parser)
    return parser.parse_args()


def _options(arguments):
    both = (arguments.engine, arguments.peer)
    options = [option for engine in both for option in engines.options(engine, _CACHE_MB)]
    if arguments.lock_budget:
        options.append(f"--pando-lock-budget={arguments.lock_budget}")
    return options + ["--pando-lock-wait-timeout=1", "--innodb-lock-wait-timeout=1", "--pando-checkpoint-period=1",
                      "--lock-wait-timeout=10"]


def _rounds(server, arguments, rng):
    with server.connect() as session:
        clients.create(session, arguments.engine)
    for number in range(arguments.rounds):
        everybody = [clients.Client(server, rng.randrange(1 << 31)) for _ in range(arguments.clients)]
        everybody.append(clients.Alterer(server, rng.randrange(1 << 31)))
        everybody.append(clients.Loader(server, rng.randrange(1 << 31)))
        threads = [threading.Thread(target=client.run) for client in everybody]
        for thread in threads:
            thread.start()
        patience.pass_time(rng.uniform(0.5, arguments.seconds), lambda crowd=everybody: any(client.problem for client in crowd) or
                           sum(client.done for client in crowd) and sum(client.refused for client in crowd))
        server.kill()
        for thread in threads:
            thread.join()
        server.start()
        with server.connect(clients.DATABASE) as session:
            clients.resolve(session, rng)
            problems = [client.problem for client in everybody if client.problem] + clients.violations(session)
            done = sum(client.done for client in everybody)
            refused = sum(client.refused for client in everybody)
            rows = clients.rows(session)
        print(f"round {number}: {done} statements, {refused} refused, rows {rows}: " + ("WRONG" if problems else "ok"),
              flush=True)
        if problems:
            program.end_wrong(server, problems)
        if not done or not refused:
            program.end_wrong(server, ["nothing was done, or nothing refused"])
    with server.connect(clients.DATABASE) as session:
        for damage in clients.DAMAGES:
            session.query("SET foreign_key_checks = 0")
            session.query("BEGIN")
            session.query(damage)
            if not clients.violations(session):
                program.end_wrong(server, [f"the checks do not notice {damage}"])
            session.query("ROLLBACK")


def main():
    arguments = _arguments()
    print(f"seed {arguments.seed}")
    rng = random.Random(arguments.seed)
    plugin = engines.needs_plugin((arguments.engine, arguments.peer))
    with PrivateServer("keys", _options(arguments), plugin) as server:
        _rounds(server, arguments, rng)
        if arguments.statements:
            for compare in (pairs.compare, definitions.compare):
                problem = compare(server, arguments.engine, arguments.peer, arguments.statements, rng)
                if problem:
                    program.end_wrong(server, [problem])
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
