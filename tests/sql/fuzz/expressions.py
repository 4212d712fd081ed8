"""Random expressions: shallow ones of all functions, and now and then one that is very deep or very long."""

from fuzz import values

_COMPARE = ("=", "=", "<>", "<", "<=", ">", ">=", "<=>")
_NUMBER_CALLS = (
    "ABS({n})", "-{n}", "SIGN({n})", "FLOOR({n})", "CEIL({n})", "ROUND({n})", "ROUND({n}, {k})", "TRUNCATE({n}, {k})",
    "MOD({n}, {n})", "({n} + {n})", "({n} - {n})", "({n} * {n})", "({n} / {n})", "({n} DIV {n})", "({n} % {n})",
    "({n} & {n})", "({n} | {n})", "({n} ^ {n})", "(~{n})", "({n} << {k})", "({n} >> {k})", "BIT_COUNT({n})", "SQRT({n})",
    "CHAR_LENGTH({t})", "LENGTH({t})", "ASCII({t})", "ORD({t})", "LOCATE({t}, {t})", "INSTR({t}, {t})", "CRC32({t})",
    "FIELD({a}, {a}, {a})", "FIND_IN_SET({t}, {t})", "YEAR({d})", "MONTH({d})", "DAYOFMONTH({d})", "DAYOFWEEK({d})",
    "DAYOFYEAR({d})", "WEEK({d}, {k})", "QUARTER({d})", "HOUR({d})", "MINUTE({d})", "SECOND({d})", "MICROSECOND({d})",
    "TO_DAYS({d})", "UNIX_TIMESTAMP({d})", "TIME_TO_SEC({d})", "DATEDIFF({d}, {d})", "EXTRACT(YEAR_MONTH FROM {d})",
    "TIMESTAMPDIFF(DAY, {d}, {d})", "STRCMP({t}, {t})", "INTERVAL({n}, {n}, {n})", "GREATEST({n}, {n})", "LEAST({n}, {n})",
    "IF({c}, {n}, {n})", "IFNULL({n}, {n})", "NULLIF({n}, {n})", "COALESCE({n}, {n}, {n})", "CAST({a} AS SIGNED)",
    "CAST({a} AS UNSIGNED)", "CAST({a} AS DECIMAL(20,4))", "CAST({n} AS DOUBLE)", "CASE WHEN {c} THEN {n} ELSE {n} END",
    "CASE {a} WHEN {a} THEN {n} WHEN {a} THEN {n} END", "JSON_LENGTH({j})", "JSON_VALID({t})", "JSON_DEPTH({j})", "({c})",
    "LENGTH(WEIGHT_STRING({t}))", "INET_ATON({t})", "PERIOD_ADD(200801, {n})", "YEARWEEK({d})", "CONV({n}, 10, 2)")
# A bare JSON_EXTRACT beside <=> kills the server, whatever the engine (Item_func_json_extract::read_json).
_TEXT_CALLS = (
    "CONCAT({t}, {t})", "CONCAT_WS(',', {t}, {a})", "UPPER({t})", "LOWER({t})", "LEFT({t}, {k})", "RIGHT({t}, {k})",
    "SUBSTRING({t}, {k}, {k})", "TRIM({t})", "LTRIM({t})", "RTRIM({t})", "REPLACE({t}, {t}, {t})", "REVERSE({t})",
    "LPAD({t}, {k}, {t})", "RPAD({t}, {k}, {t})", "REPEAT({t}, {k})", "HEX({a})", "UNHEX(HEX({t}))", "QUOTE({t})", "MD5({t})",
    "SUBSTRING_INDEX({t}, {t}, {k})", "INSERT({t}, {k}, {k}, {t})", "FORMAT({n}, {k})", "DATE_FORMAT({d}, '%Y-%m')",
    "IF({c}, {t}, {t})", "IFNULL({t}, {t})", "NULLIF({t}, {t})", "COALESCE({t}, {t})", "CAST({a} AS CHAR)",
    "CAST({a} AS CHAR(3))", "CAST({t} AS BINARY)", "CONVERT({t} USING utf8mb4)", "CONVERT({t} USING latin1)",
    "CASE WHEN {c} THEN {t} ELSE {t} END", "GREATEST({t}, {t})", "LEAST({t}, {t})", "ELT({k}, {t}, {t})", "DAYNAME({d})",
    "JSON_COMPACT(JSON_EXTRACT({j}, '$.a'))", "JSON_UNQUOTE(JSON_EXTRACT({j}, '$.a'))", "JSON_OBJECT('k', {a})", "JSON_ARRAY({a}, {a})",
    "JSON_KEYS({j})", "JSON_SET({j}, '$.z', {a})", "JSON_REMOVE({j}, '$.a')", "JSON_VALUE({j}, '$.a')", "HEX(WEIGHT_STRING({t}))",
    "REGEXP_REPLACE({t}, '[ab]', 'c')", "SOUNDEX({t})", "CHAR({n} USING utf8mb4)", "BIN({n})", "OCT({n})", "INET_NTOA({n})",
    "COLUMN_GET(COLUMN_CREATE('a', {a}), 'a' AS CHAR)", "MAKE_SET({n}, 'a', 'b')", "EXPORT_SET({k}, 'Y', 'N', ',', 4)")
