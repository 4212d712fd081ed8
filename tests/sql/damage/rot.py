"""One damaged file of any kind, after a clean stop and after kill -9: the server starts, what is not damaged is read, and the log says
which file it is."""

import hashlib
import os
import random
import shutil

from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import ServerFailed

_TABLES = {"plain": "", "keyed": "PARTITION BY HASH (id) PARTITIONS 2", "bystander": ""}
_ROWS = 3000
_DATABASE = "rot"
# So many rows apart, a row has a value that is stored in a file of its own.
_LARGE_STEP = 100
_LARGE = "(SELECT GROUP_CONCAT(SHA2(CONCAT({id}, '/', part.seq), 512) ORDER BY part.seq) FROM seq_1_to_140 AS part)"

# Kinds of files: name, whether the name of a file below the data directory is of that kind, and whose it is.
_KINDS = [
    ("rows", "plain.pando/main.pando", "plain"),
    ("a key", "plain.pando/key-k.pando", "plain"),
    ("a unique key", "plain.pando/key-u.pando", "plain"),
    ("rows of a partition", "keyed#P#p1.pando/main.pando", "keyed"),
    ("a key of a partition", "keyed#P#p1.pando/key-k.pando", "keyed"),
    ("large values", "plain.pando/large.pando", "values"),
    ("the copy of a descriptor", "plain.pando/status.pando", None),
    ("a definition", "plain.frm", "plain"),
    ("the log", ".log", "all"),
    ("the catalog", "catalog.pando", "all"),
]


def _flip(path, rng):
    """One bit in each of a few places."""
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(size) if size else 0
            file.seek(place)
            old = file.read(1) or b"\0"
            file.seek(place)
            file.write(bytes([old[0] ^ 1 << rng.randrange(8)]))


def _cut(path, rng):
    os.truncate(path, rng.randrange(os.path.getsize(path) + 1))


def _lose(path, _rng):
    os.unlink(path)


def _swap_blocks(path, rng):
    """Two blocks in each other's place, as a disk that has mixed them up leaves them."""
    size = os.path.getsize(path) // 4096
    if size < 2:
        return
    first, second = rng.sample(range(size), 2)
    with open(path, "r+b") as file:
        file.seek(first * 4096)
        one = file.read(4096)
        file.seek(second * 4096)
        other = file.read(4096)
        file.seek(first * 4096)
        file.write(other)
        file.seek(second * 4096)
        file.write(one)


_HARMS = [("bits flipped", _flip), ("cut", _cut), ("lost", _lose), ("blocks exchanged", _swap_blocks)]


def run(server, checks, rounds, seed):
    """`server` runs. Each round harms one file of one kind; all kinds come in turn."""
    rng = random.Random(seed)
    _fill(server)
    server.stop()
    stopped = server.dir / "stopped"
    shutil.copytree(server.data_dir, stopped)
    server.start()
    with server.connect(_DATABASE) as session:
        for table in _TABLES:
            session.query(f"UPDATE {table} SET v = v + 1 WHERE id <= 1000")
            session.query(f"INSERT INTO {table} SELECT seq, seq, seq, 'new', IF(seq % {_LARGE_STEP}, NULL, {_LARGE.format(id='`rows`.seq')}) "
                          f"FROM seq_{_ROWS + 1}_to_{_ROWS + 100} AS `rows`")
        expected = {False: None, True: {table: _sums(session, table) for table in _TABLES}}
    server.kill()
    killed = server.dir / "killed"
    shutil.copytree(server.data_dir, killed)
    _restore(server, stopped)
    server.start()
    with server.connect(_DATABASE) as session:
        expected[False] = {table: _sums(session, table) for table in _TABLES}
    server.stop()
    for number in range(rounds):
        kind, harm = _KINDS[number % len(_KINDS)], rng.choice(_HARMS)
        is_killed = rng.random() < 0.5
        _restore(server, killed if is_killed else stopped)
        _one(server, kind, harm, expected[is_killed], f"{'killed' if is_killed else 'stopped'}, seed {seed}", rng, checks)


