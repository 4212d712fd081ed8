#!/usr/bin/env python3
"""Does it last? Two long runs against a private server, with a verdict each.

    make build && scripts/soak.py mixed [--minutes 30] [--cache-mb 256] [--clients 4]
                  scripts/soak.py queue [--rows 10000000] [--engine PANDO]
    scripts/soak.py mixed --short            2 minutes, cache 32 MB
    scripts/soak.py queue --short            200,000 rows

mixed: a table whose raw rows are four times the cache; clients insert, update, delete and read at random, single rows and
short ranges, each change durable; another client adds and drops columns, indexes and whole tables, and truncates one. Every
second the server's resident memory, its log and its files are weighed. The verdict: memory within 15 per cent of what is configured
(the cache, and 64 MB for building indexes) plus the stated constant, files and log not growing once the table has its size, no statement longer than a second, CHECK TABLE
clean, no unexpected error.

queue: rows are inserted at one end and deleted at the other, a thousand kept in between, until --rows have gone through.
The verdict: the last tenth at least 0.7 times as fast as the second, the files never above 256 MB, CHECK TABLE clean.
"""

import argparse
import collections
import pathlib
import random
import statistics
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer
from sqlkit.witness import Witness

# What building an index may take (`pando_load_memory`); a small server has it smaller than the default of 256 MB.
_LOAD_MB = 64
# Beside both: the server itself, connections, memtables of open trees, the log's buffers.
_CONSTANT_MB = 320
_ROW_BYTES = 220
_QUEUE_KEPT = 1000
_QUEUE_FILES_MB_MAX = 256
# Somebody else was first: deadlock, lock wait, duplicate key, or the table has changed.
_EXPECTED_ERRORS = {1213, 1205, 1062, 1412}


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("mixed", "queue"))
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--cache-mb", type=int, default=256)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--on-stall", metavar="COMMAND", help="run with the server's process id when a statement takes over a second, "
                        "as a debugger that prints stacks")
    parser.add_argument("--short", action="store_true")
    arguments = parser.parse_args()
    if arguments.short:
        arguments.minutes, arguments.cache_mb, arguments.rows = 2, 32, 200_000
    return arguments


def _make_database(server):
    with server.connect() as session:
        session.query("CREATE DATABASE IF NOT EXISTS test")


def _server(arguments, flush):
    options = engines.options(arguments.engine, arguments.cache_mb, flush) + ["--skip-log-bin"]
    if arguments.engine == "PANDO":
        options += [f"--pando-load-memory={_LOAD_MB}M", "--pando-direct-io=ON", "--innodb-buffer-pool-size=16M"]
    return PrivateServer("soak", options, plugin=engines.needs_plugin([arguments.engine]))


# --- mixed --------------------------------------------------------------------------------

class Client(threading.Thread):
    """Changes and reads rows of one table, and remembers its longest statement."""

    def __init__(self, server, number, rows):
        super().__init__(daemon=True)
        self._session = server.connect("test", timeout=600)
        self._random = random.Random(number)
        self._rows = rows
        self.ended = threading.Event()
        self.statements, self.longest, self.longest_sql, self.failed = 0, 0.0, "", None
        self.running = None  # since when, and what
        self.refusals = collections.Counter()  # by error number

    def _statement(self):
        row, kind = self._random.randrange(self._rows) + 1, self._random.randrange(10)
        if kind < 3:
            return f"UPDATE t SET a = {self._random.randrange(1 << 20)}, n = n + 1 WHERE id = {row}"
        if kind == 3:
            return f"DELETE FROM t WHERE id = {row}"
        if kind < 6:
            return (f"INSERT INTO t (id, a, n, s) VALUES ({row}, {self._random.randrange(1 << 20)}, 0, "
                    f"REPEAT(MD5({row}), 6)) ON DUPLICATE KEY UPDATE n = n + 1")
        if kind < 8:
            return f"SELECT a, n FROM t WHERE id = {row}"
        if kind == 8:
            return f"SELECT SUM(n) FROM t WHERE id BETWEEN {row} AND {row + 100}"
        return f"SELECT COUNT(*) FROM t WHERE a BETWEEN {row} AND {row + 20}"

    def run(self):
        try:
            while not self.ended.is_set():
                sql = self._statement()
                with report.Stopwatch() as watch:
                    self.running = (time.monotonic(), sql)
                    _do(self._session, sql, self.refusals)
                    self.running = None
                self.statements += 1
                if watch.seconds > self.longest:
                    self.longest, self.longest_sql = watch.seconds, sql
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.failed = error


