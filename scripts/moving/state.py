"""What a move remembers, in tables on the target: `pando_move.moves` with a row for each move, `pando_move.prepared` with
changes that wait for an XA COMMIT. They are of the table's engine, and the place in the source's binary log is written in the
transaction that applies the changes before it. So however often anything dies, each change is applied once."""

import dataclasses
import json

from sqlkit.hosts import quoted

from .binlog import Place

DATABASE = "pando_move"


@dataclasses.dataclass
class State:
    """One move: `name` is the table on the shards; `phase` is copy, follow, switch or differs; `fronts` the definitions
    of the fronts' tables by front, as JSON."""
    name: str
    source: str
    source_id: int
    front_table: str
    part: str
    phase: str
    log_file: str
    log_offset: int
    definition: str
    fronts: str

    @property
    def place(self):
        return Place(self.log_file, self.log_offset)

    def front_definition(self, front):
        """What the front's table was before the move; None for a front that is new."""
        return json.loads(self.fronts).get(str(front))


_COLUMNS = ("name VARCHAR(130) PRIMARY KEY, source VARCHAR(64) NOT NULL, source_id INT UNSIGNED NOT NULL, "
            "front_table VARCHAR(130) NOT NULL, part VARCHAR(64) NOT NULL, phase VARCHAR(10) NOT NULL, "
            "log_file VARCHAR(255) NOT NULL, log_offset BIGINT UNSIGNED NOT NULL, definition LONGTEXT NOT NULL, fronts LONGTEXT NOT NULL")


def create(session, engine):
    session.query(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    end = f"ENGINE={engine} DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
    session.query(f"CREATE TABLE IF NOT EXISTS {DATABASE}.moves ({_COLUMNS}) {end}")
    session.query(f"CREATE TABLE IF NOT EXISTS {DATABASE}.prepared (name VARCHAR(130), xid VARCHAR(300), "
                  f"changes LONGTEXT NOT NULL, PRIMARY KEY (name, xid)) {end}")


def _exists(session):
    return session.query(f"SELECT 1 FROM information_schema.tables WHERE table_schema='{DATABASE}' AND table_name='prepared'")


def load(session, name):
    """The move of a table, None when there is none."""
    return next(iter(_states(session, f"name={quoted(name)}")), None)


def find(session, front_table):
    """The moves of a front's table, or of a table without a front."""
    return _states(session, f"front_table={quoted(front_table)}")


def _states(session, where):
    if not _exists(session):
        return []
    return [State(**row | {"source_id": int(row["source_id"]), "log_offset": int(row["log_offset"])})
            for row in session.query(f"SELECT * FROM {DATABASE}.moves WHERE {where}")]


def begin(session, state):
    values = ", ".join(quoted(getattr(state, field.name)) for field in dataclasses.fields(state))
    session.query(f"INSERT INTO {DATABASE}.moves VALUES ({values})")


def place_sql(name, place):
    """The statement that notes how far the source's log is applied."""
    return f"UPDATE {DATABASE}.moves SET log_file={quoted(place.file)}, log_offset={place.offset} WHERE name={quoted(name)}"


def set_phase(session, state, phase):
    session.query(f"UPDATE {DATABASE}.moves SET phase={quoted(phase)} WHERE name={quoted(state.name)}")
    state.phase = phase


def restart(session, state, source_id, definition):
    """Back to a copy from the start."""
    session.query("BEGIN")
    session.query(f"UPDATE {DATABASE}.moves SET phase='copy', source_id={source_id}, definition={quoted(definition)} "
                  f"WHERE name={quoted(state.name)}")
    session.query(f"DELETE FROM {DATABASE}.prepared WHERE name={quoted(state.name)}")
    session.query("COMMIT")
    state.phase, state.source_id, state.definition = "copy", source_id, definition


def end(session, name):
    """Forget the move; the last step."""
    session.query("BEGIN")
    session.query(f"DELETE FROM {DATABASE}.prepared WHERE name={quoted(name)}")
    session.query(f"DELETE FROM {DATABASE}.moves WHERE name={quoted(name)}")
    session.query("COMMIT")


def prepared(session, name):
    """xid -> changes that were kept."""
    rows = session.query(f"SELECT xid, changes FROM {DATABASE}.prepared WHERE name={quoted(name)}")
    return {row["xid"]: json.loads(row["changes"]) for row in rows}


def prepared_sql(name, before, now):
    """Statements that keep the changes of prepared transactions: those of `now` that `before` (names) does not have, and
    none of the others."""
    for xid in before - set(now):
        yield f"DELETE FROM {DATABASE}.prepared WHERE name={quoted(name)} AND xid={quoted(xid)}"
    for xid in set(now) - before:
        yield f"INSERT INTO {DATABASE}.prepared VALUES ({quoted(name)}, {quoted(xid)}, {quoted(json.dumps(now[xid]))})"
