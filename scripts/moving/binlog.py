"""What a source's binary log says of one table, taken from the log's own bytes.

`mariadb-binlog --raw` fetches a file of the log; `groups` takes it apart into groups of events (a transaction, or one statement
that is none), drops the events of other tables, and lets the rest name another table. Why not replication, filtered to one
table: a target that is a shard itself has transactions of the front under the same XA names, and a history (GTID) of its own.
Here a transaction arrives when it is committed, as a plain one.

Layouts: https://mariadb.com/kb/en/replication-protocol/. A header is timestamp 4, type 1, server_id 4, size 4, end 4, flags 2.
"""

import base64
import dataclasses
import re
import struct
import zlib

_MAGIC, _HEADER_BYTES, _CRC_BYTES = b"\xfebin", 19, 4
_QUERY, _FORMAT, _XID, _TABLE_MAP, _XA_PREPARE = 2, 15, 16, 19, 38
_GTID, _QUERY_COMPRESSED = 162, 165
_ROWS = {23, 24, 25, 30, 31, 32}
# Those of log_bin_compress, which BINLOG does not take, and what they are: INSERT, UPDATE, DELETE of version 1 and 2.
_COMPRESSED_ROWS = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
_UPDATES, _VERSION_2 = {24, 31}, {30, 31, 32}
_STANDALONE = 1
_ARTIFICIAL = 0x20
_STATEMENT_ENDS = 1
_PART_BYTES = 1 << 20
_ROWS_FLAGS_AT = _HEADER_BYTES + 6
# These change no row of a table that they name.
_HARMLESS = re.compile(r"(?:/\*.*?\*/|\s)*(?:ANALYZE|OPTIMIZE|CHECK|REPAIR|FLUSH|GRANT|REVOKE|SAVEPOINT|CREATE\s+(?:OR\s+REPLACE\s+)?VIEW|DROP\s+VIEW)\b",
                       re.IGNORECASE | re.DOTALL)
_XA_END = re.compile(r"\s*XA\s+(COMMIT|ROLLBACK)\s+X'([0-9A-F]*)',\s*X'([0-9A-F]*)',\s*(\d+)", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, order=True)
class Place:
    """A position in a server's binary log."""
    file: str
    offset: int

    def __str__(self):
        return f"{self.file}:{self.offset}"


@dataclasses.dataclass
class Group:
    """A transaction, or what else the log writes as one. `changes` are the arguments of BINLOG statements, `xid` the
    name when it is a step of an XA transaction, `texts` are statements that name the table. The last one of a file, of kind
    end, says how far the file was read."""
    end: Place
    kind: str = "plain"     # plain, prepare, commit, rollback, end
    xid: str = ""
    changes: list = dataclasses.field(default_factory=list)
    texts: list = dataclasses.field(default_factory=list)


class NotReadable(Exception):
    """The log's bytes are not what this program knows."""


class Table:
    """The table that is looked for, and the name that its events are to have."""

    def __init__(self, database, name, new_name):
        self.key, self.new_name = (database.encode(), name.encode()), new_name.encode()
        self._database = database.encode()
        self._word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")

    def is_named_in(self, text, database):
        """Whether a statement may be about the table: it has the name, and is in the database or names it."""
        return bool(self._word.search(text)) and (database == self._database or self._database in text.encode())

    def renamed(self, event):
        """A table map of ours with the other name."""
        body = event[_HEADER_BYTES:]
        rest = body[8 + 2 + len(self.key[0]) + 2 + len(self.key[1]):]
        names = b"".join(bytes([len(name)]) + name + b"\0" for name in (self._database, self.new_name))
        return _sealed(event[:_HEADER_BYTES], body[:8] + names + rest)


def _sealed(header, body):
    """An event of this size."""
    return header[:9] + struct.pack("<I", len(header) + len(body)) + header[13:] + body


def _with_end_flag(event):
    body = bytearray(event[_HEADER_BYTES:])
    body[6] |= _STATEMENT_ENDS
    return _sealed(event[:_HEADER_BYTES], bytes(body))


def _without_checksums(format_event):
    """The format of a log whose events have none, and whether this one's have."""
    start = format_event[:-_CRC_BYTES - 1] + b"\0"
    return start + struct.pack("<I", zlib.crc32(start)), format_event[-_CRC_BYTES - 1] == 1


def _events(data):
    """Type, flags, end in the source's file, and bytes of each whole event."""
    if data[:len(_MAGIC)] != _MAGIC:
        raise NotReadable("no binary log")
    at = len(_MAGIC)
    while at + _HEADER_BYTES <= len(data):
        _, kind, _, size, end, flags = struct.unpack_from("<IBIIIH", data, at)
        if size < _HEADER_BYTES or at + size > len(data):
            return
        yield kind, flags, end, data[at:at + size]
        at += size


def _query(event):
    """The text of a statement, and the database that it is in."""
    body = event[_HEADER_BYTES:]
    size, start = body[8], 13 + struct.unpack_from("<H", body, 11)[0]
    database, text = body[start:start + size], body[start + size + 1:]
    if event[4] == _QUERY_COMPRESSED:
        text = _inflated(text)
    return text.decode("utf-8", "replace"), database


