#!/usr/bin/env python3
"""Suites of analytic queries, PANDO beside DuckDB in one run: TPC-H (22 queries), the star schema benchmark (13), air traffic (10).
Two more are asked with pushdown and without: `hundred`, a hundred queries of other shapes over TPC-H's tables, and `tpcds`: TPC-DS.

    make bench-suites                    all that it needs, and the three suites
    scripts/bench-suites.py [--suites tpch,ssb,ontime] [--scale 1] [--rows 2000000] [--keys all] [--json PREFIX]
    scripts/bench-suites.py --suites tpch --engines PANDO,PANDO-OFF,InnoDB          without pushdown, and InnoDB, too
    scripts/bench-suites.py --suites tpch --queries Q11,Q17 --runs 9                some of them
    scripts/bench-suites.py --suites hundred --scale 0.1                            are there queries that pushdown makes slower?
    scripts/bench-suites.py --suites tpcds --scale 0.3 --runs 1       TPC-DS: data and texts come by Maven (sqlkit/tpcds.py)

Schemas and queries are in scripts/suites. TPC-H's data come from `tpchgen-cli`; those of the star schema benchmark are made
of them; air traffic has the rows of `pando-bench generate ontime` in the types of the benchmark's first schema (Year is a
YEAR(4), numbers are INT(11), everything may be NULL), with its keys or without (`--keys none`).

All engines are up at once, and each query is asked of one after the other: once, and then `--runs` times, of which the
median counts. PANDO-OFF is the same server with pando_pushdown=OFF. DuckDB has a database file without keys, and `--threads`
threads as PANDO has (it takes one for each processor). The hundred queries are written for MariaDB, and DuckDB is not asked them, nor
TPC-DS as it is changed for MariaDB: PANDO-OFF stands in its place. Answers are compared: numbers that are rounded up to a ten-thousandth,
all else exactly. `--json PREFIX` writes bench/results/PREFIX-SUITE.json. The status is 1 if an answer differs.
"""

import argparse
import contextlib
import datetime
import decimal
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import engines, ontime, program, report, tpcds
from sqlkit.server import PrivateServer

_SUITES = ROOT / "scripts" / "suites"
_TITLES = {"tpch": "TPC-H", "ssb": "Star schema benchmark", "ontime": "Air traffic, the first schema's types",
           "hundred": "A hundred queries over TPC-H's tables", "tpcds": "TPC-DS"}
# MariaDB's own answers stand in DuckDB's place.
_WITHOUT_DUCKDB = ("hundred", "tpcds")

# How the star schema's tables are made of TPC-H's, in DuckDB's SQL.
_CITY = "rpad(substr(n_name, 1, 9), 9, ' ') || CAST({key} * 7 % 10 AS VARCHAR)"
_DAY = "CAST(strftime({0}, '%Y%m%d') AS INTEGER)"
_STAR = {
    "dates": f"SELECT {_DAY.format('d')}, strftime(d, '%Y-%m-%d'), dayname(d), monthname(d), year(d), year(d) * 100 + month(d),"
             " strftime(d, '%b%Y'), (dayofyear(d) - 1) // 7 + 1"
             " FROM (SELECT unnest(generate_series(DATE '1992-01-01', DATE '1998-12-31', INTERVAL 1 DAY)) AS d)",
    "customer": f"SELECT c_custkey, c_name, substr(c_address, 1, 25), {_CITY.format(key='c_custkey')}, n_name, r_name, c_phone,"
                " c_mktsegment FROM customer JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey",
    "supplier": f"SELECT s_suppkey, s_name, substr(s_address, 1, 25), {_CITY.format(key='s_suppkey')}, n_name, r_name, s_phone"
                " FROM supplier JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey",
    "part": "SELECT p_partkey, p_name, 'MFGR#' || substr(p_brand, 7, 1), 'MFGR#' || substr(p_brand, 7, 2),"
            " 'MFGR#' || substr(p_brand, 7, 2) || CAST(p_partkey * 11 % 40 + 1 AS VARCHAR), p_type, p_size, p_container FROM part",
    "lineorder": f"SELECT l_orderkey, l_linenumber, o_custkey, l_partkey, l_suppkey, {_DAY.format('o_orderdate')},"
                 " o_orderpriority, CAST(l_quantity AS INTEGER), CAST(l_extendedprice * 100 AS INTEGER),"
                 " CAST(o_totalprice * 100 AS INTEGER), CAST(l_discount * 100 AS INTEGER),"
                 " CAST(l_extendedprice * (1 - l_discount) * 100 AS INTEGER), CAST(l_extendedprice * 60 / l_quantity AS INTEGER),"
                 f" CAST(l_tax * 100 AS INTEGER), {_DAY.format('l_commitdate')}, l_shipmode"
                 " FROM lineitem JOIN orders ON l_orderkey = o_orderkey ORDER BY l_orderkey, l_linenumber",
}


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", default="tpch,ssb,ontime", help="separated by commas")
    parser.add_argument("--scale", default="1", help="of TPC-H and the star schema benchmark")
    parser.add_argument("--rows", type=int, default=2_000_000, help="of air traffic")
    parser.add_argument("--keys", choices=["all", "primary", "none"], default="all")
    parser.add_argument("--engines", default="PANDO", help="of PANDO, PANDO-OFF and InnoDB, separated by commas")
    parser.add_argument("--queries", help="only these, separated by commas")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--cache-mb", type=int, default=4096)
    parser.add_argument("--memory-mb", type=int, default=4096, help="pando_pushdown_memory, and DuckDB's limit")
    parser.add_argument("--data", type=pathlib.Path, help="a directory that keeps the data for the next run")
    parser.add_argument("--json", help="writes bench/results/THIS-SUITE.json")
    parser.add_argument("--conditions", default="", help="what the result says of the machine")
    return parser.parse_args()


