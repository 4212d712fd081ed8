"""The axes of the matrix."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Kind:
    """A type of column, values for it (some that it must refuse), and the length of a key's part of it."""
    sql: str
    family: str
    values: tuple
    prefix: int = 0


_INTEGERS = ("0", "1", "2", "3", "5", "10", "42", "100", "-1", "-2", "127", "128", "255", "2147483647", "9223372036854775807", "7", "2008")
_DECIMALS = ("0", "1", "-1", "0.01", "-0.01", "99.99", "1.5", "2.25", "-2.25", "3", "10", "1.50", "0.5", "100", "12345.67")
_DOUBLES = ("0", "1", "-1", "0.25", "-0.5", "3.75", "100", "1.5", "1e10", "-1e10", "1e-5", "0.1", "2", "10")
_TEXTS = ("''", "' '", "'a'", "'A'", "'a '", "'ab'", "'AB'", "'b'", "'ba'", "'z'", "'s'", "'ss'", "'1'", "'01'", "'10'", "'2'", "'-1'",
          "'1.0'", "'1e0'", "'2020-01-01'", "'2008-02-29 12:00:00'", "'12:34:56'", "'%'", "'a%b'", "'_x'", "'x y'", "'abc'")
_WIDE = ("'é'", "'e'", "'É'", "'ß'", "'ä'", "'中'", "'Ж'", "'ж'")
_DATES = ("'2008-01-01'", "'2008-02-29'", "'2020-01-01'", "'2020-12-31'", "'1999-12-31'", "'9999-12-31'", "'0000-00-00'", "'2020-00-10'",
          "'2020-01-02'")
_MOMENTS = ("'2008-02-29 12:00:00'", "'2020-01-01 00:00:00'", "'2020-01-01 12:34:56'", "'2020-01-01 12:34:56.5'", "'1999-12-31 23:59:59'",
            "'2020-01-01 00:00:00.000001'", "'2008-01-01'", "'2020-12-31 23:59:59.999999'", "'0000-00-00 00:00:00'")
_SPANS = ("'00:00:00'", "'12:34:56'", "'-00:00:01'", "'838:59:59'", "'-838:59:59'", "'12:34:56.5'", "'24:00:00'", "'00:00:00.000001'", "'10:11:12'")
_BYTES = ("''", "'a'", "'A'", "'a '", "x'00'", "x'0000'", "x'FF'", "x'6100'", "'abc'", "'1'", "'2020-01-01'")

COLLATIONS = ("utf8mb4_general_ci", "latin1_swedish_ci", "utf8mb4_bin", "utf8mb4_unicode_ci", "utf8mb4_uca1400_ai_ci", "latin1_bin",
              "utf8mb4_nopad_bin", "utf8mb4_general_nopad_ci", "utf8mb4_unicode_nopad_ci", "latin1_swedish_nopad_ci", "utf8mb3_general_ci",
              "utf8mb4_uca1400_nopad_as_cs", "ucs2_general_ci", "utf16_unicode_ci", "utf16le_bin", "utf32_general_ci", "latin1_german2_ci",
              "sjis_japanese_ci", "ascii_general_ci", "utf8mb4_czech_ci")


def _texts():
    kinds = []
    for number, collation in enumerate(COLLATIONS):
        charset = collation.split("_")[0]
        values = _TEXTS + (_WIDE if charset.startswith(("utf", "ucs")) or charset == "latin1" else ())
        for sql, prefix in (("VARCHAR(30)", 0), ("CHAR(20)", 0), ("TEXT", 8)):
            if number < 6 or sql == ("VARCHAR(30)", "CHAR(20)", "TEXT")[number % 3]:
                kinds.append(Kind(f"{sql} CHARACTER SET {charset} COLLATE {collation}", "text", values, prefix))
    return kinds


