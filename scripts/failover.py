#!/usr/bin/env python3
"""Failover of a primary and its replicas (GTID, semi-synchronous): who is what, a new primary, an old one back.

    failover.py --servers FILE status
    failover.py --servers FILE promote (--fence COMMAND | --fenced) [--to NAME] [--without NAME ...] [--after COMMAND]
    failover.py --servers FILE switch --to NAME [--after COMMAND]
    failover.py --servers FILE rejoin NAME
    failover.py --servers FILE watch --fence COMMAND [--after COMMAND] [--failures 3] [--interval 1]

FILE is a MariaDB option file with one section [client-NAME] a server and a section [replication] with the user and the
password by which servers follow each other; see docs/high-availability.md.

  status   a line a server, then what is wrong; exit status 1 when something is
  promote  the primary is dead: takes the replica that has the most, lets it apply all it has received, makes the others
           follow it, then lets it take writes. It first runs the fence, which must make sure that the old primary takes
           no more writes (power it off, close its port), or is told that somebody has seen to that (--fenced). It refuses
           when a replica does not answer, because a commit may have been acknowledged by that one alone
  switch   the primary lives and shall be another one: read_only, wait, change the roles, nothing is lost
  rejoin   a former primary, started with --init-rpl-role=SLAVE, becomes a replica. Refused when its binary log has
           transactions that the new primary does not have
  watch    promotes by itself when the primary does not answer and no replica is connected to it either

COMMAND is run by the shell with OLD_HOST, OLD_PORT (fence) or NEW_NAME, NEW_HOST, NEW_PORT (after) in its environment.
Exit status: 0 done, 1 something is wrong or was refused, 2 wrong usage.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from sqlkit import gtids
from sqlkit.hosts import HostDown, HostError, Hosts, quoted
from sqlkit.report import Table

_WAIT_SECONDS = 120
_LOOK_SECONDS = 0.1
_LAG_SECONDS_MAX = 60
_HANGS_SECONDS = 5
_NO_ROOM = "waiting for someone to free space"
_DISK_FULL = 1021
_STATE = ("SELECT @@server_id AS server_id, @@read_only AS read_only, @@gtid_current_pos AS position, "
          "@@gtid_binlog_state AS history, @@rpl_semi_sync_master_enabled AS semi_sync, "
          "(SELECT variable_value FROM information_schema.global_status "
          "WHERE variable_name = 'RPL_SEMI_SYNC_MASTER_STATUS') AS semi_sync_status, "
          "(SELECT variable_value FROM information_schema.global_status "
          "WHERE variable_name = 'RPL_SEMI_SYNC_MASTER_CLIENTS') AS semi_sync_clients, "
          "(SELECT variable_value FROM information_schema.global_status "
          "WHERE variable_name = 'RPL_SEMI_SYNC_MASTER_NO_TX') AS unacknowledged")


class Refused(Exception):
    """What was asked would lose something, or cannot be told not to."""


class Member:
    """What one server said of itself; `down` is the reason when it said nothing."""

    def __init__(self, host):
        self.host, self.down, self.state, self.replica = host, None, {}, {}
        try:
            self.down = _hanging(host)
            if not self.down:
                self.state = host.query(_STATE, 10)[0]
                self.replica = next(iter(host.query("SHOW SLAVE STATUS", 10)), {})
        except HostDown as error:
            self.down = str(error)
        except HostError as error:
            if error.number != _DISK_FULL:
                raise
            self.down = str(error)

    @property
    def read_only(self):
        return self.state.get("read_only") != "0"

    @property
    def position(self):
        return gtids.position(self.state.get("position"))

    def role(self):
        if self.down:
            return "down"
        if self.replica:
            return "replica"
        return "primary" if not self.read_only else "neither"


def _hanging(host):
    """Why not to ask a server for its state as a replica, None if it may be asked. When the disk is full, SHOW SLAVE STATUS
    waits until there is room and cannot be killed, so each question would leave one more session behind. The list of
    sessions is answered even then; a table of information_schema may need a temporary file."""
    for session in host.query("SHOW PROCESSLIST", 10):
        waits = session["State"].lower().startswith(_NO_ROOM)
        if waits and session["User"] == "system user":
            return f"{host}: replication waits for room on a full disk; it does not answer SHOW SLAVE STATUS until then"
        if session["Info"].upper().startswith("SHOW SLAVE STATUS") and int(session["Time"]) >= _HANGS_SECONDS:
            return f"{host}: does not answer SHOW SLAVE STATUS (a full disk?); session {session['Id']} waits for it"
    return None


class Failover:
    """The servers of one file, and what is done to them."""

    def __init__(self, file, say=print):
        self._hosts, self._say = Hosts(file), say
        account = self._hosts.section("replication")
        self._account = (f"MASTER_USER={quoted(account.get('user', 'repl'))}, "
                         f"MASTER_PASSWORD={quoted(account.get('password', ''))}")
        self._more = ", MASTER_SSL=1" if account.get("ssl", "0") not in ("0", "off") else ""

    def look(self):
        """All members, asked now."""
        return {name: Member(host) for name, host in self._hosts.all.items()}

    # --- status ---------------------------------------------------------------------------

    def status(self):
        """Prints the members; what is wrong with them."""
        members = self.look()
        table = Table("server", "role", "position", "follows", "threads", "lag", "semi-sync")
        for name, member in members.items():
            replica = member.replica
            table.add(name, member.role(), member.state.get("position") or "-",
                      f"{replica['Master_Host']}:{replica['Master_Port']}" if replica else "-",
                      f"{replica['Slave_IO_Running']}/{replica['Slave_SQL_Running']}" if replica else "-",
                      replica.get("Seconds_Behind_Master", "-"),
                      f"{member.state['semi_sync_status']}, {member.state['semi_sync_clients']} replicas"
                      if member.state.get("semi_sync") == "1" else "-")
        table.print("")
        wrong = problems(members)
        for text in wrong:
            self._say(f"WRONG: {text}")
        return wrong

    # --- a new primary --------------------------------------------------------------------

    def promote(self, to=None, fence=None, without=(), after=None):
        """Make the best replica the primary. Its name."""
        members = self.look()
        writable = [member for member in members.values() if member.role() == "primary"]
        if writable and fence is None:
            raise Refused(f"{writable[0].host} answers and takes writes: `switch` changes roles without a loss; "
                          "a fence has to stop it otherwise")
        old = writable[0] if writable else self._dead_primary(members)
        if fence:
            self._run(fence, "the fence", OLD_HOST=old.host.address if old else "", OLD_PORT=old.host.port if old else "")
        replicas = {name: member for name, member in members.items() if member.replica}
        silent = [name for name, member in members.items() if member.down and member is not old and name not in without]
        if silent:
            raise Refused(f"{', '.join(silent)} did not answer: a commit may have been acknowledged by that one alone. "
                          "Bring it back, or give --without to do without it")
        if not replicas:
            raise Refused("no replica answers")
        return self._take_over(replicas, to, after)

    def _take_over(self, replicas, to, after):
        for member in replicas.values():
            member.host.query("STOP SLAVE IO_THREAD")
        for member in replicas.values():
            self._apply_received(member.host)
        members = {name: Member(member.host) for name, member in replicas.items()}
        best = self._best(members, to)
        new = members[best].host
        self._say(f"{best} has the most: {members[best].state['position']}")
        new.query("STOP SLAVE; RESET SLAVE ALL")
        for name, member in members.items():
            if name != best:
                self._follow(member.host, new)
        if len(members) > 1:
            new.query("SET GLOBAL rpl_semi_sync_master_enabled=ON")
            self._until_semi_sync(new)
        else:
            self._say(f"{best} has no replica: commits are safe against its loss only after a rejoin")
        new.query("SET GLOBAL read_only=0")
        self._say(f"{best} is the primary ({new.address}:{new.port})")
        if after:
            self._run(after, "the command after", NEW_NAME=best, NEW_HOST=new.address, NEW_PORT=new.port)
        return best

    @staticmethod
    def _dead_primary(members):
        """The member that the replicas follow."""
        followed = {(member.replica["Master_Host"], int(member.replica["Master_Port"]))
                    for member in members.values() if member.replica}
        return next((member for member in members.values() if member.down
                     and (member.host.address, member.host.port) in followed), None)

    @staticmethod
    def _best(members, to):
        for name, member in members.items():
            if (to is None or name == to) and all(gtids.covers(member.position, other.position)
                                                  for other in members.values()):
                return name
        found = ", ".join(f"{name} has {member.state['position']}" for name, member in members.items())
        raise Refused(f"{to or 'no replica'} has all that the others have: {found}" if to is None
                      else f"{to} lacks what another has, or is no replica: {found}")

    def _apply_received(self, host):
        """Until what has been received is applied."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while time.monotonic() < deadline:
            replica = host.query("SHOW SLAVE STATUS")[0]
            received = replica["Gtid_IO_Pos"]
            if replica["Last_SQL_Errno"] != "0":
                raise Refused(f"{host} stopped applying: {replica['Last_SQL_Error']}")
            if replica["Slave_SQL_Running"] != "Yes":
                host.query("START SLAVE SQL_THREAD")
            if not received or host.value(f"SELECT MASTER_GTID_WAIT('{received}', 5)") == "0":
                return
        raise Refused(f"{host} did not apply what it has received in {_WAIT_SECONDS} s")

    def _follow(self, host, primary, demote=False):
        more = ", MASTER_DEMOTE_TO_SLAVE=1" if demote else ""
        host.query("STOP SLAVE; SET GLOBAL read_only=1; SET GLOBAL rpl_semi_sync_master_enabled=OFF; "
                   f"CHANGE MASTER TO MASTER_HOST={quoted(primary.address)}, MASTER_PORT={primary.port}, {self._account}, "
                   f"MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos{more}{self._more}; START SLAVE")
        deadline = time.monotonic() + _WAIT_SECONDS
        while time.monotonic() < deadline:
            replica = host.query("SHOW SLAVE STATUS")[0]
            errors = [replica[f"Last_{kind}_Error"] for kind in ("IO", "SQL") if replica[f"Last_{kind}_Errno"] != "0"]
            if not errors and replica["Slave_IO_Running"] == replica["Slave_SQL_Running"] == "Yes":
                self._say(f"{host} follows {primary}")
                return
            if errors and replica["Slave_IO_Running"] != "Connecting":
                raise Refused(f"{host} does not follow {primary}: {errors[0]}")
            time.sleep(_LOOK_SECONDS)
        raise Refused(f"{host} did not connect to {primary} in {_WAIT_SECONDS} s")

    @staticmethod
    def _until_semi_sync(host):
        deadline = time.monotonic() + _WAIT_SECONDS
        while Member(host).state.get("semi_sync_clients") == "0":
            if time.monotonic() > deadline:
                raise Refused(f"{host} has no semi-synchronous replica: is rpl_semi_sync_slave_enabled on there?")
            time.sleep(_LOOK_SECONDS)

    def _run(self, command, what, **environment):
        done = subprocess.run(command, shell=True, check=False,
                              env=os.environ | {name: str(value) for name, value in environment.items()})
        if done.returncode != 0:
            raise Refused(f"{what} failed (exit status {done.returncode}): {command}")
        self._say(f"{what} was run")

    # --- changes of roles -----------------------------------------------------------------

    def switch(self, to, after=None):
        """A living primary and one of its replicas change roles."""
        members = self.look()
        primaries = [member for member in members.values() if member.role() == "primary"]
        if len(primaries) != 1:
            raise Refused(f"there are {len(primaries)} primaries")
        if to not in members or not members[to].replica:
            raise Refused(f"{to} is no replica")
        old = primaries[0].host
        old.query("SET GLOBAL read_only=1")
        try:
            written = old.value("SELECT @@gtid_binlog_pos")
            if members[to].host.value(f"SELECT MASTER_GTID_WAIT('{written}', {_WAIT_SECONDS})",
                                      _WAIT_SECONDS + 10) != "0":
                raise Refused(f"{to} did not come to {written} in {_WAIT_SECONDS} s")
        except (Refused, HostDown, HostError):
            old.query("SET GLOBAL read_only=0")
            raise
        replicas = {name: member for name, member in members.items() if member.replica}
        best = self._take_over(replicas, to, after)
        self.rejoin(old.name)
        return best

    def rejoin(self, name):
        """A server that was the primary becomes a replica of the one that is."""
        members = self.look()
        if name not in members or members[name].down:
            raise Refused(f"{name} is not there: {members[name].down if name in members else 'not in the file'}")
        primaries = [other for other in members if other != name and members[other].role() == "primary"]
        if len(primaries) != 1:
            raise Refused(f"there are {len(primaries)} primaries without {name}")
        back, new = members[name], members[primaries[0]]
        extra = gtids.extra(gtids.state(back.state["history"]), gtids.state(new.state["history"]), new.position)
        if extra:
            listed = ", ".join(f"{domain}-{server}-{first}" + (f" to {domain}-{server}-{last}" if last > first else "")
                               for domain, server, first, last in extra)
            raise Refused(f"{name} has transactions that {new.host} does not have: {listed}. Nobody was told that they "
                          f"are committed if replication was semi-synchronous and no wait was killed. Start {name} with --init-rpl-role=SLAVE "
                          "after a crash, which takes them out, or replace its data by a copy of the primary's")
        self._follow(back.host, new.host, demote=True)
        new.host.query("SET GLOBAL rpl_semi_sync_master_enabled=ON")
        self._until_semi_sync(new.host)

    # --- by itself ------------------------------------------------------------------------

    def watch(self, fence, after=None, failures=3, interval=1.0):
        """Promotes when the primary is gone for its replicas too. The new primary's name."""
        failed = 0
        while True:
            members = self.look()
            replicas = [member for member in members.values() if member.replica]
            lost = (not any(member.role() == "primary" for member in members.values()) and replicas
                    and all(member.replica["Slave_IO_Running"] != "Yes" for member in replicas))
            failed = failed + 1 if lost else 0
            if failed >= failures:
                self._say(f"the primary did not answer {failed} times, and no replica is connected to it")
                return self.promote(fence=fence, after=after)
            time.sleep(interval)


