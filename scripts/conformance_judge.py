"""What a test's output says, and whether PANDO's answers are right: used by scripts/conformance.py.

An output is cut at its statements into blocks: a statement and what it answered. Left out is what is no answer: what
EXPLAIN and SHOW STATUS print, estimates in SHOW INDEX and SHOW TABLE STATUS, what RAND() gives; names of engines are
made equal. The lines of an answer are sorted unless an ORDER BY stands in the statement.

A block is right when it stands in the same place of the recorded output, or of InnoDB's in the same test.
"""
import difflib
import re
import subprocess
import tempfile

STATEMENT = re.compile(
    r"\s*(select|insert|update|delete|replace|create|drop|alter|explain|describe|desc|show|set|prepare|execute|deallocate"
    r"|call|flush|lock|unlock|start|begin|commit|rollback|savepoint|release|analyze|optimize|check|checksum|repair"
    r"|rename|truncate|with|values|handler|load|use|grant|revoke|do|xa|backup|table|connect|connection|disconnect"
    r"|end|kill|cache|purge|reset|change|stop|include|eval|delimiter|echo)\b|#|\(select|--|\*\*\*", re.I)
PLAN = re.compile(r"\s*(explain|describe|desc|analyze)\b(?!\s+(local\s+)?table)|\s*show\s+((global|session)\s+)?status"
                  r"|.*\b(global_status|session_status|optimizer_trace)\b", re.I)
PLAN_HEADER = re.compile(r"(id\tselect_type\ttable\t|EXPLAIN$|ANALYZE$)")
ENGINE = re.compile(r"innodb|myisam|pando", re.I)
INDEX_HEADER = re.compile(r"Table\tNon_unique\tKey_name\t")
STATUS_HEADER = re.compile(r"Name\tEngine\tVersion\tRow_format\tRows\t")
RANDOM = re.compile(r"\brand\(\)", re.I)
# Names that the server gives to tables for a moment have numbers of its process and of the connection.
TEMPORARY = re.compile(r"#sql-([a-z]+-)?[0-9a-f]+-[0-9a-f]+")
ORDERED = re.compile(r"order by", re.I)


def blocks(text):
    """The output as a list of tuples of lines: a statement, its answer."""
    found = [[]]
    for line in TEMPORARY.sub("#sql", ENGINE.sub("PANDO", text)).split("\n"):
        if STATEMENT.match(line) or not found[-1]:
            found.append([])
        found[-1].append(line.rstrip())
    return [tuple(answer(block)) for block in found if block]


def answer(block):
    """A block without what is no answer."""
    head, rest = block[0], block[1:]
    if PLAN.match(head):
        rest = []
    if any(RANDOM.search(line) for line in block):
        return [head, "%d lines" % len(rest)]
    # The statement is the block before: "Table" begins a block.
    if INDEX_HEADER.match(head):
        rest = [without_column(row, 6) for row in rest]
    # Sizes; in the block of the statement, or of one before it that shows nothing.
    status = next((number for number, line in enumerate(rest) if STATUS_HEADER.match(line)), len(rest))
    for column in range(5, 10):
        rest[status + 1:] = [without_column(row, column) for row in rest[status + 1:]]
    # What MyISAM says of a table that has not changed.
    rest = [line.replace("Table is already up to date", "OK") for line in rest]
    for number, line in enumerate(rest):
        if PLAN_HEADER.match(line):
            return [head] + rest[:number]
    if not any(ORDERED.search(line) for line in block):
        rest = sorted(rest)
    return [head] + rest


def without_column(row, number):
    cells = row.split("\t")
    if len(cells) > number:
        cells[number] = "#"
    return "\t".join(cells)


def flat(parts):
    return [line for block in parts for line in block]


def edits(of, to):
    """The regions in which two lists differ: (from, to) of the one and of the other. By diff(1): Python's own takes minutes
    for outputs of many thousand lines."""
    numbers = {}
    with tempfile.NamedTemporaryFile("w") as one, tempfile.NamedTemporaryFile("w") as other:
        for file, items in (one, of), (other, to):
            file.writelines("%d\n" % numbers.setdefault(item, len(numbers)) for item in items)
            file.flush()
        told = subprocess.run(["diff", one.name, other.name], stdout=subprocess.PIPE, text=True, check=False).stdout
    regions = []
    for match in re.finditer(r"^(\d+)(?:,(\d+))?([acd])(\d+)(?:,(\d+))?$", told, re.M):
        start, stop = int(match[1]), int(match[2] or match[1])
        other, other_stop = int(match[4]), int(match[5] or match[4])
        regions.append((start - (match[3] != "a"), stop, other - (match[3] != "d"), other_stop))
    return regions


def places(of, to):
    """For each block of `of` the number of the equal one in `to`, or None."""
    found, at, shift = [], 0, 0
    for start, stop, _, other_stop in edits(of, to):
        found += range(at + shift, start + shift)
        found += [None] * (stop - start)
        at, shift = stop, other_stop - stop
    return found + list(range(at + shift, len(of) + shift))


def unexplained(mine, innodb, recorded):
    """Where `mine` is neither as `innodb` nor as `recorded`, as regions (from, to) of mine and of innodb.

    A region that differs from InnoDB's is right when the recorded output has the same blocks there: one after another, with
    the blocks around the region next to them, so that nothing is missing either."""
    in_recorded = [-1] + places(mine, recorded) + [len(recorded)]
    regions = []
    for start, stop, other, other_stop in edits(mine, innodb):
        around = in_recorded[start:stop + 2]
        if None in around or any(after - before != 1 for before, after in zip(around, around[1:])):
            regions.append((start, stop, other, other_stop))
    return regions


def difference(mine, innodb, recorded):
    """What is unexplained, to be read and to be stated: for each region, the lines of InnoDB's and of ours."""
    shown = []
    for start, stop, other, other_stop in unexplained(mine, innodb, recorded):
        theirs, ours = innodb[other:other_stop], mine[start:stop]
        before = mine[start - 1][0] if start else ""
        shown.append("@@ " + before[:100])
        lines = list(difflib.unified_diff(flat(theirs), flat(ours), lineterm="", n=1))[2:]
        shown += [line for line in lines if not line.startswith("@@")]
    return "".join(line + "\n" for line in shown)
