"""File systems in images: as a loop mount, and on a disk that records."""

import contextlib
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

_UNMOUNT_TRIES = 50
_LEAST_MEGABYTES = 320
MARK = struct.Struct("<HIB")
BEGUN, DONE = 0, 1
# How each is made, and mounted: xfs does not mount two file systems of one identity, and a state has that of its start.
_MAKE = {
    "ext4": ("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-K"),
}
_MOUNT = {"ext4": "loop,noatime", "xfs": "loop,noatime,nouuid"}
FILE_SYSTEMS = tuple(_MAKE)


def why_not(file_system):
    """What this machine lacks for such disks; None where it has all."""
    if os.geteuid() != 0:
        return "it must mount file systems, and this is not root"
    for device in ("/dev/fuse", "/dev/loop-control"):
        try:
            os.close(os.open(device, os.O_RDWR))
        except OSError as error:
            return f"{device}: {error.strerror}"
    for tool in (_MAKE[file_system][0], "losetup", "mount"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    return _why_not_mounted(file_system)


def _why_not_mounted(file_system):
    """A module of the kernel may be missing, or containers may not be allowed to mount."""
    with tempfile.TemporaryDirectory(prefix="pando-power-cut.") as directory:
        image = pathlib.Path(directory) / "image"
        try:
            make(image, _LEAST_MEGABYTES, file_system)
            with mounted(image, pathlib.Path(directory) / "mount", file_system):
                return None
        except RuntimeError as error:
            return f"{file_system} on a loop device: {error}"


def make(image, megabytes, file_system):
    """A new file system in a new file."""
    with open(image, "wb") as file:
        file.truncate(megabytes << 20)
    _run(*_MAKE[file_system], image)


def copy(source, target):
    """Of an image, its holes left out."""
    _run("cp", "--sparse=always", source, target)


@contextlib.contextmanager
def mounted(image, directory, file_system, options=""):
    """The file system of an image at a directory, through a loop device that goes with the mount."""
    pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", file_system, "-o", _MOUNT[file_system] + (options and "," + options), image, directory)
    try:
        yield
    finally:
        _unmount(directory)


class RecordedDisk:
    """A disk in an image, each of its writes and flushes remembered in `log`."""

    def __init__(self, directory, image):
        self._directory, self._image = pathlib.Path(directory), image
        self.log = self._directory / "disk.log"
        self.disk = self._directory / "recorder" / "disk"
        self._process = self._marks = None
        self._lock = threading.Lock()

    def __enter__(self):
        mount_point = self._directory / "recorder"
        mount_point.mkdir()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "power_cut.recorder", mount_point, self._image, self.log],
            cwd=pathlib.Path(__file__).resolve().parents[1], stdout=subprocess.PIPE, start_new_session=True)
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError("the disk that records does not come")
        self._marks = os.open(mount_point / "marks", os.O_WRONLY)
        return self

    def __exit__(self, *_):
        os.close(self._marks)
        _unmount(self._directory / "recorder")
        self._process.wait(60)
        self._process.stdout.close()

    def mark(self, client, number, what):
        """Says, in the order of the disk's writes, that statement `number` of a client is BEGUN or DONE."""
        os.pwrite(self._marks, MARK.pack(client, number, what), 0)


def _unmount(directory):
    for _ in range(_UNMOUNT_TRIES):
        done = subprocess.run(["umount", directory], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        time.sleep(0.1)
    raise RuntimeError(done.stderr.strip())


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip()}")
