"""A client that goes on whatever happens: it connects again when the server was away, and lets nothing pass that the
weather does not explain."""

import threading
import time

from chaos.schema import DATABASE
from sqlkit.client import ConnectionLost, SqlError

# No statement of the load takes this long: a server that does not answer hangs.
_ANSWER_SECONDS = 300
_DEFINITION_SECONDS = 15
_PAUSE_SECONDS = 0.05
_STEPS_A_SESSION = 40


class Wrong(Exception):
    """What was found contradicts what was acknowledged, or an error has no reason."""


class Worker:
    """Subclasses have `opened` (a new session: decide what is unknown) and `step` (something to do)."""

    def __init__(self, name, weather):
        self.name, self.weather = name, weather
        self.done = self.refused = 0
        self.problem = self.last_refusal = None
        self.doing = ""   # the statement on its way
        self._session, self._thread, self._generation, self._was_down = None, None, None, False
        self._stop, self._may_work = threading.Event(), threading.Lock()

    # --- for subclasses -------------------------------------------------------------------

    def opened(self, session):
        """A new session; what the last one left undecided is decided now."""

    def step(self, session):
        raise NotImplementedError

    def finish(self, session):
        """The round ends: nothing may be left half done."""

    def query(self, session, sql):
        """Runs a statement and remembers it for reports. An error takes along what the server tells beside it."""
        self.doing = sql[:200]
        try:
            return session.query(sql)
        except SqlError as error:
            error.told = _warnings(session)
            raise

    # --- life -----------------------------------------------------------------------------

    def start(self):
        self._stop.clear()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def rest(self):
        """Waits until it has ended its step; until `go_on` it begins none."""
        self._may_work.acquire()

    def go_on(self):
        self._may_work.release()

    def ask_to_stop(self):
        self._stop.set()

    def join(self, seconds=None):
        """Wait until it has ended its work."""
        self._thread.join(seconds or 2 * _ANSWER_SECONDS)
        if self._thread.is_alive():
            self.problem = self.problem or f"{self.name}: hangs in: {self.doing}"

    def _work(self):
        try:
            while self.problem is None:
                with self._may_work:
                    self.done += self._try(self._once)
                if self.done % _STEPS_A_SESSION == 0:
                    self._close()
                # After a problem its transaction is half done: what it sees proves nothing.
                if self.problem is None and self._stop.is_set() and self._try(self._last):
                    break
        finally:
            self._close()

    def _once(self):
        if self._session is None:
            self._connect()
        self.step(self._session)

    def _last(self):
        if self._session is None:
            self._connect()
        self.finish(self._session)

    def _connect(self):
        self._generation, self._was_down, self.doing = self.weather.generation, self.weather.down, "connect"
        self._session = self.weather.connect(DATABASE, _ANSWER_SECONDS)
        # Of definitions: a day is the server's default.
        self._session.query(f"SET SESSION lock_wait_timeout = {_DEFINITION_SECONDS}")
        self.opened(self._session)

    def _close(self):
        if self._session is not None:
            self._session.close()
            self._session = None

    def _try(self, action):
        """Whether it went well. An error that is allowed now costs a pause; any other ends the worker."""
        try:
            action()
            return True
        except SqlError as error:
            self._judge(error)
        except ConnectionLost as error:
            self._lost(error)
        except Wrong as error:
            self.problem = f"{self.name}: {error}"
        except Exception as error:  # a mistake of this program must not look like a client that is content
            self.problem = f"{self.name}: {error!r} in: {self.doing}"
        time.sleep(_PAUSE_SECONDS)
        return False

    def _judge(self, error):
        told = getattr(error, "told", "")
        if not self.weather.allows(error, told):
            self.problem = f"{self.name}: {error} [{told}] in: {self.doing} (weather: {self.weather.names()})"
            return
        self.refused += 1
        self.last_refusal = f"{error} [{told}] in: {self.doing}"
        self._roll_back()

    def _roll_back(self):
        if self._session is None:
            return
        try:
            self._session.query("ROLLBACK")
        except (SqlError, ConnectionLost):
            # What is left is gone with the session.
            self._close()

    def _lost(self, error):
        connected = self._session is not None
        self._close()
        if "timed out" in str(error):
            self.problem = f"{self.name}: no answer in {_ANSWER_SECONDS} s to: {self.doing}"
        elif not connected and self._was_down:
            pass  # it is heard of when the server may be back
        elif self._generation == self.weather.generation and not self.weather.may_lose_connections(connected):
            self.problem = f"{self.name}: {error}, and nobody had ended the server, in: {self.doing}"


def _warnings(session):
    try:
        return "; ".join(row[2].decode("utf-8", "replace") for row in session.query("SHOW WARNINGS").rows)
    except (SqlError, ConnectionLost):
        return ""
