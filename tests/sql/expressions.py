#!/usr/bin/env python3
"""SELECTs of random expressions over two joined tables, answered with pushdown and without: the rows are the same.

    bash tests/sql/expressions.sh [--queries 2000] [--seed N]

Beside pushdown.sh, whose conditions are mostly columns and constants, these are functions in functions, of all types, some of which warn or fail.
Warnings are not compared.
"""

import argparse
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_NUMBERS = ["t.a", "t.b", "t.c", "t.d", "t.e", "u.x", "u.y", "u.z", "t.yr", "t.bt", "t.f"]
_TEXTS = ["t.s", "u.s", "t.vb", "t.en", "u.n"]
_MOMENTS = ["t.dt", "t.da", "u.ts", "u.tm"]
_LITERALS = {"number": ["0", "1", "-1", "2", "0.5", "-0.25", "1e1", "7", "255", "-3.75", "18446744073709551615", "NULL", "'3'", "'4x'"],
             "text": ["'a'", "'B'", "'3'", "''", "'b '", "'2024-01-05'", "NULL", "'ab%'", "'ß'"],
             "moment": ["'2024-02-29'", "DATE'2024-03-01'", "TIMESTAMP'2024-05-05 12:00:00'", "20240101", "NULL", "'2024-13-01'"]}
_FORMS = {
    "number": ["({n} + {n})", "({n} - {n})", "({n} * {n})", "({n} / {n})", "({n} % {n})", "({n} DIV {n})", "ROUND({n}, 1)", "TRUNCATE({n}, 1)",
               "ROUND({n}, -1)", "CEILING({n})", "FLOOR({n})", "ABS({n})", "SIGN({n})", "(-{n})", "GREATEST({n}, {n})", "LEAST({n}, {n})",
               "COALESCE({n}, {n})", "NULLIF({n}, {n})", "CAST({n} AS SIGNED)", "CAST({t} AS UNSIGNED)", "CAST({n} AS DECIMAL(8,2))",
               "CAST({m} AS DECIMAL(10,0))", "CAST({t} AS DOUBLE)", "LENGTH({t})", "ASCII({t})", "CRC32({t})", "YEAR({m})", "MONTH({m})",
               "DAYOFWEEK({m})", "TO_DAYS({m})", "DATEDIFF({m}, {m})", "IF({c}, {n}, {n})", "CASE WHEN {c} THEN {n} ELSE {n} END",
               "({n} & {n})", "({n} | {n})"],
    "text": ["UPPER({t})", "LOWER({t})", "TRIM({t})", "REVERSE({t})", "HEX({t})", "LEFT({t}, 2)", "RIGHT({t}, 1)", "CONCAT({t}, {t})",
             "CONCAT({t}, {n})", "CAST({n} AS CHAR)", "CAST({m} AS CHAR)", "COALESCE({t}, {t})", "NULLIF({t}, {t})", "GREATEST({t}, {t})",
             "DATE_FORMAT({m}, '%Y-%m')"],
    "moment": ["DATE_ADD({m}, INTERVAL 31 DAY)", "DATE_SUB({m}, INTERVAL 1 MONTH)", "DATE_ADD({m}, INTERVAL {n} HOUR)", "DATE({m})",
               "LAST_DAY({m})", "CAST({m} AS DATE)", "CAST({t} AS DATETIME)"],
    "condition": ["({c} AND {c})", "({c} OR {c})", "NOT ({c})", "{n} IS NULL", "{t} IS NOT NULL", "{n} BETWEEN {n} AND {n}",
                  "{t} BETWEEN {t} AND {t}", "{m} BETWEEN {m} AND {m}", "{n} IN ({n}, {n}, {n})", "{t} NOT IN ({t}, {t})", "{m} IN ({m}, {m})",
                  "{t} LIKE '%a%'", "{t} LIKE 'b%'", "{n} IN (SELECT x FROM u u2 WHERE u2.id < 30)", "{t} NOT IN (SELECT n FROM u u2)",
                  "EXISTS (SELECT 1 FROM u u2 WHERE u2.x = {n})", "({n}, {t}) = ({n}, {t})", "({m}, {n}) IN (({m}, {n}), ({m}, {n}))",
                  "({n}, {t}) IN (SELECT x, n FROM u u2)", "({n}, {n}) NOT IN (SELECT x, z FROM u u2 WHERE u2.y > {n})",
                  "{n} NOT IN (SELECT x FROM u u2 WHERE {c})", "{n} NOT IN (SELECT z FROM u u2 WHERE u2.y < {n})",
                  "EXISTS (SELECT 1 FROM u u2 WHERE (u2.n, u2.x) = ({t}, {n}))", "{n} = {t}", "{m} < {n}", "{t} >= {m}"]
                 + [f"{{{kind}}} {sign} {{{kind}}}" for kind in "nntm" for sign in ("=", "<", "<=>", ">=", "<>", ">")]}
_KINDS = {"n": "number", "t": "text", "m": "moment", "c": "condition"}
_COLUMNS = {"number": _NUMBERS, "text": _TEXTS, "moment": _MOMENTS}
_DEPTH = 4


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=2000)
    program.add_seed(parser)
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


def _expression(rng, kind, depth=0):
    if kind != "condition":
        if depth >= _DEPTH or rng.random() < 0.4:
            return rng.choice(_COLUMNS[kind])
        if rng.random() < 0.15:
            return rng.choice(_LITERALS[kind])
    forms = _FORMS[kind] if depth < _DEPTH else _FORMS[kind][-6:]
    text, out = rng.choice(forms), ""
    while "{" in text:
        before, _, rest = text.partition("{")
        out, text = f"{out}{before}{_expression(rng, _KINDS[rest[0]], depth + 1)}", rest[2:]
    return out + text


