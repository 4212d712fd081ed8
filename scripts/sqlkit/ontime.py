"""The air-traffic benchmark of `pando-bench run ontime`: its table, its ten queries, and rows for it."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
_WORKLOAD = ROOT / "crates/bench/src/workload/ontime"


def queries():
    """Names and texts of the ten; of q8 the one over ten years."""
    found = {}
    for part in re.split(r"^-- (?=q\d)", (_WORKLOAD / "queries.sql").read_text(), flags=re.M)[1:]:
        title, text = part.split("\n", 1)
        if not title.startswith("q8") or title.endswith("10 years"):
            found[title[:2]] = text.strip().rstrip(";")
    assert list(found) == [f"q{number}" for number in range(10)], found.keys()
    return found


def columns():
    """Names and types of the columns, and the keys, as pando-bench makes them."""
    text = (_WORKLOAD / "schema.rs").read_text()
    short = dict(re.findall(r'^const (\w+): &str = "([^"]*)";', text, flags=re.M))
    found = re.findall(r'^    (?:column|renamed)\("(\w+)", (?:"([^"]*)"|(\w+))', text, flags=re.M)
    assert len(found) == 93, len(found)
    keys = re.search(r'const KEYS: &str = "([^"]*)"', text).group(1)
    return [(name, sql or short[other]) for name, sql, other in found], keys


def generate(rows, directory):
    """Makes `ontime.csv` with so many rows in a directory; needs `cargo build --release -p pando-bench`."""
    subprocess.run([ROOT / "target/release/pando-bench", "generate", "ontime", "--rows", str(rows), "--out", directory],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
