"""A server of a replicating set: its options, and the statements that make it primary or replica.

The statements are those of docs/high-availability.md; `--show` prints each as it runs, with what was done
to the servers from outside, so that the document can be checked against a run.
"""

import re
import time

from . import engines
from .server import PrivateServer, free_port

USER, PASSWORD = "repl", "secret"
_CATCH_UP_SECONDS = 600
_RELAY_LOG_IS_GONE = "listed in the index, but failed to stat"
show = False


class NotReplicating(Exception):
    """Replication stopped or did not catch up; the text says why."""


def _reached(server_id, address, port):
    return ["--skip-networking=0", f"--bind-address={address}", f"--port={port}", "--skip-name-resolve",
            f"--server-id={server_id}"]


def _replicating(engine):
    return ["--log-bin=binlog", "--log-slave-updates=ON", "--sync-binlog=1",
            "--gtid-strict-mode=ON", "--slave-parallel-threads=4", "--slave-parallel-mode=optimistic",
            "--relay-log-recovery=ON", "--slave-net-timeout=10", "--replicate-annotate-row-events=OFF",
            f"--gtid-pos-auto-engines={engine}"]


def _is_idle(status):
    """Whether neither thread of replication runs."""
    return status.get("Slave_IO_Running") == "No" and status.get("Slave_SQL_Running") == "No"


