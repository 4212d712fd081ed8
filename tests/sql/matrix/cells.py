"""One cell of the matrix: a question, asked in every way, and the comparison of the answers."""

import itertools
import re

from matrix import axes
from sqlkit.client import SqlError

_VARIABLES = ("SET @int = 1, @dec = 1.5, @dbl = 1e0, @txt = 'a', @day = DATE'2020-01-01', @none = NULL, @bin = x'61', timestamp = 1577880000, "
              "group_concat_max_len = 100000, max_sort_length = 8192, note_verbosity = 'basic', max_error_count = 65535")
# The server evaluates a condition on as many rows as its plan has it see; which of them fail, or whether one does, follows from that.
_BY_EVALUATION = {1690, 1292, 1366, 1411, 1242, 1267, 1271, 1270, 4078, 1365, 1441}


# Columns of so many types are in one table: tables are what takes time to make.
_TYPES_OF_A_TABLE = 8


class Tables:
    """Tables of all types, with and without keys, in both engines."""

    def __init__(self, session):
        self.session, self._made = session, set()

    def name(self, number, engine, key):
        """The name of the table with the type; it is made when it is first asked for."""
        group = number // _TYPES_OF_A_TABLE
        name = f"{engine.lower()}_{group}{'_key' if key else ''}"
        if name not in self._made:
            self._make(name, group, engine, key)
            self._made.add(name)
        return name

    def _make(self, name, group, engine, key):
        ask = self.session.query
        mode = self.session.value("SELECT @@sql_mode")
        ask("SET sql_mode = ''")
        kinds = axes.kinds()[group * _TYPES_OF_A_TABLE:][:_TYPES_OF_A_TABLE]
        columns, keys, values = [], [], []
        for place, kind in enumerate(kinds):
            prefix = f"({kind.prefix})" if kind.prefix else ""
            columns += [f"c{place} {kind.sql}", f"d{place} {kind.sql}"]
            keys += [f"KEY (c{place}{prefix})", f"KEY (d{place}{prefix}, c{place}{prefix})"] if key else []
            values.append(kind.values + ("NULL",))
        ask(f"CREATE TABLE {name} (id INT PRIMARY KEY, {', '.join(columns + keys)}) ENGINE={engine}")
        rows = []
        for number in range(2 * max(map(len, values)) + 3):
            cells = [f"{of[number % len(of)]}, {of[(number * 7 + number // len(of)) % len(of)]}" for of in values]
            rows.append(f"({number + 1}, {', '.join(cells)})")
        ask(f"INSERT IGNORE INTO {name} VALUES {', '.join(rows)}")
        if group % 3 and engine == "PANDO":
            ask(f"OPTIMIZE TABLE {name}")
        ask(f"SET sql_mode = '{mode}'")


def in_column(text, number):
    """A condition or form, of the columns of a type."""
    place = number % _TYPES_OF_A_TABLE
    return re.sub(r"\b([cd])\b(?![('])", rf"\g<1>{place}", text)


def set_context(session, mode, zone, connection):
    """Modes, and constants that are variables."""
    session.query(f"SET sql_mode = '', time_zone = '{zone}', collation_connection = {connection}")
    session.query(_VARIABLES)
    session.query(f"SET sql_mode = '{mode}'")


def question(rng, kind):
    """(form, condition, parameters): a condition with constants, half of them of the column's own kind; some of them parameters of a
    prepared statement."""
    condition = rng.choice(axes.CONDITIONS)
    parameters = []
    for name in "klmp":
        place = "{" + name + "}"
        if place not in condition:
            continue
        constant = rng.choice(axes.PATTERNS if name == "p" else kind.values if rng.random() < 0.5 else axes.CONSTANTS)
        if rng.random() < 0.12 and condition.count(place) == 1 and not parameters:
            parameters.append(constant)
            constant = "?"
        condition = condition.replace(place, constant)
    form = rng.choice(axes.FORMS)
    if parameters and (form.count("{w}") != 1 or condition.count("?") != 1):
        condition, parameters = condition.replace("?", parameters[0]), []
    return form, condition, parameters


