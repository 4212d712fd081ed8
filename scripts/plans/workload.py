"""Groups of tables and the queries over them. Statements are deterministic; each answer is one row, or few."""

import dataclasses
import pathlib
import random as randoms
import sys

from sqlkit import ontime

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "sql"))

# pylint: disable=wrong-import-position
from pushdown import star, tpch

# Of a table's rows, what ranges and lists pick.
_SHARES = (0, 0.0001, 0.001, 0.01, 0.03, 0.1, 0.3, 0.6)


@dataclasses.dataclass
class Group:
    """Tables by name (columns and keys), statements that fill them in a database, and named queries."""
    name: str
    tables: dict
    fill: list
    queries: dict


def groups(sizes, directory):
    """All groups. `sizes`: rows of the generated tables, of flights, of the suites' largest table."""
    return [_sysbench(sizes.rows), _events(sizes.rows), _flights(sizes.flights, directory),
            _suite("tpch", tpch, sizes.lines, {}), _suite("tpch_keys", tpch, sizes.lines, _TPCH_KEYS),
            _suite("star", star, sizes.lines, {}), _suite("star_keys", star, sizes.lines, _STAR_KEYS)]


def _ranges(rows, shares=_SHARES):
    """Name, first and last number of a stretch in the middle of 1 to `rows`."""
    for share in shares:
        count = max(1, round(rows * share))
        first = rows // 3
        yield f"{share * 100:g} %" if share else "one", first, first + count - 1