_DATE_CALLS = (
    "DATE({d})", "LAST_DAY({d})", "({d} + INTERVAL {k} DAY)", "({d} - INTERVAL {k} MONTH)", "DATE_ADD({d}, INTERVAL {k} HOUR)",
    "CAST({a} AS DATE)", "CAST({a} AS DATETIME(6))", "CAST({a} AS TIME)", "TIMESTAMP({d})", "TIMESTAMP({d}, '01:00:00')",
    "MAKEDATE(2008, {k})", "STR_TO_DATE({t}, '%Y-%m-%d')", "FROM_UNIXTIME({n})", "FROM_DAYS({n})", "TIME({d})",
    "SEC_TO_TIME({n})", "IF({c}, {d}, {d})", "IFNULL({d}, {d})", "COALESCE({d}, {d})", "GREATEST({d}, {d})", "ADDTIME({d}, {t})",
    "CONVERT_TZ({d}, '+00:00', '+02:00')", "NULLIF({d}, {d})", "CASE WHEN {c} THEN {d} ELSE {d} END")
_CONDITION_CALLS = (
    "{a} IS NULL", "{a} IS NOT NULL", "{n} IS TRUE", "({c} AND {c})", "({c} OR {c})", "(NOT {c})", "({c} XOR {c})",
    "{c} IS UNKNOWN", "{t} LIKE {p}", "{t} NOT LIKE {p}", "{t} RLIKE '[ab]'", "({a}, {a}) = ({a}, {a})", "({a}, {a}) IN (({a}, {a}), ({a}, {a}))",
    "{n} BETWEEN {n} AND {n}", "{d} BETWEEN {d} AND {d}", "{t} BETWEEN {t} AND {t}", "{n} IN ({n}, {n}, {n})", "{t} IN ({t}, {t})",
    "{d} IN ({d}, {d})", "{n} NOT IN ({n}, {n})", "({a}, {a}) < ({a}, {a})", "JSON_CONTAINS({j}, '1')", "JSON_EXISTS({j}, '$.a')",
    "{n} {o} {n}", "{t} {o} {t}", "{d} {o} {d}", "{a} {o} {a}", "{a} IN ({a}, {a})", "{n}", "{t} LIKE {p} ESCAPE '|'")
_PATTERNS = ("a%", "%a%", "_b%", "%", "", "s%", "%e_", "a", "A", "a\\\\%", "%b", "__", "1%", "2020%", "%-01", "ä%", "|%%", "中%", "\\\\")


