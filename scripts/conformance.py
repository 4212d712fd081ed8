#!/usr/bin/env python3
"""Runs the server's own suites with PANDO in the place of InnoDB and MyISAM, and judges the answers.

    scripts/conformance.py                        all suites (make conformance)
    scripts/conformance.py main [TEST ...]        one suite, or some tests of it (others keep their last outcome)
    scripts/conformance.py --judge main           judges the last run again
    scripts/conformance.py --accept REASON main TEST ...
                                                  takes the differences of these tests from InnoDB, as last seen, into
                                                  mariadb/mysql-test/default_engine/main/TEST.diff

How the tests are adapted is said in scripts/conformance.sh. The recorded results were made with MyISAM or InnoDB, and
hold more than answers: the optimizer's plans with their estimates of rows, counters, rows in no stated order. So a
test whose output is not the recorded one is judged by its answers, in this order:

    pass      the driver found the recorded result (for some tests with a difference stated in a .rdiff)
    answers   the answers are the recorded ones; plans, counters or the order of rows differ
    as InnoDB the answers are those of InnoDB, which is run next to it and does not give the recorded ones either; a test
              that ends at an unexpected error is run on both engines once more, going on after errors
    stated    the answers differ from InnoDB's exactly as a .diff states, with the reason in its first line
    FAIL      anything else

What is compared: the output is cut at the statements in it; what EXPLAIN and SHOW STATUS print is left out, names
of engines are made equal, and lines between two statements are sorted unless an ORDER BY stands among them.
"""
import difflib
import os
import re
import shutil
import subprocess
import sys
from collections import Counter

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
OUT = os.path.join(ROOT, "build", "conformance")
OURS = os.path.join(ROOT, "mariadb", "mysql-test", "default_engine")
SUITES = ["engines/iuds", "engines/funcs", "handler", "vcol", "gcol", "parts", "period", "versioning", "sql_sequence",
          "main", "binlog", "rpl", "innodb"]
# Suites whose outputs the driver records: it is much quicker than when it compares, because after a difference it starts
# the servers anew. Not for suites that run tests in several combinations, which would overwrite each other's.
RECORDED = ["main"]
PASSES = ["pass", "answers", "as InnoDB", "stated"]

STATEMENT = re.compile(
    r"\s*(select|insert|update|delete|replace|create|drop|alter|explain|describe|desc|show|set|prepare|execute|deallocate"
    r"|call|flush|lock|unlock|start|begin|commit|rollback|savepoint|release|analyze|optimize|check|checksum|repair"
    r"|rename|truncate|with|values|handler|load|use|grant|revoke|do|xa|backup|table|connect|connection|disconnect"
    r"|end|kill|cache|purge|reset|change|stop|include|eval|delimiter|echo)\b|#|\(select|--|\*\*\*", re.I)
PLAN = re.compile(r"\s*(explain|describe|desc|analyze)\b(?!\s+(local\s+)?table)|\s*show\s+((global|session)\s+)?status"
                  r"|.*\b(global_status|session_status|optimizer_trace)\b", re.I)
PLAN_HEADER = re.compile(r"id\tselect_type\ttable\t|EXPLAIN$|ANALYZE$")
ENGINE = re.compile(r"innodb|myisam|pando", re.I)


def answers(text):
    """The output as a list of lines in which only what is an answer to a statement counts."""
    blocks = [[]]
    for line in ENGINE.sub("PANDO", text).split("\n"):
        if STATEMENT.match(line) or not blocks[-1]:
            blocks.append([])
        blocks[-1].append(line.rstrip())
    lines = []
    for block in blocks:
        if not block:
            continue
        head, rest = block[0], block[1:]
        if PLAN.match(head):
            rest = []
        for number, line in enumerate(rest):
            if PLAN_HEADER.match(line):
                rest = rest[:number]
                break
        if not any("order by" in line.lower() for line in block):
            rest.sort()
        lines += [head] + rest
    return lines


