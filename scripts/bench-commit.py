#!/usr/bin/env python3
"""Durable single-row transactions: how many per second, with and without the binary log?

    scripts/bench-commit.py [--clients 1,8,32] [--seconds 4] [--repeats 5] [--engines PANDO,InnoDB]
                            [--setups off,0,1] [--mode insert|read] [--json FILE]

Each transaction inserts one row with an auto-increment key (or, with --mode read, reads one by its key). Every
commit is durable in the engine (flush_log_at_trx_commit = 1). Setups: without binary log; with it and
sync_binlog=0; with it and sync_binlog=1. All engines are in the same server and take turns for short runs,
so that what else the machine does meets them alike; shown are medians, and the smallest and largest run.
The clients are mariadb-slap's.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.server import PrivateServer

_SETUPS = {
    "off": ("no binary log", ["--skip-log-bin"]),
    "0": ("sync_binlog=0", ["--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=0"]),
    "1": ("sync_binlog=1", ["--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=1"]),
}
_ROWS_READ = 10_000


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--seconds", type=float, default=4, help="about how long a run takes")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--engines", default="PANDO,InnoDB")
    parser.add_argument("--setups", default="off,0,1")
    parser.add_argument("--mode", choices=("insert", "read"), default="insert")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def _slap(server, engine, mode, clients, transactions):
    """Transactions per second."""
    table = f"bench.{engine.lower()}"
    query = {"insert": f"INSERT INTO {table} (v) VALUES (1)",
             "read": f"SELECT v FROM {table} WHERE id = {_ROWS_READ // 2}"}[mode]
    begin = time.monotonic()
    subprocess.run(["mariadb-slap", "--no-defaults", f"--socket={server.socket}", "--user=root", "--silent",
                    "--no-drop", "--create-schema=bench", f"--concurrency={clients}", f"--query={query}",
                    f"--number-of-queries={transactions}"], check=True, stdout=subprocess.DEVNULL)
    return transactions / (time.monotonic() - begin)


def _measure(server, chosen, mode, clients, arguments):
    """Rates of each engine, in turns. How many transactions a run has is found by a short one."""
    rates = {engine: [] for engine in chosen}
    count = {}
    for engine in chosen:
        rate = _slap(server, engine, mode, clients, 50 * clients)
        rate = _slap(server, engine, mode, clients, max(50 * clients, int(rate * 0.5)))
        count[engine] = max(50 * clients, int(rate * arguments.seconds) // clients * clients)
    for repeat in range(arguments.repeats):
        for engine in chosen if repeat % 2 == 0 else reversed(chosen):
            rates[engine].append(_slap(server, engine, mode, clients, count[engine]))
    return rates


def _run(setup, chosen, arguments):
    options = [option for engine in chosen for option in engines.options(engine, 128)] + _SETUPS[setup][1]
    if "InnoDB" in chosen:
        options.append("--innodb-log-file-size=512M")
    results = []
    with PrivateServer("commit", options, plugin=engines.needs_plugin(chosen)) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE bench")
            for engine in chosen:
                session.query(f"CREATE TABLE bench.{engine.lower()} (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT) "
                              f"ENGINE={engine}")
                if arguments.mode == "read":
                    values = ",".join(["(1)"] * _ROWS_READ)
                    session.query(f"INSERT INTO bench.{engine.lower()} (v) VALUES {values}")
        for clients in map(int, arguments.clients.split(",")):
            rates = _measure(server, chosen, arguments.mode, clients, arguments)
            results.append({"setup": setup, "clients": clients, "rates": rates})
            print(f"{_SETUPS[setup][0]}, {clients} clients: "
                  + ", ".join(f"{engine} {statistics.median(rates[engine]):,.0f}/s" for engine in chosen), flush=True)
    return results


def _print(results, chosen):
    table = report.Table("", "clients", *chosen, *([f"{chosen[0]} / {chosen[1]}"] if len(chosen) > 1 else []))
    for result in results:
        medians = {engine: statistics.median(rates) for engine, rates in result["rates"].items()}
        cells = [f"{medians[engine]:,.0f} ({min(rates):,.0f}-{max(rates):,.0f})"
                 for engine, rates in result["rates"].items()]
        if len(chosen) > 1:
            cells.append(f"{medians[chosen[0]] / medians[chosen[1]]:.2f}")
        table.add(_SETUPS[result["setup"]][0], str(result["clients"]), *cells)
    table.print()


def main():
    arguments = _arguments()
    chosen = arguments.engines.split(",")
    results = []
    for setup in arguments.setups.split(","):
        results += _run(setup, chosen, arguments)
    report.heading("transactions per second: median (smallest-largest)")
    _print(results, chosen)
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "what": f"single-row transactions, {arguments.mode}", "date": time.strftime("%Y-%m-%d"),
            "command": " ".join(["scripts/bench-commit.py", *sys.argv[1:]]), "cpus": os.cpu_count(),
            "load": os.getloadavg(), "results": results}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
