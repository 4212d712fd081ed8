"""Step 1: enrich, create, LOAD DATA, and what the tables weigh on disk."""

import pathlib

import enrich
from sqlkit import engines, report

HERE = pathlib.Path(__file__).resolve().parent
# What INFORMATION_SCHEMA says may differ from the files by this share and this many bytes.
_SIZE_TOLERANCE, _SIZE_TOLERANCE_BYTES = 0.1, 64 * 1024


class Side:
    """One engine in the comparison: its name and its database."""

    def __init__(self, engine, database):
        self.engine, self.database = engine, database


def load(server, sides, checks):
    """Load all flights into `ontime` of each side and print load times and sizes."""
    report.heading("1. Load: the flights and airports of data/, enriched")
    path = server.dir / "flights.tsv"
    with report.Stopwatch() as watch:
        count = enrich.write_tsv(path)
    report.note(f"{count} flights, {report.size(path.stat().st_size)} of text, enriched in "
                f"{report.seconds(watch.seconds)}")
    times = [_load_one(server, side, path, count, checks) for side in sides]
    path.unlink()
    # A clean stop leaves nothing in logs or memory that belongs into the tables' files.
    server.stop()
    sizes = [engines.disk_bytes(engines.table_files(server.data_dir, side.database, "ontime"))
             for side in sides]
    server.start()
    told = [_told_bytes(server, side) for side in sides]

    table = report.Table("", *(side.engine for side in sides), "ratio")
    table.add("load time", *map(report.seconds, times), report.ratio(times[1], times[0]))
    table.add("size on disk (du)", *map(report.size, sizes), report.ratio(sizes[1], sizes[0]))
    table.add("size as INFORMATION_SCHEMA says", *map(report.size, told), "")
    table.print()
    difference = abs(told[0] - sizes[0])
    checks.check(difference <= sizes[0] * _SIZE_TOLERANCE + _SIZE_TOLERANCE_BYTES,
                 f"INFORMATION_SCHEMA tells the true size of the {sides[0].engine} table",
                 f"it says {told[0]} bytes, the files have {sizes[0]}")
    _compare_checksums(server, sides, checks)


def _load_one(server, side, path, count, checks):
    with server.connect() as session:
        session.query(f"CREATE DATABASE {side.database}")
        session.query(f"USE {side.database}")
        session.query(f"SET default_storage_engine = {side.engine}")
        session.query((HERE / "schema.sql").read_text())
        with report.Stopwatch() as watch:
            result = session.query(f"LOAD DATA INFILE '{path}' INTO TABLE ontime ({columns()})")
        checks.check(result.affected == count and result.warnings == 0,
                     f"{side.engine}: LOAD DATA of {count} rows without a warning",
                     f"{result.affected} rows, {result.warnings} warnings")
        session.query("ANALYZE TABLE ontime")
    return watch.seconds


def columns():
    """The loaded columns: those of the schema in their order, without the id."""
    names = [line.split()[0] for line in (HERE / "schema.sql").read_text().splitlines()
             if line.startswith("    ") and line.split()[0] not in ("PRIMARY", "KEY")]
    return ", ".join(names[1:])


def _told_bytes(server, side):
    with server.connect() as session:
        return session.number(
            "SELECT data_length + index_length + data_free FROM information_schema.tables "
            f"WHERE table_schema = '{side.database}' AND table_name = 'ontime'")


def _compare_checksums(server, sides, checks):
    sums = []
    for side in sides:
        with server.connect(side.database) as session:
            sums.append(checksum(session, "ontime"))
    checks.check(sums[0] == sums[1], f"both tables hold the same rows (checksum {sums[0]})",
                 f"checksums {sums}")


def checksum(session, table):
    """The server's checksum over all rows of a table; the order of rows does not matter."""
    return session.query(f"CHECKSUM TABLE {table} EXTENDED").rows[0][1].decode()