def _fill(server):
    with server.connect() as session:
        session.query(f"CREATE DATABASE {_DATABASE}")
        session.query(f"USE {_DATABASE}")
        for table, partitions in _TABLES.items():
            unique = "KEY u (id, w)" if partitions else "UNIQUE KEY u (w)"
            session.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT, w INT, text VARCHAR(100), x LONGBLOB, KEY k (v), "
                          f"{unique}) ENGINE=PANDO {partitions}")
            session.query(f"INSERT INTO {table} SELECT seq, seq % 100, seq, SHA2(seq, 256), IF(seq % {_LARGE_STEP}, NULL, "
                          f"{_LARGE.format(id='`rows`.seq')}) FROM seq_1_to_{_ROWS} AS `rows`")


def _sums(session, table, hint="USE INDEX ()", where=""):
    sql = f"SELECT COUNT(*), SUM(v), SUM(CRC32(CONCAT(id, v, w, text))) FROM {table} {hint} {where}"
    return tuple(session.query(sql).rows[0])


def _restore(server, saved):
    server.kill()
    shutil.rmtree(server.data_dir)
    shutil.copytree(saved, server.data_dir)


def _files(server, ending):
    found = []
    for directory, _, names in os.walk(server.data_dir):
        for name in names:
            path = os.path.join(directory, name)
            if path.endswith(ending) and (ending != ".log" or "/.pando/" in path):
                found.append(path)
    return sorted(found)


def _one(server, kind, harm, expected, when, rng, checks):
    title, ending, whose = kind
    path = rng.choice(_files(server, ending))
    harm[1](path, rng)
    what = f"{title}: {harm[0]} ({when})"
    since, name = server.log_size(), os.path.basename(path)
    try:
        server.start()
    except ServerFailed as error:
        # Without its catalog, or the log that it needs, the engine does not start, and says which file it is.
        held = whose == "all" and (name in str(error) or "catalog" in str(error) or ".log" in str(error))
        checks.check(held, f"{what}: {'the start is refused, with the file' if held else 'the server starts'}", str(error)[-1500:])
        if "catalog" not in str(error):
            _read_despite_damage(server, expected, what, checks)
        return
    try:
        with server.connect(_DATABASE, timeout=120) as session:
            _look(server, session, whose, name, expected, what, since, checks)
    except ConnectionLost as error:
        checks.check(False, f"{what}: the server goes on", f"{error}: {server.log_text(since)[-3000:]}")


