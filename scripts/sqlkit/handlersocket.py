"""A client for the server's plugin HandlerSocket: rows by key without SQL, over TCP or a unix socket.

    with Table("10.0.0.1", database="kv", table="t", columns=["k", "v"]) as table:
        table.put(b"key", b"value")
        table.get(b"key")                       # [b"key", b"value"] or None
        table.get_many([b"a", b"b"])            # one round trip

    Spread({"10.0.0.1": table1, "10.0.0.2": table2}).get(b"key")

The plugin has a port for reading (9998) and one for writing (9999). Requests are lines of fields between tabs; bytes below 0x10
are written as 0x01 and the byte plus 0x40, NULL is a field of one byte 0x00. Requests can be sent without waiting for answers.
"""

import hashlib
import re
import socket

READING, WRITING = 9998, 9999
_CONTROL = re.compile(rb"[\x00-\x0f]")
_ESCAPED = re.compile(rb"\x01(.)", re.S)


class Refused(Exception):
    """The server's answer is an error; 121 is a duplicate key."""


def encode(value):
    """A field of a request."""
    if value is None:
        return b"\0"
    if not isinstance(value, bytes):
        value = str(value).encode()
    return _CONTROL.sub(lambda byte: bytes((1, byte[0][0] + 0x40)), value)


def decode(field):
    """A field of an answer."""
    if field == b"\0":
        return None
    return _ESCAPED.sub(lambda pair: bytes((pair[1][0] - 0x40,)), field)


class _Channel:
    """One connection with one opened index."""

    def __init__(self, address, opening, secret):
        if "/" in address[0]:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(address[0])
        else:
            self._socket = socket.create_connection(address)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        if secret is not None:
            self.ask([[b"A", b"1", encode(secret)]])
        self.ask([[b"P", b"0"] + [encode(part) for part in opening]])

    def ask(self, requests):
        """The answers' fields, each without the status and the number of columns."""
        self._socket.sendall(b"".join(b"\t".join(fields) + b"\n" for fields in requests))
        answers = []
        for _ in requests:
            line = self._stream.readline()
            if not line.endswith(b"\n"):
                raise ConnectionError("the server closed the connection")
            fields = line[:-1].split(b"\t")
            answers.append(fields[2:] if fields[0] == b"0" else Refused(*map(bytes.decode, fields)))
        for answer in answers:
            if isinstance(answer, Refused):
                raise answer
        return answers

    def close(self):
        self._stream.close()
        self._socket.close()


class Table:
    """One table of one server, by an index of one column, the first of `columns`."""

    def __init__(self, host, reading=READING, writing=WRITING, database="test", table="t", columns=("k", "v"), index="PRIMARY", secret=None):
        opening = [database, table, index, ",".join(columns)]
        self._read = _Channel((host if isinstance(reading, int) else reading, reading), opening, secret)
        self._write = _Channel((host if isinstance(writing, int) else writing, writing), opening, secret)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._read.close()
        self._write.close()

    def get_many(self, keys):
        """A row, or None, for each key; one round trip."""
        answers = self._read.ask([[b"0", b"=", b"1", encode(key)] for key in keys])
        return [list(map(decode, fields)) if fields else None for fields in answers]

    def get(self, key):
        return self.get_many([key])[0]

    def insert_many(self, rows):
        """New rows, in one round trip. Refused (121) when a key is there; the other rows are inserted all the same."""
        self._write.ask([[b"0", b"+", str(len(row)).encode()] + [encode(value) for value in row] for row in rows])

    def put(self, key, *values):
        """Changes the row of a key or makes it. Whether it was there."""
        new = [encode(value) for value in (key, *values)]
        found = self._write.ask([[b"0", b"=", b"1", encode(key), b"1", b"0", b"U"] + new])[0]
        if found and found[0] != b"0":
            return True
        self._write.ask([[b"0", b"+", str(len(new)).encode()] + new])
        return False

    def delete(self, key):
        """Whether it was there."""
        return self._write.ask([[b"0", b"=", b"1", encode(key), b"1", b"0", b"D"]])[0] != [b"0"]


class Spread:
    """Tables of several servers: a key is on the server whose name hashes highest with it, so that a further server takes
    only its share of the keys, from all others alike."""

    def __init__(self, tables):
        self._tables = dict(tables)

    def table(self, key):
        key = key if isinstance(key, bytes) else str(key).encode()
        return self._tables[max(self._tables, key=lambda name: hashlib.blake2b(key, key=name.encode()[:64], digest_size=8).digest())]

    def get(self, key):
        return self.table(key).get(key)

    def put(self, key, *values):
        return self.table(key).put(key, *values)

    def delete(self, key):
        return self.table(key).delete(key)
