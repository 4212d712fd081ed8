"""Every type there and back, and random statements: a Spider table over shards gives the same answers, affected rows and
errors as one over InnoDB tables of the same shards, and, without the statements that Spider does wrong whatever the
engine (docs/cluster.md), as an InnoDB table of the front."""

import random

from sqlkit.client import SqlError

TYPES = {
    "TINYINT": ["-128", "0", "127"], "SMALLINT UNSIGNED": ["0", "65535"], "MEDIUMINT": ["-8388608", "8388607"],
    "INT": ["-2147483648", "2147483647"], "BIGINT": ["-9223372036854775808", "9223372036854775807"],
    "BIGINT UNSIGNED": ["18446744073709551615"], "DECIMAL(65,30)": ["-12345678901234567890.000000000000000000000000000001", "0"],
    "DECIMAL(5,2)": ["-999.99", "0.01"], "FLOAT": ["-1.5", "3.25e10"], "DOUBLE": ["-2.2250738585072014e-308", "1.7976931348623157e308", "0.1"],
    "BIT(1)": ["b'1'", "b'0'"], "BIT(13)": ["b'1010101010101'"], "BOOLEAN": ["TRUE"],
    "DATE": ["'1000-01-01'", "'9999-12-31'"], "TIME(6)": ["'-838:59:59'", "'12:34:56.789012'"],
    "DATETIME(6)": ["'1999-12-31 23:59:59.999999'"], "DATETIME": ["'2026-03-29 02:30:00'"],
    "TIMESTAMP(3) NULL": ["'2026-10-25 01:30:00.123'", "'1970-01-02 00:00:01'"], "YEAR": ["1901", "2155"],
    "CHAR(5)": ["'a'", "''"], "VARCHAR(40)": ["'O''Hara \\\\ \"x\" %_'", "'trailing  '", "''"],
    "VARCHAR(20) CHARACTER SET utf8mb4": ["'äöü\u2603\U0001f600'"], "VARCHAR(20) CHARACTER SET latin1": ["'äöü'"],
    "BINARY(4)": ["X'00FF'", "X'00000000'"], "VARBINARY(10)": ["X'00270A5C1A22'", "''"],
    "TEXT": ["REPEAT('line\\n', 3000)", "''"], "MEDIUMTEXT": ["REPEAT('x', 300000)"], "BLOB": ["X'0001FF27225C0D0A1A'", "REPEAT(X'00', 40000)"],
    "LONGBLOB": ["REPEAT(X'FF', 200000)"], "ENUM('a','b','it''s')": ["'b'", "'it''s'"], "SET('x','y','z')": ["'x,z'", "''"],
    "JSON": ["'{\"a\": [1, null, \"é\"]}'"], "UUID": ["'123e4567-e89b-12d3-a456-426655440000'"], "INET6": ["'::1'", "'2001:db8::ff00:42:8329'"],
}


def types(cluster, checks):
    """Values and NULLs of all types, read whole and found by themselves."""
    columns = list(TYPES)
    definition = "CREATE TABLE types (id INT PRIMARY KEY, " + ", ".join(f"c{at} {kind}" for at, kind in enumerate(columns)) + ")"
    cluster.create("d", "types", definition, "KEY (id)")
    with cluster.front.connect("d") as front:
        front.query(definition.replace("TABLE types", "TABLE types_one") + " ENGINE=InnoDB")
        most = max(len(values) for values in TYPES.values())
        for row in range(3 * most + 1):
            values = ["NULL" if row == 3 * most or (row >= most and (row + at) % 3 == 0) else TYPES[kind][row % len(TYPES[kind])]
                      for at, kind in enumerate(columns)]
            for table in ("types", "types_one"):
                front.query(f"INSERT INTO {table} VALUES ({row}, {', '.join(values)})")
        wrong = [kind for at, kind in enumerate(columns) if _both(front, f"SELECT id, c{at} FROM {{}} ORDER BY id", "types") is not None]
        checks.check(not wrong, f"values and NULLs of {len(columns)} types come back as they went", wrong)
        lost = []
        for at, kind in enumerate(columns):
            # Spider compares a BIT with a text.
            for value in TYPES[kind] if not kind.startswith("BIT") else ():
                # A FLOAT is equal to no literal, here as there.
                if _both(front, f"SELECT id FROM {{}} WHERE c{at} = {value} ORDER BY id", "types") is not None:
                    lost.append(f"{kind} = {value[:40]}")
            if _both(front, f"SELECT id FROM {{}} WHERE c{at} IS NULL ORDER BY id", "types") is not None:
                lost.append(f"{kind} IS NULL")
        checks.check(not lost, "rows are found by their values", lost)
        for table in ("types", "types_one"):
            front.query(f"UPDATE {table} SET " + ", ".join(f"c{at} = NULL" for at in range(0, len(columns), 2)) + " WHERE id % 2 = 0")
        checks.check(_both(front, "SELECT * FROM {} ORDER BY id", "types") is None, "the same after an update of half of them")


