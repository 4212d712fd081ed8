"""What must hold on a disk whose power went."""

from power_cut import changes, writers
from sqlkit import agreement, engines
from sqlkit.client import ConnectionLost, SqlError

_OWN_DATABASES = ("mysql", "performance_schema", "sys")


class Verdict:
    """`problems`: texts; `unusable`: how many tables do not open or cannot be read; `tables`: how many there are;
    `left`: files of interim names (#sql...) and .par files without a table, which are in nobody's way."""

    def __init__(self):
        self.problems, self.unusable, self.tables, self.left = [], 0, 0, 0


def state(server, engine, changers, all_writers, known, known_later=None, compare=None):
    """Looks at a server that was started on the disk; `known` as of Recording.known. With `known_later`, it is also tried
    whether the loss of all that was acknowledged between the two would be noticed. `compare` says more of what is wrong."""
    verdict = Verdict()
    try:
        with server.connect(timeout=120) as session:
            if known_later:
                verdict.problems += _unnoticed(session, changers, all_writers, known_later)
            for changer in changers:
                _changer(session, engine, changer, known, verdict)
            _shared(session, engine, all_writers, known, verdict)
            if compare:
                verdict.problems += compare()
            left = _leftovers(server, session)
            # A .par without its table, and copies (.par~, .frm~): the next CREATE writes over it, DROP DATABASE removes it.
            harmless = [text for text in left if "/#sql" in text or text.endswith((".par", ".par~", ".frm~"))]
            verdict.left = len(harmless)
            verdict.problems += [text for text in left if text not in harmless]
            for changer in changers:
                verdict.problems += _new_statements(session, engine, changer)
    except (ConnectionLost, SqlError) as error:
        verdict.problems.append(f"the checks ended with {error!r}")
    return verdict


def _unnoticed(session, changers, all_writers, known_later):
    found = [f"the checks do not notice what is lost of client {changer.number}" for changer in changers
             if known_later[changer.number][0] and not changes.problems(changer.read(session), changer, known_later)
             and changer.read(session) != changer.history[-1].after]
    if not writers.problems(session, all_writers, known_later):
        found.append("the checks do not notice lost transactions")
    return found


def _changer(session, engine, changer, known, verdict):
    found = changer.read(session)
    verdict.problems += changes.problems(found, changer, known)
    for (database, name), shown in found.items():
        if name is None:
            continue
        verdict.tables += 1
        if shown.startswith("UNUSABLE"):
            verdict.unusable += 1
        elif database != writers.DATABASE and "SEQUENCE=1" not in shown:
            verdict.problems += _table_holds(session, engine, database, name)


def _shared(session, engine, all_writers, known, verdict):
    try:
        verdict.problems += writers.problems(session, all_writers, known)
        for name in writers.TABLES:
            verdict.problems += _table_holds(session, engine, writers.DATABASE, name)
    except SqlError as error:
        verdict.problems.append(f"the writers' tables: {error}")


def _table_holds(session, engine, database, name):
    try:
        said = engines.check_table(session, engine, f"`{database}`.`{name}`")
        differences = agreement.compare(session, database, name).differences
    except SqlError as error:
        said, differences = str(error), ""
    return [f"{database}.{name}: {said} {differences}"] if said or differences else []


def _leftovers(server, session):
    """Files in the databases' directories that belong to no table."""
    problems = []
    for (database,) in session.query("SHOW DATABASES").rows:
        directory = server.data_dir / database.decode()
        if database.decode() in _OWN_DATABASES or not directory.is_dir():
            continue
        tables = {row[0].decode() for row in session.query(f"SHOW TABLES FROM `{database.decode()}`").rows}
        for path in sorted(directory.iterdir()):
            if path.name != "db.opt" and path.name.split(".")[0].split("#P#")[0] not in tables:
                problems.append(f"left over: {database.decode()}/{path.name}")
    return problems


def _new_statements(session, engine, changer):
    """Every table takes a row and a change, every name that was lost is free, and all can be dropped."""
    problems = []
    there = changer.read(session)
    names = {key for statement in changer.history for key in statement.after} | set(there)
    for database, name in sorted(names, key=lambda key: (key[1] is not None, key)):
        if database == writers.DATABASE:
            continue
        try:
            if name is None:
                session.query(f"CREATE DATABASE IF NOT EXISTS {database}")
            elif (database, name) not in there:
                session.query(f"CREATE TABLE {database}.{name} (id INT PRIMARY KEY) ENGINE={engine}")
                session.query(f"INSERT INTO {database}.{name} VALUES (1)")
            elif "SEQUENCE=1" in there[database, name]:
                session.query(f"SELECT NEXT VALUE FOR {database}.{name}")
            else:
                _use(session, database, name, there[database, name])
        except SqlError as error:
            problems.append(f"a new statement, {database}.{name}: {error}")
    for database, name in sorted(names, key=str):
        if name is None:
            try:
                session.query("SET foreign_key_checks = 0")
                session.query(f"DROP DATABASE {database}")
            except SqlError as error:
                problems.append(f"DROP DATABASE {database}: {error}")
    return problems


def _use(session, database, name, shown):
    session.query(f"DELETE FROM {database}.{name} WHERE id = 1")
    if "VALUES LESS THAN" not in shown:
        session.query(f"INSERT IGNORE INTO {database}.{name} (id) VALUES (1)")
    session.query(f"ALTER TABLE {database}.{name} ADD COLUMN new_column INT")
