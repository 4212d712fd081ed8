"""As much of the kernel's FUSE protocol as serving a few files of fixed size takes, without a library.

    server = Server(mount_point, {"disk": file, ...})
    server.serve()                      # until the mount point is unmounted

A file has `size`, `read(offset, size)`, `write(offset, data)` and `sync()`. Each request is answered before the next one is
looked at, and nothing is written behind: so their order is that in which the kernel asked. Needs root. The structures are
those of the kernel's <linux/fuse.h>.
"""

import ctypes
import errno
import os
import stat
import struct

_LOOKUP, _FORGET, _GETATTR, _SETATTR = 1, 2, 3, 4
_OPEN, _READ, _WRITE, _STATFS, _RELEASE, _FSYNC = 14, 15, 16, 17, 18, 20
_FLUSH, _INIT, _OPENDIR, _READDIR, _RELEASEDIR = 25, 26, 27, 28, 29
_INTERRUPT, _DESTROY, _BATCH_FORGET = 36, 38, 42
_IN_HEADER = struct.Struct("<IIQQIIIHH")
_OUT_HEADER = struct.Struct("<IiQ")
_TRANSFER = struct.Struct("<QQIIQII")  # fh, offset, size, flags, owner of locks, flags of the file, padding
_MAJOR, _MINOR = 7, 31
_BIG_WRITES, _MAX_PAGES = 1 << 5, 1 << 22
_WRITE_MAX = 1 << 20
_PAGES_MAX = _WRITE_MAX // 4096
_OPEN_DIRECT = 1
_ROOT = 1
_NAMES_VALID_SECONDS = 3600
_MS_NOSUID, _MS_NODEV = 2, 4


class Server:
    """The mount is there as soon as this is made; nothing is answered until `serve`."""

    def __init__(self, mount_point, files):
        self._files = {number: (name, file) for number, (name, file) in enumerate(sorted(files.items()), _ROOT + 1)}
        self._device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"pando-disk", os.fsencode(mount_point), b"fuse", _MS_NOSUID | _MS_NODEV, options.encode()) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot mount: {os.strerror(number)}", str(mount_point))

    def serve(self):
        """Answer until the file system is unmounted."""
        while True:
            try:
                request = os.read(self._device, _WRITE_MAX + 4096)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):  # the request was taken back
                    continue
                raise
            self._answer(memoryview(request))

    def _answer(self, request):
        _, code, unique, node, *_ = _IN_HEADER.unpack_from(request)
        if code in (_FORGET, _BATCH_FORGET, _INTERRUPT):
            return
        handler = _HANDLERS.get(code)
        try:
            answer = handler(self, node, request[_IN_HEADER.size:]) if handler else None
            number = 0 if handler else errno.ENOSYS
        except OSError as error:
            answer, number = None, error.errno
        parts = [answer] if answer else []
        size = _OUT_HEADER.size + sum(len(part) for part in parts)
        try:
            os.writev(self._device, [_OUT_HEADER.pack(size, -number, unique), *parts])
        except OSError as error:
            if error.errno != errno.ENOENT:  # nobody waits for it any more
                raise

    def _file(self, node):
        if node not in self._files:
            raise OSError(errno.ENOENT, "no such file")
        return self._files[node][1]

    def _attributes(self, node):
        size = 0 if node == _ROOT else self._file(node).size
        mode = stat.S_IFDIR | 0o700 if node == _ROOT else stat.S_IFREG | 0o600
        return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    # --- one method for each kind of request --------------------------------------------------

    def _init(self, _node, body):
        _, minor, read_ahead, flags = struct.unpack_from("<IIII", body)
        return struct.pack("<IIIIHHIIHHI28x", _MAJOR, min(minor, _MINOR), read_ahead,
                           flags & (_BIG_WRITES | _MAX_PAGES), 16, 12, _WRITE_MAX, 1, _PAGES_MAX, 0, 0)

    def _lookup(self, _node, body):
        wanted = bytes(body).rstrip(b"\0").decode()
        for number, (name, _) in self._files.items():
            if name == wanted:
                valid = _NAMES_VALID_SECONDS
                return struct.pack("<QQQQII", number, 0, valid, valid, 0, 0) + self._attributes(number)
        raise OSError(errno.ENOENT, "no such file")

    def _getattr(self, node, _body):
        return struct.pack("<QII", _NAMES_VALID_SECONDS, 0, 0) + self._attributes(node)

    def _open(self, node, _body):
        return struct.pack("<QIi", 0, 0 if self._file(node).cached else _OPEN_DIRECT, 0)

    def _read(self, node, body):
        _, offset, size, *_ = _TRANSFER.unpack_from(body)
        return self._file(node).read(offset, size)

    def _write(self, node, body):
        _, offset, size, *_ = _TRANSFER.unpack_from(body)
        self._file(node).write(offset, body[_TRANSFER.size:_TRANSFER.size + size])
        return struct.pack("<II", size, 0)

    def _fsync(self, node, _body):
        self._file(node).sync()

    def _statfs(self, _node, _body):
        return struct.pack("<5Q4I24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0)

    def _nothing(self, _node, _body):
        return None


_HANDLERS = {
    _INIT: Server._init, _LOOKUP: Server._lookup, _GETATTR: Server._getattr, _SETATTR: Server._getattr,
    _OPEN: Server._open, _READ: Server._read, _WRITE: Server._write, _FSYNC: Server._fsync, _STATFS: Server._statfs,
    _FLUSH: Server._nothing, _RELEASE: Server._nothing, _DESTROY: Server._nothing,
}
