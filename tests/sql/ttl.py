#!/usr/bin/env python3
"""Tables with TTL.

    tests/sql/ttl.sh [--statements 6000] [--tables 12] [--rounds 3] [--clients 4] [--seed N]

First, random tables, and random statements on them under a clock that is set by hand. InnoDB has the same rows, and those that
have expired are deleted there before each statement: rows and their numbers must be the same, with pushdown and
without, at each isolation level.

Then clients at a real clock, while rows that have expired are removed, with kills of the server between. Rows that do not expire are
what the clients know; none that has expired is seen; at the end nothing but the others is in the table.
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

_BEGIN = 1_700_000_000
# The clock stops here: the moments of rows are up to four years later, and a moment after 2037 is NULL to 10.11, which a column that
# may not be NULL takes as the current time.
_END = 2_000_000_000
_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 604800}
_WAITED_FOR = 1205, 1213


class _Pair:
    """A table `p` with TTL and its twin `i`, which has none."""

    def __init__(self, session, rng, number):
        self.session, self.rng, self.number = session, rng, number
        self.type = rng.choice(["TIMESTAMP", "TIMESTAMP(3)", "DATETIME", "DATETIME(6)", "DATE", "BIGINT", "INT UNSIGNED"])
        self.unit = rng.choice(list(_UNITS) + ["MONTH"])
        self.count = rng.randrange(1, 40)
        self.now, self.problems, self.kept = _BEGIN, [], ""
        self.ttl = "at" if rng.random() < 0.1 else f"at + INTERVAL {self.count} {self.unit}"
        self._create()

    def _create(self):
        at = self.type + (" NULL" if self.rng.random() < 0.5 else " NOT NULL DEFAULT 0")
        self.may_be_null = " NOT NULL" not in at
        primary = self.rng.choice(["id INT PRIMARY KEY", "id INT, PRIMARY KEY (id, at)", "id INT", "id INT, PRIMARY KEY (at, id)"])
        if "at" in primary:
            at, self.may_be_null = self.type + " NOT NULL DEFAULT 0", False
        self.is_in_primary = "at" in primary.replace("at INT", "")
        unique = self.rng.choice(["", ", UNIQUE (u)", ", UNIQUE (u, v)"])
        keys = self.rng.choice(["", ", KEY (v)", ", KEY (at)", ", KEY (v, at)", ", KEY (c(3)), KEY (v)"])
        self.key = self.rng.choice(["v", "at", "u", "id"])
        parts = " PARTITION BY KEY (id) PARTITIONS 3" if not unique and self.rng.random() < 0.2 else ""
        clustering = " CLUSTERING=YES" if self.rng.random() < 0.3 else ""
        columns = f"at {at}, u INT, v INT, c VARCHAR(2000), {primary}"
        self.session.query("DROP TABLE IF EXISTS p, i")
        keyed = keys.replace(")", ")" + clustering, 1) if keys and "(3)" not in keys and not parts else keys
        self.session.query(f"CREATE TABLE p ({columns}{unique}{keyed}) ENGINE=PANDO TTL='{self.ttl}'{parts}")
        self.session.query(f"CREATE TABLE i ({columns}{unique}{keys}) ENGINE=InnoDB{parts}")
        if self.rng.random() < 0.6:
            self._fill()

    def _fill(self):
        """Enough rows that the engine answers queries itself; they expire as the clock goes on, at about the length of TTL and later."""
        at = f"{_BEGIN} + seq * {max(1, self.count * _UNITS.get(self.unit, 2592000) // 1000)}"
        if "INT" not in self.type:
            at = f"FROM_UNIXTIME({at})"
        for table in "pi":
            self.session.query(f"INSERT INTO {table} (id, at, u, v, c) SELECT seq + 100, {at}, seq + 100, seq % 40, LEFT(MD5(seq), seq % 20) "
                               "FROM seq_1_to_4000")

    # --- time ---

    def _limit(self):
        interval = "0 SECOND" if self.ttl == "at" else f"{self.count} {self.unit}"
        moment = f"FROM_UNIXTIME({self.now}) - INTERVAL {interval}"
        return f"UNIX_TIMESTAMP({moment})" if "INT" in self.type else moment

    def begin(self):
        """The clock goes on, and what has expired goes from the twin."""
        self.now += int(self.rng.random() ** 4 * 5 * _UNITS.get(self.unit, 2592000)) if self.rng.random() < 0.5 else 0
        self.now = min(self.now, _END)
        while self.unit == "MONTH" and time.gmtime(self.now).tm_mday > 27:
            # Where a month is shorter, all of its last day has expired, and not what the twin's condition says.
            self.now += 86400
        self.session.query(f"SET timestamp = {self.now}")
        self._remove_expired()

    def _remove_expired(self):
        self.session.query(f"DELETE FROM i WHERE at <= {self._limit()} AND at <> 0")

    def _moment(self, may_be_over=True):
        kind = self.rng.random()
        if kind < 0.06:
            return "NULL" if self.may_be_null else "0"
        if kind < 0.12:
            return "0"
        length = 0 if self.ttl == "at" else self.count * _UNITS.get(self.unit, 2592000)
        moment = self.now + int(length * self.rng.choice([-1, -1, 0, -0.9, -0.5, -2, 1])) + self.rng.randrange(-3, 4)
        if not may_be_over:
            # Two days, for dates and the lengths of months.
            moment = self.now - length + 172800 * (1 + self.count) + self.rng.randrange(1 + length)
        if "INT" in self.type:
            return str(moment)
        fraction = f" + INTERVAL {self.rng.randrange(1000)} * 1000 MICROSECOND" if "(" in self.type else ""
        return f"(FROM_UNIXTIME({moment}){fraction})"

    # --- statements ---

    def _value(self, column, may_be_over=True):
        if column == "at":
            return self._moment(may_be_over)
        if column == "c":
            return self.rng.choice(["NULL", "'a'", "'bcde'", f"REPEAT('x', {self.rng.randrange(1500)})"])
        if column in "uv" and self.rng.random() < 0.1:
            return "NULL"
        return str(self.rng.randrange(60))

    def _condition(self):
        column = self.rng.choice(["id", "u", "v", "at", "id", "u"])
        kind = self.rng.random()
        if kind < 0.15:
            return "1"
        if kind < 0.5:
            return f"{column} = {self._value(column)}"
        if kind < 0.8:
            return f"{column} {self.rng.choice(['<', '>=', '<>'])} {self._value(column)}"
        return f"{column} IS NULL OR {self.rng.choice(['u', 'v'])} BETWEEN {self.rng.randrange(30)} AND {self.rng.randrange(60)}"

    def _row(self, may_be_over):
        return "(" + ", ".join(self._value(column, may_be_over) for column in ("id", "at", "u", "v", "c")) + ")"

    def _change(self):
        kind = self.rng.random()
        # A row that has expired when it is inserted is in nobody's way: not in that of the next row of the statement, either.
        count = self.rng.choice([1, 1, 3, 20])
        rows = ", ".join(self._row(count == 1) for _ in range(count))
        if kind < 0.5:
            verb = self.rng.choice(["INSERT", "INSERT IGNORE", "REPLACE", "INSERT"])
            tail = " ON DUPLICATE KEY UPDATE v = v + 1, at = VALUES(at)" if verb == "INSERT" and self.rng.random() < 0.4 else ""
            return f"{verb} INTO {{}} (id, at, u, v, c) VALUES {rows}{tail}"
        if kind < 0.8:
            column = self.rng.choice(["at", "u", "v", "id", "c"])
            return f"UPDATE {{}} SET {column} = {self._value(column, not self.is_in_primary)} WHERE {self._condition()}"
        if kind < 0.95:
            return f"DELETE FROM {{}} WHERE {self._condition()}"
        return f"UPDATE {{}} a JOIN {{}} b ON a.id = b.u SET a.c = 'joined' WHERE a.{self._condition().replace(' OR ', ' OR a.')}"

    def _select(self):
        where = self._condition()
        return self.rng.choice([
            f"SELECT id, at, u, v, LENGTH(c) FROM {{}} WHERE {where}",
            f"SELECT COUNT(*), COUNT(at), SUM(v), MIN(u), MAX(at) FROM {{}} WHERE {where}",
            "SELECT COUNT(*) FROM {}", "SELECT MIN(id), MAX(id) FROM {}", "SELECT MAX(v) FROM {}", "SELECT MIN(at) FROM {}",
            f"SELECT v, COUNT(*), SUM(u) FROM {{}} WHERE {where} GROUP BY v",
            "SELECT a.id, a.v, b.id, b.u FROM {} a LEFT JOIN {} b ON a.v = b.u AND b.id > 3",
            "SELECT id, (SELECT COUNT(*) FROM {} b WHERE b.v = a.v) FROM {} a", "SELECT id FROM {} WHERE u NOT IN (SELECT v FROM {} WHERE v IS NOT NULL)",
            "SELECT u FROM {} WHERE u > 10", "SELECT DISTINCT v FROM {}", f"SELECT id, v FROM {{}} WHERE {where} FOR UPDATE",
            f"SELECT id FROM {{}} WHERE {where} LOCK IN SHARE MODE", "SELECT v, u FROM {} UNION SELECT u, v FROM {}"])

    def _run(self, sql, table):
        try:
            result = self.session.query(sql.replace("{}", table))
        except SqlError as error:
            return ("error", error.number)
        return (result.affected, sorted(result.rows, key=repr))

    def statement(self):
        sql = self._change() if self.rng.random() < 0.5 else self._select()
        self._remove_expired()
        answers = [self._run(sql, table) for table in ("i", "p")]
        if answers[0] != answers[1]:
            self.problems.append(f"clock {self.now}, TTL {self.ttl}: {sql[:600]}\n  InnoDB: {str(answers[0])[:700]}\n  PANDO:  {str(answers[1])[:700]}")
        return answers[0] == answers[1]

    def whole(self):
        self._remove_expired()
        rows = [self._run("SELECT id, at, u, v, c FROM {}", table) for table in ("i", "p")]
        if rows[0] != rows[1]:
            self.problems.append(f"clock {self.now}, TTL {self.ttl}: rows differ:\n  InnoDB: {str(rows[0])[:700]}\n  PANDO:  {str(rows[1])[:700]}")
        return rows[0] == rows[1]


def _transaction(pair, rng):
    """True: all alike."""
    session = pair.session
    level = rng.choice(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
    session.query(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
    session.query(f"SET SESSION pando_pushdown = {rng.choice(['ON', 'OFF'])}")
    session.query("SET SESSION time_zone = 'SYSTEM'")
    pair.begin()
    if rng.random() < 0.5:
        return pair.statement()
    session.query("BEGIN")
    alike = True
    for _ in range(rng.randrange(1, 5)):
        is_undone = rng.random() < 0.3
        if is_undone:
            session.query("SAVEPOINT s")
        alike = alike and pair.statement()
        if is_undone:
            session.query("ROLLBACK TO s")
    session.query(rng.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
    return alike and pair.whole()


def _compare(options, seed):
    rng = random.Random(seed)
    problems = []
    with PrivateServer("ttl", ["--pando-ttl-period=0"]) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE d")
            session.query("USE d")
            session.query("SET SESSION sql_mode = ''")
            done = 0
            for number in range(options.tables):
                pair = _Pair(session, rng, number)
                for _ in range(options.statements // options.tables):
                    done += 1
                    if not _transaction(pair, rng):
                        break
                else:
                    pair.begin()
                    pair.whole()
                told = engines.check_table(session, "PANDO", "d.p")
                problems += pair.problems + ([f"CHECK TABLE: {told}"] if told else [])
            pushed = int(session.query("SHOW GLOBAL STATUS LIKE 'Pando_queries_pushed'").rows[0][1])
        print(f"  {options.tables} tables, {done} transactions beside InnoDB, {pushed} queries answered by the engine")
        if not pushed:
            problems.append("the engine has answered no query itself")
        if problems:
            program.show_log(server)
    return problems


class _Client(threading.Thread):
    """Its rows that do not expire are `rows`, by key; `unsure` if the statement on its way was done."""

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
        after = dict(self.rows)
        first, count, value = self.rng.randrange(500), self.rng.choice([1, 5, 100]), self.rng.randrange(1 << 30)
        keys = range(first, first + count)
        kind = self.rng.random()
        if kind < 0.4:
            # Keys of rows that have expired are free, those of others are not.
            at, stays = self.rng.choice([("NOW()", False), ("NULL", True), ("NOW() - INTERVAL 1 DAY", False), ("NOW() + INTERVAL 1 DAY", True)])
            after.update((k, value) for k in keys) if stays else [after.pop(k, None) for k in keys]
            sql = "REPLACE INTO t VALUES " + ",".join(f"({self.number}, {k}, {self.number * 1000 + k}, {at}, {value})" for k in keys)
        elif kind < 0.6:
            after.update((k, value) for k in after if k in keys)
            sql = f"UPDATE t SET v = {value} WHERE client = {self.number} AND k >= {first} AND k < {first + count} AND (at IS NULL OR at > NOW())"
        else:
            sql = "SELECT COUNT(*), SUM(at <= NOW() - INTERVAL 2 SECOND), SUM(at IS NULL OR at > NOW() + INTERVAL 1 HOUR) " \
                  f"FROM t WHERE client = {self.number}"
        try:
            self.unsure = after
            answer = session.query(sql)
        except SqlError as error:
            self.unsure = None
            if error.number not in _WAITED_FOR:
                self.problems.append(f"{sql[:100]}: {error}")
            return
        if answer.rows:
            _, expired, kept = (int(cell or b"0") for cell in answer.rows[0])
            if expired or kept != len(after):
                self.problems.append(f"client {self.number}: {expired} rows that have expired are seen, {kept} others, not {len(after)}")
        self.rows, self.unsure = after, None
        self.statements += 1


def _found(session):
    rows = {}
    for client, key, value in session.query("SELECT client, k, v FROM t WHERE at IS NULL OR at > NOW() + INTERVAL 1 HOUR").rows:
        rows.setdefault(int(client), {})[int(key)] = int(value)
    return rows


def _removed(session):
    return int(session.query("SHOW GLOBAL STATUS LIKE 'Pando_ttl_rows_removed'").rows[0][1])


def _purge(options, seed):
    rng = random.Random(seed)
    problems, statements, removed = [], 0, 0
    with PrivateServer("ttl", ["--pando-ttl-period=1", "--pando-ttl-delay=0"]) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE d")
            session.query("CREATE TABLE d.t (client INT, k INT, u INT UNIQUE, at DATETIME, v INT, PRIMARY KEY (client, k), KEY (v)) ENGINE=PANDO "
                          "TTL='at + INTERVAL 2 SECOND'")
        rows = {number: {} for number in range(options.clients)}
        for _ in range(options.rounds):
            clients = [_Client(server, number, rows[number], rng.random()) for number in rows]
            for client in clients:
                client.start()
            with server.connect() as session:
                patience.pass_time(3 + 2 * rng.random(), lambda crowd=clients: any(client.problems for client in crowd) or _removed(session))
                removed += _removed(session)
            server.kill()
            for client in clients:
                client.join()
                problems += client.problems
                statements += client.statements
            server.start()
            with server.connect("d") as session:
                found = _found(session)
            for client in clients:
                own = found.get(client.number, {})
                if own not in (client.rows, client.unsure):
                    problems.append(f"client {client.number}: after a kill {len(own)} rows are not the {len(client.rows)} that it knows")
                rows[client.number] = own
        with server.connect("d") as session:
            kept = sum(len(of) for of in rows.values())
            session.query("SET timestamp = 1000")
            deadline = time.monotonic() + 300
            while session.number("SELECT COUNT(*) FROM t") != kept and time.monotonic() < deadline:
                time.sleep(0.2)
            left = session.number("SELECT COUNT(*) FROM t")
            if left != kept:
                problems.append(f"{left} rows are left, not {kept}")
            told = engines.check_table(session, "PANDO", "d.t")
            problems += [f"CHECK TABLE: {told}"] if told else []
        if not removed or not statements:
            problems.append(f"{statements} statements, {removed} rows removed: nothing was shown")
        print(f"  {options.rounds} rounds with kills, {statements} statements, at least {removed} rows removed")
        if problems:
            program.show_log(server)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=6000)
    parser.add_argument("--tables", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=4)
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO", choices=["PANDO"], help="TTL is of this engine alone")
    options = parser.parse_args()
    print(f"rows that expire, seed {options.seed}")
    problems = (_compare(options, options.seed) if options.statements else []) + (_purge(options, options.seed) if options.rounds else [])
    for problem in problems[:20]:
        print(f"  {problem}")
    print("failed" if problems else "all as it should be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
