"""PANDO's tables without those of other engines: chosen ones, and a replica from a backup."""

import shutil
import subprocess
import tarfile
import time

from sqlkit import patience
from sqlkit.server import PrivateServer

from . import load, rounds, tool

_HANG_SECONDS = 120


def _server_beside(target):
    """A data directory as a new server has it, and PANDO's files in it."""
    server = PrivateServer("alone", rounds.options())
    tool.must(tool.restore_command(target, server.dir / "restored"))
    # The definitions and accounts of a new server.
    server.start()
    server.stop()
    for entry in (server.dir / "restored").iterdir():
        place = server.data_dir / entry.name
        if place.is_dir():
            shutil.rmtree(place)
        elif place.exists():
            place.unlink()
        entry.rename(place)
    return server


def _stream(server, directory, expected):
    """The same as an archive; compressed, where there is somebody to decompress it."""
    for more in ([], ["--compress"]) if shutil.which("zstd") else ([],):
        command = tool.backup_command(server, directory / "staging", "--pando-only", "--stream", *more)
        archive, target = directory / "archive", directory / f"streamed{len(more)}"
        with open(archive, "wb") as out:
            subprocess.run(command, stdout=out, check=True)
        if more:
            archive.write_bytes(subprocess.run(["zstd", "-dc", archive], stdout=subprocess.PIPE, check=True).stdout)
        if (directory / "staging").exists():
            raise AssertionError("the staging directory is left")
        with tarfile.open(archive) as opened:
            names = opened.getnames()
            opened.extractall(target)
        if names[-1] != "pando-backup.json":
            raise AssertionError(f"the last file of the archive is {names[-1]}")
        status, text = tool.verify(target)
        if status:
            raise AssertionError(text)
    with _server_beside(target) as other, other.connect() as session:
        rounds.compare("stream", expected, tool.checksums(session, "PANDO"))


def _no_lock_while_copying(server, directory, running):
    """Nobody reads the archive, so the copying stands still: transfers do not."""
    with server.connect(load.DATABASE) as session:
        session.query("CREATE TABLE large (id INT PRIMARY KEY, noise BLOB) ENGINE=PANDO")
        session.query("INSERT INTO large SELECT seq, RANDOM_BYTES(1024) FROM seq_1_to_4096")
    command = tool.backup_command(server, directory / "waits", "--pando-only", "--stream")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        archive = process.stdout.read(1)
        goal, begun = running.done() + 100, time.monotonic()
        while running.done() < goal and process.poll() is None and time.monotonic() - begun < _HANG_SECONDS:
            time.sleep(0.01)
        if running.done() < goal:
            process.kill()
            raise AssertionError(f"{goal - running.done()} transfers fewer than expected while the backup {process.poll()} waits: {running.problems()}")
        archive += process.stdout.read()
    if process.returncode or len(archive) < 4096 * 1024:
        raise AssertionError(f"backup ended with {process.returncode} after {len(archive)} bytes")


def run(arguments):
    whole, chosen = arguments.dir / "alone", arguments.dir / "chosen"
    with PrivateServer("backup", rounds.options()) as server:
        with server.connect() as session:
            load.create(session)
        with load.Load(server, arguments.writers, arguments.seed) as running:
            patience.pass_time(1, running.done)
            usual = running.longest()
            tool.backup(server, whole, "--pando-only")
            stall = running.longest()
            _no_lock_while_copying(server, arguments.dir, running)
        with server.connect() as session:
            expected = tool.checksums(session, "PANDO")
            tool.backup(server, chosen, "--pando-only", "--tables=bank.p,bank.parts", "--limit-rate=500")
        _stream(server, arguments.dir, expected)
    print(f"alone: slowest transfer {stall * 1000:.0f} ms (before {usual * 1000:.0f} ms)", flush=True)
    for target in (whole, chosen):
        status, text = tool.verify(target)
        if status:
            raise AssertionError(text)
    with _server_beside(whole) as server, server.connect() as session:
        wrong = tool.problems(session, with_innodb=False)
        if wrong:
            raise AssertionError(wrong)
        if session.value("SELECT COUNT(*) FROM bank.journal_p") == "0":
            raise AssertionError("no rows")
    with _server_beside(chosen) as server, server.connect() as session:
        found = tool.checksums(session)
        rounds.compare("chosen tables", {name: expected[name] for name in ("p", "parts")}, found)
