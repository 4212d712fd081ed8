"""Random queries over one table, or over two or three that are joined: with groups (`query`), whose answer is in one order
only, by all columns of the groups, and without (`rows_query`). Tables are named `{t}`, `{d}` and `{e}`; columns have names of their own."""

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def _constant(random, column):
    """A constant for a comparison with the column; mostly of its own kind."""
    if random.random() < 0.1:
        return random.choice(("NULL", "0", "1", "'1'", "1.5", "-1e0", "'x'", "DATE'2020-01-01'", "TRUE", "'2020-01-01'"))
    if column.family == "number" and random.random() < 0.4:
        return random.choice((str(random.randint(-10, 10)), f"{random.randint(-9, 9)}.{random.randint(0, 99)}", "0.5",
                              "18446744073709551615", "-9223372036854775808", "0.00000000000000000001"))
    if column.family == "number" and random.random() < 0.15:
        return random.choice(("ABS(-3)", "2 + 3", "GREATEST(1, 2.5)", "LENGTH('abc')", "1 / 4", "'7' + 1", "@five", "1 / 0"))
    if column.family == "text" and random.random() < 0.15:
        return random.choice(("CONCAT('a', 'b')", "UPPER('abc')", "REPEAT('a', 2)", "CHAR(97)", "@word", "IF(1, 'zebra', 'a')"))
    if column.family in ("date", "datetime") and random.random() < 0.2:
        return random.choice(("DATE_SUB('2020-01-31', INTERVAL 30 DAY)", "LAST_DAY('2008-02-01')", "'2020-1-2'",
                              "DATE_ADD(DATE'2020-01-01', INTERVAL 1 DAY)", "'20200101'", "'2021-12-31'", "'2021-02-30'",
                              "STR_TO_DATE('01,1,2020', '%d,%m,%Y')", "MAKEDATE(2020, 1)", "DATE('2020-01-02 10:00:00')",
                              "'2020-01-01 00:00:00.000001'", "@day", "'0000-00-00'", "'2020-00-10'"))
    if column.family == "year" and random.random() < 0.5:
        return random.choice(("2000", "1900", "1901", "0", "70", "'2020'", "2156", "2020 - 1", "YEAR('2020-05-05')", "-1",
                              "2000.0", "2019.5", "DATE'2000-01-01'"))
    if column.family in ("date", "datetime") and random.random() < 0.5:
        return random.choice(("DATE'2020-01-01'", "'2020-01-01'", "'2020-01-01 00:00:00'", "'2008-02-29'",
                              "TIMESTAMP'2020-01-01 12:34:56'", "20200101", "TIMESTAMP'2020-01-01 12:34:56.789'"))
    return random.choice(column.literals)


_PATTERNS = ("a%", "%a%", "_b%", "%", "", "zebra", "%e_", "x y", "%ü%", "a\\\\%", "%bc", "A%", "__", "%long%long%", "long long%")


def _of(columns, *families):
    return [column for column in columns if column.family in families]


def _pair_condition(random, columns):
    """Two columns, or numbers, compared with each other."""
    first = random.choice(columns)
    alike = [column for column in columns if column.family == first.family and column is not first]
    if first.family == "number" and random.random() < 0.5:
        return f"{number(random, columns)} {random.choice(_COMPARISONS)} {number(random, columns)}"
    second = random.choice(alike) if alike and random.random() < 0.9 else random.choice(columns)
    return f"{first.name} {random.choice(_COMPARISONS)} {second.name}"


def _row_condition(random, columns):
    """Rows of values compared with each other."""
    of = random.sample(columns, min(2, len(columns)))
    row = "(" + ", ".join(column.name for column in of) + ")"
    values = ["(" + ", ".join(_constant(random, column) for column in of) + ")" for _ in range(2)]
    others = random.sample(columns, len(of))
    form = random.random()
    if form < 0.4:
        return f"{row} {random.choice(('=', '<>', '<=>', '='))} {values[0]}"
    if form < 0.6:
        return f"{row} {random.choice(('', 'NOT '))}IN ({', '.join(values)})"
    if form < 0.8:
        return f"{row} = ({', '.join(column.name for column in others)})"
    return f"{row} = (SELECT {', '.join(f'MAX({column.name})' for column in of)} FROM {{t}} AS inner_table)"


