"""What goes wrong while a backup is taken, and what is done to it afterwards."""

import json
import os
import random
import signal
import subprocess
import time

from sqlkit.server import PrivateServer

from . import load, rounds, tool

_KILLS = 3
# So slow that no backup ends before it is killed, however late that is: it has over 20 MB to copy.
_SLOWLY = "--limit-rate=1"
_WAIT_SECONDS_MAX = 300


def _expect(command, status, *words):
    found, text = tool.run(command)
    if found != status or not all(word in text for word in words):
        raise AssertionError(f"{command[1:]}: ended with {found}, not {status} and {words}: {text}")


def _is_incomplete(target, data_dir):
    _expect([tool.find(), "verify", str(target)], 1, "did not come to its end")
    _expect(tool.restore_command(target, data_dir), 2, "did not come to its end")
    if data_dir.exists():
        raise AssertionError(f"{data_dir} was made of an incomplete backup")


def _kill_tools(server, directory, rng, more):
    """The tool dies at random moments; the server goes on, and lets go of what it held."""
    killed = 0
    while killed < _KILLS:
        target = directory / f"killed{killed}"
        process = subprocess.Popen(tool.backup_command(server, target, _SLOWLY, *more), start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.1, 2.5))
        if process.poll() is not None:
            raise AssertionError(f"the backup was over too early, with {process.returncode}")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        killed += 1
        deadline = time.monotonic() + _WAIT_SECONDS_MAX
        with server.connect() as session:
            while session.query("SHOW STATUS LIKE 'Pando_backup_files_left'").rows[0][1] != b"0":
                if time.monotonic() > deadline:
                    raise AssertionError("a backup whose tool is gone goes on")
                time.sleep(0.1)
        if target.exists() and any(target.iterdir()):
            _expect([tool.find(), "verify", str(target)], *((1,) if (target / "pando").exists() else (2,)))
            _expect(tool.restore_command(target, directory / "no"), 2, "did not come to its end")


def _kill_server(server, directory, rng, more):
    target = directory / "lost"
    process = subprocess.Popen(tool.backup_command(server, target, _SLOWLY, *more), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(rng.uniform(1, 3))
    server.kill()
    _, text = process.communicate(timeout=_WAIT_SECONDS_MAX)
    if process.returncode != 2:
        raise AssertionError(f"the tool ended with {process.returncode} when the server died: {text}")
    server.start()
    with server.connect() as session:
        wrong = tool.problems(session, with_innodb=bool(tool.mariadb_backup()))
        if wrong:
            raise AssertionError(wrong)
    if (server.data_dir / ".pando" / "backup").exists():
        raise AssertionError("files of a dead backup are still there")


def _flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))


def _tamper(target, directory, rng):
    """Every file of a backup counts."""
    manifest = json.loads((target / "pando-backup.json").read_text())
    trees = [entry for entry in manifest["files"] if entry.get("extents")]
    plain = [entry for entry in manifest["files"] if not entry.get("dict") and entry["bytes"]]
    places = []
    for entry in rng.sample(trees, 3):
        offset, length = rng.choice(entry["extents"])[:2]
        places.append((entry["path"], offset + rng.randrange(length)))
    places.append((rng.choice(trees)["path"], rng.randrange(60)))
    for entry in rng.sample(plain, 3):
        places.append((entry["path"], rng.randrange(entry["bytes"])))
    manifest_bytes = (target / "pando-backup.json").stat().st_size
    places += [("pando-backup.json", rng.randrange(manifest_bytes)) for _ in range(2)]
    for name, offset in places:
        _flip(target / name, offset)
        _expect([tool.find(), "verify", str(target)], 1, name)
        _expect(tool.restore_command(target, directory / "tampered"), 2, name)
        if (directory / "tampered").exists():
            raise AssertionError(f"a restore that failed at {name} has left files")
        _flip(target / name, offset)
    (target / plain[0]["path"]).rename(directory / "away")
    _expect([tool.find(), "verify", str(target)], 1, plain[0]["path"])
    (directory / "away").rename(target / plain[0]["path"])
    _expect([tool.find(), "verify", str(target)], 0, "ok")


def _full_disk(server, directory, more):
    """A target too small, where the test may mount one."""
    small = directory / "small"
    small.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=False,
                                      capture_output=True).returncode:
        print("trouble: no small disk can be mounted here", flush=True)
        return
    try:
        _expect(tool.backup_command(server, small / "full", *more), 2, "No space left")
        _is_incomplete(small / "full", directory / "no")
    finally:
        subprocess.run(["umount", small], check=True)


def _refused(server, directory):
    """What is refused before anything is made, and a stream that nobody reads to its end."""
    target = directory / "refused"

    def says(words, *more, at=target):
        _expect(tool.backup_command(server, at, "--pando-only", *more), 2, *words)
        if at.exists():
            raise AssertionError(f"{more}: {at} was made")
    says(["--tables bank.nothere: there is no such table", "--tables p: it has to be DATABASE.TABLE",
          "--databases Bank: there is no such database"], "--tables=bank.nothere,bank.p,p", "--databases=Bank,bank")
    says(["--tables bank.i: it is no table of PANDO", "--tables bank.view_p: it is no table of PANDO",
          "--tables bank.P: there is no such table"], "--tables=bank.i,bank.view_p,bank.P")
    says(["--tables : it has to be DATABASE.TABLE"], "--tables=")
    says(["is in the server's data directory"], at=server.data_dir / "bank" / "inside")
    command = tool.backup_command(server, target, "--pando-only", "--stream")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdout.read(1)
        process.stdout.close()
        if process.wait() != 2 or target.exists():
            raise AssertionError(f"a closed stream: status {process.returncode}, the target is left: {target.exists()}")


def run(arguments):
    rng = random.Random(arguments.seed)
    directory = arguments.dir / "trouble"
    directory.mkdir()
    more = ["--pando-only"]
    with PrivateServer("backup", rounds.options()) as server:
        with server.connect() as session:
            load.create(session, engines=("PANDO", "InnoDB"))
            session.query("CREATE TABLE bank.filler (id INT PRIMARY KEY, b VARBINARY(1000)) ENGINE=PANDO COMPRESSION=NONE")
            session.query("INSERT INTO bank.filler SELECT seq, RANDOM_BYTES(1000) FROM bank.seq_1_to_20000")
        with load.Load(server, arguments.writers, arguments.seed, with_ddl=False):
            _kill_tools(server, directory, rng, more)
        with load.Load(server, arguments.writers, arguments.seed + 1, with_ddl=False):
            _kill_server(server, directory, rng, more)
        with server.connect() as session:
            session.query("CREATE VIEW bank.view_p AS SELECT * FROM bank.p")
        _refused(server, directory)
        target = directory / "whole"
        tool.backup(server, target, *more, "--limit-rate=0")
        _expect(tool.backup_command(server, target, *more), 2, "has a backup already")
        (directory / "full").mkdir()
        (directory / "full" / "file").write_text("x")
        _expect(tool.backup_command(server, directory / "full", *more), 2, "is not empty")
        _expect(tool.restore_command(target, directory / "full"), 2, "is not empty")
        _tamper(target, directory, rng)
        _full_disk(server, directory, more)
        stranger = tool.backup_command(server, directory / "nobody", *more)
        stranger[stranger.index("--user=root")] = "--user=nobody_at_all"
        _expect(stranger, 2, "denied")