class Definer(Client):
    """Changes definitions, round and round. How long that takes is not judged: it is what was asked for."""

    _ROUND = ["ALTER TABLE t ADD COLUMN extra INT DEFAULT 7", "CREATE TABLE u (id INT PRIMARY KEY, s VARCHAR(50)) ENGINE={}",
              "INSERT INTO u SELECT id, s FROM (SELECT id, LEFT(s, 50) AS s FROM t LIMIT 20000) AS x",
              "ALTER TABLE t ADD KEY by_n (n), ALGORITHM=INPLACE, LOCK=NONE", "TRUNCATE TABLE u",
              "ALTER TABLE t DROP KEY by_n", "DROP TABLE u", "ALTER TABLE t DROP COLUMN extra", "ANALYZE TABLE t"]

    def __init__(self, server, engine, rows):
        super().__init__(server, 1000, rows)
        self._engine = engine

    def run(self):
        try:
            while not self.ended.is_set():
                for sql in self._ROUND:
                    _do(self._session, sql.format(self._engine), self.refusals)
                    self.statements += 1
                    time.sleep(0.5)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.failed = error


def _do(session, sql, refusals):
    try:
        session.query(sql)
    except SqlError as error:
        refusals[error.number] += 1
        if error.number not in _EXPECTED_ERRORS:
            raise SqlError(error.number, error.state, f"{error.message}: {sql}") from error


def _resident_mb(server):
    text = pathlib.Path(f"/proc/{server.pid()}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmRSS:"))


def _files_mb(server):
    """What the tables' files take, and what the rest of the engine's files (its log) takes."""
    tables = engines.tree_bytes(server.data_dir / "test") / (1 << 20)
    other = sum(engines.tree_bytes(path) for path in server.data_dir.glob("*pando*") if path.is_dir()) / (1 << 20)
    return tables, other


def _fill(session, engine, rows):
    session.query("CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, n INT NOT NULL, s VARCHAR(250) NOT NULL, KEY (a)) "
                  f"ENGINE={engine}")
    step = 100_000
    for first in range(1, rows + 1, step):
        session.query(f"INSERT INTO t SELECT seq, seq * 7919 % 1048576, 0, REPEAT(MD5(seq), 6) "
                      f"FROM seq_{first}_to_{min(first + step - 1, rows)}")


def _watch(server, threads, minutes):
    samples, end, before = [], time.monotonic() + minutes * 60, 0
    while time.monotonic() < end and not any(thread.failed for thread in threads):
        tables, log = _files_mb(server)
        samples.append({"resident": _resident_mb(server), "tables": tables, "log": log})
        if len(samples) % 60 == 1:
            done = sum(thread.statements for thread in threads)
            report.note(f"{len(samples):5} s: resident {samples[-1]['resident']:,.0f} MB, tables {tables:,.0f} MB, "
                        f"log {log:,.0f} MB, {done:,} statements, {done - before:,} since the last line")
            before = done
        time.sleep(1)
    for thread in threads:
        thread.ended.set()
    for thread in threads:
        thread.join(120)
    return samples


