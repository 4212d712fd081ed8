"""A small blocking client for MariaDB's wire protocol: text queries over a unix socket, user root, no
password. It exists because the tests need what the command-line client hides in its output: the
error number of each statement, and whether a commit was acknowledged before a server died.

The layout of the packets is that of https://mariadb.com/kb/en/clientserver-protocol/.
"""

import select
import socket
import struct

_LONG_PASSWORD, _LONG_FLAG, _CONNECT_WITH_DB = 0x1, 0x4, 0x8
_PROTOCOL_41, _TRANSACTIONS, _SECURE_CONNECTION = 0x200, 0x2000, 0x8000
_MULTI_RESULTS, _PLUGIN_AUTH = 0x20000, 0x80000
_CAPABILITIES = (_LONG_PASSWORD | _LONG_FLAG | _PROTOCOL_41 | _TRANSACTIONS | _SECURE_CONNECTION
                 | _MULTI_RESULTS | _PLUGIN_AUTH)
_CHARSET_UTF8MB4_GENERAL_CI = 45
_PACKET_BYTES_MAX = 0xFFFFFF
_MORE_RESULTS = 0x8
_TYPE_AT = -6  # of a column's description


class SqlError(Exception):
    """The server refused a statement; the connection goes on."""

    def __init__(self, number, state, message):
        super().__init__(f"{number} ({state}): {message}")
        self.number, self.state, self.message = number, state, message


class ConnectionLost(Exception):
    """The server went away. Whether the statement on its way was done is unknown."""


class Result:
    """The answer to one statement; `rows` holds tuples of bytes or None, `types` the protocol's numbers of the columns' types."""

    __slots__ = ("columns", "rows", "affected", "insert_id", "warnings", "status", "types")

    def __init__(self, columns=(), rows=(), affected=0, insert_id=0, warnings=0, status=0, types=()):
        self.columns, self.rows, self.types = columns, rows, types
        self.affected, self.insert_id, self.warnings, self.status = affected, insert_id, warnings, status


