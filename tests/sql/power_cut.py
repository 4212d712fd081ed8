#!/usr/bin/env python3
"""The power of a server's disk goes at random moments, in the midst of DDL and transactions.

    tests/sql/power_cut.sh [--states 12] [--per-recording 25] [--seconds 8] [--seed N] [--engine PANDO] [--all-kinds]
                           [--file-system ext4|xfs] [--binary-log] [--cut-again]

The server works on a file system on a disk that records its writes and flushes (a loop mount over FUSE), and marks of
what was acknowledged by then. Clients change tables of their own by statements of every kind, one alters tables to which
five others write. From the recording come states of the disk as a power cut at some moment may leave them: what was flushed is
there, and of the writes since all, none, some, and one torn. A server starts on each. Then every acknowledged statement is there,
one on its way is there as a whole or not at all, every table opens, its keys agree with its rows, nothing is left over, and new
statements work. With --cut-again the recovery of each state is recorded, too, and cut at some moment; then the next one must end it.
With --binary-log the server keeps one, synced, and what it says, carried out from the start on, makes the same tables.

It needs root, /dev/fuse and loop devices; where they are missing it says so and ends well. --states 500 is the full run.
"""

import argparse
import collections
import contextlib
import pathlib
import random
import re
import shutil
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from power_cut import binlog, changes, disk, states, verify, writers
from sqlkit import engines, program
from sqlkit.server import PrivateServer, ServerFailed

_DISK_MEGABYTES = 512
_MEMORY = pathlib.Path("/dev/shm")
_ROOM_NEEDED = 3 << 30
_LOAD_ROWS = 6000
_CHANGERS, _WRITERS = 3, 5
_PROBLEMS_SHOWN = 12


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=12)
    parser.add_argument("--per-recording", type=int, default=25, help="states of one recording")
    parser.add_argument("--seconds", type=float, default=8, help="how long a recording is")
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--all-kinds", action="store_true",
                        help="also statements of which it is known that a power cut may leave a part (docs/decisions/0015)")
    parser.add_argument("--file-system", choices=disk.FILE_SYSTEMS, default="ext4")
    parser.add_argument("--binary-log", action="store_true", help="with a binary log, which agrees with the tables")
    parser.add_argument("--cut-again", action="store_true", help="the power goes again while the server recovers")
    parser.add_argument("--keep", action="store_true", help="keep of each state that is wrong its disk, the error log and who did what by then")
    parser.add_argument("--go-on", action="store_true", help="do not end with the first state that is wrong")
    return parser.parse_args()


def _options(engine, rng):
    options = engines.options(engine, 32) + ["--performance-schema=OFF", "--aria-pagecache-buffer-size=2M",
                                             "--skip-grant-tables", "--default-storage-engine=" + engine]
    if engine.upper() == "INNODB":
        options += ["--innodb-log-file-size=8M"]
    if engine.upper() == "PANDO":
        options += ["--skip-innodb", f"--pando-checkpoint-period={rng.choice([1, 2, 30])}",
                    f"--pando-log-file-size={rng.choice([1, 4, 16])}M"]
    return options


def _template():
    """A data directory as scripts/private-server.sh copies it for each new server."""
    def newest():
        found = [path for path in (ROOT / "build").glob("datadir-*") if path.is_dir() and path.suffix != ".partial"]
        return max(found, key=lambda path: path.stat().st_mtime, default=None)
    if newest() is None:
        with PrivateServer("template", plugin=False):
            pass
    return newest()


