"""A table without a front, with columns of all kinds, changed in many ways while it is copied."""

_COLUMNS = ("id INT PRIMARY KEY AUTO_INCREMENT, b BIT(9), d DECIMAL(30,10), r DOUBLE, t VARCHAR(200) CHARACTER SET utf8mb4, l LATIN1, "
            "x VARBINARY(40), g LONGBLOB, j JSON, e ENUM('a','b','NULL'), s SET('x','y','z'), ts TIMESTAMP(6) NULL, dt DATETIME(3), y YEAR, "
            "u UUID, i INET6, hidden INT INVISIBLE DEFAULT 5, v INT AS (hidden * 2) VIRTUAL, w VARCHAR(30) AS (CONCAT('w', hidden)) PERSISTENT, KEY w (w)"
            ).replace("l LATIN1", "l VARCHAR(50) CHARACTER SET latin1")
_INSERT = ("INSERT INTO d.odd (b, d, r, t, l, x, g, j, e, s, ts, dt, y, u, i, hidden) SELECT seq % 512, seq / 7, EXP(seq % 300) / 3, "
           "CONCAT('a\\'\\\\\\n\\t\\0;', CHAR(128512 + seq % 50 USING utf32), seq), CONCAT('ä', seq), UNHEX(SHA1(seq)), REPEAT(UNHEX(MD5(seq)), seq % 200), "
           "JSON_OBJECT('n', seq, 'text', 'q\"q'), ELT(1 + seq % 3, 'a', 'b', 'NULL'), seq % 8, FROM_UNIXTIME(1700000000 + seq * 1000.001), "
           "'2026-01-01' + INTERVAL seq HOUR, 1901 + seq % 200, UUID(), CONCAT('fe80::', HEX(seq % 60000)), seq FROM seq_{}_to_{}")
# What comes between copy and switch, each in a session of its own.
_CHANGES = [
    [_INSERT.format(10001, 10300)],
    ["UPDATE d.odd SET g = REPEAT('z', 3000000) WHERE id = 77", "UPDATE d.odd SET t = NULL, j = NULL, g = NULL, ts = NULL WHERE id % 5 = 0"],
    ["SET GLOBAL binlog_checksum = NONE", "DELETE FROM d.odd WHERE id % 11 = 0", "UPDATE d.odd SET id = id + 100000 WHERE id < 50"],
    ["FLUSH BINARY LOGS", "SET GLOBAL log_bin_compress = 1", "UPDATE d.odd SET x = UNHEX(SHA2(id, 256))"],
    ["SET GLOBAL binlog_checksum = CRC32", "START TRANSACTION", "SAVEPOINT odd", "UPDATE d.odd, d.even SET odd.d = odd.d + 1, even.n = even.n + 1",
     "REPLACE INTO d.odd (id, t) SELECT id, 'replaced' FROM d.odd WHERE id % 13 = 0", "INSERT INTO d.even VALUES (9)", "COMMIT"],
    ["START TRANSACTION", "UPDATE d.odd SET t = 'undone'", "ROLLBACK"],
    ["SET GLOBAL log_bin_compress = 0", "XA START 'o'", "UPDATE d.odd SET dt = NOW(3) WHERE id % 3 = 0", "XA END 'o'", "XA PREPARE 'o'", "XA COMMIT 'o'"],
    ["INSERT INTO d.odd (id) VALUES (900000)", "DELETE FROM d.odd WHERE id = 900000", "ANALYZE TABLE d.odd"],
]


def values(scene, checks):
    """From the first shard to the third, without a front."""
    source, target = scene.shards["shard1"], scene.shards["shard3"]
    file = scene.cluster.dir / "plain.cnf"
    file.write_text("[client]\nuser = root\n" + "".join(
        f"\n[client-{name}]\nsocket = {scene.shards[name].server.socket}\n" for name in ("shard1", "shard3")))
    engine = scene.cluster.engine
    source.run("USE d", f"CREATE TABLE d.odd ({_COLUMNS}) ENGINE={engine} PARTITION BY KEY (id) PARTITIONS 3", f"CREATE TABLE d.even (n INT) ENGINE={engine}",
               "INSERT INTO d.even VALUES (1)", _INSERT.format(1, 2000))
    script = scene.cluster.dir / "changes.sql"
    script.write_text("USE d;\n" + "\n".join(f"{sql};" for session in _CHANGES for sql in session))
    command = f"mariadb --no-defaults -uroot --default-character-set=utf8mb4 -S {source.server.socket} < {script}"
    status, text = scene.move("shard1", "shard3", "--keep-old", table="odd", part=None, step="copied", command=command, file=file)
    if not checks.check(status == 0, "a table without a front, with columns of all kinds, changed in many ways meanwhile, moves", text):
        return
    sums = [_state(member, table) for member, table in ((source, "odd__moved"), (target, "odd"))]
    checks.check(sums[0] == sums[1] and "checksum of both" in text, "its rows are the same", [text, sums])
    checks.check(sums[0][3] == sums[1][3], "the next automatic value is the same", sums)
    source.run("DROP TABLE d.odd__moved, d.even")
    target.run("DROP TABLE d.odd")


def _state(member, table):
    with member.connect("d") as session:
        return [session.query(f"CHECKSUM TABLE {table} EXTENDED").rows[0][1], session.query(f"SELECT COUNT(*), SUM(hidden), SUM(v), SUM(CRC32(w)) FROM {table}").rows,
                session.query(f"CHECK TABLE {table} EXTENDED").rows[-1][3],
                session.value(f"SELECT auto_increment FROM information_schema.tables WHERE table_schema='d' AND table_name='{table}'")]
