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


# Each as the server writes it and as its file is called.
_NAMES = {"d\u00fcb": "d@1ob", "my-db": "my@002ddb", "a b.c": "a@0020b@002ec", "q'`$,": "q@0027@0060@0024@002c", "aux": "aux@@@",
          "\u65e5\u672c": "@65e5@672c"}


def _names(arguments):
    """Databases and tables of any name are found by it, for mariadb-backup, too; its regular expressions are of files."""
    def quoted(name):
        return "`" + name.replace("`", "``") + "`"
    engines = ("PANDO", "InnoDB") if tool.mariadb_backup() else ("PANDO",)
    with PrivateServer("backup", rounds.options()) as server:
        with server.connect() as session:
            session.query("SET NAMES utf8mb4")
            for name in _NAMES:
                session.query(f"CREATE DATABASE {quoted(name)}")
                for engine in engines:
                    for table in (name + engine, "other" + engine):
                        session.query(f"CREATE TABLE {quoted(name)}.{quoted(table)} (id INT PRIMARY KEY) ENGINE={engine}")
        plain = ",".join(name for name in _NAMES if "," not in name)
        for more, tables in (
                ([f"--databases={plain}", f"--databases={quoted(list(_NAMES)[3])}"], ["", "other"]),
                ([f"--tables={','.join(f'{quoted(name)}.{quoted(name + engine)}' for name in _NAMES for engine in engines)}"], [""])):
            target = arguments.dir / f"named{len(tables)}"
            tool.backup(server, target, *more, *([] if tool.mariadb_backup() else ["--pando-only"]))
            manifest = rounds.manifest_of(target)
            # The mark of a device's name is for the whole name.
            files = {name: [(file if table == "" else table).removesuffix("@@@") for table in tables] for name, file in _NAMES.items()}
            pando = sorted(f"{_NAMES[name]}/{table}PANDO" for name, of_it in files.items() for table in of_it)
            if manifest["tables"] != pando:
                raise AssertionError(f"{more}: {manifest['tables']}, not {pando}")
            # mariadb-backup calls the file of a table that it has seen being made NAME.new.
            paths = {entry["path"].replace(".new", ".ibd") for entry in manifest["files"]}
            for name, of_it in files.items() if len(engines) > 1 else ():
                for path in [f"server/{_NAMES[name]}/{table}{kind}" for table in of_it
                             for kind in ("InnoDB.ibd", "InnoDB.frm", "PANDO.frm")]:
                    if path not in paths:
                        raise AssertionError(f"{more}: no {path} in {sorted(paths)}")
            if len(tables) == 1 and any("other" in path for path in paths):
                raise AssertionError(f"{more}: {sorted(paths)}")


def run(arguments):
    _names(arguments)
    whole, chosen = arguments.dir / "alone", arguments.dir / "chosen"
    with PrivateServer("backup", rounds.options()) as server:
        with server.connect() as session:
            load.create(session)
            session.query("CREATE TRIGGER bank.before_p BEFORE INSERT ON bank.p FOR EACH ROW SET NEW.balance = 0")
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
    said = tool.must(tool.restore_command(chosen, arguments.dir / "said"))
    if said:
        raise AssertionError(f"restoring chosen tables: {said}")
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
        session.query("DROP TRIGGER bank.before_p")
    with _server_beside(chosen) as server, server.connect() as session:
        found = tool.checksums(session)
        rounds.compare("chosen tables", {name: expected[name] for name in ("p", "parts")}, found)
        session.query("DROP TRIGGER bank.before_p")
