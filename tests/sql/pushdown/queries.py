"""Random queries over one table. Every answer is in one order only: by all columns of its groups."""

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def _constant(random, column):
    """A constant for a comparison with the column; mostly of its own kind."""
    if random.random() < 0.1:
        return random.choice(("NULL", "0", "1", "'1'", "1.5", "-1e0", "'x'", "DATE'2020-01-01'", "TRUE", "'2020-01-01'"))
    if column.family == "number" and random.random() < 0.4:
        return random.choice((str(random.randint(-10, 10)), f"{random.randint(-9, 9)}.{random.randint(0, 99)}", "0.5",
                              "18446744073709551615", "-9223372036854775808", "0.00000000000000000001"))
    if column.family in ("date", "datetime") and random.random() < 0.5:
        return random.choice(("DATE'2020-01-01'", "'2020-01-01'", "'2020-01-01 00:00:00'", "'2008-02-29'",
                              "TIMESTAMP'2020-01-01 12:34:56'", "20200101", "TIMESTAMP'2020-01-01 12:34:56.789'"))
    return random.choice(column.literals)


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
    if form < 0.6:
        return f"{column.name} {negation}BETWEEN {_constant(random, column)} AND {_constant(random, column)}"
    if form < 0.75:
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
    if column.family == "number" and random.random() < 0.5:
        return f"{random.choice(('SUM', 'AVG'))}({column.name})"
    function = random.choice(("COUNT({})", "MIN({})", "MAX({})", "COUNT(DISTINCT {})", "MIN({})", "MAX({})"))
    return function.format(column.name)


def query(random, table, columns):
    """A SELECT over `table`."""
    groups = [column.name for column in random.sample(columns, random.choice((0, 1, 1, 2, 3)))]
    aggregates = [_aggregate(random, columns) for _ in range(random.randint(0 if groups else 1, 4))]
    shown = groups + [f"{aggregate} AS a{number}" for number, aggregate in enumerate(aggregates)]
    if random.random() < 0.1:
        shown.append("'constant'")
    if aggregates and random.random() < 0.15:
        shown.append(f"{random.choice(aggregates)} + 1")
    random.shuffle(shown)
    text = f"SELECT {', '.join(shown)} FROM {table}"
    if random.random() < 0.7:
        text += f" WHERE {_condition(random, columns)}"
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
