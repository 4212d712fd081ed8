#!/usr/bin/env bash
# mysqltuner on a server with tables of both engines: it comes to its end, and what it says of either engine.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
tools_debs mysqltuner mysqltuner
tools_version mysqltuner "$(mysqltuner --help | sed -nE 's/^ *MySQLTuner ([0-9.]+) .*/\1/p')"
# It divides by this variable, which is 0 by default in current servers.
tools_start --innodb-buffer-pool-chunk-size=16M

# tune TO: its report into a file of the server's folder.
tune() {
    # By TCP: with a socket it gives the client a port, too, which MariaDB's client takes for TCP.
    mysqltuner --host 127.0.0.1 --port "$tools_port" --user tools --pass tools --nocolor --skippassword --server-log "$tools_directory/error.log" \
        --dbstat --tbstat --idxstat --forcemem 2048 --forceswap 1024 </dev/null >"$tools_directory/$1" 2>&1
}

for engine in PANDO InnoDB; do tools_schema "${engine,,}" "$engine"; done
tools_ok "both: mysqltuner comes to its end" tune both.txt
report=$(<"$tools_directory/both.txt")
tools_says "PANDO: it lists the engine" '\+PANDO' "$report"
for engine in PANDO InnoDB; do
    tools_says "$engine: what its tables hold" "Data in $engine tables: [0-9.]+[KM].* \(Tables: 4\)" "$report"
done
# It divides by what InnoDB has written, too: so this server's InnoDB has written something, but has no table any more.
tools_sql -e 'DROP DATABASE innodb'
tools_ok "PANDO: mysqltuner comes to its end where all tables are PANDO's" tune pando.txt
tools_says "PANDO: no word of fragmented tables" 'Total fragmented tables: 0' "$(<"$tools_directory/pando.txt")"
tools_ok "no error of Perl or SQL" tools_fails grep -nE 'at .*mysqltuner line [0-9]+|ERROR [0-9]+|uninitialized' \
    "$tools_directory/both.txt" "$tools_directory/pando.txt"
if [ -n "${TOOLS_SHOW:-}" ]; then cat "$tools_directory/pando.txt"; fi
tools_end