def _read_despite_damage(server, expected, what, checks):
    """What the tables have can be read, nothing can be written, and nothing is."""
    # Opening them makes the server's own files of other engines, not ours.
    before, since, wrong = _engine_files(server), server.log_size(), []
    try:
        server.start([*server.options, "--pando-start-despite-damage=ON"])
        with server.connect(_DATABASE, timeout=120) as session:
            for table in _TABLES:
                rows = int(_sums(session, table)[0])
                # The last hundred, one transaction, may be in the damaged log alone.
                if rows not in (_ROWS, int(expected[table][0])):
                    wrong.append(f"{table} has {rows} rows")
                try:
                    session.query(f"INSERT INTO {table} VALUES (2000000, 1, 2000000, 'x', NULL)")
                    wrong.append(f"{table} takes rows")
                except SqlError as error:
                    if error.number not in (1036, 1180):  # at once, or at the COMMIT
                        wrong.append(f"{table}: {error}")
        server.stop()
    except (ServerFailed, SqlError, ConnectionLost) as error:
        wrong.append(f"{error}; {server.log_text(since)[-1500:]}")
    finally:
        server.kill()
        server.options = [option for option in server.options if "despite" not in option]
    after = _engine_files(server)
    wrong += [f"{path} was written" for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    checks.check(not wrong, f"{what}: despite it all tables are read and none is written", "; ".join(wrong))


def _engine_files(server):
    """Every file of the engine and its checksum."""
    found = {}
    for path in _files(server, ""):
        if ".pando/" in path and not path.endswith("/lock"):
            with open(path, "rb") as file:
                found[path] = hashlib.sha256(file.read()).hexdigest()
    return found


def _look(server, session, whose, name, expected, what, since, checks):
    refused = {}
    for table in _TABLES:
        for hint, where in (("USE INDEX ()", ""), ("FORCE INDEX (k)", "WHERE v >= 0"), ("FORCE INDEX (u)", "WHERE w > 0")):
            try:
                found = _sums(session, table, hint, where)
                if found != expected[table]:
                    checks.check(False, f"{what}: {table} {hint} is right", f"{found} and not {expected[table]}")
            except SqlError as error:
                refused.setdefault(table, str(error))
    allowed = set(_TABLES) if whose == "all" else {whose}
    wrongly = {table: error for table, error in refused.items() if table not in allowed}
    log = server.log_text(since)
    # A lost file of rows is told to the client alone: error 1932.
    told = all(error.startswith("1932") for error in refused.values()) or any(name in line or "catalog" in line for line in log.splitlines() if "PANDO" in line)
    checks.check(not wrongly and told, f"{what}: {'refused: ' + ', '.join(refused) if refused else 'everything is read'}",
                 f"{wrongly or refused} in the log: {log[-2500:]}")
    if "plain" not in refused:
        _look_at_large(session, whose, what, lambda: server.log_text(since), checks)
    _goes_on(session, whose, refused, what, checks)


def _look_at_large(session, whose, what, log, checks):
    """Large values are right, or refused if they were harmed; their rows can be changed, and new ones have a place after REPAIR TABLE."""
    lost, wrong, numbers = [], [], range(_LARGE_STEP, _ROWS + 1, _LARGE_STEP)
    for number in numbers:
        try:
            rows = session.query(f"SELECT x = {_LARGE.format(id='id')} FROM plain WHERE id = {number}").rows
            if rows != [(b"1",)]:
                wrong.append(number)
        except SqlError as error:
            if error.number != 1034:
                wrong.append(f"{number}: {error}")
            lost.append(number)
    is_told = not lost or "large.pando" in log()
    checks.check(not wrong and is_told and (not lost or whose in ("values", "all")),
                 f"{what}: of {len(numbers)} large values {len(lost)} are refused, none is wrong", f"{wrong}, refused: {lost}: {log()[-2500:]}")
    if whose != "values":
        return
    try:
        for number in lost[:2]:
            session.query(f"UPDATE plain SET v = v + 1 WHERE id = {number}")
        for number in lost[2:4]:
            session.query(f"DELETE FROM plain WHERE id = {number}")
        session.query("REPAIR TABLE plain QUICK")
        for number in lost[:2]:
            session.query(f"UPDATE plain SET x = {_LARGE.format(id='id')} WHERE id = {number}")
        session.query(f"INSERT INTO plain VALUES (1000000, 1, 1000000, 'x', {_LARGE.format(id='1000000')})")
        where = f"id IN (1000000, {', '.join(map(str, lost[:2] or [_LARGE_STEP]))})"
        rows = session.query(f"SELECT COUNT(*) - SUM(x = {_LARGE.format(id='id')}) FROM plain WHERE {where}").rows
        error = None if rows == [(b"0",)] else rows
    except SqlError as trouble:
        error = trouble
    checks.check(error is None, f"{what}: rows change, and new large values are there", str(error))


def _goes_on(session, whose, refused, what, checks):
    """The tables that are not harmed are changed, and the harmed one can be dropped and made anew."""
    if refused and whose == "all":
        return
    try:
        session.query("INSERT INTO bystander VALUES (1000000, 1, 1000000, 'x', NULL)")
        session.query("DELETE FROM bystander WHERE id = 1000000")
        for table in refused:
            session.query(f"DROP TABLE {table}")
            session.query(f"CREATE TABLE {table} (id INT PRIMARY KEY) ENGINE=PANDO")
        error = None
    except SqlError as trouble:
        error = trouble
    if error is not None:
        checks.check(False, f"{what}: work goes on", str(error))