def _mixed(arguments):
    rows = arguments.cache_mb * 4 * (1 << 20) // _ROW_BYTES
    checks = report.Checks()
    with _server(arguments, 1) as server:
        _make_database(server)
        session = server.connect("test", timeout=3600)
        _fill(session, arguments.engine, rows)
        report.heading(f"{rows:,} rows, cache {arguments.cache_mb} MB, {arguments.clients} clients, {arguments.minutes} minutes")
        clients = [Client(server, number, rows) for number in range(arguments.clients)]
        threads = clients + [Definer(server, arguments.engine, rows)]
        for thread in threads:
            thread.start()
        with Witness(server, clients, arguments.on_stall) as witness:
            samples = _watch(server, threads, arguments.minutes)
        witness.print()
        report.heading("verdict")
        checks.check(not any(thread.failed for thread in threads), "no statement failed",
                     "; ".join(str(thread.failed) for thread in threads if thread.failed))
        limit = (arguments.cache_mb + _LOAD_MB) * 1.15 + _CONSTANT_MB
        most = max(sample["resident"] for sample in samples)
        checks.check(most <= limit, f"resident memory at most {most:,.0f} MB, limit {limit:,.0f}")
        half, last = samples[len(samples) // 2 - len(samples) // 6:len(samples) // 2], samples[-len(samples) // 6:]
        for what in ("resident", "tables", "log"):
            before, after = (max((sample[what] for sample in part), default=0) for part in (half, last))
            checks.check(after <= before * 1.15 + 64, f"{what}: {before:,.0f} MB before half-time, {after:,.0f} MB at the end")
        slowest = max(clients, key=lambda client: client.longest)
        checks.check(slowest.longest < 1, f"longest statement {report.seconds(slowest.longest)}: {slowest.longest_sql[:60]}")
        _check_table(checks, session, arguments.engine, "t")
        refusals = sum((thread.refusals for thread in threads), collections.Counter())
        report.note("errors: " + (", ".join(f"{count:,} of {number}" for number, count in sorted(refusals.items())) or "none"))
        statements = sum(client.statements for client in clients)
        report.note(f"{statements:,} statements, {statements / len(samples):,.0f} a second")
    return checks


# --- queue --------------------------------------------------------------------------------

def _queue(arguments):
    checks = report.Checks()
    batch, tenth = 100, max(1000, arguments.rows // 10)
    rates, sizes = [], []
    with _server(arguments, 2) as server:
        _make_database(server)
        session = server.connect("test", timeout=3600)
        session.query("CREATE TABLE q (id BIGINT AUTO_INCREMENT PRIMARY KEY, state INT NOT NULL, s VARCHAR(100), "
                      f"KEY (state, id)) ENGINE={arguments.engine}")
        values = ",".join(["(0, REPEAT('x', 80))"] * batch)
        report.heading(f"{arguments.rows:,} rows through a queue of {_QUEUE_KEPT}")
        begin, longest = time.monotonic(), 0.0
        for done in range(batch, arguments.rows + 1, batch):
            statement = time.monotonic()
            session.query(f"INSERT INTO q (state, s) VALUES {values}")
            if done > _QUEUE_KEPT:
                session.query("SELECT id FROM q ORDER BY id LIMIT 1")
                session.query("SELECT id FROM q WHERE state = 0 ORDER BY id LIMIT 1 FOR UPDATE")
                session.query(f"DELETE FROM q ORDER BY id LIMIT {batch}")
            longest = max(longest, time.monotonic() - statement)
            if done % tenth == 0:
                rates.append(tenth / (time.monotonic() - begin))
                sizes.append(_files_mb(server)[0])
                report.note(f"{done:,}: {rates[-1]:,.0f} rows/s, files {sizes[-1]:,.1f} MB, longest round {longest:.3f} s")
                begin = time.monotonic()
        report.heading("verdict")
        checks.check(rates[-1] >= 0.7 * statistics.median(rates[1:3]),
                     f"last tenth {rates[-1]:,.0f} rows/s, second and third {statistics.median(rates[1:3]):,.0f}")
        checks.check(max(sizes) < _QUEUE_FILES_MB_MAX, f"files at most {max(sizes):,.1f} MB")
        checks.check(longest < 1, f"longest round of {batch} rows {longest:.3f} s")
        left = session.number("SELECT COUNT(*) FROM q")
        checks.check(left == _QUEUE_KEPT, f"{left} rows are left", f"not {_QUEUE_KEPT}")
        _check_table(checks, session, arguments.engine, "q")
    return checks


def _check_table(checks, session, engine, table):
    found = engines.check_table(session, engine, table)
    checks.check(not found, "CHECK TABLE is clean", found)


def main():
    arguments = _arguments()
    checks = _mixed(arguments) if arguments.what == "mixed" else _queue(arguments)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
