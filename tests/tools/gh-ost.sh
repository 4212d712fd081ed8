#!/usr/bin/env bash
# gh-ost changes a table of each engine while others write. Its module is built by Go where it can be had, or TOOLS_GH_OST names the program.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
version=v1.1.7
program=${TOOLS_GH_OST:-$tools_work/gh-ost/gh-ost}
mkdir -p "$tools_work/gh-ost"
if [ ! -x "$program" ]; then
    command -v go >/dev/null || tools_skip "no Go on this machine"
    GOBIN=$tools_work/gh-ost go install -p 2 "github.com/github/gh-ost/go/cmd/gh-ost@$version" >"$tools_work/gh-ost/install.log" 2>&1 ||
        tools_skip "no module github.com/github/gh-ost $version"
fi
tools_version gh-ost "$version"
tools_start --log-slave-updates
for engine in PANDO InnoDB; do
    database=${engine,,}
    tools_schema "$database" "$engine"
    tools_sql "$database" -e 'CREATE TABLE written (id INT AUTO_INCREMENT PRIMARY KEY)'
    touch "$tools_directory/busy"
    while [ -e "$tools_directory/busy" ]; do
        tools_sql "$database" -e "INSERT INTO customer (name) VALUES (CONCAT('written ', UUID())); INSERT INTO written VALUES (NULL)"
    done &
    writer=$!
    # It takes no tables with foreign keys.
    tools_sql "$database" -e 'ALTER TABLE purchase DROP FOREIGN KEY purchase_of'
    tools_ok "$engine: gh-ost adds a column while others write" timeout 300 "$program" --host 127.0.0.1 --port "$tools_port" --user tools \
        --password tools --allow-on-master --assume-rbr --database "$database" --table customer --alter 'ADD COLUMN added INT NOT NULL DEFAULT 7' \
        --chunk-size 500 --initially-drop-ghost-table --ok-to-drop-table --serve-socket-file "$tools_directory/gh-ost.sock" --execute
    rm "$tools_directory/busy"
    wait "$writer"
    tools_same "$engine: no row of the writer is missing" "$(tools_sql "$database" -e 'SELECT COUNT(*) FROM customer WHERE added = 7')" \
        "$(tools_sql "$database" -e 'SELECT 2000 + COUNT(*) FROM written')"
    tools_same "$engine: the engine of the new table" "$(tools_engine_of "$database.customer")" "$engine"
done
tools_end
