"""One step of a run: what both engines get, and how their answers are compared."""

import dataclasses
import enum


class Mode(enum.Enum):
    """How answers are compared. Errors are compared by number in every mode."""
    STATUS = "status"      # affected rows and warnings, and the text of errors
    NUMBER = "number"      # only whether there is an error, and which
    ROWS = "rows"          # the same rows in any order
    ORDERED = "ordered"    # the same rows in the same order
    CHECK = "check"        # `sql` is a table's name: CHECK TABLE is content, its keys agree


WRITER, READER = 0, 1


@dataclasses.dataclass(frozen=True)
class Step:
    sql: str
    mode: Mode
    session: int = WRITER

    def text(self):
        """As a line of a script for people. `{engine}` stands for the engine, `{clustering}` for an option of keys."""
        who = "reader" if self.session == READER else "writer"
        return f"/* {who}, {self.mode.value} */ {self.sql};"
