"""Column types, and literals that suit them, that nearly suit them, and that do not."""

import dataclasses

# What a column may hold decides which literals and functions are likely for it.
NUMBERS = ("int", "dec", "float", "year", "bit")
TEXTS = ("text", "enum", "set", "json")
TIMES = ("date", "datetime", "timestamp", "time")
ODD = ("binary", "uuid", "inet6", "inet4")

COLLATIONS = (
    ["utf8mb4_general_ci", "latin1_swedish_ci", "utf8mb4_bin", "utf8mb4_unicode_ci", "utf8mb4_uca1400_ai_ci"] * 3
    + ["latin1_bin", "latin1_german2_ci", "latin1_general_cs", "utf8mb3_general_ci", "utf8mb4_unicode_520_ci",
       "utf8mb4_nopad_bin", "utf8mb4_general_nopad_ci", "utf8mb4_unicode_nopad_ci", "latin1_swedish_nopad_ci",
       "utf8mb4_uca1400_as_cs", "utf8mb4_uca1400_nopad_ai_ci", "utf8mb4_czech_ci", "ucs2_general_ci", "ucs2_bin",
       "utf16_unicode_ci", "utf16_bin", "utf16le_general_ci", "utf32_bin", "utf32_general_ci", "tis620_thai_ci",
       "sjis_japanese_ci", "big5_chinese_ci", "ascii_general_ci", "cp1251_general_ci", "koi8r_general_ci"])

_WORDS = ("", " ", "a", "A", "a ", "b", "B", "ab", "AB", "ba", "z", "s", "ss", "x y", "1", "2", "10", "01", "1e1", "-1",
          "1.5", "2020-01-01", "2008-02-29 12:00:00", "12:34:56", "{}", "[1, 2]", "%", "a%b", "_x", "a_b", "\\\\")
_WIDE = ("é", "É", "ß", "ä", "ñ", "中", "Ж", "ж", "😀")
_DATES = ("2008-01-01", "2008-02-29", "2020-01-01", "2020-12-31", "1000-01-01", "9999-12-31", "1999-12-31", "2020-1-2",
          "0000-00-00", "2020-00-10", "2021-02-30", "20200101", "garbage", "1970-01-01", "2038-01-19")
_CLOCKS = ("00:00:00", "12:34:56", "23:59:59", "23:59:59.999999", "12:34:56.5", "00:00:00.000001", "03:14:07")
_SPANS = ("00:00:00", "12:34:56", "-00:00:01", "-838:59:59", "838:59:59", "12:34:56.5", "900:00:00", "1 10:00:00",
          "101112", "-12:34:56.789", "x")
_INTEGERS = ("0", "1", "2", "3", "4", "5", "7", "10", "42", "100", "-1", "-2", "127", "128", "255", "32767", "65535",
             "2147483647", "-2147483648", "4294967295", "9223372036854775807", "-9223372036854775808",
             "18446744073709551615", "2008", "2020", "70", "1901", "2155")
_DECIMALS = ("0", "0.5", "-0.5", "1.5", "2.25", "0.01", "-0.01", "99.99", "1.0", "0.125", "123456.789", "0.0000001",
             "99999999999999999999.5", "-12345678901234567890.25", "3.3333333333333333333333")
_DOUBLES = ("0e0", "1e0", "2.5e0", "-0.25e0", "1e10", "-1e3", "1e308", "1e-10", "0.1e0", "-0e0")
_MIXED_BYTES = ("x'00'", "x'61'", "x'FF'", "0x31", "b'0'", "b'1'", "b'101'", "b'01100001'", "x''", "0x20")


def quote(text):
    """A literal of the connection's character set; `text` has its backslashes doubled."""
    return "'" + text.replace("'", "''") + "'"


def word(rng):
    """A text literal."""
    choice = rng.random()
    if choice < 0.55:
        return quote(rng.choice(_WORDS))
    if choice < 0.7:
        return quote(rng.choice(_WIDE) + rng.choice(("", "", "a", " ")))
    if choice < 0.95:
        return quote("".join(rng.choice("abAB z1") for _ in range(rng.randint(0, 6))))
    return quote(rng.choice("ab é") * rng.choice((20, 100, 300, 1000)))


