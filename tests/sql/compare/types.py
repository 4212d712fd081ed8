"""Column types with literals for them: few different values, so that they meet; edges; some that a
column must refuse."""

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Type:
    """A column type. `family` groups types whose columns may be compared with each other."""
    sql: str
    family: str
    literals: typing.Tuple[str, ...]
    random: typing.Optional[typing.Callable] = None  # (rng) -> literal
    key: bool = True          # can be a key part as a whole
    prefix_max: int = 0       # longest sensible key prefix; 0: none
    exact: bool = True        # equal values are the same bytes (no collation in between)
    summable: bool = False    # SUM does not depend on the order of rows

    def literal(self, rng):
        if self.random is not None and rng.random() < 0.5:
            return self.random(rng)
        return rng.choice(self.literals)


def _integers():
    types = []
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)):
        for unsigned in (False, True):
            low = 0 if unsigned else -(1 << bits - 1)
            high = (1 << bits) - 1 if unsigned else (1 << bits - 1) - 1
            values = [0, 1, 2, 3, 7, 10, 42, 100, low, high, high - 1, low + 1, -1, high + 1]
            types.append(Type(f"{name}{' UNSIGNED' if unsigned else ''}", "integer", tuple(map(str, values)),
                              lambda rng: str(rng.randint(0, 40)), summable=True))
    return types


def _numbers():
    fractions = ("0", "1", "-1", "0.25", "-0.5", "3.75", "100", "1.5", "-2.25")
    return [
        Type("DOUBLE", "float", fractions + ("1e100", "-1e100", "1e-300"), lambda rng: str(rng.randint(-40, 40) / 4)),
        Type("FLOAT", "float", fractions + ("1e30", "-1e30"), lambda rng: str(rng.randint(-40, 40) / 4)),
        Type("DECIMAL(10,2)", "decimal", ("0", "1", "-1", "0.01", "-0.01", "99999999.99", "-99999999.99", "1e9"),
             lambda rng: str(rng.randint(-400, 400) / 4), summable=True),
        Type("DECIMAL(30,10) UNSIGNED", "decimal", ("0", "1", "0.0000000001", "12345678901234567890.5", "-1"),
             lambda rng: str(rng.randint(0, 100) / 4), summable=True),
        Type("BIT(1)", "bit", ("b'0'", "b'1'")),
        Type("BIT(13)", "bit", ("b'0'", "b'1'", "b'1111111111111'", "b'101'", "b'11111111111111'")),
        Type("BOOLEAN", "integer", ("TRUE", "FALSE", "2", "-128"), summable=True),
    ]


_LATIN = ("''", "' '", "'a'", "'A'", "'a '", "'a\\t'", "'a\\0'", "'ab'", "'AB'", "'b'", "'ba'", "'z'", "'Z  '", "'ss'",
          "'aaaaaaaaaaaaaaaaaaaa'", "'ch'", "'cz'", "'d'", "'_x'", "'%'", "'a%b'")
_ACCENTS = ("'é'", "'e'", "'É'", "'ß'", "'ä'", "'ae'", "'ÿ'", "'y'", "'ñ'", "'Ö '")
_WIDE = ("'中'", "'Ж'", "'ж'", "'Ǆ'", "'😀'", "'😀a'")

# Most columns have one of the first; the others have their own ideas about padding, expansions,
# contractions and levels. Not cp1250_czech_cs: the server compares by it in one way and sorts in another.
_COLLATIONS = (
    ["utf8mb4_general_ci", "latin1_swedish_ci", "utf8mb4_bin", "utf8mb4_unicode_ci"] * 3
    + ["latin1_bin", "latin1_german2_ci", "latin1_general_cs", "utf8mb3_general_ci", "utf8mb4_unicode_520_ci",
       "utf8mb4_nopad_bin", "utf8mb4_general_nopad_ci", "utf8mb4_unicode_nopad_ci", "latin1_swedish_nopad_ci",
       "utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_as_cs", "utf8mb4_uca1400_nopad_ai_ci", "utf8mb4_czech_ci",
       "utf8mb4_thai_520_w2", "ucs2_general_ci", "utf16_unicode_ci", "utf32_bin",
       "tis620_thai_ci", "sjis_japanese_ci", "big5_chinese_ci", "ascii_general_ci"])


def _word(rng):
    return "'" + "".join(rng.choice("abAB z") for _ in range(rng.randint(0, 5))) + "'"


