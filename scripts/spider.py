#!/usr/bin/env python3
"""What a Spider front needs after a failure: transactions in doubt ended, and to be told where a shard is now.

    spider.py --servers FILE list
    spider.py --servers FILE resolve [--seconds 5] [--without-front commit|rollback]
    spider.py --servers FILE repoint SHARD [--host HOST --port PORT]

FILE is a MariaDB option file: [client-front] is the front (or several: [client-front-2], ...), every other section
[client-NAME] the primary of a shard; see docs/cluster.md.

`list` and `resolve`: a transaction is in doubt when some shard has prepared it and nobody ends it any more. Fronts write
their decision into mysql.spider_xa before they carry it out, so a transaction of theirs (spider_internal_xa=1) is ended
as follows:

  COMMIT, PREPARED    all shards have prepared it, some may have committed: it is committed on the others
  NOT YET, ROLLBACK   not all have prepared it: it is rolled back
  no row              the front gave it up, or it is of a front that is gone: rolled back if all fronts of the file answer

A transaction that ends by itself within the time given by --seconds is not in doubt. When the front has not decided yet
and its connection still works on it, that connection is killed first. Transactions that programs prepared with XA PREPARE are
listed and left alone; whoever prepared them decides.

`repoint`: ALTER SERVER on every front, by default to the host and the port of the section [client-SHARD]. That alone
does not do: Spider goes on with what it has read as long as any session has the table open, also after FLUSH TABLES. So
each Spider table is renamed to another name and back in one statement, which waits until nobody uses it.
Exit status: 0 nothing is left in doubt, 1 something is, or a server did not answer, 2 wrong usage.
"""

import argparse
import dataclasses
import pathlib
import re
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from sqlkit.hosts import HostDown, HostError, Hosts, quoted
from sqlkit.report import Table

_KILL_SECONDS = 30
_RENAME_SECONDS = 120
_NO_SUCH_TRANSACTION, _LOCK_WAIT_TIMEOUT = 1397, 1205
_COMMITTED = {"COMMIT", "PREPARED"}
# Spider's own: format 1, the connection's number and 16 digits of the statement's, the front's server_id.
_OWN = re.compile(r"^([0-9a-f]+)([0-9a-f]{16})$")
_PART = re.compile(r"[Xx]'([0-9A-Fa-f]*)'|'([^']*)'")


@dataclasses.dataclass(frozen=True)
class Xid:
    """The name of a distributed transaction."""
    format: int
    gtrid: bytes
    bqual: bytes

    def __str__(self):
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format}"

    def thread(self):
        """The front's connection, None when it is no transaction of Spider's own."""
        match = _OWN.match(self.gtrid.decode("latin1")) if self.format == 1 else None
        return int(match[1], 16) if match else None


class Doubts:
    """What the shards have prepared, and what the fronts say of it."""

    def __init__(self, file):
        hosts = Hosts(file).all
        self.fronts = {name: host for name, host in hosts.items() if name == "front" or name.startswith("front-")}
        self.shards = {name: host for name, host in hosts.items() if name not in self.fronts}
        self.silent = []

    def _ask(self, hosts, sql):
        """The rows of every host that answers."""
        for name, host in hosts.items():
            try:
                for row in host.query(sql):
                    yield host, row
            except (HostDown, HostError) as error:
                if str(error) not in self.silent:
                    self.silent.append(str(error))
                if name in self.fronts:
                    self.fronts = {other: kept for other, kept in self.fronts.items() if other != name}

    def prepared(self):
        """Xid -> the shards that have it prepared."""
        found = {}
        for host, row in self._ask(self.shards, "XA RECOVER FORMAT='SQL'"):
            # 'ab','c' or, where it is not printable, X'6162',X'63'.
            parts = [bytes.fromhex(number) if number else text.encode() for number, text in _PART.findall(row["data"])]
            parts += [b""] * (2 - len(parts))
            found.setdefault(Xid(int(row["formatID"]), *parts[:2]), []).append(host)
        return found

    def decisions(self):
        """Xid -> what a front has written of it."""
        found = {}
        for _, row in self._ask(self.fronts, "SELECT format_id, gtrid_length, bqual_length, HEX(data) AS data, status "
                                             "FROM mysql.spider_xa"):
            data, length = bytes.fromhex(row["data"]), int(row["gtrid_length"])
            xid = Xid(int(row["format_id"]), data[:length], data[length:length + int(row["bqual_length"])])
            found[xid] = row["status"]
        return found

    def end_connection(self, xid):
        """Make sure that no front works on a transaction any more. A connection that waits for its client does not."""
        for front in self.fronts.values():
            # Other fronts may have a connection of this number; theirs is not it.
            if f"{int(front.value('SELECT @@server_id')):x}".encode() != xid.bqual:
                continue
            alive = f"SELECT COUNT(*) FROM information_schema.processlist WHERE id = {xid.thread()} AND command <> 'Sleep'"
            deadline = time.monotonic() + _KILL_SECONDS
            while front.value(alive) != "0":
                try:
                    front.query(f"KILL {xid.thread()}")
                except HostError:
                    pass  # it ended in between
                if time.monotonic() > deadline:
                    raise HostDown(f"{front}: connection {xid.thread()} does not end")
                time.sleep(0.1)

    def forget(self, xids):
        """Take ended transactions out of the fronts' tables."""
        for front in self.fronts.values():
            for xid in xids:
                where = (f"data = CAST(X'{(xid.gtrid + xid.bqual).hex()}' AS BINARY(128)) "
                         f"AND format_id = {xid.format} AND gtrid_length = {len(xid.gtrid)}")
                front.query(f"DELETE FROM mysql.spider_xa_member WHERE {where}")
                front.query(f"DELETE FROM mysql.spider_xa WHERE {where}")