def integer(rng):
    """An integer literal, mostly small."""
    return str(rng.randint(-6, 20)) if rng.random() < 0.6 else rng.choice(_INTEGERS)


def number(rng):
    """A literal of any kind of number."""
    return rng.choice((integer, integer, lambda r: r.choice(_DECIMALS), lambda r: r.choice(_DOUBLES)))(rng)


def moment(rng):
    """A date with a time."""
    if rng.random() < 0.6:
        return quote(f"20{rng.choice(('08', '20', '21'))}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} "
                     f"{rng.choice(_CLOCKS)}")
    return quote(rng.choice(_DATES) + rng.choice(("", " ", "T")) + rng.choice(_CLOCKS))


def date(rng):
    """A date."""
    if rng.random() < 0.6:
        return quote(f"20{rng.choice(('08', '20'))}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}")
    return quote(rng.choice(_DATES))


def _set(rng):
    return quote(",".join(rng.sample(("x", "y", "z"), rng.randint(0, 3))))


def _bytes(rng):
    return rng.choice(_MIXED_BYTES) if rng.random() < 0.5 else word(rng)


_UUIDS = ("'00000000-0000-0000-0000-000000000000'", "'123e4567-e89b-12d3-a456-426655440000'", "'nonsense'",
          "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'00000000-0000-1000-0000-000000000001'")
_BY_FAMILY = {
    "int": integer,
    "dec": lambda rng: rng.choice(_DECIMALS) if rng.random() < 0.5 else f"{rng.randint(-400, 400) / 4}",
    "float": lambda rng: rng.choice(("0", "-1", "1.5", "0.25", "100")) if rng.random() < 0.4 else f"{rng.randint(-40, 40) / 4}",
    "year": lambda rng: rng.choice(("2008", "2020", "1901", "2155", "0", "1900", "1999", "70", "'2020'")),
    "bit": lambda rng: rng.choice(("b'0'", "b'1'", "b'101'", "b'1111111111111'", "5", "0")),
    "text": word,
    "enum": lambda rng: rng.choice(("'red'", "'GREEN'", "'blue'", "''", "'pink'", "1", "2")),
    "set": lambda rng: _set(rng) if rng.random() < 0.8 else rng.choice(("'w'", "3", "''")),
    "json": lambda rng: rng.choice(("'{}'", "'[1, 2]'", "'{\"a\": \"b\"}'", "'{\"a\": {\"b\": [1, null, \"x\"]}}'", "'{'", "'1'")),
    "date": date,
    "datetime": moment,
    "timestamp": moment,
    "time": lambda rng: quote(rng.choice(_SPANS)),
    "binary": _bytes,
    "uuid": lambda rng: rng.choice(_UUIDS),
    "inet6": lambda rng: rng.choice(("'::'", "'::1'", "'2001:db8::ff00:42'", "'::ffff:192.0.2.1'", "'nonsense'")),
    "inet4": lambda rng: rng.choice(("'0.0.0.0'", "'192.0.2.1'", "'255.255.255.255'", "'nonsense'")),
}
_TYPED = (lambda rng: "DATE" + date(rng), lambda rng: "TIMESTAMP" + moment(rng),
          lambda rng: "TIME" + quote(rng.choice(_SPANS)), lambda rng: rng.choice(_MIXED_BYTES), lambda rng: "NULL",
          lambda rng: "TRUE", lambda rng: "@five", lambda rng: "@word", lambda rng: "@day", lambda rng: "@none",
          lambda rng: "_utf16" + word(rng), lambda rng: "_latin1" + quote(rng.choice(("a", "b", "ss", ""))),
          lambda rng: "_utf8mb4" + word(rng) + " COLLATE utf8mb4_bin", lambda rng: "N" + word(rng),
          lambda rng: "_binary" + word(rng))


def literal(rng, family):
    """A value for a column of the family; invalid ones among them."""
    return _BY_FAMILY[family](rng)