def read(path):
    if not os.path.exists(path):
        return None
    with open(path, errors="surrogateescape") as file:
        return file.read()


class Run:
    """What the driver said of one suite on one engine, and where its outputs are."""

    def __init__(self, suite, engine):
        self.suite, self.engine = suite, engine
        self.directory = os.path.join(OUT, engine.lower(), suite)
        self.log_path = os.path.join(self.directory, "driver.log")
        view = os.path.join(ROOT, "build", "mtr-" + engine.lower(), "mysql-test")
        self.results = os.path.join(view, "main" if suite == "main" else "suite/" + suite)
        if os.path.isdir(os.path.join(self.results, "r")):
            self.results = os.path.join(self.results, "r")
        # Where the driver records, the results as they were are beside the suite.
        self.originals = self.results + ".recorded" if suite in RECORDED else self.results

    def start(self, tests, keep=False, go_on=False):
        """Runs the suite. `keep` adds to what an earlier run found; with `go_on` tests go on after errors."""
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory, exist_ok=True)
        for test in tests:
            for old in self.rejects(test):
                os.remove(old)
        command = [os.path.join(ROOT, "scripts", "mtr.sh"), "--suite", self.suite, "--suite-timeout=600",
                   "--testcase-timeout=8"] + tests
        with open(self.log_path, "a") as log:
            driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      env=dict(os.environ, PANDO_TEST_ENGINE=self.engine,
                                               PANDO_GO_ON=" ".join(tests) if go_on else "",
                                               PANDO_RECORD="1" if self.suite in RECORDED else ""),
                                      errors="replace", text=True)
            for line in driver.stdout:
                log.write(line)
                log.flush()
                if re.match(re.escape(self.suite) + r"\.\S+ .*\[ \w+", line):
                    print(self.engine, line.rstrip()[:110], flush=True)
            driver.wait()
        for name in os.listdir(self.results):
            source, stem = os.path.join(self.results, name), name.rsplit(".", 1)[0]
            if name.endswith(".reject"):
                shutil.move(source, os.path.join(self.directory, name))
            elif name.endswith(".result") and self.suite in RECORDED and read(source) != self.recorded(stem):
                shutil.copy(source, os.path.join(self.directory, stem + ".reject"))

    def rejects(self, test):
        """Files with outputs that are not the recorded one."""
        plain = test.split(",")[0]
        return [os.path.join(self.directory, name) for name in (os.listdir(self.directory))
                if name.endswith(".reject") and re.split("[,.]", name)[0] == plain]

    def outcomes(self):
        """Test with its combination -> pass, fail, skipped, disabled."""
        found = {}
        pattern = re.compile(re.escape(self.suite) + r"\.(\S+)\s+(?:'([^']*)'\s+)?.*\[ (\w+)")
        for line in (read(self.log_path) or "").split("\n"):
            match = pattern.match(line)
            if match:
                found[match[1] + ("," + match[2] if match[2] else "")] = match[3]
        # When it records, the driver lets every output pass.
        return {test: "fail" if outcome == "pass" and self.rejects(test) and self.suite in RECORDED else outcome
                for test, outcome in found.items()}

    def output(self, test, outcome):
        """What the test printed to its end; None: it did not come to its end."""
        plain = test.split(",")[0]
        if outcome == "pass":
            return self.recorded(test)
        for name in (test, plain):
            text = read(os.path.join(self.directory, name + ".reject"))
            if text is not None:
                return text
        return None

    def recorded(self, test):
        for name in (test, test.split(",")[0]):
            text = read(os.path.join(self.originals, name + ".result"))
            if text is not None:
                return text
        return None

    def why(self, test):
        """Why a test did not come to its end."""
        log = read(self.log_path) or ""
        at = log.rfind("CURRENT_TEST: %s.%s\n" % (self.suite, test.split(",")[0]))
        return " ".join(log[at:].split("\n\n")[0].split("\n")[1:])[:300] if at >= 0 else "no output"


