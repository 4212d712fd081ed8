"""Step 3: a new column on the loaded table; a transaction that is rolled back, one that stays."""

from loading import checksum
from sqlkit import agreement, engines, report

_UPDATE = "UPDATE ontime SET DepDelay = DepDelay + 7, TailNum = CONCAT(TailNum, '?') WHERE Carrier = 'HA'"
_DELETE = "DELETE FROM ontime WHERE Origin = 'OAK'"
_INSERT = ("INSERT INTO ontime (id, Year, Quarter, Month, DayofMonth, DayOfWeek, FlightDate, UniqueCarrier, "
           "Carrier, FlightNum, Origin, Dest, Cancelled, Diverted, Flights, Distance, DistanceGroup) "
           "SELECT id + 1000000, Year + 1, Quarter, Month, DayofMonth, DayOfWeek, FlightDate, UniqueCarrier, Carrier, "
           "FlightNum, Origin, Dest, Cancelled, Diverted, Flights, Distance, DistanceGroup "
           "FROM ontime WHERE Carrier = 'MQ' ORDER BY id")


def change(server, sides, checks):
    """Run the step on every side, compare each side with itself and with the other."""
    report.heading("3. A new column; updates, inserts and deletes, rolled back and committed")
    times = [_Times() for _ in sides]
    sums = []
    for side, taken in zip(sides, times):
        with server.connect(side.database) as session:
            sums.append(_change_one(session, side, taken, checks))
    table = report.Table("", *(side.engine for side in sides), "ratio")
    for name in _Times.NAMES:
        taken = [getattr(one, name) for one in times]
        table.add(name.replace("_", " "), *map(report.seconds, taken), report.ratio(taken[1], taken[0]))
    table.print()
    checks.check(sums[0] == sums[1], f"both tables are equal again (checksum {sums[0]})", str(sums))


class _Times:
    NAMES = ("add_column", "update", "delete", "insert", "rollback", "commit")

    def __init__(self):
        for name in self.NAMES:
            setattr(self, name, 0.0)


def _change_one(session, side, times, checks):
    count = session.number("SELECT COUNT(*) FROM ontime")
    times.add_column, _ = _timed(session, "ALTER TABLE ontime ADD COLUMN Note VARCHAR(40) NOT NULL DEFAULT 'on file'")
    noted = session.number("SELECT COUNT(*) FROM ontime WHERE Note = 'on file'")
    checks.check(noted == count, f"{side.engine}: every row has the new column", f"{noted} of {count}")

    before = checksum(session, "ontime")
    session.query("START TRANSACTION")
    changed = _work(session, times)
    inside = checksum(session, "ontime")
    checks.check(all(changed) and inside != before,
                 f"{side.engine}: a transaction sees its {changed[0]} updated, {changed[1]} deleted and "
                 f"{changed[2]} inserted rows", f"changed {changed}")
    times.rollback, _ = _timed(session, "ROLLBACK")
    after = checksum(session, "ontime")
    checks.check(after == before, f"{side.engine}: ROLLBACK brings every row back (checksum {after})",
                 f"{before} before, {after} after")
    _check_indexes(session, side, checks)

    session.query("START TRANSACTION")
    again = _work(session, _Times())
    times.commit, _ = _timed(session, "COMMIT")
    checks.check(again == changed, f"{side.engine}: the same work again, committed", f"{again}, not {changed}")
    _check_indexes(session, side, checks)
    return checksum(session, "ontime")


def _timed(session, sql):
    with report.Stopwatch() as watch:
        result = session.query(sql)
    return watch.seconds, result.affected


def _work(session, times):
    """Returns the numbers of rows updated, deleted and inserted."""
    times.update, updated = _timed(session, _UPDATE)
    times.delete, deleted = _timed(session, _DELETE)
    times.insert, inserted = _timed(session, _INSERT)
    return updated, deleted, inserted


def _check_indexes(session, side, checks):
    """The table and each of its indexes hold the same rows, and CHECK TABLE agrees."""
    found = agreement.compare(session, side.database, "ontime")
    said = engines.check_table(session, side.engine, "ontime")
    checks.check(not found.differences and not said,
                 f"{side.engine}: the rows read through each of {len(found.indexes)} keys are the same, "
                 "CHECK TABLE is content", f"{found.differences}, CHECK TABLE says {said!r}")
