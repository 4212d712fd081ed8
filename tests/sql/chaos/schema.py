"""The tables of the chaos run, one of each kind, and the rows they begin with."""

DATABASE = "chaos"
ACCOUNTS = 16
BALANCE = 1_000_000
# Rows of one LOAD DATA: more than the 4,096 after which the engine loads in bulk.
BATCH_ROWS = 6000

# Each client changes rows of its own: the column `client` is a part of every key.
REPLICATED = {
    # Shared by all: transfers change two rows, the sum stays.
    "accounts": "id INT PRIMARY KEY, balance BIGINT NOT NULL, KEY balance (balance)",
    "journal": "client INT NOT NULL, seq INT NOT NULL, source INT NOT NULL, target INT NOT NULL, amount INT NOT NULL, "
               "PRIMARY KEY (client, seq), KEY source (source, amount)",
    "people": "client INT NOT NULL, id INT NOT NULL, email VARCHAR(80) NOT NULL, number INT, note VARCHAR(200) NOT NULL, "
              "PRIMARY KEY (client, id), UNIQUE KEY email (email), UNIQUE KEY number (client, number), KEY note (note(20))",
    "parents": "client INT NOT NULL, id INT NOT NULL, name VARCHAR(60) NOT NULL, PRIMARY KEY (client, id), KEY name (name)",
    "children": "client INT NOT NULL, id INT NOT NULL, parent INT NOT NULL, text VARCHAR(100) NOT NULL, "
                "PRIMARY KEY (client, id), KEY parent (client, parent), "
                "CONSTRAINT of_parent FOREIGN KEY (client, parent) REFERENCES parents (client, id) ON DELETE CASCADE",
    # Values apart from their rows.
    "documents": "client INT NOT NULL, id INT NOT NULL, version INT NOT NULL, body LONGTEXT NOT NULL, "
                 "PRIMARY KEY (client, id), KEY version (version)",
    "secrets": "client INT NOT NULL, id INT NOT NULL, text VARCHAR(200) NOT NULL, PRIMARY KEY (client, id), "
               "KEY text (text)",
    "loaded": "batch INT NOT NULL, id INT NOT NULL, text VARCHAR(60) NOT NULL, PRIMARY KEY (batch, id), KEY text (text), "
              "UNIQUE KEY turned (id, batch)",
}
# Not in the binary log: the server's replication of the user's XA transactions is not what is tested here (a replica
# may answer XAER_NOTA), and damage is done to one server alone.
ALONE = {
    "ledger": "client INT NOT NULL, id INT NOT NULL, amount INT NOT NULL, PRIMARY KEY (client, id), KEY amount (amount)",
    "rotten": "id INT PRIMARY KEY, v INT NOT NULL, text VARCHAR(100) NOT NULL, KEY v (v), UNIQUE KEY text (text)",
}
ROTTEN_ROWS = 5000
_OPTIONS = {"secrets": " ENCRYPTED=YES", "journal": " PARTITION BY HASH (seq) PARTITIONS 4"}


def create(session, engine):
    """Makes the tables."""
    session.query(f"CREATE DATABASE {DATABASE}")
    session.query(f"USE {DATABASE}")
    for name, columns in REPLICATED.items():
        session.query(_statement(name, columns, engine))
    rows = ", ".join(f"({number}, {BALANCE})" for number in range(ACCOUNTS))
    session.query(f"INSERT INTO accounts VALUES {rows}")
    session.query("SET sql_log_bin = 0")
    session.query(_statement("ledger", ALONE["ledger"], engine))
    create_rotten(session, engine)
    session.query("SET sql_log_bin = 1")


def create_rotten(session, engine):
    """The table whose files are harmed; its rows are known."""
    session.query(_statement("rotten", ALONE["rotten"], engine))
    session.query(f"INSERT INTO rotten SELECT seq, seq % 100, SHA2(seq, 256) FROM seq_1_to_{ROTTEN_ROWS}")


def _statement(name, columns, engine):
    return f"CREATE TABLE {name} ({columns}) ENGINE={engine} DEFAULT CHARSET latin1{_OPTIONS.get(name, '')}"
