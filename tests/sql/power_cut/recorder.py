"""A disk that remembers: a process of its own that serves two files by FUSE, `disk` and `marks`.

    python3 -m power_cut.recorder MOUNT_POINT IMAGE LOG

What is written to `disk` goes to IMAGE and, in this order, to LOG, as do the flushes that the kernel asks for. What is
written to `marks` goes to LOG alone: it says what the writer knew by then. The log is a sequence of entries: kind (one byte),
offset, size, and the bytes written.
"""

import ctypes
import os
import signal
import struct
import sys

from power_cut.fuse import Server

WRITE, FLUSH, MARK = 1, 2, 3
ENTRY = struct.Struct("<BQI")
_MARKS_SIZE = 1 << 20
_PR_SET_PDEATHSIG = 1


class _Disk:
    cached = True

    def __init__(self, image, log):
        self._image, self._log = os.open(image, os.O_RDWR), log
        self.size = os.fstat(self._image).st_size

    def read(self, offset, size):
        return os.pread(self._image, size, offset)

    def write(self, offset, data):
        self._log.write(ENTRY.pack(WRITE, offset, len(data)))
        self._log.write(data)
        os.pwrite(self._image, data, offset)

    def sync(self):
        self._log.write(ENTRY.pack(FLUSH, 0, 0))


class _Marks:
    cached = False
    size = _MARKS_SIZE

    def __init__(self, log):
        self._log = log

    def read(self, _offset, _size):
        return b""

    def write(self, _offset, data):
        self._log.write(ENTRY.pack(MARK, 0, len(data)))
        self._log.write(data)

    def sync(self):
        pass


def main():
    mount_point, image, log_path = sys.argv[1:]
    # Without its test nobody would unmount it.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with open(log_path, "wb", buffering=1 << 20) as log:
        server = Server(mount_point, {"disk": _Disk(image, log), "marks": _Marks(log)})
        print("ready", flush=True)
        server.serve()


if __name__ == "__main__":
    main()
