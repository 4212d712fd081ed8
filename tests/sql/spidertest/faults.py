"""Shards that are down, refuse, or differ."""

import os
import re
import shutil
import time

from damage.full_disk import MemoryDisk
from sqlkit.client import SqlError
from sqlkit.member import PASSWORD

_ROOM, _BALLAST, _ROWS = 16 << 20, 64 << 20, 120


def _error(session, sql):
    try:
        session.query(sql)
        return None
    except SqlError as error:
        return error


def bad_input(cluster, checks):
    """Each fault gives an error that names it, and no shard keeps a part."""
    cluster.create("d", "f", "CREATE TABLE f (id INT PRIMARY KEY, v VARCHAR(2000))", "KEY (id)")
    rows = ", ".join(f"({number}, 'x')" for number in range(12))
    with cluster.front.connect("d") as front:
        front.query(f"INSERT INTO f VALUES {rows}")
    _down(cluster, checks)
    _credentials(cluster, checks)
    _definition(cluster, checks)


def _values(cluster):
    with cluster.front.connect("d") as front:
        return {row[0] for row in front.query("SELECT DISTINCT v FROM f").rows}


def _down(cluster, checks):
    shard = cluster.shards[1]
    with cluster.front.connect("d") as front:
        shard.primary.kill()
        begin = time.monotonic()
        error = _error(front, "UPDATE f SET v = 'down'")
        checks.check(error is not None and time.monotonic() - begin < 120, f"a shard is down: {error}")
        shard.primary.start()
        error = _error(front, "UPDATE f SET v = 'down'")
    checks.check(error is None and _values(cluster) == {b"down"}, "it is back: the same session goes on", error or _values(cluster))


def _fresh_tables(front, table):
    """No session may go on with what it knew of the servers."""
    front.query(f"RENAME TABLE {table} TO {table}__, {table}__ TO {table}")


def _credentials(cluster, checks):
    name = cluster.shards[2].name
    with cluster.front.connect("d") as front:
        front.query(f"ALTER SERVER {name} OPTIONS (PASSWORD 'wrong')")
        _fresh_tables(front, "f")
        cluster.shards[2].primary.run("SET GLOBAL max_connect_errors = 100000")
    with cluster.front.connect("d") as front:
        error = _error(front, "UPDATE f SET v = 'denied'")
        checks.check(error is not None, f"wrong credentials for one shard: {error}")
        front.query(f"ALTER SERVER {name} OPTIONS (PASSWORD '{PASSWORD}')")
        _fresh_tables(front, "f")
    checks.check(_values(cluster) == {b"down"}, "no other shard was changed", _values(cluster))


def _definition(cluster, checks):
    shard = cluster.shards[0].primary
    shard.run("ALTER TABLE d.f DROP COLUMN v")
    with cluster.front.connect("d") as front:
        error = _error(front, "UPDATE f SET v = 'other'")
        checks.check(error is not None and error.number == 1054, f"a column is missing on one shard: {error}")
    shard.run("ALTER TABLE d.f ADD COLUMN v VARCHAR(2000) DEFAULT 'down'", "UPDATE d.f SET v = 'down'")
    checks.check(_values(cluster) == {b"down"}, "no other shard was changed", _values(cluster))
    shard.run("ALTER TABLE d.f MODIFY v VARCHAR(4)")
    with cluster.front.connect("d") as front:
        front.query("SET sql_mode = 'STRICT_ALL_TABLES'")
        error = _error(front, "UPDATE f SET v = 'too long'")
        checks.check(error is not None, f"a column is shorter on one shard: {error}")
    shard.run("ALTER TABLE d.f MODIFY v VARCHAR(2000)", "UPDATE d.f SET v = 'down'")
    checks.check(_values(cluster) == {b"down"}, "no other shard was changed", _values(cluster))


def full_disk(cluster, checks):
    """The disk of one shard is full: the statement fails as a whole, and goes on when there is room."""
    shard = cluster.shards[1].primary
    cluster.create("d", "filler", "CREATE TABLE filler (id INT PRIMARY KEY, v VARCHAR(4000)) DEFAULT CHARSET latin1", "KEY (id)")
    shard.server.stop()
    if os.geteuid() != 0 or not shutil.which("mount"):
        checks.check(False, "a full disk needs root, for a file system in memory")
        return
    with MemoryDisk(shard.server) as disk:
        shard.server.start()
        disk.put_ballast("first", _BALLAST)
        disk.limit(_ROOM)
        acknowledged, error = 0, None
        with cluster.front.connect("d", timeout=150) as front:
            while error is None and acknowledged < 1_000_000:
                error = _error(front, _filling(acknowledged))
                acknowledged += 0 if error else _ROWS
            there = front.number("SELECT COUNT(*) FROM filler")
            checks.check(re.search(r"full|space|room|Got error", str(error)) is not None,
                         f"the disk of one shard is full after {acknowledged} rows: {error}")
            checks.check(there == acknowledged, f"exactly the {acknowledged} acknowledged rows are on the shards", there)
            disk.drop_ballast("first")
            deadline = time.monotonic() + 300
            while (error := _error(front, _filling(acknowledged))) is not None and time.monotonic() < deadline:
                time.sleep(0.5)
            checks.check(error is None and front.number("SELECT COUNT(*) FROM filler") == acknowledged + _ROWS,
                         "with room again it goes on", error)
        shard.server.stop()
    shard.server.start()


def _filling(begin):
    return "INSERT INTO filler VALUES " + ", ".join(f"({begin + number}, '{os.urandom(2000).hex()}')" for number in range(_ROWS))
