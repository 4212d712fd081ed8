"""Rounds of backup, restore and comparison."""

import json
import shutil
import time

from sqlkit import engines
from sqlkit.server import PrivateServer

from . import load, tool

_STALL_SECONDS_MAX = 5.0  # of a machine that runs other tests beside


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


def _check_point_in_time(target, source, expected):
    """The rest of the binary log brings a restored server to the end."""
    binlog = manifest_of(target)["binlog"]
    with restored(target) as server:
        tool.replay(source, None, server.socket, start=(binlog["file"], binlog["position"]))
        with server.connect() as session:
            compare("point in time", expected, tool.checksums(session))


def run(arguments):
    if not tool.mariadb_backup():
        return
    with PrivateServer("backup", options()) as server:
        with server.connect() as session:
            load.create(session)
        targets, stalls = [], []
        for number in range(arguments.rounds):
            target = arguments.dir / f"round{number}"
            base = [f"--incremental-base={targets[-1]}"] if number % 3 == 1 else []
            with load.Load(server, arguments.writers, arguments.seed + number) as running:
                time.sleep(1)
                usual = running.longest()
                began = time.monotonic()
                tool.backup(server, target, *base)
                seconds, stall = time.monotonic() - began, running.longest()
                time.sleep(0.3)
            wrong = running.problems()
            if wrong:
                raise AssertionError(f"round {number}: {wrong}")
            stalls.append(stall)
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
        _check_point_in_time(targets[0], server.data_dir, expected)
        for target in targets:
            shutil.rmtree(target)
    if max(stalls) > _STALL_SECONDS_MAX:
        raise AssertionError(f"writers waited up to {max(stalls):.1f} s")
