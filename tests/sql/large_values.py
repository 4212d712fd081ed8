#!/usr/bin/env python3
"""Values that lie apart from their rows, while sessions of all isolation levels change, move, delete and read the rows.

    tests/sql/large_values.sh [--seconds 12] [--kills 2] [--seed N]

Each row has an MD5 of its two texts, whose lengths are around the one from which on they lie apart. Whoever reads a row, locking
or not, by rows, by keys or on columns, compares. Now and then the server is killed; after each start and at the end all rows are
compared, and CHECK TABLE compares the values there are with those that rows refer to. Then all rows are deleted, and no value may
be left.
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
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import PrivateServer

_IDS = 200
_LENGTHS = [0, 10, 100, 5000, 16383, 16384, 20_000, 40_000, 60_000]
_LEVELS = ["READ COMMITTED", "REPEATABLE READ", "READ COMMITTED", "SERIALIZABLE", "READ UNCOMMITTED", "REPEATABLE READ"]
_CLIENTS = 8
_EXPECTED = {1205, 1213, 1062, 1020}
_SUM = "MD5(CONCAT(IFNULL(x, ''), '|', IFNULL(y, '')))"


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--kills", type=int, default=2)
    program.add_seed(parser)
    return parser.parse_args()


def _value(dice):
    length = dice.choice(_LENGTHS)
    return f"LEFT(REPEAT(MD5({dice.randrange(1 << 30)}), {length // 32 + 1}), {length})"


def _insert(dice):
    return [f"INSERT INTO d SELECT {dice.randrange(_IDS)}, {dice.randrange(20)}, {dice.randrange(9)}, "
            f"MD5(CONCAT(x, '|', y)), x, y FROM (SELECT {_value(dice)} x, {_value(dice)} y) v "
            f"ON DUPLICATE KEY UPDATE n = d.n + 1"]


def _replace(dice):
    return [_insert(dice)[0].replace("INSERT", "REPLACE").partition(" ON DUPLICATE")[0]]


def _change_others(dice):
    low = dice.randrange(_IDS)
    return ["UPDATE d SET n = n + 1 WHERE " + dice.choice(
        [f"id BETWEEN {low} AND {low + 20}", f"k = {dice.randrange(20)}", f"x LIKE '%{dice.randrange(100)}%'", "h LIKE 'a%'"])]


def _change_values(dice):
    new = dice.choice(["x = CONCAT(IFNULL(x, ''), 'z')", "x = NULL", "x = y", "y = LEFT(x, 25000)", f"x = {_value(dice)}"])
    return [f"UPDATE d SET {new}, h = {_SUM} WHERE id = {dice.randrange(_IDS)}"]


def _move(dice):
    return [f"UPDATE d SET id = id + {dice.choice([1000, -1000])} WHERE id = {dice.randrange(_IDS)}"]


def _delete(dice):
    return [f"DELETE FROM d WHERE id = {dice.randrange(_IDS)}"]


def _undo(dice):
    low = dice.randrange(_IDS)
    return ["SAVEPOINT s", f"UPDATE d SET x = {_value(dice)}, h = '' WHERE id BETWEEN {low} AND {low + 5}", "ROLLBACK TO s"]


_CHANGES = [_insert, _replace, _change_others, _change_others, _change_values, _change_values, _move, _delete, _undo]


def _read(dice):
    low = dice.randrange(_IDS)
    where = dice.choice(["", f"WHERE id BETWEEN {low} AND {low + 30}", f"WHERE k = {dice.randrange(20)}",
                         "FORCE INDEX (c) WHERE n BETWEEN 0 AND 5", "WHERE x LIKE '%1%'"])
    if dice.random() < 0.3:
        return f"SELECT SUM({_SUM} <> h), COUNT(*) FROM d {where}"
    return f"SELECT {_SUM} <> h, id FROM d {where} {dice.choice(['', '', 'FOR UPDATE', 'LOCK IN SHARE MODE'])}"


class Client(threading.Thread):
    """Changes and reads rows until it is time, or the server is gone."""

    def __init__(self, server, place, seed, until):
        super().__init__(daemon=True)
        self.session = server.connect("test", timeout=120)
        self.session.query(f"SET SESSION TRANSACTION ISOLATION LEVEL {_LEVELS[place % len(_LEVELS)]}")
        self.dice, self.done, self.problem, self._until = random.Random(seed + place), 0, None, until

    def run(self):
        try:
            while time.monotonic() < self._until and self.problem is None:
                try:
                    self._transaction()
                    self.done += 1
                except SqlError as error:
                    if error.number not in _EXPECTED:
                        self.problem = str(error)
                    self.session.query("ROLLBACK")
        except ConnectionLost:
            pass

    def _transaction(self):
        self.session.query("BEGIN")
        for _ in range(self.dice.randint(1, 5)):
            if self.dice.random() < 0.35:
                sql = _read(self.dice)
                if any(int(row[0] or 0) for row in self.session.query(sql).rows):
                    self.problem = f"a value is not what its row says: {sql}"
                continue
            for sql in self.dice.choice(_CHANGES)(self.dice):
                self.session.query(sql)
        self.session.query("COMMIT" if self.dice.random() < 0.8 else "ROLLBACK")


def _check(server, checks, when):
    with server.connect("test", timeout=120) as session:
        wrong, rows = (int(cell or 0) for cell in session.query(f"SELECT SUM({_SUM} <> h), COUNT(*) FROM d").rows[0])
        checks.check(wrong == 0, f"{when}: {rows} rows have their values", f"{wrong} have others")
        said = session.query("CHECK TABLE d").rows[-1][3].decode()
        checks.check(said == "OK", f"{when}: CHECK TABLE", said)


def _round(server, checks, seed, seconds, kills):
    until = time.monotonic() + seconds
    clients = [Client(server, place, seed, until) for place in range(_CLIENTS)]
    for client in clients:
        client.start()
    if kills:
        time.sleep(seconds / 2)
        server.kill()
    for client in clients:
        client.join()
    problems = [client.problem for client in clients if client.problem]
    checks.check(not problems, f"{sum(client.done for client in clients)} transactions", "; ".join(problems))


def main():
    arguments = _arguments()
    print(f"seed {arguments.seed}")
    checks = report.Checks()
    options = ["--pando-lock-wait-timeout=5", "--pando-write-set-memory=1M", "--pando-checkpoint-period=2"]
    with PrivateServer("large-values", options) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE IF NOT EXISTS test")
            session.query("CREATE TABLE test.d (id INT PRIMARY KEY, k INT, n INT, h CHAR(32), x MEDIUMTEXT, y TEXT, KEY (k), "
                          "KEY (y(20)), KEY c (n) CLUSTERING=YES) ENGINE=PANDO")
        rounds = arguments.kills + 1
        for number in range(rounds):
            is_last = number + 1 == rounds
            _round(server, checks, arguments.seed + 100 * number, arguments.seconds / rounds, not is_last)
            if not is_last:
                server.start()
            _check(server, checks, f"round {number + 1}")
        with server.connect("test", timeout=120) as session:
            session.query("DELETE FROM d")
            said = session.query("CHECK TABLE d").rows[-1][3].decode()
            checks.check(said == "OK", "no row, and no value is left", said)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
