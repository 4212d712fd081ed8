#!/usr/bin/env python3
"""Gets and puts a second of one key: HandlerSocket, SQL, and memcached as the floor, from Python clients.

    scripts/bench-keyvalue.py [--rows 20000] [--seconds 2] [--clients 2] [--engines PANDO,InnoDB] [--memcached PATH]

Each client is a process with one connection. A request at a time, then 100 in one round trip (HandlerSocket: pipelined; SQL: one
statement with 100 keys or rows; memcached: one get of 100 keys, pipelined sets). Puts are inserts of new keys; durability is the
default (a sync before the answer), which memcached does not have. The clients are Python, and with them much of the time.
"""

import argparse
import itertools
import multiprocessing
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts")]

# pylint: disable=wrong-import-position
from sqlkit import engines, handlersocket, program, report
from sqlkit.client import Connection
from sqlkit.server import PrivateServer

_VALUE, _BATCH = "v" * 100, 100


def _new_keys(worker):
    return itertools.count(1_000_000 * (worker + 1) + random.randrange(1000) * 1_000_000_000)


def _handlersocket(reading, writing, worker, batch):
    table = handlersocket.Table("", reading, writing, "kv", "t", ["k", "v"])
    keys = _new_keys(worker)

    def put():
        table.insert_many([[next(keys), _VALUE] for _ in range(batch)])
    return (lambda wanted: table.get_many(wanted)), put


def _sql(path, worker, batch):
    session, keys = Connection(path, "kv"), _new_keys(worker)

    def get(wanted):
        return session.query(f"SELECT k, v FROM t WHERE k IN ({','.join(map(str, wanted))})").rows

    def put():
        session.query("INSERT INTO t VALUES " + ",".join(f"({next(keys)},'{_VALUE}')" for _ in range(batch)))
    return get, put


def _memcached(path, worker, batch):
    connection, keys = socket.socket(socket.AF_UNIX), _new_keys(worker)
    connection.connect(path)
    stream = connection.makefile("rb")

    def get(wanted):
        connection.sendall(("get " + " ".join(map(str, wanted)) + "\r\n").encode())
        found = []
        while (line := stream.readline()) != b"END\r\n":
            found.append((line, stream.readline()))
        return found

    def put():
        connection.sendall("".join(f"set {next(keys)} 0 0 {len(_VALUE)}\r\n{_VALUE}\r\n" for _ in range(batch)).encode())
        for _ in range(batch):
            assert stream.readline() == b"STORED\r\n"
    return get, put


def _work(make, arguments, worker, batch, kind, rows, seconds, result):
    get, put = make(*arguments, worker, batch)
    choose, done, end = random.Random(worker), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        if kind == "get":
            wanted = choose.sample(range(rows), batch)
            assert len(get(wanted)) == batch
        else:
            put()
        done += batch
    result.put(done / seconds)


def _measure(make, arguments, options, batch, kind):
    result = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=_work, args=(make, arguments, worker, batch, kind, options.rows, options.seconds, result))
               for worker in range(options.clients)]
    for worker in workers:
        worker.start()
    total = sum(result.get(timeout=options.seconds + 60) for _ in workers)
    for worker in workers:
        worker.join()
    return total


def _row(table, name, make, arguments, options):
    table.add(name, *(f"{_measure(make, arguments, options, batch, kind):,.0f}" for kind in ("get", "put") for batch in (1, _BATCH)))


def _engine(table, engine, options):
    with PrivateServer("keyvalue", start=False, plugin=engines.needs_plugin([engine])) as server:
        reading, writing = f"{server.data_dir}/hs.sock", f"{server.data_dir}/hsw.sock"
        server.start(engines.options(engine, 64) + [
            "--plugin-load-add=handlersocket.so", "--open-files-limit=20000", "--handlersocket-address=/",
            f"--handlersocket-port={reading}", f"--handlersocket-port-wr={writing}", "--handlersocket-threads=4",
            "--handlersocket-threads-wr=1"])
        with server.connect() as session:
            session.query("CREATE DATABASE kv")
            session.query(f"CREATE TABLE kv.t (k BIGINT PRIMARY KEY, v VARCHAR(200)) ENGINE={engine}")
            session.query(f"INSERT INTO kv.t SELECT seq, '{_VALUE}' FROM mysql.seq_0_to_{options.rows - 1}")
        _row(table, f"{engine}, HandlerSocket", _handlersocket, (reading, writing), options)
        _row(table, f"{engine}, SQL", _sql, (server.socket,), options)


def _floor(table, path, options):
    with tempfile.TemporaryDirectory(prefix="pando-memcached.") as directory:
        place = f"{directory}/m"
        process = subprocess.Popen([path, "-u", "root", "-s", place, "-m", "256", "-t", "4"])
        try:
            for _ in range(100):
                if pathlib.Path(place).exists():
                    break
                time.sleep(0.05)
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(place)
            stream = connection.makefile("rb")
            for key in range(options.rows):
                connection.sendall(f"set {key} 0 0 {len(_VALUE)}\r\n{_VALUE}\r\n".encode())
                stream.readline()
            _row(table, "memcached", _memcached, (place,), options)
        finally:
            process.terminate()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--engines", default="PANDO,InnoDB")
    parser.add_argument("--memcached", default=shutil.which("memcached"), help="the program; without it there is no floor")
    options = parser.parse_args()
    table = report.Table("a second", "gets", f"gets, {_BATCH} at once", "puts", f"puts, {_BATCH} at once")
    for engine in options.engines.split(","):
        _engine(table, engine, options)
    if options.memcached:
        _floor(table, options.memcached, options)
    table.print()
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
