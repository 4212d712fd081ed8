#!/usr/bin/env python3
"""Rows in random key order: does the speed last when the data outgrow the cache?

    scripts/bench-insert.py [--rows 10000000] [--engines PANDO,InnoDB] [--cache-mb 256]
                            [--json docs/bench-insert.json] [--chart docs/bench-insert.svg]

A table with a primary key and three secondary keys takes multi-row INSERTs of 1000 rows, each statement a
transaction, each commit durable, primary keys in random order. One engine after the other, each in a
fresh private server with the same cache and the same durability. Shown for each engine: rows per second
in each tenth of the rows, longest statement and 99th percentile, bytes written, size on disk. The client's
own share is measured against BLACKHOLE, which only parses.
"""

import argparse
import json
import os
import pathlib
import platform
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from insert_bench import chart, measure
from sqlkit import engines, report
from sqlkit.server import PrivateServer, end_by_signals

_SLICES = 10


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--engines", default="PANDO,InnoDB", help="comma-separated, run in this order")
    parser.add_argument("--cache-mb", type=int, default=256)
    parser.add_argument("--flush", type=int, default=1, help="flush_log_at_trx_commit of each engine")
    parser.add_argument("--seed", type=int, default=2008)
    parser.add_argument("--option", action="append", default=[], metavar="ENGINE:OPTION",
                        help="one more server option for an engine, for example InnoDB:--innodb-log-file-size=2G")
    parser.add_argument("--json", type=pathlib.Path, help="write all numbers to this file")
    parser.add_argument("--chart", type=pathlib.Path, help="write the curve to this file (SVG)")
    parser.add_argument("--no-blackhole", action="store_true", help="do not measure the client's share")
    return parser.parse_args()


def _options(engine, arguments):
    options = engines.options(engine, arguments.cache_mb, arguments.flush)
    if engine.upper() == "INNODB":
        # Generous to InnoDB: with its default log of 96 MiB it would write pages much more often.
        options += ["--innodb-log-file-size=1G"]
    else:
        options += ["--innodb-buffer-pool-size=16M"]
    if engine.upper() == "PANDO":
        options += ["--pando-direct-io=ON"]
    if engine.upper() == "BLACKHOLE":
        options += ["--plugin-load-add=ha_blackhole.so"]
    for extra in arguments.option:
        name, _, option = extra.partition(":")
        if name.upper() == engine.upper():
            options.append(option)
    return options


def _run(engine, rows, arguments):
    options = _options(engine, arguments)
    with PrivateServer("bench", options, plugin=engines.needs_plugin([engine])) as server:
        print(f"{engine}: {' '.join(options)}", flush=True)
        result = measure.run(server, engine, rows, _SLICES, arguments.seed)
    result["options"] = options
    return result


def _print(results):
    report.heading("rows per second in each tenth of the rows")
    table = report.Table("rows so far", *(result["engine"] for result in results))
    for slices in zip(*(result["slices"] for result in results)):
        table.add(f"{slices[0]['rows_before'] + slices[0]['rows']:,}",
                  *(f"{one['rows_per_second']:,.0f}" for one in slices))
    table.print()
    report.heading("the whole run")
    table = report.Table("", *(result["engine"] for result in results))
    for title, show in (
            ("time", lambda one: report.seconds(one["seconds"])),
            ("rows per second", lambda one: f"{one['rows_per_second']:,.0f}"),
            ("last tenth / first tenth",
             lambda one: f"{one['last_rows_per_second'] / one['first_rows_per_second']:.2f}"),
            ("longest statement", lambda one: report.seconds(one["longest_seconds"])),
            ("99th percentile of statements", lambda one: report.seconds(one["p99_seconds"])),
            ("bytes written", lambda one: report.size(one["written_bytes"])),
            ("size on disk after a clean stop", lambda one: report.size(one["disk_bytes_after_stop"])),
            ("SELECT COUNT(*) afterwards", lambda one: report.seconds(one["count_seconds"]))):
        table.add(title, *map(show, results))
    table.print()


def _client_share(arguments, results):
    """Rows per second that client and parser can do at most, and its part of each engine's time."""
    blackhole = _run("BLACKHOLE", min(arguments.rows, 500_000), arguments)
    limit = blackhole["rows_per_second"]
    print(f"\n  Client and parser alone (BLACKHOLE) do {limit:,.0f} rows/s: "
          + ", ".join(f"{one['rows_per_second'] / limit:.0%} of the time of {one['engine']}" for one in results))
    return limit


def _verdict(results):
    """The aim: speed does not fall by more than a fifth, and the last tenth is faster than the peer's."""
    wrong = [one["engine"] for one in results if one["rows_found"] != one["rows"]]
    for engine in wrong:
        report.bad(f"{engine} does not have all rows")
    first = results[0]
    lasting = first["last_rows_per_second"] / first["first_rows_per_second"]
    print(f"\n  {first['engine']}: last tenth is {lasting:.2f} times its first (aim: at least 0.80)")
    for other in results[1:]:
        times = first["last_rows_per_second"] / other["last_rows_per_second"]
        print(f"  {first['engine']}: last tenth is {times:.2f} times that of {other['engine']} (aim: more than 1)")
    return not wrong


def _machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {"cpu": models[0] if models else platform.machine(), "cpus": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "kernel": platform.release()}


def main():
    arguments = _arguments()
    end_by_signals()
    chosen = arguments.engines.split(",")
    try:
        results = [_run(engine, arguments.rows, arguments) for engine in chosen]
        _print(results)
        limit = None if arguments.no_blackhole else _client_share(arguments, results)
    except KeyboardInterrupt:
        return 130
    held = _verdict(results)
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "what": "multi-row INSERTs in random key order", "date": time.strftime("%Y-%m-%d"),
            "command": " ".join(["scripts/bench-insert.py", *sys.argv[1:]]), "machine": _machine(),
            "rows": arguments.rows, "cache_mb": arguments.cache_mb, "flush_log_at_trx_commit": arguments.flush,
            "client_rows_per_second": limit, "results": results}, indent=1) + "\n")
    if arguments.chart:
        arguments.chart.write_text(chart.svg(results, arguments.rows, arguments.cache_mb))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