def kinds():
    """All types of columns."""
    found = []
    for name in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT"):
        found += [Kind(name, "int", _INTEGERS), Kind(name + " UNSIGNED", "int", _INTEGERS)]
    found += [Kind("INT(5) ZEROFILL", "int", _INTEGERS), Kind("DECIMAL(10,2)", "dec", _DECIMALS), Kind("DECIMAL(30,10)", "dec", _DECIMALS),
              Kind("DECIMAL(5,0) UNSIGNED", "dec", _DECIMALS), Kind("DECIMAL(65,30)", "dec", _DECIMALS), Kind("FLOAT", "float", _DOUBLES),
              Kind("DOUBLE", "float", _DOUBLES), Kind("DOUBLE UNSIGNED", "float", _DOUBLES), Kind("BIT(1)", "bit", ("b'0'", "b'1'")),
              Kind("BIT(13)", "bit", ("b'0'", "b'1'", "b'101'", "97", "b'1111111111111'")), Kind("BIT(64)", "bit", ("0", "1", "97", "12337")),
              Kind("YEAR", "year", ("2008", "2020", "1901", "2155", "0", "1999", "2000")), Kind("DATE", "date", _DATES)]
    for fraction in ("", "(3)", "(6)"):
        found += [Kind(f"DATETIME{fraction}", "datetime", _MOMENTS), Kind(f"TIMESTAMP{fraction} NULL", "datetime", _MOMENTS),
                  Kind(f"TIME{fraction}", "time", _SPANS)]
    for charset in ("utf8mb4", "latin1", "utf16", "ucs2"):
        found += [Kind(f"ENUM('red','Green','1','a','10') CHARACTER SET {charset}", "enum", ("'red'", "'green'", "'1'", "'a'", "'10'", "1", "2", "''")),
                  Kind(f"SET('x','y','1') CHARACTER SET {charset}", "set", ("''", "'x'", "'x,y'", "'1'", "'x,y,1'", "3"))]
    found += [Kind("BINARY(3)", "binary", _BYTES), Kind("VARBINARY(20)", "binary", _BYTES), Kind("BLOB", "binary", _BYTES, 6),
              Kind("JSON", "json", ("'{}'", "'[1, 2]'", "'1'", "'\"a\"'", "'{\"a\": 1}'"), 5),
              Kind("UUID", "odd", ("'00000000-0000-0000-0000-000000000000'", "'123e4567-e89b-12d3-a456-426655440000'")),
              Kind("INET6", "odd", ("'::'", "'::1'", "'2001:db8::ff00:42'", "'::ffff:192.0.2.1'")),
              Kind("INET4", "odd", ("'0.0.0.0'", "'192.0.2.1'", "'255.255.255.255'"))]
    return found + _texts()


CONSTANTS = (
    "0", "1", "2", "3", "-1", "10", "100", "128", "2008", "2020", "20200101", "9223372036854775807", "18446744073709551615", "-9223372036854775808",
    "1.0", "1.5", "0.01", "-0.01", "2.25", "99.99", "0.50", "12345678901234567890123456789.5", "1e0", "1.5e0", "-1e3", "1e-5", "1e308",
    "''", "' '", "'a'", "'A'", "'a '", "'ab'", "'s'", "'ss'", "'1'", "'01'", "'1.0'", "'1x'", "'-1'", "'red'", "'x,y'", "'2008'", "'é'", "'ß'", "'中'",
    "_utf8mb4'a'", "_latin1'a'", "_utf16 x'0061'", "_ucs2 x'0031'", "_binary'a'", "_utf8mb4'a' COLLATE utf8mb4_bin", "N'a'",
    "'2020-01-01'", "'2020-1-1'", "'20200101'", "'2020-01-01 12:34:56'", "'2020-01-01 12:34:56.5'", "'0000-00-00'", "'2020-00-10'", "'2021-02-30'",
    "DATE'2020-01-01'", "DATE'2008-02-29'", "TIMESTAMP'2020-01-01 12:34:56'", "TIMESTAMP'2020-01-01 00:00:00'", "TIMESTAMP'2020-01-01 12:34:56.5'",
    "TIME'12:34:56'", "TIME'-00:00:01'", "TIME'24:00:00'", "'12:34:56'", "'12:34:56.5'", "123456",
    "x'61'", "0x61", "x'00'", "x''", "b'1'", "b'01100001'", "0x31", "NULL", "TRUE", "@int", "@dec", "@dbl", "@txt", "@day", "@none", "@bin",
    "1 + 1", "1 / 3", "CONCAT('a', '')", "UPPER('a')", "CAST('2020-01-01' AS DATE)", "CAST(1 AS CHAR)", "CAST('1' AS SIGNED)", "CAST('1' AS UNSIGNED)",
    "DATE'2019-12-31' + INTERVAL 1 DAY", "IF(1, 'a', 1)", "COALESCE(NULL, 1.5)", "GREATEST(1, '2')", "NULLIF(1, 1)", "UNHEX('61')",
    "'::1'", "'123e4567-e89b-12d3-a456-426655440000'", "CAST('::1' AS INET6)", "'{}'", "JSON_ARRAY(1, 2)", "UNIX_TIMESTAMP('2020-01-01')")

PATTERNS = ("'a%'", "'%'", "''", "'A'", "'a'", "'%a'", "'_'", "'1%'", "'2020%'", "'%-01%'", "'s%'", "'a\\\\%b'", "'%\\\\%%'", "'é%'", "'a '", "NULL", "1",
            "'re_'", "_latin1'a%'", "_utf16 x'00610025'", "x'6125'", "@txt", "'a%' COLLATE utf8mb4_bin", "b'00110001'", "DATE'2020-01-01'")