def _both(front, sql, name):
    """None when both tables answer the same, else the two answers."""
    answers = []
    for table in (name, f"{name}_one"):
        try:
            result = front.query(sql.replace("{}", table))
            answers.append((result.rows, result.affected))
        except SqlError as error:
            answers.append(error.number)
    return None if answers[0] == answers[1] else answers


_DEFINITION = ("CREATE TABLE {} (id INT PRIMARY KEY, a INT, b VARCHAR(12), c DECIMAL(9,2), d DATETIME, n INT NOT NULL DEFAULT 7"
               "{keys})")
_KEYS = ", KEY a (a), KEY b (b, a), KEY d (d)"
_OTHER = "CREATE TABLE {} (id INT PRIMARY KEY, t INT, v INT{keys})"


class Random:
    """Statements over t (and, joined, u); {t} and {u} stand for the tables."""

    def __init__(self, seed, limits):
        """With `limits` there are UPDATE and DELETE with LIMIT, which Spider does on each shard."""
        self._random, self._limits = random.Random(seed), limits

    def _value(self, column):
        if column != "n" and self._random.random() < 0.15:
            return "NULL"
        number = self._random.randrange(30)
        return {"a": str(number - 5), "b": f"'w{number % 11}'", "c": f"{number * 37 % 100}.{number:02}",
                "d": f"'2026-{1 + number % 12:02}-{1 + number % 28:02} 0{number % 10}:00:00'", "n": str(number), "v": str(number)}[column]

    def _id(self):
        return self._random.randrange(1, 150)

    def _where(self, prefix=""):
        kind = self._random.randrange(9)
        first, second = sorted((self._id(), self._id()))
        value = self._value("a")
        return prefix + [f"id = {first}", f"id BETWEEN {first} AND {second}", f"id IN ({first}, {second}, {self._id()})",
                         f"a = {value if value != 'NULL' else 3}", f"a IS NULL AND {prefix}id > {first}", f"b = 'w{self._random.randrange(11)}'",
                         f"b LIKE 'w1%' AND {prefix}a > {self._random.randrange(20)}", f"d >= '2026-0{self._random.randrange(1, 9)}-01'",
                         f"n % 3 = {self._random.randrange(3)} AND {prefix}id < {second}"][kind]

    def _row(self):
        return "(" + ", ".join([str(self._id())] + [self._value(column) for column in "abcdn"]) + ")"

    def change(self):
        """A statement that writes."""
        rows = ", ".join(self._row() for _ in range(self._random.randrange(1, 6)))
        column = self._random.choice("abcdn")
        value = self._value(column)
        limited = [f"UPDATE {{t}} SET n = n * 2 % 1000 WHERE {self._where()} ORDER BY id LIMIT {self._random.randrange(1, 9)}",
                   f"DELETE FROM {{t}} WHERE {self._where()} ORDER BY id LIMIT 2"] if self._limits else []
        return self._random.choice(limited + [
            f"INSERT INTO {{t}} VALUES {rows}", f"INSERT IGNORE INTO {{t}} VALUES {rows}", f"REPLACE INTO {{t}} VALUES {rows}",
            f"INSERT INTO {{t}} VALUES {self._row()} ON DUPLICATE KEY UPDATE n = n + 1, a = VALUES(a)",
            f"UPDATE {{t}} SET {column} = {value} WHERE {self._where()}",
            f"UPDATE {{t}} SET n = n + 1, a = a - 1 WHERE {self._where()}",
            f"UPDATE {{t}}, {{u}} SET {{t}}.n = {{u}}.v WHERE {{t}}.id = {{u}}.id AND {{u}}.id < {self._id()}",
            f"DELETE FROM {{t}} WHERE {self._where()} AND n % 2 = 0", f"DELETE FROM {{t}} WHERE id = {self._id()}",
            f"REPLACE INTO {{u}} VALUES ({self._id()}, {self._id()}, {self._value('v')}), ({self._id()}, {self._id()}, {self._value('v')})",
            f"INSERT IGNORE INTO {{u}} SELECT id, n, a FROM {{t}} WHERE {self._where()}"])

    def query(self):
        """A SELECT whose order, where it has one, is total."""
        where, limit = self._where(), self._random.randrange(1, 30)
        return self._random.choice([
            f"SELECT * FROM {{t}} WHERE {where} ORDER BY id", f"SELECT * FROM {{t}} WHERE {where} ORDER BY a DESC, id LIMIT {limit}",
            f"SELECT id, b FROM {{t}} WHERE {where} ORDER BY b, id LIMIT {limit} OFFSET {limit // 2}",
            f"SELECT COUNT(*), SUM(a), MIN(b), MAX(d), AVG(n), COUNT(a), COUNT(DISTINCT b) FROM {{t}} WHERE {where}",
            f"SELECT a, COUNT(*), SUM(c) FROM {{t}} WHERE {where} GROUP BY a ORDER BY a",
            f"SELECT b, a, COUNT(*) AS c, MAX(n) FROM {{t}} WHERE {where} GROUP BY b, a HAVING c > 1 ORDER BY b, a",
            f"SELECT b, COUNT(DISTINCT a) FROM {{t}} WHERE {where} GROUP BY b ORDER BY b", f"SELECT DISTINCT b FROM {{t}} WHERE {where} ORDER BY b",
            f"SELECT b, MIN(a), MAX(a) FROM {{t}} GROUP BY b ORDER BY b", "SELECT COUNT(*) FROM {t}",
            f"SELECT {{t}}.id, {{u}}.id, v FROM {{t}} JOIN {{u}} ON {{u}}.t = {{t}}.id WHERE {self._where('{t}.')} ORDER BY 1, 2",
            f"SELECT {{t}}.id, v FROM {{t}} LEFT JOIN {{u}} USING (id) WHERE {self._where('{t}.')} ORDER BY 1",
            f"SELECT id FROM {{t}} WHERE {where} AND id IN (SELECT t FROM {{u}} WHERE v > {limit}) ORDER BY id",
            f"SELECT id FROM {{t}} WHERE {where} UNION SELECT t FROM {{u}} WHERE id < {limit} ORDER BY 1",
            f"SELECT * FROM {{t}} WHERE {where} ORDER BY id FOR UPDATE", f"SELECT SUM(n) FROM {{t}} WHERE {where} LOCK IN SHARE MODE"])

    def chance(self, share):
        return self._random.random() < share


