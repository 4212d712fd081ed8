#!/usr/bin/env python3
"""kill -9 of a server at random moments under concurrent transactions.

    tests/sql/kill9.sh [--rounds 8] [--clients 6] [--seed N] [--engine PANDO]

Clients run multi-row, multi-table transactions, each commit durable; one more client runs DDL. Each round
the server is killed at a random moment, now and then a second time while it recovers, and restarted on
the same data. Then: no acknowledged commit is lost, no transaction is there in part, one that was not
acknowledged is there as a whole or not at all (DDL too), CHECK TABLE is clean, every index holds the
same rows as its table. The full run is --rounds 50. At the end damage is done on purpose, to see that
the checks would find it.
"""

import argparse
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from crash import ddl, schema, verify
from crash.client import Client
from sqlkit import engines, program
from sqlkit.server import PrivateServer

_LOAD_SECONDS = (0.1, 2.0)
_KILL_AGAIN_SHARE, _KILL_AGAIN_SECONDS = 0.25, (0.05, 0.5)
# Damage of each kind that the checks look for.
_DAMAGE = {
    "a lost row": "DELETE FROM items WHERE client = 0 ORDER BY id LIMIT 1",
    "a row in an old version": "UPDATE items SET version = version - 1 WHERE client = 0 ORDER BY id LIMIT 1",
    "a part of a transaction": "DELETE FROM parts WHERE client = 0 ORDER BY tag DESC, n DESC LIMIT 1",
    "half a transfer": "UPDATE debtors SET balance = balance + 1 WHERE id = 1",
    "a row nobody wrote": "INSERT INTO journal VALUES (0, 2000000000, 1, 1, 0)",
}


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--clients", type=int, default=6)
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--no-ddl", action="store_true", help="without the client that creates, alters, drops tables")
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def _options(engine, rng):
    """Small caches and frequent checkpoints, so that the kill meets every kind of work."""
    options = engines.options(engine, rng.choice([16, 64]))
    if engine.upper() == "PANDO":
        options += [f"--pando-checkpoint-period={rng.choice([1, 2, 30])}",
                    f"--pando-log-file-size={rng.choice([1, 4, 64])}M",
                    f"--pando-background-threads={rng.choice([1, 2, 4])}"]
    return options


def _start_again(server, engine, rng):
    """Restart, at times killing the server while it recovers. Returns how many kills that took."""
    kills = 0
    server.options = _options(engine, rng)
    while rng.random() < _KILL_AGAIN_SHARE and kills < 3:
        starting = server.begin_start()
        time.sleep(rng.uniform(*_KILL_AGAIN_SECONDS))
        server.kill()
        starting.communicate()
        # On a busy machine it had no process to kill yet.
        if server.is_running():
            server.kill()
        kills += 1
    server.start()
    return kills


def _round(number, server, clients, ddl_client, arguments, rng):
    """One round. Returns the problems found."""
    before = sum(client.commits for client in clients)
    everybody = clients + ([ddl_client] if ddl_client else [])
    for client in everybody:
        client.start(server)
    load = rng.uniform(*_LOAD_SECONDS)
    time.sleep(load)
    server.kill()
    for client in everybody:
        client.join()
    on_the_way = sum(client.in_flight is not None for client in clients)
    errors = [f"client {client.number}: {client.error}" for client in everybody if client.error]
    begin = time.monotonic()
    kills = _start_again(server, arguments.engine, rng)
    recovered = time.monotonic() - begin
    with server.connect(schema.DATABASE) as session:
        problems = (errors + verify.rows_hold(session, clients)
                    + verify.tables_hold(session, arguments.engine))
        if ddl_client:
            problems += ddl.holds(server, session, ddl_client, arguments.engine)
        rows = session.number("SELECT (SELECT COUNT(*) FROM items) + (SELECT COUNT(*) FROM parts)")
    again = f", killed {kills}x while recovering" if kills else ""
    print(f"round {number:2}: killed after {load:.2f} s, {sum(c.commits for c in clients) - before:5} commits "
          f"acknowledged, {on_the_way} on the way; back in {recovered:.2f} s{again}; {rows} rows: "
          + ("WRONG" if problems else "ok"), flush=True)
    return problems


def _checks_find_damage(session, clients):
    """Problems: kinds of damage that the checks do not notice. The damage is rolled back."""
    unnoticed = []
    for name, sql in _DAMAGE.items():
        session.query("START TRANSACTION")
        changed = session.query(sql).affected
        if changed == 0 or not verify.rows_hold(session, clients):
            unnoticed.append(f"the checks do not notice {name}")
        session.query("ROLLBACK")
    return unnoticed


def _run(server, arguments):
    rng = random.Random(arguments.seed)
    with server.connect() as session:
        schema.create(session, arguments.engine)
    clients = [Client(number, arguments.seed) for number in range(arguments.clients)]
    ddl_client = None if arguments.no_ddl else ddl.DdlClient(arguments.engine, arguments.seed)
    for number in range(1, arguments.rounds + 1):
        problems = _round(number, server, clients, ddl_client, arguments, rng)
        if problems:
            return problems
    with server.connect(schema.DATABASE) as session:
        problems = _checks_find_damage(session, clients) + verify.rows_hold(session, clients)
    if not problems:
        print(f"all held: {arguments.rounds} rounds, {sum(c.commits for c in clients)} acknowledged commits, "
              f"{sum(c.rollbacks for c in clients)} rollbacks, {sum(c.deadlocks for c in clients)} deadlocks; "
              f"{ddl_client.commits if ddl_client else 0} DDL client's statements; "
              f"damage of {len(_DAMAGE)} kinds was noticed")
    return problems


def main():
    arguments = _arguments()
    print(f"kill9: engine {arguments.engine}, seed {arguments.seed}", flush=True)
    with PrivateServer("kill9", _options(arguments.engine, random.Random(0)),
                       plugin=engines.needs_plugin([arguments.engine]), keep=arguments.keep) as server:
        problems = _run(server, arguments)
        if problems:
            program.end_wrong(server, problems)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
