#!/usr/bin/env python3
"""The server's own stress suite engines/rr_trx: transactions at REPEATABLE READ, many at once.

    tests/sql/rr_trx.sh [--seconds 15] [--clients 6] [--seed N] [--engine PANDO]

Each client runs tests of the suite in random order with the server's test program, which compares what they
print with the suite's results: repeated reads are the same, uncommitted rows are not seen, sums over
rows that transactions keep in balance are 0. Deadlocks and timeouts are part of it. In the end no
transaction has left the sums out of balance and the table is sound. The suite's driver is for servers of long ago;
this is its loop. Before that a client is given a table out of balance, to see that the tests would tell.
"""

import argparse
import concurrent.futures
import pathlib
import random
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from sqlkit import engines, program, report
from sqlkit.server import PrivateServer

_PLACES = [pathlib.Path("/usr/share/mariadb/mariadb-test"), pathlib.Path("/usr/share/mysql/mysql-test")]  # of 11.8 and of 10.11
_DRIVER = next((place for place in _PLACES if place.is_dir()), _PLACES[-1])
_SUITE = _DRIVER / "suite/engines/rr_trx"
_INSERTED_ROWS = 1000
_SKIPPED = 62  # what the test program returns for a test that gives up after a deadlock
# What was otherwise when the suite was written: connection ids were signed, INSERT IGNORE did not warn, variables
# of the test program began as 0, and a parameter of the init test had a name that is reserved by now.
_OF_THE_SUITES_TIME = ["--transaction-isolation=REPEATABLE-READ", "--sql-mode=NO_UNSIGNED_SUBTRACTION"]
_BEFORE_EACH_TEST = "--disable_warnings\nlet $query_count= 0;\n"
_RESERVED_NAMES = (("(rows INT)", "(row_count INT)"), ("@n > rows", "@n > row_count"))
_SUM = "SELECT SUM(`int1` + int1_key + int1_unique + `int2` + int2_key + int2_unique) FROM t1"


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--clients", type=int, default=6)
    program.add_seed(parser)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    return parser.parse_args()


class Runner:
    """Runs tests of the suite, in a copy that today's programs understand, against one server."""

    def __init__(self, server):
        self._server = server
        self._driver = server.dir / "driver"
        self._suite = self._driver / "suite/engines/rr_trx"
        shutil.copytree(_SUITE, self._suite)
        (self._driver / "suite/stress_tx_rr").symlink_to(self._suite)  # its old name, which it still uses
        for test in (self._suite / "t").glob("*.test"):
            test.write_text(_BEFORE_EACH_TEST + test.read_text())

    def _run(self, name, *arguments, text=None):
        directory = self._server.dir / name
        directory.mkdir(parents=True, exist_ok=True)
        return subprocess.run(
            ["mariadb-test", "--no-defaults", "--silent", "--user=root", f"--socket={self._server.socket}",
             "--database=test", f"--basedir={self._driver}", f"--tmpdir={directory}", f"--logdir={directory}",
             *arguments],
            input=text, cwd=self._driver, capture_output=True, text=True, check=False)

    def create(self, engine):
        """Make the suite's tables as its init test does. Its recorded result is another server's."""
        script = (self._suite / "include/rr_init.test").read_text()
        for old, new in _RESERVED_NAMES:
            script = script.replace(old, new)
        result = self._run("init", text=f"let $engine = '{engine}';\n{script}")
        if result.returncode != 0:
            raise RuntimeError(f"the suite's tables cannot be made: {result.stdout}{result.stderr}")

    def test(self, name, client):
        """Run one test. Returns what is wrong, or None, and whether it ran to its end."""
        result = self._run(f"client-{client}", f"--test-file={self._suite / 't' / name}.test",
                           f"--result-file={self._suite / 'r' / name}.result")
        if result.returncode in (0, _SKIPPED):
            return None, result.returncode == 0
        return f"{name}: {result.stdout}{result.stderr}", True


def _client(number, runner, names, deadline, rng):
    problems, ended, skipped = [], 0, 0
    while time.monotonic() < deadline and not problems:
        problem, to_the_end = runner.test(rng.choice(names), number)
        ended, skipped = ended + to_the_end, skipped + (not to_the_end)
        if problem:
            problems.append(problem)
    return problems, ended, skipped


def _shows_damage(runner, session, checks):
    """Whether the tests tell of a table that is not as transactions leave it."""
    session.query("UPDATE t1 SET `int1` = `int1` + 1 WHERE pk = 5")
    problem, _ = runner.test("rr_sc_sum_total", 0)
    session.query("UPDATE t1 SET `int1` = `int1` - 1 WHERE pk = 5")
    checks.check(problem is not None, "a sum out of balance is noticed")


def main():
    """The test."""
    arguments = _arguments()
    rng = random.Random(arguments.seed)
    names = (_SUITE / "run.txt").read_text().split()
    report.note(f"{arguments.clients} clients, {len(names)} tests, seed {arguments.seed}")
    checks = report.Checks()
    wait = [f"--{prefix}-lock-wait-timeout=2" for prefix in ("loose-innodb", "loose-pando")]
    options = engines.options(arguments.engine, 64, flush_at_commit=2) + wait + _OF_THE_SUITES_TIME
    with PrivateServer("rr-trx", options, plugin=engines.needs_plugin([arguments.engine]),
                       keep=arguments.keep) as server, server.connect() as session:
        session.query("CREATE DATABASE IF NOT EXISTS test")
        session.query("USE test")
        runner = Runner(server)
        runner.create(arguments.engine)
        _shows_damage(runner, session, checks)
        deadline = time.monotonic() + arguments.seconds
        with concurrent.futures.ThreadPoolExecutor(arguments.clients) as pool:
            outcomes = list(pool.map(lambda n: _client(n, runner, names, deadline, random.Random(rng.random())),
                                     range(1, arguments.clients + 1)))
        problems = [problem for found, _, _ in outcomes for problem in found]
        for problem in problems:
            report.bad(problem)
        ended, skipped = (sum(outcome[i] for outcome in outcomes) for i in (1, 2))
        checks.check(not problems, f"{ended} tests ended as they should, {skipped} gave up after a deadlock or timeout")
        checks.check(session.number(_SUM) == 0, "the sums are in balance")
        fixed = session.number("SELECT COUNT(*) FROM t1 WHERE pk MOD 5 = 0 AND pk BETWEEN 1 AND 1000")
        checks.check(fixed == _INSERTED_ROWS // 5, "the rows that nobody deletes are there", fixed)
        answer = session.query("CHECK TABLE t1").rows[-1][-1]
        checks.check(answer in ("OK", b"OK"), "CHECK TABLE is content", answer)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(program.run(main))
