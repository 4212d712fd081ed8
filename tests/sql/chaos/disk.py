"""The primary's data directory on a small file system, which can be full for a while."""

import shutil
import subprocess

from damage.full_disk import MemoryDisk

_ROOM, _MORE, _TRIES = 700 << 20, 64 << 10, 20


class SmallDisk(MemoryDisk):
    """After a failure its files are kept beside the data directory."""

    def __init__(self, server):
        super().__init__(server)
        self._server_dir, self._mounted_on = server.dir, server.data_dir

    def __enter__(self):
        super().__enter__()
        self.give_room()
        return self

    def __exit__(self, kind, *what):
        if kind is not None:
            self._server.kill()
            shutil.copytree(self._mounted_on, self._server_dir / "data.end")
        super().__exit__(kind, *what)

    def limit(self, room):
        """As much as is in use can be more a moment later: then it is asked for again."""
        for _ in range(_TRIES):
            try:
                return super().limit(room)
            except subprocess.CalledProcessError:
                room += _MORE
        return super().limit(room)

    def give_room(self):
        self.limit(_ROOM)
