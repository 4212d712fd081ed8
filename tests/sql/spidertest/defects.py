"""What Spider does wrong over tables of any engine: the same over InnoDB shards and over ours, and not what one table says.
docs/cluster.md lists them with what to do. When a new server does one right, this says so."""

import os
import threading
import time

from sqlkit import report
from sqlkit.client import ConnectionLost, SqlError

_ROWS = "INSERT INTO {t} VALUES " + ", ".join(f"({number}, {number % 5}, {number % 7}, {number}, b'{number % 2}')" for number in range(1, 61))
# Name, statements, the query whose answer counts.
DEFECTS = [
    ("an aggregate over the row of one key, with spider_direct_aggregate=1", ["SET spider_direct_aggregate = 1"],
     "SELECT SUM(n) FROM {t} WHERE id = 2", ["SET spider_direct_aggregate = 0"]),
    ("groups by the key of a partitioned Spider table, with loose index scan", ["ANALYZE TABLE {t}"],
     "SELECT a, COUNT(DISTINCT b) FROM {t} FORCE INDEX (a) GROUP BY a ORDER BY a", []),
    ("UPDATE ... ORDER BY ... LIMIT over several shards", ["UPDATE {t} SET n = -1 WHERE b = 1 ORDER BY id LIMIT 2"],
     "SELECT id FROM {t} WHERE n = -1 ORDER BY id", []),
    ("DELETE ... ORDER BY ... LIMIT over several shards", ["DELETE FROM {t} WHERE b = 2 ORDER BY id LIMIT 2"],
     "SELECT id FROM {t} WHERE b = 2 ORDER BY id", []),
    ("BIT compared with a literal", [], "SELECT COUNT(*) FROM {t} WHERE f = b'1'", []),
    ("a statement that fails in a transaction leaves its part", ["START TRANSACTION", "INSERT INTO {t} VALUES (101, 1, 1, 1, b'0'), (102, 1, 1, 1, b'0'), "
     "(103, 1, 1, 1, b'0'), (3, 1, 1, 1, b'0')"], "SELECT COUNT(*) FROM {t} WHERE id > 100", ["ROLLBACK"]),
    ("SAVEPOINT", ["START TRANSACTION", "UPDATE {t} SET n = 98 WHERE id = 50", "SAVEPOINT s", "UPDATE {t} SET n = 99 WHERE id = 50", "ROLLBACK TO SAVEPOINT s"],
     "SELECT n FROM {t} WHERE id = 50", ["ROLLBACK"]),
    ("rows affected by an UPDATE that changes nothing", ["UPDATE {t} SET n = n WHERE id > 40"], "SELECT ROW_COUNT()", []),
    ("rows affected by a DELETE in a transaction", ["START TRANSACTION", "DELETE FROM {t} WHERE id BETWEEN 30 AND 40 AND n % 2 = 0"], "SELECT ROW_COUNT()", ["ROLLBACK"]),
]


def defects(cluster, checks):
    """Each defect, over our shards and over those of InnoDB."""
    definition = "CREATE TABLE {} (id INT PRIMARY KEY, a INT, b INT, n INT NOT NULL DEFAULT 7, f BIT(1), KEY a (a, b))"
    cluster.create("d", "w", definition.format("w"), "KEY (id)")
    cluster.create("d", "w_inno", definition.format("w_inno"), "KEY (id)", engine="InnoDB")
    with cluster.front.connect("d") as front:
        front.query(definition.format("w_one") + " ENGINE=InnoDB")
        tables = ("w", "w_inno", "w_one")
        for table in tables:
            front.query(_ROWS.replace("{t}", table))
        for name, before, query, after in DEFECTS:
            ours, innodb, right = (_answer(front, table, before, query, after) for table in tables)
            checks.check(ours == innodb, f"{name}: as over InnoDB shards", f"{ours} instead of {innodb}")
            if ours == right:
                report.note(f"       this server does it right: {right}")
            else:
                report.note(f"       one table says {_short(right)}, over shards {_short(ours)}")
        # They are not alike any more.
        for table in tables:
            front.query(f"DELETE FROM {table}")


def _short(answer):
    return str(answer)[:100]


def _answer(front, table, before, query, after):
    answer = None
    for sql in before + [query] + after:
        try:
            rows = front.query(sql.replace("{t}", table)).rows
            if sql == query:
                answer = rows
        except SqlError as error:
            answer = answer or (f"error {error.number}" if sql == query else None)
    return answer


# --- RENAME and a crash ---------------------------------------------------------------------

_RENAMED = "CREATE TABLE {} (id INT PRIMARY KEY, v INT NOT NULL)"
_AGAIN_MAX, _KILL_AFTER_SECONDS = 40, 0.17


def renames(cluster, checks):
    """The front is killed while a partitioned table changes its name, until that has damaged the table; then what docs/cluster.md says."""
    cluster.create("d", "renamed", _RENAMED.format("renamed"), "KEY (id)")
    with cluster.front.connect("d") as front:
        front.query("INSERT INTO renamed VALUES (1, 1), (2, 2), (3, 3), (4, 4)")
        definition = front.query("SHOW CREATE TABLE renamed").rows[0][1]
    for number in range(1, _AGAIN_MAX + 1):
        clients = threading.Thread(target=_rename_for_ever, args=(cluster.front,))
        clients.start()
        time.sleep(_KILL_AFTER_SECONDS)
        os.kill(cluster.front.pid(), 9)
        clients.join()
        cluster.front.kill()
        cluster.front.start()
        with cluster.front.connect("d") as front:
            damage = _damage(front)
            if damage:
                report.note(f"       after {number} kills: {damage}")
                _make_anew(front, definition)
                checks.check(_damage(front) is None and front.number("SELECT SUM(v) FROM renamed") == 10,
                             "a table that was damaged in RENAME is made anew, with its rows", _damage(front))
                return
    report.note(f"       {_AGAIN_MAX} kills have not damaged it")


def _rename_for_ever(server):
    try:
        with server.connect("d") as session:
            while True:
                session.query("RENAME TABLE renamed TO away, away TO renamed")
    except (SqlError, ConnectionLost):
        pass  # it was killed


def _damage(front):
    """What is wrong with the table, None when nothing is."""
    try:
        front.query("SELECT COUNT(*) FROM renamed")
    except SqlError as error:
        return str(error)
    rows = front.number("SELECT COUNT(*) FROM mysql.spider_tables WHERE db_name = 'd' AND table_name LIKE 'renamed#P#%'")
    return None if rows == 3 else f"{rows} rows in mysql.spider_tables"


def _make_anew(front, definition):
    for table in ("renamed", "away"):
        front.query(f"DROP TABLE IF EXISTS {table}")
        front.query(f"DELETE FROM mysql.spider_tables WHERE db_name = 'd' AND table_name LIKE '{table}#P#%'")
    front.query(definition)
