#!/usr/bin/env python3
"""Bad input: damaged files of tables, and a full disk.

    tests/sql/bad_input.sh [--engine PANDO] [--only files|rot|full-disk] [--rounds 18] [--seed N]

files      blocks corrupted, files cut, emptied, exchanged, removed while the server is down: each gives
           a clear error to the client and a line in the error log that names file and offset; the
           server goes on, other tables and undamaged parts are read and written as before
rot        one file of any kind (rows, keys, definitions, log, catalog) with flipped bits, cut, lost or with exchanged blocks, after a
           clean stop and after kill -9: the server starts, what is not damaged is read and right, the log names the file.
           --rounds 500 for longer (PANDO only)
full-disk  a small file system in memory fills up: a clear error, nothing acknowledged is lost, the
           engine goes on once there is room. Needs the right to mount (root, or user namespaces);
           skipped with a message without it
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "sql")]

# pylint: disable=wrong-import-position
from damage import files, full_disk, rot
from sqlkit import engines, program, report
from sqlkit.client import ConnectionLost, SqlError
from sqlkit.server import PrivateServer, ServerFailed

_PARTS = ("files", "rot", "full-disk")


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="PANDO")
    parser.add_argument("--only", choices=_PARTS)
    parser.add_argument("--rounds", type=int, default=18, help="of the part rot")
    program.add_seed(parser)
    parser.add_argument("--keep", action="store_true", help="keep the data directory after a failure")
    parser.add_argument("--may-mount", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _options(engine, part):
    options = engines.options(engine, 32)
    if part == "full-disk":
        # InnoDB's log is part of every server; keep it small, and ours too.
        options.append("--innodb-log-file-size=8M")
        if engine.upper() == "PANDO":
            options.append("--pando-log-file-size=8M")
    return options


def _run_part(part, arguments, checks):
    report.heading(f"{arguments.engine}: {part}")
    plugin = engines.needs_plugin([arguments.engine])
    with PrivateServer("bad", _options(arguments.engine, part), plugin=plugin, keep=arguments.keep) as server:
        try:
            if part == "files":
                files.run(server, arguments.engine, checks)
            elif part == "rot":
                if arguments.engine.upper() == "PANDO":
                    rot.run(server, checks, arguments.rounds, arguments.seed)
            else:
                server.stop()
                full_disk.run(server, arguments.engine, checks)
        except (SqlError, ConnectionLost, ServerFailed, OSError) as error:
            checks.check(False, f"{part}: went through to its end", f"{type(error).__name__}: {error}")
        if checks.failed:
            program.show_log(server)


def _mount_prefix():
    """The command that runs another one in a mount namespace of its own, so that no mount outlives it;
    None when nothing gives us that right."""
    for prefix in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        trial = prefix + ["mount", "-t", "tmpfs", "-o", "size=1M", "pando-trial", "/mnt"]
        try:
            if subprocess.run(trial, capture_output=True, check=False).returncode == 0:
                return prefix
        except FileNotFoundError:
            return None
    return None


def _run_where_mounting_works(arguments):
    prefix = _mount_prefix()
    if prefix is None:
        report.note("full-disk: skipped, no right to mount a file system (needs root or user namespaces)")
        return True
    command = prefix + [sys.executable, __file__, "--engine", arguments.engine, "--only", "full-disk", "--may-mount"]
    with subprocess.Popen(command) as process:
        try:
            return process.wait() == 0
        except BaseException:
            process.terminate()
            process.wait()
            raise


def main():
    arguments = _arguments()
    checks, held = report.Checks(), True
    for part in [arguments.only] if arguments.only else _PARTS:
        if part == "full-disk" and not arguments.may_mount:
            held &= _run_where_mounting_works(arguments)
        else:
            _run_part(part, arguments, checks)
    return 0 if held and not checks.failed else 1


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(program.run(main))
