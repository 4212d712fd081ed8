"""One lasting session with a server of an option file, through the client `mariadb`: for what has to be said in one session,
as LOCK TABLES and what is done under it. When the program dies, however it dies, the client reads the end of its input
and the server ends the session."""

import hashlib
import re
import select
import subprocess
import tempfile
import time

from .hosts import HostDown, HostError, quoted

_GONE = {2002, 2003, 2005, 2006, 2013, 2026}
_MARK = "~~ done ~~"
_LOCK_SECONDS = 20


class Session:
    """Statements one after the other. Any error ends it: HostDown, HostError."""

    def __init__(self, host, name=None, limit=None):
        """With a name: only one session of that name at a time, and what it has begun is over when the next one begins.
        `limit` is how many seconds an answer may take; None: as many as the server does."""
        self.host, self.limit = host, limit
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            ["mariadb", f"--defaults-file={host.file}", f"--defaults-group-suffix=-{host.name}", "--batch", "--unbuffered",
             "--skip-reconnect", "--connect-timeout=3", "--default-character-set=utf8mb4", "--max-allowed-packet=1G", "--binary-mode"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0)
        self._rest = b""
        if name and self.value(f"SELECT GET_LOCK({quoted(_lock_name(name))}, {_LOCK_SECONDS})") != "1":
            self.close()
            raise HostError(host.name, 0, f"another run works at {name}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._process.poll() is None:
            self._process.stdin.close()
            self._process.stdout.close()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                # A statement that waits for a lock: the server ends it when nobody listens.
                self._process.kill()
                self._process.wait()
        self._errors.close()

    def send(self, sql):
        """Statements whose answer is taken later by `receive`, or their text in part."""
        rest = memoryview(sql.encode() if isinstance(sql, str) else sql)
        try:
            while rest:
                rest = rest[self._process.stdin.write(rest):]
        except (BrokenPipeError, ValueError):
            self._fail()

    def receive(self):
        """The rows of the last statement sent that has any."""
        self.send(f"\nSELECT '{_MARK}' AS `{_MARK}`;\n")
        lines, deadline = [], None if self.limit is None else time.monotonic() + self.limit
        while lines[-2:] != [_MARK, _MARK]:
            lines.append(self._line(deadline))
        lines = lines[:-2]
        if not lines:
            return []
        names = lines[0].split("\t")
        return [dict(zip(names, map(_plain, line.split("\t")))) for line in lines[1:]]

    def query(self, sql):
        """The rows of one statement, each a dict of texts by column; NULL is the text NULL."""
        self.send(f"{sql};")
        return self.receive()

    def value(self, sql):
        rows = self.query(sql)
        return next(iter(rows[0].values())) if rows else None

    def _line(self, deadline):
        while b"\n" not in self._rest:
            wait = None if deadline is None else max(0, deadline - time.monotonic())
            if not select.select([self._process.stdout], [], [], wait)[0]:
                self._process.kill()
                raise HostDown(f"{self.host}: no answer in {self.limit} s")
            data = self._process.stdout.read(1 << 16)
            if not data:
                self._fail()
            self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode("utf-8", "replace")

    def _fail(self):
        self._process.wait()
        self._errors.seek(0)
        text = self._errors.read().decode("utf-8", "replace").strip() or "the connection ended"
        number = re.search(r"ERROR (\d+)", text)
        # Without the statement, which the client repeats.
        text = text[number.start():] if number else text
        if not number or int(number[1]) in _GONE:
            raise HostDown(f"{self.host}: {text}")
        raise HostError(self.host.name, int(number[1]), text)


def _lock_name(text):
    """At most 64 characters."""
    return text if len(text) <= 64 else hashlib.sha256(text.encode()).hexdigest()


_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", "\\0": "\0"}


def _plain(cell):
    return re.sub(r"\\[nt\\0]", lambda match: _ESCAPES[match[0]], cell)
