"""Clients that write to the primary, and the checks of what came of it. The clients and their models are those of
the crash test: each knows which rows it must find after its last acknowledged commit."""

from crash import schema, verify
from crash.client import Client


class Load:
    """Writers on whichever server is the primary."""

    def __init__(self, count, engine, seed):
        self.engine = engine
        self.clients = [Client(number, seed) for number in range(count)]

    def create(self, primary):
        with primary.connect() as session:
            schema.create(session, self.engine)

    def start(self, primary):
        for client in self.clients:
            client.start(primary.server)

    def stop(self):
        """Let each client end its transaction."""
        for client in self.clients:
            client.stop()
        return self.join()

    def join(self):
        """Wait until all have noticed that their server is gone. The errors they met."""
        for client in self.clients:
            client.join()
        return [f"client {client.number}: {client.error!r}" for client in self.clients if client.error]

    def commits(self):
        return sum(client.commits for client in self.clients)

    def holds(self, member):
        """Problems with the rows of a server. A commit that was on its way when the primary died is decided by the
        first server asked; all others have to agree."""
        with member.connect(schema.DATABASE) as session:
            problems = verify.rows_hold(session, self.clients) + verify.tables_hold(session, self.engine)
        return [f"{member.name}: {text}" for text in problems]


def same(primary, replica):
    """Problems: where the two differ once the replica has everything, positions included. Raises NotReplicating, with what the replica
    was doing, if it does not come there: its rows say nothing then."""
    position = primary.written()
    replica.wait_for(position)
    problems = []
    for name in schema.TABLES:
        sums = [member.run(f"CHECKSUM TABLE {schema.DATABASE}.{name} EXTENDED").rows[0][1] for member in (primary, replica)]
        if sums[0] != sums[1]:
            problems.append(f"{name} differs between {primary.name} and {replica.name}")
    # The position in memory is that of the table, and that of the binary log of a replica that writes one.
    positions = [("gtid_slave_pos", "SELECT @@gtid_slave_pos")]
    if replica.value("SELECT @@log_slave_updates") == "1":
        positions.append(("binary log", "SELECT @@gtid_binlog_pos"))
    for what, sql in positions:
        if replica.value(sql) != position:
            problems.append(f"{replica.name}: {what} is {replica.value(sql)}, the primary's is {position}")
    table = _position_in_table(replica)
    if table != position:
        problems.append(f"{replica.name}: the table of positions says {table}, the primary's is {position}")
    return problems


def _position_in_table(replica):
    """What the tables of positions (one for each engine) say."""
    with replica.connect() as session:
        tables = [row[0].decode() for row in session.query(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_schema = 'mysql' AND table_name LIKE 'gtid\\_slave\\_pos%'").rows]
        every = " UNION ALL ".join(f"SELECT * FROM mysql.{table}" for table in tables)
        return session.value("SELECT CONCAT(domain_id, '-', server_id, '-', seq_no) "
                             f"FROM ({every}) AS positions ORDER BY sub_id DESC LIMIT 1")