def _sysbench(rows):
    columns = ("id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k (k)")
    value = lambda seed: f"1 + CRC32(seq * 7 + {seed}) % {rows}"
    fill = [f"INSERT INTO {table} SELECT seq, {value(seed)}, REPEAT(CONCAT(seq, '-'), 12), REPEAT('x', seq % 60)"
            f" FROM seq_1_to_{count}" for table, seed, count in (("one", 1, rows), ("two", 2, rows // 4))]
    queries = {}
    for name, low, high in _ranges(rows):
        within = f"BETWEEN {low} AND {high}"
        queries |= {
            f"rows by id, {name}": f"SELECT SUM(LENGTH(c)) FROM one WHERE id {within}",
            f"count by id, {name}": f"SELECT COUNT(*) FROM one WHERE id {within}",
            f"rows by k, {name}": f"SELECT SUM(LENGTH(c)) FROM one WHERE k {within}",
            f"count by k, {name}": f"SELECT COUNT(*) FROM one WHERE k {within}",
            f"id by k, {name}": f"SELECT SUM(id) FROM one WHERE k {within}",
            f"k by id, {name}": f"SELECT SUM(k) FROM one WHERE id {within}",
            f"both, {name}": f"SELECT SUM(LENGTH(c)) FROM one WHERE k {within} AND id < {rows // 2}",
            f"either, {name}": f"SELECT SUM(LENGTH(c)) FROM one WHERE k {within} OR id {within}",
            f"order by id limit, {name}": f"SELECT id, k, c FROM one WHERE k {within} ORDER BY id LIMIT 10",
            f"order by k limit, {name}": f"SELECT id, k, c FROM one WHERE id {within} ORDER BY k LIMIT 10",
            f"order by k down, {name}": f"SELECT id, k, c FROM one WHERE k {within} ORDER BY k DESC LIMIT 10",
            f"order by k all, {name}": f"SELECT k, id FROM one WHERE id {within} ORDER BY k LIMIT 100000, 1",
            f"distinct k, {name}": f"SELECT COUNT(DISTINCT k) FROM one WHERE k {within}",
            f"group by k, {name}": f"SELECT k, COUNT(*) FROM one WHERE id {within} GROUP BY k ORDER BY NULL LIMIT 20",
            f"join by id, {name}": f"SELECT SUM(LENGTH(one.c)) FROM two, one WHERE one.id = two.k AND two.id {within}",
            f"join by k, {name}": f"SELECT SUM(LENGTH(one.c)) FROM two, one WHERE one.k = two.id AND two.id {within}",
            f"join by k, range of k, {name}": "SELECT SUM(LENGTH(two.c)) FROM two, one WHERE one.k = two.k"
                                              f" AND one.k {within}",
            f"semi-join, {name}": f"SELECT COUNT(*) FROM two WHERE k IN (SELECT k FROM one WHERE id {within})",
            f"exists, {name}": f"SELECT COUNT(*) FROM two WHERE id {within} AND EXISTS"
                               " (SELECT 1 FROM one WHERE one.k = two.k AND one.c > '5')",
            f"left join, {name}": "SELECT COUNT(one.c) FROM two LEFT JOIN one ON one.k = two.k AND one.c > '5'"
                                  f" WHERE two.id {within}",
        }
    random = randoms.Random(1)
    for count in (2, 10, 100, 1000):
        numbers = ", ".join(str(random.randint(1, rows)) for _ in range(count))
        queries[f"rows of {count} ids"] = f"SELECT SUM(LENGTH(c)) FROM one WHERE id IN ({numbers})"
        queries[f"rows of {count} k"] = f"SELECT SUM(LENGTH(c)) FROM one WHERE k IN ({numbers})"
    return Group("sysbench", {"one": columns, "two": columns}, fill, queries)


def _events(rows):
    """A table with keys of one and several parts, of few and many values."""
    columns = ("id INT NOT NULL PRIMARY KEY, kind TINYINT NOT NULL, place SMALLINT, person INT NOT NULL,"
               " day DATE NOT NULL, price DECIMAL(10,2) NOT NULL, name VARCHAR(40) NOT NULL, note VARCHAR(200) NOT NULL,"
               " KEY kind (kind), KEY place_day (place, day), KEY person (person), KEY day (day), KEY name (name),"
               " KEY kind_place_day (kind, place, day)")
    people = rows // 20
    fill = [f"INSERT INTO events SELECT seq, FLOOR(POW(CRC32(seq) % 1000 / 1000, 3) * 12),"
            f" IF(seq % 10 = 3, NULL, CRC32(seq * 3) % 500), CRC32(seq * 5) % {people},"
            f" DATE'2015-01-01' + INTERVAL seq * 2000 DIV {rows} DAY, CRC32(seq * 11) % 100000 / 100,"
            f" CONCAT('name ', CRC32(seq * 13) % {rows // 4}), REPEAT(CHAR(97 + seq % 26), 20 + seq % 150)"
            f" FROM seq_1_to_{rows}",
            f"INSERT INTO people SELECT seq - 1, CRC32(seq * 17) % 40, CONCAT('person ', seq) FROM seq_1_to_{people}"]
    people_columns = "id INT NOT NULL PRIMARY KEY, team TINYINT NOT NULL, name VARCHAR(40) NOT NULL, KEY team (team)"
    queries = {
        "group by kind": "SELECT kind, COUNT(*) FROM events GROUP BY kind",
        "group by kind, rows": "SELECT kind, SUM(price) FROM events GROUP BY kind",
        "group by place": "SELECT place, COUNT(*) FROM events GROUP BY place",
        "group by place, day": "SELECT place, MIN(day), MAX(day) FROM events GROUP BY place",
        "group by person": "SELECT person, SUM(price) AS s FROM events GROUP BY person ORDER BY s DESC LIMIT 5",
        "distinct place": "SELECT COUNT(DISTINCT place) FROM events",
        "distinct person": "SELECT COUNT(DISTINCT person) FROM events",
        "distinct kind and place": "SELECT COUNT(*) FROM (SELECT DISTINCT kind, place FROM events) AS d",
        "first of kind": "SELECT MIN(day) FROM events WHERE kind = 3",
        "no place": "SELECT SUM(price) FROM events WHERE place IS NULL",
        "order by day": "SELECT id, note FROM events ORDER BY day LIMIT 10",
        "order by name": "SELECT id, note FROM events ORDER BY name LIMIT 100",
        "order by place, day": "SELECT id, note FROM events ORDER BY place, day LIMIT 5000, 10",
    }
    for kind in (0, 3, 11):
        queries |= {
            f"rows of kind {kind}": f"SELECT SUM(price) FROM events WHERE kind = {kind}",
            f"latest of kind {kind}": f"SELECT id, note FROM events WHERE kind = {kind} ORDER BY day DESC LIMIT 10",
            f"kind {kind} at a place": f"SELECT SUM(price) FROM events WHERE kind = {kind} AND place = 17",
            f"kind {kind} at places": f"SELECT SUM(price) FROM events WHERE kind = {kind} AND place BETWEEN 17 AND 60",
            f"places of kind {kind}": f"SELECT place, COUNT(*) FROM events WHERE kind = {kind} GROUP BY place",
            f"kind {kind}, people": "SELECT team, SUM(price) FROM events, people WHERE people.id = person"
                                    f" AND kind = {kind} AND place = 99 GROUP BY team",
        }
    for days in (1, 5, 20, 60, 200, 700, 1500):
        period = f"day BETWEEN '2016-03-01' AND '2016-03-01' + INTERVAL {days - 1} DAY"
        queries |= {
            f"count of {days} days": f"SELECT COUNT(*) FROM events WHERE {period}",
            f"rows of {days} days": f"SELECT SUM(price) FROM events WHERE {period}",
            f"{days} days, a place": f"SELECT SUM(price) FROM events WHERE {period} AND place = 7",
            f"{days} days, three places": f"SELECT SUM(price) FROM events WHERE {period} AND place IN (7, 70, 170)",
            f"{days} days, a kind": f"SELECT SUM(price) FROM events WHERE {period} AND kind = 2",
            f"{days} days, a kind or a place": f"SELECT SUM(price) FROM events WHERE {period}"
                                               " AND (kind = 10 OR place = 9)",
            f"{days} days by place": f"SELECT place, SUM(price) FROM events WHERE {period} GROUP BY place",
            f"{days} days, dearest": f"SELECT id, price FROM events WHERE {period} ORDER BY price DESC LIMIT 10",
            f"{days} days, first names": f"SELECT id, note FROM events WHERE {period} ORDER BY name LIMIT 10",
            f"{days} days by person": f"SELECT id, price FROM events WHERE {period} ORDER BY person, id LIMIT 10",
            f"{days} days of a team": "SELECT SUM(price) FROM people, events WHERE people.id = events.person AND team = 5"
                                      f" AND {period}",
            f"{days} days of a person": f"SELECT id, note FROM events WHERE {period} AND person = 1000",
        }
    for width, prefix in ((3, "name 1"), (4, "name 12"), (5, "name 123"), (6, "name 1234")):
        queries |= {
            f"names with {width} fixed": f"SELECT SUM(price) FROM events WHERE name LIKE '{prefix}%'",
            f"count of names with {width} fixed": f"SELECT COUNT(*) FROM events WHERE name LIKE '{prefix}%'",
        }
    for team in (1, 2, 3):
        queries |= {
            f"team {team}": f"SELECT SUM(price) FROM people, events WHERE people.id = events.person AND team = {team}",
            f"team {team}, count": f"SELECT COUNT(*) FROM people, events WHERE people.id = events.person AND team = {team}",
            f"team {team} of kind": "SELECT COUNT(*) FROM people, events WHERE people.id = events.person"
                                    f" AND team = {team} AND kind = {team}",
        }
    return Group("events", {"events": columns, "people": people_columns}, fill, queries)


def _flights(rows, directory):
    columns, keys = ontime.columns()
    names = ", ".join(name for name, _ in columns)
    definition = ", ".join(f"{name} {sql}" for name, sql in columns)
    ontime.generate(rows, directory)
    fill = [f"LOAD DATA INFILE '{directory}/ontime.csv' INTO TABLE ontime FIELDS TERMINATED BY ','"
            f" OPTIONALLY ENCLOSED BY '\"' ({names})"]
    queries = dict(ontime.queries())
    for year in (1990, 2007):
        queries |= {
            f"month of {year}": f"SELECT COUNT(*) FROM ontime WHERE Year = {year} AND Month = 3",
            f"delay in a month of {year}": f"SELECT AVG(DepDelay) FROM ontime WHERE Year = {year} AND Month = 3",
            f"delay of {year}": f"SELECT AVG(DepDelay) FROM ontime WHERE Year = {year}",
            f"arrival delay of {year}": f"SELECT AVG(ArrDelay) FROM ontime WHERE Year = {year}",
            f"carrier in {year}": f"SELECT SUM(ArrDelay) FROM ontime WHERE Year = {year} AND Carrier = 'WN'",
            f"late carrier in {year}": "SELECT COUNT(*) FROM ontime WHERE Carrier = 'WN' AND DepDelay > 60"
                                       f" AND Year = {year}",
            f"origin in {year}": f"SELECT SUM(Distance) FROM ontime WHERE Origin = 'ORD' AND Year = {year}",
            f"weekday of {year}": f"SELECT SUM(Distance) FROM ontime WHERE DayOfWeek = 7 AND Year = {year}",
            f"latest of {year}": f"SELECT FlightDate, FlightNum FROM ontime WHERE Year = {year}"
                                 " ORDER BY DepDelay DESC LIMIT 5",
            f"since {year}": f"SELECT SUM(Distance) FROM ontime WHERE Year >= {year} AND DepDelay > 120",
        }
    for origin in ("ORD", "SFO", "ABE", "XXX"):
        queries |= {
            f"from {origin}": f"SELECT SUM(Distance) FROM ontime WHERE Origin = '{origin}'",
            f"late from {origin}": f"SELECT COUNT(*) FROM ontime WHERE Origin = '{origin}' AND DepDelay > 100",
            f"years from {origin}": f"SELECT Year, COUNT(*) FROM ontime WHERE Origin = '{origin}' GROUP BY Year",
        }
    table = f"id INT UNSIGNED NOT NULL AUTO_INCREMENT, {definition}, {keys}"
    return Group("flights", {"ontime": table}, fill, queries)


# Such as foreign keys would make, and two on dates.
_TPCH_KEYS = {
    "nation": "KEY (n_regionkey)", "supplier": "KEY (s_nationkey)", "customer": "KEY (c_nationkey)",
    "partsupp": "KEY (ps_suppkey)", "orders": "KEY (o_custkey), KEY (o_orderdate)",
    "lineitem": "KEY (l_partkey, l_suppkey), KEY (l_suppkey), KEY (l_shipdate)",
}
_STAR_KEYS = {
    "lineorder": "KEY (lo_custkey), KEY (lo_partkey), KEY (lo_suppkey), KEY (lo_orderdate)", "dates": "KEY (d_year)",
    "customer": "KEY (c_region, c_nation, c_city)", "supplier": "KEY (s_region, s_nation, s_city)",
    "part": "KEY (p_category), KEY (p_brand1)",
}


def _suite(name, suite, lines, keys):
    made = suite.rows(randoms.Random(1), lines)
    fill = [f"INSERT INTO {table} VALUES " + ", ".join(made[table][begin:begin + 500])
            for table in suite.TABLES for begin in range(0, len(made[table]), 500)]
    tables = {table: f"{columns}, {keys[table]}" if table in keys else columns
              for table, columns in suite.TABLES.items()}
    return Group(name, tables, fill, dict(suite.QUERIES))
