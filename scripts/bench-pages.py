#!/usr/bin/env python3
"""Writes the tables and charts of the benchmark pages from the results in bench/results.

    scripts/bench-pages.py            rewrites the generated parts of the pages, and the charts
    scripts/bench-pages.py --check    changes nothing; fails if a page or a chart is not what would be written

A page (README.md, docs/benchmarks.md, docs/benchmarks/*.md) has generated parts between the lines

    <!-- results: NAME -->
    <!-- /results -->

NAME is a file bench/results/NAME.json. It holds one run: machine, date, commit (null if it was not written down), command
and figures. Two formats are read: the report of `pando-bench run --json`, and "pando-results 1", which is a table with the
same facts about the run. `<!-- summary -->` in README.md is the table that bench/summary.json picks from these files.
Every result must stand in some page.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
CHARTS = ROOT / "docs" / "benchmarks"
BLOCK = re.compile(r"(<!-- (results: [\w-]+|summary) -->\n).*?(<!-- /\2 -->|<!-- /results -->)", re.S)
ENGINES = {"ROCKSDB": "MyRocks"}

# What a table shows of a report of pando-bench: group, name, label.
REPORT_ROWS = [
    ("throughput", "inserts", "rows a second, whole run"),
    ("throughput", "inserts, first slice", "rows a second, first tenth"),
    ("throughput", "inserts, last slice", "rows a second, last tenth"),
    ("throughput", "last slice / first slice", "last tenth / first tenth"),
    ("latency", "a statement, 99 of 100", "statement of 1,000 rows, 99th percentile"),
    ("latency", "a statement, longest", "longest statement"),
    ("written", "by the inserts, per row", "written to disk per row"),
    ("size", "table and keys", "size on disk"),
    ("memory", "server's memory at most", "server's memory, maximum"),
    ("query", "count", "`COUNT(*)`"),
    ("query", "sum of every column", "sum of every column"),
]
# The charts of a report: curve, part of the file's name, title, unit of the axis.
CURVES = [
    ("rows inserted per second", "rate", "rows inserted per second, by millions of rows in the table", 1),
    ("99 of 100 statements are quicker than", "p99", "99th percentile of statements in milliseconds", 1000),
    ("longest statement", "longest", "longest statement in milliseconds", 1000),
    ("bytes written to disk per row", "written", "bytes written to disk per row", 1),
]


def load(name):
    path = RESULTS / f"{name}.json"
    if not path.exists():
        sys.exit(f"bench-pages: no results {path.relative_to(ROOT)}")
    return json.loads(path.read_text())


def machines():
    return json.loads((ROOT / "bench" / "machines.json").read_text())


def is_report(result):
    return result["format"] == 1


def figure(value, unit):
    """A figure of a report as people read it."""
    if unit in ("rows_per_second", "count"):
        return f"{value:,.0f}"
    if unit == "ratio":
        return f"{value:.2f}"
    if unit == "seconds":
        return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
    if unit == "bytes_per_row":
        return f"{value:,.0f} B"
    if value >= 1 << 30:
        return f"{value / (1 << 30):.2f} GiB"
    return f"{value / (1 << 20):,.0f} MiB"


def report_table(report):
    engines = report["engines"]
    head = [""] + [ENGINES.get(engine["engine"], engine["engine"]) for engine in engines]
    rows = []
    for group, name, label in REPORT_ROWS:
        row = [label]
        for engine in engines:
            found = [m for m in engine["metrics"] if (m["group"], m["name"]) == (group, name)]
            samples = sorted(found[0]["samples"]) if found else []
            row.append(figure(samples[len(samples) // 2], found[0]["unit"]) if samples else "")
        rows.append(row)
    return head, ["left"] + ["right"] * len(engines), rows


def plain_table(result):
    columns = result["columns"]
    aligns = ["right" if "decimals" in c else c.get("align", "left") for c in columns]
    rows = []
    for row in result["rows"]:
        if len(row) != len(columns):
            sys.exit(f"bench-pages: {result['title']}: a row has {len(row)} cells, not {len(columns)}: {row}")
        rows.append([
            "" if cell is None else f"{cell:,.{c['decimals']}f}" if "decimals" in c else str(cell)
            for cell, c in zip(row, columns)
        ])
    return [c["name"].strip() for c in columns], aligns, rows


def table(result):
    return report_table(result) if is_report(result) else plain_table(result)


def markdown(head, aligns, rows):
    rule = ["---:" if align == "right" else "---" for align in aligns]
    lines = [" | ".join(cells) for cells in [head, rule, *rows]]
    return "\n".join(f"| {line} |" for line in lines)


def run_of(result):
    """Title, date, commit, machine, conditions, command and notes of a run."""
    if is_report(result):
        machine = result["machine"]
        where = f"{machine['processors']} processors ({machine['processor']}), {machine['memory_bytes'] / (1 << 30):.0f} GB"
        title, conditions, notes = result["about"].rstrip("."), "", []
        date, where = result["date"][:10], f"{where}, MariaDB {result['engines'][0]['server'].split('-')[0]}."
        command = re.sub(r" --(json|html|svg) \S+", "", result["command"])
    else:
        title, conditions, notes = result["title"], result["conditions"], result.get("notes", [])
        date, where, command = result["date"], f"{machines()[result['machine']]}.", result["command"]
    return title, date, result.get("commit"), where, conditions, command, notes


def block(name):
    result = load(name)
    title, date, commit, where, conditions, command, notes = run_of(result)
    lines = [f"**{title}**", "", markdown(*table(result)), ""]
    lines += [f"{note}\n" for note in notes]
    when = date + (f", commit {commit}" if commit else "")
    lines += [f"Measured {when}: {where} {conditions}".strip(), ""]
    if command:
        lines += ["Reproduce:", "", "```sh", command, "```"]
    else:
        lines += ["No command was written down for this run."]
    return "\n".join(lines) + "\n"


def summary():
    """The table of README.md: each cell names a result, a row and a column."""
    spec = json.loads((ROOT / "bench" / "summary.json").read_text())
    rows = []
    for row in spec["rows"]:
        cells = [row["label"]]
        for column in spec["columns"]:
            place = row["cells"].get(column)
            if place is None:
                cells.append("")
                continue
            head, _, figures = table(load(place["result"]))
            found = [line for line in figures if line[0] == place["row"]]
            if len(found) != 1 or place["column"] not in head:
                sys.exit(f"bench-pages: bench/summary.json: not found: {place}")
            cells.append(found[0][head.index(place["column"])])
        rows.append(cells)
    return markdown([""] + spec["columns"], ["left"] + ["right"] * len(spec["columns"]), rows) + "\n"


def page(text, used):
    def fill(match):
        name = match.group(2)
        if name == "summary":
            return match.group(1) + summary() + match.group(3)
        used.add(name.split()[-1])
        return match.group(1) + block(name.split()[-1]) + match.group(3)

    return BLOCK.sub(fill, text)


# --- charts ---------------------------------------------------------------------------------

STYLE = (".chart{--ink:#1c2430;--dim:#667085;--grid:#e4e7ec;--c0:#0f766e;--c1:#d9722b;--c2:#3b6fd4;--paper:#fff;"
         "font:13px system-ui,-apple-system,'Segoe UI',sans-serif}"
         "@media(prefers-color-scheme:dark){.chart{--ink:#e6e9ef;--dim:#98a2b3;--grid:#2c3440;--c0:#2dd4bf;"
         "--c1:#fb923c;--c2:#7aa2f7;--paper:#14181f}}"
         ".chart text{fill:var(--ink)}.chart .dim{fill:var(--dim)}.chart .grid{stroke:var(--grid)}"
         ".chart .line{fill:none;stroke-width:2.5;stroke-linejoin:round}")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 800, 320, 80, 110, 40, 36


def steps(largest):
    """Five round numbers or fewer from 0 to above the largest value."""
    size = 10 ** (len(str(int(largest))) - 1) if largest >= 1 else 1
    step = next(size * f / 10 for f in (2, 4, 5, 10, 20, 50) if size * f / 10 * 5 >= largest)
    return [n * step for n in range(6)]


def chart(title, curves):
    marks = steps(max(y for _, points in curves for _, y in points))
    right = max(x for _, points in curves for x, _ in points)

    def x_of(x):
        return LEFT + (WIDTH - LEFT - RIGHT) * x / right

    def y_of(y):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - y / marks[-1])

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
             f"<title>{title}</title><style>{STYLE}</style>",
             '<rect width="100%" height="100%" style="fill:var(--paper)"/>',
             f'<text x="{LEFT}" y="22" font-weight="600">{title}</text>']
    for mark in marks:
        y = y_of(mark)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                     f'<text class="dim" text-anchor="end" x="{LEFT - 8}" y="{y + 4:.1f}">{mark:,.0f}</text>')
    for million in range(0, int(right / 1e6) + 1):
        parts.append(f'<text class="dim" text-anchor="middle" x="{x_of(million * 1e6):.1f}" '
                     f'y="{HEIGHT - 12}">{million} M</text>')
    # Names stand beside the ends of their curves, at least a line apart.
    ends = sorted((y_of(points[-1][1]), name) for name, points in curves)
    places = {}
    for y, name in ends:
        places[name] = max(y + 4, max(places.values(), default=-99) + 16)
    for number, (name, points) in enumerate(curves):
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points)
        parts.append(f'<polyline class="line" style="stroke:var(--c{number})" points="{path}"/>'
                     f'<text style="fill:var(--c{number})" font-weight="600" x="{WIDTH - RIGHT + 8}" '
                     f'y="{places[name]:.1f}">{name}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def charts():
    found = {}
    for path in sorted(RESULTS.glob("*.json")):
        report = json.loads(path.read_text())
        if not is_report(report):
            continue
        for curve, part, title, factor in CURVES:
            lines = []
            for engine in report["engines"]:
                points = [c["points"] for c in engine["curves"] if c["name"] == curve]
                if points:
                    name = ENGINES.get(engine["engine"], engine["engine"])
                    lines.append((name, [(x, y * factor) for x, y in points[0]]))
            if lines:
                found[CHARTS / f"{path.stem}-{part}.svg"] = chart(title, lines)
    return found


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__.strip())
    used = set()
    wanted = charts()
    for path in [ROOT / "README.md", ROOT / "docs" / "benchmarks.md", *sorted(CHARTS.glob("*.md"))]:
        wanted[path] = page(path.read_text(), used)
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    unused = {path.stem for path in RESULTS.glob("*.json")} - used
    if unused:
        sys.exit(f"bench-pages: in no page: {', '.join(sorted(unused))}")
    if check:
        if stale:
            sys.exit("bench-pages: not as bench/results has it (scripts/bench-pages.py writes it): "
                     + ", ".join(str(path.relative_to(ROOT)) for path in stale))
        print(f"bench-pages: {len(wanted)} files are as {len(used)} results have it")
        return
    for path in stale:
        path.write_text(wanted[path])
        print(f"bench-pages: wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
