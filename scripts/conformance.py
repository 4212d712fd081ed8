#!/usr/bin/env python3
"""Runs the server's own suites with PANDO in the place of InnoDB and MyISAM, and judges the answers.

    scripts/conformance.py                        all suites (make conformance)
    scripts/conformance.py main [TEST ...]        one suite, or some tests of it (others keep their last outcome)
    scripts/conformance.py --resume [main]        goes on where a run was broken off: only tests without an outcome
    scripts/conformance.py --minutes=N main       begins nothing new after N minutes and does not judge then; goes on with
                                                  --resume
    scripts/conformance.py --judge [main]         judges the last run again
    scripts/conformance.py --accept REASON main TEST ...
                                                  takes the differences of these tests from InnoDB, as last seen, into
                                                  mariadb/mysql-test/default_engine/main/TEST.diff

How the tests are adapted is said in scripts/conformance.sh. The recorded results were made with MyISAM or InnoDB, and
hold more than answers: the optimizer's plans with their estimates of rows, counters, rows in no stated order. So a
test whose output is not the recorded one is judged by its answers, in this order:

    pass      the driver found the recorded result (for some tests with a difference stated in a .rdiff)
    answers   the answers are the recorded ones; plans, counters or the order of rows differ
    as InnoDB each answer is the recorded one or that of InnoDB, which is run next to it; a test that ends at an
              unexpected error is run on both engines once more, going on after errors
    stated    the answers differ from InnoDB's exactly as a .diff states, with the reason in its first line
    FAIL      anything else

What is compared is said in scripts/conformance_judge.py. Outputs and the driver's log stay in build/conformance, with the
table of the last whole run (summary.md), which docs/compatibility.md repeats.
"""
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter

from conformance_judge import blocks, difference

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
OUT = os.path.join(ROOT, "build", "conformance")
OURS = os.path.join(ROOT, "mariadb", "mysql-test", "default_engine")
SUITES = ["engines/iuds", "engines/funcs", "handler", "vcol", "gcol", "parts", "period", "versioning", "sql_sequence",
          "main", "binlog", "rpl", "innodb", "sys_vars", "funcs_1"]
# Suites whose outputs the driver records: it is much quicker than when it compares, because after a difference it starts
# the servers anew. Not for suites that run tests in several combinations, which would overwrite each other's.
RECORDED = ["main"]
PASSES = ["pass", "answers", "as InnoDB", "stated"]
# Tests in one run of the driver: what a run that is broken off loses. Those of replication take longer.
BATCH, BATCH_RPL = 20, 12


def tests_of(suite):
    """The names of the tests of a suite that are run."""
    script = ('PANDO_ROOT=$1 DRIVER_HOME=/usr/share/mysql/mysql-test OURS=$1/mariadb/mysql-test; . "$1/scripts/conformance.sh"; '
              'conformance_tests "$2" /usr/share/mysql')
    chosen = subprocess.run(["bash", "-c", script, "bash", ROOT, suite], stdout=subprocess.PIPE, text=True,
                            check=True).stdout.split()
    directory = "/usr/share/mysql/mysql-test/" + ("main" if suite == "main" else "suite/" + suite)
    if os.path.isdir(os.path.join(directory, "t")):
        directory = os.path.join(directory, "t")
    return chosen or sorted(name[:-5] for name in os.listdir(directory) if name.endswith(".test"))


def read(path):
    if not os.path.exists(path):
        return None
    with open(path, errors="surrogateescape") as file:
        return file.read()


