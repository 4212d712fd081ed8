"""Clients that write to two engines in one transaction, and what must hold of what they wrote."""

import threading

from sqlkit.client import ConnectionLost

DATABASE = "two_phase"
_XA_IDS = 1_000_000_000


def create(session):
    session.query(f"CREATE DATABASE {DATABASE}")
    for table, engine in (("pando", "PANDO"), ("innodb", "InnoDB")):
        session.query(f"CREATE TABLE {DATABASE}.{table} (id INT PRIMARY KEY, who INT, KEY who (who)) ENGINE={engine}")


class Client(threading.Thread):
    """A few transactions: in both engines, in one of them, as the user's XA."""

    def __init__(self, server, number, first_id, transactions):
        super().__init__(daemon=True)
        self._session = server.connect(DATABASE)
        self._number, self._ids = number, range(first_id, first_id + transactions)
        self.acknowledged, self.prepared, self.error = {}, set(), None

    def run(self):
        try:
            for number in self._ids:
                self._transaction(number)
        except ConnectionLost:
            pass
        except Exception as error:  # the main thread reports it
            self.error = error
        self._session.close()

    def _transaction(self, number):
        kind = number % 5
        tables = {3: ["pando"], 4: ["innodb"]}.get(kind, ["pando", "innodb"])
        if kind == 2:
            number += _XA_IDS
            self._insert(f"XA START '{number}'", tables, number)
            self._session.query(f"XA END '{number}'")
            self._session.query(f"XA PREPARE '{number}'")
            self.prepared.add(number)
            self._session.query(f"XA COMMIT '{number}'")
        else:
            self._insert("BEGIN", tables, number)
            self._session.query("COMMIT")
        self.acknowledged[number] = tables

    def _insert(self, begin, tables, number):
        self._session.query(begin)
        for table in tables:
            self._session.query(f"INSERT INTO {table} VALUES ({number}, {self._number})")


def resolve_xa(session, prepared):
    """As the user, who is the coordinator, would: what was acknowledged as prepared is committed, the rest is
    rolled back. Returns how many there were."""
    found = [row[3].decode() for row in session.query("XA RECOVER").rows]
    for xid in found:
        session.query(f"XA {'COMMIT' if int(xid) in prepared else 'ROLLBACK'} '{xid}'")
    return len(found)


def problems(session, acknowledged, prepared, has_binlog):
    """What does not hold: engines and binary log agree, and have what was acknowledged.

    Without the binary log only PANDO has to have it, and the engines need not agree: after a crash the
    server rolls back what it finds prepared, though tc.log says that it was committed, and InnoDB does not wait for
    its log when it commits (see mariadb/src/txn/two_phase.cc).
    """
    found = {table: {int(row[0]) for row in session.query(f"SELECT id FROM {DATABASE}.{table}").rows}
             for table in ("pando", "innodb")}
    wrong = []
    for table, ids in found.items():
        by_index = session.number(f"SELECT COUNT(*) FROM {DATABASE}.{table} FORCE INDEX (who) WHERE who >= 0")
        if by_index != len(ids):
            wrong.append(f"{table}: {len(ids)} rows, {by_index} by its index")
        lost = {number for number, tables in acknowledged.items() if table in tables} - ids
        if lost and (has_binlog or table == "pando"):
            wrong.append(f"{table} has lost acknowledged {sorted(lost)}")
        if prepared - ids and (has_binlog or table == "pando"):
            wrong.append(f"{table} has lost prepared {sorted(prepared - ids)}")
    if not has_binlog:
        return wrong
    both = {table: {number for number in ids if number % 5 < 3} for table, ids in found.items()}
    if both["pando"] != both["innodb"]:
        wrong.append(f"only one engine has {sorted(both['pando'] ^ both['innodb'])}")
    logged = {number for number in _logged(session) if number < _XA_IDS}
    stored = {number for number in found["pando"] | found["innodb"] if number < _XA_IDS}
    if logged != stored:
        wrong.append(f"only in the binary log: {sorted(logged - stored)}, only in tables: {sorted(stored - logged)}")
    return wrong


def _logged(session):
    """Ids of the transactions in the binary log that have their end there."""
    ids, group = set(), set()
    for log in session.query("SHOW BINARY LOGS").rows:
        for row in session.query(f"SHOW BINLOG EVENTS IN '{log[0].decode()}'").rows:
            kind, text = row[2].decode(), row[5].decode()
            if kind == "Gtid":
                group = set()
            elif kind == "Query" and "INSERT INTO" in text:
                group.add(int(text.split("VALUES (")[1].split(",")[0]))
            elif kind == "Xid":
                ids |= group
    return ids
