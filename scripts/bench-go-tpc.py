#!/usr/bin/env python3
"""TPC-C by a client that is not ours: go-tpc, beside other engines.

    make build && scripts/bench-go-tpc.py [--warehouses 4] [--clients 8] [--seconds 20] [--repeats 3] [--cache-mb 64] [--engines PANDO,InnoDB]

Each engine has a private server of its own with durable commits and direct I/O. go-tpc loads the tables by INSERT, checks them, and runs the
standard mix on each server in turn. New orders a minute are go-tpc's tpmC; the processor time is what the server used for a transaction. go-tpc
is compiled into build/tools when it is not there (`go` 1.21 or newer).
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.server import PrivateServer, ServerFailed, free_port

_TOOL = ROOT / "build" / "tools" / "go-tpc"
_MODULE = "github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.7"
_SUMMARY = re.compile(r"^\[Summary\] (\w+) - .*Count: (\d+).*50th\(ms\): ([\d.]+).*99th\(ms\): ([\d.]+)")
_TRANSACTIONS = ["NEW_ORDER", "PAYMENT", "ORDER_STATUS", "DELIVERY", "STOCK_LEVEL"]
_WARM_SECONDS = 8
_DIRECT = {"PANDO": ["--pando-direct-io=ON"], "InnoDB": ["--innodb-flush-method=O_DIRECT", "--innodb-log-file-size=256M"],
           "ROCKSDB": ["--rocksdb-use-direct-reads=ON", "--rocksdb-use-direct-io-for-flush-and-compaction=ON"]}


def _tool():
    if not _TOOL.exists():
        _TOOL.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["go", "install", _MODULE], env={**os.environ, "GOBIN": str(_TOOL.parent)}, check=True)
    return str(_TOOL)


class _Bench:
    """One engine's server, and what its runs gave."""

    def __init__(self, engine, options):
        self.engine, self._clients = engine, options.clients
        port = free_port()
        self.server = PrivateServer(
            f"tpc-{engine.lower()}", engines.options(engine, options.cache_mb) + _DIRECT.get(engine, []) +
            ["--skip-networking=0", "--bind-address=127.0.0.1", f"--port={port}", f"--default-storage-engine={engine}"],
            plugin=engines.needs_plugin([engine]))
        self._command = [_tool(), "tpcc", "-H", "127.0.0.1", "-P", str(port), "-U", "tpc", "-p", "tpc", "-D", "tpcc",
                         f"--warehouses={options.warehouses}"]
        self.rates, self.used, self.latencies = [], [], {name: [] for name in _TRANSACTIONS}

    def _go(self, *arguments):
        done = subprocess.run(self._command + list(arguments), check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise ServerFailed(f"go-tpc {arguments[0]}: {done.stdout[-2000:]}")
        return done.stdout

    def load(self):
        with self.server.connect() as session:
            session.query("CREATE DATABASE tpcc")
            for host in ("127.0.0.1", "localhost"):
                session.query(f"CREATE USER tpc@'{host}' IDENTIFIED BY 'tpc'")
                session.query(f"GRANT ALL ON *.* TO tpc@'{host}'")
        with report.Stopwatch() as watch:
            self._go("prepare", "-T", str(self._clients), "--no-check")
        print(f"  {self.engine}: loaded in {watch.seconds:.1f} s", flush=True)

    def run(self, seconds):
        self._go("run", "-T", str(self._clients), "--time", f"{_WARM_SECONDS}s")
        before = self._processor_seconds()
        text = self._go("run", "-T", str(self._clients), "--time", f"{seconds}s")
        used = self._processor_seconds() - before
        count = 0
        for line in text.splitlines():
            found = _SUMMARY.match(line)
            if found and found[1] in self.latencies:
                count += int(found[2])
                self.latencies[found[1]].append((float(found[3]), float(found[4])))
        self.rates.append(float(re.search(r"tpmC: ([\d.]+)", text)[1]))
        self.used.append(used / max(1, count) * 1000)
        print(f"  {self.engine}: {self.rates[-1]:,.0f} new orders a minute, {self.used[-1]:.2f} ms of a processor each transaction", flush=True)

    def _processor_seconds(self):
        pid = (self.server.dir / "pid").read_text(encoding="ascii").strip()
        fields = (pathlib.Path("/proc") / pid / "stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rows(benches):
    """The table's rows: what is measured, each engine, the first one over each other one."""
    def row(name, values, spread=None):
        medians = [statistics.median(of) for of in values]
        shown = [f"{median:,.{0 if median >= 100 else 2}f}" + (f" ({min(of):,.0f}-{max(of):,.0f})" if spread else "")
                 for median, of in zip(medians, values)]
        ratios = [round(medians[0] / other, 2) for other in medians[1:]]
        return [name] + shown + ratios
    rows = [row("new orders a minute", [bench.rates for bench in benches], spread=True),
            row("processor time of a transaction, ms", [bench.used for bench in benches])]
    for name in _TRANSACTIONS:
        words = name.lower().replace("_", " ")
        rows.append(row(f"{words}, median, ms", [[one[0] for one in bench.latencies[name]] for bench in benches]))
        rows.append(row(f"{words}, 99 of 100, ms", [[one[1] for one in bench.latencies[name]] for bench in benches]))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warehouses", type=int, default=4)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=20, help="of each run, after eight that are not counted")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cache-mb", type=int, default=64)
    parser.add_argument("--engines", default="PANDO,InnoDB")
    parser.add_argument("--json", type=pathlib.Path, help="writes the result to this file")
    parser.add_argument("--conditions", default="", help="what the result says of the machine")
    options = parser.parse_args()
    names = options.engines.split(",")
    benches = [_Bench(name, options) for name in names]
    try:
        for bench in benches:
            bench.server.__enter__()
            bench.load()
        for _ in range(options.repeats):
            for bench in benches:
                bench.run(options.seconds)
    finally:
        for bench in benches:
            bench.server.__exit__(None, None, None)
    rows = _rows(benches)
    header = [""] + names + [f"{names[0]} / {other}" for other in names[1:]]
    table = report.Table(*header)
    for row in rows:
        table.add(*[str(cell) for cell in row])
    table.print()
    if options.json:
        columns = [{"name": header[0], "align": "left"}] + [{"name": name, "align": "right"} for name in names]
        columns += [{"name": name, "decimals": 2} for name in header[1 + len(names):]]
        command = f"scripts/bench-go-tpc.py --warehouses {options.warehouses} --clients {options.clients} --cache-mb {options.cache_mb}"
        result = {"format": "pando-results 1", "title": f"TPC-C by go-tpc, {options.warehouses} warehouses, cache {options.cache_mb} MB",
                  "date": datetime.date.today().isoformat(), "commit": None, "machine": "main",
                  "command": command + f" --seconds {options.seconds} --repeats {options.repeats} --engines {options.engines}",
                  "conditions": options.conditions, "columns": columns, "rows": rows}
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