def _queries(suite):
    if suite == "ontime":
        return ontime.queries()
    if suite == "tpcds":
        return tpcds.queries()
    text = (_SUITES / f"{suite}.sql").read_text()
    return {name: " ".join(body.split()).rstrip(";") for name, body in
            re.findall(r"^-- ([A-Z][\d.]+)\n(.*?)(?=^-- |\Z)", text, flags=re.M | re.S)}


def _ontime_schema():
    """The table as the benchmark had it first."""
    columns, keys = ontime.columns()
    definitions = []
    for name, sql in columns:
        sql = "YEAR(4)" if name == "Year" else re.sub(r"^SMALLINT", "INT(11)", sql.replace(" NOT NULL", ""))
        definitions.append(f"{name} {sql} DEFAULT NULL")
    return (f"CREATE TABLE ontime (id INT UNSIGNED NOT NULL AUTO_INCREMENT, {', '.join(definitions)}, {keys})"
            " DEFAULT CHARSET latin1")


def _tables(suite):
    """CREATE TABLE by the names of tables."""
    if suite == "tpcds":
        return tpcds.tables()
    schema = "tpch" if suite == "hundred" else suite
    text = _ontime_schema() if suite == "ontime" else (_SUITES / f"{schema}-schema.sql").read_text()
    statements = [" ".join(part.split()) for part in re.sub(r"^--.*$", "", text, flags=re.M).split(";")]
    return {statement.split()[2]: statement for statement in statements if statement}


def _with_keys(statement, keys):
    if keys != "all":
        statement = re.sub(r", KEY \w* ?\([^)]*\)", "", statement)
    if keys == "none":
        statement = re.sub(r", PRIMARY KEY \([^)]*\)", "", statement)
        statement = statement.replace("id INT UNSIGNED NOT NULL AUTO_INCREMENT, ", "").replace(" PRIMARY KEY", "")
    return statement


def _for_duckdb(statement):
    """A table in DuckDB's types, without keys."""
    statement = _with_keys(statement, "none").replace(" DEFAULT CHARSET latin1", "").replace(" DEFAULT NULL", "")
    return re.sub(r"(?:SMALL|TINY)?INT\(\d+\)", "INTEGER", statement).replace("YEAR(4)", "SMALLINT")


def _query_for_duckdb(sql):
    sign = lambda match: f"(CAST('{match[2]}' AS DATE) {'+' if match[1] == 'ADD' else '-'} {match[3]})"
    return re.sub(r"DATE_(ADD|SUB)\('([^']*)', (INTERVAL \d+ \w+)\)", sign, sql).replace(" DIV ", " // ")


# --- data ---------------------------------------------------------------------------------------------------

