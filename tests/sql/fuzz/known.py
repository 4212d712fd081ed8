"""Differences that are stated: each with its reason. Anything else is a failure."""

import re

# Errors that depend on which rows, or which parts of a condition, a plan evaluates.
_BY_EVALUATION = {1690, 1242, 1292, 1366, 1411, 4078, 1267, 1271, 1270, 1139, 4038, 1918, 1365, 1441, 1406, 1264, 1265, 1048, 3141}
# The engine refuses ALTERs that cannot be done in the manner asked for: PANDO does more of them at once (docs/compatibility.md).
_BY_MANNER = {1845, 1846, 1847}
# A row, or a key, is too long for InnoDB's pages.
_BY_SIZE = {1118, 1071, 1709, 139}


def reason(step, first, second):
    """Why the answers may differ; None when they may not."""
    numbers = {answer[1] for answer in (first, second) if answer[0] == "error"}
    both_fail = first[0] == second[0] == "error"
    if both_fail and numbers & (_BY_EVALUATION | {1062, 1022, 1761, 4025, 1030, 1114}):
        return "which error a statement meets first depends on the order of rows"
    if both_fail and (numbers & _BY_MANNER or step.sql.startswith(("ALTER", "CREATE", "DROP INDEX"))):
        return "both refuse it; for what, they find in another order"
    if second[0] == "error" and second[1] == 4025 and step.sql.startswith("ALTER") and first[0] == "done":
        return "a CHECK of a column that is added at once is not asked for the rows that are there; as in InnoDB, which had to copy here"
    if second[0] == "error" and second[1] == 1075 and not both_fail:
        return "an AUTO_INCREMENT column may stand further back in a key"
    if 1054 in numbers and any(answer[0] == "error" and re.search("'(CHECK|GENERATED ALWAYS AS)'", answer[2]) for answer in (first, second)):
        return "the server forgets, at times, that a column of an expression gets a new name; two InnoDB tables differ in it, too"
    if re.match(r"EXECUTE .* USING ([bx]'|0x)", step.sql):
        return "bytes beside numbers are texts to a key and numbers to a scan, in the server"
    if numbers & _BY_SIZE:
        return "rows and keys have other limits"
    return None


def reason_by_hash_keys(step, first, second):
    """The same, for a database with keys that the server keeps unique by a hash: it makes copies and exchanges of their partitioned tables that
    InnoDB cannot open afterwards, and PANDO refuses."""
    if first[0] != "error" or second[0] != "done":
        return None
    if first[1] == 1503 and re.match(r"CREATE (OR REPLACE )?TABLE \w+ LIKE ", step.sql):
        return "a copy of a partitioned table has a plain key in the place of one USING HASH"
    if first[1] == 1736 and " EXCHANGE PARTITION " in step.sql:
        return "a table is exchanged with a partition whose key is USING HASH"
    return None


def ends_round(step, first, second):
    """Whether a stated difference leaves the two databases different."""
    return "error" in (first[0], second[0]) and first[0] != second[0]


def may_depend_on_evaluation(first, second):
    """Whether one of them fails with an error of a kind that depends on what is evaluated."""
    numbers = {answer[1] for answer in (first, second) if answer[0] == "error"}
    return bool(numbers) and numbers <= _BY_EVALUATION


def is_refused_manner(answer):
    """Whether an ALTER was refused for the manner asked for."""
    return answer[0] == "error" and answer[1] in _BY_MANNER
