"""Whether the binary log of a server says how its tables came to be."""

import subprocess

from power_cut import changes, writers
from sqlkit.server import PrivateServer

_NAME = "binary-log"
_SECONDS = 300
_WITH = " WITH "
_SHOWN_BEFORE, _SHOWN = 60, 240
# Statements that the server writes to the binary log last, without a word of that to its log of DDL. If one is cut off before, the
# server's recovery finishes it (or there is nothing to finish), and the binary log does not get it.
_LOGGED_LAST = {
    # fast_alter_partition_table in sql_partition.cc, which says so itself of DROP PARTITION
    "add partition", "drop partition", "reorganize partition", "rebuild partition", "add hash partition", "coalesce partition",
    "shared: add partition", "shared: coalesce",
    "truncate partition", "exchange partition",  # sql_partition_admin.cc
    "truncate",  # Sql_cmd_truncate_table::truncate_table
    "alter sequence",  # Sql_cmd_alter_sequence::execute
}


def options(rng):
    """Of a server with a binary log that a power cut cannot shorten."""
    return [f"--log-bin={_NAME}", "--sync-binlog=1", f"--binlog-format={rng.choice(['ROW', 'MIXED'])}"]


def differences(server, start, first_options, changers, known):
    """Carries out what the binary log says on a second server, whose data directory is that of the start, and compares.
    `known` as of Recording.known."""
    text = _decoded(server)
    with PrivateServer("replay", start=False) as other:
        other.data_dir.symlink_to(start)
        other.start([*first_options, "--local-infile=ON"])
        client = ["mariadb", "--no-defaults", "--local-infile=1", "--binary-mode", f"--socket={other.socket}"]
        done = subprocess.run(client, input=text, capture_output=True, timeout=_SECONDS, check=False)
        found = [] if done.returncode == 0 else [f"the binary log cannot be carried out: {done.stderr.decode('utf-8', 'replace').strip()}"]
        with server.connect(timeout=60) as one, other.connect(timeout=60) as two:
            return found + _compare(_all(one, changers), _all(two, changers), list(_cut_before_logged(changers, known)))


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
        found[writers.DATABASE, name] = f"{changes.definition(session, writers.DATABASE, name)}{_WITH}{sums}"
    return found


def _cut_before_logged(changers, known):
    """What tables were, and are after a statement on its way that may be done and not in the binary log."""
    for changer in changers:
        done, begun = known.get(changer.number, (0, 0))
        if begun > done and changer.history[begun].kind in _LOGGED_LAST:
            yield changer.history[done].after, changer.history[begun].after


def _compare(tables, replayed, cut_before_logged):
    return [f"the binary log makes {key[0]}.{key[1]} " + _difference(replayed.get(key), tables.get(key))
            for key in sorted(set(tables) | set(replayed), key=str)
            if tables.get(key) != replayed.get(key)
            and not any(_is_cut_before_logged(key, tables, replayed, *states) for states in cut_before_logged)]


def _is_cut_before_logged(key, tables, replayed, before, after):
    if None in (tables.get(key), replayed.get(key)) or key not in before or key not in after:
        return False
    if key[0] != writers.DATABASE:
        return (replayed[key], tables[key]) == (before[key], after[key])
    (old, _, old_rows), (new, _, new_rows) = replayed[key].rpartition(_WITH), tables[key].rpartition(_WITH)
    return (old, new) == (before[key], after[key]) and old_rows == new_rows


def _difference(replayed, table):
    """Both, from shortly before where they differ."""
    if None in (replayed, table):
        return f"{changes.short(replayed)}, it is {changes.short(table)}"
    same = next((at for at, (one, two) in enumerate(zip(replayed, table)) if one != two), 0)
    begin = max(same - _SHOWN_BEFORE, 0)
    return f"...{replayed[begin:begin + _SHOWN]!r}, it is ...{table[begin:begin + _SHOWN]!r}"
