"""Two fronts and three shards. `money` has a partition on the first and two on the second; the third has none: there is room to
move to."""

import os
import pathlib
import subprocess
import sys

from sqlkit import spider
from sqlkit.client import SqlError

from . import load

ROOT = pathlib.Path(__file__).resolve().parents[3]
_HOOKED = ROOT / "tests/sql/moves/hooked.py"
_PARTS = {"money": [("m0", "shard1", "money"), ("m1", "shard2", "money"), ("m2", "shard2", "money_2")],
          "journal": [("j0", "shard1", "journal"), ("j1", "shard2", "journal")]}
_DEFINITIONS = {"money": load.MONEY_TABLE, "journal": load.JOURNAL_TABLE}
BESIDE = ("__incoming", "__moved", "__next", "__before", "__probe")


class Scene:
    """`with Scene(...) as scene`: the cluster and its load."""

    def __init__(self, arguments):
        self.cluster = spider.Cluster(3, 0, arguments.engine, keep=arguments.keep, binary_log=True, fronts=2,
                                      shard_options=["--binlog-format=ROW", "--innodb-lock-wait-timeout=5"])
        self.load = load.Load(self.cluster.fronts, arguments.writers, arguments.accounts, arguments.seed)

    def __enter__(self):
        self.cluster.__enter__()
        self.cluster.connect_shards("d")
        self.shards = {shard.name: shard.primary for shard in self.cluster.shards}
        for table, parts in _PARTS.items():
            definition = _DEFINITIONS[table]
            for _, server, name in parts:
                self.shards[server].run("USE d", definition.replace(f"TABLE {table} ", f"TABLE {name} ") + f" ENGINE={self.cluster.engine}")
            partitions = ", ".join(f"PARTITION {part} COMMENT 'srv \"{server}\", table \"{name}\"'" for part, server, name in parts)
            self.fronts_query(definition.replace(", KEY v (v)", "") + f" ENGINE=SPIDER COMMENT='wrapper \"mysql\"' PARTITION BY KEY (id) ({partitions})")
        self.load.open_accounts()
        self.file = self.cluster.file()
        return self

    def __exit__(self, *what):
        self.load.stop()
        return self.cluster.__exit__(*what)

    def fronts_query(self, sql):
        """The same on each front."""
        for front in self.cluster.fronts:
            with front.connect("d") as session:
                session.query(sql)

    def server_of(self, party):
        """The server of a party: front, or a shard's name."""
        return self.cluster.front if party == "front" else self.shards[party].server

    def file_of_mover(self):
        """The option file with an account that has no more rights than docs/cluster.md says."""
        for member in self.shards.values():
            member.run("CREATE USER mover", "GRANT RELOAD, REPLICATION SLAVE, BINLOG MONITOR, BINLOG REPLAY ON *.* TO mover",
                       "GRANT ALL ON d.* TO mover", "GRANT ALL ON pando_move.* TO mover")
        self.fronts_query("CREATE USER mover")
        for right in ("ALL ON d.*", "SELECT ON mysql.servers", "SELECT, DELETE ON mysql.spider_tables"):
            self.fronts_query(f"GRANT {right} TO mover")
        file = self.cluster.dir / "mover.cnf"
        file.write_text(self.file.read_text().replace("user = root", "user = mover"))
        return file

    # --- the tools ------------------------------------------------------------------------

    def begin_move(self, source, target, *more, part="m1", table="money", step="-", command="", file=None, path=None):
        """The script at work."""
        partition = ["--partition", part] if part is not None else []
        return subprocess.Popen([sys.executable, _HOOKED, step, command, "--servers", file or self.file, "--from", source, "--to", target,
                                 *partition, f"d.{table}", *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=os.environ | ({"PATH": f"{path}:{os.environ['PATH']}"} if path else {}))

    def move(self, *arguments, **more):
        """Exit status and output of the script."""
        process = self.begin_move(*arguments, **more)
        text = process.communicate()[0]
        return process.returncode, text

    def resolve(self):
        """What the crash left in doubt is ended. What was said when it is not."""
        done = subprocess.run([ROOT / "scripts/spider.py", "--servers", self.file, "resolve", "--seconds", "0.3"],
                              capture_output=True, text=True, check=False)
        return [] if done.returncode == 0 else [done.stdout + done.stderr]

    def revive(self):
        """Starts what is dead."""
        for server in self.cluster.fronts + [member.server for member in self.shards.values()]:
            if not server.is_running():
                # What is left of a killed one is taken away.
                server.kill()
                server.start()

    # --- what is there ----------------------------------------------------------------------

    def owners(self, table="money"):
        """The shards that have a table under its name, of those that a move can be between."""
        found = []
        for name in ("shard2", "shard3"):
            if table in self._tables(self.shards[name]):
                found.append(name)
        return found

    @staticmethod
    def _tables(server):
        with server.connect("d") as session:
            return [row[0].decode() for row in session.query("SHOW TABLES").rows]

    def left_over(self):
        """Tables beside the table, and moves remembered."""
        found = [f"{name}: {table}" for name, server in [*(("a front", front) for front in self.cluster.fronts), *self.shards.items()]
                 for table in self._tables(server) if table.endswith(BESIDE)]
        for name, member in self.shards.items():
            try:
                number = member.value("SELECT (SELECT COUNT(*) FROM pando_move.moves) + (SELECT COUNT(*) FROM pando_move.prepared)")
                found += [f"{name} remembers a move"] if number != "0" else []
            except SqlError:
                pass  # no move has gone there
        return found