# `c` is the column; `{k}`, `{l}`, `{m}` are constants, `{p}` is a pattern.
CONDITIONS = (
    "c = {k}", "c <> {k}", "c < {k}", "c <= {k}", "c > {k}", "c >= {k}", "c <=> {k}", "{k} = c", "{k} < c", "{k} >= c", "NOT (c = {k})", "NOT (c < {k})",
    "c BETWEEN {k} AND {l}", "c NOT BETWEEN {k} AND {l}", "{k} BETWEEN c AND {l}", "c IN ({k})", "c IN ({k}, {l})", "c IN ({k}, {l}, {m})",
    "c NOT IN ({k}, {l})", "c NOT IN ({k}, NULL)", "c LIKE {p}", "c NOT LIKE {p}", "c LIKE {p} ESCAPE '|'", "c IS NULL", "c IS NOT NULL", "c IS TRUE",
    "c IS NOT FALSE", "(c, id) = ({k}, 3)", "(c, id) > ({k}, 3)", "(c, id) IN (({k}, 3), ({l}, 5))", "(id, c) NOT IN ((3, {k}), (4, {l}))",
    "c = {k} OR id = 3", "c = {k} AND id > 3", "c > {k} AND c < {l}", "c = {k} OR c = {l}", "c <> {k} AND c <> {l}", "c = {k} XOR id > 5", "(c = {k}) = (id > 5)",
    "c", "NOT c", "c + 0 = {k}", "c * 2 > {k}", "CONCAT(c, '') = {k}", "IFNULL(c, {k}) = {l}", "COALESCE(c, {k}) < {l}", "NULLIF(c, {k}) IS NULL",
    "IF(c = {k}, 1, 0)", "CASE c WHEN {k} THEN 1 WHEN {l} THEN 0 END", "CASE WHEN c > {k} THEN {l} ELSE c END = c", "GREATEST(c, {k}) = c", "LEAST(c, {k}) = {k}",
    "LENGTH(c) = 1", "UPPER(c) = {k}", "YEAR(c) = {k}", "MONTH(c) = 1", "DATE(c) = {k}", "CAST(c AS SIGNED) = {k}", "CAST(c AS CHAR) = {k}", "CAST(c AS DATE) = {k}",
    "CAST(c AS DECIMAL(20,2)) = {k}", "ABS(c) = {k}", "c = c", "c <=> d", "c = d", "c < d", "c BETWEEN d AND {k}", "c = ANY (SELECT {k})", "EXISTS (SELECT 1 FROM DUAL WHERE c = {k})")

# `{w}` is the condition, `{f}` the table.
FORMS = (
    "SELECT id FROM {f} WHERE {w}", "SELECT id FROM {f} WHERE {w}", "SELECT id, c FROM {f} WHERE {w}", "SELECT COUNT(*), SUM(id) FROM {f} WHERE {w}",
    "SELECT COUNT(*), MIN(id), MAX(id) FROM {f} WHERE {w}", "SELECT COUNT(c), HEX(WEIGHT_STRING(MIN(c))), HEX(WEIGHT_STRING(MAX(c))) FROM {f} WHERE {w}",
    "SELECT HEX(WEIGHT_STRING(c)), COUNT(*), SUM(id) FROM {f} WHERE {w} GROUP BY c", "SELECT SUM({w}), COUNT({w}) FROM {f}", "SELECT ({w}), COUNT(*) FROM {f} GROUP BY 1",
    "SELECT SUM(IF({w}, id, 0)) FROM {f}", "SELECT SUM(CASE WHEN {w} THEN 1 ELSE 0 END), COUNT(*) FROM {f}", "SELECT id, ({w}) FROM {f}",
    "SELECT COUNT(*) FROM {f} WHERE NOT ({w})", "SELECT COUNT(*), COUNT(DISTINCT c) FROM {f} WHERE ({w}) IS NULL")

MODES = ("", "", "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "NO_ZERO_DATE,NO_ZERO_IN_DATE,STRICT_ALL_TABLES",
         "ALLOW_INVALID_DATES", "PAD_CHAR_TO_FULL_LENGTH", "TIME_ROUND_FRACTIONAL", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT",
         "HIGH_NOT_PRECEDENCE", "NO_UNSIGNED_SUBTRACTION", "EMPTY_STRING_IS_NULL", "TRADITIONAL", "ORACLE", "MSSQL")
ZONES = ("+00:00", "+05:30", "-08:00")
CONNECTIONS = ("utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_unicode_ci", "latin1_swedish_ci", "utf8mb4_general_nopad_ci")