def _tpch_files(arguments, directory):
    if not (directory / "lineitem.tbl").exists():
        tool = shutil.which("tpchgen-cli") or str(pathlib.Path(sys.executable).parent / "tpchgen-cli")
        subprocess.run([tool, "-s", arguments.scale, f"--output-dir={directory}"], check=True, stdout=subprocess.DEVNULL)
    return {table: directory / f"{table}.tbl" for table in _tables("tpch")}


def _copy(duckdb, tables, files, form):
    for table, statement in tables.items():
        duckdb.execute(_for_duckdb(statement))
        duckdb.execute(f"COPY {table} FROM '{files[table]}' ({form})")


_BARS = "DELIMITER '|', HEADER false, QUOTE '', ESCAPE '', NULLSTR '\\N'"


def _files(suite, arguments, directory, connect):
    """The files of a suite's tables; they are made where they are missing. Each is for LOAD DATA and DuckDB's COPY."""
    if suite == "ontime":
        directory = directory / f"ontime-{arguments.rows}"
        directory.mkdir(parents=True, exist_ok=True)
        if not (directory / "ontime.csv").exists():
            ontime.generate(arguments.rows, directory)
        return {"ontime": directory / "ontime.csv"}
    if suite == "tpcds":
        directory = directory / f"tpcds-{arguments.scale}"
        directory.mkdir(parents=True, exist_ok=True)
        return tpcds.files(arguments.scale, directory)
    base = directory / f"tpch-{arguments.scale}"
    base.mkdir(parents=True, exist_ok=True)
    files = _tpch_files(arguments, base)
    if suite in ("tpch", "hundred"):
        return files
    made = directory / f"ssb-{arguments.scale}"
    made.mkdir(parents=True, exist_ok=True)
    if not (made / "lineorder.tbl").exists():
        with connect() as duckdb:
            _copy_tbl(duckdb, _tables("tpch"), files)
            for table, select in _STAR.items():
                duckdb.execute(f"COPY ({select}) TO '{made}/{table}.tbl' ({_BARS})")
    return {table: made / f"{table}.tbl" for table in _tables("ssb")}


def _copy_tbl(duckdb, tables, files):
    """TPC-H's files have a bar at the end of each line, which is a column more."""
    for table, statement in tables.items():
        duckdb.execute(_for_duckdb(statement))
        names = [row[0] for row in duckdb.execute(f"DESCRIBE {table}").fetchall()]
        columns = ", ".join(f"'{name}': 'VARCHAR'" for name in [*names, "beyond"])
        duckdb.execute(f"INSERT INTO {table} SELECT {', '.join(names)} FROM read_csv('{files[table]}', delim='|', header=false,"
                       f" auto_detect=false, quote='', escape='', columns={{{columns}}}, null_padding=true)")


# --- engines ------------------------------------------------------------------------------------------------

class Mariadb:
    """A private server with the tables in one engine; asks with pushdown or without."""

    def __init__(self, stack, suite, arguments, engine, files):
        options = engines.options(engine, arguments.cache_mb)
        if engine == "PANDO":
            memory = arguments.memory_mb
            options += [f"--pando-pushdown-memory={memory}M", "--innodb-buffer-pool-size=16M"]
        else:
            options += ["--innodb-log-file-size=1G"]
        server = stack.enter_context(PrivateServer("suites", options, plugin=engine == "PANDO"))
        self._session = stack.enter_context(server.connect(timeout=7200))
        self._is_pando, self._pushdown = engine == "PANDO", None
        self._session.query("CREATE DATABASE IF NOT EXISTS suite")
        self._session.query("USE suite")
        begun = time.monotonic()
        form = ("FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'" if suite == "ontime" else "FIELDS TERMINATED BY '|'")
        columns = f" ({', '.join(name for name, _ in ontime.columns()[0])})" if suite == "ontime" else ""
        for table, statement in _tables(suite).items():
            self._session.query(f"{_with_keys(statement, arguments.keys)} ENGINE={engine}")
            # The bar at the end of a line is one column more than the table has, which is a warning.
            self._session.query(f"LOAD DATA INFILE '{files[table]}' IGNORE INTO TABLE {table} {form}{columns}")
            self._session.query(f"ANALYZE TABLE {table}")
        report.note(f"{engine}: loaded in {time.monotonic() - begun:.1f} s")

    def asker(self, pushdown):
        """Asks with pando_pushdown like this."""
        def ask(sql):
            if self._is_pando and self._pushdown != pushdown:
                self._session.query(f"SET pando_pushdown = {pushdown}")
                self._pushdown = pushdown
            return self._session.query(sql).rows
        return ask

    def pushed(self):
        """How many queries the engine has answered."""
        return int(self._session.query("SHOW GLOBAL STATUS LIKE 'Pando_queries_pushed'").rows[0][1])


