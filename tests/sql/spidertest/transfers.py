"""Loads, automatic values and locks; transfers between shards while servers are killed."""

import os
import pathlib
import random
import subprocess
import threading
import time

from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import ServerFailed

_TOOL = pathlib.Path(__file__).resolve().parents[3] / "scripts/spider.py"
_ACCOUNTS, _MONEY, _CLIENTS = 40, 100, 3
_WORK_SECONDS = (0.2, 1.0)


def loads(cluster, checks):
    """What goes in at once, and what two sessions do at the same time."""
    path = cluster.dir / "rows.tsv"
    path.write_text("".join(f"{number}\tname {number % 97}\t{'%s' % (number * 7 % 1000) if number % 10 else chr(92) + 'N'}\n"
                            for number in range(20000)))
    definition = "CREATE TABLE loaded (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20), v INT{})"
    cluster.create("d", "loaded", definition.format(", KEY v (v), KEY name (name)"), "KEY (id)", front=definition.format(""))
    with cluster.front.connect("d") as one, cluster.front.connect("d") as two:
        result = one.query(f"LOAD DATA INFILE '{path}' INTO TABLE loaded (@n, name, v)")
        checks.check(result.affected == 20000 and one.value("SELECT CONCAT(COUNT(*), ' ', COUNT(v), ' ', SUM(v), ' ', COUNT(DISTINCT id)) FROM loaded")
                     == f"20000 18000 {sum(n * 7 % 1000 for n in range(20000) if n % 10)} 20000", "LOAD DATA of 20000 rows with automatic ids")
        ids = []
        for session in (one, two, one, two):
            first = session.query("INSERT INTO loaded (name) VALUES ('new'), ('new'), ('new')").insert_id
            ids += [first, first + 1, first + 2]
        found = one.number("SELECT COUNT(*) FROM loaded WHERE name = 'new' AND id IN (" + ", ".join(map(str, ids)) + ")")
        checks.check(found == 12, "automatic values of two sessions are those that they were told", found)
        one.query("START TRANSACTION")
        one.query("SELECT * FROM loaded WHERE id IN (5, 6, 7, 8) FOR UPDATE")
        two.send("UPDATE loaded SET v = -1 WHERE id IN (7, 8)")
        checks.check(not two.has_answer(0.5), "a writer waits for rows that SELECT ... FOR UPDATE has locked on two shards")
        one.query("UPDATE loaded SET v = -2 WHERE id = 5")
        one.query("COMMIT")
        two.receive()
        checks.check(one.value("SELECT GROUP_CONCAT(id, ':', v ORDER BY id) FROM loaded WHERE v < 0") == "5:-2,7:-1,8:-1", "and goes on when they are released")
        # An error in the middle undoes the statement on every shard.
        try:
            one.query("INSERT INTO loaded VALUES (30001, 'x', 1), (30002, 'x', 1), (30003, 'x', 1), (5, 'x', 1), (30004, 'x', 1)")
            number = 0
        except SqlError as error:
            number = error.number
        checks.check(number == 1062 and one.number("SELECT COUNT(*) FROM loaded WHERE id > 30000") == 0,
                     "a duplicate among many rows undoes the statement on every shard", number)


class _Client(threading.Thread):
    """Moves money between accounts until told to stop; says which numbers were acknowledged."""

    def __init__(self, cluster, number, seed):
        super().__init__(daemon=True)
        self._cluster, self._number, self._random = cluster, number, random.Random(f"{seed}/{number}")
        self.ended, self.done, self.unknown, self.refused, self.sequence = threading.Event(), set(), set(), 0, 0

    def run(self):
        session = None
        while not self.ended.is_set():
            self.sequence += 1
            name = self._number * 1_000_000 + self.sequence
            committing = False
            try:
                session = session or self._cluster.front.connect("d", timeout=120)
                source, target = self._random.sample(range(_ACCOUNTS), 2)
                for sql in ("START TRANSACTION", f"UPDATE money SET v = v - 1 WHERE id = {source}",
                            f"UPDATE money SET v = v + 1 WHERE id = {target}", f"INSERT INTO moves VALUES ({name}, {source}, {target})"):
                    session.query(sql)
                committing = True
                session.query("COMMIT")
                self.done.add(name)
            except (SqlError, ConnectionLost):
                self.refused += 1
                if committing:
                    self.unknown.add(name)
                if session:
                    session.close()
                session = None
                time.sleep(0.05)
        if session:
            session.close()