class Member:
    """One server. `with Member(...)`: runs until the block ends, whatever happens."""

    def __init__(self, name, server_id, engine, extra=(), keep=False, start=True, address="127.0.0.1", cache_mb=64,
                 alone=False):
        """With `alone` it has no binary log and nobody can follow it."""
        self.name, self.address, self.port = name, address, free_port(address)
        self._engine, self._id = engine, server_id
        self._is_behind_torn_event = False
        self._log_before = 0
        options = engines.options(engine, cache_mb) + _reached(server_id, address, self.port)
        options += ([] if alone else _replicating(engine)) + list(extra)
        self.server = PrivateServer(f"repl-{name}", options, plugin=engines.needs_plugin([engine]), keep=keep, start=start)

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *what):
        self.server.__exit__(*what)

    # --- from outside ---------------------------------------------------------------------

    def say(self, text):
        if show:
            print(f"{self.name}> {text}", flush=True)

    def kill(self):
        self.say("# kill -9")
        self.server.kill()

    def start(self, *more):
        """Start it again, with further options for this once."""
        self.say("# starts" + "".join(f" {option}" for option in more))
        self._log_before = self.server.log_size()
        kept = self.server.options
        self.server.start(kept + list(more))
        self.server.options = kept

    def connect(self, database=None):
        return self.server.connect(database)

    # --- statements -----------------------------------------------------------------------

    def run(self, *statements):
        """Run statements, each in the same new session; the result of the last."""
        result = None
        with self.connect() as session:
            for sql in statements:
                self.say(f"{sql};")
                result = session.query(sql)
        return result

    def value(self, sql):
        with self.connect() as session:
            return session.value(sql)

    def allow_replicas(self):
        self.run(f"CREATE USER {USER}@'127.%' IDENTIFIED BY '{PASSWORD}'",
                 f"GRANT REPLICATION SLAVE ON *.* TO {USER}@'127.%'")

    def follow(self, primary, demote=False):
        """Become a replica of another member, from the position that this one has reached; with `demote` that
        includes what it wrote itself as a primary."""
        more = ", MASTER_DEMOTE_TO_SLAVE=1" if demote else ""
        self.run(f"CHANGE MASTER TO MASTER_HOST='{primary.address}', MASTER_PORT={primary.port}, "
                 f"MASTER_USER='{USER}', MASTER_PASSWORD='{PASSWORD}', MASTER_CONNECT_RETRY=1, "
                 f"MASTER_USE_GTID=slave_pos{more}",
                 "SET GLOBAL read_only=1", "START SLAVE")

    def keep_position_with_rows(self):
        """Before it follows: make the table of its position that the server would make once the first transaction
        has come. Without a binary log of its own no other engine may have a part in any transaction."""
        table = f"mysql.gtid_slave_pos_{self._engine}"
        self.run("SET sql_log_bin=0", f"CREATE TABLE {table} LIKE mysql.gtid_slave_pos",
                 f"ALTER TABLE {table} ENGINE={self._engine}", "SET sql_log_bin=1")

    def promote(self):
        """Apply what has been received, then take writes."""
        self.wait_applied_relay_log()
        self.run("STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only=0")

    def slave_status(self):
        with self.connect() as session:
            result = session.query("SHOW SLAVE STATUS")
        if not result.rows:
            return {}
        return {name: (cell or b"").decode("utf-8", "replace")
                for name, cell in zip(result.columns, result.rows[0])}

    def must_replicate(self):
        """What SHOW SLAVE STATUS says; an error of replication is raised."""
        status = self.slave_status()
        for what in ("Last_SQL_Error", "Last_IO_Error"):
            # Losing the primary is no trouble: the thread tries again.
            lost = what == "Last_IO_Error" and status.get("Last_IO_Errno") in ("2002", "2003", "2013", "2026", "1130")
            if status.get(what) and not lost:
                raise NotReplicating(f"{self.name}: {what}: {status[what]}")
        return status

    def goes_on_following(self):
        """After the start of a replica that was killed: makes sure that it replicates. Killed between deleting relay logs and saying so in
        their index, the server leaves replication alone at the next start (docs/high-availability.md): it is told to forget them."""
        if not _is_idle(self.slave_status()):
            return
        why = self._errors_since_start()
        if not any(_RELAY_LOG_IS_GONE in line for line in why):
            raise NotReplicating(f"{self.name}: its threads of replication do not run: {why or 'the error log does not say why'}")
        print(f"  {self.name}: killed while the server deleted relay logs, starts without them", flush=True)
        self.run("RESET SLAVE", "START SLAVE")

    def _errors_since_start(self):
        return [line for line in self.server.log_text(self._log_before).splitlines() if "[ERROR]" in line]

    def passes_torn_event(self):
        """Whether it has stopped at the middle of an event, and goes on behind it. That is the server's own: what a full disk and kill -9
        leave of a transaction in a binary log stays there, the primary has rolled the transaction back and writes to the next file, and its
        replicas stop with error 1236 (docs/high-availability.md)."""
        status = self.slave_status()
        torn = re.search(r"truncated in the middle of event.*the first event '([^']*\.)(\d+)'", status.get("Last_IO_Error", ""))
        if not torn:
            return False
        # What it has is to be applied first: the relay log goes.
        self.value(f"SELECT MASTER_GTID_WAIT('{status['Gtid_IO_Pos']}', {_CATCH_UP_SECONDS})")
        following = f"{torn[1]}{int(torn[2]) + 1:0{len(torn[2])}}"
        self.run("STOP SLAVE", f"CHANGE MASTER TO MASTER_USE_GTID=no, MASTER_LOG_FILE='{following}', MASTER_LOG_POS=4", "START SLAVE")
        self._is_behind_torn_event = True
        return True

    def returns_to_gtids(self):
        """Once it has transactions of the next file."""
        if self._is_behind_torn_event:
            self._is_behind_torn_event = False
            self.run("STOP SLAVE", "CHANGE MASTER TO MASTER_USE_GTID=slave_pos", "START SLAVE")

    def wait_for(self, gtid, seconds=_CATCH_UP_SECONDS):
        """Until everything up to this position is applied."""
        deadline = time.monotonic() + seconds
        while True:
            with self.connect() as session:
                # Short waits, so that an error is seen when it happens.
                if session.number(f"SELECT MASTER_GTID_WAIT('{gtid}', 1)") == 0:
                    return
            if _is_idle(self.must_replicate()):
                raise NotReplicating(f"{self.name}: its threads of replication do not run, at {self.applied()}, wanted {gtid}: "
                                     f"{self._errors_since_start()}")
            if time.monotonic() > deadline:
                raise NotReplicating(f"{self.name}: at {self.applied()} it did not come to {gtid} in time: "
                                     f"{self.slave_status()}\n{self.doings()}")

    def doings(self):
        """What its threads are at, which transactions and which waits for locks there are: what tells slow from stuck."""
        tables = ["processlist"] + ["pando_trx", "pando_lock_waits"] * (self._engine.upper() == "PANDO")
        lines = []
        for table in tables:
            lines.append(f"{table}:")
            for row in self.run(f"SELECT * FROM information_schema.{table}").rows:
                lines.append("  " + " | ".join((cell or b"NULL").decode("utf-8", "replace") for cell in row))
        return "\n".join(lines)

    def wait_applied_relay_log(self):
        """Until everything that was received is applied; for when the primary is gone."""
        received = self.value("SELECT @@gtid_slave_pos")
        deadline = time.monotonic() + _CATCH_UP_SECONDS
        while time.monotonic() < deadline:
            status = self.must_replicate()
            received = status["Gtid_IO_Pos"]
            if not received or self.value(f"SELECT MASTER_GTID_WAIT('{received}', 5)") == "0":
                return
        raise NotReplicating(f"{self.name}: did not apply what it received, up to {received}")

    def written(self):
        """The position after the last transaction in this server's binary log."""
        return self.value("SELECT @@gtid_binlog_pos")

    def applied(self):
        return self.value("SELECT @@gtid_slave_pos")
