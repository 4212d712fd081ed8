#!/usr/bin/env python3
"""A primary and three replicas under load, the primary killed, and scripts/failover.py does the rest.

    tests/sql/failover.sh [--rounds 2] [--clients 4] [--replicas 3] [--seed N] [--engine PANDO] [--keep]

Each round: the primary dies by kill -9 under load; at times one replica is behind, because its receiving was stopped a
while before. `promote` must choose one that has every acknowledged commit, and the others follow it; clients go on there.
The old primary is started with --init-rpl-role=SLAVE, `rejoin` makes it a replica. Then all servers hold every
acknowledged transaction and no other, in part none, and the same rows; `status` finds nothing wrong.
At the end: a commit whose wait for a replica was killed is seen, an old primary with a transaction of its own is refused, a missing replica stops a promotion, `switch`
changes roles, and `watch` promotes by itself.
"""

import argparse
import contextlib
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
import failover
from replicas.load import Load, same
from sqlkit import patience, program, report, spider
from sqlkit.member import Member

_LOAD_SECONDS, _BEHIND_SHARE, _WAIT_SECONDS = (0.3, 1.5), 0.5, 0.2


class Set:
    """The servers, the load, and the tool."""

    def __init__(self, arguments, checks):
        self.checks, self.random = checks, random.Random(arguments.seed)
        self.load = Load(arguments.clients, arguments.engine, arguments.seed)
        options = [*spider.SEMI_SYNC, "--binlog-format=ROW", "--innodb-buffer-pool-size=8M"]
        if arguments.engine.upper() == "INNODB":
            options.pop()
        self.members = [Member(f"s{number}", number, arguments.engine, options, keep=arguments.keep, start=False, cache_mb=32)
                        for number in range(1, arguments.replicas + 2)]
        self.shard = None

    def begin(self, stack, directory):
        for member in self.members:
            stack.enter_context(member)
        spider.start_together([member.server for member in self.members])
        self.shard = spider.Shard("set", self.members, directory)
        primary = self.shard.primary
        primary.allow_replicas()
        for replica in self.shard.replicas():
            replica.follow(primary)
        self.load.create(primary)
        primary.run("SET GLOBAL rpl_semi_sync_master_enabled=ON")
        for replica in self.shard.replicas():
            replica.wait_for(primary.written())

    def tool(self, *arguments):
        """Exit status and output of the command."""
        done = subprocess.run([ROOT / "scripts/failover.py", "--servers", self.shard.file, *arguments],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def primary_now(self, output):
        name = output.split(" is the primary (")[0].split("\n")[-1]
        self.shard.primary = self.shard.members[name]
        return self.shard.primary


def _round(servers, number):
    checks, before = servers.checks, servers.load.commits()
    old = servers.shard.primary
    servers.load.start(old)
    behind = servers.random.choice(servers.shard.replicas()) if servers.random.random() < _BEHIND_SHARE else None
    if behind:
        behind.run("STOP SLAVE IO_THREAD")
    # Who is behind lacks something: more commits than may have been on their way when it stopped.
    clients, enough = servers.load.clients, servers.load.commits() + len(servers.load.clients)
    patience.pass_time(servers.random.uniform(*_LOAD_SECONDS), lambda: any(client.error for client in clients) or
                       behind is None or servers.load.commits() > enough)
    old.kill()
    problems = servers.load.join()
    status, text = servers.tool("promote", "--fence", f"{ROOT}/scripts/private-server.sh kill {old.server.dir}")
    if not checks.check(status == 0, f"round {number}: promoted", text):
        return False
    new = servers.primary_now(text)
    problems += [f"{behind.name} was behind and was chosen"] if new is behind and len(servers.members) > 2 else []
    problems += servers.load.holds(new)
    servers.load.start(new)
    old.start("--init-rpl-role=SLAVE")
    status, text = servers.tool("rejoin", old.name)
    problems += [] if status == 0 else [text]
    time.sleep(servers.random.uniform(*_LOAD_SECONDS))
    problems += servers.load.stop()
    for replica in servers.shard.replicas():
        problems += same(new, replica) + servers.load.holds(replica)
    problems += servers.load.holds(new)
    status, text = servers.tool("status")
    problems += [] if status == 0 else [text]
    return checks.check(not problems, f"round {number}: {old.name} killed, {new.name} took over"
                        f"{', ' + behind.name + ' was behind' if behind else ''}, {servers.load.commits() - before} commits "
                        f"acknowledged, {len(servers.members)} servers hold them", problems)


def _killed_wait(servers):
    """KILL QUERY of a session that waits for a replica gives OK for a commit that no replica has: status says so."""
    checks, primary, replicas = servers.checks, servers.shard.primary, servers.shard.replicas()
    for replica in replicas:
        replica.run("STOP SLAVE IO_THREAD")
    ended = []
    waiting = threading.Thread(target=lambda: ended.append(primary.run("CREATE TABLE crash.alone (a INT)")))
    waiting.start()
    find = "SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for semi-sync ACK%'"
    patience.pass_time(_WAIT_SECONDS, lambda: primary.value(find))
    primary.run(f"KILL QUERY {primary.value(find)}")
    waiting.join()
    for replica in replicas:
        replica.run("START SLAVE IO_THREAD")
        replica.wait_for(primary.written())
    status, text = servers.tool("status")
    checks.check(ended and status == 1 and "1 commits did not wait" in text, "status sees a commit whose wait was killed", text)
    primary.run("FLUSH LOCAL STATUS")
    status, text = servers.tool("status")
    checks.check(status == 0, "and nothing after FLUSH LOCAL STATUS", text)


class _Stub:
    """A host that lists these sessions and refuses the rest."""

    def __init__(self, sessions):
        self._sessions, self.asked = sessions, []

    def query(self, sql, _seconds):
        self.asked.append(sql)
        if sql == "SHOW PROCESSLIST":
            return self._sessions
        raise failover.HostDown("asked")


def _no_room(checks):
    """A replica that waits for room is not asked for what it cannot answer."""
    sleeping = {"Id": "7", "User": "root", "Time": "900", "State": "", "Info": "NULL"}
    full = sleeping | {"User": "system user", "State": "Waiting for someone to free space"}
    hanging = sleeping | {"Id": "8", "Info": "SHOW SLAVE STATUS"}
    for what, sessions, expected in (("a full disk", [sleeping, full], "full disk"), ("a session that hangs", [sleeping, hanging], "session 8"),
                                     ("a session that has just asked", [hanging | {"Time": "1"}], None)):
        host = _Stub(sessions)
        down = failover.Member(host).down
        held = len(host.asked) == 1 and expected in down if expected else len(host.asked) == 2
        checks.check(held, f"status and {what}", f"{down}; asked: {host.asked}")


def _refusals(servers):
    checks = servers.checks
    primary, replica = servers.shard.primary, servers.shard.replicas()[0]
    status, text = servers.tool("promote", "--fenced")
    checks.check(status == 1 and "takes writes" in text, f"a living primary: {text.strip()[:110]}")
    # An old primary with a history of its own.
    replica.run("STOP SLAVE", "SET GLOBAL read_only=0", "SET sql_log_bin=1", "SET SESSION gtid_domain_id=7",
                "CREATE TABLE crash.own (a INT)", "DROP TABLE crash.own")
    status, text = servers.tool("status")
    checks.check(status == 1 and "several primaries" not in text and "takes writes" in text, "status sees a replica that takes writes", text)
    replica.run("RESET SLAVE ALL", "SET GLOBAL read_only=1")
    status, text = servers.tool("rejoin", replica.name)
    checks.check(status == 1 and "does not have" in text, f"a server with transactions of its own: {text.strip()[:110]}", text)
    # It is out of the set from here on; nobody knows what it has.
    replica.kill()
    primary.kill()
    status, text = servers.tool("promote", "--fenced")
    checks.check(status == 1 and "did not answer" in text, f"a replica that does not answer: {text.strip()[:110]}", text)
    status, text = servers.tool("promote", "--fence", "false")
    checks.check(status == 1 and "fence failed" in text, "a fence that fails stops it", text)
    primary.start("--init-rpl-role=SLAVE")
    primary.run("SET GLOBAL rpl_semi_sync_master_enabled=ON")
    del servers.shard.members[replica.name]
    servers.shard = spider.Shard("set", [primary] + [member for member in servers.shard.members.values() if member is not primary],
                                 servers.shard.file.parent)


def _switch_and_watch(servers):
    checks, old = servers.checks, servers.shard.primary
    to = servers.shard.replicas()[0]
    status, text = servers.tool("switch", "--to", to.name)
    if not checks.check(status == 0, f"switch: {to.name} is the primary, {old.name} follows it", text):
        return
    servers.shard.primary = to
    result = []
    watching = threading.Thread(target=lambda: result.append(servers.tool(
        "watch", "--fence", "true", "--interval", "0.2", "--after", f"touch {servers.shard.file}.after")))
    watching.start()
    servers.load.start(to)
    time.sleep(1)
    to.kill()
    problems = servers.load.join()
    watching.join()
    status, text = result[0]
    problems += [] if status == 0 else [text]
    if not problems:
        new = servers.primary_now(text)
        problems = servers.load.holds(new)
    ran = pathlib.Path(f"{servers.shard.file}.after").exists()
    checks.check(not problems and ran, f"watch: promoted {servers.shard.primary.name} by itself and ran what comes after", problems or text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--replicas", type=int, default=3)
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--keep", action="store_true", help="keep the servers' directories after a failure")
    arguments = parser.parse_args()
    checks = report.Checks()
    report.heading(f"Failover with {arguments.replicas} replicas of {arguments.engine}, seed {arguments.seed}")
    _no_room(checks)
    servers = Set(arguments, checks)
    with tempfile.TemporaryDirectory(prefix="pando-failover.") as directory, contextlib.ExitStack() as stack:
        servers.begin(stack, directory)
        for number in range(1, arguments.rounds + 1):
            if not _round(servers, number):
                return 1
        _killed_wait(servers)
        _refusals(servers)
        if not checks.failed:
            _switch_and_watch(servers)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