def number(random, columns, depth=0):
    """An expression with numbers."""
    numbers, dates = _of(columns, "number"), _of(columns, "date", "datetime")
    form = random.random()
    if depth < 2 and form < 0.4:
        first, second = (number(random, columns, depth + 1) for _ in range(2))
        return f"({first} {random.choice(('+', '-', '*', '*', '-', '/', 'DIV'))} {second})" if form < 0.03 else \
            f"({first} {random.choice('+-*')} {second})"
    if depth < 2 and form < 0.55:
        parts = [number(random, columns, depth + 1) for _ in range(2)]
        condition = _condition(random, columns, 2)
        return random.choice(("IF({0}, {1}, {2})", "CASE WHEN {0} THEN {1} ELSE {2} END", "CASE WHEN {0} THEN {1} END",
                              "CASE WHEN {0} THEN {1} WHEN NOT ({0}) THEN {2} END", "IF({0}, {1}, 0)",
                              "IF({0}, NULL, {2})")).format(condition, *parts)
    if dates and form < 0.65:
        return random.choice(("YEAR({})", "MONTH({})", "EXTRACT(YEAR FROM {})", "DAY({})", "EXTRACT(MONTH FROM {})"
                              )).format(random.choice(dates).name)
    if depth < 2 and form < 0.7:
        return f"({_condition(random, columns, 2)})"
    if form < 0.8 or not numbers:
        return random.choice(("0", "1", "2", "0.5", "-1", "1.25", "100", "3000000000", "18446744073709551615"))
    return random.choice(numbers).name


def _condition(random, columns, depth=0):
    form = random.random()
    column = random.choice(columns)
    if depth < 2 and form < 0.3:
        parts = [_condition(random, columns, depth + 1) for _ in range(random.randint(2, 3))]
        return "(" + random.choice((" AND ", " OR ")).join(parts) + ")"
    if depth < 2 and form < 0.36:
        return f"NOT ({_condition(random, columns, depth + 1)})"
    if form < 0.45:
        return f"{column.name} IS {random.choice(('', 'NOT '))}NULL"
    negation = random.choice(("", "", "NOT "))
    if form < 0.46:
        return _row_condition(random, columns)
    if form < 0.5:
        return _pair_condition(random, columns)
    if form < 0.54 and _of(columns, "text", "enum"):
        return f"{random.choice(_of(columns, 'text', 'enum')).name} {negation}LIKE '{random.choice(_PATTERNS)}'"
    if form < 0.58:
        return f"{number(random, columns)} {random.choice(_COMPARISONS)} {random.choice((0, 1, -3, 2020, 12, 1.5))}"
    if form < 0.68:
        return f"{column.name} {negation}BETWEEN {_constant(random, column)} AND {_constant(random, column)}"
    if form < 0.8:
        constants = ", ".join(_constant(random, column) for _ in range(random.randint(1, 4)))
        return f"{column.name} {negation}IN ({constants})"
    sides = [column.name, _constant(random, column)]
    if random.random() < 0.15:
        sides.reverse()
    return f"{sides[0]} {random.choice(_COMPARISONS)} {sides[1]}"


def _aggregate(random, columns):
    column = random.choice(columns)
    if random.random() < 0.25:
        return random.choice(("COUNT(*)", "COUNT(1)"))
    if random.random() < 0.25:
        return f"{random.choice(('SUM', 'SUM', 'SUM', 'COUNT', 'COUNT(DISTINCT', 'AVG'))}({number(random, columns)})" \
            .replace("COUNT(DISTINCT(", "COUNT(DISTINCT ")
    if column.family == "number" and random.random() < 0.5:
        return f"{random.choice(('SUM', 'AVG'))}({column.name})"
    function = random.choice(("COUNT({})", "MIN({})", "MAX({})", "COUNT(DISTINCT {})", "MIN({})", "MAX({})"))
    return function.format(column.name)


def _joined(random, columns, dimensions):
    """FROM with other tables, what joins them, and all columns."""
    tables, conditions, of = "{t}", [], list(columns)
    for name, dimension in zip(("{d}", "{e}"), dimensions[:random.choice((1, 1, 2))]):
        integers = [column.name for column in of if "INT" in column.sql_type]
        condition = f"{random.choice(integers)} = {dimension[0].name}"
        if random.random() < 0.5:
            tables += f", {name}"
            conditions.append(condition)
        else:
            tables += f" {random.choice(('JOIN', 'JOIN', 'JOIN', 'INNER JOIN', 'LEFT JOIN'))} {name} ON {condition}"
        of += dimension
    return tables, conditions, of