class Connection:
    """One session. Not for use by several threads at once."""

    def __init__(self, path, database=None, timeout=None):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(path)
            self._reader = self._socket.makefile("rb", buffering=1 << 16)
            self._sequence = 0
            self.thread_id = self._log_in(database)
        except OSError as error:
            self._socket.close()
            raise ConnectionLost(str(error)) from error
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self._sequence = 0
            self._write(b"\x01")
        except ConnectionLost:
            pass
        try:
            self._socket.close()
            self._reader.close()
        except OSError:
            pass

    # --- statements -----------------------------------------------------------------------

    def query(self, sql):
        """Run one statement. Raises SqlError, ConnectionLost."""
        self.send(sql)
        return self.receive()

    def send(self, sql):
        """First half of `query`, for callers that do something else while the server works."""
        if isinstance(sql, str):
            sql = sql.encode("utf-8", "surrogateescape")
        self._sequence = 0
        self._write(b"\x03" + sql)

    def has_answer(self, seconds=0):
        """Whether the answer to the statement sent last has begun to come, after so many seconds at most."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def receive(self):
        """Second half of `query`: the answer to the statement sent last. Of several results, as CALL gives them, the first."""
        result = self._receive_one()
        more = result
        while more.status & _MORE_RESULTS:
            more = self._receive_one()
        return result

    def _receive_one(self):
        packet = self._read()
        if packet[0] == 0x00:
            return _ok(packet)
        if packet[0] == 0xFF:
            raise _error(packet)
        if packet[0] == 0xFB:
            raise AssertionError("LOAD DATA LOCAL is not for this client")
        return self._read_rows(_length(packet, 0)[0])

    def value(self, sql):
        """The only cell of a result, as text; None for NULL or no row."""
        rows = self.query(sql).rows
        if not rows or rows[0][0] is None:
            return None
        return rows[0][0].decode("utf-8", "replace")

    def number(self, sql):
        """The only cell of a result as an integer; NULL counts as 0."""
        return int(self.value(sql) or 0)

    # --- packets --------------------------------------------------------------------------

    def _log_in(self, database):
        greeting = self._read()
        if greeting[0] == 0xFF:
            raise _error(greeting)
        end = greeting.index(b"\0", 1)
        thread_id, = struct.unpack_from("<I", greeting, end + 1)
        capabilities = _CAPABILITIES | (_CONNECT_WITH_DB if database else 0)
        answer = struct.pack("<IIB23x", capabilities, 1 << 24, _CHARSET_UTF8MB4_GENERAL_CI) + b"root\0\0"
        if database:
            answer += database.encode() + b"\0"
        self._write(answer + b"mysql_native_password\0")
        packet = self._read()
        if packet[0] == 0xFE:  # asked for another method: an empty password has an empty answer
            self._write(b"")
            packet = self._read()
        if packet[0] == 0xFF:
            raise _error(packet)
        return thread_id

    def _read_rows(self, column_count):
        described = [self._read() for _ in range(column_count)]
        columns, types = [_column_name(packet) for packet in described], [packet[_TYPE_AT] for packet in described]
        self._read()  # end of the columns
        rows = []
        while True:
            packet = self._read()
            if packet[0] == 0xFE and len(packet) < 9:
                warnings, status = struct.unpack_from("<HH", packet, 1)
                return Result(columns, rows, len(rows), 0, warnings, status, types)
            if packet[0] == 0xFF:
                raise _error(packet)
            rows.append(_cells(packet, column_count))

    def _read(self):
        parts = []
        while True:
            header = self._read_bytes(4)
            size = header[0] | header[1] << 8 | header[2] << 16
            self._sequence = (header[3] + 1) & 0xFF
            parts.append(self._read_bytes(size))
            if size < _PACKET_BYTES_MAX:
                break
        packet = parts[0] if len(parts) == 1 else b"".join(parts)
        if not packet:
            raise ConnectionLost("empty packet")
        return packet

    def _read_bytes(self, size):
        try:
            data = self._reader.read(size)
        except (OSError, ValueError) as error:
            raise ConnectionLost(str(error)) from error
        if data is None or len(data) < size:
            raise ConnectionLost("the server closed the connection")
        return data

    def _write(self, payload):
        try:
            while True:
                part, payload = payload[:_PACKET_BYTES_MAX], payload[_PACKET_BYTES_MAX:]
                header = struct.pack("<I", len(part))[:3] + bytes([self._sequence])
                self._sequence = (self._sequence + 1) & 0xFF
                self._socket.sendall(header + part)
                if len(part) < _PACKET_BYTES_MAX:
                    return
        except OSError as error:
            raise ConnectionLost(str(error)) from error


def _length(packet, at):
    """A length-encoded integer; None for NULL. Returns it and the place after it."""
    first = packet[at]
    if first < 0xFB:
        return first, at + 1
    if first == 0xFB:
        return None, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(packet[at + 1:at + 1 + size], "little"), at + 1 + size


def _cells(packet, count):
    cells, at = [], 0
    for _ in range(count):
        size, at = _length(packet, at)
        if size is None:
            cells.append(None)
        else:
            cells.append(packet[at:at + size])
            at += size
    return tuple(cells)


def _column_name(packet):
    return _cells(packet, 5)[4].decode("utf-8", "replace")


def _ok(packet):
    affected, at = _length(packet, 1)
    insert_id, at = _length(packet, at)
    status, warnings = struct.unpack_from("<HH", packet, at)
    return Result((), (), affected, insert_id, warnings, status)


def _error(packet):
    number, = struct.unpack_from("<H", packet, 1)
    text = packet[3:].decode("utf-8", "replace")
    if text.startswith("#"):
        return SqlError(number, text[1:6], text[6:])
    return SqlError(number, "HY000", text)