def resolve(cluster, seconds=0.5):
    """The documented command; what it said when it did not succeed."""
    done = subprocess.run([_TOOL, "--servers", cluster.file(), "resolve", "--seconds", str(seconds)],
                          capture_output=True, text=True, check=False)
    return done.stdout.count("(the front says"), "" if done.returncode == 0 else done.stdout + done.stderr


def kills(cluster, checks, rounds, seed):
    """Each round kills one server, or the front, or both, under transfers."""
    choose, all_done, all_unknown = random.Random(seed), set(), set()
    cluster.create("d", "money", "CREATE TABLE money (id INT PRIMARY KEY, v INT NOT NULL)", "KEY (id)")
    cluster.create("d", "moves", "CREATE TABLE moves (id INT PRIMARY KEY, source INT, target INT)", "KEY (id)")
    with cluster.front.connect("d") as front:
        front.query("INSERT INTO money VALUES " + ", ".join(f"({number}, {_MONEY})" for number in range(_ACCOUNTS)))
    in_doubt = 0
    for number in range(1, rounds + 1):
        clients = [_Client(cluster, number * 10 + place, seed) for place in range(_CLIENTS)]
        for client in clients:
            client.start()
        time.sleep(choose.uniform(*_WORK_SECONDS))
        shards = [shard.primary.server for shard in choose.sample(cluster.shards, choose.choice((1, 1, 2)))]
        dead = choose.choice(([cluster.front], shards, [cluster.front] + shards))
        for server in dead:
            # At once, between two packets of any statement.
            os.kill(server.pid(), 9)
        for server in dead:
            server.kill()
        time.sleep(0.2)
        for client in clients:
            client.ended.set()
        for client in clients:
            client.join()
        for server in dead:
            server.start()
        ended, wrong = resolve(cluster)
        in_doubt += ended
        all_done |= set().union(*(client.done for client in clients))
        all_unknown |= set().union(*(client.unknown for client in clients))
        names = "the front" if dead == [cluster.front] else f"{len(dead)} servers" + (" with the front" if cluster.front in dead else "")
        if not checks.check(not wrong and not (problems := _problems(cluster, all_done, all_unknown)),
                            f"round {number}: {names} killed, {sum(len(client.done) for client in clients)} transfers acknowledged, "
                            f"{ended} in doubt: the sums hold", wrong or problems):
            return
    checks.check(True, f"{len(all_done)} acknowledged, {in_doubt} were in doubt")


def _problems(cluster, done, unknown):
    found = []
    for shard in cluster.shards:
        with shard.primary.connect() as session:
            if session.query("XA RECOVER").rows:
                found.append(f"{shard.name} still has prepared transactions")
    try:
        with cluster.front.connect("d", timeout=300) as front:
            moves = front.query("SELECT id, source, target FROM moves").rows
            there = {int(row[0]) for row in moves}
            money = {int(key): int(value) for key, value in front.query("SELECT id, v FROM money").rows}
    except (SqlError, ConnectionLost, ServerFailed) as error:
        return found + [str(error)]
    if done - there:
        found.append(f"acknowledged and lost: {sorted(done - there)}")
    if there - done - unknown:
        found.append(f"there though refused before the commit: {sorted(there - done - unknown)}")
    expected = dict.fromkeys(range(_ACCOUNTS), _MONEY)
    for _, source, target in moves:
        expected[int(source)] -= 1
        expected[int(target)] += 1
    if money != expected:
        found.append("accounts differ from their transfers: " + str({key: (money.get(key), expected[key]) for key in expected if money.get(key) != expected[key]}))
    return found
