"""Random SELECTs of any shape: joins of up to five tables, inner and outer, queries in conditions and as values, derived
tables, UNION and its siblings in them, groups over all of it, EXISTS and IN as values, ROLLUP, window functions, DISTINCT, HAVING, the first rows of an order. Answers are sets, but for those with LIMIT, which are
sorted by all of their columns."""

import re

from pushdown import queries

SELECT = "/* select */"

# What the order in which a server meets rows, or sorts equal ones, may decide: another engine need not give the same.
# Groups of quotients are rounded, or not, by the server's plan.
OPEN = re.compile(r"GROUP_CONCAT|STD|VAR|AVG|SUM\(DISTINCT| OVER | GROUP BY .* / ")


def _renamed(columns, alias):
    """The columns of a table under another name."""
    made = []
    for column in columns:
        copy = object.__new__(type(column))
        copy.__dict__.update(column.__dict__)
        copy.name = f"{alias}.{column.name.split('.')[-1]}"
        made.append(copy)
    return made

# Texts that may be equal and not the same, though those of the columns are not.
TEXT = re.compile(r"UPPER|SUBSTRING|LEFT\(|RIGHT\(|CONCAT|COALESCE")
# An order by all columns.
ORDERED = re.compile(r" ORDER BY [0-9]+( DESC)?(, [0-9]+( DESC)?)*( LIMIT [0-9, ]+)?$")


def alias_of(table):
    """The name of a table in FROM."""
    return table.rsplit(" ", 1)[-1]


def _integers(columns):
    return [column for column in columns if "INT" in column.sql_type]


def _link(random, first, second):
    """What ties two tables."""
    alike = [(a, b) for a in first for b in second if a.family == b.family and
             (a.family in ("number", "date") or a.sql_type.split(" ", 1)[-1] == b.sql_type.split(" ", 1)[-1])]
    integers = [(a, b) for a, b in alike if "INT" in a.sql_type and "INT" in b.sql_type]
    a, b = random.choice(integers if integers and random.random() < 0.85 else alike or
                         [(random.choice(first), random.choice(second))])
    return f"{a.name} = {b.name}"


