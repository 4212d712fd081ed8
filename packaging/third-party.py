#!/usr/bin/env python3
"""The crates that are inside of what was built, with their licences.

third-party.py CRATE ... > FILE: those that the given crates of the workspace are built of, on this platform.
"""

import json
import pathlib
import subprocess
import sys

NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def host():
    for line in subprocess.run(["rustc", "-vV"], capture_output=True, check=True, text=True).stdout.splitlines():
        if line.startswith("host: "):
            return line.split()[1]
    sys.exit("rustc does not say what its host is")


def crates_inside(roots):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host()]
    metadata = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo = [id for id, package in packages.items() if package["source"] is None and package["name"] in roots]
    seen = set(todo)
    while todo:
        for dependency in nodes[todo.pop()]["deps"]:
            if dependency["pkg"] in seen or all(kind["kind"] for kind in dependency["dep_kinds"]):
                continue
            seen.add(dependency["pkg"])
            todo.append(dependency["pkg"])
    others = (packages[id] for id in seen if packages[id]["source"])
    # Procedural macros run in the compiler.
    return sorted((package for package in others if not is_macro(package)),
                  key=lambda package: (package["name"], package["version"]))


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def licence_files(directory):
    places = [directory, directory / "zstd"]
    files = (file for place in places if place.is_dir() for file in sorted(place.iterdir()))
    return [file for file in files if file.is_file() and file.name.upper().startswith(NAMES)]


def main():
    texts = {}
    print("Crates that are a part of these files, and their licences. The texts follow, each once.\n")
    for package in crates_inside(set(sys.argv[1:])):
        directory = pathlib.Path(package["manifest_path"]).parent
        numbers = []
        for file in licence_files(directory):
            text = "\n".join(line.rstrip() for line in file.read_text(errors="replace").strip().splitlines())
            numbers.append(texts.setdefault(text, len(texts) + 1))
        where = ", ".join(f"text {number}" for number in numbers) or "no text in the crate"
        print(f"{package['name']} {package['version']}: {package['license']} ({where})")
    for text, number in texts.items():
        print(f"\n\n===== text {number} =====\n\n{text}")


main()