def query(random, columns, dimensions=None):
    """A SELECT over a table; with dimensions, perhaps joined with them."""
    tables, conditions = "{t}", []
    if dimensions and random.random() < 0.3:
        tables, conditions, columns = _joined(random, columns, dimensions)
    groups = [column.name for column in random.sample(columns, random.choice((0, 1, 1, 2, 3)))]
    expression = number(random, columns, 1)
    if random.random() < 0.15 and any(column.name in expression for column in columns):
        groups.append(expression)
    aggregates = [_aggregate(random, columns) for _ in range(random.randint(0 if groups else 1, 4))]
    shown = groups + [f"{aggregate} AS a{number}" for number, aggregate in enumerate(aggregates)]
    if random.random() < 0.1:
        shown.append("'constant'")
    if aggregates and random.random() < 0.15:
        shown.append(f"{random.choice(aggregates)} + 1")
    random.shuffle(shown)
    text = f"SELECT {', '.join(shown)} FROM {tables}"
    if random.random() < 0.7:
        conditions.append(_condition(random, columns))
    if conditions:
        text += f" WHERE {' AND '.join(conditions)}"
    if groups:
        text += f" GROUP BY {', '.join(groups)}"
    if aggregates and random.random() < 0.15:
        text += f" HAVING {random.choice(aggregates)} {random.choice(_COMPARISONS)} {random.choice((0, 1, 2, 5))}"
    order = [group + random.choice(("", " DESC")) for group in groups]
    if aggregates and groups and random.random() < 0.4:
        order.insert(0, f"a{random.randrange(len(aggregates))}{random.choice(('', ' DESC'))}")
    if groups and random.random() < 0.9:
        text += f" ORDER BY {', '.join(order)}"
        if random.random() < 0.2:
            text += f" LIMIT {random.choice(('1', '3', '2, 5', '0'))}"
    if random.random() < 0.05:
        text = f"SELECT * FROM ({text}) AS derived"
    return text


ROWS = "/* rows */"


def _conditions(random, columns):
    """Several that all have to be true; the first ones tend to be simple."""
    return [_condition(random, columns, random.choice((0, 2, 2))) for _ in range(random.choice((1, 1, 1, 2, 2, 3)))]


def _nested(random, columns, dimensions):
    """Rows of a subquery, of a UNION, or with a condition of another table."""
    column, other = random.choice(columns), random.choice(columns)
    shown = ["id", column.name, other.name]
    where = " AND ".join(_conditions(random, columns))
    key = dimensions[0][0].name
    integers = [of.name for of in columns if "INT" in of.sql_type]
    return random.choice((
        f"SELECT {ROWS} * FROM (SELECT {', '.join(dict.fromkeys(shown))} FROM {{t}} WHERE {where}) AS derived",
        f"SELECT {ROWS} id, {column.name} FROM {{t}} WHERE {where} UNION ALL SELECT id, {column.name} FROM {{t}}"
        f" WHERE {_condition(random, columns)}",
        f"SELECT {ROWS} {key} FROM {{d}} WHERE {key} IN (SELECT {random.choice(integers)} FROM {{t}} WHERE {where})",
        f"SELECT {ROWS} {key} FROM {{d}} WHERE {key} NOT IN (SELECT {random.choice(integers)} FROM {{t}} WHERE {where})",
        f"SELECT {ROWS} {key}, (SELECT MAX(id) FROM {{t}} WHERE {random.choice(integers)} = {key} AND {where}) AS most FROM {{d}}",
        f"SELECT {ROWS} id FROM {{t}} WHERE EXISTS (SELECT 1 FROM {{d}} WHERE {key} = {random.choice(integers)}) AND {where}",
        f"SELECT {ROWS} {key}, id FROM {{d}} LEFT JOIN {{t}} ON {random.choice(integers)} = {key} AND {where}",
        f"SELECT {ROWS} {key}, id FROM {{d}} LEFT JOIN {{t}} ON {random.choice(integers)} = {key} WHERE {where}",
    ))


def rows_query(random, columns, dimensions):
    """A SELECT that gives rows, of which conditions leave some. Its answer is a set, but for those with LIMIT."""
    if random.random() < 0.2:
        return _nested(random, columns, dimensions)
    tables, joining, of = "{t}", [], list(columns)
    if random.random() < 0.3:
        tables, joining, of = _joined(random, columns, dimensions)
        if random.random() < 0.3:
            tables = tables.replace(",", " STRAIGHT_JOIN").replace(" JOIN", " STRAIGHT_JOIN") if "LEFT" not in tables else tables
            tables = tables.replace("STRAIGHT_STRAIGHT", "STRAIGHT").replace("INNER STRAIGHT_JOIN", "JOIN")
    shown = ["id"] + [column.name for column in random.sample(of, random.randint(0, min(4, len(of))))]
    if random.random() < 0.1:
        shown = ["*"]
    if random.random() < 0.1:
        shown.append(number(random, of))
    conditions = _conditions(random, of)
    if random.random() < 0.2:
        conditions.insert(random.randrange(2), random.choice(
            ("id > 50", "id BETWEEN 20 AND 380", "id % 3 = 1", "1 / id > 0", "id < 300", "LENGTH(id) = 2")))
    text = f"SELECT {ROWS} {', '.join(shown)} FROM {tables} WHERE {' AND '.join(joining + conditions)}"
    order = random.random()
    if order < 0.2 and not joining and tables == "{t}":
        text += f" ORDER BY id{random.choice(('', ' DESC'))} LIMIT {random.choice(('1', '3', '2, 5', '100'))}"
    elif order < 0.6:
        text += f" ORDER BY {random.choice(of).name}{random.choice(('', ' DESC'))}, id"
    return text
