#!/usr/bin/env bash
# phpMyAdmin in PHP's own web server, on a schema of each engine: its pages, its export, and its import of that into another schema.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
tools_debs phpmyadmin php-cli php-mysql php-mbstring php-xml phpmyadmin
tools_php phpmyadmin
tools_start
# A copy, as its configuration lies beside its program; links to libraries of JavaScript lead nowhere here and are left out.
site=$tools_directory/site
cp -r "$tools_root/usr/share/phpmyadmin" "$site"
mkdir "$tools_directory/pma"
sed -i -E "s#'/var/lib/phpmyadmin/tmp/'#'$tools_directory/pma/'#; s#'/etc/phpmyadmin/config.inc.php'#'$site/config.inc.php'#" "$site/libraries/vendor_config.php"
cat >"$site/config.inc.php" <<EOF
<?php
\$cfg['blowfish_secret'] = str_repeat('a', 32);
\$cfg['Servers'][1] = ['auth_type' => 'config', 'host' => 'localhost', 'socket' => '$tools_socket', 'user' => 'root', 'password' => '', 'AllowNoPassword' => true];
\$cfg['SendErrorReports'] = 'never';
\$cfg['PmaNoRelation_DisableWarning'] = true;
EOF
listen=127.0.0.1:$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"${php[@]}" -d session.save_path="$tools_directory/pma" -d upload_max_filesize=64M -d post_max_size=64M -d upload_tmp_dir="$tools_directory/pma" -S "$listen" -t "$site" >"$tools_directory/php.log" 2>&1 &
web=$!
trap 'kill "$web" 2>/dev/null || true; server_clean_up' EXIT

cookies=$tools_directory/cookies
page() {
    local route=$1
    shift
    curl -sSf --retry 20 --retry-connrefused --retry-delay 1 -b "$cookies" -c "$cookies" "$@" "http://$listen/index.php?route=$route&lang=en"
}
token=$(page / 2>/dev/null | sed -nE 's/.*name="token" value="([^"]+)".*/\1/p' | head -n 1)
[ -n "$token" ] || { page /; cat "$tools_directory/php.log"; die "no page"; }
tools_version "phpmyadmin $(sed -nE "s/.*VERSION = '([0-9.]+).*/\1/p" "$site/libraries/classes/Version.php" | head -n 1), PHP $("${php[@]}" -r 'echo PHP_VERSION;')"

export_to() {
    page /export -d "token=$token" -d "db=$1" -d export_type=database -d filename_template=@DATABASE@ -d compression=none -d export_method=quick -d quick_or_custom=quick -d what=sql \
        -d sql_structure_or_data=structure_and_data -d asfile=sendit -d "table_select[]=customer" -d "table_select[]=purchase" \
        -d "table_select[]=reading" -d "table_select[]=paid" -d "table_structure[]=customer" -d "table_structure[]=purchase" \
        -d "table_structure[]=reading" -d "table_structure[]=paid" -d "table_data[]=customer" -d "table_data[]=purchase" \
        -d "table_data[]=reading" -d sql_create_table=something -d sql_auto_increment=something -d sql_create_trigger=something \
        -d sql_create_view=something -d sql_insert_syntax=extended -d sql_relation=something -d sql_type=INSERT \
        -d sql_hex_for_binary=something -d sql_utc_time=something -d sql_backquotes=something -d output_format=sendit -d charset=utf-8 \
        -d sql_max_query_size=50000 >"$2" && grep -q 'INSERT INTO `purchase`' "$2"
}
import_from() {
    page /import -F "token=$token" -F "db=$1" -F import_type=database -F format=sql -F charset_of_file=utf-8 -F skip_queries=0 \
        -F sql_compatibility=NONE -F "import_file=@$2;type=application/sql" >"$3" && grep -q 'Import has been successfully finished' "$3"
}
for engine in PANDO InnoDB; do
    database=${engine,,} dump=$tools_directory/$engine.sql
    tools_schema "$database" "$engine"
    tools_ok "$engine: the page of the schema" page "/database/structure&db=$database" -o "$tools_directory/$engine-structure.html"
    tools_says "$engine: it names the engine" "^ *$engine *\$|>$engine<" "$(<"$tools_directory/$engine-structure.html")"
    for route in "/table/structure" "/table/relation" "/table/operations" "/sql&pos=0" "/table/search"; do
        tools_ok "$engine: the page $route of a table" page "$route&db=$database&table=purchase" -o "$tools_directory/$engine-$(tr -dc a-z <<<"$route").html"
    done
    tools_ok "$engine: export" export_to "$database" "$dump"
    tools_sql -e "CREATE DATABASE ${database}_copy"
    tools_ok "$engine: import into another schema" import_from "${database}_copy" "$dump" "$tools_directory/import.html"
    tools_same "$engine: the rows of the copy" "$(tools_count "${database}_copy".{customer,purchase,reading})" "$(tools_count "$database".{customer,purchase,reading})"
    tools_same "$engine: its engine" "$(tools_engine_of "${database}_copy.purchase")" "$engine"
    tools_same "$engine: its foreign keys" "$(tools_sql -e "SELECT COUNT(*) FROM information_schema.referential_constraints
        WHERE constraint_schema = '${database}_copy'")" 1
done
tools_ok "InnoDB: the page of relations offers foreign keys" grep -q 'ON DELETE' "$tools_directory/InnoDB-tablerelation.html"
tools_ok "PANDO: it does not, as it does not know the engine" tools_fails grep -q 'ON DELETE' "$tools_directory/PANDO-tablerelation.html"
tools_ok "PANDO: a foreign key by its page of SQL" page /import --fail -F "token=$token" -F db=pando -F import_type=query -F format=sql -F is_js_confirmed=0 \
    -F 'sql_query=CREATE TABLE child (id INT PRIMARY KEY, purchase BIGINT, FOREIGN KEY (purchase) REFERENCES purchase (id)) ENGINE=PANDO' \
    -o "$tools_directory/query.html"
tools_same "PANDO: it is there" "$(tools_sql -e "SELECT referenced_table_name FROM information_schema.referential_constraints
    WHERE constraint_schema = 'pando' AND table_name = 'child'")" purchase
tools_ok "the page of engines" page /server/engines/PANDO -o "$tools_directory/engine.html"
tools_ok "no error of PHP" tools_fails grep -E 'PHP (Fatal|Warning|Parse)' "$tools_directory/php.log"
if [ -n "${TOOLS_SHOW:-}" ]; then cp "$tools_directory"/*.{html,sql,log} "$TOOLS_SHOW"; fi
tools_end
