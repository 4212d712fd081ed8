#!/usr/bin/env python3
"""The ten air-traffic queries on tables of this server's engines and in DuckDB, on the same rows; and beside writers.

    make build && cargo build --release -p pando-bench
    pip install duckdb                                    without it, DuckDB is left out
    scripts/bench-analytic.py [--rows 10000000] [--engines PANDO] [--keys none|all] [--writers 2] [--csv DIR]

Each engine gets a private server with the same cache, loads the rows that `pando-bench generate ontime` writes, and
is asked every query once and then `--runs` times; the median of these counts. DuckDB loads the same file into a database of
its own and works with as many threads as there are processors. Answers are compared. Then, for each engine, writers insert
rows of the same file as fast as they can, 100 in a statement: first alone, then beside the queries. Without writers
(`--writers 0`) the size is told, too: of the table's files after a clean stop, MyRocks' after a compaction of everything.

    scripts/bench-analytic.py --engines PANDO,InnoDB,ROCKSDB,MyISAM --keys all --writers 0    the totals

The queries are those of `pando-bench run ontime` (crates/bench/src/workload/ontime/queries.sql).
"""

import argparse
import itertools
import os
import pathlib
import re
import statistics
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import engines, ontime, program, report
from sqlkit.server import PrivateServer

_TEN = list(ontime.queries())
_COUNT = "COUNT(*)"
_INSERT_ROWS = 100


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--engines", default="PANDO", help="separated by commas")
    parser.add_argument("--keys", choices=["none", "all"], default="none",
                        help="of the tables: none at all, or a primary key and the benchmark's seven")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cache-mb", type=int, default=4096)
    parser.add_argument("--writers", type=int, default=2, help="0: no second part")
    parser.add_argument("--seconds", type=float, default=10, help="how long writers are watched alone")
    parser.add_argument("--csv", type=pathlib.Path, help="directory with an ontime.csv of so many rows, or to keep it")
    return parser.parse_args()


def _options(engine, arguments):
    cache = arguments.cache_mb
    own = engines.options(engine, cache)
    if engine == "InnoDB":
        return own + ["--innodb-log-file-size=1G"]
    if engine == "MyISAM":
        own = [f"--key-buffer-size={cache // 2}M", f"--myisam-sort-buffer-size={cache // 2}M"]
    if engine == "ROCKSDB":
        # A statement of more than 2^20 rows would be refused; the lowest level as small as it gets.
        own += ["--rocksdb-max-row-locks=1073741824",
                "--rocksdb-default-cf-options=compression=kLZ4Compression;bottommost_compression=kZSTD"]
    return own + ["--innodb-buffer-pool-size=16M"]


def _size(engine, server):
    """What the table takes after a clean stop."""
    if engine == "ROCKSDB":
        with server.connect() as session:
            session.query("SET GLOBAL rocksdb_force_flush_memtable_now = 1")
            session.query("SET GLOBAL rocksdb_compact_cf = 'default'")
    server.stop()
    if engine == "ROCKSDB":
        return engines.disk_bytes((server.data_dir / "#rocksdb").glob("*.sst"))
    return engines.disk_bytes(engines.table_files(server.data_dir, "test", "ontime"))


def _plain(cell):
    """A cell as text that is the same from all: averages to three digits."""
    if isinstance(cell, bytes):
        cell = cell.decode("latin1")
    text = str(cell)
    return f"{float(text):.3f}" if re.fullmatch(r"-?\d+\.\d+", text) else text


def _ask(run, sql, runs):
    """Time of the first, median of the others, answer."""
    times = []
    answer = None
    for _ in range(1 + runs):
        begun = time.monotonic()
        rows = run(sql)
        times.append(time.monotonic() - begun)
        answer = [tuple(_plain(cell) for cell in row) for row in rows]
    return times[0], statistics.median(times[1:]), answer


class Writers:
    """Sessions that insert as fast as they can, and what they have inserted."""

    def __init__(self, server, count, lines):
        self._ended = threading.Event()
        self._rows = [0] * count
        self._failed = []
        self._threads = [threading.Thread(target=self._work, args=(number, server.connect("test", timeout=600), lines))
                         for number in range(count)]

    def _work(self, number, session, statements):
        try:
            for statement in itertools.cycle(statements):
                if self._ended.is_set():
                    return
                session.query(statement)
                self._rows[number] += _INSERT_ROWS
        except Exception as error:  # pylint: disable=broad-exception-caught
            self._failed.append(error)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()
        if self._failed:
            raise self._failed[0]

    def rate_of(self, work):
        """Rows a second that they insert beside `work`, and what that gives."""
        before, begun = sum(self._rows), time.monotonic()
        result = work()
        return (sum(self._rows) - before) / (time.monotonic() - begun), result


def _statements(csv, names):
    """INSERTs of the file's first rows: a line is a list of values."""
    with open(csv, encoding="latin1") as file:
        lines = [line.rstrip("\n") for line in itertools.islice(file, 200 * _INSERT_ROWS)]
    parts = [lines[at:at + _INSERT_ROWS] for at in range(0, len(lines), _INSERT_ROWS)]
    head = f"INSERT INTO ontime ({', '.join(names)}) VALUES "
    return [head + ",".join(f"({line})" for line in part) for part in parts if len(part) == _INSERT_ROWS]


