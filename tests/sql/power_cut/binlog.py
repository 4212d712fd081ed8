"""Whether the binary log of a server says how its tables came to be."""

import subprocess

from power_cut import changes, writers
from sqlkit.server import PrivateServer

_NAME = "binary-log"
_SECONDS = 300


def options(rng):
    """Of a server with a binary log that a power cut cannot shorten."""
    return [f"--log-bin={_NAME}", "--sync-binlog=1", f"--binlog-format={rng.choice(['ROW', 'MIXED'])}"]


def differences(server, start, first_options, changers):
    """Carries out what the binary log says on a second server, whose data directory is that of the start, and compares."""
    text = _decoded(server)
    with PrivateServer("replay", start=False) as other:
        other.data_dir.symlink_to(start)
        other.start([*first_options, "--local-infile=ON"])
        client = ["mariadb", "--no-defaults", "--local-infile=1", "--binary-mode", f"--socket={other.socket}"]
        done = subprocess.run(client, input=text, capture_output=True, timeout=_SECONDS, check=False)
        found = [] if done.returncode == 0 else [f"the binary log cannot be carried out: {done.stderr.decode('utf-8', 'replace').strip()}"]
        with server.connect(timeout=60) as one, other.connect(timeout=60) as two:
            return found + _compare(_all(one, changers), _all(two, changers))


def _decoded(server):
    logs = sorted(path for path in server.data_dir.glob(f"{_NAME}.*") if path.suffix[1:].isdigit())
    command = ["mariadb-binlog", "--no-defaults", f"--local-load={server.dir}", *logs]
    done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"mariadb-binlog: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout


def _all(session, changers):
    found = changes.read(session, [database for changer in changers for database in changer.databases])
    for name in writers.TABLES:
        sums = session.query(f"CHECKSUM TABLE {writers.DATABASE}.{name} EXTENDED").rows[0][1]
        found[writers.DATABASE, name] = f"{changes.definition(session, writers.DATABASE, name)} WITH {sums}"
    return found


def _compare(tables, replayed):
    return [f"the binary log makes {key[0]}.{key[1]} {changes.short(replayed.get(key))}, it is {changes.short(tables.get(key))}"
            for key in sorted(set(tables) | set(replayed), key=str) if tables.get(key) != replayed.get(key)]
