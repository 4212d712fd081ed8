#!/usr/bin/env python3
"""Ranges of rows deleted by several clients, with kills of the server between.

    tests/sql/delete_ranges.sh [--rounds 4] [--clients 4] [--seed N] [--no-binlog]

Each client owns the rows of one tenant and knows what they must be: it inserts and changes rows, and deletes ranges of them, of which it
compares the numbers. Another client keeps an old snapshot and reads it again and again. In each round the server is killed at
a random moment and started again. Then the rows are what the clients know, but for one statement of each that was on its way, which
is there as a whole or not at all. At the end of a run ranges must have been deleted as such.
"""

import argparse
import pathlib
import random
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from sqlkit import engines, patience, program
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import PrivateServer

_KEYS = 3000
_WAITED_FOR = 1205, 1213


class _Tenant(threading.Thread):
    """One client. `rows` is what is committed, `unsure` the rows if the statement on its way was done."""

    def __init__(self, server, number, rows, seed):
        super().__init__()
        self.server, self.number, self.rows, self.rng = server, number, rows, random.Random(seed)
        self.unsure, self.problems, self.statements = None, [], 0

    def run(self):
        try:
            with self.server.connect("d") as session:
                while True:
                    self._statement(session)
        except ConnectionLost:
            pass

    def _statement(self, session):
        """One that commits itself, or a transaction of a few."""
        after = dict(self.rows)
        is_long = self.rng.random() < 0.3
        try:
            if is_long:
                session.query("BEGIN")
                for _ in range(self.rng.randrange(1, 4)):
                    self._change(session, after)
                    if self.rng.random() < 0.3:
                        self._roll_back_some(session, after)
                self.unsure = after
                session.query("COMMIT")
            else:
                self.unsure = after
                self._change(session, after)
        except SqlError as error:
            self.unsure = None
            session.query("ROLLBACK")
            if error.number not in _WAITED_FOR:
                self.problems.append(str(error))
            return
        self.rows, self.unsure = after, None
        self.statements += 1

    def _roll_back_some(self, session, after):
        kept = dict(after)
        session.query("SAVEPOINT s")
        if self.rng.random() < 0.5:
            found = session.query(f"SELECT COUNT(*), SUM(v) FROM t WHERE tenant = {self.number}").rows[0]
            expected = (str(len(after)).encode(), str(sum(after.values())).encode() if after else None)
            if found != expected:
                self.problems.append(f"own rows: {found}, not {expected}")
        self._change(session, after)
        session.query("ROLLBACK TO s")
        after.clear()
        after.update(kept)

    def _change(self, session, after):
        sql, expected = self._range(after) if self.rng.random() < 0.3 else self._rows(after)
        affected = session.query(sql).affected
        if expected is not None and affected != expected:
            self.problems.append(f"{sql}: {affected} rows, not {expected}")

    def _range(self, after):
        a, b = sorted(self.rng.randrange(_KEYS) for _ in range(2))
        condition, inside = self.rng.choice([
            (f"k < {a}", lambda k: k < a), (f"k >= {b}", lambda k: k >= b), (f"k BETWEEN {a} AND {b}", lambda k: a <= k <= b),
            (f"k > {a} AND k < {b}", lambda k: a < k < b), (f"k <= {a}.5", lambda k: k <= a), ("k > -1", lambda k: True)])
        gone = [k for k in after if inside(k)]
        for k in gone:
            del after[k]
        return f"DELETE FROM t WHERE tenant = {self.number} AND {condition}", len(gone)

    def _rows(self, after):
        kind, first, count = self.rng.choice(["REPLACE", "UPDATE"]), self.rng.randrange(_KEYS), self.rng.choice([1, 20, 800])
        value = self.rng.randrange(1 << 30)
        if kind == "UPDATE":
            changed = [k for k in after if first <= k < first + count]
            after.update((k, value) for k in changed)
            return f"UPDATE t SET v = {value} WHERE tenant = {self.number} AND k >= {first} AND k < {first + count}", None
        after.update((k, value) for k in range(first, first + count))
        values = ",".join(f"({self.number}, {k}, {value}, REPEAT('x', {k % 60}))" for k in range(first, first + count))
        return "REPLACE INTO t VALUES " + values, None


