"""The command pando, and what a restored server has to be like."""

import os
import pathlib
import shutil
import subprocess

from . import load

_TRIES = 4


def find():
    """The tool, as backup.sh has built it."""
    return os.environ["PANDO_TOOL"]


def mariadb_backup():
    """mariadb-backup, None where it is not installed."""
    return os.environ.get("MARIADB_BACKUP") or shutil.which("mariadb-backup")


def backup_command(server, target, *more):
    command = [find(), "backup", f"--socket={server.socket}", "--user=root", f"--target={target}", "--quiet", *more]
    if mariadb_backup():
        command.append(f"--mariadb-backup={mariadb_backup()}")
    return command


def run(command):
    """Exit status and what it said."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def must(command):
    status, text = run(command)
    if status != 0:
        raise AssertionError(f"{command[1]} ended with {status}: {text}")
    return text


def backup(server, target, *more):
    """As often as mariadb-backup loses InnoDB's log out of sight: a defect of its own, which the tool names."""
    for _ in range(_TRIES):
        status, text = run(backup_command(server, target, *more))
        if status == 0:
            return text
        if "MDEV-39468" not in text:
            break
        print("mariadb-backup could not follow InnoDB's log (MDEV-39468)", flush=True)
        shutil.rmtree(target)
    raise AssertionError(f"backup ended with {status}: {text}")


def verify(target):
    return run([find(), "verify", str(target)])


def restore_command(target, data_dir, *more):
    command = [find(), "restore", f"--from={target}", f"--datadir={data_dir}", "--quiet", *more]
    if mariadb_backup():
        command.append(f"--mariadb-backup={mariadb_backup()}")
    return command


def tables(session):
    """All tables of the load's database."""
    rows = session.query("SELECT table_name, engine FROM information_schema.tables"
                         f" WHERE table_schema = '{load.DATABASE}' ORDER BY 1").rows
    return [(name.decode(), engine.decode() if engine else None) for name, engine in rows]


def checksums(session, only=None):
    """CHECKSUM TABLE of each."""
    found = {}
    for name, engine in tables(session):
        if only is None or engine == only:
            found[name] = session.query(f"CHECKSUM TABLE {load.DATABASE}.{name}").rows[0][1]
    return found


def problems(session, with_innodb=True):
    """What does not hold in a restored server."""
    wrong = []
    for name, engine in tables(session):
        if engine != "PANDO":
            continue
        for row in session.query(f"CHECK TABLE {load.DATABASE}.{name} EXTENDED").rows:
            if row[3] != b"OK":
                wrong.append(f"{name}: {row[3].decode()}")
    tags = "SELECT COUNT(*) FROM bank.journal_p a LEFT JOIN bank.parts b ON a.tag = b.tag WHERE b.tag IS NULL"
    if session.value(tags) != "0" or session.value("SELECT COUNT(*) FROM bank.journal_p") != session.value(
            "SELECT COUNT(*) FROM bank.parts"):
        wrong.append("journal and parts of PANDO have other rows")
    if with_innodb:
        total = session.value("SELECT (SELECT SUM(balance) FROM bank.p) + (SELECT SUM(balance) FROM bank.i)")
        if int(float(total)) != 2 * load.ACCOUNTS * load.BALANCE:
            wrong.append(f"the accounts have {total}")
        missing = ("SELECT (SELECT COUNT(*) FROM bank.journal_p p LEFT JOIN bank.journal_i i USING (tag) WHERE i.tag IS NULL),"
                   " (SELECT COUNT(*) FROM bank.journal_i i LEFT JOIN bank.journal_p p USING (tag) WHERE p.tag IS NULL)")
        if session.query(missing).rows[0] != (b"0", b"0"):
            wrong.append(f"the journals of the engines have other rows: {session.query(missing).rows[0]}, {_journals(session)}")
    return wrong


def _journals(session):
    """Which rows the journals do not have in common, read by each way."""
    def tags(table, way=""):
        return {row[0].decode() for row in session.query(f"SELECT tag FROM bank.{table} {way}").rows}
    others = tags("journal_i")
    by_row, by_key = tags("journal_p", "FORCE INDEX (PRIMARY)"), tags("journal_p", "FORCE INDEX (tag)")
    found = {tag for tag in others if session.query(f"SELECT id FROM bank.journal_p FORCE INDEX (tag) WHERE tag = '{tag}'").rows}
    parts = tags("parts")
    lack = {"rows": others - by_row, "key": others - by_key, "lookups": others - found, "parts": others - parts}
    have = {"rows": by_row - others, "key": by_key - others, "parts": parts - others}
    return f"PANDO lacks { {way: sorted(them) for way, them in lack.items()} }, has { {way: sorted(them) for way, them in have.items()} }"


def replay(source_dir, position, socket, start=None, stop=None):
    """Plays the binary logs in a directory, up to a position or time, into a server."""
    files = sorted(path for path in pathlib.Path(source_dir).glob("binlog.0*"))
    command = ["mariadb-binlog", "--no-defaults"]
    if position:
        name, place = position
        files = [path for path in files if path.name <= name]
        command.append(f"--stop-position={place}")
    if start:
        name, place = start
        files = [path for path in files if path.name >= name]
        command.append(f"--start-position={place}")
    if stop:
        command.append(f"--stop-datetime={stop}")
    with subprocess.Popen([*command, *map(str, files)], stdout=subprocess.PIPE) as reader:
        done = subprocess.run(["mariadb", "--no-defaults", f"--socket={socket}", "--user=root", "--binary-mode"],
                              stdin=reader.stdout, capture_output=True, text=True, check=False)
    if done.returncode or reader.returncode:
        raise AssertionError(f"replay failed: {done.stderr}")