class _Source:
    """FROM, and what it has."""

    def __init__(self, random, columns, dimensions):
        self.random = random
        self.given = {"t": columns, "d": dimensions[0], "e": dimensions[1]}
        self.next = 0

    def table(self, letter=None):
        """A table under a name of its own, and its columns."""
        letter = letter or self.random.choice("dddeet")
        self.next += 1
        alias = f"x{self.next}"
        columns = _renamed(self.given[letter], alias)
        return f"{{{letter}}} AS {alias}", columns

    def derived(self):
        """A derived table."""
        random = self.random
        table, columns = self._rows()
        self.next += 1
        alias = f"x{self.next}"
        integer = random.choice(_integers(columns) or columns)
        others = random.sample(columns, min(len(columns), random.randint(1, 2)))
        where = queries._condition(random, columns) if random.random() < 0.6 else "1 = 1"
        if random.random() < 0.25:
            return self._together(table, columns, where, integer, alias)
        if random.random() < 0.25:
            return self._told_of_rows(table, columns, where, integer, alias)
        if random.random() < 0.5:
            total = random.choice(("COUNT(*)", "SUM({})", "MAX({})", "COUNT(DISTINCT {})", "AVG({})")).format(
                queries.number(random, columns, 1))
            text = f"(SELECT {integer.name} AS k, {total} AS v FROM {table} WHERE {where} GROUP BY {integer.name}" \
                   f"{random.choice(('', ' HAVING COUNT(*) > 1'))}) AS {alias}"
            made = _renamed([integer], alias)
            made[0].name = f"{alias}.k"
            return text, made
        shown = [integer] + [column for column in others if column is not integer]
        names = ", ".join(f"{column.name} AS k{number}" for number, column in enumerate(shown))
        text = f"(SELECT {random.choice(('', 'DISTINCT '))}{names} FROM {table} WHERE {where}) AS {alias}"
        made = _renamed(shown, alias)
        for number, column in enumerate(made):
            column.name = f"{alias}.k{number}"
        return text, made

    def _rows(self):
        """What a derived table is made of: a table, or two."""
        random = self.random
        table, columns = self.table()
        if random.random() < 0.5:
            return table, columns
        other, more = self.table("d" if random.random() < 0.6 else "e")
        kind = random.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"))
        # Most rows have a partner by what ties them alone.
        on = _link(random, columns, more) + (f" AND {queries._condition(random, more, 1)}" if random.random() < 0.7 else "")
        return f"{table} {kind} {other} ON {on}", columns + more

    def _told_of_rows(self, table, columns, where, integer, alias):
        """A derived table with a window function, or with groups of its groups."""
        random = self.random
        other = random.choice(columns).name
        if random.random() < 0.7:
            function = random.choice((f"COUNT(*) OVER (PARTITION BY {other})", f"RANK() OVER (PARTITION BY {other} ORDER BY {integer.name})",
                                      f"COUNT({other}) OVER (ORDER BY {integer.name})", f"DENSE_RANK() OVER (ORDER BY {other} DESC)"))
            text = f"SELECT {integer.name} AS k0, {function} AS k1 FROM {table} WHERE {where}"
        else:
            text = f"SELECT {integer.name} AS k0, COUNT(*) AS k1 FROM {table} WHERE {where} GROUP BY {integer.name} WITH ROLLUP"
        made = _renamed([integer, integer], alias)
        for number, column in enumerate(made):
            column.name = f"{alias}.k{number}"
        return f"({text}) AS {alias}", made

    def _together(self, table, columns, where, integer, alias):
        """A derived table of several queries."""
        random = self.random
        shown = [integer, random.choice(columns)]
        text = f"SELECT {shown[0].name} AS k0, {shown[1].name} AS k1 FROM {table} WHERE {where}"
        if table.startswith("{t}") and "JOIN" not in table and random.random() < 0.3:
            text = f"({text} ORDER BY {alias_of(table)}.id{random.choice(('', ' DESC'))} LIMIT {random.choice((1, 7, 40))})"
        for _ in range(random.choice((1, 1, 2))):
            other, more = self.table()
            first = random.choice(_integers(more) or more)
            alike = [column for column in more if column.family == shown[1].family] if random.random() < 0.8 else []
            second = random.choice(alike).name if alike else random.choice(("NULL", shown[1].literals[0], random.choice(more).name))
            operation = random.choice(("UNION", "UNION ALL", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"))
            # 10.11 counts rows below 0 there, and then writes them without end.
            if operation == "EXCEPT ALL" and "INTERSECT ALL" in text:
                operation = "EXCEPT"
            condition = queries._condition(random, more) if random.random() < 0.5 else "1 = 1"
            text += f" {operation} SELECT {first.name}, {second} FROM {other} WHERE {condition}"
        made = _renamed(shown, alias)
        for number, column in enumerate(made):
            column.name = f"{alias}.k{number}"
        return f"({text}) AS {alias}", made

    def joined(self, most):
        """Several tables."""
        random = self.random
        text, columns = self.table("t" if random.random() < 0.8 else "d")
        conditions = []
        for _ in range(random.randint(0, most)):
            table, more = self.derived() if random.random() < 0.3 else self.table("d" if random.random() < 0.6 else "e")
            link = _link(random, columns, more)
            kind = random.choice((",", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"))
            if kind == "RIGHT JOIN" and "," in text:
                kind = "LEFT JOIN"
            if kind == ",":
                text += f" JOIN {table} ON TRUE"
                conditions.append(link)
            else:
                on = link
                if random.random() < 0.3:
                    on += f" AND {queries._condition(random, more if random.random() < 0.7 else columns + more, 1)}"
                text += f" {kind} {table} ON {on}"
            columns = columns + more
        return text, columns, conditions

    def condition_with_query(self, columns):
        """A condition with a query in it."""
        random = self.random
        table, inner = self.derived() if random.random() < 0.1 else self.table()
        link = _link(random, inner, columns)
        where = queries._condition(random, inner) if random.random() < 0.6 else "1 = 1"
        integer, outer = random.choice(_integers(inner) or inner).name, random.choice(_integers(columns) or columns).name
        no = random.choice(("", "NOT "))
        compared = random.choice(("=", "<", ">", "<=", "<>"))
        value = random.choice(("MAX({0})", "MIN({0})", "COUNT({0})", "COUNT(*)", "SUM({0})", "AVG({0})")).format(integer)
        value = _computed(random, value)
        second, more = self.table()
        return random.choice((
            f"{no}EXISTS (SELECT {integer} FROM {table} WHERE {where} {random.choice(('UNION', 'EXCEPT', 'INTERSECT'))}"
            f" SELECT {random.choice(_integers(more) or more).name} FROM {second})",
            f"{no}EXISTS (SELECT 1 FROM {table} WHERE {link} AND {where})",
            f"{no}EXISTS (SELECT * FROM {table} WHERE {link} AND {random.choice(inner).name} <> {random.choice(columns).name})",
            f"{outer} {no}IN (SELECT {integer} FROM {table} WHERE {where})",
            f"{outer} {no}IN (SELECT {integer} FROM {table} WHERE {where} {random.choice(('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'))}"
            f" SELECT {random.choice(_integers(more) or more).name} FROM {second})",
            f"{outer} {no}IN (SELECT {integer} FROM {table} GROUP BY {integer} HAVING COUNT(*) > 1)",
            f"{outer} IN (SELECT {integer} FROM {table} WHERE {link} AND {where})",
            f"{outer} {compared} (SELECT {value} FROM {table} WHERE {link} AND {where})",
            f"{outer} {compared} (SELECT {value} FROM {table} WHERE {where})",
            f"{queries.number(random, columns, 1)} {compared} (SELECT {value} FROM {table} WHERE {link})",
        ))


def _computed(random, aggregate):
    """Something of an aggregate: of no rows it may have a value where the aggregate has none."""
    return random.choice((aggregate, aggregate, f"IFNULL({aggregate}, 0)", f"COALESCE({aggregate}, 7)", f"{aggregate} IS NULL",
                          f"CASE WHEN {aggregate} IS NOT NULL THEN 1 ELSE 2 END", f"IF({aggregate} > 3, 1, 0)"))


def _asked(random, source, columns):
    """A condition with a query in it, as a value."""
    condition = source.condition_with_query(columns)
    return random.choice((f"({condition})", f"CASE WHEN {condition} THEN {random.choice(columns).name} END", f"NOT ({condition})"))


def _value(random, columns):
    """An expression of a row."""
    column = random.choice(columns)
    texts = queries._of(columns, "text")
    dates = queries._of(columns, "date", "datetime")
    form = random.random()
    if form < 0.5:
        return column.name
    if form < 0.7:
        return queries.number(random, columns, 1)
    if form < 0.8 and texts:
        return random.choice(("SUBSTRING({}, 2, 3)", "LEFT({}, 2)", "RIGHT({}, 1)", "SUBSTRING({}, -2)", "UPPER({})", "LENGTH({})",
                              "CONCAT({}, 'x')", "COALESCE({}, 'none')")).format(random.choice(texts).name)
    if form < 0.88 and dates:
        return random.choice(("YEAR({})", "QUARTER({})", "EXTRACT(YEAR_MONTH FROM {})", "DATE({})", "HOUR({})",
                              "DAYOFWEEK({})")).format(random.choice(dates).name)
    return random.choice(("COALESCE({0}, 0)", "IFNULL({0}, -1)", "NULLIF({0}, 1)", "{0} / 3", "{0} / {0}", "-{0}", "ABS({0})")).format(
        queries.number(random, columns, 1))


def _told(random, columns):
    """An aggregate, or one of the rarer ones."""
    if random.random() < 0.6:
        return queries._aggregate(random, columns)
    column, other = random.choice(columns), random.choice(columns)
    number = queries.number(random, columns, 1) if random.random() < 0.4 else \
        random.choice(queries._of(columns, "number") or columns).name
    function = random.choice(("STD", "STDDEV_SAMP", "VARIANCE", "VAR_SAMP", "BIT_AND", "BIT_OR", "BIT_XOR", "DISTINCT", "CONCAT", "CONCAT",
                              "SUM(DISTINCT", "AVG"))
    if function == "DISTINCT":
        return f"COUNT(DISTINCT {column.name}, {other.name})"
    if function == "CONCAT":
        distinct, descends = random.choice(("", "DISTINCT ")), random.choice(("", " DESC"))
        order = f" ORDER BY {random.choice((column, other) if not distinct else (column,)).name}{descends}"
        separator = random.choice(("", " SEPARATOR '|'"))
        several = f", {other.name}" if random.random() < 0.2 and not distinct else ""
        limit = random.choice((" LIMIT 2", " LIMIT 1, 2")) if random.random() < 0.1 else ""
        order = order if not distinct or random.random() < 0.6 else ""
        return f"GROUP_CONCAT({distinct}{column.name}{several}{order}{separator}{limit})"
    if function == "SUM(DISTINCT":
        return f"SUM(DISTINCT {number})"
    return f"{function}({number})"


def _frame(random):
    """The frame of a window, if any."""
    bounds = ("UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "3 FOLLOWING", "UNBOUNDED FOLLOWING")
    if random.random() < 0.5:
        return ""
    begin, end = sorted(random.sample(range(7), 2))
    return f" {random.choice(('ROWS', 'ROWS', 'RANGE'))} BETWEEN {bounds[begin]} AND {bounds[end]}"


def _window(random, columns, is_known):
    """A window function; `is_known`: what makes rows different, or all of it."""
    column, number = random.choice(columns).name, queries.number(random, columns, 1)
    partition = f"PARTITION BY {random.choice(columns).name}" if random.random() < 0.6 else ""
    order = f" ORDER BY {random.choice(columns).name}{random.choice(('', ' DESC'))}" if random.random() < 0.8 else ""
    if random.random() < 0.7 and is_known:
        order = f"{order}, {is_known}" if order and random.random() < 0.6 else f" ORDER BY {is_known}"
    function = random.choice(("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()", "NTILE(3)", f"LAG({column}, 2)",
                              f"LAG({column})", f"LEAD({column})", f"FIRST_VALUE({column})", f"LAST_VALUE({column})",
                              f"NTH_VALUE({column}, 2)", f"SUM({number})", f"COUNT({column})", "COUNT(*)", f"MIN({column})",
                              f"MAX({column})", f"AVG({number})", f"SUM({column})"))
    is_ranked = function.split("(")[0] in ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD")
    if is_ranked and not order:
        order = f" ORDER BY {column}"
    return f"{function} OVER ({partition}{order}{'' if is_ranked or not order else _frame(random)})"


def _windowed(random, source):
    """A SELECT with window functions, over a table or over groups."""
    tables, of, conditions = source.joined(random.choice((0, 0, 1)))
    if random.random() < 0.5:
        conditions.append(queries._condition(random, of))
    if random.random() < 0.2:
        conditions.append(source.condition_with_query(of))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    if random.random() < 0.3:
        groups = [random.choice(of) for _ in range(random.choice((1, 2)))]
        names = [group.name for group in groups]
        told = queries._aggregate(random, of)
        functions = [random.choice((f"RANK() OVER (ORDER BY {told})", f"ROW_NUMBER() OVER (ORDER BY {', '.join(names)})",
                                    f"SUM({told}) OVER (PARTITION BY {names[0]})", f"COUNT(*) OVER (ORDER BY {names[-1]})",
                                    f"LAG({told}) OVER (ORDER BY {', '.join(names)})", f"MAX({told}) OVER ()"))
                     for _ in range(random.choice((1, 2)))]
        shown = [f"{name} AS g{number}" for number, name in enumerate(names)] + [f"{told} AS a"]
        grouped = f" GROUP BY {', '.join(names)}"
    else:
        alias = of[0].name.split(".")[0]
        functions = [_window(random, of, f"{alias}.id" if tables.startswith("{t}") and "JOIN" not in tables else "")
                     for _ in range(random.choice((1, 1, 2, 3)))]
        if random.random() < 0.2:
            functions[0] = f"{functions[0]} {random.choice(('+ 1', '* 100', '/ 3'))}"
        shown = [f"{_value(random, of)} AS v{number}" for number in range(random.randint(0, 2))]
        shown += [f"{_asked(random, source, of)} AS q"] if random.random() < 0.15 else []
        grouped = ""
    shown += [f"{function} AS w{number}" for number, function in enumerate(functions)]
    text = f"SELECT {SELECT} {random.choice(('', '', '', 'DISTINCT '))}{', '.join(shown)} FROM {tables}{where}{grouped}"
    if random.random() < 0.4:
        order = [f"{number + 1}{random.choice(('', ' DESC'))}" for number in range(len(shown))]
        random.shuffle(order)
        text += f" ORDER BY {', '.join(order)}{random.choice(('', ' LIMIT 3', ' LIMIT 2, 20'))}"
    return text


def query(random, columns, dimensions):
    """A SELECT."""
    source = _Source(random, columns, dimensions)
    if random.random() < 0.2:
        return _windowed(random, source)
    tables, of, conditions = source.joined(random.choice((0, 1, 1, 2, 2, 3, 4)))
    if random.random() < 0.6:
        conditions.append(queries._condition(random, of))
    if random.random() < 0.4:
        conditions.append(source.condition_with_query(of))
    if random.random() < 0.1:
        conditions.append(f"({queries._condition(random, of)} OR {source.condition_with_query(of)})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    if random.random() < 0.4:
        shown = [f"{_value(random, of)} AS v{number}" for number in range(random.randint(1, 4))]
        if random.random() < 0.15:
            inner, more = source.table()
            told = _computed(random, random.choice(("COUNT(*)", f"MAX({more[0].name})")))
            shown.append(f"(SELECT {told} FROM {inner} WHERE "
                         f"{_link(random, more, of)}) AS q")
        if random.random() < 0.2:
            shown.append(f"{_asked(random, source, of)} AS q1")
        text = f"SELECT {SELECT} {random.choice(('', '', 'DISTINCT '))}{', '.join(shown)} FROM {tables}{where}"
        if random.random() < 0.5:
            order = [f"{number + 1}{random.choice(('', ' DESC'))}" for number in range(len(shown))]
            random.shuffle(order)
            text += f" ORDER BY {', '.join(order)}{random.choice(('', ' LIMIT 3', ' LIMIT 2, 20'))}"
        return text
    groups = [_value(random, of) for _ in range(random.choice((0, 1, 1, 2, 3)))]
    if random.random() < 0.1:
        groups.append(_asked(random, source, of))
    told = [_told(random, of) for _ in range(random.randint(0 if groups else 1, 3))]
    if told and random.random() < 0.1:
        told.append(f"{random.choice(('SUM', 'MAX', 'COUNT'))}({_asked(random, source, of)})")
    if told and random.random() < 0.2:
        told.append(f"{random.choice(('SUM', 'AVG'))}({queries.number(random, of, 1)}) / COUNT(*)")
    shown = [f"{expression} AS g{number}" for number, expression in enumerate(groups)]
    shown += [f"{expression} AS a{number}" for number, expression in enumerate(told)]
    text = f"SELECT {SELECT} {', '.join(shown)} FROM {tables}{where}"
    if groups:
        text += f" GROUP BY {', '.join(groups)}"
    if groups and random.random() < 0.15:
        text += f" WITH ROLLUP{random.choice(('', f' HAVING COUNT(*) > {random.choice((1, 2))}', ' LIMIT 100000'))}"
        return text
    if told and random.random() < 0.2:
        text += f" HAVING {random.choice(told)} {random.choice(('>', '<', '>=', '<>'))} {random.choice((0, 1, 2, 5))}"
    if groups and random.random() < 0.5:
        order = [f"{number + 1}{random.choice(('', ' DESC'))}" for number in range(len(shown))]
        random.shuffle(order)
        text += f" ORDER BY {', '.join(order)}{random.choice(('', ' LIMIT 3', ' LIMIT 2, 20'))}"
    return text
