#!/usr/bin/env python3
"""Everyday work, by sysbench: transactions a second and their 99th percentile, beside InnoDB and MyRocks.

    make build && scripts/bench-sysbench.py [--rows 2000000] [--clients 1,8,32] [--seconds 10] [--repeats 3]
        [--engines PANDO,InnoDB,ROCKSDB] [--cache both|fits|quarter|tenth] [--workloads NAME,...] [--json FILE]
        [--foreign-keys]                   k of each row names a parent; only with engines that have foreign keys
    scripts/bench-sysbench.py --short          200,000 rows, 8 clients, 3 seconds, all in memory: for development

For each engine a private server of its own; they take turns, workload by workload, and those whose turn it is not
are frozen (SIGSTOP), so that nobody's work in the background falls on another's measurement but on its own next
one. Equal for all: cache, durability (--flush 1: each commit is on disk), no binary log, rows and statements (keys
uniformly random; each run has a seed of its own, the same for all engines). The page cache is no second cache: all engines read and write their files directly
(innodb_flush_method=O_DIRECT, rocksdb_use_direct_reads, pando_direct_io).

Cache `fits`: several times the data; `quarter`, `tenth`: that part of the rows' and the index's raw bytes. What engines have
beside it (InnoDB's log, memtables of the others) are their own defaults, with a log of 1 GiB for InnoDB.
sysbench needs Debian's package of that name.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.server import PrivateServer

# In this order: the last ones change how many rows there are.
_WORKLOADS = {
    "point_select": "oltp_point_select", "read_only": "oltp_read_only", "update_index": "oltp_update_index",
    "update_non_index": "oltp_update_non_index", "read_write": "oltp_read_write", "insert": "oltp_insert",
    "delete": "oltp_delete", "bulk_insert": "bulk_insert",
}
_RAW_ROW_BYTES = 4 + 4 + 120 + 60 + 8  # id, k, c, pad, and the entry of the index
_WARM_UP_SECONDS = 1
_PARENTS_MORE = 1000  # update_index adds 1 to k: this often, for one row
_PARTS = {"quarter": 4, "tenth": 10}


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engines", default="PANDO,InnoDB,ROCKSDB")
    parser.add_argument("--workloads", default=",".join(_WORKLOADS))
    parser.add_argument("--cache", choices=("both", "fits", *_PARTS), default="both", help="both: fits and quarter")
    parser.add_argument("--flush", type=int, default=1, help="flush_log_at_trx_commit of all engines")
    parser.add_argument("--foreign-keys", action="store_true", help="FOREIGN KEY (k) REFERENCES parents (id)")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.short:
        arguments.rows, arguments.clients, arguments.seconds = 200_000, "8", 3
        arguments.repeats, arguments.cache = 1, "fits"
    unknown = set(arguments.workloads.split(",")) - set(_WORKLOADS)
    if unknown:
        parser.error(f"no such workload: {', '.join(sorted(unknown))}")
    if not shutil.which("sysbench"):
        parser.error("no sysbench; apt-get install sysbench")
    return arguments


def _cache_mb(cache, rows):
    raw_mb = rows * _RAW_ROW_BYTES / (1 << 20)
    return max(8, round(raw_mb / _PARTS[cache])) if cache in _PARTS else max(256, round(raw_mb * 3))


def _options(engine, cache_mb, flush):
    own = engines.options(engine, cache_mb, flush)
    if engine == "PANDO":
        own.append("--pando-direct-io=ON")
    if engine == "InnoDB":
        own += ["--innodb-flush-method=O_DIRECT", "--innodb-log-file-size=1G"]
    else:
        own.append("--innodb-buffer-pool-size=16M")
    if engine == "ROCKSDB":
        own += ["--rocksdb-use-direct-reads=ON", "--rocksdb-use-direct-io-for-flush-and-compaction=ON"]
    return own + ["--skip-log-bin", "--max-connections=200"]


class Measured:
    """An engine's server, frozen except within `with`."""

    def __init__(self, engine, cache_mb, flush):
        self.engine = engine
        self.server = PrivateServer(f"sysbench-{engine.lower()}", _options(engine, cache_mb, flush),
                                    plugin=engines.needs_plugin([engine]))

    def start(self):
        self.server.start()
        with self.server.connect() as session:
            session.query("CREATE DATABASE sbtest")

    def __enter__(self):
        os.kill(self.server.pid(), signal.SIGCONT)
        return self

    def __exit__(self, *_):
        os.kill(self.server.pid(), signal.SIGSTOP)

    def end(self):
        self.server.__exit__(None)

    def sysbench(self, script, command, clients=1, seconds=0.0, seed=0, **others):
        options = {"mysql-socket": self.server.socket, "mysql-user": "root", "mysql-db": "sbtest",
                   "threads": clients, "percentile": 99, "rand-type": "uniform", **others}
        if script != "bulk_insert":
            options["mysql-storage-engine"] = self.engine
        if command == "run":
            options["time"], options["rand-seed"] = max(1, round(seconds)), 20261122 + seed
        done = subprocess.run(["sysbench", script, *(f"--{name}={value}" for name, value in options.items()), command],
                              check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise RuntimeError(f"{self.engine}: {script} {command}: {done.stdout[-2000:]}")
        return done.stdout

    def prepare(self, rows, with_foreign_keys):
        with report.Stopwatch() as watch:
            self.sysbench("oltp_read_write", "prepare", **{"table-size": rows})
        with self.server.connect("sbtest") as session:
            if with_foreign_keys:
                session.query(f"CREATE TABLE parents (id INT PRIMARY KEY) ENGINE={self.engine} "
                              f"SELECT seq AS id FROM seq_0_to_{rows + _PARENTS_MORE}")
                session.query("ALTER TABLE sbtest1 ADD FOREIGN KEY (k) REFERENCES parents (id)")
            session.query("ANALYZE TABLE sbtest1")
            # Brings the table into the cache as far as it goes.
            session.query("SELECT COUNT(c), SUM(k) FROM sbtest1 FORCE INDEX (PRIMARY)")
            session.query("SELECT SUM(k) FROM sbtest1 FORCE INDEX (k_1)")
        return watch.seconds

    def measure(self, workload, clients, rows, seconds, number):
        """Run `number`: the keys of one would be in the cache for another that asked for the same ones."""
        script = _WORKLOADS[workload]
        if script == "bulk_insert":
            return self._bulk_insert(clients, seconds)
        options = {"table-size": rows}
        self.sysbench(script, "run", clients, _WARM_UP_SECONDS, seed=2 * number, **options)
        return _figures(self.sysbench(script, "run", clients, seconds, seed=2 * number + 1, **options))

    def _bulk_insert(self, clients, seconds):
        """Each client fills a table of its own, of this engine, with statements of half a megabyte."""
        with self.server.connect() as session:
            session.query("CREATE DATABASE sbbulk")
            for number in range(1, clients + 1):
                session.query(f"CREATE TABLE sbbulk.sbtest{number} (id INT NOT NULL, k INT NOT NULL DEFAULT 0, "
                              f"PRIMARY KEY (id)) ENGINE={self.engine}")
        figures = _figures(self.sysbench("bulk_insert", "run", clients, seconds, **{"mysql-db": "sbbulk"}))
        with self.server.connect() as session:
            session.query("DROP DATABASE sbbulk")
        # An event of it is a row, whose time says nothing: nearly all are only added to a statement.
        figures["p99_ms"] = figures["longest_ms"]
        return figures


def _figures(output):
    """What sysbench says: an event is a transaction (or the only statement)."""
    def number(pattern):
        found = re.search(pattern, output)
        if not found:
            raise RuntimeError(f"sysbench did not say {pattern}: {output[-2000:]}")
        return float(found.group(1))
    events = number(r"total number of events:\s+(\d+)")
    return {"rate": events / number(r"total time:\s+([\d.]+)s"), "p99_ms": number(r"99th percentile:\s+([\d.]+)"),
            "longest_ms": number(r"max:\s+([\d.]+)"),
            "errors": number(r"ignored errors:\s+(\d+)") if "ignored errors" in output else 0}


def _run(cache, chosen, arguments):
    cache_mb = _cache_mb(cache, arguments.rows)
    report.heading(f"{arguments.rows:,} rows, cache {cache_mb} MB ({cache})")
    servers, results, runs = [], [], itertools.count()
    try:
        for engine in chosen:
            servers.append(Measured(engine, cache_mb, arguments.flush))
            servers[-1].start()
            with servers[-1] as server:
                report.note(f"{engine}: prepared in {server.prepare(arguments.rows, arguments.foreign_keys):.1f} s")
        for workload in arguments.workloads.split(","):
            for clients in map(int, arguments.clients.split(",")):
                samples = {engine: [] for engine in chosen}
                for repeat in range(arguments.repeats):
                    number = next(runs)
                    for frozen in servers if repeat % 2 == 0 else reversed(servers):
                        with frozen as server:
                            samples[server.engine].append(
                                server.measure(workload, clients, arguments.rows, arguments.seconds, number))
                results.append({"cache": cache, "cache_mb": cache_mb, "workload": workload, "clients": clients,
                                "samples": samples})
                report.note(f"{workload}, {clients} clients: " + ", ".join(
                    f"{engine} {_median(samples[engine], 'rate'):,.0f}/s" for engine in chosen))
    finally:
        for server in servers:
            server.end()
    return results


def _median(samples, what):
    return statistics.median(sample[what] for sample in samples)


def _print(results, chosen):
    first, peers = chosen[0], chosen[1:]
    table = report.Table("cache, workload", "clients", *chosen, *(f"{first} / {peer}" for peer in peers),
                         *(f"p99 {engine}" for engine in chosen))
    for result in results:
        rates = {engine: _median(samples, "rate") for engine, samples in result["samples"].items()}
        table.add(f"{result['cache']}, {result['workload']}", result["clients"],
                  *(f"{rates[engine]:,.0f}" for engine in chosen),
                  *(f"{rates[first] / rates[peer]:.2f}" for peer in peers),
                  *(f"{_median(result['samples'][engine], 'p99_ms'):.2f} ms" for engine in chosen))
    table.print()


def main():
    arguments = _arguments()
    chosen = arguments.engines.split(",")
    results = []
    for cache in ("fits", "quarter") if arguments.cache == "both" else (arguments.cache,):
        results += _run(cache, chosen, arguments)
    report.heading("transactions (of insert: rows) a second, medians; p99 of bulk_insert is its longest statement")
    _print(results, chosen)
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "what": "sysbench", "date": time.strftime("%Y-%m-%d"), "rows": arguments.rows,
            "command": " ".join(["scripts/bench-sysbench.py", *sys.argv[1:]]), "cpus": os.cpu_count(),
            "flush_log_at_trx_commit": arguments.flush, "load": os.getloadavg(), "results": results}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
