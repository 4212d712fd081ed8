"""Reads on in a source's binary log, and knows which XA transactions are prepared there and have changed the table."""

import mmap
import pathlib
import re
import subprocess
import tempfile

from sqlkit.hosts import HostDown, HostError

from . import binlog
from .binlog import Place

_PART = re.compile(r"[Xx]'([0-9A-Fa-f]*)'|'([^']*)'")


def position(asking):
    """The end of a server's binary log. `asking` is a Host or a Session."""
    rows = asking.query("SHOW MASTER STATUS")
    if not rows:
        raise HostError(str(asking), 0, "it writes no binary log")
    return Place(rows[0]["File"], int(rows[0]["Position"]))


def prepared(asking):
    """The names of the XA transactions that a server has prepared."""
    found = set()
    for row in asking.query("XA RECOVER FORMAT='SQL'"):
        # 'ab','c' or, where it is not printable, X'6162',X'63'.
        parts = [bytes.fromhex(number) if number else text.encode() for number, text in _PART.findall(row["data"])]
        found.add(binlog.xid_text(*(parts + [b""] * 2)[:2], int(row["formatID"])))
    return found


class Reader:
    """`place` is where the next group begins. `open` has the changes of each prepared XA transaction, none for one that
    did not change the table; `ended` the names of those whose end was read.
    `limit` is how many seconds a file of the log may take."""

    def __init__(self, host, table, place):
        self._host, self._table, self.place, self.limit = host, table, place, None
        self.open, self.ended, self.format = {}, set(), None
        self._directory = tempfile.TemporaryDirectory(prefix="pando-move.")

    def close(self):
        self._directory.cleanup()

    def read_to(self, end):
        """Yields what is committed to the table, group by group, up to the end and not beyond. `place` moves on with what
        is taken; a group without changes of ours is yielded too."""
        while True:
            file, read = self.place.file, self.place
            for group in self._fetch():
                if group.kind == "end":
                    read = max(read, group.end)
                    break
                if group.end > end:
                    return
                self.place = group.end
                if group.kind == "prepare":
                    self.open[group.xid] = group.changes
                    self.ended.discard(group.xid)
                    group.changes = []
                elif group.kind != "plain":
                    changes = self.open.pop(group.xid, [])
                    self.ended.add(group.xid)
                    group.changes = changes if group.kind == "commit" else []
                yield group
            if file == end.file:
                self._must_reach(read, end)
                return
            self.place = Place(self._next(read), 4)

    def _fetch(self):
        """The groups from the place on to the end of its file."""
        target = pathlib.Path(self._directory.name)
        for old in target.iterdir():
            old.unlink()
        command = ["mariadb-binlog", f"--defaults-file={self._host.file}", f"--defaults-group-suffix=-{self._host.name}",
                   "--read-from-remote-server", "--raw", f"--start-position={self.place.offset}", f"--result-file={target}/",
                   self.place.file]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=self.limit)
        except subprocess.TimeoutExpired as error:
            raise HostDown(f"{self._host}: no binary log in {self.limit} s") from error
        if done.returncode != 0:
            raise HostDown(f"{self._host}: the binary log from {self.place} on: {done.stderr.strip()}")
        with open(target / self.place.file, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            events = binlog.groups(self.place.file, data, self._table)
            self.format = next(events)
            yield from events

    def _next(self, read):
        """The file that comes after one that was read."""
        files = {row["Log_name"]: int(row["File_size"]) for row in self._host.query("SHOW BINARY LOGS")}
        names = list(files)
        if read.file not in files or read.file == names[-1]:
            raise HostDown(f"{self._host}: no binary log follows {read.file}")
        self._must_reach(read, Place(read.file, files[read.file]))
        return names[names.index(read.file) + 1]

    def _must_reach(self, read, end):
        """What was fetched may have been cut off."""
        if read < end:
            raise HostDown(f"{self._host}: the binary log was read to {read}, not to {end}")
