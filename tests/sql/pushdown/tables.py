"""Random tables: every kind of column, NULLs, values at the ends of the types, several collations."""

# Type, and how a literal of it is made. Equal texts that differ in their bytes come in `ci` columns only.
_INTEGERS = [
    ("TINYINT", -128, 127), ("TINYINT UNSIGNED", 0, 255), ("SMALLINT", -32768, 32767),
    ("MEDIUMINT", -8388608, 8388607), ("MEDIUMINT UNSIGNED", 0, 16777215),
    ("INT", -2147483648, 2147483647), ("INT UNSIGNED", 0, 4294967295),
    ("BIGINT", -(2**63), 2**63 - 1), ("BIGINT UNSIGNED", 0, 2**64 - 1), ("INT(5) UNSIGNED ZEROFILL", 0, 99999),
]
_DECIMALS = [(5, 2), (10, 0), (18, 9), (30, 10), (36, 4), (65, 30), (1, 1), (20, 20)]
_COLLATIONS = [
    ("latin1", "latin1_swedish_ci"), ("latin1", "latin1_bin"), ("utf8mb4", "utf8mb4_general_ci"),
    ("utf8mb4", "utf8mb4_bin"), ("utf8mb4", "utf8mb4_unicode_ci"), ("utf8mb4", "utf8mb4_nopad_bin"),
    ("utf8mb4", "utf8mb4_unicode_520_nopad_ci"),
]
_WORDS = ["", "a", "b", "aa", "ab", "abc", "zebra", "Zürich", "naïve", "10", "9", "-1", "x y", "long " * 8]
_LIKE_WORDS = ["A", "a ", "Abc", "ABC", "ZEBRA", "zurich"]
_DAYS = ["0000-00-00", "2020-00-10", "2020-02-00", "1000-01-01", "9999-12-31", "2008-02-29", "2020-01-01",
         "2020-01-02", "2021-12-31"]


class Column:
    """Name, type, family of a column, and the literals that fill it."""

    def __init__(self, name, sql_type, family, literals, not_null):
        self.name, self.sql_type, self.family = name, sql_type, family
        self.literals, self.not_null = literals, not_null

    def value(self, random):
        """A literal for a row."""
        if not self.not_null and random.random() < 0.15:
            return "NULL"
        return random.choice(self.literals)

    def definition(self):
        """For CREATE TABLE."""
        return f"{self.name} {self.sql_type}{' NOT NULL' if self.not_null else ''}"


def _quoted(words):
    return ["'" + word + "'" for word in words]


def _integer(random, name, not_null):
    sql_type, low, high = random.choice(_INTEGERS)
    few = [random.randint(max(low, -9), min(high, 9)) for _ in range(random.choice((2, 5, 20)))]
    values = few * 3 + random.choice([[], [low, high], [random.randint(low, high) for _ in range(30)]])
    return Column(name, sql_type, "number", [str(value) for value in values], not_null)


def _decimal(random, name, not_null):
    precision, scale = random.choice(_DECIMALS)

    def value(digits):
        text = "".join(random.choice("0123456789") for _ in range(digits))
        whole, behind = (text[:-scale], text[-scale:]) if scale and digits > scale else (text, "")
        if scale == precision:
            whole, behind = "0", text[-scale:]
        return random.choice(("", "-")) + (whole or "0") + ("." + behind if behind else "")

    small = max(scale + 1, 1) if precision > scale else scale
    values = [value(min(small + 1, precision)) for _ in range(8)] + ["0"]
    values += random.choice([[], [value(precision) for _ in range(20)], ["9" * (precision - scale) or "0"]])
    return Column(name, f"DECIMAL({precision},{scale})", "number", values, not_null)


def _text(random, name, not_null):
    charset, collation = random.choice(_COLLATIONS)
    words = random.sample(_WORDS, random.randint(2, len(_WORDS)))
    if random.random() < 0.3:
        words += random.sample(_LIKE_WORDS, 2)
    kind = random.choice(("CHAR(40)", "VARCHAR(50)", "VARCHAR(300)"))
    return Column(name, f"{kind} CHARACTER SET {charset} COLLATE {collation}", "text", _quoted(words), not_null)


def _other(random, name, not_null):
    kinds = [
        ("DATE", "date", _quoted(_DAYS)),
        ("DATETIME", "datetime", _quoted([day + " 00:00:00" for day in _DAYS] + ["2020-01-01 23:59:59"])),
        ("DATETIME(3)", "datetime", _quoted([day + " 12:34:56.789" for day in _DAYS] + ["2020-01-01 00:00:00"])),
        ("DATETIME(6)", "datetime", _quoted(["2020-01-01 00:00:00.000001", "2020-01-01 00:00:00"])),
        ("YEAR", "year", ["1901", "2000", "2155", "0", "2020"]),
        ("VARBINARY(20)", "bytes", ["x'00'", "x'0000'", "'a'", "'a '", "''", "x'ff'"]),
        ("BINARY(4)", "bytes", ["x'00'", "'a'", "'a '", "x'ff'"]),
        ("DOUBLE", "other", ["0.1", "0.2", "-0.0", "1e300"]),
        ("TIME", "time", ["'10:00:00'", "'-838:59:59'", "'00:00:00'", "'10:00:01'", "'-10:00:00'"]),
        ("TIME(2)", "time", ["'10:00:00'", "'10:00:00.12'", "'-10:00:00.50'", "TIME'10:00:00'"]),
        ("ENUM('z','Small','b ','LARGE','m') CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "enum",
         ["'z'", "'small'", "'b'", "'LARGE'", "'m'"]),
        ("TIMESTAMP NULL", "other", ["'2020-01-01 00:00:00'", "'2021-06-01 12:00:00'"]),
        ("ENUM('b','a')", "enum", ["'a'", "'b'"]),
        ("SET('x','y')", "other", ["''", "'x'", "'x,y'"]),
        ("BIT(9)", "other", ["b'101'", "b'111111111'"]),
        ("TEXT", "other", ["'a'", "'b'"]),
    ]
    sql_type, family, literals = random.choice(kinds[:5] * 2 + kinds)
    return Column(name, sql_type, family, literals, not_null and "NULL" not in sql_type)


def columns(random):
    """The columns of a table."""
    makers = [_integer, _decimal, _text, _other, _integer, _text]
    kinds = makers[:4] + [random.choice(makers) for _ in range(random.randint(1, 4))]
    return [make(random, f"c{number}", random.random() < 0.3) for number, make in enumerate(kinds)]


def dimension(random, letter):
    """The columns of a table that others are joined with: the first is its key, or at least an integer."""
    of = columns(random)
    for number, column in enumerate(of):
        column.name = f"{letter}{number}"
    few = [str(value) for value in range(-9, 25)]
    return [Column(f"{letter}k", random.choice(("INT", "SMALLINT", "BIGINT")), "number", few, True)] + of


def key(random, of):
    """The primary key: a number that counts, in different places, or none; and the first key columns."""
    form = random.choice(("id", "id", "none", "pair", "descending"))
    first = next(column for column in of if column.family == "number" and column.not_null) \
        if any(column.family == "number" and column.not_null for column in of) else None
    if form == "none":
        return "id INT UNSIGNED NOT NULL", ""
    if form == "pair" and first:
        return "id INT UNSIGNED NOT NULL", f", PRIMARY KEY ({first.name}, id)"
    if form == "descending":
        return "id INT UNSIGNED NOT NULL", ", PRIMARY KEY (id DESC)"
    return "id INT UNSIGNED NOT NULL AUTO_INCREMENT", ", PRIMARY KEY (id)"
