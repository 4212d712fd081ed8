"""What a disk that was recorded may hold after its power went at some moment.

What was written before the last flush is there. Of each later write a disk has kept all, nothing, or a part: it may write
in any order, and ends in the middle of a write, between two of its sectors.
"""

import os
import pathlib

from power_cut.disk import DONE, MARK, copy
from power_cut.recorder import ENTRY, FLUSH, WRITE

KEPT = ("all", "none", "some", "torn")
_SECTORS = (512, 4096)
_SHARES = (0.1, 0.5, 0.9)


class Recording:
    """The log of a recorded disk. A moment is a number of entries."""

    def __init__(self, log):
        self._path = pathlib.Path(log)
        self.entries = []
        self.marks = []
        with open(log, "rb") as file:
            at = 0
            while len(header := file.read(ENTRY.size)) == ENTRY.size:
                kind, offset, size = ENTRY.unpack(header)
                at += ENTRY.size
                if kind not in (WRITE, FLUSH):
                    self.marks.append((len(self.entries), *MARK.unpack(file.read(size))))
                else:
                    file.seek(size, os.SEEK_CUR)
                self.entries.append((kind, offset, size, at))
                at += size

    def known(self, moment):
        """Of each client: how many statements were done, and how many had begun."""
        done, begun = {}, {}
        for at, client, number, what in self.marks:
            if at >= moment:
                break
            (done if what == DONE else begun)[client] = number
        return {client: (done.get(client, 0), begun.get(client, 0)) for client in set(done) | set(begun)}

    def has_flushes(self):
        return any(entry[0] == FLUSH for entry in self.entries)


class States:
    """Makes images of one recording, at moments that only go forward."""

    def __init__(self, recording, start_image, directory, log):
        self._recording, self._flushed = recording, 0
        self._durable = pathlib.Path(directory) / "durable"
        copy(start_image, self._durable)
        self._log = open(log, "rb")  # pylint: disable=consider-using-with
        self._disk = os.open(self._durable, os.O_RDWR)

    def close(self):
        os.close(self._disk)
        self._log.close()
        self._durable.unlink()

    def make(self, moment, kept, rng, image):
        """What the disk may hold at this moment; says how many of the writes in doubt it has, and of how many."""
        entries = self._recording.entries
        flush = max((at for at in range(self._flushed, moment) if entries[at][0] == FLUSH), default=self._flushed)
        for at in range(self._flushed, flush):
            if entries[at][0] == WRITE:
                os.pwrite(self._disk, self._data(entries[at]), entries[at][1])
        self._flushed = flush
        copy(self._durable, image)
        doubtful = [entry for entry in entries[flush:moment] if entry[0] == WRITE]
        chosen = _choose(doubtful, kept, rng)
        with open(image, "r+b", buffering=0) as file:
            for entry in chosen:
                os.pwrite(file.fileno(), self._data(entry), entry[1])
            if kept == "torn" and doubtful:
                self._tear(file.fileno(), rng.choice(doubtful), rng)
        return len(chosen), len(doubtful)

    def _data(self, entry):
        return os.pread(self._log.fileno(), entry[2], entry[3])

    def _tear(self, file, entry, rng):
        data, sector = self._data(entry), rng.choice(_SECTORS)
        sectors = range(0, len(data), sector)
        if rng.random() < 0.5:
            kept = sectors[:rng.randrange(len(sectors))]
        else:
            kept = [at for at in sectors if rng.random() < 0.5]
        for at in kept:
            os.pwrite(file, data[at:at + sector], entry[1] + at)


def _choose(doubtful, kept, rng):
    if kept == "all":
        return doubtful
    if kept == "none":
        return []
    share = rng.choice(_SHARES)
    return [entry for entry in doubtful if rng.random() < share]
