#!/usr/bin/env bash
# Rows without a server: pando export loads back as it was, also after kill -9; pando salvage gives what is not damaged.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=scripts/private-server.sh
. "$root/scripts/private-server.sh"
server_auto_stop

dir=$(server_temp_dir)
tool=${PANDO_TOOL:-}
if [ -z "$tool" ]; then
    (cd "$root" && cargo build -q -p pando-cli)
    tool=${CARGO_TARGET_DIR:-$root/target}/debug/pando
fi
sql() { server_sql "$dir" --batch --skip-column-names "$@"; }
