"""The copy: a dump of the table at a known place of the binary log, loaded on the target under another name.

The place has to split transactions cleanly. A plain one is in the dump or behind the place. One of XA is written to the binary log
when it is prepared and again when it ends, so one that has changed the table must not be open at the place: the dump would lack it, and
what is read from there would have only its end. So the dump begins under LOCK TABLES ... READ, which waits for transactions
of living sessions, and it is begun anew when one without a session (Spider gave it up) has changed the table.
"""

import re
import subprocess
import time

from sqlkit.hosts import HostDown, HostError
from sqlkit.sessions import Session

from .binlog import Place
from .fronts import Refused, named
from .reader import prepared

_PLACE = re.compile(rb"-- CHANGE MASTER TO MASTER_LOG_FILE='([^']+)', MASTER_LOG_POS=(\d+);")
_AGAIN_SECONDS, _SEND_BYTES = 0.5, 1 << 20
LOCK_WAIT_TIMEOUT = 1205


class Copy:
    """A dump of a table, begun at `place`."""

    def __init__(self, host, database, table):
        self.place = None
        self._host, self._table, self._head = host, table, []
        self._process = subprocess.Popen(
            ["mariadb-dump", f"--defaults-file={host.file}", f"--defaults-group-suffix=-{host.name}", "--single-transaction",
             "--master-data=2", "--hex-blob", "--no-create-info", "--skip-triggers", "--complete-insert", "--skip-add-locks",
             "--skip-disable-keys", "--skip-comments", "--default-character-set=utf8mb4", "--max-allowed-packet=1G", database, table],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def begin(self):
        """Waits until its snapshot is taken."""
        for line in self._process.stdout:
            self._head.append(line)
            match = _PLACE.match(line)
            if match:
                self.place = Place(match[1].decode(), int(match[2]))
                return
        self._failed()

    def cancel(self):
        self._process.kill()
        self._process.communicate()

    def load(self, session, name):
        """Everything goes to the target."""
        before = b"INSERT INTO `" + self._table.encode() + b"` "
        lines, size = self._head, 0
        for line in self._process.stdout:
            # Lines of rows begin with a parenthesis; texts have no line ends in them.
            if line.startswith(before):
                line = f"INSERT INTO {name} ".encode() + line[len(before):]
            lines.append(line)
            size += len(line)
            if size >= _SEND_BYTES:
                session.send(b"".join(lines))
                lines, size = [], 0
        if self._process.wait() != 0:
            self._failed()
        session.send(b"".join(lines))
        session.receive()

    def _failed(self):
        text = self._process.stderr.read().decode("utf-8", "replace").strip()
        self._process.wait()
        raise HostDown(f"{self._host}: the dump ended: {text}")


def begun(host, database, table, reader, lock_seconds, seconds):
    """A dump at a place with no open XA transaction that has changed the table. The reader comes to that place. Writers wait for
    `lock_seconds` at most; it is tried for `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        with Session(host) as session:
            session.query(f"SET lock_wait_timeout = {lock_seconds}")
            try:
                session.query(f"LOCK TABLES {named(database, table)} READ")
            except HostError as error:
                if error.number != LOCK_WAIT_TIMEOUT:
                    raise
                if time.monotonic() > deadline:
                    raise Refused(f"somebody uses the table for more than {lock_seconds} s ({error}); --resume tries again") from error
                time.sleep(_AGAIN_SECONDS)
                continue
            open_ones = prepared(session)
            reader.ended.clear()
            copy = Copy(host, database, table)
            try:
                copy.begin()
            except BaseException:
                copy.cancel()
                raise
        for _ in reader.read_to(copy.place):
            pass  # the dump has it
        # `open` no longer has those that ended in between.
        doubtful = {xid for xid in open_ones if reader.open.get(xid, True)} - reader.ended
        if not doubtful and not any(reader.open.values()):
            return copy
        copy.cancel()
        if time.monotonic() > deadline:
            raise Refused(f"{host}: transactions are prepared and nobody ends them: {', '.join(sorted(doubtful))}. "
                          "End them with scripts/spider.py resolve, or XA COMMIT or XA ROLLBACK")
        time.sleep(_AGAIN_SECONDS)
