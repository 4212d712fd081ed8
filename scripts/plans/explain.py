"""Plans as EXPLAIN tells them, what of two of them differs, and a query rewritten to be done by the plan of another."""

import dataclasses
import re

# What of Extra is part of the plan; the rest says where conditions are evaluated.
_PARTS = ("Using index condition", "Using index for group-by", "Using index", "Using temporary", "Using filesort",
          "Using join buffer", "Using rowid filter", "FirstMatch", "LooseScan", "Start temporary", "Using union",
          "Using sort_union", "Using intersect", "Using sort_intersect", "Range checked", "Impossible", "No tables",
          "Select tables optimized away", "Using where with pushed condition")
_HINTLESS = ("system", "const", None)
_NAME = r"[a-z_]\w*"


@dataclasses.dataclass
class Step:
    """One line of EXPLAIN."""
    select: str
    table: str
    access: str
    key: str
    key_length: str
    rows: str
    extra: tuple


def explain(session, statement):
    """The plan of a statement."""
    steps = []
    for cells in session.query("EXPLAIN " + statement).rows:
        cells = [None if cell is None else cell.decode("utf-8", "replace") for cell in cells]
        select, _, table, access, _, key, length, _, rows, extra = cells
        parts = [part.strip() for part in (extra or "").split(";")]
        known = tuple(sorted({name for part in parts for name in _PARTS if part.startswith(name)
                              and not (name == "Using index" and part != name) and name != _PARTS[-1]}))
        steps.append(Step(select, table, access, key, length, rows, known))
    return steps


def differences(first, second):
    """Names of what differs in two plans; none: they are the same."""
    found = []
    if [(step.select, step.table) for step in first] != [(step.select, step.table) for step in second]:
        return ["order of tables"]
    for what, of in (("access", lambda step: (step.access or "").split("|")[0]), ("key", lambda step: step.key),
                     ("length of key", lambda step: step.key_length), ("extra", lambda step: step.extra)):
        if [of(step) for step in first] != [of(step) for step in second]:
            found.append(what)
    return found


def text(steps):
    """A plan in one line."""
    told = []
    for step in steps:
        what = " ".join(part for part in (step.access, step.key and f"by {step.key}({step.key_length})",
                                          step.rows and f"~{step.rows}", *(f"[{part}]" for part in step.extra)) if part)
        told.append(f"{step.table}: {what}" if step.table else what)
    return " > ".join(told)


def impose(statement, plan):
    """The statement with the order of tables and the keys of a plan, as far as hints can say it."""
    left = list(plan)
    pieces, at = [], 0
    for found in re.finditer(rf"\bSELECT\b|\bFROM\s+({_NAME}(?:\s+(?!WHERE|GROUP|ORDER|LEFT|JOIN|LIMIT|ON|AS\b){_NAME})?"
                             rf"(?:,\s*{_NAME}(?:\s+(?!WHERE|GROUP|ORDER|LEFT|JOIN|LIMIT|ON|AS\b){_NAME})?)*)|"
                             rf"\bJOIN\s+({_NAME})\b", statement):
        if found.group(1) is None and found.group(2) is None:
            pieces += [statement[at:found.start()], None]
            at = found.end()
            continue
        group = 1 if found.group(1) is not None else 2
        tables = [table.split() for table in found.group(group).split(",")]
        steps = [_take(left, table[-1]) for table in tables]
        if len(tables) > 1 and all(steps):
            order = sorted(range(len(tables)), key=lambda place: plan.index(steps[place]))
            tables, steps = [tables[place] for place in order], [steps[place] for place in order]
            _mark_select(pieces)
        hinted = ", ".join(" ".join(table) + _hint(step) for table, step in zip(tables, steps))
        pieces += [statement[at:found.start(group)], hinted]
        at = found.end(group)
    pieces.append(statement[at:])
    return "".join("SELECT" if piece is None else piece for piece in pieces)


def _mark_select(pieces):
    """The SELECT that was read last joins in the order given."""
    for place in range(len(pieces) - 1, -1, -1):
        if pieces[place] is None:
            pieces[place] = "SELECT STRAIGHT_JOIN"
            return


def _take(left, name):
    for step in left:
        if step.table == name:
            left.remove(step)
            return step
    return None


def _hint(step):
    if step is None or step.access in _HINTLESS or "," in (step.key or ""):
        return ""
    key = (step.key or "").split("|")[0]
    return f" FORCE INDEX ({key})" if key else " USE INDEX ()"
