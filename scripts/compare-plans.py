#!/usr/bin/env python3
"""The plans that the server makes for PANDO tables beside those for InnoDB tables of the same rows, and what each costs.

    make build && cargo build --release -p pando-bench
    scripts/compare-plans.py [--rows 300000] [--flights 200000] [--lines 60000] [--groups sysbench,events,...] [--times]

Each group of tables (scripts/plans/workload.py) is made in both engines of one server, with ANALYZE TABLE, and each
query is explained for both, with pando_pushdown off: the server's own plans for rows. Told are how many plans are the
same (order of tables, access, key and its length, "Using index" and the like), and those that differ with both engines'
estimates. With --times each of these is timed on PANDO, everything in memory, as it is planned there and with the hints
that make it InnoDB's plan ("not made": they do not); the ratio is how many times the other plan's time its own takes.
"""

import argparse
import collections
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from plans import explain, workload
from sqlkit import program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_ENGINES = ("PANDO", "InnoDB")
_TIMEOUT_S = 60
# From here on a plan is worse than the other, and not only measured so.
_WORSE = 1.25


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000, help="of the generated tables")
    parser.add_argument("--flights", type=int, default=200_000)
    parser.add_argument("--lines", type=int, default=60_000, help="of TPC-H's and the star schema's largest table")
    parser.add_argument("--groups", help="only these, separated by commas")
    parser.add_argument("--times", action="store_true", help="time the plans that differ")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cache-mb", type=int, default=1024, help="of each engine")
    return parser.parse_args()


def _database(engine, group):
    return f"{group.name}_{engine.lower()}"


def _fill(session, group):
    """Fills InnoDB's tables, and PANDO's from these."""
    for engine in _ENGINES:
        session.query(f"CREATE DATABASE {_database(engine, group)}")
        session.query(f"USE {_database(engine, group)}")
        for table, columns in group.tables.items():
            session.query(f"CREATE TABLE {table} ({columns}) ENGINE={engine} DEFAULT CHARSET latin1")
    for statement in group.fill:
        session.query(statement)
    for table in group.tables:
        session.query(f"INSERT INTO {_database('PANDO', group)}.{table} SELECT * FROM {table}")
        for engine in _ENGINES:
            session.query(f"ANALYZE TABLE {_database(engine, group)}.{table}")


def _seconds(session, statement, runs):
    """Median time, after one for the cache; None: too long."""
    times = []
    for _ in range(1 + runs):
        begun = time.perf_counter()
        try:
            session.query(statement)
        except SqlError as error:
            if error.number != 1969:
                raise
            return None
        times.append(time.perf_counter() - begun)
        if times[-1] > 5:
            break
    return statistics.median(times[1:] or times)


class Differing:
    """A query whose plans differ, and what they cost."""

    def __init__(self, name, statement, plans):
        self.name, self.statement, self.plans = name, statement, plans
        self.what = explain.differences(*plans)
        self.times, self.is_made = None, False

    def measure(self, session, runs):
        """Times it as it is, and by InnoDB's plan."""
        imposed = explain.impose(self.statement, self.plans[1])
        self.is_made = not explain.differences(explain.explain(session, imposed), self.plans[1])
        self.times = [_seconds(session, statement, runs) for statement in (self.statement, imposed)]

    @property
    def ratio(self):
        """How many times the time of InnoDB's plan its own takes."""
        if not self.times or not self.is_made or self.times[1] is None:
            return None
        return (self.times[0] or _TIMEOUT_S) / self.times[1]

    def tell(self):
        report.note(f"{self.name}: {', '.join(self.what)}")
        report.note(f"    {self.statement if len(self.statement) < 160 else self.statement[:160] + '...'}")
        for engine, plan in zip(_ENGINES, self.plans):
            report.note(f"    {engine:7}{explain.text(plan)}")
        if self.times:
            own, other = (report.seconds(value) if value else f"over {_TIMEOUT_S} s" for value in self.times)
            ratio = f"{self.ratio:.2f}" if self.ratio else "-"
            report.note(f"    on PANDO {own}, by InnoDB's plan {other if self.is_made else 'not made'}: {ratio}")


def _compare(session, group, arguments):
    """Queries, and those of them whose plans differ."""
    found = []
    for name, statement in group.queries.items():
        plans = []
        for engine in _ENGINES:
            session.query(f"USE {_database(engine, group)}")
            plans.append(explain.explain(session, statement))
        if explain.differences(*plans):
            found.append(Differing(name, statement, plans))
    if arguments.times:
        session.query(f"USE {_database('PANDO', group)}")
        for differing in found:
            differing.measure(session, arguments.runs)
    return found


def _tell(results, has_times):
    header = ("", "queries", "the same", "differ", *(("worse", "better", "alike", "not made") if has_times else ()))
    table = report.Table(*header)
    totals = collections.Counter()
    for group, found in results:
        counts = [len(group.queries), len(group.queries) - len(found), len(found)]
        if has_times:
            ratios = [one.ratio for one in found]
            worse = sum(ratio is not None and ratio > _WORSE for ratio in ratios)
            better = sum(ratio is not None and ratio < 1 / _WORSE for ratio in ratios)
            unknown = ratios.count(None)
            counts += [worse, better, len(found) - worse - better - unknown, unknown]
        table.add(group.name, *counts)
        totals.update(dict(enumerate(counts)))
    table.add("all", *(totals[place] for place in range(len(header) - 1)))
    report.heading("Plans for PANDO beside those for InnoDB")
    table.print()


def main():
    """Runs it all."""
    arguments = _arguments()
    cache = f"{arguments.cache_mb}M"
    options = [f"--pando-cache-size={cache}", f"--innodb-buffer-pool-size={cache}", "--pando-pushdown=OFF",
               "--innodb-flush-log-at-trx-commit=2", "--pando-flush-log-at-trx-commit=2", "--skip-log-bin",
               f"--max-statement-time={_TIMEOUT_S * 10}", "--secure-file-priv="]
    results = []
    with tempfile.TemporaryDirectory(prefix="pando-plans.") as directory:
        pathlib.Path(directory).chmod(0o755)
        groups = workload.groups(arguments, directory)
        wanted = (arguments.groups or ",".join(group.name for group in groups)).split(",")
        with PrivateServer("plans", options) as server:
            with server.connect(timeout=3600) as session:
                for group in groups:
                    if group.name not in wanted:
                        continue
                    _fill(session, group)
                    session.query(f"SET max_statement_time = {_TIMEOUT_S}")
                    found = _compare(session, group, arguments)
                    session.query("SET max_statement_time = DEFAULT")
                    report.heading(f"{group.name}: {len(found)} of {len(group.queries)} plans differ")
                    for differing in found:
                        differing.tell()
                    results.append((group, found))
    _tell(results, arguments.times)


if __name__ == "__main__":
    sys.exit(program.run(main))
