"""Rounds of backup, restore and comparison."""

import json
import shutil
import socket
import time

from sqlkit import engines, patience
from sqlkit.server import PrivateServer

from . import load, tool


def options():
    return engines.options("PANDO", 16) + engines.options("InnoDB", 16) + [
        "--log-bin=binlog", "--binlog-format=ROW", "--server-id=1", "--sync-binlog=0", "--pando-checkpoint-period=1",
        "--pando-log-file-size=4M"]


def manifest_of(target):
    return json.loads((target / "pando-backup.json").read_text())


def restored(target, *more):
    """A server on a restored backup."""
    server = PrivateServer("restored", options())
    tool.must(tool.restore_command(target, server.data_dir, *more))
    return server


def compare(name, expected, found):
    if expected != found:
        different = {table for table in expected.keys() | found.keys() if expected.get(table) != found.get(table)}
        raise AssertionError(f"{name}: other tables: {sorted(different)}")


def _check_round(parts, source, number):
    """The last of a backup and its increments."""
    binlog = manifest_of(parts[-1])["binlog"]
    position = (binlog["file"], binlog["position"])
    more = [f"--increments={target}" for target in parts[1:]]
    with restored(parts[0], *more) as server, PrivateServer("replayed", options()) as replayed:
        tool.replay(source, position, replayed.socket)
        with server.connect() as session, replayed.connect() as other:
            wrong = tool.problems(session)
            if wrong:
                raise AssertionError(f"round {number}: {wrong}")
            if session.value("SELECT COUNT(*) FROM bank.journal_p") == "0":
                raise AssertionError("nothing was written before the backup")
            compare(f"round {number}, replayed to {position}", tool.checksums(other), tool.checksums(session))
            # It is a server like any other.
            session.query("INSERT INTO bank.journal_p (tag) VALUES ('after')")


def _check_point_in_time(target, source, stop, expected):
    """The binary log from the backup's position on brings a restored server to a time."""
    binlog = manifest_of(target)["binlog"]
    with restored(target) as server:
        tool.replay(source, None, server.socket, start=(binlog["file"], binlog["position"]), stop=stop)
        with server.connect() as session:
            compare("point in time", expected, tool.checksums(session))


def _check_replica(target, primary, port):
    """A restored server follows the one that the backup is of."""
    gtid = manifest_of(target)["binlog"]["gtid"]
    with primary.connect() as session:
        for host in ("127.0.0.1", "localhost"):
            session.query(f"CREATE USER repl@'{host}' IDENTIFIED BY 'secret'")
            session.query(f"GRANT REPLICATION SLAVE ON *.* TO repl@'{host}'")
        goal, expected = session.value("SELECT @@gtid_binlog_pos"), tool.checksums(session)
    replica = restored(target)
    replica.options += ["--server-id=2"]
    with replica, replica.connect() as session:
        session.query(f"SET GLOBAL gtid_slave_pos = '{gtid}'")
        session.query(f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'repl',"
                      " MASTER_PASSWORD = 'secret', MASTER_USE_GTID = slave_pos")
        session.query("START SLAVE")
        if session.value(f"SELECT MASTER_GTID_WAIT('{goal}', 120)") != "0":
            status = session.query("SHOW SLAVE STATUS").rows
            raise AssertionError(f"the replica did not come to {goal}: {status}")
        compare("replica", expected, tool.checksums(session))
        session.query("STOP SLAVE")


def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(arguments):
    if not tool.mariadb_backup():
        return
    port = _free_port()
    network = ["--skip-networking=0", "--bind-address=127.0.0.1", f"--port={port}", "--skip-name-resolve"]
    with PrivateServer("backup", options() + network) as server:
        with server.connect() as session:
            load.create(session)
        targets = []
        for number in range(arguments.rounds):
            target = arguments.dir / f"round{number}"
            base = [f"--incremental-base={targets[-1]}"] if number % 3 == 1 else []
            with load.Load(server, arguments.writers, arguments.seed + number) as running:
                patience.pass_time(1, running.done)
                usual = running.longest()
                began = time.monotonic()
                tool.backup(server, target, *base)
                seconds, stall = time.monotonic() - began, running.longest()
                time.sleep(0.3)
            wrong = running.problems()
            if wrong:
                raise AssertionError(f"round {number}: {wrong}")
            with server.connect() as session:
                if session.value("SHOW STATUS LIKE 'Pando_backup_files_left'") is None:
                    raise AssertionError("no counter")
            print(f"round {number}: {running.done()} transfers, backup in {seconds:.1f} s, slowest transfer {stall * 1000:.0f} ms"
                  f" (before {usual * 1000:.0f} ms)", flush=True)
            status, text = tool.verify(target)
            if status:
                raise AssertionError(text)
            _check_round([*targets[-1:], target] if base else [target], server.data_dir, number)
            targets.append(target)
        with server.connect() as session:
            expected = tool.checksums(session)
            time.sleep(1.1)
            stop = session.value("SELECT NOW()")
            time.sleep(1.1)
            session.query("DELETE FROM bank.journal_p")
        _check_point_in_time(targets[0], server.data_dir, stop, expected)
        _check_replica(targets[0], server, port)
        for target in targets:
            shutil.rmtree(target)
