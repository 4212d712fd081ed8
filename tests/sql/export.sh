#!/usr/bin/env bash
# Rows without a server: what pando export writes loads back as it was, also after kill -9, and the data directory stays as it is;
# what pando salvage writes of a damaged file is what was there, and what is missing lies in the ranges it names. Tables have names of
# any letters, a file is whole or not there, and a table whose descriptor is lost is read by that of the catalog.
set -euo pipefail
# shellcheck source=scripts/private-server.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/private-server.sh"

if [ -z "${PANDO_TOOL:-}" ]; then
    find_cargo || die "no cargo; run scripts/setup.sh"
    cargo build --quiet --manifest-path "$PANDO_ROOT/Cargo.toml" -p pando-cli
    PANDO_TOOL=${CARGO_TARGET_DIR:-$PANDO_ROOT/target}/debug/pando
fi

server_auto_stop
server_temp_dir export
DIR=$REPLY
SERVER=$DIR/server
DATA=$SERVER/data
sql() { server_sql "$SERVER" -BN "$@"; }
state() { find "$DATA" -type f -printf '%p %s %T@\n' | sort; }

# export_table TABLE FILE [OPTION ...]
export_table() { "$PANDO_TOOL" export --data-dir "$DATA" --table "test/$1" -o "$2" "${@:3}" 2>>"$DIR/notes"; }

server_start "$SERVER"
sql -e 'CREATE DATABASE IF NOT EXISTS test'
sql test <<'SQL'
SET time_zone='+00:00', sql_mode='';
CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT, c CHAR(10) CHARACTER SET latin1 NOT NULL, i BIGINT UNSIGNED, f FLOAT, g DOUBLE,
  d DECIMAL(20,6), da DATE, ti TIME(3), dt DATETIME(6), ts TIMESTAMP(2) NULL, y YEAR, v VARCHAR(100) CHARACTER SET utf8mb4,
  s VARCHAR(20) CHARACTER SET sjis, bi BINARY(5), bl BLOB, tx LONGTEXT, en ENUM('a','b,c'), se SET('x','y','z'), b BIT(13), j JSON,
  u UUID, co VARCHAR(2000) COMPRESSED, cb BLOB COMPRESSED, vi INT AS (y + 1) VIRTUAL, st INT AS (y * 2) STORED, PRIMARY KEY (c, id), KEY (id)) ENGINE=PANDO;
INSERT INTO t (c, i, f, g, d, da, ti, dt, ts, y, v, s, bi, bl, tx, en, se, b, j, u, co, cb) SELECT CONCAT('k', seq % 7), seq * 3689348814741,
  seq / 7, -seq / 3e100, -seq / 1000, '2024-02-29', '-12:13:14.567', '1999-12-31 23:59:59.000001', '2024-01-02 03:04:05.25', 2000,
  CONCAT('ü "', seq, '", ''q'' \\ 😀'), _utf8mb4'日本', seq, CHAR(0, seq % 256), REPEAT('long ', IF(seq % 1000, 3, 9000)), 'b,c', 'x,z',
  seq, '{"a": 1}', UUID(), REPEAT(seq, seq % 300), IF(seq % 5, REPEAT('blob ', seq % 4000), NULL) FROM seq_1_to_5000;
INSERT INTO t (c) VALUES ('nulls');
ALTER TABLE t ADD COLUMN added INT NOT NULL DEFAULT 42 AFTER c, ALGORITHM=INSTANT;
INSERT INTO t (c, added) VALUES ('new', -1);
CREATE TABLE p (a INT NOT NULL, b VARCHAR(20), PRIMARY KEY (a)) ENGINE=PANDO PARTITION BY HASH(a) PARTITIONS 3;
INSERT INTO p SELECT seq, CONCAT('b', seq) FROM seq_1_to_500;
CREATE TABLE r (a INT NOT NULL PRIMARY KEY, b VARCHAR(200)) ENGINE=PANDO;
INSERT INTO r SELECT seq, SHA2(seq, 512) FROM seq_1_to_20000;
SQL

# Names whose files are called otherwise.
DATABASES=(größe 'a/b.c' '.д`х')
TABLES=(öÜé таблица Ελλάς 'Việt Nam' İı Ⅻ 表 a.b a/b 'a`b' '..' .x '$' con 'p#P#p0' '#sql-x' a@002db '@@@')
quoted() { printf '`%s`' "${1//\`/\`\`}"; }
for database in "${DATABASES[@]}"; do
    echo "CREATE DATABASE $(quoted "$database"); USE $(quoted "$database");"
    for table in "${TABLES[@]}"; do
        echo "CREATE TABLE $(quoted "$table") (a VARCHAR(99) PRIMARY KEY) CHARSET=utf8mb4 ENGINE=PANDO"
        [ "$table" != Ⅻ ] || echo "PARTITION BY KEY() (PARTITION ä, PARTITION \`b-c\`)"
        echo "; INSERT INTO $(quoted "$table") VALUES ('of $database $table')"
        [ "$table" != Ⅻ ] || echo ", ('1'), ('2'), ('3')"
        echo ";"
    done
done | sql --default-character-set=utf8mb4 --binary-mode

check_names() {
    local database table name command want got
    for database in "${DATABASES[@]}"; do
        for table in "${TABLES[@]}"; do
            name=$(quoted "$database").$(quoted "$table")
            for command in "$@"; do
                want=$(printf 'a\r\n'; [ "$table" != Ⅻ ] || printf '%s\r\n' 1 2 3; printf 'of %s %s\r\n' "$database" "$table")
                got=$("$PANDO_TOOL" "$command" --data-dir "$DATA" --table "$name" 2>"$DIR/said") || die "$command of $name: $(cat "$DIR/said")"
                [ "$(sort <<<"$got")" = "$(sort <<<"$want")" ] || die "$command of $name: $got"
            done
        done
    done
}

