#!/usr/bin/env python3
"""Compares docs/variables.md with the tables in the source that it describes; fails when they differ.

    scripts/check-reference.py

Read are: system variables (mariadb/src/server/variables.cc: name, scope, default, range), status counters
(crates/base/src/metrics.rs), table options (mariadb/src/ddl/ddl.cc), tables of INFORMATION_SCHEMA and their columns
(mariadb/src/server/plugin.cc, information_schema.cc), and errors (mariadb/src/server/errors.cc). The meanings are written by hand. Lines of
the error log that the handbook explains must stand in the source as well (docs/handbook.md, "Messages in the error log").
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "docs/variables.md"
UNITS = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
# Defaults that the machine decides.
COMPUTED = {"part_of_memory(2)": "half of the memory", "part_of_memory(8)": "an eighth of the memory",
            "default_threads()": "processors, 2 to 8", "all_processors()": "processors, 2 and more"}
TYPES = {"ULonglong()": "BIGINT UNSIGNED", "Datetime(0)": "DATETIME", "SLong(1)": "INT", "Decimal(401)": "DECIMAL(4,1)",
         "Enum(&isolation_levels)": "ENUM"}

troubles = []


def trouble(text):
    troubles.append(f"{PAGE}: {text}")


def source(name):
    return (ROOT / name).read_text()


def section(page, title):
    """The lines between a heading and the next one of its level or above."""
    match = re.search(rf"^(#+) {re.escape(title)}$(.*?)(?=^#{{1,2}} |\Z)", page, re.S | re.M)
    if not match:
        sys.exit(f"{PAGE}: no section {title}")
    text = match[2]
    if len(match[1]) > 2:
        text = re.split(r"^#{1,3} ", text, flags=re.M)[0]
    return text


def rows(text):
    """Cells of the table rows whose first cell is `code`, by that code."""
    found = {}
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip()[1:-1].split("|")]
        name = re.fullmatch(r"`([^`]+)`", cells[0])
        if line.startswith("|") and name:
            if name[1] in found:
                trouble(f"{name[1]} stands there twice")
            found[name[1]] = cells[1:]
    return found


def compare(what, wanted, found):
    for name in wanted.keys() - found.keys():
        trouble(f"{what} {name} is missing")
    for name in found.keys() - wanted.keys():
        trouble(f"{what} {name} is not in the source")
    return sorted(wanted.keys() & found.keys())


def number(text, constants):
    text = re.sub(r"(\d)U?L*\b", r"\1", text)
    for name, value in constants.items():
        text = text.replace(name, str(value))
    if not re.fullmatch(r"[\d<\s()*]+", text):
        sys.exit(f"check-reference: cannot read {text!r} in variables.cc")
    return eval(text, {"__builtins__": {}})  # digits and shifts only


def shown(value, is_size):
    for size, unit in UNITS if is_size else []:
        if value >= size and value % size == 0:
            return f"{value // size} {unit}"
    return str(value)


def arguments(text):
    """Splits at commas outside of strings and parentheses."""
    parts, depth, quoted, last = [], 0, False, 0
    for place, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif not quoted and char in "()":
            depth += 1 if char == "(" else -1
        elif not quoted and char == "," and depth == 0:
            parts.append(text[last:place].strip())
            last = place + 1
    return parts + [text[last:].strip()]


def system_variables():
    code = source("mariadb/src/server/variables.cc")
    constants = {"CACHE_SIZE_MIN": number(re.search(r"CACHE_SIZE_MIN= ([^;]+);", code)[1], {}),
                 "LOG_KEY_ID": re.search(r"LOG_KEY_ID= (\d+);", source("mariadb/src/server/encryption.h"))[1],
                 "UINT_MAX32": 2 ** 32 - 1}
    wanted = {}
    for macro, kind, body in re.findall(r"^static MYSQL_(SYS|THD)VAR_(\w+)\((.*?)\);$", code, re.S | re.M):
        parts = arguments(body)
        name, rest = parts[0], parts[1 if macro == "THD" else 2:]
        flags, _, _, _, default = rest[:5]
        scope = "session" if macro == "THD" else "global"
        if "READONLY" in flags:
            scope += ", at start"
        if kind == "BOOL":
            wanted[f"pando_{name}"] = [scope, "ON" if default == "TRUE" else "OFF", ""]
            continue
        if kind == "STR":
            wanted[f"pando_{name}"] = [scope, "" if default == "nullptr" else default, ""]
            continue
        if kind == "ENUM":
            values = re.search(rf"{name}_names\[\]= \{{([^}}]+), nullptr\}}", code)[1].replace('"', "").split(", ")
            wanted[f"pando_{name}"] = [scope, values[0], ", ".join(values)]
            continue
        least, most = rest[5:7]
        is_size = "<<" in least + most or least == "CACHE_SIZE_MIN"
        low = number(least, constants)
        limits = f"{shown(low, is_size)} and more" if most == "ULONGLONG_MAX" else \
            f"{shown(low, is_size)} to {shown(number(most, constants), is_size)}"
        value = COMPUTED.get(default) or shown(number(default, constants), is_size)
        wanted[f"pando_{name}"] = [scope, value, limits]
    listed = {f"pando_{name}" for name in re.findall(r"^  MYSQL_SYSVAR\((\w+)\)", code, re.M)}
    if listed != wanted.keys():
        sys.exit(f"check-reference: cannot read variables.cc: {sorted(listed ^ wanted.keys())}")
    return wanted


def counters():
    table = re.search(r"^metrics! \{\n(.*?)^\}", source("crates/base/src/metrics.rs"), re.S | re.M)[1]
    names = re.findall(r'^    (\w+): "', table, re.M)
    # Texts are the plugin's own.
    names += re.findall(r'\{"(\w+)", \w+, SHOW_(?:CHAR|ULONGLONG)\}', source("mariadb/src/server/variables.cc"))
    return {f"Pando_{name}": None for name in names}


def table_options():
    wanted = {}
    code = source("mariadb/src/server/variables.cc")
    for name, variable in re.findall(r'HA_TOPTION_SYSVAR\("(\w+)", \w+, (\w+)\)', code):
        wanted[name] = ["a number", f"`pando_{variable}`"]
    for name, values, default in re.findall(r'HA_TOPTION_ENUM\("(\w+)", \w+, "([^"]+)", (\d+)\)', code):
        names = values.split(",")
        wanted[name] = [", ".join(f"`{value}`" for value in names), f"`{names[int(default)]}`"]
    for name, default, least, most in re.findall(r'HA_TOPTION_NUMBER\("(\w+)", \w+, (\d+), (\d+), (\d+), \d+\)', code):
        wanted[name] = [f"{least} to {most}", default]
    for name in re.findall(r'HA_TOPTION_STRING\("(\w+)", \w+\)', code):
        wanted[name] = ["a text", "none"]
    if len(wanted) != len(re.findall(r"HA_TOPTION_(?!END)", code)):
        sys.exit("check-reference: cannot read the table options in variables.cc")
    return wanted


def key_options():
    code = source("mariadb/src/ddl/ddl.cc")
    found = re.findall(r'HA_IOPTION_BOOL\("(\w+)", \w+, ([01])\)', code)
    if len(found) != len(re.findall(r"HA_IOPTION_(?!END)", code)):
        sys.exit("check-reference: cannot read the options of keys in ddl.cc")
    return {name: ["`YES`, `NO`", "`YES`" if default == "1" else "`NO`"] for name, default in found}


def schema_tables():
    files = ("information_schema", "schema_files", "schema_foreign_keys", "schema_queries")
    code = "".join(source(f"mariadb/src/reports/{name}.cc") for name in files)
    constants = dict(re.findall(r"static const uint (\w+)= (\d+);", code))
    columns_of = dict(re.findall(r"int init_(\w+)_table\(.*?return init\(schema_table, (\w+),", code, re.S))
    wanted = {}
    for name, init in re.findall(r'PANDO_INFORMATION_SCHEMA_TABLE\("(\w+)", .*?pando::init_(\w+)_table\)',
                                 source("mariadb/src/server/plugin.cc")):
        array = re.search(rf"ST_FIELD_INFO {columns_of[init]}\[\]=\n\{{(.*?)\n\}};", code, re.S)[1]
        wanted[name] = {}
        for column, kind, null in re.findall(r'Show::Column\("(\w+)", Show::(.*?), (NOT_NULL|NULLABLE)\)', array):
            size = re.fullmatch(r"Varchar\((\w+)\)", kind)
            text = f"VARCHAR({constants.get(size[1], size[1])})" if size else TYPES[kind]
            wanted[name][column] = [text + (", NULL" if null == "NULLABLE" else "")]
        if len(wanted[name]) != array.count("Show::Column("):
            sys.exit(f"check-reference: cannot read the columns of {name}")
    return wanted


def errors():
    code = source("mariadb/src/server/errors.cc")
    found = re.findall(r"^  \{PANDO_STATUS_(\w+), +(\w+), +([\w |]+)\},", code, re.M)
    wanted = {status: (error, flags) for status, error, flags in found}
    if len(wanted) != len(re.findall(r"^  \{PANDO_STATUS_", code, re.M)):
        sys.exit("check-reference: cannot read errors.cc")
    return wanted


def check_cells(what, wanted, found):
    for name in compare(what, wanted, found):
        cells = found[name][:len(wanted[name])]
        if cells != wanted[name]:
            trouble(f"{what} {name} has {cells}, the source {wanted[name]}")


def check_errors(wanted, found):
    for name in compare("error", wanted, found):
        error, flags = wanted[name]
        cells = found[name]
        if error != "0" and error not in cells[0]:
            trouble(f"error {name}: the handler's error is {error}")
        said = {"ROLL_BACK": cells[2].startswith("transaction"), "END_STATEMENT": cells[2].startswith("statement"),
                "WARN": "warning" in cells[2], "LOG": "error log" in cells[2]}
        if {flag for flag in said if said[flag]} != set(re.findall(r"\w+", flags)) - {"NOTHING"}:
            trouble(f"error {name}: the source says {flags}, the page {cells[2]!r}")


def check_messages():
    """Each message that the handbook explains begins with words that stand in the source."""
    handbook = ROOT / "docs" / "handbook.md"
    code = "\n".join(path.read_text() for folder in ("crates/base/src", "crates/capi/src", "crates/pandodb/src",
                                                     "crates/storage/src", "crates/wal/src", "mariadb/src")
                     for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".rs", ".cc"))
    code = re.sub(r'"\s*\n\s*"', "", code)
    text = handbook.read_text().split("## Messages in the error log")[1].split("\n## ")[0]
    for message in re.findall(r"^\| `([^`]+)` \|", text, re.M):
        for part in re.split(r"\.\.\.|\b[A-Z]+\b", message):
            part = part.strip(" :,;")
            if part and part not in code:
                troubles.append(f"docs/handbook.md: no message in the source has {part!r}")


def main():
    page = source(PAGE)
    variables, schema = system_variables(), schema_tables()
    check_cells("variable", variables, rows(section(page, "System variables")))
    check_cells("table option", table_options(), rows(section(page, "Table options")))
    check_cells("option of keys", key_options(), rows(section(page, "Options of keys")))
    compare("counter", counters(), rows(section(page, "Status counters")))
    for name, columns in schema.items():
        check_cells(f"column of {name}", columns, rows(section(page, name)))
    check_errors(errors(), rows(section(page, "Errors")))
    if (ROOT / "docs/handbook.md").exists():
        check_messages()
    if troubles:
        sys.exit("\n".join(troubles))
    print(f"check-reference: {len(variables)} variables, {len(counters())} counters, {len(schema)} tables and "
          f"{len(errors())} errors are as in the source")


if __name__ == "__main__":
    main()
