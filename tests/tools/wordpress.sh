#!/usr/bin/env bash
# WordPress on tables of each engine: installed, filled and read by its own functions (wordpress/blog.php), without a web server.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
tools_debs wordpress php-cli php-mysql php-mbstring php-xml php-getid3 -- wordpress
tools_php wordpress
blog=$tools_root/usr/share/wordpress
tools_version "wordpress $(sed -nE "s/^.wp_version = '(.*)';/\1/p" "$blog/wp-includes/version.php"), PHP $("${php[@]}" -r 'echo PHP_VERSION;')"
tools_start
step() { "${php[@]}" "$tools_here/wordpress/blog.php" "$1" "$blog" "$tools_socket" "$2"; }
# Its last line says that it came to its end; warnings of PHP, which would stand before it, are failures.
steps_end() { [ "$(step "$1" "$2" | tee /dev/stderr)" = "$3" ]; }
for engine in PANDO InnoDB; do
    database=wp_${engine,,}
    # WordPress names no engine.
    tools_sql -e "SET GLOBAL default_storage_engine = $engine; CREATE DATABASE $database"
    tools_ok "$engine: WordPress makes its tables" steps_end install "$database" installed
    tools_same "$engine: all are of the engine" "$(tools_sql -e "SELECT GROUP_CONCAT(DISTINCT engine), COUNT(*) FROM information_schema.tables
        WHERE table_schema = '$database'")" "$(printf '%s\t12' "$engine")"
    tools_ok "$engine: posts, comments, users, options, a plugin's table" steps_end write "$database" written
    tools_ok "$engine: pages are read" step read "$database"
    step read "$database" >"$tools_directory/$engine.txt" 2>&1 || true
done
tools_ok "the pages are the same" diff "$tools_directory/PANDO.txt" "$tools_directory/InnoDB.txt"
if [ -n "${TOOLS_SHOW:-}" ]; then cat "$tools_directory/PANDO.txt"; fi
tools_end
