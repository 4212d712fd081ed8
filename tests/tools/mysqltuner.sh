#!/usr/bin/env bash
# mysqltuner on a server with tables of both engines: it comes to its end, and what it says of either engine.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
tools_debs mysqltuner mysqltuner
tools_version mysqltuner "$(mysqltuner --help | sed -nE 's/^ *MySQLTuner ([0-9.]+) .*/\1/p')"
tools_start

# tune TO: its report into a file of the server's folder.
tune() {
    # By TCP: with a socket it gives the client a port, too, which MariaDB's client takes for TCP.
    mysqltuner --host 127.0.0.1 --port "$tools_port" --user tools --pass tools --nocolor --skippassword --server-log "$tools_directory/error.log" \
        --dbstat --tbstat --idxstat --forcemem 2048 --forceswap 1024 >"$tools_directory/$1" 2>&1
}

# Alone first: what it says of a server whose tables are all the engine's.
tools_schema pando PANDO
tools_ok "PANDO: mysqltuner comes to its end" tune pando.txt
report=$(<"$tools_directory/pando.txt")
tools_says "PANDO: it lists the engine" '\+PANDO' "$report"
tools_says "PANDO: and what its tables hold" 'Data in PANDO tables: [0-9.]+[KM].* \(Tables: 4\)' "$report"
tools_says "PANDO: no word of fragmented tables" 'Total fragmented tables: 0' "$report"
tools_ok "PANDO: no error of Perl or SQL" tools_fails grep -nE 'at .*mysqltuner line [0-9]+|ERROR [0-9]+|uninitialized' "$tools_directory/pando.txt"
tools_schema innodb InnoDB
tools_ok "both: mysqltuner comes to its end" tune both.txt
tools_says "InnoDB: what its tables hold" 'Data in InnoDB tables: [0-9.]+[KM].* \(Tables: 4\)' "$(<"$tools_directory/both.txt")"
if [ -n "${TOOLS_SHOW:-}" ]; then cat "$tools_directory/both.txt"; fi
tools_end
