#!/usr/bin/env python3
"""Finds links in the documents that lead nowhere: files that are not there, headings that are not in the file.

    scripts/check-links.py

Every *.md of the repository is read. Relative links must name a file or folder; an anchor must be a heading of that page,
spelled as GitHub spells it. Links to other sites are not followed. Paths in backticks that look like files of this
repository (`docs/...`, `scripts/...`, `crates/...`, `mariadb/...`, `tests/...`) must exist as well, as must short paths such as
`tree/src/jobs.rs`, which stand for `crates/tree/src/jobs.rs`.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([\w.-]+(?:/[\w.,*{}-]+)+/?)`")
FENCE = re.compile(r"^ *```.*?^ *```", re.S | re.M)
TOPS = {"docs", "scripts", "crates", "mariadb", "tests", "demo", "data", "bench", ".ci"}


def documents():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, check=True,
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


def main():
    crates = {path.name for path in (ROOT / "crates").iterdir()}
    troubles, links = [], 0
    for page in documents():
        text = page.read_text()
        prose = FENCE.sub(lambda fence: "\n" * fence.group().count("\n"), text)
        for number, line in enumerate(prose.split("\n"), 1):
            checks = [(target, broken_link(page, target)) for target in LINK.findall(line)]
            checks += [(name, broken_path(name, crates)) for name in CODE.findall(line)]
            links += len(checks)
            troubles += [f"{page.relative_to(ROOT)}:{number}: {trouble}" for _, trouble in checks if trouble]
    if troubles:
        sys.exit("\n".join(troubles))
    print(f"check-links: {links} links and paths lead somewhere")


if __name__ == "__main__":
    main()