def problems(members):
    """What is wrong with a set of servers."""
    wrong = [member.down for member in members.values() if member.down]
    primaries = [name for name, member in members.items() if member.role() == "primary"]
    if len(primaries) != 1:
        wrong.append("no primary" if not primaries else f"several primaries: {', '.join(primaries)}")
    for name, member in members.items():
        replica, state = member.replica, member.state
        if replica:
            wrong += [f"{name}: {kind}: {replica[f'Last_{kind}_Error']}" for kind in ("IO", "SQL")
                      if replica[f"Last_{kind}_Errno"] != "0"]
            wrong += [f"{name}: the {kind} thread does not run" for kind in ("IO", "SQL")
                      if replica[f"Slave_{kind}_Running"] != "Yes" and replica[f"Last_{kind}_Errno"] == "0"]
            lag = replica.get("Seconds_Behind_Master", "NULL")
            if lag != "NULL" and int(lag) > _LAG_SECONDS_MAX:
                wrong.append(f"{name}: {lag} s behind")
            if not member.read_only:
                wrong.append(f"{name}: a replica that takes writes (read_only=0)")
            if len(primaries) == 1:
                primary = members[primaries[0]]
                gap = gtids.extra(gtids.state(state["history"]), gtids.state(primary.state["history"]), primary.position)
                # Asked one after the other: what came in between is no gap.
                if gap and gtids.extra(gtids.state(state["history"]),
                                       gtids.state(Member(primary.host).state.get("history")), primary.position):
                    wrong.append(f"{name}: has transactions that {primaries[0]} does not have: {gap}")
        elif not member.down and member.role() == "primary":
            if state["semi_sync"] == "1" and state["semi_sync_status"] != "ON":
                wrong.append(f"{name}: semi-synchronous replication has fallen back")
            elif state["semi_sync"] != "1" and len(members) > 1:
                wrong.append(f"{name}: semi-synchronous replication is off")
            if state["semi_sync"] == "1" and state["unacknowledged"] not in ("0", "NULL"):
                wrong.append(f"{name}: {state['unacknowledged']} commits did not wait for a replica (Rpl_semi_sync_master_no_tx; "
                             "FLUSH LOCAL STATUS forgets them)")
        elif member.role() == "neither":
            wrong.append(f"{name}: neither primary nor replica")
    return wrong


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", required=True, metavar="FILE")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("status")
    promote = commands.add_parser("promote")
    promote.add_argument("--to", metavar="NAME")
    fence = promote.add_mutually_exclusive_group(required=True)
    fence.add_argument("--fence", metavar="COMMAND")
    fence.add_argument("--fenced", action="store_true")
    promote.add_argument("--without", metavar="NAME", action="append", default=[])
    promote.add_argument("--after", metavar="COMMAND")
    switch = commands.add_parser("switch")
    switch.add_argument("--to", metavar="NAME", required=True)
    switch.add_argument("--after", metavar="COMMAND")
    commands.add_parser("rejoin").add_argument("name")
    watch = commands.add_parser("watch")
    watch.add_argument("--fence", metavar="COMMAND", required=True)
    watch.add_argument("--after", metavar="COMMAND")
    watch.add_argument("--failures", type=int, default=3)
    watch.add_argument("--interval", type=float, default=1.0)
    return parser.parse_args()


def main():
    arguments = _arguments()
    try:
        failover = Failover(arguments.servers, lambda text: print(text, flush=True))
        if arguments.command == "status":
            return 1 if failover.status() else 0
        if arguments.command == "promote":
            failover.promote(arguments.to, arguments.fence, arguments.without, arguments.after)
        elif arguments.command == "switch":
            failover.switch(arguments.to, arguments.after)
        elif arguments.command == "rejoin":
            failover.rejoin(arguments.name)
        else:
            failover.watch(arguments.fence, arguments.after, arguments.failures, arguments.interval)
        return 0
    except (Refused, HostDown, HostError, OSError) as error:
        print(f"refused: {error}" if isinstance(error, Refused) else f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