def _query(rng):
    value = lambda: _expression(rng, rng.choice(["number", "number", "text", "moment"]))
    tables = rng.choice(["t JOIN u ON t.g = u.id", "t JOIN u ON t.g = u.id", "t LEFT JOIN u ON t.g = u.id + 20"])
    where = _expression(rng, "condition")
    return rng.choice((
        f"SELECT COUNT(*), SUM(t.id * u.id) FROM {tables} WHERE {where}",
        f"SELECT COUNT(*), SUM(t.id * u.id) FROM {tables} WHERE {where}",
        f"SELECT {value()} k, COUNT(*), SUM(t.id) FROM {tables} WHERE {where} GROUP BY k",
        f"SELECT t.g, MIN({value()}), MAX({value()}), COUNT({value()}), COUNT(DISTINCT {value()}) FROM {tables} GROUP BY t.g",
        f"SELECT COUNT(*), MAX(k), MIN(k), COUNT(DISTINCT v) FROM (SELECT {value()} k, {value()} v FROM {tables} WHERE {where}) w WHERE k > 0"))


def _prepare(session):
    session.query("CREATE DATABASE x CHARACTER SET utf8mb4")
    session.query("USE x")
    session.query("SET sql_mode = 'NO_ENGINE_SUBSTITUTION'")
    session.query("CREATE TABLE t (id INT PRIMARY KEY, a INT, b DECIMAL(6,2), c BIGINT UNSIGNED, d DECIMAL(5,1), e DOUBLE, f FLOAT, g INT,"
                  " yr YEAR, bt BIT(5), s VARCHAR(20), vb VARBINARY(10), en ENUM('x','a','3'), dt DATETIME(2), da DATE,"
                  " KEY (a), KEY (s), KEY (da)) ENGINE=PANDO")
    session.query("CREATE TABLE u (id INT PRIMARY KEY, x INT, y DECIMAL(5,1), z TINYINT UNSIGNED, s CHAR(8),"
                  " n VARCHAR(9) COLLATE utf8mb4_bin, ts TIMESTAMP NULL, tm TIME) ENGINE=PANDO")
    signed = lambda divisor, less: f"(CAST(seq % {divisor} AS SIGNED) - {less})"
    session.query(f"INSERT INTO t SELECT seq, IF(seq % 9 = 0, NULL, {signed(7, 3)}), IF(seq % 8 = 0, NULL, {signed(11, 5)} / 4), seq % 4,"
                  f" {signed(5, 2)} / 2, IF(seq % 13 = 0, NULL, {signed(17, 8)} / 4), {signed(6, 2)} / 2, seq % 40,"
                  " IF(seq % 10 = 0, 0, 2000 + seq % 30), seq % 32, ELT(1 + seq % 9, 'a', 'B', 'b', 'ab', '3', '', '2024-01-05', '4x', NULL),"
                  " ELT(1 + seq % 5, 'a', 'A', 'b ', '3', NULL), 1 + seq % 3, IF(seq % 12 = 0, NULL, '2024-01-01' + INTERVAL seq * 7919 MINUTE),"
                  " IF(seq % 14 = 0, NULL, '2023-12-20' + INTERVAL seq % 100 DAY) FROM seq_1_to_1500")
    session.query(f"INSERT INTO u SELECT seq, {signed(6, 2)}, {signed(5, 1)} / 2, IF(seq % 7 = 0, NULL, seq % 3),"
                  " ELT(1 + seq % 6, 'a', 'B', 'ab', '3', '', NULL), ELT(1 + seq % 5, 'a', 'A', 'b', '3', NULL),"
                  " IF(seq % 6 = 0, NULL, '2024-01-01' + INTERVAL seq * 13 HOUR), SEC_TO_TIME(seq * 1234) FROM seq_1_to_60")


def _answer(session, sql):
    """The rows in no order, or the number of the error."""
    try:
        return sorted(map(repr, session.query(sql).rows))
    except SqlError as error:
        return error.number


def _pushed(session):
    return int(session.query("SHOW STATUS LIKE 'Pando_queries_pushed'").rows[0][1])


def _run(session, arguments, checks):
    rng = random.Random(arguments.seed)
    pushed, failed, wrong = 0, 0, []
    for _ in range(arguments.queries):
        mode = rng.choice(["STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO", ""])
        sql = _query(rng)
        session.query(f"SET sql_mode = '{mode}', pando_pushdown = ON")
        before = _pushed(session)
        answer = _answer(session, sql)
        pushed += _pushed(session) > before
        session.query("SET pando_pushdown = OFF")
        other = _answer(session, sql)
        failed += isinstance(other, int)
        if answer != other:
            wrong.append((mode, sql))
    for mode, sql in wrong[:10]:
        report.note(f"sql_mode '{mode}': {sql}")
    checks.check(not wrong, f"all of {arguments.queries} answers are the same", f"{len(wrong)} differ")
    checks.check(pushed > arguments.queries // 4, f"the engine answered {pushed}; {failed} end in an error", str(pushed))


def main():
    arguments = _arguments()
    checks = report.Checks()
    plugin = engines.needs_plugin(["PANDO"])
    report.heading(f"{arguments.queries} random expressions (--seed {arguments.seed})")
    with PrivateServer("expressions", [], plugin=plugin, keep=arguments.keep) as server, server.connect(timeout=600) as session:
        _prepare(session)
        _run(session, arguments, checks)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
