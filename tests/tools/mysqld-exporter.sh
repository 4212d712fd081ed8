#!/usr/bin/env bash
# prometheus-mysqld-exporter: all of PANDO's counters and variables come out, and tables of either engine.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
tools_debs mysqld-exporter prometheus-mysqld-exporter
tools_version mysqld-exporter "$(prometheus-mysqld-exporter --version 2>&1 | sed -nE 's/^mysqld_exporter, version ([0-9.]+).*/\1/p')"
tools_start
tools_schema pando PANDO
tools_schema innodb InnoDB

page=$tools_directory/metrics
listen=127.0.0.1:$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
DATA_SOURCE_NAME="root@unix($tools_socket)/" prometheus-mysqld-exporter --web.listen-address="$listen" --collect.info_schema.tables \
    --collect.info_schema.processlist --collect.info_schema.innodb_metrics --collect.engine_innodb_status \
    --collect.auto_increment.columns >"$tools_directory/exporter.log" 2>&1 &
exporter=$!
trap 'kill "$exporter" 2>/dev/null || true; server_clean_up' EXIT
read_page() { curl -sSf --retry 20 --retry-connrefused --retry-delay 1 "http://$listen/metrics" >"$page"; }
tools_ok "the exporter answers" read_page
tools_says "it reaches the server" '^mysql_up 1$' "$(grep '^mysql_up' "$page")"
tools_ok "no collector fails" tools_fails grep -E '^mysql_exporter_collector_success.* 0$' "$page"

# Prometheus has numbers only; a text (names of what holds the log) is no metric.
wanted=$(tools_sql -e "SHOW GLOBAL STATUS LIKE 'Pando%'" | awk '$2 ~ /^[0-9.]+$/ {print "mysql_global_status_" tolower($1)}' | sort)
tools_same "PANDO: each counter is a metric" "$(grep -oE '^mysql_global_status_pando[a-z0-9_]*' "$page" | sort -u | comm -12 - <(echo "$wanted"))" "$wanted"
wanted=$(tools_sql -e "SHOW GLOBAL VARIABLES LIKE 'pando%'" | awk '$2 ~ /^([0-9.]+|ON|OFF)$/ {print "mysql_global_variables_" $1}' | sort)
tools_same "PANDO: each variable with a number is a metric" \
    "$(grep -oE '^mysql_global_variables_pando[a-z0-9_]*' "$page" | sort -u | comm -12 - <(echo "$wanted"))" "$wanted"
used=$(grep -rhoE 'mysql_global_(status|variables)_pando[a-z0-9_]*' "$PANDO_ROOT/packaging/monitoring" | sort -u)
tools_same "PANDO: what the dashboard and the rules ask for is there" "$(grep -oE '^mysql_global_(status|variables)_pando[a-z0-9_]*' "$page" | sort -u |
    comm -12 - <(echo "$used"))" "$used"
for engine in PANDO InnoDB; do
    tools_same "$engine: tables with size and rows" "$(grep -cE "^mysql_info_schema_table_(rows|size)\{.*schema=\"${engine,,}\"" "$page")" \
        "$(grep -cE '^mysql_info_schema_table_(rows|size)\{.*schema="innodb"' "$page")"
    tools_says "$engine: values of AUTO_INCREMENT" ' (20001|[0-9.]+e\+.*)$' \
        "$(grep -E "^mysql_info_schema_auto_increment_column\{.*schema=\"${engine,,}\",table=\"purchase\"" "$page")"
done
tools_same "PANDO: an empty partitioned table has no rows" "$(sed -nE 's/^mysql_info_schema_table_rows\{schema="pando",table="nothing"\} //p' "$page")" 0
tools_end