def repoint(doubts, shard, host, port):
    """Let the fronts find a shard at another address, and every table use it."""
    for front in doubts.fronts.values():
        front.query(f"ALTER SERVER {shard} OPTIONS (HOST {quoted(host)}, PORT {port})")
        tables = front.query("SELECT table_schema AS d, table_name AS t FROM information_schema.tables WHERE engine = 'SPIDER'")
        for row in tables:
            name, away = f"`{row['d']}`.`{row['t']}`", f"`{row['d']}`.`{row['t'][:50]}__repointed`"
            _rename(front, f"RENAME TABLE {name} TO {away}, {away} TO {name}")
        print(f"{front}: {shard} is at {host}:{port}; {len(tables)} tables use it")


def _rename(front, sql):
    """Short waits, because whoever comes after it waits too."""
    deadline = time.monotonic() + _RENAME_SECONDS
    while True:
        try:
            front.query(f"SET lock_wait_timeout = 3; {sql}")
            return
        except HostError as error:
            if error.number != _LOCK_WAIT_TIMEOUT or time.monotonic() > deadline:
                raise


def _show(prepared, decisions):
    table = Table("transaction", "prepared on", "the front says")
    for xid in sorted(set(prepared) | set(decisions), key=str):
        table.add(str(xid), ", ".join(host.name for host in prepared.get(xid, [])) or "-", decisions.get(xid, "nothing"))
    table.print("")


def _lasting(doubts, seconds):
    """What is prepared now and still is after so many seconds, and rows of the fronts that stay."""
    prepared, decisions = doubts.prepared(), doubts.decisions()
    if not prepared and not decisions:
        return {}, {}
    time.sleep(seconds)
    later, later_decisions = doubts.prepared(), doubts.decisions()
    return ({xid: hosts for xid, hosts in later.items() if xid in prepared},
            {xid: status for xid, status in later_decisions.items() if xid in decisions or xid in prepared})


def resolve(doubts, seconds, without_front):
    """End what is in doubt. Whether nothing is left."""
    prepared, decisions = _lasting(doubts, seconds)
    ended, left = [], []
    for xid, hosts in prepared.items():
        if xid.thread() is None:
            left.append(f"{xid} on {', '.join(host.name for host in hosts)}: prepared by a program; whoever prepared it decides")
            continue
        status = doubts.decisions().get(xid)
        if status not in _COMMITTED:
            # It could still go on to commit what is rolled back here. A commit may be done twice.
            doubts.end_connection(xid)
            status = doubts.decisions().get(xid)
        if status is None and doubts.silent and without_front is None:
            left.append(f"{xid}: no front that answers knows it; give --without-front when the front is lost for good")
            continue
        commits = status in _COMMITTED if status else without_front == "commit"
        for host in hosts:
            try:
                host.query(f"XA {'COMMIT' if commits else 'ROLLBACK'} {xid}")
            except HostError as error:
                if error.number != _NO_SUCH_TRANSACTION:
                    raise
        print(f"{xid}: {'committed' if commits else 'rolled back'} on {', '.join(host.name for host in hosts)} "
              f"(the front says {status or 'nothing'})")
        ended.append(xid)
    # A row may stay of a transaction that no shard has any more; a shard that does not answer may have it.
    still = doubts.prepared()
    if not doubts.silent:
        rows = [xid for xid in decisions if xid not in still and xid.thread() is not None]
        for xid in rows:
            doubts.end_connection(xid)
        doubts.forget(rows)
    for text in left + doubts.silent:
        print(f"LEFT: {text}", file=sys.stderr)
    if not left and not doubts.silent:
        print(f"{len(ended)} transactions were in doubt; none is now")
    return not left and not doubts.silent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", required=True, metavar="FILE")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    ending = commands.add_parser("resolve")
    ending.add_argument("--seconds", type=float, default=5)
    ending.add_argument("--without-front", choices=["commit", "rollback"])
    pointing = commands.add_parser("repoint")
    pointing.add_argument("shard")
    pointing.add_argument("--host")
    pointing.add_argument("--port", type=int)
    arguments = parser.parse_args()
    try:
        doubts = Doubts(arguments.servers)
        if not doubts.fronts or not doubts.shards:
            parser.error("the file names no front, or no shard")
        if arguments.command == "repoint":
            if arguments.shard not in doubts.shards:
                parser.error(f"the file names no shard {arguments.shard}")
            shard = doubts.shards[arguments.shard]
            repoint(doubts, arguments.shard, arguments.host or shard.address, arguments.port or shard.port)
            return 0
        if arguments.command == "list":
            prepared, decisions = doubts.prepared(), doubts.decisions()
            _show(prepared, decisions)
            for text in doubts.silent:
                print(f"no answer: {text}", file=sys.stderr)
            return 1 if prepared or doubts.silent else 0
        return 0 if resolve(doubts, arguments.seconds, arguments.without_front) else 1
    except (HostDown, HostError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
