#!/usr/bin/env python3
"""Statements over all rows of a table beside sessions that move money in it: nothing is lost, nothing passed by.

    tests/sql/locked_sums.sh [--engine PANDO] [--seconds 12] [--lock-budget N] [--seed N]

Some sessions move amounts between accounts, and accounts to other ids, a few in a transaction. Meanwhile one at REPEATABLE
READ sums all accounts under locks, by reading rows and by INSERT ... SELECT, changes them all, and sums again within the same
transaction: the sums have to agree, each account has to be changed once. Another at READ COMMITTED changes and deletes rows
by a condition on columns that nobody else touches: of these it has to find all.
"""

import argparse
import pathlib
import random
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_ACCOUNTS, _IDS, _START = 2000, 40_000, 1000
_EXPECTED = {1205, 1213, 1062}
_MORE_SECONDS_MAX = 300


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--seconds", type=float, default=12)
    program.add_seed(parser)
    parser.add_argument("--lock-budget", type=int, default=200_000, help="pando_lock_budget; 1000 makes range locks of most")
    return parser.parse_args()


class Client(threading.Thread):
    """Does one kind of transaction over and over."""

    def __init__(self, server, level, seed, until, transaction):
        super().__init__(daemon=True)
        self.session = server.connect("test", timeout=120)
        self.session.query(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        self.dice, self.done, self.refused, self.problem = random.Random(seed), 0, 0, None
        self._until, self._transaction = until, transaction

    def run(self):
        # On a slow machine others may be in its way until their time is over.
        while self.problem is None and time.monotonic() < self._until + (0 if self.done else _MORE_SECONDS_MAX):
            try:
                self.session.query("BEGIN")
                self.problem = self._transaction(self)
                self.session.query("COMMIT")
                self.done += 1
            except SqlError as error:
                if error.number not in _EXPECTED:
                    self.problem = str(error)
                self.refused += 1
                self.session.query("ROLLBACK")

    def row(self, sql):
        return [int(cell or 0) for cell in self.session.query(sql).rows[0]]


def _move(client):
    dice = client.dice
    for _ in range(dice.randint(1, 3)):
        first, second, amount = dice.randrange(_IDS), dice.randrange(_IDS), dice.randint(1, 99)
        if dice.random() < 0.3:
            client.session.query(f"UPDATE t SET id = {second} WHERE id = {first}")
            continue
        rows = client.session.query(f"SELECT id FROM t WHERE id >= {min(first, second)} ORDER BY id LIMIT 2 FOR UPDATE").rows
        if len(rows) == 2:
            client.session.query(f"UPDATE t SET n = n - {amount} WHERE id = {int(rows[0][0])}")
            client.session.query(f"UPDATE t SET n = n + {amount} WHERE id = {int(rows[1][0])}")
    return None


def _sum(client):
    wanted, seen = [_ACCOUNTS, _ACCOUNTS * _START], []
    seen.append(client.row("SELECT COUNT(*), SUM(n) FROM (SELECT n FROM t ORDER BY id FOR UPDATE) AS d"))
    if client.session.query("UPDATE t SET k = k + 1 WHERE n > -1000000 OR c = 'none'").affected != _ACCOUNTS:
        return "not every account was changed"
    client.session.query("DELETE FROM s")
    client.session.query("INSERT INTO s SELECT k MOD 7, COUNT(*), SUM(n) FROM t GROUP BY k MOD 7")
    seen.append(client.row("SELECT SUM(rows_), SUM(n) FROM s"))
    seen.append(client.row("SELECT COUNT(*), SUM(n) FROM t FOR UPDATE"))
    changed = client.session.query("UPDATE t SET n = n + 1 WHERE c LIKE '%7'").affected
    back = client.session.query("UPDATE t SET n = n - 1 WHERE c LIKE '%7'").affected
    if changed != back:
        return f"{changed} rows changed, {back} changed back"
    seen.append(client.row("SELECT COUNT(*), SUM(n) FROM t LOCK IN SHARE MODE"))
    return None if all(one == wanted for one in seen) else f"sums are {seen}, and not {wanted}"


def _mark(client):
    changed = client.session.query("UPDATE m SET n = n + 1 WHERE c LIKE '%mark%'").affected
    deleted = client.session.query("DELETE FROM m WHERE c = 'going'").affected
    client.session.query("INSERT INTO m SELECT seq * 20 + 7, 0, 'going' FROM seq_1_to_50")
    return None if (changed, deleted) == (100, 50) else f"{changed} rows changed, {deleted} deleted"


def _stir(client):
    dice = client.dice
    number = dice.randrange(1000) * 20
    client.session.query(f"UPDATE m SET n = n + 1 WHERE id = {number}")
    client.session.query(f"DELETE FROM m WHERE id = {number + 3}")
    client.session.query(f"INSERT INTO m VALUES ({number + 3}, 0, 'new')")
    return None


def _fill(session, engine):
    session.query(f"CREATE TABLE t (id INT PRIMARY KEY, n BIGINT NOT NULL, k INT NOT NULL, c VARCHAR(20) NOT NULL, KEY (k)) "
                  f"ENGINE={engine}")
    session.query(f"CREATE TABLE s (k INT, rows_ BIGINT, n BIGINT) ENGINE={engine}")
    session.query(f"CREATE TABLE m (id INT PRIMARY KEY, n INT NOT NULL, c VARCHAR(20) NOT NULL) ENGINE={engine}")
    session.query(f"INSERT INTO t SELECT seq * {_IDS // _ACCOUNTS} - 1, {_START}, seq, CONCAT('row', seq) "
                  f"FROM seq_1_to_{_ACCOUNTS}")
    session.query("INSERT INTO m SELECT seq * 20, 0, 'plain' FROM seq_0_to_999")
    session.query("INSERT INTO m SELECT seq * 200 + 5, 0, 'a mark' FROM seq_0_to_99")
    session.query("INSERT INTO m SELECT seq * 20 + 7, 0, 'going' FROM seq_1_to_50")


def main():
    arguments = _arguments()
    print(f"seed {arguments.seed}")
    checks = report.Checks()
    options = ["--pando-lock-wait-timeout=5", "--innodb-lock-wait-timeout=5", f"--pando-lock-budget={arguments.lock_budget}"]
    with PrivateServer("locked-sums", options) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE IF NOT EXISTS test")
        with server.connect("test", timeout=120) as session:
            _fill(session, arguments.engine)
            until = time.monotonic() + arguments.seconds
            kinds = [(_move, "REPEATABLE READ"), (_move, "READ COMMITTED"), (_sum, "REPEATABLE READ"),
                     (_mark, "READ COMMITTED"), (_stir, "READ COMMITTED"), (_stir, "REPEATABLE READ")]
            clients = [Client(server, level, arguments.seed + place, until, kind)
                       for place, (kind, level) in enumerate(kinds)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            for client, (kind, level) in zip(clients, kinds):
                name = f"{kind.__name__.strip('_')}, {level}: {client.done} transactions, {client.refused} refused"
                checks.check(client.problem is None and client.done > 0, name, client.problem)
            held = session.number("SELECT COUNT(*) FROM information_schema.pando_locks") if arguments.engine == "PANDO" else 0
            checks.check(held == 0, "no lock is left", held)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
