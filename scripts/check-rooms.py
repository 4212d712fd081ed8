#!/usr/bin/env python3
"""Circles of files: checks that the folders ("rooms") of crates do not depend on each other in a circle.

    scripts/check-rooms.py            fails where, in the crates of CHECKED, folders depend on each other in a circle, or more
                                      than MAX files do
    scripts/check-rooms.py --list     prints the circles and, of crates with rooms, which room imports which

A file depends on another when it names something of it by a path (`use crate::table::Dict`, `super::zones::Zone`).
Methods are not seen: `impl Db` is spread over the rooms on purpose.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX = 3
CHECKED = ("capi", "column", "pandodb", "run", "tree")
USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;\"]+);", re.M)


def modules(src):
    """Module path -> file."""
    found = {}
    for file in src.rglob("*.rs"):
        parts = list(file.relative_to(src).with_suffix("").parts)
        if parts[-1] in ("mod", "lib", "main"):
            parts.pop()
        found[tuple(parts)] = file
    return found


def without_tests(text):
    """What is before the tests of the file, without comments."""
    text = re.split(r"^#\[cfg\(test\)\]\s*\nmod ", text, flags=re.M)[0]
    return re.sub(r"//.*", "", text)


def expand(path):
    """`a::{b, c::{d}}` as a list of paths."""
    path = path.strip()
    brace = path.find("{")
    if brace < 0:
        return [path.split(" as ")[0].strip()]
    head, depth, part, parts = path[:brace], 0, "", []
    for char in path[brace + 1:path.rindex("}")] + ",":
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += char
    return [head + inner for part in parts if part.strip() for inner in expand(part)]


def imports(module, file, known):
    """Modules that the file names."""
    text = without_tests(file.read_text())
    paths = []
    for use in USE.findall(text):
        paths += expand(re.sub(r"\s+", "", use.replace(" as ", "@")).replace("@", " as "))
    paths += re.findall(r"\b(?:crate|super|self)(?:::\w+)+", USE.sub("", text))
    for path in paths:
        names = path.split("::")
        if names[0] == "crate":
            base, names = (), names[1:]
        elif names[0] == "super":
            base = module
            while names and names[0] == "super":
                base, names = base[:-1], names[1:]
        elif names[0] == "self" or module + (names[0],) in known:
            base, names = module, names[1:] if names[0] == "self" else names
        else:
            continue
        target = base
        for name in names:
            if target + (name,) not in known:
                break
            target += (name,)
        if target in known and target != module and target != ():
            yield target


def circles(graph):
    """Strongly connected components of more than one (Tarjan)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while True:
                other = stack.pop()
                on_stack.discard(other)
                part.append(other)
                if other == node:
                    break
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main():
    is_list = "--list" in sys.argv[1:]
    failed = False
    for src in sorted(ROOT.glob("crates/*/src")):
        known = modules(src)
        graph = {module: set(imports(module, file, known)) for module, file in known.items() if module}
        crate = src.parent.name
        rooms_below = {}
        folders = {module[0] for module in graph if len(module) > 1}
        for module, others in graph.items():
            rooms_below.setdefault(module[0], set()).update(other[0] for other in others if other[0] != module[0])
        of_rooms = circles(rooms_below) if crate in CHECKED else []
        for circle in of_rooms:
            if not folders.issuperset(circle):
                continue
            print(f"check-rooms: {crate}: a circle of rooms: {', '.join(circle)}", file=sys.stderr)
            failed = True
        for circle in circles(graph):
            line = f"a circle of {len(circle)} files: " + ", ".join("/".join(module) for module in circle)
            if is_list:
                print(f"{crate}: {line}")
            elif crate in CHECKED and len(circle) > MAX:
                print(f"check-rooms: {crate}: {line}", file=sys.stderr)
                failed = True
        rooms = sorted({module[0] for module in graph if len(module) > 1})
        if is_list and rooms:
            for room in rooms:
                print(f"  {crate}/{room} -> {', '.join(sorted(rooms_below[room]))}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
