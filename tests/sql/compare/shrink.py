"""Makes a failing program short: leaves out parts as long as some difference remains."""

import time

from compare.sides import Difference, run_step
from sqlkit.client import ConnectionLost


class Shrinker:
    """Replays on empty databases of the same server, which is restarted when it dies."""

    def __init__(self, server, sides, plant, cause, seconds):
        self._server, self._sides, self._plant, self._cause = server, sides, plant, cause
        self._deadline = time.monotonic() + seconds

    def shrink(self, steps):
        """The shortest failing list found in the time; `steps` itself when it does not fail again."""
        if not self._fails(steps):
            return steps, False
        size = max(1, len(steps) // 2)
        while True:
            shorter = self._without_some(steps, size)
            if shorter is not None:
                steps = shorter
            elif size == 1 or time.monotonic() > self._deadline:
                return steps, True
            else:
                size = max(1, size // 2)

    def _without_some(self, steps, size):
        """`steps` without one stretch of `size`, from the end; None when each is needed."""
        for end in range(len(steps), 0, -size):
            if time.monotonic() > self._deadline:
                return None
            shorter = steps[:max(0, end - size)] + steps[end:]
            if shorter and self._fails(shorter):
                return shorter
        return None

    def _fails(self, steps):
        """Whether they fail in the same manner: by a difference, or by a dead server."""
        try:
            return self.replay(steps) is not None and isinstance(self._cause, Difference)
        except ConnectionLost:
            return isinstance(self._cause, ConnectionLost)

    def replay(self, steps):
        """The difference the steps lead to, or None."""
        if not self._server.is_running():
            self._server.start()
        try:
            for side in self._sides:
                side.begin()
            for number, step in enumerate(steps):
                run_step(step, self._sides)
                self._plant(number, step, self._sides)
        except Difference as difference:
            return difference
        finally:
            for side in self._sides:
                side.close()
        return None
