"""The library that kills a server at a chosen step of its logs, built and given its orders."""

import os
import pathlib
import subprocess

_SOURCE = pathlib.Path(__file__).with_name("killer.c")


class Killer:
    """Its environment must be set before the server object is made."""

    def __init__(self, directory):
        directory = pathlib.Path(directory)
        self._library = directory / "killer.so"
        self._order, self._notes = directory / "order", directory / "notes"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o", self._library, _SOURCE, "-ldl"],
                       check=True)

    def haunt(self, ddl=False, directories=False, logs=True):
        """Every server started from now on is under its eyes; with `ddl`, also what it does to definitions, with `directories`, that
        it syncs directories; without `logs`, only these two."""
        if ddl:
            os.environ["KILLER_DDL"] = "1"
        if directories:
            os.environ["KILLER_DIRECTORIES"] = "1"
        if not logs:
            os.environ["KILLER_NO_LOGS"] = "1"
        os.environ.update(LD_PRELOAD=str(self._library), KILLER_ORDER=str(self._order),
                          KILLER_NOTES=str(self._notes))

    def kill_at(self, step, when):
        """The server that runs dies at its `step`-th step from now on, `when` is before or after it."""
        self._notes.unlink(missing_ok=True)
        draft = self._order.with_suffix(".new")
        draft.write_text(f"{step} {when}\n")
        draft.rename(self._order)

    def rest(self):
        """Forget an order that nothing came of."""
        self._order.unlink(missing_ok=True)

    def steps(self):
        """What was done since the order, the last one is where it died."""
        return self._notes.read_text().splitlines() if self._notes.exists() else []