def _run_engine(engine, arguments, csv, queries):
    columns, keys = ontime.columns()
    definition = ", ".join(f"{name} {sql}" for name, sql in columns)
    if arguments.keys == "all":
        definition = f"id INT UNSIGNED NOT NULL AUTO_INCREMENT, {definition}, {keys}"
    names = [name for name, _ in columns]
    with PrivateServer("analytic", _options(engine, arguments), plugin=engine == "PANDO") as server:
        with server.connect() as session:
            session.query("CREATE DATABASE IF NOT EXISTS test")
        with server.connect("test", timeout=7200) as session:
            session.query(f"CREATE TABLE ontime ({definition}) ENGINE={engine} DEFAULT CHARSET latin1")
            begun = time.monotonic()
            session.query(f"LOAD DATA INFILE '{csv}' INTO TABLE ontime FIELDS TERMINATED BY ',' "
                          f"OPTIONALLY ENCLOSED BY '\"' ({', '.join(names)})")
            loaded = time.monotonic() - begun
            run = lambda sql: session.query(sql).rows
            results = {name: _ask(run, sql, arguments.runs) for name, sql in queries.items()}
            if arguments.writers:
                _run_beside_writers(engine, arguments, server, run, (queries, results, _statements(csv, names)))
        size = "" if arguments.writers else f", {report.size(_size(engine, server))}"
        report.note(f"{engine}: loaded in {loaded:.1f} s{size}")
    return results


def _run_beside_writers(engine, arguments, server, run, what):
    queries, quiet, statements = what
    with Writers(server, arguments.writers, statements) as writers:
        time.sleep(2)
        alone, _ = writers.rate_of(lambda: time.sleep(arguments.seconds))
        ask = lambda: {name: _ask(run, sql, arguments.runs) for name, sql in queries.items() if name in _TEN}
        beside, busy = writers.rate_of(ask)
    slower = _sum_of(busy) / _sum_of(quiet)
    report.note(f"{engine}: {arguments.writers} writers alone {alone:,.0f} rows/s, beside the queries {beside:,.0f} "
                f"(slower by {alone / max(beside, 1):.2f}); the ten queries {report.seconds(_sum_of(quiet))} alone, "
                f"{report.seconds(_sum_of(busy))} beside the writers (slower by {slower:.2f})")


def _run_duckdb(arguments, csv, queries):
    try:
        import duckdb  # pylint: disable=import-outside-toplevel
    except ImportError:
        report.note("DuckDB: not installed")
        return None
    types = {"SMALLINT": "SMALLINT", "TINYINT": "TINYINT", "INT": "INTEGER", "DATE": "DATE"}
    sql_type = lambda text: types.get(text.split()[0], "VARCHAR")
    columns = ", ".join(f"{name} {sql_type(text)}" for name, text in ontime.columns()[0])
    with tempfile.TemporaryDirectory(prefix="pando-duckdb.") as directory:
        with duckdb.connect(f"{directory}/ontime.duckdb", config={"threads": os.cpu_count()}) as session:
            begun = time.monotonic()
            session.execute(f"CREATE TABLE ontime ({columns})")
            session.execute(f"COPY ontime FROM '{csv}' (DELIMITER ',', QUOTE '\"', NULLSTR 'NULL', HEADER false)")
            session.execute("CHECKPOINT")
            size = os.path.getsize(f"{directory}/ontime.duckdb")
            report.note(f"DuckDB {duckdb.__version__}: loaded in {time.monotonic() - begun:.1f} s, "
                        f"{report.size(size)}, {os.cpu_count()} threads")
            run = lambda sql: session.execute(sql.replace(" DIV ", " // ")).fetchall()
            return {name: _ask(run, sql, arguments.runs) for name, sql in queries.items()}


def _sum_of(results):
    return sum(median for name, (_, median, _) in results.items() if name in _TEN)


def _tell(all_results, queries):
    names = list(all_results)
    first = names[0]
    table = report.Table("", *[cell for engine in names for cell in (engine, "first")], "answers")
    differ = 0
    for name in queries:
        answers = [all_results[engine][name][2] for engine in names]
        same = all(answer == answers[0] for answer in answers)
        differ += not same
        cells = [report.seconds(value) for engine in names for value in
                 (all_results[engine][name][1], all_results[engine][name][0])]
        table.add(name, *cells, "equal" if same else "NOT equal")
    sums = {engine: _sum_of(results) for engine, results in all_results.items()}
    table.add("all ten", *[cell for engine in names for cell in (report.seconds(sums[engine]), "")], "")
    report.heading("Medians, and the first time each was asked")
    table.print()
    for engine in names[1:]:
        report.note(f"all ten: {engine} takes {sums[engine] / sums[first]:.2f} times what {first} does")
    return differ


def main():
    arguments = _arguments()
    queries = {_COUNT: "SELECT COUNT(*) FROM ontime", **ontime.queries()}
    with tempfile.TemporaryDirectory(prefix="pando-analytic.") as directory:
        directory = arguments.csv.resolve() if arguments.csv else pathlib.Path(directory)
        csv = directory / "ontime.csv"
        if not csv.exists():
            report.note(f"making {arguments.rows:,} rows")
            ontime.generate(arguments.rows, directory)
        results = {}
        for engine in arguments.engines.split(","):
            results[engine] = _run_engine(engine, arguments, csv, queries)
        from_duckdb = _run_duckdb(arguments, csv, queries)
        if from_duckdb:
            results["DuckDB"] = from_duckdb
    return 1 if _tell(results, queries) else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
