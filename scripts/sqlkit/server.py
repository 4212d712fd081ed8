"""Private servers for Python programs: scripts/private-server.sh with a life time.

    with PrivateServer("kill9", options=[...], plugin=True) as server:
        with server.connect() as session: ...

The directory is new, its path short (a socket lives in it), and both server and directory are gone
when the block ends, also on an error, ^C or SIGTERM (see `end_by_signals`).
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from .client import Connection

ROOT = pathlib.Path(__file__).resolve().parents[2]
_SCRIPT = ROOT / "scripts" / "private-server.sh"


class ServerFailed(Exception):
    """The server could not be started, or died at once; the text holds the end of its log."""


def end_by_signals():
    """Make SIGTERM and SIGHUP end the program through its clean-up, as ^C does."""
    def stop(number, _frame):
        raise SystemExit(128 + number)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


def free_port(address="127.0.0.1"):
    """A port that nobody has at this moment."""
    with socket.socket() as listener:
        listener.bind((address, 0))
        return listener.getsockname()[1]


class PrivateServer:
    """A server in a directory of its own under /tmp."""

    def __init__(self, name, options=(), plugin=True, keep=False, start=True):
        self.options, self._keep, self._start = list(options), keep, start
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"pando-{name}.", dir="/tmp"))
        self._environment = dict(os.environ)
        if not plugin:
            self._environment["PANDO_PLUGIN"] = "none"

    def __enter__(self):
        try:
            if self._start:
                self.start()
        except BaseException:
            self._clean_up()
            raise
        return self

    def __exit__(self, kind, *_):
        if self._keep and kind is not None:
            self.kill()
            print(f"kept for study: {self.dir}", file=sys.stderr)
        else:
            self._clean_up()

    def _clean_up(self):
        # A second ^C must not interrupt this.
        before = {number: signal.signal(number, signal.SIG_IGN)
                  for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            self.kill()
            shutil.rmtree(self.dir, ignore_errors=True)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # --- places ---------------------------------------------------------------------------

    @property
    def data_dir(self):
        return self.dir / "data"

    @property
    def socket(self):
        return str(self.dir / "mariadb.sock")

    @property
    def error_log(self):
        return self.dir / "error.log"

    def log_text(self, since=0):
        """The error log from byte `since` on."""
        try:
            with open(self.error_log, "rb") as log:
                log.seek(since)
                return log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def log_size(self):
        return self.error_log.stat().st_size if self.error_log.exists() else 0

    def pid(self):
        """Process id of the server, None when none runs."""
        try:
            return int((self.dir / "pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    # --- life -----------------------------------------------------------------------------

    def start(self, options=None):
        """Start it and wait until it answers. Raises ServerFailed."""
        if options is not None:
            self.options = list(options)
        self._run("start", *self.options)

    def begin_start(self):
        """Start it without waiting; the process returned ends when the server answers or died."""
        return self._spawn("start", *self.options)

    def stop(self):
        self._run("stop")

    def kill(self):
        """SIGKILL, as a crash test does it. No error when none runs."""
        self._run("kill")

    def is_running(self):
        return self._spawn("status").wait() == 0

    def connect(self, database=None, timeout=None):
        return Connection(self.socket, database, timeout)

    def _spawn(self, command, *arguments):
        # Its own session: ^C is for us; what we then do about the server must not be cut short.
        return subprocess.Popen([_SCRIPT, command, self.dir, *arguments], env=self._environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, start_new_session=True)

    def _run(self, command, *arguments):
        process = self._spawn(command, *arguments)
        try:
            _, errors = process.communicate()
        except BaseException:
            # Let it write down which process it started; the clean-up needs that.
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
        if process.returncode != 0:
            raise ServerFailed(f"{command}: {errors.strip()}")