def constant(rng, family=None):
    """A constant to compare with: mostly of the family, at times of any other kind."""
    choice = rng.random()
    if family is not None and choice < 0.75:
        return literal(rng, family)
    if choice < 0.85:
        return rng.choice(_TYPED)(rng)
    return literal(rng, rng.choice(list(_BY_FAMILY)))


@dataclasses.dataclass
class Kind:
    """A type as it stands in a definition, and its family."""
    sql: str
    family: str
    key: bool = True
    prefix: int = 0


def _integer_kind(rng):
    name = rng.choice(("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INT", "BIGINT"))
    return Kind(name + rng.choice(("", "", " UNSIGNED", " ZEROFILL" if rng.random() < 0.1 else "")), "int")


def _text_kind(rng):
    collation = rng.choice(COLLATIONS)
    name, prefix, key = rng.choice((("CHAR(1)", 0, True), ("CHAR(12)", 5, True), ("VARCHAR(24)", 10, True),
                                    ("VARCHAR(200)", 20, True), ("VARCHAR(3)", 2, True), ("VARCHAR(300)", 7, False),
                                    ("TINYTEXT", 10, False), ("TEXT", 10, False), ("LONGTEXT", 30, False)))
    if name.startswith("CHAR") and "nopad" in collation and ("unicode" in collation or "uca" in collation):
        name = "VARCHAR(12)"  # as CHAR, 'ss' and a sharp s are equal to our keys and not to InnoDB's (docs/compatibility.md)
    return Kind(f"{name} CHARACTER SET {collation.split('_')[0]} COLLATE {collation}", "text", key, prefix)


def _other_kind(rng):
    return rng.choice((
        Kind("FLOAT", "float"), Kind("DOUBLE", "float"), Kind("DOUBLE UNSIGNED", "float"), Kind("DECIMAL(10,2)", "dec"),
        Kind("DECIMAL(30,10)", "dec"), Kind("DECIMAL(65,30)", "dec"), Kind("DECIMAL(5,0) UNSIGNED", "dec"),
        Kind("BIT(1)", "bit"), Kind("BIT(13)", "bit"), Kind("BIT(64)", "bit"), Kind("YEAR", "year"), Kind("DATE", "date"),
        Kind("DATETIME", "datetime"), Kind("DATETIME(3)", "datetime"), Kind("DATETIME(6)", "datetime"),
        Kind("TIMESTAMP", "timestamp"), Kind("TIMESTAMP(6)", "timestamp"), Kind("TIME", "time"), Kind("TIME(6)", "time"),
        Kind("BINARY(3)", "binary", True, 2), Kind("VARBINARY(20)", "binary", True, 4), Kind("BLOB", "binary", False, 8),
        Kind("TINYBLOB", "binary", False, 3), Kind("ENUM('red','Green','blue')", "enum"), Kind("SET('x','y','z')", "set"),
        Kind("ENUM('red','Green','blue') CHARACTER SET utf16", "enum"), Kind("INET6", "inet6"), Kind("INET4", "inet4"),
        Kind("UUID", "uuid"), Kind("JSON", "json", False), Kind("BOOLEAN", "int")))


def kind(rng):
    """Any type."""
    choice = rng.random()
    if choice < 0.3:
        return _integer_kind(rng)
    if choice < 0.55:
        return _text_kind(rng)
    return _other_kind(rng)


_FAMILIES = {"tinyint": "int", "smallint": "int", "mediumint": "int", "int": "int", "bigint": "int", "decimal": "dec",
             "float": "float", "double": "float", "bit": "bit", "year": "year", "date": "date", "datetime": "datetime",
             "timestamp": "timestamp", "time": "time", "binary": "binary", "varbinary": "binary", "enum": "enum",
             "set": "set", "uuid": "uuid", "inet6": "inet6", "inet4": "inet4"}


def family(data_type, column_type):
    """The family of a column, of what INFORMATION_SCHEMA.COLUMNS says of it."""
    if "blob" in data_type:
        return "binary"
    if "json_valid" in column_type:
        return "json"
    return _FAMILIES.get(data_type, "text")