for way in stop kill; do
    "server_$way" "$SERVER"
    state >"$DIR/before"
    for table in t p; do
        export_table "$table" "$DIR/$table.$way.sql" --format sql --into "back_$table"
        export_table "$table" "$DIR/$table.$way.csv"
        export_table "$table" "$DIR/$table.$way.jsonl" --format jsonl
        export_table "$table" "$DIR/$table.$way.parquet" --format parquet
        [ "$(head -c 4 "$DIR/$table.$way.parquet")$(tail -c 4 "$DIR/$table.$way.parquet")" = PAR1PAR1 ] ||
            die "Parquet file of $table"
    done
    state | cmp - "$DIR/before" || die "pando export has changed the data directory"
    server_start "$SERVER"
    for table in t p; do
        sql test -e "CREATE OR REPLACE TABLE back_$table LIKE $table"
        sql test <"$DIR/$table.$way.sql"
        sums=$(sql test -e "CHECKSUM TABLE $table, back_$table" | cut -f 2 | sort -u | wc -l)
        [ "$sums" = 1 ] || die "$table does not come back as it was after $way"
        [ "$(wc -l <"$DIR/$table.$way.jsonl")" = "$(sql test -e "SELECT COUNT(*) FROM $table")" ] || die "JSON lines of $table"
    done
    sql test -e "CREATE OR REPLACE TABLE csv_p LIKE p; LOAD DATA LOCAL INFILE '$DIR/p.$way.csv' INTO TABLE csv_p CHARACTER SET utf8mb4
      FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '\r\n' IGNORE 1 LINES" --local-infile=1
    [ "$(sql test -e 'CHECKSUM TABLE p, csv_p' | cut -f 2 | sort -u | wc -l)" = 1 ] || die "CSV of p"
    # For kill -9: what only the log has.
    sql test -e "INSERT INTO p SELECT MAX(a) + 1, 'late' FROM p"
    sql test -e "INSERT INTO t (c) SELECT 'late' FROM seq_1_to_50"
done

server_stop "$SERVER"
check_names export salvage
salvage() { "$PANDO_TOOL" "${1:-salvage}" --data-dir "$DATA" --table größe/a.b --format sql 2>"$DIR/said"; }
salvage export | grep -F 'INSERT INTO `a.b` (`a`) VALUES' >/dev/null || die "the name of a table with a dot"
salvage >"$DIR/whole"
rm "$DATA/gr@1i@1je/a@002eb.pando/status.pando"
salvage | cmp - "$DIR/whole" || die "a table without its descriptor: $(cat "$DIR/said")"
grep -q 'status.pando.*the descriptor of the catalog is used' "$DIR/said" || die "nothing is said of the descriptor"

# A reader who goes: as SIGPIPE would do it. And a file is whole, or not there.
statuses=$("$PANDO_TOOL" export --data-dir "$DATA" --table test/r 2>"$DIR/said" | head -1 >"$DIR/first"; echo "${PIPESTATUS[*]}") || true
[ "$statuses" = '141 0' ] && [ ! -s "$DIR/said" ] || die "a closed pipe: $statuses, $(cat "$DIR/said")"
cp "$DATA/test/r.pando/main.pando" "$DIR/sound"
python3 - "$DATA/test/r.pando/main.pando" <<'PY'
import sys
with open(sys.argv[1], "r+b") as file:
    size = file.seek(0, 2)
    for at in range(32768, size, 65536):
        file.seek(at)
        file.write(b"damage")
PY
mkdir "$DIR/out"
for format in csv parquet; do
    ! export_table r "$DIR/out/rows" --format "$format" || die "a damaged table is exported"
    [ -z "$(ls -A "$DIR/out")" ] || die "a part of a file is left: $(ls -A "$DIR/out")"
done
cp "$DIR/sound" "$DATA/test/r.pando/main.pando"
export_table r "$DIR/out/rows"
! export_table r "$DIR/out/rows" || die "a file that is there is written"
[ "$(wc -l <"$DIR/out/rows")" = 20001 ] || die "rows of r"

python3 - "$PANDO_TOOL" "$DATA" "$DIR" <<'PY'
import random, subprocess, sys, pathlib
tool, data, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
def rows(text): return set(text.splitlines()[1:])
def run(command):
    return subprocess.run([tool, command, "--data-dir", data, "--table", "test/r"], capture_output=True, text=True)
key = lambda line: (int(line.split(",")[0]) + (1 << 31)).to_bytes(4, "big").hex()
whole = run("salvage")
assert whole.returncode == 0, whole.stderr
original = rows(run("export").stdout)
assert rows(whole.stdout) == original and len(original) == 20000, whole.stderr
file = pathlib.Path(data) / "test/r.pando/main.pando"
sound = file.read_bytes()
for seed in range(20):
    rng = random.Random(seed)
    damaged = bytearray(sound)
    for _ in range(1 + seed % 5):
        damaged[rng.randrange(16384, len(damaged))] ^= 1 << rng.randrange(8)
    file.write_bytes(damaged)
    got = run("salvage")
    assert got.returncode in (0, 1) and "panicked" not in got.stderr, (seed, got.stderr)
    found = rows(got.stdout)
    assert found <= original, (seed, "rows that were not there")
    lost = [line.split()[2:4] for line in got.stderr.splitlines() if line.startswith(("pando: missing ", "pando: older "))]
    for line in original - found:
        at = key(line)
        assert any((low == "-" or low <= at) and (high == "-" or at < high) for low, high in lost), (seed, line, lost)
    assert (got.returncode == 0) == (not lost), (seed, got.stderr)
file.write_bytes(sound)
PY
echo "ok"
