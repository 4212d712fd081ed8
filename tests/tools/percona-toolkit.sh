#!/usr/bin/env bash
# The tools of percona-toolkit that change, move, compare and mend tables, on tables of each engine: a primary and a replica with both.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
tools_debs percona-toolkit percona-toolkit
tools_version percona-toolkit "$(pt-online-schema-change --version | sed 's/.* //')"

tools_start --server-id=2 --log-slave-updates
replica=$tools_directory replica_socket=$tools_socket replica_port=$tools_port
tools_start
primary=$tools_directory

# Until the replica has what the primary has written.
caught_up() {
    local at
    at=$(server_sql "$primary" -BNe 'SELECT @@gtid_binlog_pos')
    [ "$(server_sql "$replica" -BNe "SELECT MASTER_GTID_WAIT('$at', 120)")" = 0 ]
}
server_sql "$replica" -e "CHANGE MASTER TO master_host = '127.0.0.1', master_port = $tools_port, master_user = 'tools',
    master_password = 'tools', master_use_gtid = slave_pos; SET GLOBAL gtid_slave_pos = ''; RESET MASTER; START SLAVE"
server_sql "$primary" -e "CREATE DATABASE percona;
    CREATE TABLE percona.dsns (id INT AUTO_INCREMENT PRIMARY KEY, parent_id INT, dsn VARCHAR(255) NOT NULL);
    INSERT INTO percona.dsns (dsn) VALUES ('S=$replica_socket,u=root')"

# A tool that waits for a replica waits for ever if that has stopped.
for tool in pt-online-schema-change pt-archiver pt-table-checksum pt-table-sync pt-duplicate-key-checker; do
    eval "$tool() { timeout 300 $tools_root/usr/bin/$tool \"\$@\"; }"
done

dsn=S=$tools_socket,u=root,A=utf8mb4
replicas=(--recursion-method "dsn=$dsn,D=percona,t=dsns")
rows_of() { server_sql "$1" -BNe "SELECT COUNT(*) FROM $2; CHECKSUM TABLE $2 EXTENDED" | cut -f 2 | paste -sd ' '; }

# Writes to the table until the file is gone, while its definition is changed.
write_rows() {
    while [ -e "$2" ]; do
        server_sql "$primary" "$1" -e "INSERT INTO purchase (customer, at, state) VALUES (1 + RAND() * 1000, NOW(), 'new');
            UPDATE purchase SET price = price + 1 WHERE id = 1 + FLOOR(RAND() * 20000); INSERT INTO written VALUES (NULL)"
    done
}

change_online() {
    local database=$1 busy=$tools_directory/busy writer
    server_sql "$primary" "$database" -e 'CREATE TABLE written (id INT AUTO_INCREMENT PRIMARY KEY)'
    touch "$busy"
    write_rows "$database" "$busy" &
    writer=$!
    tools_ok "$2: pt-online-schema-change adds a column and a key while others write" \
        pt-online-schema-change --alter 'ADD COLUMN added INT NOT NULL DEFAULT 7, ADD KEY (price)' --execute \
        --no-check-replication-filters --preserve-triggers --chunk-size 2000 "${replicas[@]}" "$dsn,D=$database,t=purchase"
    rm "$busy"
    wait "$writer"
    tools_same "$2: no row of the writer is missing" "$(tools_sql -e "SELECT COUNT(*) FROM $database.purchase WHERE added = 7")" \
        "$(tools_sql -e "SELECT 20000 + COUNT(*) FROM $database.written")"
    tools_same "$2: the engine of the new table" "$(tools_engine_of "$database.purchase")" "$2"
    tools_ok "$2: pt-online-schema-change of a parent rebuilds the foreign key" \
        pt-online-schema-change --alter 'ADD COLUMN added INT' --execute --alter-foreign-keys-method rebuild_constraints \
        "${replicas[@]}" "$dsn,D=$database,t=customer"
    tools_same "$2: the foreign key refers to the new table" \
        "$(tools_sql -e "SELECT referenced_table_name FROM information_schema.referential_constraints WHERE constraint_schema = '$database'")" customer
    tools_ok "$2: the foreign key holds" tools_fails tools_sql "$database" -e "INSERT INTO purchase (customer, at, state) VALUES (99999, NOW(), 'new')"
}

