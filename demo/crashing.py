"""Step 4: kill -9 while clients insert single rows, then look for each acknowledged one."""

import threading

from loading import checksum
from sqlkit import agreement, engines, patience, report
from sqlkit.client import ConnectionLost

_CLIENTS, _LOAD_SECONDS = 4, 1.5


class _Client(threading.Thread):
    """Inserts rows one by one, each its own transaction; counts what the server acknowledged."""

    def __init__(self, server, side, number):
        super().__init__(daemon=True)
        self._session = server.connect(side.database)
        self.number, self.acknowledged, self.error = number, 0, None

    def run(self):
        try:
            while True:
                n = self.acknowledged + 1
                self._session.query(f"INSERT INTO acknowledged VALUES ({self.number}, {n}, {text(self.number, n)})")
                self.acknowledged = n
        except ConnectionLost:
            pass
        except Exception as error:  # whatever it is, the main thread reports it
            self.error = error
        finally:
            self._session.close()


def text(client, n):
    """The SQL expression for the third column of a row."""
    return f"REPEAT(MD5('{client}-{n}'), 8)"


def crash(server, side, checks):
    """Kill the server under load, restart it, compare with what was acknowledged."""
    report.heading(f"4. kill -9 while {_CLIENTS} clients insert into {side.engine}")
    with server.connect(side.database) as session:
        session.query(f"CREATE TABLE acknowledged (client INT, n INT, text VARCHAR(300), "
                      f"PRIMARY KEY (client, n), KEY (n), KEY (text)) ENGINE={side.engine}")
        before = checksum(session, "ontime")
    clients = [_Client(server, side, number) for number in range(_CLIENTS)]
    for client in clients:
        client.start()
    patience.pass_time(_LOAD_SECONDS, lambda: all(client.acknowledged or client.error for client in clients))
    server.kill()
    for client in clients:
        client.join()
    total = sum(client.acknowledged for client in clients)
    report.note(f"killed after {_LOAD_SECONDS} s and {total} acknowledged inserts")
    for client in clients:
        checks.check(client.error is None and client.acknowledged > 0,
                     f"client {client.number} inserted {client.acknowledged} rows until the kill", str(client.error))
    with report.Stopwatch() as watch:
        server.start()
    report.note(f"the server answers {report.seconds(watch.seconds)} after its restart")
    with server.connect(side.database) as session:
        _look(session, side, clients, total, checks)
        checks.check(checksum(session, "ontime") == before, "the flights are as they were before the crash")
        for table in ("acknowledged", "ontime"):
            said = engines.check_table(session, side.engine, table)
            checks.check(not said, f"CHECK TABLE {table} is content", said)


def _look(session, side, clients, total, checks):
    """Every acknowledged row is there as it was sent, and besides it at most the row on its way."""
    lost = wrong = 0
    for client in clients:
        rows = session.query(f"SELECT n, text = {text_of_row()} FROM acknowledged "
                             f"WHERE client = {client.number} ORDER BY n").rows
        numbers = [int(row[0]) for row in rows]
        lost += len(set(range(1, client.acknowledged + 1)) - set(numbers))
        wrong += sum(row[1] != b"1" for row in rows)
        wrong += sum(number > client.acknowledged + 1 for number in numbers)
    checks.check(lost == 0, f"every one of the {total} acknowledged rows is there", f"{lost} are lost")
    checks.check(wrong == 0, "and nothing that nobody wrote", f"{wrong} wrong rows")
    found = agreement.compare(session, side.database, "acknowledged")
    checks.check(not found.differences, "the table and its keys agree", str(found.differences))


def text_of_row():
    """What the third column of a row must be."""
    return "REPEAT(MD5(CONCAT(client, '-', n)), 8)"
