"""One statement of a run, and how its two answers are compared."""

import dataclasses
import enum


class How(enum.Enum):
    """What has to be equal; the number of an error always."""
    DONE = "done"        # affected rows
    ROWS = "rows"        # rows in any order
    ORDERED = "ordered"  # rows in their order
    SELECT = "select"    # rows in any order; the engine is asked with and without pushdown
    ORDERED_SELECT = "ordered select"
    DDL = "ddl"          # nothing else; definitions are read again
    QUIET = "quiet"      # nothing else
    CHECK = "check"      # `sql` is a table's name: CHECK TABLE is content, its keys agree with its rows


@dataclasses.dataclass(frozen=True)
class Step:
    """`<<engine>>`, `<<side>>` and `<<dir>>` in `sql` stand for what differs from side to side."""
    sql: str
    how: How

    def text(self):
        """As a line of a script."""
        if self.how is How.CHECK:
            return f"CHECK TABLE {self.sql} EXTENDED;"
        return f"{self.sql};"
