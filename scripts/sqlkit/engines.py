"""What is different from engine to engine: server options with the same meaning, where a table's
files are, and what they weigh."""

import os
import pathlib


def needs_plugin(engines):
    """Whether any of these engines is ours."""
    return any(engine.upper() == "PANDO" for engine in engines)


def options(engine, cache_mb, flush_at_commit=1):
    """Options that give one engine this cache and this durability."""
    if engine.upper() == "PANDO":
        return [f"--pando-cache-size={cache_mb}M", f"--pando-flush-log-at-trx-commit={flush_at_commit}"]
    if engine.upper() == "INNODB":
        # InnoDB of 11.8 refuses, unless told not to, to change at REPEATABLE READ what others changed since the snapshot (error 1020).
        # That of 10.11 and PANDO change the newest row (docs/isolation.md).
        return ["--loose-innodb-snapshot-isolation=OFF", f"--innodb-buffer-pool-size={cache_mb}M",
                f"--innodb-flush-log-at-trx-commit={flush_at_commit}"]
    if engine.upper() == "ROCKSDB":
        return ["--plugin-load-add=ha_rocksdb.so", f"--rocksdb-block-cache-size={cache_mb}M",
                f"--rocksdb-flush-log-at-trx-commit={flush_at_commit}"]
    return []


def table_files(data_dir, database, table):
    """The files of one table, whatever its engine: DATADIR/db/t.ext and DATADIR/db/t.pando/*."""
    directory = pathlib.Path(data_dir) / database
    return sorted(path for pattern in (f"{table}.*", f"{table}.*/**/*") for path in directory.glob(pattern)
                  if path.is_file() and path.suffix != ".frm")


def disk_bytes(files):
    """What the file system has allocated for these files (what `du` counts)."""
    return sum(os.stat(path).st_blocks * 512 for path in files)


def tree_bytes(directory):
    """What the file system has allocated for everything below a directory."""
    return disk_bytes(path for path in pathlib.Path(directory).glob("**/*") if path.is_file())


def check_table(session, engine, table):
    """What CHECK TABLE has to say; empty when it has nothing. InnoDB's EXTENDED check takes entries that
    its purge has not reached yet for damage, so that engine gets the plain one."""
    how = "" if engine.upper() == "INNODB" else " EXTENDED"
    rows = session.query(f"CHECK TABLE {table}{how}").rows
    return "; ".join(text for text in (row[3].decode("utf-8", "replace") for row in rows) if text != "OK")