class Run:
    """What the driver said of one suite on one engine, and where its outputs are."""

    def __init__(self, suite, engine):
        self.suite, self.engine = suite, engine
        self.batch = BATCH_RPL if suite == "rpl" else BATCH
        self.directory = os.path.join(OUT, engine.lower(), suite)
        self.log_path = os.path.join(self.directory, "driver.log")
        self.again_path = os.path.join(self.directory, "again")
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
        if not tests:
            return
        for test in tests:
            for old in self.rejects(test):
                os.remove(old)
        names = " ".join(test.split(",")[0] for test in tests)
        command = [os.path.join(ROOT, "scripts", "mtr.sh"), "--suite", self.suite, "--suite-timeout=600",
                   "--testcase-timeout=6"] + tests
        # A run that is broken off shall leave no outcomes, since its outputs are lost.
        batch_path = self.log_path + ".batch"
        with open(batch_path, "w") as log:
            driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      env=dict(os.environ, PANDO_TEST_ENGINE=self.engine,
                                               PANDO_GO_ON=names if go_on else "",
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
        with open(self.log_path, "a", errors="surrogateescape") as log:
            log.write(read(batch_path))
        os.remove(batch_path)

    def start_in_batches(self, tests, until):
        """False: the time was over before the end."""
        for start in range(0, len(tests), self.batch):
            if time.monotonic() > until:
                print("%s: %d tests left" % (self.suite, len(tests) - start))
                return False
            print("%s: %d tests left" % (self.suite, len(tests) - start), flush=True)
            self.start(tests[start:start + self.batch], keep=True)
        return True

    def start_again(self, tests, until):
        """Runs tests once more, going on after errors; each combination for itself, since several write into one file."""
        # A run that was broken off need not do so twice; whoever names tests wants them to run.
        done = set((read(self.again_path) or "").split())
        tests = [test for test in tests if until == math.inf or test not in done]
        for start in range(0, len(tests), self.batch):
            if time.monotonic() > until:
                print("%s: %d tests left" % (self.suite, len(tests) - start))
                return False
            self.start_batch_again(tests[start:start + self.batch])
            with open(self.again_path, "a") as file:
                file.writelines(test + "\n" for test in tests[start:start + self.batch])
        return True

    def start_batch_again(self, tests):
        self.start([test for test in tests if "," not in test], keep=True, go_on=True)
        for test in tests:
            if "," in test:
                kept = {path: read(path) for path in self.rejects(test)}
                self.start([test], keep=True, go_on=True)
                for path in self.rejects(test):
                    os.rename(path, os.path.join(self.directory, test + ".reject"))
                for path, text in kept.items():
                    if not os.path.exists(path):
                        with open(path, "w", errors="surrogateescape") as file:
                            file.write(text)

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
        # The list of the tests may have changed since.
        chosen = set(tests_of(self.suite))
        found = {test: outcome for test, outcome in found.items() if test.split(",")[0] in chosen}
        if self.suite in RECORDED and found:
            # When it records, the driver lets every output pass.
            other = {re.split("[,.]", name)[0] for name in os.listdir(self.directory) if name.endswith(".reject")}
            for test, outcome in found.items():
                if outcome == "pass" and test.split(",")[0] in other:
                    found[test] = "fail"
        return found

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
        base = os.path.join(self.originals, test.split(",")[0] + ".result")
        difference_path = os.path.join(self.originals, test + ".rdiff")
        if os.path.exists(difference_path) and os.path.exists(base):
            # The server's own difference for one combination.
            return subprocess.run(["patch", "-s", "-o", "-", base, difference_path], stdout=subprocess.PIPE, check=True,
                                  errors="surrogateescape").stdout
        for name in (os.path.join(self.originals, test + ".result"), base):
            text = read(name)
            if text is not None:
                return text
        return None

    def why(self, test):
        """Why a test did not come to its end."""
        log = read(self.log_path) or ""
        at = log.rfind("CURRENT_TEST: %s.%s\n" % (self.suite, test.split(",")[0]))
        return " ".join(log[at:].split("\n\n")[0].split("\n")[1:])[:300] if at >= 0 else "no output"


def judge(suite, run=True, tests=(), only_named=False, until=math.inf):
    """Test -> (verdict, what to show). With `run`, what has not been run for it (and is one of `tests`, if any are
    named) is run; None: the time was over before its end."""
    pando, innodb = Run(suite, "PANDO"), Run(suite, "InnoDB")
    ended = sorted(test for test, outcome in pando.outcomes().items()
                   if outcome == "fail" and pando.output(test, outcome) is None)
    ended = [test for test in ended if not tests or test.split(",")[0] in tests]
    if ended and run and not (pando.start_again(ended, until) and innodb.start_again(ended, until)):
        return None
    verdicts, open_tests = {}, {}
    for test, outcome in sorted(pando.outcomes().items()):
        if only_named and test.split(",")[0] not in tests:
            continue
        if outcome != "fail":
            verdicts[test] = (outcome, "")
            continue
        text = pando.output(test, outcome)
        if text is None:
            verdicts[test] = ("FAIL", "ends early: " + pando.why(test))
        elif blocks(text) == blocks(pando.recorded(test) or ""):
            verdicts[test] = ("answers", "")
        else:
            open_tests[test] = blocks(text)
    found = innodb.outcomes()
    missing = sorted({test.split(",")[0] for test in open_tests if test not in found})
    missing = [test for test in missing if not tests or test in tests]
    if missing and run and not innodb.start_in_batches(missing, until):
        return None
    found = innodb.outcomes()
    ended = [test for test in open_tests if found.get(test) == "fail" and innodb.output(test, "fail") is None]
    ended = [test for test in ended if not tests or test.split(",")[0] in tests]
    if ended and run:
        # PANDO has come further.
        if not innodb.start_again(ended, until):
            return None
        found = innodb.outcomes()
    for test, mine in open_tests.items():
        outcome = found.get(test, "not run")
        text = innodb.output(test, outcome)
        recorded = blocks(pando.recorded(test) or "")
        note = ""
        if text is None:
            note = "InnoDB %s; against the recorded result:\n" % outcome
        shown = difference(mine, recorded if text is None else blocks(text), recorded)
        stated = read(os.path.join(OURS, suite, test + ".diff"))
        if not shown:
            verdicts[test] = ("as InnoDB", "")
        elif stated is not None and stated.split("\n", 1)[1] == shown:
            verdicts[test] = ("stated", "")
        else:
            verdicts[test] = ("FAIL", note + shown)
    if not only_named and not tests:
        # The driver may break off in the middle of a batch.
        seen = {test.split(",")[0] for test in verdicts}
        for test in tests_of(suite):
            if test not in seen:
                verdicts[test] = ("FAIL", "no outcome: --resume runs it")
    return verdicts


def accept(reason, suite, tests):
    for test, (verdict, shown) in judge(suite, run=False, tests=tests, only_named=True).items():
        if verdict == "FAIL" and "@@" in shown:
            os.makedirs(os.path.join(OURS, suite), exist_ok=True)
            with open(os.path.join(OURS, suite, test + ".diff"), "w", errors="surrogateescape") as file:
                file.write("Reason: %s\n%s" % (reason, shown[shown.index("@@"):]))
            print("stated:", suite, test)


def run_suite(suite, resume, until):
    """Runs what is left of a suite; False: the time was over before its end."""
    run = Run(suite, "PANDO")
    if not resume:
        shutil.rmtree(run.directory, ignore_errors=True)
    done = {test.split(",")[0] for test in run.outcomes()}
    left = [test for test in tests_of(suite) if test not in done]
    return run.start_in_batches(left, until)


def summary(all_verdicts):
    lines = ["| suite | tests | %s | skipped by the test | cannot apply | FAIL |" % " | ".join(PASSES),
             "|" + " --- |" * (len(PASSES) + 5)]
    total = Counter()
    for suite, verdicts in list(all_verdicts.items()) + [("in all", None)]:
        count = total if verdicts is None else Counter(verdict for verdict, _ in verdicts.values())
        if verdicts is not None:
            total.update(count)
        lines.append("| `%s` | %d | %s |" % (suite, sum(count.values()), " | ".join(
            str(count[name]) for name in PASSES + ["skipped", "disabled", "FAIL"])))
    print("\n" + "\n".join(lines))
    with open(os.path.join(OUT, "summary.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return 1 if total["FAIL"] else 0


def main():
    arguments = sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(__doc__.strip())
        return 0
    if arguments[:1] == ["--accept"]:
        accept(arguments[1], arguments[2], arguments[3:])
        return 0
    options = [argument for argument in arguments if argument in ("--judge", "--resume")]
    limits = [argument for argument in arguments if argument.startswith("--minutes=")]
    until = time.monotonic() + 60 * float(limits[0].split("=")[1]) if limits else math.inf
    names = [argument for argument in arguments if argument not in options + limits]
    suites, tests = (names[:1], names[1:]) if names else (SUITES, [])
    unknown = [name for name in suites if name not in SUITES]
    if unknown or any(name.startswith("-") for name in names):
        print("conformance.py: no such suite or option: %s; suites are %s" % (" ".join(names), ", ".join(SUITES)), file=sys.stderr)
        return 2
    os.makedirs(OUT, exist_ok=True)
    all_verdicts = {}
    for suite in suites:
        if tests and not options:
            Run(suite, "PANDO").start(tests, keep=True)
        elif "--judge" not in options and not run_suite(suite, "--resume" in options, until):
            return 1
        all_verdicts[suite] = judge(suite, run="--judge" not in options, tests=tests, until=until)
        if all_verdicts[suite] is None:
            return 1
        for test, (verdict, shown) in all_verdicts[suite].items():
            if verdict == "FAIL" and (not tests or test.split(",")[0] in tests):
                print("\n== FAIL %s.%s\n%s" % (suite, test, shown), end="")
    return summary(all_verdicts)


if __name__ == "__main__":
    sys.exit(main())
