"""A cluster on one machine: a front server with the engine Spider and shards of any engine, each with replicas.

    with Cluster(shards=3, replicas=1) as cluster:
        cluster.create("flights", "CREATE TABLE t (id INT PRIMARY KEY) ...")
        with cluster.front.connect("flights") as session: ...

Every server has a loopback address of its own (127.0.0.0/8), as hosts have: Spider tells the parts of a distributed
transaction apart by the host alone.
"""

import contextlib
import pathlib
import shutil
import tempfile
import threading

from .member import PASSWORD, USER, Member
from .server import PrivateServer, ServerFailed

_FRONT_ID = 100
FRONT_OPTIONS = [
    "--plugin-load-add=ha_spider.so", "--spider-support-xa=1", f"--server-id={_FRONT_ID}",
    # A transaction over several shards is one: prepared on all, then committed on all.
    "--spider-internal-xa=1", "--spider-internal-xa-id-type=1",
    # The default takes "no such transaction" for an answer when it prepares: a shard that was restarted in between would
    # be left out of the commit.
    "--spider-force-commit=0",
    # With the default an aggregate over the row of one key is computed from the columns' defaults.
    "--spider-direct-aggregate=0",
    # A front keeps no rows.
    "--innodb-buffer-pool-size=8M", "--aria-pagecache-buffer-size=8M", "--key-buffer-size=1M"]
_SMALL = ["--innodb-buffer-pool-size=8M", "--aria-pagecache-buffer-size=8M", "--key-buffer-size=1M"]
SEMI_SYNC = ["--rpl-semi-sync-slave-enabled=ON", "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
             "--rpl-semi-sync-master-timeout=600000"]
ACCOUNT = "spider"
# The client of 11.8 wants to know the server's certificate where the host is another than 127.0.0.1, also at a socket, and an account without a
# password proves none.
_CLIENT = "[client]\nuser = root\nssl-verify-server-cert = 0\n"


def is_installed():
    """Whether the server has the engine."""
    return any(pathlib.Path("/usr/lib").glob("**/plugin/ha_spider.so"))


class Shard:
    """Servers that hold the same part: members[name], one of them the primary, and the file for scripts/failover.py."""

    def __init__(self, name, members, directory):
        self.name, self.members = name, {member.name: member for member in members}
        self.primary = members[0]
        self.file = pathlib.Path(directory) / f"{name}.cnf"
        text = f"{_CLIENT}\n[replication]\nuser = {USER}\npassword = {PASSWORD}\n"
        for member in members:
            text += (f"\n[client-{member.name}]\nhost = {member.address}\nport = {member.port}\n"
                     f"socket = {member.server.socket}\nprotocol = socket\n")
        self.file.write_text(text)

    def replicas(self):
        return [member for member in self.members.values() if member is not self.primary]


class Cluster:
    """The front, the shards, and a directory for their files. With `replicas=0` shards write no binary log, unless `binary_log`."""

    def __init__(self, shards=3, replicas=1, engine="PANDO", cache_mb=32, front_options=(), shard_options=(), keep=False,
                 binary_log=False, fronts=1):
        self.engine, self._stack, self._keep = engine, contextlib.ExitStack(), keep
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="pando-cluster.", dir="/tmp"))
        self.fronts = [PrivateServer("front", FRONT_OPTIONS + [f"--server-id={_FRONT_ID + number}", *front_options], plugin=False,
                                     keep=keep, start=False) for number in range(fronts)]
        self.front = self.fronts[0]
        self.shards, number = [], 0
        for shard in range(1, shards + 1):
            members = []
            for place in range(replicas + 1):
                number += 1
                more = list(_SMALL) + list(shard_options) + (SEMI_SYNC if replicas else [])
                if engine.upper() == "INNODB":
                    more.remove("--innodb-buffer-pool-size=8M")
                members.append(Member(f"shard{shard}{'abcdefgh'[place]}", number, engine, more, keep=keep, start=False,
                                      address=f"127.0.{shard}.{place + 1}", cache_mb=cache_mb, alone=not replicas and not binary_log))
            self.shards.append(Shard(f"shard{shard}", members, self.dir))

    def __enter__(self):
        self._stack.callback(shutil.rmtree, self.dir, ignore_errors=True)
        try:
            servers = [self._stack.enter_context(front) for front in self.fronts]
            servers += [self._stack.enter_context(member).server
                        for shard in self.shards for member in shard.members.values()]
            start_together(servers)
            for shard in self.shards:
                self._set_up(shard)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *what):
        return self._stack.__exit__(*what)

    @staticmethod
    def _set_up(shard):
        primary = shard.primary
        if shard.replicas():
            primary.allow_replicas()
            for replica in shard.replicas():
                replica.follow(primary)
            primary.run("SET GLOBAL rpl_semi_sync_master_enabled=ON")
        primary.run(f"CREATE USER {ACCOUNT}@'127.%' IDENTIFIED BY '{PASSWORD}'",
                    f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, LOCK TABLES, "
                    f"CREATE TEMPORARY TABLES, EXECUTE ON *.* TO {ACCOUNT}@'127.%'")

    # --- tables ---------------------------------------------------------------------------

    def connect_shards(self, database):
        """Tell the fronts where the shards are; makes the database everywhere."""
        statements = [f"CREATE DATABASE {database}"]
        for shard in self.shards:
            # Spider writes numbers of FLOAT columns as calls of this function.
            shard.primary.run(f"CREATE DATABASE {database}", f"CREATE FUNCTION {database}.to_float(a DOUBLE) RETURNS FLOAT "
                              "DETERMINISTIC NO SQL RETURN a")
            statements.append(f"CREATE SERVER {shard.name} FOREIGN DATA WRAPPER mysql OPTIONS (HOST '{shard.primary.address}', "
                              f"PORT {shard.primary.port}, DATABASE '{database}', USER '{ACCOUNT}', PASSWORD '{PASSWORD}')")
        for front in self.fronts:
            with front.connect() as session:
                for sql in statements:
                    session.query(sql)

    def create(self, database, table, definition, key, front=None, engine=None):
        """Create a table on every shard and, over them, on the front. The definition is CREATE TABLE without engine,
        `key` how rows are spread, for example KEY (id), `front` the definition there, and `engine` the shards', if it is another."""
        for shard in self.shards:
            with shard.primary.connect(database) as session:
                session.query(f"{definition} ENGINE={engine or self.engine}")
        parts = ", ".join(f"PARTITION {shard.name} COMMENT 'srv \"{shard.name}\"'" for shard in self.shards)
        with self.front.connect(database) as session:
            session.query(f"{front or definition} ENGINE=SPIDER COMMENT='wrapper \"mysql\", table \"{table}\"' "
                          f"PARTITION BY {key} ({parts})")

    def file(self):
        """The option file for scripts/spider.py: the fronts and the primaries of now."""
        path = self.dir / "cluster.cnf"
        text = f"{_CLIENT}protocol = socket\n"
        for number, front in enumerate(self.fronts, 1):
            text += f"\n[client-front{'' if number == 1 else f'-{number}'}]\nsocket = {front.socket}\n"
        for shard in self.shards:
            primary = shard.primary
            text += (f"\n[client-{shard.name}]\nhost = {primary.address}\nport = {primary.port}\n"
                     f"socket = {primary.server.socket}\n")
        path.write_text(text)
        return path


def start_together(servers):
    """Start several servers at the same time. Raises ServerFailed."""
    errors = []

    def start(server):
        try:
            server.start()
        except ServerFailed as error:
            errors.append(error)
    threads = [threading.Thread(target=start, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