class Expressions:
    """Makes expressions of what a scope offers: a list of (text, family)."""

    def __init__(self, rng, scope):
        self.rng, self.scope = rng, list(scope)

    def column(self, *families):
        """(text, family) of a column, of these families if there are such."""
        usable = [entry for entry in self.scope if entry[1] in families] if families else self.scope
        if not usable:
            return None
        return self.rng.choice(usable)

    # --- by result ------------------------------------------------------------------------

    def number(self, depth=2):
        """A number, or what the server makes one of."""
        return self._any_of(_NUMBER_CALLS, values.NUMBERS, values.number, depth)

    def text(self, depth=2):
        """A text."""
        return self._any_of(_TEXT_CALLS, values.TEXTS + values.ODD, values.word, depth)

    def date(self, depth=2):
        """A date, a time, or both."""
        return self._any_of(_DATE_CALLS, values.TIMES,
                            lambda rng: rng.choice(("DATE", "TIMESTAMP", "", "")) + values.date(rng), depth)

    def any(self, depth=2):
        """Anything."""
        if self.rng.random() < 0.3:
            found = self.column()
            return found[0] if found else values.constant(self.rng)
        return self.rng.choice((self.number, self.text, self.date, lambda depth: values.constant(self.rng)))(depth)

    def _any_of(self, calls, families, make, depth):
        rng, choice = self.rng, self.rng.random()
        if choice < 0.04:
            return self.any(0)
        if depth <= 0 or choice < 0.45:
            found = self.column(*families) if rng.random() < 0.7 else None
            return found[0] if found else make(rng)
        return self._fill(rng.choice(calls), depth - 1)

    def _fill(self, pattern, depth):
        makers = {"n": self.number, "t": self.text, "d": self.date, "c": self.condition, "a": self.any,
                  "k": lambda depth: str(self.rng.randint(-1, 8)), "j": self._json,
                  "p": lambda depth: self._pattern(), "o": lambda depth: self.rng.choice(_COMPARE)}
        parts, rest = [], pattern
        while "{" in rest:
            before, _, rest = rest.partition("{")
            parts += [before, makers[rest[0]](depth)]
            rest = rest[2:]
        return "".join(parts) + rest

    def _json(self, _depth):
        found = self.column("json") if self.rng.random() < 0.6 else None
        return found[0] if found else values.literal(self.rng, "json")

    def _pattern(self):
        return values.quote(self.rng.choice(_PATTERNS)) if self.rng.random() < 0.9 else self.any(0)

    # --- conditions -----------------------------------------------------------------------

    def condition(self, depth=2):
        """A condition; half of them compare a column with constants, as keys and pushed conditions like it."""
        if self.rng.random() < 0.5 or depth <= 0:
            return self.simple_condition()
        return self._fill(self.rng.choice(_CONDITION_CALLS), depth - 1)

    def simple_condition(self):
        """One column and constants."""
        rng, found = self.rng, self.column()
        if found is None:
            return f"{values.constant(rng)} {rng.choice(_COMPARE)} {values.constant(rng)}"
        name, family = found

        def constant():
            return values.constant(rng, family)
        choice = rng.random()
        if choice < 0.45:
            return f"{name} {rng.choice(_COMPARE)} {constant()}"
        if choice < 0.6:
            return f"{name} {rng.choice(('', '', 'NOT '))}BETWEEN {constant()} AND {constant()}"
        if choice < 0.78:
            items = ", ".join(constant() for _ in range(rng.choice((1, 2, 3, 8))))
            return f"{name} {rng.choice(('', '', 'NOT '))}IN ({items})"
        if choice < 0.86:
            return f"{name} {rng.choice(('', '', 'NOT '))}LIKE {self._pattern()}"
        if choice < 0.94:
            return f"{name} IS {rng.choice(('', 'NOT '))}NULL"
        other = self.column()
        return f"{name} {rng.choice(_COMPARE)} {other[0]}"

    def where(self, depth=2):
        """A WHERE clause, or nothing."""
        rng = self.rng
        if rng.random() < 0.2:
            return ""
        joint = rng.choice((" AND ", " AND ", " OR "))
        count = rng.choice((1, 1, 1, 2, 2, 3))
        return " WHERE " + joint.join(f"({self.condition(depth)})" for _ in range(count))

    # --- long and deep --------------------------------------------------------------------

    def monster(self):
        """A number of hundreds or thousands of parts."""
        rng, size = self.rng, self.rng.choice((50, 300, 1000, 3000, 10000))
        n = (self.column("int") or self.column() or ("1",))[0]
        t = (self.column("text") or self.column() or ("'a'",))[0]
        deep = min(size, 1000)
        return rng.choice((
            lambda: "CASE " + " ".join(f"WHEN {n} = {i} THEN {i % 7}" for i in range(size)) + " END",
            lambda: f"CASE {n} " + " ".join(f"WHEN {i} THEN {i % 7}" for i in range(size)) + " ELSE -1 END",
            lambda: f"({n} IN ({', '.join(map(str, range(0, size * 3, 3)))}))",
            lambda: f"({n} NOT IN ({', '.join(map(str, range(0, size * 3, 3)))}))",
            lambda: f"({t} IN ({', '.join(repr(format(i, 'x')) for i in range(size))}))",
            lambda: "(" + " OR ".join(f"{n} = {i}" for i in range(size)) + ")",
            lambda: "(" + " AND ".join(f"{n} <> {i}" for i in range(100, 100 + size)) + ")",
            lambda: "(" + " OR ".join(f"({n} > {i} AND {t} < '{i}')" for i in range(size)) + ")",
            lambda: "(" + " + ".join(f"({n} % {i + 2})" for i in range(min(size, 3000))) + ")",
            lambda: "IF(" * deep + f"{n} > 1" + ", 1, 0)" * deep,
            lambda: "ABS(" * deep + n + ")" * deep,
            lambda: "(NOT " * deep + f"({n} > 1)" + ")" * deep,
            lambda: "(" * deep + n + "".join(f" {rng.choice('+-')} {i % 9})" for i in range(deep)),
            lambda: "IFNULL(" * deep + n + ", 0)" * deep,
            lambda: f"COALESCE({', '.join(f'NULLIF({n}, {i})' for i in range(size))})",
            lambda: f"LENGTH(CONCAT({', '.join(t for _ in range(min(size, 3000)))}))",
            lambda: f"GREATEST({', '.join(f'{n} % {i + 1}' for i in range(size))})",
            lambda: f"(({n}, {t}) IN ({', '.join(f'({i}, {i % 10!r})' for i in range(size))}))",
            lambda: "CASE WHEN " * min(deep, 300) + f"{n} = 1" + " THEN 1 ELSE 0 END" * min(deep, 300),
        ))()
