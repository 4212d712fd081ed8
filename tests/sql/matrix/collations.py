"""What a key finds, what a scan finds, what InnoDB finds: for each collation of the server."""

import collections
import random
import re

from sqlkit.client import SqlError

_TYPES = (("CHAR(6)", ""), ("VARCHAR(6)", ""), ("TEXT", "(4)"), ("VARCHAR(6)", "(2)"), ("CHAR(6)", "(2)"))
_VALUES = ("", " ", "a", "A", "a ", "ab", "AB", "b", "ba", "s", "ss", "S", "z", "1", "a\\t", "a\\0", "s!", "ch", "c", "d", "%", "_", "a%b", "ae", "aaaaaa",
           "x.", "\\\\", "é", "ß", "ä", "中", "ж", "Ö", "ı", "ŋ", "ي")
_WORDS = ("", " ", "a", "A", "ab", "s", "ss", "b", "é", "ß", "ch", "z", "a ", "ae", "%", "\\0", "s\\0", "中", "ж")
_PATTERNS = ("s%", "a%", "A%", "%", "", "ss", "_", "a_", "ch%", "é%", "ß%", "s", " %", "a %", "\\\\%%", "中%")
_SAMPLE = 10


def _questions(rng, is_whole):
    words = rng.sample(_WORDS, 9)
    found = []
    for word in words:
        found += [f"SELECT COUNT(*), IFNULL(SUM(id), 0) FROM {{f}} WHERE c {how} '{word}'" for how in ("=", "<", ">=", "<=", ">", "<=>")]
    for low, high in zip(words, words[1:]):
        found += [f"SELECT COUNT(*), IFNULL(SUM(id), 0) FROM {{f}} WHERE c BETWEEN '{low}' AND '{high}'",
                  f"SELECT COUNT(*), IFNULL(SUM(id), 0) FROM {{f}} WHERE c IN ('{low}', '{high}')",
                  f"SELECT HEX(WEIGHT_STRING(MIN(c))), HEX(WEIGHT_STRING(MAX(c))) FROM {{f}} WHERE c > '{low}'"]
    found += [f"SELECT COUNT(*), IFNULL(SUM(id), 0) FROM {{f}} WHERE c LIKE '{pattern}'" for pattern in _PATTERNS]
    # Which of equal texts stands for a group is not said, and the weights of such differ in blanks at the end.
    found += ["SELECT COUNT(*), SUM(id) FROM {f} GROUP BY c", "SELECT COUNT(DISTINCT c) FROM {f}",
              "SELECT HEX(WEIGHT_STRING(MIN(c))), HEX(WEIGHT_STRING(MAX(c))) FROM {f}"]
    if is_whole:
        found.append("SELECT MIN(id), MAX(id) FROM {f} GROUP BY c")
    return found


def _answer(session, statement):
    try:
        return sorted(session.query(statement).rows, key=repr)
    except SqlError as error:
        return error.number


def _fill(session, name, engine, collation, kind, prefix, down):
    charset = collation[1]
    session.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, c {kind} CHARACTER SET {charset} COLLATE {collation[0]}, KEY k (c{prefix}{down}), "
                  f"KEY two (id, c{prefix})) ENGINE={engine}")
    rows = ", ".join(f"({number + 1}, '{value}')" for number, value in enumerate(_VALUES + _VALUES[:9]))
    session.query(f"INSERT IGNORE INTO {name} VALUES {rows}, (1000, NULL)")


def run(session, arguments):
    """(counts, differences)."""
    rng, counts, wrong = random.Random(arguments.seed), collections.Counter(), []
    found = [(row[0].decode(), row[1].decode()) for row in session.query(
        "SELECT full_collation_name, character_set_name FROM information_schema.collation_character_set_applicability ORDER BY 1").rows]
    session.query("SET sql_mode = '', max_sort_length = 8192")
    if not arguments.every:
        # Those that do not pad are where engines err, so half of a sample are such.
        nopad = [collation for collation in found if "nopad" in collation[0]]
        found = rng.sample(found, _SAMPLE // 2) + rng.sample(nopad, _SAMPLE // 2)
    for collation in found:
        counts["collations"] += 1
        for kind, prefix in _TYPES:
            if not arguments.every and rng.random() < 0.4:
                continue
            wrong += _one(session, rng, collation, kind, prefix, counts, arguments.show - len(wrong))
    return counts, wrong


def _reason(collation, kind, question, answers):
    """Why a key may find something else than a scan; None when it may not."""
    by_key, scan = answers["PANDO", "FORCE"], answers["PANDO", "IGNORE"]
    if by_key == scan:
        return None
    if by_key == answers["InnoDB", "FORCE"] and scan == answers["InnoDB", "IGNORE"]:
        return "the server asks the key for a range that is too small, of InnoDB, too"
    if kind.startswith("CHAR") and "nopad" in collation and re.search(r"[^'] '", question):
        # The key knows the constant without its blanks, and 'a\t' lies behind 'a', but before 'a '.
        return "CHAR, NO PAD: a constant that ends with a blank, and values that go on with a control character"
    return None


def _one(session, rng, collation, kind, prefix, counts, show):
    wrong, down = [], rng.choice(("", " DESC"))
    try:
        for engine in ("PANDO", "InnoDB"):
            session.query(f"DROP TABLE IF EXISTS {engine}")
            _fill(session, engine, engine, collation, kind, prefix, down)
    except SqlError as error:
        counts[f"not a table ({error.number})"] += 1
        return []
    for question in _questions(rng, not prefix):
        counts["cells"] += 1
        answers = {(engine, how): _answer(session, question.format(f=f"{engine} {how} INDEX ({'k' if how == 'FORCE' else 'k, two'})"))
                   for engine in ("PANDO", "InnoDB") for how in ("FORCE", "IGNORE")}
        scan = answers["PANDO", "IGNORE"]
        if answers["InnoDB", "IGNORE"] != answers["InnoDB", "FORCE"]:
            counts["InnoDB's key differs from InnoDB's scan"] += 1
        why = _reason(collation[0], kind, question, answers)
        if why:
            counts["stated: " + why] += 1
            continue
        what = None
        if answers["PANDO", "FORCE"] != scan:
            what = f"by key {answers['PANDO', 'FORCE']}, by scan {scan}, InnoDB {answers['InnoDB', 'FORCE']}, {answers['InnoDB', 'IGNORE']}"
        elif scan != answers["InnoDB", "IGNORE"]:
            what = f"scan {scan}, InnoDB's {answers['InnoDB', 'IGNORE']}"
        if what:
            wrong.append(f"{collation[0]} {kind} key c{prefix}{down}: {question}\n    {what[:900]}")
            if len(wrong) <= show:
                print("WRONG " + wrong[-1], flush=True)
    return wrong
