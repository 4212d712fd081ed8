#!/usr/bin/env python3
"""Finds links in the documents that lead nowhere: files that are not there, headings that are not in the file.

    scripts/check-links.py

Every *.md of the repository is read. Relative links must name a file or folder; an anchor must be a heading of that page,
spelled as GitHub spells it. Links to other sites are not followed. Paths in backticks that look like files of this
repository (`docs/...`, `scripts/...`, `crates/...`, `mariadb/...`, `tests/...`) must exist as well, as must short paths such as
`tree/src/jobs.rs`, which stand for `crates/tree/src/jobs.rs`, and names of source files without a folder, such as `jobs.rs`.
docs/architecture.md has to name every crate, every folder of the plugin, and every file of the translator of SELECTs and of the
crate that answers them.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([\w.-]+(?:/[\w.,*{}-]+)+/?)`")
SOURCE = re.compile(r"`([\w-]+\.(?:rs|cc|h))`")
FENCE = re.compile(r"^ *```.*?^ *```", re.S | re.M)
# Of the server.
NOT_OURS = {"ddl_log.cc", "sql_partition.cc"}
TOPS = {"docs", "scripts", "crates", "mariadb", "tests", "demo", "data", "bench", ".ci"}


def files(pattern):
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", pattern], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split()
    return [ROOT / name for name in names if (ROOT / name).exists()]


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    found, text = set(), FENCE.sub("", path.read_text())
    for heading in re.findall(r"^#+ +(.*)$", text, re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        name, number = slug, 0
        while name in found:
            number += 1
            name = f"{slug}-{number}"
        found.add(name)
    return found


def broken_link(page, target):
    if re.match(r"[a-z]+:", target):
        return None
    file, _, anchor = target.partition("#")
    path = (page.parent / file).resolve() if file else page
    if not path.exists():
        return f"no file {file}"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return f"no heading #{anchor} in {path.relative_to(ROOT)}"
    return None


def is_there(name):
    """Whether a path in backticks exists; `a/{b,c}.rs` and `a/*.rs` stand for several."""
    name = name.rstrip("/")
    braces = re.match(r"(.*)\{([^}]*)\}(.*)", name)
    if braces:
        return all(is_there(braces[1] + part + braces[3]) for part in braces[2].split(","))
    if "*" in name:
        return any(ROOT.glob(name))
    return (ROOT / name).exists()


def broken_path(name, crates):
    top = name.split("/")[0]
    if top in TOPS:
        return None if is_there(name) else f"no file {name}"
    if top in crates and "/src/" in f"{name}/":
        return None if is_there(f"crates/{name}") else f"no file crates/{name}"
    return None


def unnamed_rooms():
    """What docs/architecture.md does not name."""
    page = (ROOT / "docs/architecture.md").read_text()
    rooms = [f"crates/{path.parent.name}" for path in ROOT.glob("crates/*/Cargo.toml")]
    rooms += [path.name for path in (ROOT / "mariadb/src").iterdir()]
    rooms += [path.name for path in files("mariadb/src/pushdown/select_*.cc")]
    rooms += [path.name for path in files("crates/analytic/src/*.rs") if path.name not in ("lib.rs", "fuzz.rs")]
    return [f"docs/architecture.md: does not name {room}" for room in sorted(rooms) if not re.search(rf"\b{re.escape(room)}\b", page)]


def main():
    crates = {path.name for path in (ROOT / "crates").iterdir()}
    sources = {path.name for pattern in ("*.rs", "*.cc", "*.h") for path in files(pattern)} | NOT_OURS
    troubles, links = unnamed_rooms(), 0
    for page in files("*.md"):
        text = page.read_text()
        prose = FENCE.sub(lambda fence: "\n" * fence.group().count("\n"), text)
        for number, line in enumerate(prose.split("\n"), 1):
            checks = [(target, broken_link(page, target)) for target in LINK.findall(line)]
            checks += [(name, broken_path(name, crates)) for name in CODE.findall(line)]
            checks += [(name, None if name in sources else f"no file {name}") for name in SOURCE.findall(line)]
            links += len(checks)
            troubles += [f"{page.relative_to(ROOT)}:{number}: {trouble}" for _, trouble in checks if trouble]
    if troubles:
        sys.exit("\n".join(troubles))
    print(f"check-links: {links} links and paths lead somewhere")


if __name__ == "__main__":
    main()