class _Run:
    """One recording and its states."""

    def __init__(self, server, directory, seed, arguments):
        engine, all_kinds = arguments.engine, arguments.all_kinds
        self._server, self._directory, self._engine = server, pathlib.Path(directory), engine
        self._file_system, self._cut_again, self._binary_log = arguments.file_system, arguments.cut_again, arguments.binary_log
        self._keep = arguments.keep
        self._rng = random.Random(seed)
        self._load_file = self._directory / "rows"
        self._load_file.write_text("".join(f"{number}\n" for number in range(_LOAD_ROWS)))
        self.start_image = self._directory / "start.image"
        self._writers = [writers.Writer(number, seed) for number in range(_WRITERS)]
        self._changers = [changes.Changer(100 + number, engine, seed, self._load_file, all_kinds) for number in range(_CHANGERS)]
        self._changers.append(changes.SharedChanger(200, engine, seed, None, all_kinds))
        self._first_options = self._options = _options(engine, self._rng)
        if arguments.binary_log:
            self._options = self._first_options + binlog.options(self._rng)
        self.recording = None

    # --- the recording ----------------------------------------------------------------------

    def record(self, seconds):
        self._prepare()
        image = self._directory / "disk.image"
        shutil.copyfile(self.start_image, image)
        with disk.RecordedDisk(self._directory, image) as recorded:
            with self._mounted(recorded.disk, self._mount_options()):
                self._server.start(self._options)
                try:
                    self._work(recorded, seconds)
                finally:
                    self._server.kill()
        image.unlink()
        errors = [client.error for client in self._writers + self._changers if client.error]
        if errors:
            raise SystemExit("\n".join(errors))
        self.recording = states.Recording(recorded.log)
        if not self.recording.has_flushes():
            raise SystemExit("no flush came to the disk: this system's loop devices do not pass them on")
        return recorded.log

    def _mounted(self, image, options=""):
        return disk.mounted(image, self._server.data_dir, self._file_system, options)

    def _prepare(self):
        disk.make(self.start_image, _DISK_MEGABYTES, self._file_system)
        with self._mounted(self.start_image):
            if self._file_system == "ext4":
                (self._server.data_dir / "lost+found").rmdir()
            shutil.copytree(_template(), self._server.data_dir, dirs_exist_ok=True)
            self._server.start(self._first_options)
            with self._server.connect() as session:
                writers.create(session, self._engine)
                for changer in self._changers:
                    changer.create(session)
            self._server.stop()

    def _mount_options(self):
        return f"commit={self._rng.choice([1, 5, 30])}" if self._file_system == "ext4" else ""

    def _work(self, recorded, seconds):
        over = threading.Event()
        clients = self._writers + self._changers
        recorded.mark(0, 0, disk.BEGUN)
        for client in clients:
            client.start(self._server, recorded, over)
        over.wait(seconds)
        over.set()
        for client in clients:
            client.join()

    def statements(self):
        return collections.Counter(statement.kind for changer in self._changers for statement in changer.history)

    def refused(self):
        return sum((collections.Counter(changer.refused) for changer in self._changers), collections.Counter())

    # --- the states -------------------------------------------------------------------------

    def moments(self, count):
        """Moments to cut at: half of them anywhere, half within a statement that changes tables."""
        marks = self.recording.marks
        first, last = marks[0][0], marks[-1][0]
        chosen = [self._rng.randint(first, last) for _ in range(count // 2)]
        open_since, spans = {}, []
        for at, client, number, what in marks:
            if client >= 100:
                if what == disk.BEGUN:
                    open_since[client, number] = at
                elif at > open_since[client, number] + 1:
                    spans.append((open_since[client, number], at))
        while spans and len(chosen) < count:
            chosen.append(self._rng.randint(*self._rng.choice(spans)))
        return sorted(chosen)

    def check(self, makers, moment, first):
        """One state; with the first, the checks are checked. Returns the verdict and how it is to be called."""
        kept = self._rng.choice(states.KEPT)
        image = self._directory / "state.image"
        there, doubtful = makers.make(moment, kept, self._rng, image)
        known = self.recording.known(moment)
        later = self.recording.known(len(self.recording.entries)) if first else None
        text = f"at {moment} of {len(self.recording.entries)}, {kept}: {there} of {doubtful} writes"
        self._server.error_log.unlink(missing_ok=True)
        try:
            self._set_aside(image, "cut")
            if self._cut_again:
                text += ", then " + self._recover_in_part(image)
                self._set_aside(image, "cut-again")
            with self._mounted(image):
                try:
                    self._server.start(self._options)
                    compare = (lambda: self._compare_with_binary_log(known)) if self._binary_log else None
                    verdict = verify.state(self._server, self._engine, self._changers, self._writers, known, later, compare)
                finally:
                    self._server.kill()
        except (ServerFailed, RuntimeError) as error:
            verdict = verify.Verdict()
            verdict.problems.append(f"no start: {error}")
        return verdict, text

    def _recover_in_part(self, image):
        """Recovery of this disk is cut, too: makes the image what it may be then."""
        directory = self._directory / "again"
        directory.mkdir()
        begin = directory / "begin.image"
        shutil.copyfile(image, begin)
        with disk.RecordedDisk(directory, image) as recorded:
            with self._mounted(recorded.disk):
                recorded.mark(0, 0, disk.BEGUN)
                try:
                    self._server.start(self._options)
                except ServerFailed:
                    pass  # the next start says what there is to say
                finally:
                    recorded.mark(0, 0, disk.DONE)
                    self._server.kill()
        recording = states.Recording(recorded.log)
        makers = states.States(recording, begin, directory, recorded.log)
        try:
            mounted, started = recording.marks[0][0], recording.marks[-1][0]
            # The file system's own recovery writes much more than the server's.
            moment = self._rng.randint(self._rng.choice([0, mounted, mounted, mounted]), started)
            kept = self._rng.choice(states.KEPT)
            there, doubtful = makers.make(moment, kept, self._rng, image)
        finally:
            makers.close()
            shutil.rmtree(directory)
        return f"in its recovery at {moment} of {started}, {kept}: {there} of {doubtful} writes"

    def _set_aside(self, image, name):
        if self._keep:
            disk.copy(image, self._directory / f"{name}.image")

    def keep(self, directory, moment, text, verdict):
        """What one needs to see why the state of this moment, the one checked last, is wrong. `checked.image` is as the checks left it."""
        directory.mkdir(exist_ok=True)
        for image in (self.start_image, *self._directory.glob("cut*.image")):
            disk.copy(image, directory / image.name)
        disk.copy(self._directory / "state.image", directory / "checked.image")
        shutil.copyfile(self._server.error_log, directory / "error.log")
        lines = [text, *verdict.problems, "options: " + " ".join(self._options), ""]
        begun = {}
        for at, client, number, what in self.recording.marks:
            if client >= 100 and what == disk.BEGUN:
                begun[client, number] = at
            elif client >= 100 and begun[client, number] < moment:
                sql = next(each for each in self._changers if each.number == client).history[number].sql
                lines.append(f"{client}/{number} begun {begun[client, number]} {'done ' + str(at) if at < moment else 'ON ITS WAY'}: {sql}")
        (directory / "history").write_text("\n".join(lines) + "\n")

    def _compare_with_binary_log(self, known):
        """What the binary log makes of the tables of the start is what the tables are."""
        directory = self._directory / "replayed"
        directory.mkdir()
        try:
            with self._mounted_start(directory) as data_dir:
                return binlog.differences(self._server, data_dir, self._first_options, self._changers, known)
        finally:
            shutil.rmtree(directory)

    @contextlib.contextmanager
    def _mounted_start(self, directory):
        image = directory / "start.image"
        shutil.copyfile(self.start_image, image)
        with disk.mounted(image, directory / "data", self._file_system):
            yield directory / "data"

    def on_the_way(self, moment):
        """Kinds of the statements on their way at this moment."""
        known = self.recording.known(moment)
        for changer in self._changers:
            done, begun = known.get(changer.number, (0, 0))
            if begun > done:
                yield changer.history[begun].kind


def _errors_logged(server):
    lines = re.findall(r"\[(?:ERROR|FATAL)\] .*", server.log_text())
    return {re.sub(r"[#'`./\w-]*\d[\w./'#`-]*", "N", line) for line in lines}


class _Totals:
    def __init__(self):
        self.states = self.wrong = self.unusable = self.tables = self.left = 0
        self.statements, self.refused, self.cut, self.logged = (collections.Counter() for _ in range(4))


def _recording(server, directory, seed, count, totals, arguments):
    """Records once and checks so many states."""
    run = _Run(server, directory, seed, arguments)
    begin = time.monotonic()
    log = run.record(arguments.seconds)
    totals.statements += run.statements()
    totals.refused += run.refused()
    print(f"recording, seed {seed}: {len(run.recording.entries)} entries, {log.stat().st_size >> 20} MiB, "
          f"{sum(run.statements().values())} changes of tables, {time.monotonic() - begin:.1f} s", flush=True)
    makers = states.States(run.recording, run.start_image, directory, log)
    try:
        for number, moment in enumerate(run.moments(count)):
            begin = time.monotonic()
            verdict, text = run.check(makers, moment, number == 0)
            totals.states += 1
            totals.unusable += verdict.unusable
            totals.tables += verdict.tables
            totals.left += verdict.left > 0
            totals.cut.update(run.on_the_way(moment))
            totals.logged.update(_errors_logged(server))
            if verdict.problems:
                totals.wrong += 1
            print(f"state {totals.states:3}, {text}: {verdict.tables} tables, {time.monotonic() - begin:.1f} s: "
                  + ("WRONG" if verdict.problems else "ok"), flush=True)
            if verdict.problems:
                print("\n".join("    " + problem for problem in verdict.problems[:_PROBLEMS_SHOWN]), flush=True)
                if arguments.keep:
                    run.keep(pathlib.Path(f"wrong-{seed}-{moment}"), moment, text, verdict)
                if not arguments.go_on:
                    return
    finally:
        makers.close()


def _run(arguments, server, directory):
    totals = _Totals()
    number = 0
    while totals.states < arguments.states and (arguments.go_on or not totals.wrong):
        here = pathlib.Path(directory) / str(number)
        here.mkdir()
        count = min(arguments.per_recording, arguments.states - totals.states)
        _recording(server, here, arguments.seed + number, count, totals, arguments)
        shutil.rmtree(here)
        number += 1
    print(f"statements: {dict(totals.statements.most_common())}")
    print(f"refused: {dict(totals.refused.most_common())}")
    print(f"cut in the midst of: {dict(totals.cut.most_common())}")
    for line, times in totals.logged.most_common(20):
        print(f"logged in {times} states: {line}")
    print(f"{'all held' if not totals.wrong else 'WRONG'}: {totals.states} states of {number} recordings, {totals.wrong} wrong; "
          f"{totals.unusable} of {totals.tables} tables unusable; {totals.left} states with such files left over as are in nobody's way")
    return 1 if totals.wrong else 0


def _work_directory():
    """In memory where there is room: the disks are read and written from end to end."""
    fits = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM_NEEDED
    return tempfile.TemporaryDirectory(prefix="pando-power-cut.", dir=_MEMORY if fits else "/tmp")


def main():
    arguments = _arguments()
    lacking = disk.why_not(arguments.file_system)
    if lacking:
        print(f"power_cut: SKIPPED, {lacking}")
        return 0
    how = "".join(f", {text}" for text, on in (("a binary log", arguments.binary_log), ("cut again", arguments.cut_again)) if on)
    print(f"power_cut: engine {arguments.engine}, {arguments.file_system}{how}, seed {arguments.seed}", flush=True)
    with _work_directory() as directory:
        with PrivateServer("power", plugin=engines.needs_plugin([arguments.engine]), start=False) as server:
            return _run(arguments, server, directory)


if __name__ == "__main__":
    sys.exit(program.run(main))
