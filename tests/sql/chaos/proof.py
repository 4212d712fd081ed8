"""Damage done on purpose: would the checks have noticed?"""

from chaos import checks, schema
from chaos.worker import Wrong

# What is harmed -> the statement. Each is rolled back.
_DAMAGE = {
    "a lost document": "DELETE FROM documents WHERE client = 1 ORDER BY id LIMIT 1",
    "a changed value": "UPDATE documents SET body = CONCAT(body, 'x') WHERE client = 1 ORDER BY id LIMIT 1",
    "a row nobody wrote": "INSERT INTO people (client, id, email, number, note) VALUES (1, 2000000000, 'nobody', 2000000000, '')",
    "a lost child": "DELETE FROM children WHERE client = 1 ORDER BY id LIMIT 1",
    "half a transfer": "UPDATE accounts SET balance = balance + 1 WHERE id = 1",
    "a part of an XA transaction": "DELETE FROM ledger ORDER BY id LIMIT 1",
    "a lost row of a batch": "DELETE FROM loaded ORDER BY id LIMIT 1",
}


def unnoticed(server, workers):
    """Problems: kinds of damage that the checks do not notice. The clients rest."""
    writers = [worker for worker in workers if hasattr(worker, "moved")]
    problems = []
    with server.connect(schema.DATABASE) as session:
        session.query("SET sql_log_bin = 0")
        for name, sql in _DAMAGE.items():
            session.query("START TRANSACTION")
            changed = session.query(sql).affected
            # An empty table has nothing to lose.
            if changed and not checks.accounts_hold(session, writers) and not _is_noticed(session, workers):
                problems.append(f"the checks do not notice {name}")
            session.query("ROLLBACK")
    return problems


def _is_noticed(session, workers):
    try:
        for worker in workers:
            if hasattr(worker, "look"):
                worker.look(session)
    except Wrong:
        return True
    return False
