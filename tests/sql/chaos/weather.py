"""Which troubles are in force, and which errors a client may get for them."""

import threading

from chaos.errors import ALWAYS, BY_TROUBLE


class Weather:
    """What the clients know of the server: how to reach it, and what it is going through."""

    def __init__(self, server):
        self._server, self._lock = server, threading.Lock()
        self._now = {}             # name of a trouble -> how often it is in force
        self.generation = 0        # grows whenever the server is about to end
        self.down = False
        self.met = {}              # (trouble, error number) -> how often a client got it

    def connect(self, database, timeout):
        return self._server.connect(database, timeout)

    def begins(self, name):
        with self._lock:
            self._now[name] = self._now.get(name, 0) + 1

    def ends(self, name):
        with self._lock:
            self._now[name] -= 1
            if not self._now[name]:
                del self._now[name]

    def ends_server(self):
        """From now on connections break: the server is being killed or stopped."""
        with self._lock:
            self.generation += 1
            self.down = True

    def server_is_back(self):
        self.down = False

    def names(self):
        return ", ".join(sorted(self._now)) or "calm"

    def may_lose_connections(self, connected):
        """Whether a connection may break, or not come about, though this server has not been ended."""
        if self.down or "memory" in self._now:
            return True
        return not connected and bool({"files", "threads"} & set(self._now))

    def allows(self, error, told):
        """Whether the error has a reason now. It has to say what is wrong, itself or in the warnings beside it."""
        with self._lock:
            names = list(self._now)
        text = f"{error.message} {told}"
        for name, rules in [("calm", ALWAYS)] + [(name, BY_TROUBLE[name]) for name in names] + \
                ([("end of the server", BY_TROUBLE["kill"])] if self.down else []):
            for rule in rules:
                if rule.allows(error.number, text):
                    self.met[name, error.number] = self.met.get((name, error.number), 0) + 1
                    return True
        return False
