"""The servers, the load and the troubles of a run, and one round of it."""

import collections
import time

from chaos import checks, schema, troubles
from chaos.rot import Rot
from chaos.weather import Weather
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.member import NotReplicating
from sqlkit.server import ServerFailed

_CALM_SECONDS, _TROUBLE_SECONDS = (0.5, 3.0), (1.0, 5.0)
_TOGETHER_SHARE = 0.25
# After a trouble every client must get something done again in this time.
_WELL_AGAIN_SECONDS = 180
_KINDS = [*troubles.ALL, Rot]
_MEMORY_WORDS = ("memory allocation of", "Out of memory", "out of memory", "Cannot allocate memory")


class Scene:
    """What the troubles act on."""

    def __init__(self, primary, replica, engine, rng):
        self.primary, self.replica, self.engine, self.random = primary, replica, engine, rng
        self.disk = self.threads_group = None
        self.weather, self.replica_weather = Weather(primary.server), Weather(replica.server)
        self.workers, self.readers = [], []     # of the primary, of the replica
        self.definers = []                      # those of the workers with DDL
        self.problems = []
        self.had = collections.Counter()        # troubles
        self.deaths = 0                         # for want of memory
        self.options = lambda: primary.server.options
        self._log_since = [0, 0]

    # --- the primary ----------------------------------------------------------------------

    def kill_primary(self):
        self.weather.ends_server()
        self.primary.server.kill()

    def start_primary(self):
        self.primary.server.start(self.options())
        self.weather.server_is_back()

    def _primary_runs(self):
        try:
            with open(f"/proc/{self.primary.server.pid()}/stat", encoding="ascii") as file:
                return file.read().rpartition(")")[2].split()[0] not in "ZX"
        except FileNotFoundError:
            return False

    def _look_after_primary(self, in_force):
        """It may die of nothing but us, and for want of memory if it says so."""
        if self.weather.down or self._primary_runs():
            return
        said = self.primary.server.log_text(self._log_since[0])
        if "memory" in in_force and any(word in said for word in _MEMORY_WORDS):
            self.deaths += 1
            self.weather.ends_server()
            self.primary.server.kill()
            self.start_primary()
        else:
            self.problems.append(f"the primary died by itself ({', '.join(in_force) or 'calm'})")

    # --- time -----------------------------------------------------------------------------

    def is_wrong(self):
        self.problems += [worker.problem for worker in self.workers + self.readers
                          if worker.problem and worker.problem not in self.problems]
        return bool(self.problems)

    def _pass_time(self, seconds, in_force=()):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.is_wrong():
            self._look_after_primary(in_force)
            time.sleep(0.1)

    def _until_well(self, in_force):
        """All clients get something done that began after the trouble."""
        wanted = {worker: worker.done + 2 for worker in self.workers}
        begin = time.monotonic()
        while not self.is_wrong():
            self._look_after_primary(in_force)
            late = [worker for worker, done in wanted.items() if worker.done < done]
            seconds = time.monotonic() - begin
            if not late:
                return seconds
            if seconds > _WELL_AGAIN_SECONDS:
                self.problems += [f"{_WELL_AGAIN_SECONDS} s after {', '.join(in_force)}: {worker.name} gets nothing done; in: "
                                  f"{worker.doing}; last refusal: {worker.last_refusal}" for worker in late]
                self._testify()
            time.sleep(0.05)
        return time.monotonic() - begin

    def _testify(self):
        """What the primary says it is doing, for whoever has to find out why it does nothing."""
        try:
            with self.primary.server.connect(timeout=20) as session:
                for sql in ("SHOW FULL PROCESSLIST", "SELECT * FROM information_schema.PANDO_LOCK_WAITS", "XA RECOVER"):
                    for row in session.query(sql).rows:
                        print("    ", *[cell.decode("utf-8", "replace")[:300] for cell in row if cell is not None], flush=True)
        except (SqlError, ConnectionLost) as error:
            print(f"     {error}", flush=True)

    # --- rounds ---------------------------------------------------------------------------

    def possible(self):
        """Kinds of trouble that can be had here; says what is missing."""
        kinds = []
        for kind in _KINDS:
            missing = kind.missing(self)
            if missing:
                print(f"without the trouble '{kind.name}': {missing}", flush=True)
            else:
                kinds.append(kind)
        return kinds

    def trouble(self, kinds):
        """One trouble, or two at once, from its beginning until all is well again."""
        first = kinds.pop()
        both = [first(self)]
        if first.begin in (troubles.FewFiles.begin, troubles.FewThreads.begin, troubles.FullDisk.begin) and \
                self.random.random() < _TOGETHER_SHARE:
            both.append(troubles.Kill(self))
        names = [trouble.name for trouble in both]
        told = []
        for trouble in both:
            self.weather.begins(trouble.name)
            told.append(trouble.begin())
            self.had[trouble.name] += 1
            self._pass_time(self.random.uniform(*_TROUBLE_SECONDS) if not self.weather.down else 0.3, names)
        for trouble in both:
            told.append(trouble.end())
        seconds = self._until_well(names)
        for name in names:
            self.weather.ends(name)
        print(f"    {'; '.join(filter(None, told))}: well again after {seconds:.1f} s" + (" WRONG" if self.is_wrong() else ""), flush=True)

    def round(self, kinds):
        """Load with these troubles one after the other, then the checks."""
        everybody, deaths_before = self.workers + self.readers, self.deaths
        self._log_since = [self.primary.server.log_size(), self.replica.server.log_size()]
        for worker in everybody:
            worker.start()
        try:
            while kinds and not self.is_wrong():
                self._pass_time(self.random.uniform(*_CALM_SECONDS))
                if not self.is_wrong():
                    self.trouble(kinds)
        except (ServerFailed, NotReplicating) as error:
            self.problems.append(str(error))
        for worker in everybody:
            worker.ask_to_stop()
        if self.is_wrong():
            print("\n".join(self.problems), flush=True)
        for worker in everybody:
            worker.join(20 if self.is_wrong() else None)
        if not self.is_wrong():
            self._check(deaths_before)
        return self.problems

    def _check(self, deaths_before):
        writers = [worker for worker in self.workers if hasattr(worker, "moved")]
        with self.primary.connect(schema.DATABASE) as session:
            self.problems += checks.accounts_hold(session, writers)
        self.problems += checks.tables_hold(self.primary, self.engine)
        problems, seconds = checks.replica_is_the_same(self.primary, self.replica)
        self.problems += problems
        if not problems:
            self.problems += checks.tables_hold(self.replica, self.engine)
            checks.forget_binary_logs(self.primary)
        self.problems += checks.log_holds(self.primary, self._log_since[0], self.deaths - deaths_before)
        self.problems += checks.log_holds(self.replica, self._log_since[1])
        print(f"    the replica had all after {seconds:.1f} s", flush=True)