def _duckdb_connect(arguments, path):
    import duckdb  # pylint: disable=import-outside-toplevel
    return duckdb.connect(path, config={"threads": arguments.threads, "memory_limit": f"{arguments.memory_mb}MB"})


def _open_engines(stack, suite, arguments, files, directory):
    """What each engine is asked with; the server of PANDO."""
    asks, servers = {}, {}
    names = arguments.engines
    if suite in _WITHOUT_DUCKDB and "PANDO-OFF" not in names.split(","):
        names += ",PANDO-OFF"
    for name in names.split(","):
        engine = name.removesuffix("-OFF")
        if engine not in servers:
            servers[engine] = Mariadb(stack, suite, arguments, engine, files)
        asks[name] = servers[engine].asker("OFF" if name.endswith("-OFF") else "ON")
    if suite in _WITHOUT_DUCKDB:
        return asks, servers.get("PANDO")
    duckdb = stack.enter_context(_duckdb_connect(arguments, f"{directory}/suite.duckdb"))
    begun = time.monotonic()
    if suite == "tpch":
        _copy_tbl(duckdb, _tables(suite), files)
    else:
        form = "DELIMITER ',', QUOTE '\"', NULLSTR 'NULL', HEADER false" if suite == "ontime" else _BARS
        _copy(duckdb, _tables(suite), files, form)
    duckdb.execute("CHECKPOINT")
    import duckdb as module  # pylint: disable=import-outside-toplevel
    report.note(f"DuckDB {module.__version__}: loaded in {time.monotonic() - begun:.1f} s, {arguments.threads} threads")
    asks["DuckDB"] = lambda sql: duckdb.execute(_query_for_duckdb(sql)).fetchall()
    return asks, servers.get("PANDO")


# --- what is measured ---------------------------------------------------------------------------------------

def _plain(cell):
    if isinstance(cell, bytes):
        cell = cell.decode("latin1")
    if isinstance(cell, (datetime.date, decimal.Decimal)):
        cell = str(cell)
    if isinstance(cell, str) and re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell):
        return decimal.Decimal(cell)
    return decimal.Decimal(repr(cell)) if isinstance(cell, (int, float)) else cell


def _is_same(one, other):
    if isinstance(one, decimal.Decimal) and isinstance(other, decimal.Decimal):
        return one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-4)
    return one == other


def _are_same(one, other):
    return len(one) == len(other) and all(
        len(a) == len(b) and all(_is_same(_plain(x), _plain(y)) for x, y in zip(a, b)) for a, b in zip(one, other))


def _sorted(answer):
    """TPC-DS sorts by columns in which rows are equal."""
    return sorted(answer, key=repr)


def _measure(asks, pando, queries, runs, order=lambda answer: answer):
    """Of each query: medians by engine, first times, whether the engine answered it, whether the answers are equal."""
    measured = {}
    for query, sql in queries.items():
        times, answers, is_pushed = {name: [] for name in asks}, {}, None
        for _ in range(1 + runs):
            for name, ask in asks.items():
                before = pando.pushed() if name == "PANDO" else 0
                begun = time.perf_counter()
                answers[name] = ask(sql)
                times[name].append(time.perf_counter() - begun)
                if name == "PANDO":
                    is_pushed = pando.pushed() > before
        first = next(iter(answers.values()))
        measured[query] = {"first": {name: of[0] for name, of in times.items()},
                           "median": {name: statistics.median(of[1:] or of) for name, of in times.items()},
                           "is_pushed": is_pushed,
                           "is_equal": all(_are_same(order(first), order(answer)) for answer in answers.values())}
    return measured


