"""Step 2: the ten queries, several runs each, engines taking turns; the median counts."""

import pathlib
import statistics

from sqlkit import report

QUERIES = pathlib.Path(__file__).resolve().parent / "queries"


def query(server, sides, runs, checks):
    """Run every query on every side and print times and whether the answers are equal."""
    report.heading(f"2. The ten queries, median of {runs} runs")
    table = report.Table("query", *(side.engine for side in sides), "ratio", "answers equal")
    sums, unequal = [0.0 for _ in sides], []
    sessions = [server.connect(side.database) for side in sides]
    for path in sorted(QUERIES.glob("q*.sql")):
        title, statements = read(path)
        found = [answers(session, statements) for session in sessions]
        times = [[] for _ in sides]
        for _ in range(runs):
            for session, taken in zip(sessions, times):
                with report.Stopwatch() as watch:
                    answers(session, statements)
                taken.append(watch.seconds)
        medians = [statistics.median(taken) for taken in times]
        sums = [total + median for total, median in zip(sums, medians)]
        equal = found[0] == found[1] and all(found[0])
        if not equal:
            unequal.append(path.stem)
        table.add(f"{path.stem}  {title}", *map(report.seconds, medians),
                  report.ratio(medians[1], medians[0]), "yes" if equal else "NO")
    table.add("all", *map(report.seconds, sums), report.ratio(sums[1], sums[0]), "")
    for session in sessions:
        session.close()
    table.print()
    report.note(f"ratio: time of {sides[1].engine} / time of {sides[0].engine}")
    checks.check(not unequal, "all answers are equal, byte for byte", f"not in {', '.join(unequal)}")


def read(path):
    """Title (the comment in the first line) and the statements of one query."""
    title, _, text = path.read_text().partition("\n")
    return title.removeprefix("--").strip(), [part.strip() for part in text.split(";") if part.strip()]


def answers(session, statements):
    return [session.query(statement).rows for statement in statements]
