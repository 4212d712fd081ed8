#!/usr/bin/env python3
"""The documents as a site: build/book, made by mdBook (`make docs`).

    scripts/book.py [--mdbook PROGRAM] [--out DIR]

The pages are those of the repository, as they are. PARTS says in which order the book has them; a page of docs/ that is not in
PARTS comes under "More", so that none is left out. Links to files that are not pages (sources, licences) become plain text, as
the site does not have them. Afterwards every link within the site is followed.
"""
import argparse
import html
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = [
    ("Use it", ["docs/handbook.md", "docs/packages.md", "docs/variables.md", "docs/bounds.md", "docs/high-availability.md", "docs/isolation.md",
                "docs/compatibility.md", "docs/tools.md"]),
    ("Why trust it", ["docs/simulation.md", "docs/fuzzing.md", "tests/sql/README.md", "docs/benchmarks.md", "docs/benchmarks/*.md"]),
    ("How it works", ["docs/architecture.md", "docs/glossary.md", "docs/format.md", "mariadb/README.md", "docs/decisions/README.md",
                      "docs/decisions/*.md"]),
    ("Work on it", ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]),
]
# Pages below another one in the list of contents.
BELOW = {"docs/benchmarks/*.md", "docs/decisions/*.md"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *```.*?^ *```[^\n]*$", re.S | re.M)


def title_of(path):
    found = re.search(r"^# +(.*)$", path.read_text(), re.M)
    return found[1].replace("`", "") if found else path.stem


def chapters():
    """Parts of the book: (title, [(depth, page)])."""
    taken, parts = {"README.md"}, []
    for title, patterns in PARTS:
        pages = []
        for pattern in patterns:
            for path in sorted(ROOT.glob(pattern)):
                page = str(path.relative_to(ROOT))
                if page not in taken:
                    taken.add(page)
                    pages.append((pattern in BELOW, page))
        parts.append((title, pages))
    more = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/**/*.md"))]
    parts.append(("More", [(False, page) for page in more if page not in taken]))
    return [(title, pages) for title, pages in parts if pages]


def name_in_book(page):
    """mdBook makes index.html of index.md; not every version does of README.md."""
    return re.sub(r"README\.md$", "index.md", page)


def rewritten(page, text, pages, files):
    """The page for the book: links to what the book does not have as plain text, pictures copied along."""
    def link(match):
        picture, label, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        inside = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if os.path.join(inside, "README.md") in pages:
            path = path.rstrip("/") + "/README.md"
            inside = os.path.join(inside, "README.md")
        if inside in pages:
            return f"[{label}]({name_in_book(path)}{'#' + anchor if anchor else ''})"
        if re.search(r"\.(svg|png)$", inside):
            files.add(inside)
            return match[0]
        return label if not picture else ""
    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(link, text[at:fence.start()]), fence[0]]
        at = fence.end()
    return "".join(parts) + LINK.sub(link, text[at:])


def write_source(source):
    shutil.rmtree(source, ignore_errors=True)
    parts, files = chapters(), set()
    pages = {"README.md"} | {page for _, list_ in parts for _, page in list_}
    for page in sorted(pages):
        target = source / name_in_book(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(rewritten(page, (ROOT / page).read_text(), pages, files))
    for file in files:
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, source / file)
    summary = ["# Summary", "", "[Pando](index.md)"]
    for title, list_ in parts:
        summary += ["", f"# {title}", ""]
        summary += [f"{'  ' if is_below else ''}- [{title_of(ROOT / page)}]({name_in_book(page)})" for is_below, page in list_]
    (source / "SUMMARY.md").write_text("\n".join(summary) + "\n")
    return len(pages)


def dead_links(site):
    """Links of the site's pages to files that it does not have, and (as False) to headings."""
    anchors, links = {}, []
    for path in site.rglob("*.html"):
        if path.name in ("print.html", "toc.html", "404.html"):
            continue
        text = path.read_text()
        anchors[path.resolve()] = set(re.findall(r'\bid="([^"]+)"', text))
        main = text.split("<main>")[-1].split("</main>")[0]
        links += [(path, html.unescape(target)) for target in re.findall(r'(?:href|src)="([^"]+)"', main)]
    for path, target in links:
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (path.parent / name).resolve() if name else path.resolve()
        if not other.exists() or (anchor and other in anchors and anchor not in anchors[other]):
            yield not other.exists(), f"{path.relative_to(site)}: {target}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mdbook", default=str(ROOT / "build/tools/bin/mdbook"))
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/book")
    args = parser.parse_args()
    work = args.out.with_name(args.out.name + "-source")
    count = write_source(work / "src")
    (work / "book.toml").write_text('[book]\ntitle = "Pando"\nlanguage = "en"\nsrc = "src"\n\n'
                                    '[output.html]\ndefault-theme = "light"\n')
    subprocess.run([args.mdbook, "build", "--dest-dir", str(args.out.resolve()), str(work)], check=True)
    dead = sorted(set(dead_links(args.out.resolve())))
    for is_file, line in dead:
        # Headings are checked by check-links.py, as GitHub spells them; mdBook may spell one in another way.
        print(f"book: {'a dead link' if is_file else 'no such heading'}: {line}", file=sys.stderr)
    print(f"book: {count} pages: {args.out}/index.html")
    sys.exit(any(is_file for is_file, _ in dead))


if __name__ == "__main__":
    main()
