"""What happens to a primary and its replica. Each scenario makes its own servers and returns the problems it found."""

import random
import time

from replicas.load import Load, same
from sqlkit.member import Member, NotReplicating
from sqlkit.server import ServerFailed

_LOAD_SECONDS = (0.3, 2.0)
_KILL_AGAIN_SHARE, _KILL_AGAIN_SECONDS = 0.25, (0.05, 0.6)


class Scenario:
    """The servers, the load, and the choices of one run."""

    def __init__(self, arguments, name):
        self.engine, self.rounds, self.keep = arguments.engine, arguments.rounds, arguments.keep
        self.random = random.Random(f"{arguments.seed}/{name}")
        self.load = Load(arguments.clients, arguments.engine, arguments.seed)
        self.format = arguments.format or self.random.choice(["ROW", "MIXED"])

    def member(self, name, server_id, *more):
        """Small log files and frequent checkpoints, so that a kill meets every kind of work."""
        extra = [f"--binlog-format={self.format}", *more]
        if self.engine.upper() == "PANDO":
            extra += [f"--pando-checkpoint-period={self.random.choice([1, 2, 30])}",
                      f"--pando-log-file-size={self.random.choice([1, 4, 64])}M"]
        return Member(name, server_id, self.engine, extra, self.keep)

    def begin(self, primary, replica):
        primary.allow_replicas()
        replica.follow(primary)
        self.load.create(primary)

    def work(self):
        time.sleep(self.random.uniform(*_LOAD_SECONDS))

    def restart(self, member, *options):
        """Start a killed server; at times it is killed again while it recovers."""
        while self.random.random() < _KILL_AGAIN_SHARE:
            starting = member.server.begin_start()
            time.sleep(self.random.uniform(*_KILL_AGAIN_SECONDS))
            member.kill()
            starting.communicate()
            # On a busy machine it may have had no server to kill yet.
            member.kill()
        member.start(*options)


def _round(scenario, number, text, before, problems):
    print(f"  round {number}: {text}, {scenario.load.commits() - before} commits acknowledged: "
          + ("WRONG" if problems else "ok"), flush=True)
    return problems


def kill_replica(scenario):
    """The replica is killed while it applies in parallel, several times under one load. It goes on where its
    position says, and in the end it is the same as the primary."""
    # With and without a binary log of its own, which then has to agree with its tables too.
    logs = "--log-slave-updates=" + scenario.random.choice(["ON", "OFF"])
    print(f"  replica: {logs}")
    with scenario.member("primary", 1) as primary, scenario.member("replica", 2, logs) as replica:
        if logs.endswith("OFF"):
            replica.keep_position_with_rows()
        scenario.begin(primary, replica)
        for number in range(1, scenario.rounds + 1):
            before, kills = scenario.load.commits(), scenario.random.randint(1, 3)
            scenario.load.start(primary)
            for _ in range(kills):
                scenario.work()
                replica.kill()
                scenario.restart(replica)
                replica.goes_on_following()
            problems = scenario.load.stop() + same(primary, replica)
            problems += scenario.load.holds(primary) + scenario.load.holds(replica)
            if _round(scenario, number, f"replica killed {kills}x", before, problems):
                return problems
        return _goes_on_without_relay_logs(primary, replica) or _unnoticed(primary, replica)


def _goes_on_without_relay_logs(primary, replica):
    """What a kill leaves between the deletion of a relay log and that of its name in the index. It is rare; here it is made."""
    replica.kill()
    index = replica.server.data_dir / "server-relay-bin.index"
    index.write_text("./server-relay-bin.000000\n" + index.read_text(encoding="ascii"), encoding="ascii")
    replica.start()
    replica.goes_on_following()
    return same(primary, replica)


def two_engines(scenario):
    """The replica writes no binary log and keeps its position in another engine's table: each transaction is one of
    two engines, which the server does not put in order. Nobody is killed: after that nothing would decide."""
    options = ("--log-slave-updates=OFF", "--gtid-pos-auto-engines=")
    with scenario.member("primary", 1) as primary, scenario.member("replica", 2, *options) as replica:
        scenario.begin(primary, replica)
        for number in range(1, scenario.rounds + 1):
            before = scenario.load.commits()
            # What has to be in order comes at once: each round begins while the replica is behind.
            replica.run("STOP SLAVE SQL_THREAD")
            scenario.load.start(primary)
            scenario.work()
            replica.run("START SLAVE SQL_THREAD")
            problems = scenario.load.stop() + same(primary, replica)
            problems += scenario.load.holds(primary) + scenario.load.holds(replica)
            if _round(scenario, number, "position in another engine", before, problems):
                return problems
    return []


# Damage of each kind that the comparison of two servers looks for.
_DAMAGE = {
    "a lost row": "DELETE FROM crash.items ORDER BY client, id LIMIT 1",
    "a position that is wrong in its table":
        "UPDATE mysql.gtid_slave_pos_{engine} SET seq_no = seq_no + 1 ORDER BY sub_id DESC LIMIT 1",
}