def every_question():
    """All of them, with the same constants in all places but one."""
    for condition in axes.CONDITIONS:
        constants = axes.PATTERNS if "{p}" in condition else axes.CONSTANTS if "{k}" in condition else ("",)
        for number, constant in enumerate(constants):
            text = condition.replace("{p}", constant).replace("{k}", constant)
            for name, step in (("{l}", 7), ("{m}", 23)):
                text = text.replace(name, axes.CONSTANTS[(number + step) % len(axes.CONSTANTS)])
            for form in dict.fromkeys(axes.FORMS):
                yield form, text, []


def _rows(result):
    return sorted((tuple(_cell(cell) for cell in row) for row in result.rows), key=repr)


def _cell(cell):
    """Sums of doubles have as many digits as any order of rows gives."""
    if cell is not None and b"." in cell and b"e" in cell:
        try:
            return b"%.10g" % float(cell)
        except ValueError:
            return cell
    return cell


def _ask(session, statement, parameters):
    try:
        if parameters:
            quoted = statement.replace("\\", "\\\\").replace("'", "''")
            backslashes = "NO_BACKSLASH" in session.value("SELECT @@sql_mode")
            session.query(f"PREPARE p FROM '{statement.replace(chr(39), chr(39) * 2) if backslashes else quoted}'")
            result = session.query(f"EXECUTE p USING {parameters[0]}")
        else:
            result = session.query(statement)
    except SqlError as error:
        return ("error", error.number, [])
    warnings = []
    if result.warnings:
        # Which row it is, as the server counts: it counts those that it gets.
        warnings = sorted((row[1], re.sub(rb" at row \d+", b"", row[2])) for row in session.query("SHOW WARNINGS").rows)
    return ("rows", _rows(result), warnings)


def _depends(first, second):
    numbers = {answer[1] for answer in (first, second) if answer[0] == "error"}
    return bool(numbers) and numbers <= _BY_EVALUATION


class Cell:
    """Asks one question of the two tables of both engines."""

    def __init__(self, session, tables, counts):
        self.session, self.tables, self.counts = session, tables, counts

    def differences(self, number, form, condition, parameters):
        """What was wrong, as a list of texts."""
        wrong, answers = [], {}
        form, condition = in_column(form, number), in_column(condition, number)
        for key in (False, True):
            name = self.tables.name(number, "PANDO", key)
            statement = form.format(f=name, w=condition)
            on = _ask(self.session, statement, parameters)
            self.session.query("SET pando_pushdown = OFF")
            off = _ask(self.session, statement, parameters)
            self.session.query("SET pando_pushdown = ON")
            peer = form.format(f=self.tables.name(number, "InnoDB", key), w=condition)
            innodb = _ask(self.session, peer, parameters)
            answers[key] = innodb
            if on[:2] != off[:2]:
                wrong.append(self._said("pushdown", statement, parameters, on, off))
            elif on != off and key:
                # Looking for ranges warns, and by a key the server sees as many rows as the key gives it.
                self.counts["other warnings of a table with keys"] += 1
            elif on != off:
                wrong.append(self._said("pushdown, in warnings", statement, parameters, ("rows", on[2], []), ("rows", off[2], [])))
            if on[:2] != innodb[:2] and not _depends(on, innodb):
                wrong.append(self._said("InnoDB", statement, parameters, on, innodb))
            self.counts["errors"] += on[0] == "error"
            self.counts["with warnings"] += bool(on[2])
        if answers[False][:2] != answers[True][:2]:
            self.counts["InnoDB's answer with a key differs from its own without"] += 1
        return wrong

    @staticmethod
    def _said(what, statement, parameters, first, second):
        one, other = list(first[1]) if first[0] == "rows" else [first], list(second[1]) if second[0] == "rows" else [second]
        for row in list(one):
            if row in other:
                one.remove(row)
                other.remove(row)
        used = f" USING {parameters[0]}" if parameters else ""
        return f"{what}: {statement}{used}\n    only PANDO {one[:6]}\n    only the other {other[:6]}"


def shape(kind_number, condition):
    """What stands for a class of differences: the family of the column and the form of the condition."""
    return (axes.kinds()[kind_number].family, condition)


def contexts():
    """All contexts."""
    return list(itertools.product(dict.fromkeys(axes.MODES), axes.ZONES, dict.fromkeys(axes.CONNECTIONS)))
