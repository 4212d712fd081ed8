#!/usr/bin/env python3
"""A cluster on one machine (`make cluster`): a Spider front, shards of PANDO tables, a replica each.

    scripts/cluster.py [--shards 3] [--engine PANDO] [--keep]

    1. starts the servers, spreads the flights of the demonstration over the shards through the front
    2. the ten queries of the air-traffic benchmark through the front, beside one server with all rows
    3. bookings over two shards each, while the primary of a shard is killed: its replica takes over (scripts/failover.py),
       the front is pointed to it, transactions in doubt are ended (scripts/spider.py)
    4. the killed server comes back as a replica; every pair of servers holds the same rows

docs/cluster.md has the same commands for hosts. Everything is in new directories under /tmp, gone afterwards; with --keep
the servers run until ^C. Exit status 0 only if every check held.
"""

import argparse
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "demo")]

# pylint: disable=wrong-import-position
import enrich
import loading
import querying
from sqlkit import engines, program, report, spider
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import PrivateServer

DATABASE = "flights"
_CACHE_MB = 64
_ACCOUNTS, _MONEY = 60, 100
_WORK_SECONDS = 1.0


def _load(cluster, single, engine, checks):
    report.heading("1. The flights of data/, spread over the shards by KEY (id)")
    path = cluster.dir / "flights.tsv"
    count = enrich.write_tsv(path)
    schema = (ROOT / "demo/schema.sql").read_text()
    cluster.connect_shards(DATABASE)
    # The front has the primary key alone: it sends conditions to the shards, which have the other keys, and Spider's own
    # groups by a key are wrong (docs/cluster.md).
    cluster.create(DATABASE, "ontime", schema, "KEY (id)", front=re.sub(r",\n    KEY \w+ \([^)]*\)", "", schema))
    with single.connect() as session:
        session.query(f"CREATE DATABASE {DATABASE}")
        session.query(f"USE {DATABASE}")
        session.query(f"{schema} ENGINE={engine}")
    load = f"LOAD DATA INFILE '{path}' INTO TABLE ontime ({loading.columns()})"
    for name, server in (("one server", single), ("through the front", cluster.front)):
        with server.connect(DATABASE) as session, report.Stopwatch() as watch:
            result = session.query(load)
        checks.check(result.affected == count and not result.warnings,
                     f"{name}: {count} flights loaded in {report.seconds(watch.seconds)}",
                     f"{result.affected} rows, {result.warnings} warnings")
    path.unlink()
    rows = [_number(shard.primary.server, "SELECT COUNT(*) FROM ontime") for shard in cluster.shards]
    checks.check(sum(rows) == count and all(rows), "each shard has its part: " + ", ".join(
        f"{shard.name} {number}" for shard, number in zip(cluster.shards, rows)), rows)


def _number(server, sql):
    with server.connect(DATABASE) as session:
        return session.number(sql)


def _compare(cluster, single, checks, show=True):
    """The ten queries; with `show` their times beside those of one server."""
    table, unequal = report.Table("query", "one server", "cluster", "answers equal"), []
    with single.connect(DATABASE) as one, cluster.front.connect(DATABASE) as front:
        for path in sorted(querying.QUERIES.glob("q*.sql")):
            title, statements = querying.read(path)
            answers, times = [], []
            for session in (one, front):
                with report.Stopwatch() as watch:
                    answers.append(querying.answers(session, statements))
                times.append(watch.seconds)
            if answers[0] != answers[1] or not all(answers[0]):
                unequal.append(path.stem)
            table.add(f"{path.stem}  {title}", *map(report.seconds, times), "NO" if path.stem in unequal else "yes")
    if show:
        table.print()
    checks.check(not unequal, "all ten answers are those of one server, byte for byte", f"not in {', '.join(unequal)}")


class _Bookings:
    """Moves money between accounts of different shards through the front; knows what was acknowledged."""

    def __init__(self, cluster):
        self._cluster, self.acknowledged, self.errors = cluster, [], []
        self._ended, self._number = threading.Event(), 0
        cluster.create(DATABASE, "accounts", "CREATE TABLE accounts (id INT PRIMARY KEY, money INT NOT NULL)", "KEY (id)")
        cluster.create(DATABASE, "bookings", "CREATE TABLE bookings (id INT PRIMARY KEY, amount INT NOT NULL)", "KEY (id)")
        with cluster.front.connect(DATABASE) as session:
            session.query("INSERT INTO accounts VALUES " + ", ".join(f"({number}, {_MONEY})" for number in range(_ACCOUNTS)))
        self._thread = threading.Thread(target=self._run)

    def start(self):
        self._thread.start()

    def stop(self):
        self._ended.set()
        self._thread.join()

    def _run(self):
        session = None
        while not self._ended.is_set():
            self._number += 1
            try:
                session = session or self._cluster.front.connect(DATABASE, timeout=60)
                self._book(session, self._number)
                self.acknowledged.append(self._number)
            except (SqlError, ConnectionLost) as error:
                self.errors.append(str(error))
                if session:
                    session.close()
                session = None
                time.sleep(0.1)

    @staticmethod
    def _book(session, number):
        source, target = number * 7 % _ACCOUNTS, (number * 11 + 1) % _ACCOUNTS
        for sql in ("START TRANSACTION", f"UPDATE accounts SET money = money - 1 WHERE id = {source}",
                    f"UPDATE accounts SET money = money + 1 WHERE id = {target}",
                    f"INSERT INTO bookings VALUES ({number}, 1)", "COMMIT"):
            session.query(sql)

    def check(self, checks, when):
        """All acknowledged bookings are there, and the money adds up."""
        with self._cluster.front.connect(DATABASE) as session:
            there = {int(row[0]) for row in session.query("SELECT id FROM bookings").rows}
            money = session.number("SELECT SUM(money) FROM accounts")
        lost = set(self.acknowledged) - there
        checks.check(not lost, f"{when}: all {len(self.acknowledged)} acknowledged bookings are there", f"lost: {sorted(lost)}")
        checks.check(money == _ACCOUNTS * _MONEY, f"{when}: the accounts add up to {_ACCOUNTS * _MONEY}", money)


