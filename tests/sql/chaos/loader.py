"""A client that loads batches of rows: into an empty table, where the engine loads in bulk, and beside rows."""

import random
import zlib

from chaos.schema import BATCH_ROWS
from chaos.worker import Worker, Wrong
from sqlkit.client import SqlError

_BATCHES_MAX = 4
_SUM = "SUM(CRC32(CONCAT(id, ':', text)))"


class Loader(Worker):
    """It has the table `loaded` to itself, and knows which batches are in it; each is there as a whole or not at all."""

    def __init__(self, seed, weather, directory):
        super().__init__("loader", weather)
        self._random, self._directory = random.Random(f"{seed}/loader"), directory
        self._sums = {}            # batch -> sum over its rows, of all that were ever tried
        self._there = set()
        self._unknown = None       # what is there if the statement without an answer was done
        self._emptying = False     # a TRUNCATE has no answer: it may be done in the table and not in the binary log
        self._next = 0
        self.loads = 0

    def opened(self, session):
        self.look(session)

    def finish(self, session):
        self.look(session)

    def look(self, session):
        if self._emptying:
            self._empty(session)
        rows = self.query(session, f"SELECT batch, COUNT(*), {_SUM} FROM loaded GROUP BY batch").rows
        found = {int(batch): (int(count), int(total)) for batch, count, total in rows}
        for possible in (self._there, self._unknown):
            if possible is not None and found == {batch: (BATCH_ROWS, self._sums[batch]) for batch in possible}:
                self._there, self._unknown = possible, None
                return
        raise Wrong(f"batches {found}; acknowledged {sorted(self._there)}, on its way {self._unknown}")

    def step(self, session):
        if self._unknown is not None:
            self.look(session)
        if len(self._there) >= _BATCHES_MAX or self._there and self._random.random() < 0.2:
            self._remove(session)
            return
        self._next += 1
        batch = self._next
        if self._random.random() < 0.7:
            sql = f"LOAD DATA INFILE '{self._write(batch)}' INTO TABLE loaded FIELDS TERMINATED BY ','"
        else:
            self._sums[batch] = None
            sql = f"INSERT INTO loaded SELECT {batch}, seq, MD5(seq * {batch}) FROM seq_1_to_{BATCH_ROWS}"
        if self._sums[batch] is None:
            self._sums[batch] = self._sum_of_insert(session, batch)
        self._change(session, sql, self._there | {batch})
        self.loads += 1

    def _change(self, session, sql, after):
        self._unknown = after
        try:
            self.query(session, sql)
        except SqlError:
            self._unknown = None
            self.look(session)
            raise
        self._there, self._unknown = after, None

    def _remove(self, session):
        if self._random.random() < 0.5:
            batch = self._random.choice(sorted(self._there))
            self._change(session, f"DELETE FROM loaded WHERE batch = {batch}", self._there - {batch})
            return
        self._emptying = True
        self._empty(session)

    def _empty(self, session):
        """Can be repeated, on the replica too."""
        self.query(session, "TRUNCATE TABLE loaded")
        self._there, self._unknown, self._emptying = set(), None, False

    def _write(self, batch):
        """The file of a batch."""
        path = self._directory / "batch.csv"
        rows = [(number, self._random.randbytes(self._random.randint(4, 30)).hex()) for number in range(BATCH_ROWS)]
        path.write_text("".join(f"{batch},{number},{text}\n" for number, text in rows), encoding="ascii")
        self._sums[batch] = _sum(rows)
        return path

    def _sum_of_insert(self, session, batch):
        return session.number("SELECT SUM(CRC32(CONCAT(seq, ':', MD5(seq * "
                              f"{batch})))) FROM seq_1_to_{BATCH_ROWS}")


def _sum(rows):
    return sum(zlib.crc32(f"{number}:{text}".encode()) for number, text in rows)
