#!/usr/bin/env python3
"""pando-bench works, and engines that answer differently would be noticed.

    tests/sql/bench.sh [--engine PANDO] [--peer InnoDB]

Two workloads with few rows: iibench on private servers, and lineorder on a server that is given by its socket,
which takes its files by LOAD DATA LOCAL. Both engines must have answered every query, and alike; the report
must come back from its JSON as table, page and picture. A database that is there already must not be touched.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.server import PrivateServer

_ROWS = 10_000


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--peer", default="InnoDB")
    parser.add_argument("--program", required=True, help="pando-bench (bench.sh builds it)")
    return parser.parse_args()


def _run(program, *words):
    return subprocess.run([program, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)


def _private(arguments, server, checks):
    """iibench on private servers of pando-bench's own."""
    report.heading(f"iibench, {_ROWS} rows, private servers")
    files = {kind: server.dir / f"iibench.{kind}" for kind in ("json", "html", "svg")}
    done = _run(arguments.program, "run", "iibench", "--rows", _ROWS, "--engines",
                f"{arguments.engine},{arguments.peer}", "--cache-mb", 32, "--query-runs", 1, "--quiet",
                *(word for kind, path in files.items() for word in (f"--{kind}", path)))
    if not checks.check(done.returncode == 0, "it ends well", done.stderr):
        return
    result = json.loads(files["json"].read_text())
    _check_answers(result, 2, checks)
    for engine in result["engines"]:
        curves = {curve["name"]: curve["points"] for curve in engine["curves"]}
        points = curves.get("rows inserted per second", [])
        checks.check(len(points) == 10 and points[-1][0] == _ROWS, f"{engine['engine']}: a curve up to all rows", points)
        written = [one["samples"][0] for one in engine["metrics"] if one["name"] == "with a clean stop, per row"]
        checks.check(written and written[0] > 10, f"{engine['engine']}: bytes written are seen", written)
    again = {kind: server.dir / f"again.{kind}" for kind in ("html", "svg")}
    shown = _run(arguments.program, "report", files["json"], "--html", again["html"], "--svg", again["svg"])
    same = all(again[kind].read_bytes() == files[kind].read_bytes() for kind in again)
    checks.check(shown.stdout == done.stdout and same, "table, page and picture come again from the JSON")


def _given(arguments, server, checks):
    """lineorder on a server that somebody else has started."""
    report.heading(f"lineorder, {_ROWS} rows, a given server")
    path = server.dir / "lineorder.json"
    words = ["run", "lineorder", "--rows", _ROWS, "--engines", f"{arguments.engine},{arguments.peer}", "--query-runs", 1,
             "--socket", server.socket, "--user", "root", "--json", path, "--quiet"]
    with server.connect() as session:
        session.query("CREATE DATABASE pando_bench")
        session.query("CREATE TABLE pando_bench.somebodys (a INT)")
        refused = _run(arguments.program, *words)
        checks.check(refused.returncode == 2 and "pando_bench" in refused.stderr, "a database that is there is refused",
                     refused.stderr)
        checks.check(session.number("SELECT COUNT(*) FROM pando_bench.somebodys") == 0, "and left as it is")
        done = _run(arguments.program, *words, "--database", "bench_of_mine")
        if checks.check(done.returncode == 0, "it ends well in another", done.stderr):
            _check_answers(json.loads(path.read_text()), 5, checks)
        left = session.number("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'bench_of_mine'")
        checks.check(left == 0, "its own database is gone")


def _check_answers(result, wanted, checks):
    answers = [{one["name"]: one["digest"] for one in engine["answers"]} for engine in result["engines"]]
    checks.check(len(answers) == 2 and answers[0] == answers[1] and len(answers[0]) == wanted,
                 f"both engines gave the same {wanted} answers", answers)


def main():
    arguments = _arguments()
    checks = report.Checks()
    both = (arguments.engine, arguments.peer)
    options = [option for engine in both for option in engines.options(engine, 32)]
    with PrivateServer("bench", options, plugin=engines.needs_plugin(both)) as server:
        _given(arguments, server, checks)
        _private(arguments, server, checks)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