def difference(of, to):
    return "\n".join(difflib.unified_diff(of, to, "InnoDB", "PANDO", lineterm="", n=1)) + "\n"


def judge(suite, run=True, tests=()):
    """Test -> (verdict, what to show). With `run`, what has not been run for it (and is one of `tests`, if any are
    named) is run."""
    pando, innodb = Run(suite, "PANDO"), Run(suite, "InnoDB")
    ended = sorted({test.split(",")[0] for test, outcome in pando.outcomes().items()
                    if outcome == "fail" and pando.output(test, outcome) is None})
    ended = [test for test in ended if not tests or test in tests]
    if ended and run:
        pando.start(ended, keep=True, go_on=True)
        innodb.start(ended, keep=True, go_on=True)
    verdicts, open_tests = {}, {}
    for test, outcome in sorted(pando.outcomes().items()):
        if outcome != "fail":
            verdicts[test] = (outcome, "")
            continue
        text = pando.output(test, outcome)
        if text is None:
            verdicts[test] = ("FAIL", "ends early: " + pando.why(test))
        elif answers(text) == answers(pando.recorded(test) or ""):
            verdicts[test] = ("answers", "")
        else:
            open_tests[test] = answers(text)
    missing = sorted({test.split(",")[0] for test in open_tests if test not in innodb.outcomes()})
    missing = [test for test in missing if not tests or test in tests]
    if missing and run:
        innodb.start(missing, keep=True)
    for test, mine in open_tests.items():
        outcome = innodb.outcomes().get(test, "not run")
        text = innodb.output(test, outcome)
        if text is None:
            text = innodb.recorded(test) or ""
            note = "InnoDB %s; against the recorded result:\n" % outcome
        else:
            note = ""
        shown = difference(answers(text), mine)
        stated = read(os.path.join(OURS, suite, test + ".diff"))
        if not shown.strip():
            verdicts[test] = ("as InnoDB", "")
        elif stated is not None and stated.split("\n", 1)[1] == shown:
            verdicts[test] = ("stated", "")
        else:
            verdicts[test] = ("FAIL", note + shown)
    return verdicts


def accept(reason, suite, tests):
    for test, (verdict, shown) in judge(suite, run=False).items():
        if verdict == "FAIL" and (test in tests or test.split(",")[0] in tests) and "\n@@" in shown:
            at = shown.index("--- InnoDB")
            with open(os.path.join(OURS, suite, test + ".diff"), "w", errors="surrogateescape") as file:
                file.write("Reason: %s\n%s" % (reason, shown[at:]))
            print("stated:", suite, test)


def summary(all_verdicts):
    print("\n| suite | tests | %s | skipped by the test | cannot apply | FAIL |" % " | ".join(PASSES))
    print("|" + " --- |" * (len(PASSES) + 5))
    failed = 0
    for suite, verdicts in all_verdicts.items():
        count = Counter(verdict for verdict, _ in verdicts.values())
        failed += count["FAIL"]
        print("| `%s` | %d | %s | %d | %d | %d |" % (
            suite, len(verdicts), " | ".join(str(count[name]) for name in PASSES), count["skipped"],
            count["disabled"], count["FAIL"]))
    return 1 if failed else 0


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--accept"]:
        accept(arguments[1], arguments[2], arguments[3:])
        return 0
    judge_only = arguments[:1] == ["--judge"]
    if judge_only:
        arguments = arguments[1:]
    suites, tests = (arguments[:1], arguments[1:]) if arguments else (SUITES, [])
    all_verdicts = {}
    for suite in suites:
        if not judge_only:
            Run(suite, "PANDO").start(tests, keep=bool(tests))
        all_verdicts[suite] = judge(suite, run=not judge_only, tests=tests)
        for test, (verdict, shown) in all_verdicts[suite].items():
            if verdict == "FAIL" and (not tests or test.split(",")[0] in tests):
                print("\n== FAIL %s.%s\n%s" % (suite, test, shown), end="")
    return summary(all_verdicts)


if __name__ == "__main__":
    sys.exit(main())
