#!/usr/bin/env python3
"""What a foreign key costs, beside another engine in the same server.

    make build && scripts/bench-foreign-keys.py [--rows 100000] [--runs 3] [--children 1000000] [--engines PANDO,InnoDB]

One private server whose caches hold everything. Children with a constraint and others without, else alike, get rows: one a
statement, each its own transaction or a thousand of them one; a hundred a statement; many by INSERT ... SELECT; a LOAD DATA of an
empty table. Each is timed for each engine in turn, and the medians are printed in microseconds a row: elapsed, and the time of the
server's thread on a processor, which other work of the machine disturbs less. The check's cost is the difference between with and
without; the ratio is the first engine's by the second's.

Then one DELETE goes to so many children by ON DELETE CASCADE: its time, the server's memory above what it had, how long a ROLLBACK of it
takes, and how long one that is killed in the middle takes from KILL to the error, with its rollback.
"""

import argparse
import pathlib
import statistics
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import program
from sqlkit.client import SqlError
from sqlkit.server import PrivateServer

_PARENTS = 100_000
_ROWS_OF_A_TRANSACTION = 1000
_ROWS_OF_A_STATEMENT = 100
_KILLED = {1317, 1180}


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="of each measurement; a tenth of it where each is a transaction")
    parser.add_argument("--children", type=int, default=1_000_000, help="of the cascade; 0 leaves it out")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--engines", default="PANDO,InnoDB")
    parser.add_argument("--only", default="", help="kinds of statements whose names have this in them")
    parser.add_argument("--cache-mb", type=int, default=1024)
    return parser.parse_args()


class Watched:
    """A session and what its thread in the server has used."""

    def __init__(self, server, session):
        self.session = session
        thread = session.number("SELECT tid FROM information_schema.processlist WHERE id = CONNECTION_ID()")
        self._process = pathlib.Path("/proc") / (server.dir / "pid").read_text(encoding="ascii").strip()
        self._schedule = self._process / "task" / str(thread) / "schedstat"

    def on_processor(self):
        """Seconds."""
        return int(self._schedule.read_text(encoding="ascii").split()[0]) / 1e9

    def forget_peak(self):
        """What it has now becomes the most memory that the server has had."""
        (self._process / "clear_refs").write_text("5", encoding="ascii")

    def memory(self, name):
        """In MB: VmRSS or VmHWM."""
        for line in (self._process / "status").read_text(encoding="ascii").split("\n"):
            if line.startswith(name + ":"):
                return int(line.split()[1]) / 1024
        raise ValueError(name)


def _create(session, engine, is_constrained):
    session.query("DROP TABLE IF EXISTS child")
    constraint = f", FOREIGN KEY (p) REFERENCES parent_{engine} (id)" if is_constrained else ""
    session.query(f"CREATE TABLE child (id INT PRIMARY KEY, p INT NOT NULL, v INT, KEY (p){constraint}) ENGINE={engine}")


def _values(start, count):
    # Parents in no order, each the same for every engine.
    return ", ".join(f"({row}, {row * 7919 % _PARENTS + 1}, {row})" for row in range(start, start + count))


