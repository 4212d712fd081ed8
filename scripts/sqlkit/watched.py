"""What the system says of a running server: its descriptors and its memory."""

import os


class Watched:
    """A server, and the most that it was seen to hold."""

    def __init__(self, server):
        self._server = server
        self.most = 0

    def descriptors(self):
        """Open files of the engine's tables. None if the server does not run."""
        count = 0
        directory = f"/proc/{self._server.pid()}/fd"
        try:
            names = os.listdir(directory)
        except FileNotFoundError:
            return None
        for name in names:
            try:
                count += ".pando/" in os.readlink(f"{directory}/{name}")
            except FileNotFoundError:
                pass
        self.most = max(self.most, count)
        return count

    def memory(self):
        """Resident memory in MiB."""
        with open(f"/proc/{self._server.pid()}/status", encoding="ascii") as status:
            line = next(line for line in status if line.startswith("VmRSS"))
        return int(line.split()[1]) >> 10

    @staticmethod
    def value(session, name):
        """A status counter."""
        return int(session.query(f"SHOW GLOBAL STATUS LIKE '{name}'").rows[0][1])