def _string(rng):
    collation = rng.choice(_COLLATIONS)
    charset = collation.split("_")[0]
    literals = _LATIN
    if charset not in ("ascii", "tis620", "sjis", "big5") or rng.random() < 0.2:
        literals += _ACCENTS
    if charset.startswith(("utf", "ucs")):
        literals += _WIDE
    if "nopad" in collation:
        # Whether 'A' and 'a\0' are equal depends on whether the server sorts or an index does.
        literals = tuple(literal for literal in literals if "\\0" not in literal)
    name, prefix, key = rng.choice([("CHAR(1)", 0, True), ("CHAR(12)", 5, True), ("VARCHAR(24)", 10, True),
                                    ("VARCHAR(200)", 20, True), ("VARCHAR(3)", 2, True), ("TINYTEXT", 10, False),
                                    ("TEXT", 10, False), ("MEDIUMTEXT", 30, False)])
    sql = f"{name} CHARACTER SET {charset} COLLATE {collation}"
    return Type(sql, "string " + collation, literals, _word, key=key, prefix_max=prefix, exact=False)


def _binaries():
    literals = ("''", "'a'", "'A'", "'a '", "x'00'", "x'0000'", "x'FF'", "x'FF00'", "x'6100'", "'abc'")
    return [
        Type("BINARY(3)", "binary", literals, _word, prefix_max=2),
        Type("VARBINARY(20)", "binary", literals, _word, prefix_max=4),
        Type("TINYBLOB", "binary", literals, _word, key=False, prefix_max=8),
        Type("BLOB", "binary", literals, _word, key=False, prefix_max=3),
        Type("LONGBLOB", "binary", literals, _word, key=False, prefix_max=12),
    ]


def _temporals():
    def date(rng):
        return f"'2008-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}'"

    def moment(rng):
        return f"'2008-05-{rng.randint(1, 9):02} {rng.randint(0, 23):02}:00:{rng.choice(['00', '01.5', '59.999999'])}'"

    dates = ("'2008-01-01'", "'1000-01-01'", "'9999-12-31'", "'2008-02-29'", "'2008-02-30'", "'0000-00-00'")
    moments = ("'2008-01-01 00:00:00'", "'1999-12-31 23:59:59.999999'", "'2008-02-30 00:00:00'")
    types = [Type("DATE", "date", dates, date), Type("YEAR", "year", ("2008", "1901", "2155", "0", "1900", "1999"))]
    for fraction in ("", "(3)", "(6)"):
        types.append(Type(f"DATETIME{fraction}", "datetime", moments + ("'9999-12-31 23:59:59'",), moment))
        types.append(Type(f"TIMESTAMP{fraction}", "timestamp", moments + ("'1970-01-02 00:00:00'",), moment))
        types.append(Type(f"TIME{fraction}", "time", ("'00:00:00'", "'-838:59:59'", "'838:59:59'", "'12:34:56.5'",
                                                       "'-00:00:01'", "'900:00:00'")))
    return types


def _others():
    return [
        Type("ENUM('red','Green','blue')", "enum", ("'red'", "'GREEN'", "'blue'", "''", "'pink'"), exact=False),
        Type("SET('x','y','z')", "set", ("''", "'x'", "'x,y'", "'z,x'", "'x,y,z'", "'w'"), exact=False),
        Type("INET6", "inet6", ("'::'", "'::1'", "'2001:db8::ff00:42'", "'::ffff:192.0.2.1'", "'nonsense'")),
        Type("INET4", "inet4", ("'0.0.0.0'", "'192.0.2.1'", "'255.255.255.255'", "'nonsense'")),
        Type("UUID", "uuid", ("'00000000-0000-0000-0000-000000000000'", "'123e4567-e89b-12d3-a456-426655440000'",
                              "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'nonsense'")),
        Type("JSON", "json", ("'{}'", "'[1, 2]'", "'{\"a\": \"b\"}'", "'{'"), key=False, exact=False),
    ]


_FIXED = [_integers(), _numbers(), _binaries(), _temporals(), _others()]
_WEIGHTS = [4, 2, 2, 2, 1]


def random_type(rng):
    """Any type."""
    if rng.random() < 0.35:
        return _string(rng)
    return rng.choice(rng.choices(_FIXED, _WEIGHTS)[0])


def integer_type(rng):
    return rng.choice(_FIXED[0])