def _run(front, sql, suffix):
    try:
        result = front.query(sql.replace("{t}", f"t{suffix}").replace("{u}", f"u{suffix}"))
        return result.rows, result.affected
    except SqlError as error:
        return error.number, str(error).replace(f"t{suffix}", "t")


def random_statements(cluster, checks, count, seed):
    """`count` statements beside InnoDB shards, and as many beside one InnoDB table."""
    for peer in ("over InnoDB shards", "of InnoDB on the front"):
        _beside(cluster, checks, count, Random(f"{seed}/{peer}", peer.startswith("over")), peer)


def _make(cluster, peer):
    for name, definition, keys in (("t", _DEFINITION, _KEYS), ("u", _OTHER, ", KEY t (t)")):
        other = f"{name}_one"
        cluster.create("d", name, definition.format(name, keys=keys), "KEY (id)", front=definition.format(name, keys=""))
        if peer.startswith("over"):
            cluster.create("d", other, definition.format(other, keys=keys), "KEY (id)", front=definition.format(other, keys=""),
                           engine="InnoDB")
        else:
            with cluster.front.connect("d") as front:
                front.query(definition.format(other, keys=keys) + " ENGINE=InnoDB")


def _drop(cluster):
    for server in [cluster.front] + [shard.primary.server for shard in cluster.shards]:
        with server.connect("d") as session:
            session.query("DROP TABLE IF EXISTS t, u, t_one, u_one")


def _beside(cluster, checks, count, choose, peer):
    different = {}
    _make(cluster, peer)
    with cluster.front.connect("d") as front:
        inside = False
        for _ in range(count):
            if choose.chance(0.06):
                front.query("START TRANSACTION" if not inside else "COMMIT" if choose.chance(0.6) else "ROLLBACK")
                inside = not inside
                continue
            sql = choose.change() if choose.chance(0.5) else choose.query()
            one, two = _run(front, sql, ""), _run(front, sql, "_one")
            failed = isinstance(one[0], int) or isinstance(two[0], int)
            # Spider does not count what it deletes without reading it, and counts rows that an UPDATE leaves as they were.
            only_first = failed or (sql.startswith(("DELETE", "UPDATE")) and not peer.startswith("over"))
            if (one[0] != two[0]) if only_first else (one != two):
                different.setdefault(sql.split()[0] + (" error" if failed else ""), (sql, str(one)[:300], str(two)[:300]))
            if failed and inside:
                # A statement of several shards is not undone by itself (docs/cluster.md); a transaction is.
                front.query("ROLLBACK")
                inside = False
        front.query("COMMIT")
        for sql, one, two in different.values():
            checks.check(False, sql[:300], f"{one} instead of {two}")
        for name in ("t", "u"):
            rows = [front.query(f"SELECT * FROM {table} ORDER BY id").rows for table in (name, f"{name}_one")]
            checks.check(rows[0] == rows[1], f"{name}: the same {len(rows[0])} rows as in a table {peer} after {count} random statements",
                         sorted(set(rows[0]) ^ set(rows[1]), key=str)[:6])
    _drop(cluster)