class _Reader(threading.Thread):
    """Sees the same as long as its transaction lives."""

    def __init__(self, server, seed):
        super().__init__()
        self.server, self.rng, self.problems, self.reads = server, random.Random(seed), [], 0

    def run(self):
        sql = "SELECT COUNT(*), SUM(v), MIN(k), MAX(k), SUM(CRC32(c)) FROM t"
        by_rows = "SELECT SUM(v) FROM t FORCE INDEX (PRIMARY) WHERE tenant >= 0 AND k + 0 >= 0 LOCK IN SHARE MODE"
        try:
            with self.server.connect("d") as session:
                while True:
                    session.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                    first = session.query(sql).rows
                    for _ in range(self.rng.randrange(20)):
                        time.sleep(0.01)
                        again = session.query(sql).rows
                        self.reads += 1
                        if again != first:
                            self.problems.append(f"a snapshot has changed from {first} to {again}")
                    session.query("COMMIT")
                    try:
                        session.query(by_rows)
                    except SqlError as error:
                        if error.number not in _WAITED_FOR:
                            raise
        except ConnectionLost:
            pass


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--clients", type=int, default=4)
    program.add_seed(parser)
    parser.add_argument("--no-binlog", action="store_true")
    return parser.parse_args()


def _options(rng, arguments):
    options = engines.options("PANDO", 16) + [f"--pando-checkpoint-period={rng.choice([1, 2, 30])}"]
    return options if arguments.no_binlog else options + ["--log-bin=b", "--server-id=1", "--binlog-format=MIXED"]


def _compare(session, tenants):
    problems = []
    for tenant in tenants:
        rows = session.query(f"SELECT k, v FROM t WHERE tenant = {tenant.number}").rows
        found = {int(k): int(v) for k, v in rows}
        if found not in (tenant.rows, tenant.unsure):
            known = tenant.rows
            lost, more = sorted(known.keys() - found.keys()), sorted(found.keys() - known.keys())
            problems.append(f"tenant {tenant.number}: {len(found)} rows, not {len(known)}; lost {lost[:5]}, more {more[:5]}")
        tenant.rows, tenant.unsure = found, None
        problems += tenant.problems
    status = session.query("CHECK TABLE t EXTENDED").rows[-1][-1]
    return problems + ([] if status == b"OK" else [f"CHECK TABLE: {status}"])


def _ranges(session):
    return int(session.query("SHOW GLOBAL STATUS LIKE 'Pando_ranges_deleted'").rows[0][1])


def _round(number, server, tenants, rng):
    reader = _Reader(server, rng.random())
    for client in tenants + [reader]:
        client.start()
    with server.connect("d") as session:
        patience.pass_time(rng.uniform(1, 4), lambda: any(client.problems for client in tenants) or _ranges(session))
        ranges = _ranges(session)
    server.kill()
    for client in tenants + [reader]:
        client.join()
    server.start()
    with server.connect("d") as session:
        problems = reader.problems + _compare(session, tenants)
    print(f"round {number}: {sum(t.statements for t in tenants)} statements, {ranges} ranges, {reader.reads} reads of snapshots: "
          + ("WRONG" if problems else "ok"), flush=True)
    return ranges, problems


def main():
    arguments = _arguments()
    rng = random.Random(arguments.seed)
    print(f"seed {arguments.seed}")
    with PrivateServer("ranges", _options(rng, arguments)) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE d")
            session.query("CREATE TABLE d.t (tenant INT, k INT, v BIGINT, c VARCHAR(100), PRIMARY KEY (tenant, k)) ENGINE=PANDO")
        rows, ranges, problems = [{} for _ in range(arguments.clients)], 0, []
        for number in range(1, arguments.rounds + 1):
            tenants = [_Tenant(server, tenant, known, rng.random()) for tenant, known in enumerate(rows)]
            done, found = _round(number, server, tenants, rng)
            rows, ranges = [tenant.rows for tenant in tenants], ranges + done
            problems += found
            server.options = _options(rng, arguments)
        if not ranges:
            problems.append("no range was deleted as such")
        if problems:
            return program.end_wrong(server, problems)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
