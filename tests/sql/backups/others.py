"""Backups by other means: what they have of PANDO's tables, and what they are told."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

from sqlkit.server import PrivateServer

from . import load, rounds, tool

_TEXT = "this backup does not have the PANDO tables"


def _warned(server):
    with server.connect() as session:
        before = server.log_text().count(_TEXT)
        session.query("BACKUP STAGE START")
        warnings = session.query("SHOW WARNINGS").rows
        session.query("BACKUP STAGE END")
        if not any(_TEXT in row[2].decode() for row in warnings):
            raise AssertionError(f"BACKUP STAGE says only {warnings}")
    if server.log_text().count(_TEXT) != before + 1:
        raise AssertionError("the error log does not say once that the backup has no PANDO tables")


def _dump(server):
    """mariadb-dump while others write, played into another server."""
    with load.Load(server, 4, 1, with_ddl=False):
        time.sleep(0.5)
        dump = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "--user=root",
                               "--single-transaction", "--master-data=2", "--databases", load.DATABASE],
                              capture_output=True, check=True).stdout
    position = next(line for line in dump.decode(errors="replace").splitlines() if "MASTER_LOG_POS" in line)
    name, place = position.split("'")[1], int(position.split("MASTER_LOG_POS=")[1].rstrip(";"))
    with PrivateServer("dumped", rounds.options()) as other, PrivateServer("replayed", rounds.options()) as replayed:
        subprocess.run(["mariadb", "--no-defaults", f"--socket={other.socket}", "--user=root"], input=dump, check=True)
        tool.replay(server.data_dir, (name, place), replayed.socket)
        with other.connect() as session, replayed.connect() as again:
            rounds.compare("mariadb-dump", tool.checksums(again), tool.checksums(session))
            wrong = tool.problems(session)
            if wrong:
                raise AssertionError(wrong)


def _copied(server, expected):
    """A server on a copy of the data directory as it is is now."""
    copy = PrivateServer("copied", rounds.options())
    shutil.copytree(server.data_dir, copy.data_dir)
    with copy, copy.connect() as session:
        wrong = tool.problems(session)
        if wrong:
            raise AssertionError(wrong)
        rounds.compare("copy of a stopped data directory", expected, tool.checksums(session))


def _wait_until_stopped(pid):
    """The signal returns before all threads stand still: those within a system call end it first."""
    def state(task):
        try:
            # The name before it may hold anything, a parenthesis too.
            return (task / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return "T"  # it has ended meanwhile
    deadline = time.monotonic() + 120
    while any(state(task) not in "Tt" for task in pathlib.Path(f"/proc/{pid}/task").iterdir()):
        if time.monotonic() > deadline:
            raise AssertionError("the server does not stop")
        time.sleep(0.01)


def run(arguments):
    with PrivateServer("backup", rounds.options()) as server:
        with server.connect() as session:
            load.create(session)
        _warned(server)
        _dump(server)
        with load.Load(server, arguments.writers, arguments.seed):
            time.sleep(1)
            # What a snapshot of the file system has: all files at one moment.
            pid = server.pid()
            os.kill(pid, signal.SIGSTOP)
            try:
                _wait_until_stopped(pid)
                frozen = arguments.dir / "frozen"
                shutil.copytree(server.data_dir, frozen)
            finally:
                os.kill(pid, signal.SIGCONT)
        with server.connect() as session:
            expected = tool.checksums(session)
        server.stop()
        _copied(server, expected)
    again = PrivateServer("frozen", rounds.options())
    shutil.move(frozen, again.data_dir)
    with again, again.connect() as session:
        wrong = tool.problems(session)
        if wrong:
            raise AssertionError(f"frozen: {wrong}")
