"""What must hold after a restart: compares the server's rows with the models of the clients."""

from crash.model import item_text
from crash.schema import ACCOUNTS, BALANCE, DATABASE, TABLES
from sqlkit import agreement, engines

_SHOWN_MAX = 3


def rows_hold(session, clients):
    """Problems found in the rows, as text; decides for each client whether its commit on the way when
    the server died is there (`in_flight` becomes part of the state or is dropped)."""
    problems = []
    for client in clients:
        problems += _client_holds(session, client)
    problems += _accounts_hold(session)
    return problems


def tables_hold(session, engine):
    """Problems that CHECK TABLE or a comparison of each index with its table finds."""
    problems = []
    for name in TABLES:
        said = engines.check_table(session, engine, name)
        if said:
            problems.append(f"CHECK TABLE {name}: {said}")
        problems += [f"{name}: {text}" for text in agreement.compare(session, DATABASE, name).differences]
    return problems


def _client_holds(session, client):
    found = _read(session, client.number)
    before = _expected(client.state)
    if found == before:
        client.in_flight = None
        return []
    if client.in_flight is not None:
        after_state = client.in_flight.applied_copy()
        if found == _expected(after_state):
            client.state, client.in_flight = after_state, None
            return []
    problems = [f"client {client.number}: rows are neither those of its last acknowledged commit nor those "
                "of the one on its way when the server died" if client.in_flight is not None else
                f"client {client.number}: rows are not those of its last acknowledged commit"]
    for name, expected_rows in before.items():
        problems += _describe(name, expected_rows, found[name])
    return problems


def _expected(state):
    return {"items": state.items, "parts": state.parts, "journal": state.journal}


def _read(session, number):
    """The client's rows in the shape of the model; a row with wrong content shows as such."""
    items = {}
    for item_id, version, tag, text in session.query(
            f"SELECT id, version, tag, text FROM items WHERE client = {number}").rows:
        item_id, version = int(item_id), int(version)
        right = text.decode() == item_text(number, item_id, version)
        items[item_id] = (version, None if tag is None else int(tag)) if right else ("wrong text", text)
    parts = {}
    for tag, n, pad in session.query(f"SELECT tag, n, pad FROM parts WHERE client = {number}").rows:
        tag, n = int(tag), int(n)
        parts.setdefault(tag, []).append(n if pad.decode() == item_text(number, tag, n)[:200] else "wrong text")
    counts = {tag: len(numbers) if sorted(numbers, key=str) == sorted(range(len(numbers)), key=str)
              else ("not 0 to n", numbers) for tag, numbers in parts.items()}
    journal = {int(row[0]): tuple(map(int, row[1:])) for row in session.query(
        f"SELECT seq, source, target, amount FROM journal WHERE client = {number}").rows}
    return {"items": items, "parts": counts, "journal": journal}


def _describe(name, expected, found):
    """The first few differences of one table."""
    different = [key for key in sorted(expected.keys() | found.keys()) if expected.get(key) != found.get(key)]
    lines = [f"  {name} {key}: acknowledged {expected.get(key)}, found {found.get(key)}"
             for key in different[:_SHOWN_MAX]]
    if len(different) > _SHOWN_MAX:
        lines.append(f"  {name}: and {len(different) - _SHOWN_MAX} more")
    return lines


def _accounts_hold(session):
    """Each account holds what its transfers in the journal add up to."""
    problems = []
    for table, column, sign in (("debtors", "source", -1), ("creditors", "target", 1)):
        moved = {int(row[0]): (int(row[1]), int(row[2])) for row in session.query(
            f"SELECT {column}, SUM(amount), COUNT(*) FROM journal GROUP BY {column}").rows}
        found = {int(row[0]): (int(row[1]), int(row[2])) for row in session.query(
            f"SELECT id, balance, moves FROM {table}").rows}
        expected = {number: (BALANCE + sign * moved.get(number, (0, 0))[0], moved.get(number, (0, 0))[1])
                    for number in range(ACCOUNTS)}
        if found != expected:
            problems += [f"{table} and journal disagree"] + _describe(table, expected, found)
    return problems
