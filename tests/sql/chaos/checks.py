"""What must hold at the end of a round, when nobody writes and nothing is wrong with the weather."""

import re
import time

from chaos import schema
from sqlkit import agreement, engines, gtids
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.member import NotReplicating

_STUCK_SECONDS = 300
_SIGNAL = "got signal"
_BAD_LINE = re.compile(rf"panicked at|{_SIGNAL}|Assertion|InnoDB: Assertion|internal error: a bug|\[ERROR\] PANDO: bug", re.I)


def alone(par, names):
    """Whether a .par has neither a .frm nor partitions beside it."""
    table = par.removesuffix(".par")
    return not any(name == f"{table}.frm" or name.startswith(f"{table}#") for name in names)


def tables_hold(member, engine):
    """Problems of CHECK TABLE, of keys against their tables, and files that belong to no table."""
    problems = []
    with member.connect(schema.DATABASE) as session:
        names = [row[0].decode() for row in session.query("SHOW TABLES").rows]
        for name in names:
            said = engines.check_table(session, engine, name)
            if said:
                problems.append(f"{member.name}: CHECK TABLE {name}: {said}")
            problems += [f"{member.name}: {name}: {text}" for text in
                         agreement.compare(session, schema.DATABASE, name).differences]
    there = {path.name for path in (member.server.data_dir / schema.DATABASE).iterdir()} - {"db.opt"}
    # A server that dies while it takes over a changed definition of a partitioned table in place leaves the .par of the interim
    # name: its recovery (ddl_log.cc, DDL_ALTER_TABLE_PHASE_INPLACE) renames the .frm alone. DROP DATABASE removes it.
    there = {name for name in there if not (name.startswith("#sql-alter-") and name.endswith(".par"))}
    # Nor does it remove that of a CREATE TABLE which failed for want of a descriptor: it would have to read it first.
    there = {name for name in there if not (name.endswith(".par") and alone(name, there))}
    # What could not be removed for want of a descriptor, the next start removes; the error log says so.
    log = member.server.log_text()
    return problems + [f"{member.name}: a file of no table: {name}" for name in sorted(there)
                       if name.split(".")[0].split("#")[0] not in names
                       and not re.search(rf"cannot remove \S*/{re.escape(name)} now", log)]


def accounts_hold(session, writers):
    """Problems: accounts that do not have what the acknowledged transfers moved."""
    found = {int(number): int(balance) for number, balance in session.query("SELECT id, balance FROM accounts").rows}
    expected = {number: schema.BALANCE + sum(writer.moved[number] for writer in writers) for number in range(schema.ACCOUNTS)}
    return [f"account {number}: {found.get(number)} and not {balance}" for number, balance in expected.items()
            if found.get(number) != balance]


def replica_is_the_same(primary, replica):
    """Problems: the replica does not come to the primary's position, or its tables differ there. Returns them and how long it took."""
    begin = time.monotonic()
    try:
        until_it_has_all(primary, replica, primary.written())
    except NotReplicating as error:
        return [str(error)], time.monotonic() - begin
    seconds = time.monotonic() - begin
    with primary.connect(schema.DATABASE) as session:
        alone = set(schema.ALONE)
        names = [name for name in (row[0].decode() for row in session.query("SHOW TABLES").rows) if name not in alone]
    sums = [[member.run(f"CHECKSUM TABLE {schema.DATABASE}.{name} EXTENDED").rows[0][1] for name in names]
            for member in (primary, replica)]
    problems = [f"{name} differs on the replica" for name, one, other in zip(names, *sums) if one != other]
    return problems, seconds


def until_it_has_all(primary, replica, position):
    """Until the replica has what the primary had at this position. It may be slow: only without any progress for long it is
    given up."""
    wanted = gtids.position(position)
    seen, since = None, time.monotonic()
    while True:
        applied = replica.applied()
        if gtids.covers(gtids.position(applied), wanted):
            replica.returns_to_gtids()
            return
        try:
            status = replica.must_replicate()
        except NotReplicating:
            if not replica.passes_torn_event():
                raise
            print("    the primary's binary log ends in the middle of an event: the replica goes on with its next file", flush=True)
            continue
        # Within a large transaction the position stands, and rows are written.
        progress = (applied, status.get("Read_Master_Log_Pos"), status.get("Exec_Master_Log_Pos"), _rows_written(replica))
        if progress != seen:
            seen, since = progress, time.monotonic()
        elif time.monotonic() - since > _STUCK_SECONDS:
            doing = [row for row in replica.run("SHOW FULL PROCESSLIST").rows if row[4] != b"Sleep"]
            raise NotReplicating(f"{replica.name}: no progress in {_STUCK_SECONDS} s at {applied}, {primary.name} was at {position}: "
                                 f"{status} {doing}")
        time.sleep(0.1)


def _rows_written(member):
    with member.connect() as session:
        return session.number("SELECT SUM(variable_value) FROM information_schema.global_status WHERE variable_name IN "
                              "('Handler_write', 'Handler_update', 'Handler_delete')")


def forget_binary_logs(primary):
    """The replica has them."""
    primary.run("FLUSH BINARY LOGS")
    primary.run(f"PURGE BINARY LOGS TO '{primary.run('SHOW MASTER STATUS').rows[0][0].decode()}'")


def log_holds(member, since, deaths=0):
    """Problems: lines of the error log that no trouble explains; `deaths` of the server were explained."""
    lines = [line for line in member.server.log_text(since).splitlines() if _BAD_LINE.search(line)]
    ends = [line for line in lines if _SIGNAL in line]
    return [f"{member.name}: error log: {line}" for line in ends[deaths:] + [line for line in lines if line not in ends]]


def is_well(member):
    """Whether the server answers."""
    try:
        return member.value("SELECT 1") == "1"
    except (SqlError, ConnectionLost):
        return False
