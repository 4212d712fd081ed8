# shellcheck shell=bash
# What every script here needs: where the project is, and how to speak and stop.
# Sourced, never run; the caller has already said `set -euo pipefail`.

PANDO_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# Another directory for a second server version from the same tree (scripts/debian13.sh).
PANDO_BUILD=${PANDO_BUILD:-$PANDO_ROOT/build}
# The one server source tree that headers, engines to read and test suites come from.
# shellcheck disable=SC2034  # for the scripts that source this
PANDO_SERVER_SOURCE=$PANDO_BUILD/mariadb-src

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# rustup puts cargo where only login shells look.
find_cargo() {
    if ! command -v cargo >/dev/null && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
        PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
    fi
    command -v cargo >/dev/null
}

# Where the server's own plugins are; stock engines are linked from there.
stock_plugin_dir() {
    local dir
    for dir in /usr/lib/mysql/plugin /usr/lib/*/mariadb*/plugin /usr/lib/*/mysql/plugin; do
        if [ -d "$dir" ]; then
            printf '%s\n' "$dir"
            return 0
        fi
    done
    return 1
}

# Fill directory $1 with links to the stock plugins and with the plugin file $2 (may be empty).
# A hard link, because a rebuild renames a new file into place: a server that is restarted
# between two refreshes keeps the very code it ran before.
fill_plugin_dir() {
    local dir=$1 plugin=$2 stock
    mkdir -p "$dir"
    if stock=$(stock_plugin_dir); then
        ln -sfn "$stock"/*.so "$dir"/
    fi
    rm -f "$dir/ha_pando.so"
    if [ -n "$plugin" ]; then
        ln -f "$plugin" "$dir/ha_pando.so" 2>/dev/null || cp "$plugin" "$dir/ha_pando.so"
    fi
}