def _inflated(data):
    """The first byte says how many bytes of length follow."""
    return zlib.decompress(data[1 + (data[0] & 7):])


def _inflated_rows(event):
    """A compressed event of rows as a plain one: number 6, flags 2, in version 2 more, columns, which of them, rows."""
    kind, at = _COMPRESSED_ROWS[event[4]], _ROWS_FLAGS_AT + 2
    if kind in _VERSION_2:
        at += struct.unpack_from("<H", event, at)[0]
    columns, at = (event[at], at + 1) if event[at] < 0xFC else (struct.unpack_from("<H", event, at + 1)[0], at + 3)
    at += (columns + 7) // 8 * (2 if kind in _UPDATES else 1)
    header = event[:4] + bytes([kind]) + event[5:_HEADER_BYTES]
    return _sealed(header, event[_HEADER_BYTES:at] + _inflated(event[at:]))


def _prepared(event):
    """The name in an XA_PREPARE event, empty when it is a commit in one phase."""
    body = event[_HEADER_BYTES:]
    number, first, second = struct.unpack_from("<III", body, 1)
    data = body[13:13 + first + second]
    return "" if body[0] else xid_text(data[:first], data[first:], number)


def xid_text(gtrid, bqual, number):
    """One spelling of a name, that of scripts/spider.py."""
    return f"X'{gtrid.hex()}',X'{bqual.hex()}',{number}"


def _table_of(event):
    """Number, database and name of a table map."""
    body = event[_HEADER_BYTES:]
    number, size = int.from_bytes(body[:6], "little"), body[8]
    database, at = body[9:9 + size], 9 + size + 1
    return number, (database, body[at + 1:at + 1 + body[at]])


class _Rows:
    """Collects the row events of our table in one group, as arguments of BINLOG that a packet has room for."""

    def __init__(self, table):
        self._table, self._maps = table, {}
        self._map, self._events, self.changes = None, [], []

    def map(self, event):
        number, key = _table_of(event)
        self._maps[number] = key
        if key == self._table.key:
            self._map = self._table.renamed(event)

    def rows(self, event):
        number = int.from_bytes(event[_HEADER_BYTES:_HEADER_BYTES + 6], "little")
        if self._maps.get(number) == self._table.key:
            self._events.append(event)
        ends = struct.unpack_from("<H", event, _ROWS_FLAGS_AT)[0] & _STATEMENT_ENDS
        if self._events and (ends or sum(map(len, self._events)) >= _PART_BYTES):
            self._events[-1] = _with_end_flag(self._events[-1])
            self.changes.append(base64.b64encode(self._map + b"".join(self._events)).decode())
            self._events = []
        if ends:
            self._maps = {}


def groups(file, data, table):
    """The format event as an argument of BINLOG, then every whole group of a fetched file. Events lose their checksums, so
    that those of a log with them and of one without can be mixed."""
    events = _events(data)
    kind, _, _, format_event = next(events, (None, 0, 0, b""))
    if kind != _FORMAT:
        raise NotReadable(f"{file} does not begin with its format")
    format_event, checked = _without_checksums(format_event)
    yield base64.b64encode(format_event).decode()
    group = rows = None
    standalone, read = False, 0
    for kind, flags, end, event in events:
        if flags & _ARTIFICIAL or kind == _FORMAT:
            continue
        read = end
        if checked:
            event = _sealed(event[:_HEADER_BYTES], event[_HEADER_BYTES:-_CRC_BYTES])
        if kind == _GTID:
            group, rows = Group(Place(file, end)), _Rows(table)
            standalone = bool(event[_HEADER_BYTES + 12] & _STANDALONE)
            continue
        if group is None:
            continue
        done = False
        if kind == _TABLE_MAP:
            rows.map(event)
        elif kind in _ROWS:
            rows.rows(event)
        elif kind in _COMPRESSED_ROWS:
            rows.rows(_inflated_rows(event))
        elif kind in (_QUERY, _QUERY_COMPRESSED):
            done = _statement(group, *_query(event), table) or standalone
        elif kind == _XID:
            done = True
        elif kind == _XA_PREPARE:
            group.xid, done = _prepared(event), True
            group.kind = "prepare" if group.xid else "plain"
        if done:
            group.end, group.changes = Place(file, end), rows.changes
            yield group
            group = None
    yield Group(Place(file, read), "end")


def _statement(group, text, database, table):
    """Notes a statement; whether it ends its group."""
    ends = _XA_END.match(text)
    if ends:
        group.kind = ends[1].lower()
        group.xid = xid_text(bytes.fromhex(ends[2]), bytes.fromhex(ends[3]), int(ends[4]))
        return True
    if text in ("COMMIT", "ROLLBACK"):
        return True
    if table.is_named_in(text, database) and not _HARMLESS.match(text):
        group.texts.append(text)
    return False
