#!/usr/bin/env python3
"""How long a server takes to answer after kill -9, with a full log.

    make build && scripts/bench-recovery.py [--shapes one,keys,tables] [--engines PANDO,InnoDB] [--log-mb 450] [--runs 3]

Shapes: one table without secondary keys (`one`), one with four (`keys`), forty tables with one each (`tables`). Two clients insert
rows in random order until the log has `--log-mb`; checkpoints are put off as far as the engine's settings allow. The server is
killed, its directory copied, and each run starts it on a copy. Printed: seconds until it answers (medians), the memory of its
process then, and seconds until each row is counted. PANDO beside InnoDB with the same cache and a log of the same size.
"""

import argparse
import pathlib
import random as randoms
import shutil
import statistics
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from sqlkit import engines, program
from sqlkit.server import PrivateServer

_TABLES = {"one": 1, "keys": 1, "tables": 40}
_KEYS = {"one": "", "keys": ", KEY (a), KEY (b), KEY (c), KEY (d, a)", "tables": ", KEY (a)"}
_ROWS_AT_ONCE = 200
_CLIENTS = 2
# What the engines put off, so that the log is needed.
_OPTIONS = {
    "PANDO": ["--pando-checkpoint-period=86400"],
    "INNODB": ["--innodb-log-file-size=512M", "--innodb-max-dirty-pages-pct=99", "--innodb-max-dirty-pages-pct-lwm=0"],
}
_WRITTEN = {"PANDO": "Pando_log_kept_bytes", "INNODB": "Innodb_checkpoint_age"}


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="one,keys,tables")
    parser.add_argument("--engines", default="PANDO,InnoDB")
    parser.add_argument("--log-mb", type=int, default=450)
    parser.add_argument("--cache-mb", type=int, default=4096)
    parser.add_argument("--runs", type=int, default=3)
    return parser.parse_args()


def _create(session, shape, engine):
    session.query("CREATE DATABASE recovery")
    for number in range(_TABLES[shape]):
        session.query(f"CREATE TABLE recovery.t{number} (id BIGINT PRIMARY KEY, a INT NOT NULL, b INT NOT NULL, c BIGINT NOT NULL, "
                      f"d VARCHAR(40) NOT NULL{_KEYS[shape]}) ENGINE={engine}")


def _insert_until(server, seed, tables, enough):
    random = randoms.Random(seed)
    with server.connect("recovery", timeout=600) as session:
        while not enough.is_set():
            rows = ", ".join(f"({random.getrandbits(62)}, {random.getrandbits(30)}, {random.getrandbits(20)}, "
                             f"{random.getrandbits(60)}, '{random.randbytes(15).hex()}')" for _ in range(_ROWS_AT_ONCE))
            session.query(f"INSERT INTO t{random.randrange(tables)} VALUES {rows}")


def _fill(server, shape, engine, log_bytes):
    """Inserts until the log has so many bytes."""
    enough = threading.Event()
    clients = [threading.Thread(target=_insert_until, args=(server, seed, _TABLES[shape], enough)) for seed in range(_CLIENTS)]
    for client in clients:
        client.start()
    try:
        with server.connect() as session:
            last, seen = 0, 0
            while last < log_bytes:
                time.sleep(0.2)
                seen, last = last, int(session.query(f"SHOW GLOBAL STATUS LIKE '{_WRITTEN[engine.upper()]}'").rows[0][1])
                if last < seen:
                    print(f"  the log was given up at {seen >> 20} MiB", flush=True)
                    break
    finally:
        enough.set()
        for client in clients:
            client.join()


def _memory_mib(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) >> 10


def _restart(server, kept, shape):
    """Starts the server on a copy of its killed directory. Seconds until it answers, memory, seconds until all is counted."""
    shutil.rmtree(server.data_dir)
    shutil.copytree(kept, server.data_dir, symlinks=True)
    begun = time.monotonic()
    server.start()
    answers, memory = time.monotonic() - begun, _memory_mib(server.pid())
    with server.connect("recovery", timeout=600) as session:
        rows = sum(session.number(f"SELECT COUNT(*) FROM t{number} FORCE KEY (PRIMARY)")
                   for number in range(_TABLES[shape]))
    counted = time.monotonic() - begun
    server.kill()
    return answers, memory, counted, rows


def _measure(engine, shape, arguments):
    options = engines.options(engine, arguments.cache_mb) + _OPTIONS.get(engine.upper(), [])
    with PrivateServer("recovery", options, plugin=engines.needs_plugin([engine])) as server:
        with server.connect() as session:
            _create(session, shape, engine)
        _fill(server, shape, engine, arguments.log_mb << 20)
        server.kill()
        kept = server.dir / "kept"
        shutil.copytree(server.data_dir, kept, symlinks=True)
        runs = [_restart(server, kept, shape) for _ in range(arguments.runs)]
    counts = {rows for *_, rows in runs}
    if len(counts) != 1:
        raise SystemExit(f"{engine}, {shape}: the starts have found {sorted(counts)} rows")
    return [statistics.median(figure) for figure in zip(*runs)]


def main():
    arguments = _arguments()
    print("| shape | engine | rows | answers after (s) | memory then (MiB) | all rows counted after (s) |")
    print("| --- | --- | --- | --- | --- | --- |")
    for shape in arguments.shapes.split(","):
        for engine in arguments.engines.split(","):
            answers, memory, counted, rows = _measure(engine, shape, arguments)
            print(f"| {shape} | {engine} | {rows:,.0f} | {answers:.1f} | {memory:,.0f} | {counted:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
