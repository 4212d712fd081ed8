#!/usr/bin/env python3
"""Conditions of every kind x columns of every type x constants of every type x modes, time zones, collations of the connection.

    tests/sql/matrix.sh [--cells 2000 | --seconds N] [--seed N] [--full [--part I/N]] [--collations [--every]] [--show N]

Each cell is asked of a PANDO table with a key and of one without, each with pando_pushdown on and off, and of InnoDB tables with the
same rows. With pushdown and without, rows and warnings have to be equal (with keys, rows); InnoDB's rows too. Without --full a random sample
is taken, which --seed repeats; --full takes all cells.

--collations: all collations of the server (a sample of them without --every): CHAR, VARCHAR, TEXT with keys up, down, whole, and with a
beginning only; =, <, BETWEEN, LIKE, MIN, MAX, GROUP BY by the key, without the key, and in InnoDB.
"""

import argparse
import collections
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from matrix import axes, cells, collations, known
from sqlkit import engines, program, report
from sqlkit.server import PrivateServer

_CELLS_OF_A_CONTEXT = 150


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--seconds", type=float, help="go on for so long, whatever --cells says")
    program.add_seed(parser)
    parser.add_argument("--full", action="store_true", help="all cells")
    parser.add_argument("--part", default="1/1", help="of --full: the I-th of N parts")
    parser.add_argument("--collations", action="store_true", help="the collations instead of the conditions")
    parser.add_argument("--every", action="store_true", help="all collations, not a sample")
    parser.add_argument("--show", type=int, default=20, help="differences to show")
    return parser.parse_args()


def _sample(arguments):
    """Cells at random: (context, number of the type, form, condition, parameters)."""
    rng = random.Random(arguments.seed)
    kinds, contexts = axes.kinds(), cells.contexts()
    begin, count = time.monotonic(), 0
    while True:
        context = rng.choice(contexts)
        for _ in range(_CELLS_OF_A_CONTEXT):
            if count >= arguments.cells if arguments.seconds is None else time.monotonic() - begin > arguments.seconds:
                return
            count += 1
            number = rng.randrange(len(kinds))
            yield (context, number, *cells.question(rng, kinds[number]))


def _all(arguments):
    part, parts = map(int, arguments.part.split("/"))
    for place, context in enumerate(cells.contexts()):
        if place % parts != part - 1:
            continue
        for number in range(len(axes.kinds())):
            for asked in cells.every_question():
                yield (context, number, *asked)


def _conditions(arguments, session):
    counts, wrong, before = collections.Counter(), [], None
    begun = _evaluated(session)
    tables = cells.Tables(session)
    cell = cells.Cell(session, tables, counts)
    for context, number, form, condition, parameters in (_all if arguments.full else _sample)(arguments):
        if context != before:
            cells.set_context(session, *context)
            before = context
        counts["cells"] += 1
        for text in cell.differences(number, form, condition, parameters):
            why = known.reason(axes.kinds()[number], condition, text, context)
            if why:
                counts["stated: " + why] += 1
                continue
            counts["differences"] += 1
            wrong.append(text)
            if len(wrong) <= arguments.show:
                print(f"WRONG {axes.kinds()[number].sql}, {context}\n  {text}", flush=True)
    counts["queries answered and rows passed by in the engine"] = _evaluated(session) - begun
    return counts, wrong


def _evaluated(session):
    return sum(int(session.query(f"SHOW GLOBAL STATUS LIKE 'Pando_{name}'").rows[0][1])
               for name in ("queries_pushed", "rows_filtered", "rows_skipped"))


def main():
    """Runs it."""
    arguments = _arguments()
    print(f"matrix: seed {arguments.seed}", flush=True)
    with PrivateServer("matrix", engines.options("PANDO", 64, 0) + ["--innodb-flush-method=nosync"]) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE matrix")
            session.query("USE matrix")
            if arguments.collations:
                counts, wrong = collations.run(session, arguments)
            else:
                counts, wrong = _conditions(arguments, session)
    for what, count in sorted(counts.items()):
        report.note(f"{count:7} {what}")
    checks = report.Checks()
    checks.check(not wrong, f"{counts['cells']} cells are answered alike", f"{len(wrong)} differences")
    checks.check(counts["cells"] > 50, "there were cells at all")
    if not arguments.collations:
        checks.check(counts["queries answered and rows passed by in the engine"] > counts["cells"] / 5, "the engine has evaluated conditions")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