def _table(asks, measured):
    """Header and rows, with the sums. The last engine is the one to compare with."""
    names = list(asks)
    pando, peer = names[0], names[-1]
    header = ["", *names, f"{pando} / {peer}", "answered by", "answers"]
    rows = []
    for query, of in measured.items():
        median = of["median"]
        rows.append([query, *[report.seconds(median[name]) for name in names], f"{median[pando] / median[peer]:.2f}",
                     {True: "the engine", False: "the server", None: ""}[of["is_pushed"]],
                     "equal" if of["is_equal"] else "NOT equal"])
    sums = {name: sum(of["median"][name] for of in measured.values()) for name in names}
    rows.append(["all", *[report.seconds(sums[name]) for name in names], f"{sums[pando] / sums[peer]:.2f}", "", ""])
    return header, rows


def _tell_pushed(measured):
    """How much of the time is spent in the engine, and which queries would be faster without it."""
    times = {query: of["median"] for query, of in measured.items()}
    pushed = [query for query, of in measured.items() if of["is_pushed"]]
    share = sum(times[query]["PANDO"] for query in pushed) / sum(of["PANDO"] for of in times.values())
    # Without pushdown, which queries take the time tells what is left to the server.
    without = sum(times[query]["PANDO-OFF"] for query in pushed) / sum(of["PANDO-OFF"] for of in times.values())
    report.note(f"the engine answered {len(pushed)} of {len(measured)} queries: {share:.0%} of the time with pushdown,"
                f" {without:.0%} of the time without")
    slower = [query for query, of in times.items() if of["PANDO"] > of["PANDO-OFF"] * 1.1 + 0.001]
    report.note(f"slower with pushdown by more than a tenth, and a millisecond: {', '.join(slower) or 'none'}")


def _write(arguments, suite, header, rows):
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    size = f"{arguments.rows:,} flights" if suite == "ontime" else f"scale factor {arguments.scale}"
    keys = {"all": "with all keys", "primary": "with primary keys", "none": "without keys"}[arguments.keys]
    aligned = [{"name": name, "align": "right" if 0 < place < len(header) - 2 else "left"} for place, name in enumerate(header)]
    command = " ".join(["scripts/bench-suites.py", f"--suites {suite}",
                        f"--rows {arguments.rows}" if suite == "ontime" else f"--scale {arguments.scale}",
                        f"--keys {arguments.keys}", f"--engines {arguments.engines}", f"--runs {arguments.runs}"])
    result = {"format": "pando-results 1", "title": f"{_TITLES[suite]}, {size}, {keys}",
              "date": datetime.date.today().isoformat(), "commit": commit.stdout.strip() or None, "machine": "main",
              "command": command, "conditions": arguments.conditions or "Medians; all in memory.", "columns": aligned,
              "rows": rows}
    text = json.dumps({**result, "rows": "ROWS"}, indent=2, ensure_ascii=False)
    listed = ",\n    ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path = ROOT / "bench" / "results" / f"{arguments.json}-{suite}.json"
    path.write_text(text.replace('"ROWS"', f"[\n    {listed}\n  ]") + "\n")
    report.note(f"written: {path.relative_to(ROOT)}")


def _run(suite, arguments, directory):
    queries = _queries(suite)
    if arguments.queries:
        queries = {name: queries[name] for name in arguments.queries.split(",")}
    report.heading(_TITLES[suite])
    files = _files(suite, arguments, directory, lambda: _duckdb_connect(arguments, ":memory:"))
    with contextlib.ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="pando-suites-duckdb."))
        asks, pando = _open_engines(stack, suite, arguments, files, temporary)
        measured = _measure(asks, pando, queries, arguments.runs, *([_sorted] if suite == "tpcds" else []))
    header, rows = _table(asks, measured)
    table = report.Table(*header)
    for row in rows:
        table.add(*row)
    table.print()
    if "PANDO-OFF" in asks and "PANDO" in asks:
        _tell_pushed(measured)
    if arguments.json:
        _write(arguments, suite, header, rows)
    return all(of["is_equal"] for of in measured.values())


def main():
    """Runs the suites."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="pando-suites.") as temporary:
        directory = (arguments.data or pathlib.Path(temporary)).resolve()
        all_equal = [_run(suite, arguments, directory) for suite in arguments.suites.split(",")]
    return 0 if all(all_equal) else 1


if __name__ == "__main__":
    sys.exit(program.run(main))