archive() {
    tools_sql "$1" -e 'CREATE TABLE old LIKE reading; ALTER TABLE old REMOVE PARTITIONING'
    tools_ok "$2: pt-archiver moves rows to another table" \
        pt-archiver --source "$dsn,D=$1,t=reading" --dest "$dsn,D=$1,t=old" --where "at < '2026-01-05'" --limit 500 --commit-each
    tools_same "$2: they are in one of the tables" "$(tools_sql "$1" -e "SELECT COUNT(*), SUM(at < '2026-01-05') FROM old UNION ALL
        SELECT COUNT(*), SUM(at < '2026-01-05') FROM reading" | paste -sd ' ')" "$(printf '5759\t5759 9241\t0')"
    tools_ok "$2: pt-archiver purges in bulk" \
        pt-archiver --source "$dsn,D=$1,t=old" --purge --where 'sensor < 5' --limit 500 --bulk-delete --commit-each --primary-key-only
    tools_same "$2: what it purged is gone" "$(tools_sql "$1" -e 'SELECT SUM(sensor < 5), COUNT(*) > 0 FROM old')" "$(printf '0\t1')"
}

checksum() {
    pt-table-checksum --databases "$1" --no-check-binlog-format --no-check-replication-filters --replicate percona.checksums \
        --chunk-size 1000 "${replicas[@]}" "$dsn"
}

# What pt-table-sync prints before it does anything says how it keeps others away.
compare_and_mend() {
    local database=$1 engine=$2 said
    caught_up
    tools_ok "$engine: pt-table-checksum finds a replica equal" checksum "$database"
    server_sql "$replica" "$database" -e "SET sql_log_bin = 0; UPDATE customer SET note = 'wrong' WHERE id = 17;
        DELETE FROM customer WHERE id = 1999; UPDATE purchase SET price = -1 WHERE id BETWEEN 4000 AND 4010"
    caught_up
    said=$(checksum "$database") && die "pt-table-checksum ended with 0"
    tools_says "$engine: pt-table-checksum finds the table that differs" "^[^ ]+ +0 +1 .*$database.customer\$" "$said"
    caught_up
    tools_ok "$engine: pt-table-sync --transaction mends the replica" tools_mends "$database"
    caught_up
    tools_ok "$engine: and pt-table-checksum agrees" checksum "$database"
    tools_same "$engine: rows of primary and replica" "$(rows_of "$primary" "$database.customer") $(rows_of "$primary" "$database.purchase")" \
        "$(rows_of "$replica" "$database.customer") $(rows_of "$replica" "$database.purchase")"
}
# Its status is 2 where it changed something. The parent first: the rows of the child need it.
tools_mends() {
    local table status
    for table in customer purchase; do
        status=0
        pt-table-sync --execute --transaction --replicate percona.checksums --tables "$1.$table" --no-check-child-tables \
            --no-check-triggers --sync-to-master "h=127.0.0.1,P=$replica_port,u=tools,p=tools,A=utf8mb4" || status=$?
        [ "$status" = 2 ] || { echo "status $status of $1.$table"; return 1; }
    done
}

# With PTDEBUG it says what it sends; without --transaction, LOCK TABLES where it does not know the engine.
locks_of_sync() {
    tools_sql -e "CREATE TABLE $1.twin LIKE $1.old; INSERT INTO $1.twin SELECT * FROM $1.old; DELETE FROM $1.twin LIMIT 10;
        SET GLOBAL general_log_file = '$primary/general-$1$2.log'; SET GLOBAL general_log = 1"
    # shellcheck disable=SC2086
    pt-table-sync --execute $2 --lock 1 --no-check-triggers "$dsn,D=$1,t=old" "$dsn,D=$1,t=twin" >/dev/null || [ $? = 2 ]
    tools_sql -e "SET GLOBAL general_log = 0; DROP TABLE $1.twin"
    grep -oE 'LOCK TABLES `[a-z]+`|START TRANSACTION' "$primary/general-$1$2.log" | sed 's/ `.*//' | sort -u | paste -sd ,
}

for engine in PANDO InnoDB; do
    database=${engine,,}
    tools_schema "$database" "$engine"
    change_online "$database" "$engine"
    archive "$database" "$engine"
    compare_and_mend "$database" "$engine"
    tools_says "$engine: pt-duplicate-key-checker" 'Total Indexes' "$(pt-duplicate-key-checker -S "$tools_socket" -u root -d "$database")"
    tools_same "$engine: pt-table-sync --transaction takes no table locks" "$(locks_of_sync "$database" --transaction)" 'START TRANSACTION'
done
tools_same "InnoDB: pt-table-sync takes no table locks by itself" "$(locks_of_sync innodb '')" 'START TRANSACTION'
tools_same "PANDO: pt-table-sync without --transaction locks the tables" "$(locks_of_sync pando '')" 'LOCK TABLES'
tools_ok "pt-online-schema-change makes an InnoDB table one of PANDO" \
    pt-online-schema-change --alter ENGINE=PANDO --execute --preserve-triggers "${replicas[@]}" "$dsn,D=innodb,t=old"
tools_same "its engine" "$(tools_engine_of innodb.old)" PANDO
tools_end
