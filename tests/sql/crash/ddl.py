"""One more client of the crash test: it creates, fills, alters, renames, truncates and drops tables.

Each statement is atomic, so after a crash the tables are those after the last acknowledged statement, or
those after the one on its way. Nothing else may be left: no table's file without a table.
"""

import copy
import random
import threading

from crash.schema import DATABASE
from sqlkit import agreement, engines
from sqlkit.client import ConnectionLost

_TABLES_MAX = 6


class DdlClient:
    """Has the same life as `client.Client`. Its state: table -> (set of ids, number of extra columns)."""

    def __init__(self, engine, seed):
        self.number, self._engine = "ddl", engine
        self._random = random.Random(f"{seed}/ddl")
        self.state, self.in_flight = {}, None
        self._next_name = 0
        self.commits = self.rollbacks = self.deadlocks = 0
        self.error = None
        self._session = self._thread = None

    def start(self, server):
        self._session = server.connect(DATABASE)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def join(self):
        self._thread.join()
        self._session.close()

    def _work(self):
        try:
            while True:
                self._statement()
        except ConnectionLost:
            pass
        except Exception as error:  # the main thread reports it
            self.error = error

    def _statement(self):
        after = copy.deepcopy(self.state)
        names = list(after)
        steps = [self._insert, self._insert, self._rename, self._truncate, self._add_column, self._add_key]
        if len(names) >= _TABLES_MAX:
            steps += [self._drop] * 2
        else:
            steps += [self._create] * 2
        step = self._random.choice(steps) if names else self._create
        sql = step(after, self._random.choice(names) if names else None)
        self.in_flight = after
        self._session.query(sql)
        self.state, self.in_flight = after, None
        self.commits += 1

    # --- steps: change the state, give the statement ---------------------------------------

    def _create(self, after, _name):
        name = self._fresh_name()
        after[name] = (set(), 0)
        return (f"CREATE TABLE {name} (id INT PRIMARY KEY, text VARCHAR(100) NOT NULL, KEY text (text)) "
                f"ENGINE={self._engine}")

    def _fresh_name(self):
        self._next_name += 1
        return f"ddl_{self._next_name}"

    def _insert(self, after, name):
        ids, _ = after[name]
        first = max(ids, default=0) + 1
        new = range(first, first + self._random.choice([1, 10, 500]))
        ids.update(new)
        rows = ", ".join(f"({number}, MD5({number}))" for number in new)
        return f"INSERT INTO {name} (id, text) VALUES {rows}"

    def _rename(self, after, name):
        new = self._fresh_name()
        after[new] = after.pop(name)
        return f"RENAME TABLE {name} TO {new}"

    def _truncate(self, after, name):
        after[name] = (set(), after[name][1])
        return f"TRUNCATE TABLE {name}"

    def _add_column(self, after, name):
        ids, columns = after[name]
        after[name] = (ids, columns + 1)
        return f"ALTER TABLE {name} ADD COLUMN more_{columns} INT NOT NULL DEFAULT {columns}"

    def _add_key(self, _after, name):
        self._next_name += 1
        if self._random.random() < 0.5:
            return f"ALTER TABLE {name} FORCE"
        return f"ALTER TABLE {name} ADD KEY key_{self._next_name} (text, id)" if self._next_name % 5 == 0 \
            else f"ALTER TABLE {name} DROP KEY text, ADD KEY text (text)"

    def _drop(self, after, name):
        del after[name]
        return f"DROP TABLE {name}"


def holds(server, session, client, engine):
    """Problems found in the tables, as text; decides whether the statement on its way was done."""
    found, problems = _read(session)
    if found == client.in_flight:
        client.state = client.in_flight
    elif found != client.state:
        problems.append(f"ddl: the tables are {_short(found)}, acknowledged {_short(client.state)}, "
                        f"on its way {_short(client.in_flight)}")
    client.in_flight = None
    for name in found:
        said = engines.check_table(session, engine, name)
        differences = agreement.compare(session, DATABASE, name).differences
        if said or differences:
            problems.append(f"{name}: {said} {differences}")
    return problems + _leftovers(server, session)


def _read(session):
    found, problems = {}, []
    for (name,) in session.query("SHOW TABLES LIKE 'ddl\\_%'").rows:
        name = name.decode()
        rows = session.query(f"SELECT id, text = MD5(id) FROM {name}").rows
        if any(row[1] != b"1" for row in rows):
            problems.append(f"{name}: rows with wrong content")
        columns = session.number("SELECT COUNT(*) - 2 FROM information_schema.columns "
                                 f"WHERE table_schema = '{DATABASE}' AND table_name = '{name}'")
        found[name] = ({int(row[0]) for row in rows}, columns)
    return found, problems


def _leftovers(server, session):
    """Files in the database's directory that belong to no table."""
    tables = {row[0].decode() for row in session.query(f"SHOW TABLES FROM {DATABASE}").rows}
    names = {path.name.split(".")[0] for path in (server.data_dir / DATABASE).iterdir()} - {"db"}
    return [f"left over in the database's directory: {name}" for name in sorted(names - tables)]


def _short(state):
    if state is None:
        return None
    return {name: (f"{len(ids)} rows", columns) for name, (ids, columns) in sorted(state.items())}