def _one_a_transaction(session, rows):
    for row in range(rows // 10):
        session.query("INSERT INTO child VALUES " + _values(row, 1))
    return rows // 10


def _one_a_statement(session, rows):
    for row in range(rows):
        if row % _ROWS_OF_A_TRANSACTION == 0:
            session.query("BEGIN")
        session.query("INSERT INTO child VALUES " + _values(row, 1))
        if (row + 1) % _ROWS_OF_A_TRANSACTION == 0:
            session.query("COMMIT")
    session.query("COMMIT")
    return rows


def _hundred_a_statement(session, rows):
    for row in range(0, rows, _ROWS_OF_A_STATEMENT):
        session.query("INSERT INTO child VALUES " + _values(row, _ROWS_OF_A_STATEMENT))
    return rows


def _select(session, rows):
    session.query("INSERT INTO child VALUES (-1, 1, 1)")
    session.query(f"INSERT INTO child SELECT seq, seq * 7919 MOD {_PARENTS} + 1, seq FROM seq_1_to_{rows}")
    return rows


def _load(session, rows):
    session.query(f"LOAD DATA INFILE '{session.rows_file}' INTO TABLE child")
    return rows


_KINDS = [
    ("a row, a transaction", _one_a_transaction), ("a row a statement", _one_a_statement),
    ("100 rows a statement", _hundred_a_statement), ("INSERT ... SELECT", _select), ("LOAD DATA of an empty table", _load),
]


def _measure(watched, engine, kind, is_constrained, rows):
    """Microseconds a row: elapsed, on the processor."""
    _create(watched.session, engine, is_constrained)
    time.sleep(0.2)
    begun, used = time.monotonic(), watched.on_processor()
    count = kind(watched.session, rows)
    used, took = watched.on_processor() - used, time.monotonic() - begun
    return took / count * 1e6, used / count * 1e6


def _checks(watched, arguments, engines):
    print("| rows | | " + " | ".join(f"{engine} without | with | check" for engine in engines) + " | ratio of the checks |")
    print("| --- | --- |" + " --- | --- | --- |" * len(engines) + " --- |", flush=True)
    for name, kind in _KINDS:
        if arguments.only not in name:
            continue
        times = {(engine, is_constrained): [] for engine in engines for is_constrained in (False, True)}
        for _ in range(arguments.runs):
            for (engine, is_constrained), found in times.items():
                found.append(_measure(watched, engine, kind, is_constrained, arguments.rows))
        for number, how in enumerate(("elapsed, µs", "on the processor, µs")):
            cells, costs = [], []
            for engine in engines:
                without, with_it = (statistics.median(one[number] for one in times[engine, is_constrained])
                                    for is_constrained in (False, True))
                costs.append(with_it - without)
                cells += [f"{without:.2f}", f"{with_it:.2f}", f"{with_it - without:.2f}"]
            ratio = f"{costs[0] / costs[1]:.2f}" if len(costs) > 1 and costs[1] > 0 else ""
            print("| " + " | ".join([name, how] + cells + [ratio]) + " |", flush=True)


def _fill_cascade(session, engine, children):
    session.query("DROP TABLE IF EXISTS child")
    session.query(f"DROP TABLE IF EXISTS top_{engine}")
    session.query(f"CREATE TABLE top_{engine} (id INT PRIMARY KEY) ENGINE={engine}")
    session.query(f"INSERT INTO top_{engine} VALUES (1), (2)")
    session.query(f"CREATE TABLE child (id INT PRIMARY KEY, p INT NOT NULL, v INT, KEY (p), FOREIGN KEY (p) REFERENCES top_{engine} (id)"
                  f" ON DELETE CASCADE) ENGINE={engine}")
    session.query(f"INSERT INTO child SELECT seq, 1, seq FROM seq_1_to_{children}")


def _timed(work):
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def _killed(server, session, engine, after):
    """Seconds from KILL to the error."""
    number = session.number("SELECT CONNECTION_ID()")
    killed = []

    def kill():
        time.sleep(after)
        with server.connect() as other:
            killed.append(time.monotonic())
            other.query(f"KILL QUERY {number}")

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        session.query(f"DELETE FROM top_{engine} WHERE id = 1")
        print(f"{engine}: the cascade was over before KILL")
    except SqlError as error:
        if error.number not in _KILLED:
            raise
    ended = time.monotonic()
    killer.join()
    return ended - killed[0]


def _cascade(server, watched, engine, children):
    session = watched.session
    _fill_cascade(session, engine, children)
    delete = f"DELETE FROM top_{engine} WHERE id = 1"
    session.query("BEGIN")
    watched.forget_peak()
    before = watched.memory("VmRSS")
    took = _timed(lambda: session.query(delete))
    memory = watched.memory("VmHWM") - before
    undone = _timed(lambda: session.query("ROLLBACK"))
    after = _killed(server, session, engine, took / 2)
    for table, count in ((f"top_{engine}", 2), ("child", children)):
        if session.number(f"SELECT COUNT(*) FROM {table}") != count:
            program.end_wrong(server, [f"{engine}: rows are missing in {table} after a rollback"])
    committed = _timed(lambda: session.query(delete))
    if session.number("SELECT COUNT(*) FROM child"):
        program.end_wrong(server, [f"{engine}: children are left"])
    return [f"{took:.2f} s", f"{memory:.0f} MB", f"{undone * 1000:.0f} ms", f"{after * 1000:.0f} ms", f"{committed:.2f} s"]


def main():
    arguments = _arguments()
    engines = arguments.engines.split(",")
    options = [f"--pando-cache-size={arguments.cache_mb}M", f"--innodb-buffer-pool-size={arguments.cache_mb}M",
               "--innodb-log-file-size=1G", "--innodb-flush-log-at-trx-commit=2", "--pando-flush-log-at-trx-commit=2"]
    with PrivateServer("keys", options, plugin=True) as server:
        with server.connect() as session:
            session.query("CREATE DATABASE IF NOT EXISTS test")
        with server.connect("test", timeout=3600) as session:
            watched = Watched(server, session)
            session.rows_file = server.dir / "rows.txt"
            with open(session.rows_file, "w", encoding="ascii") as file:
                file.writelines(f"{row}\t{row * 7919 % _PARENTS + 1}\t{row}\n" for row in range(arguments.rows))
            for engine in engines:
                session.query(f"CREATE TABLE parent_{engine} (id INT PRIMARY KEY, v INT) ENGINE={engine}")
                session.query(f"INSERT INTO parent_{engine} SELECT seq, seq FROM seq_1_to_{_PARENTS}")
            _checks(watched, arguments, engines)
            if arguments.children:
                print(f"\n| cascade to {arguments.children:,} | DELETE | memory | ROLLBACK | killed: to the error | DELETE, committed |")
                print("| --- | --- | --- | --- | --- | --- |")
                for engine in engines:
                    print("| " + " | ".join([engine] + _cascade(server, watched, engine, arguments.children)) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
