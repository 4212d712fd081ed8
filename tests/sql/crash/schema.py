"""The tables of the crash test and their first rows."""

DATABASE = "crash"
ACCOUNTS = 12
BALANCE = 1_000_000

TABLES = {
    # Shared by all clients: each transfer changes one row in each, and their sum stays.
    "debtors": "id INT PRIMARY KEY, balance BIGINT NOT NULL, moves INT NOT NULL, KEY (balance), "
               "KEY (moves, balance){clustering}",
    "creditors": "id INT PRIMARY KEY, balance BIGINT NOT NULL, moves INT NOT NULL, UNIQUE (balance, id)",
    # One row for each transfer; it says what the accounts must hold.
    "journal": "client INT NOT NULL, seq INT NOT NULL, source INT, target INT, amount INT, "
               "PRIMARY KEY (client, seq), KEY (source, amount), KEY (target, amount)",
    # Own rows of each client, changed in place.
    "items": "client INT NOT NULL, id INT NOT NULL, version INT NOT NULL, tag INT, text VARCHAR(500) NOT NULL, "
             "PRIMARY KEY (client, id), UNIQUE KEY version (version, client, id){clustering}, KEY tag (tag), "
             "KEY text (text(24))",
    # Several rows for each tag, all or none of them; no primary key.
    "parts": "client INT NOT NULL, tag INT NOT NULL, n INT NOT NULL, pad VARCHAR(200), "
             "KEY tag (client, tag){clustering}, UNIQUE KEY n (n, tag, client)",
}


def create(session, engine):
    session.query(f"CREATE DATABASE {DATABASE}")
    session.query(f"USE {DATABASE}")
    clustering = " CLUSTERING=YES" if engine == "PANDO" else ""
    for name, columns in TABLES.items():
        columns = columns.replace("{clustering}", clustering)
        session.query(f"CREATE TABLE {name} ({columns}) ENGINE={engine} DEFAULT CHARSET latin1")
    for name in ("debtors", "creditors"):
        rows = ", ".join(f"({number}, {BALANCE}, 0)" for number in range(ACCOUNTS))
        session.query(f"INSERT INTO {name} VALUES {rows}")