def _unnoticed(primary, replica):
    """Problems: damage of the replica that the comparison does not notice."""
    problems = []
    for number, (name, sql) in enumerate(_DAMAGE.items(), 1):
        table = replica.value("SELECT MAX(table_name) FROM information_schema.tables "
                              "WHERE table_schema = 'mysql' AND table_name LIKE 'gtid_slave_pos%'")
        replica.run("SET sql_log_bin=0", sql.replace("gtid_slave_pos_{engine}", table))
        if len(same(primary, replica)) != number:
            problems.append(f"the comparison does not notice {name}")
    return problems


def kill_primary(scenario):
    """The primary is killed under load and comes back: its binary log and its tables agree, so that a replica
    that has what was in the log is the same as the primary, and no acknowledged commit is lost on either."""
    with scenario.member("primary", 1) as primary, scenario.member("replica", 2) as replica:
        scenario.begin(primary, replica)
        for number in range(1, scenario.rounds + 1):
            before = scenario.load.commits()
            scenario.load.start(primary)
            scenario.work()
            primary.kill()
            problems = scenario.load.join()
            scenario.restart(primary)
            problems += scenario.load.holds(primary) + same(primary, replica) + scenario.load.holds(replica)
            if _round(scenario, number, "primary killed", before, problems):
                return problems
    return []


# A commit is acknowledged when the replica has it; nobody sees it before. Not from the start of the server on: a
# primary without a replica would wait for one.
_SEMI_SYNC = ("--rpl-semi-sync-slave-enabled=ON", "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
              "--rpl-semi-sync-master-timeout=600000")


def fail_over(scenario):
    """With semi-synchronous replication: the primary dies under load, the replica takes its place without losing
    an acknowledged commit, the old primary comes back as its replica, without what it had not sent. The
    next round goes the other way."""
    with scenario.member("one", 1, *_SEMI_SYNC) as one, scenario.member("two", 2, *_SEMI_SYNC) as two:
        scenario.begin(one, two)
        primary, replica = one, two
        for number in range(1, scenario.rounds + 1):
            before = scenario.load.commits()
            primary.run("SET GLOBAL rpl_semi_sync_master_enabled=ON")
            _until_semi_sync(primary)
            scenario.load.start(primary)
            scenario.work()
            primary.kill()
            problems = scenario.load.join()
            replica.promote()
            problems += scenario.load.holds(replica)
            # Clients go on there, waiting for no replica while there is none.
            scenario.load.start(replica)
            # What it had written but not sent is cut off from its binary log and rolled back.
            primary.start("--init-rpl-role=SLAVE")
            primary.follow(replica, demote=True)
            scenario.work()
            problems += scenario.load.stop()
            primary, replica = replica, primary
            problems += same(primary, replica) + scenario.load.holds(primary) + scenario.load.holds(replica)
            if _round(scenario, number, f"{replica.name} killed, {primary.name} took its place", before, problems):
                return problems
    return []


def _until_semi_sync(primary):
    """Wait until the primary waits for its replica."""
    deadline = time.monotonic() + 60
    while primary.value("SELECT variable_value FROM information_schema.global_status "
                        "WHERE variable_name = 'Rpl_semi_sync_master_clients'") == "0":
        if time.monotonic() > deadline:
            raise NotReplicating(f"{primary.name}: no semi-synchronous replica")
        time.sleep(0.05)


def switch_over(scenario):
    """A planned change of roles and back, with a schema change that is made on the replica first: nobody waits
    for it, and the roles change to bring it to the other server."""
    # A statement that names no columns does not fit a table with more of them; rows do.
    scenario.format = "ROW"
    change = "ALTER TABLE crash.journal ADD COLUMN note VARCHAR(20) DEFAULT 'new', ADD KEY note (note)"
    with scenario.member("one", 1) as one, scenario.member("two", 2) as two:
        scenario.begin(one, two)
        scenario.load.start(one)
        # Not into the binary log: the other server gets it when it is its turn.
        two.run("STOP SLAVE", "SET sql_log_bin=0", change, "SET sql_log_bin=1", "START SLAVE")
        scenario.work()
        problems = scenario.load.stop()
        one.run("SET GLOBAL read_only=1")
        two.wait_for(one.written())
        two.run("STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only=0")
        one.run("SET sql_log_bin=0", change, "SET sql_log_bin=1")
        one.follow(two, demote=True)
        problems += _go_on_with_column(scenario, two, one)
        two.run("SET GLOBAL read_only=1")
        one.wait_for(two.written())
        one.run("STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only=0")
        two.follow(one, demote=True)
        problems += _go_on_with_column(scenario, one, two)
        return _round(scenario, 1, "roles changed and back with a new column", 0, problems)


def _go_on_with_column(scenario, primary, replica):
    """The load goes on, its inserts knowing nothing of the new column of the journal."""
    primary.run("INSERT INTO crash.journal (client, seq, source, target, amount, note) VALUES (99, "
                f"{primary.port}, 0, 0, 0, 'written')", "DELETE FROM crash.journal WHERE client = 99")
    problems = same(primary, replica)
    missing = replica.value("SELECT COUNT(*) FROM crash.journal WHERE note <> 'new'")
    if missing != "0":
        problems.append(f"{replica.name}: {missing} rows with a wrong note")
    return problems + scenario.load.holds(primary) + scenario.load.holds(replica)


SCENARIOS = {"kill-replica": kill_replica, "two-engines": two_engines, "kill-primary": kill_primary,
             "fail-over": fail_over, "switch-over": switch_over}
FAILURES = (NotReplicating, ServerFailed)
