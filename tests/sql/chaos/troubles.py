"""What happens to the server: ends, and limits that come and go. Each trouble says what it needs, begins, and ends."""

import os
import pathlib
import resource
import time

from chaos import checks

_MIB = 1 << 20


class Trouble:
    """`begin` and `end` surround the time in which it is in force."""

    name = "none"

    def __init__(self, scene):
        self.scene = scene

    @classmethod
    def missing(cls, _scene):
        """What this machine lacks for it; empty where it can be had."""
        return ""

    def begin(self):
        """Returns what was done, as text."""
        raise NotImplementedError

    def end(self):
        pass


class Kill(Trouble):
    """kill -9 of the primary; it starts again, and at times is killed while it recovers."""

    name = "kill"

    def begin(self):
        self.scene.kill_primary()
        return "kill -9"

    def end(self):
        again = 0
        while self.scene.random.random() < 0.2:
            starting = self.scene.primary.server.begin_start()
            time.sleep(self.scene.random.uniform(0.05, 0.6))
            self.scene.primary.server.kill()
            starting.communicate()
            self.scene.primary.server.kill()
            again += 1
        self.scene.start_primary()
        return f"killed {again}x while it recovered" if again else ""


class Stop(Trouble):
    """SIGTERM; a clean end and a start."""

    name = "stop"

    def begin(self):
        self.scene.weather.ends_server()
        self.scene.primary.server.stop()
        return "SIGTERM"

    def end(self):
        self.scene.start_primary()


class ReplicaDies(Trouble):
    """kill -9 of the replica while it applies rows. Not while it applies DDL: when the server ends such a statement in its
    recovery, it writes it to the replica's own binary log as a transaction of the replica, and then refuses the primary's
    (gtid_strict_mode); in other places it does the statement a second time."""

    name = "replica"

    def begin(self):
        self._resting = self.scene.definers
        for worker in self._resting:
            worker.rest()
        try:
            checks.until_it_has_all(self.scene.primary, self.scene.replica, self.scene.primary.written())
            time.sleep(self.scene.random.uniform(0.1, 1))
            self.scene.replica_weather.ends_server()
            self.scene.replica.kill()
        except BaseException:
            self._go_on()
            raise
        return "kill -9 of the replica"

    def end(self):
        self.scene.replica.start()
        self.scene.replica.goes_on_following()
        self.scene.replica_weather.server_is_back()
        self._go_on()

    def _go_on(self):
        for worker in self._resting:
            worker.go_on()


class FewFiles(Trouble):
    """The process may open no, or hardly any, file more."""

    name = "files"

    def begin(self):
        self._pid = self.scene.primary.server.pid()
        self._before = resource.prlimit(self._pid, resource.RLIMIT_NOFILE)
        spare = self.scene.random.choice([-1000, 0, 1, 3, 10])
        limit = max(len(os.listdir(f"/proc/{self._pid}/fd")) + spare, 20)
        resource.prlimit(self._pid, resource.RLIMIT_NOFILE, (limit, self._before[1]))
        return f"limit of open files {limit}"

    def end(self):
        _restore_limit(self._pid, resource.RLIMIT_NOFILE, self._before)


class LittleMemory(Trouble):
    """The process may have hardly any address space more than it has."""

    name = "memory"

    def begin(self):
        self._pid = self.scene.primary.server.pid()
        self._before = resource.prlimit(self._pid, resource.RLIMIT_AS)
        spare = self.scene.random.choice([0, 0, 1, 8]) * _MIB
        resource.prlimit(self._pid, resource.RLIMIT_AS, (_address_space(self._pid) + spare, self._before[1]))
        return f"{spare // _MIB} MiB of address space left"

    def end(self):
        _restore_limit(self._pid, resource.RLIMIT_AS, self._before)


class FewThreads(Trouble):
    """No thread more: pids.max of a control group of its own (a limit of the user does not bind root)."""

    name = "threads"

    @classmethod
    def missing(cls, scene):
        return "" if scene.threads_group else "no control group with a limit of threads can be made"

    def begin(self):
        group = self.scene.threads_group
        (group / "cgroup.procs").write_text(str(self.scene.primary.server.pid()))
        limit = int((group / "pids.current").read_text()) + self.scene.random.choice([0, 0, 1, 2])
        (group / "pids.max").write_text(str(limit))
        return f"limit of threads {limit}"

    def end(self):
        (self.scene.threads_group / "pids.max").write_text("max")


class FullDisk(Trouble):
    """The data directory's file system has no, or hardly any, space."""

    name = "disk"

    @classmethod
    def missing(cls, scene):
        return "" if scene.disk else "without root no file system of a given size can be mounted"

    def begin(self):
        room = self.scene.random.choice([0, 0, 1, 4]) * _MIB
        self.scene.disk.limit(room)
        return f"{room // _MIB} MiB of disk left"

    def end(self):
        self.scene.disk.give_room()


ALL = [Kill, Stop, ReplicaDies, FewFiles, LittleMemory, FewThreads, FullDisk]


def _restore_limit(pid, which, limits):
    try:
        resource.prlimit(pid, which, limits)
    except ProcessLookupError:
        pass  # it was killed meanwhile; the next one has no limit


def _address_space(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


class ThreadsGroup:
    """`with ThreadsGroup() as path`: a control group below our own that can limit threads, None if there is none to be had."""

    def __enter__(self):
        self._path = None
        for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
            _, controllers, own = line.split(":", 2)
            if controllers not in ("pids", ""):
                continue
            root = pathlib.Path("/sys/fs/cgroup" + ("/pids" if controllers else ""))
            path = root / own.lstrip("/") / f"pando-chaos-{os.getpid()}"
            try:
                path.mkdir()
            except OSError:
                continue
            if (path / "pids.max").exists():
                self._path = path
                break
            path.rmdir()
        return self._path

    def __exit__(self, *_):
        if self._path is None:
            return
        # Whoever is in it still goes back to where we are.
        for pid in (self._path / "cgroup.procs").read_text().split():
            try:
                (self._path.parent / "cgroup.procs").write_text(pid)
            except OSError:
                pass
        for _ in range(100):
            try:
                self._path.rmdir()
                return
            except OSError:
                time.sleep(0.1)