def _tool(checks, name, *arguments):
    """Run one of the tools as a person would, with its output shown."""
    report.note(f"$ scripts/{name} {' '.join(map(str, arguments))}")
    done = subprocess.run([ROOT / "scripts" / name, *arguments], capture_output=True, text=True, check=False)
    for line in (done.stdout + done.stderr).splitlines():
        report.note(f"    {line}")
    return checks.check(done.returncode == 0, f"{name} {arguments[2]} succeeded", f"exit status {done.returncode}")


def _lose_a_shard(cluster, bookings, checks):
    shard = cluster.shards[1]
    dead, heir = shard.primary, shard.replicas()[0]
    report.heading(f"3. kill -9 of {dead.name}, the primary of {shard.name}, while bookings go on")
    bookings.start()
    time.sleep(_WORK_SECONDS)
    dead.kill()
    time.sleep(_WORK_SECONDS / 2)
    _tool(checks, "failover.py", "--servers", shard.file, "promote", "--fence", f"{ROOT}/scripts/private-server.sh kill {dead.server.dir}")
    shard.primary = heir
    _tool(checks, "spider.py", "--servers", cluster.file(), "repoint", shard.name)
    # A row that a transaction in doubt has changed stays locked until then.
    _tool(checks, "spider.py", "--servers", cluster.file(), "resolve", "--seconds", "1")
    time.sleep(_WORK_SECONDS)
    bookings.stop()
    report.note(f"{len(bookings.errors)} bookings were refused meanwhile: {bookings.errors[0] if bookings.errors else '-'}")
    bookings.check(checks, "after the failover")
    return shard, dead


def _copy_data(primary, dead):
    """The server writes XA PREPARE to its binary log before or after the engine has prepared, so after a crash either may
    be there without the other, and a start as a replica takes out neither. Spider's transactions are such ones."""
    report.note(f"{dead.name} gets a copy of the data of {primary.name}")
    primary.server.stop()
    shutil.rmtree(dead.server.data_dir)
    shutil.copytree(primary.server.data_dir, dead.server.data_dir)
    primary.start()
    dead.start()
    # Its history begins with the copy.
    dead.run("RESET MASTER", f"SET GLOBAL gtid_slave_pos='{primary.written()}'")


def _bring_back(shard, dead, checks):
    report.heading(f"4. {dead.name} comes back as a replica")
    _copy_data(shard.primary, dead)
    _tool(checks, "failover.py", "--servers", shard.file, "rejoin", dead.name)
    _tool(checks, "failover.py", "--servers", shard.file, "status")


def _same_rows(cluster, checks):
    for shard in cluster.shards:
        for replica in shard.replicas():
            replica.wait_for(shard.primary.written())
            sums = [[row[1] for table in ("ontime", "accounts", "bookings")
                     for row in member.run(f"CHECKSUM TABLE {DATABASE}.{table} EXTENDED").rows]
                    for member in (shard.primary, replica)]
            checks.check(sums[0] == sums[1], f"{replica.name} holds the same rows as {shard.primary.name}", sums)


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=3, choices=range(2, 10), metavar="2..9")
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--keep", action="store_true", help="leave the servers running until ^C")
    return parser.parse_args()


def _stay(cluster):
    report.heading("The cluster runs until ^C:")
    report.note(f"mariadb --no-defaults -uroot -S {cluster.front.socket} {DATABASE}")
    for shard in cluster.shards:
        report.note(f"scripts/failover.py --servers {shard.file} status")
    signal.pause()


def _demonstrate(arguments, checks):
    begin = time.monotonic()
    options = engines.options(arguments.engine, _CACHE_MB)
    report.heading(f"A front, {arguments.shards} shards with a replica each, and one server to compare with")
    with spider.Cluster(arguments.shards, 1, arguments.engine, _CACHE_MB) as cluster, \
            PrivateServer("single", options, plugin=engines.needs_plugin([arguments.engine])) as single:
        report.note(f"{2 * arguments.shards + 2} servers answer after {time.monotonic() - begin:.0f} s")
        _load(cluster, single, arguments.engine, checks)
        report.heading("2. The ten queries")
        _compare(cluster, single, checks)
        bookings = _Bookings(cluster)
        try:
            shard, dead = _lose_a_shard(cluster, bookings, checks)
        finally:
            bookings.stop()
        _compare(cluster, single, checks, show=False)
        _bring_back(shard, dead, checks)
        _same_rows(cluster, checks)
        report.note(f"{time.monotonic() - begin:.0f} s")
        if arguments.keep:
            _stay(cluster)


def main():
    arguments, checks = _arguments(), report.Checks()
    if not spider.is_installed():
        print("the server has no engine Spider: install mariadb-plugin-spider (make setup does)", file=sys.stderr)
        return 1
    _demonstrate(arguments, checks)
    if checks.failed:
        report.heading(f"{len(checks.failed)} of the checks failed:")
        for text in checks.failed:
            report.bad(text)
        return 1
    report.heading("Everything held.")
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
