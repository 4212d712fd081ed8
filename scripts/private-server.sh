#!/usr/bin/env bash
# Private MariaDB servers with the plugin loaded: each in a directory of its own, reached through a
# socket in it, with no network port, and with no effect on any other server of the machine.
#
# As a command:
#   scripts/private-server.sh start DIR [mariadbd option ...]   creates DIR on first use
#   scripts/private-server.sh stop | kill | restart | status | socket DIR
#   scripts/private-server.sh sql DIR [mariadb client option ...]
#
# As a library (source it; the functions are the section "For callers"):
#   server_auto_stop                        whatever happens, nothing is left behind
#   server_start "$dir" --innodb-buffer-pool-size=1G
#   server_sql "$dir" -e 'SELECT 1'
#   server_kill "$dir"; server_restart "$dir"
#
# Environment:
#   PANDO_PLUGIN                  the plugin file (build/ha_pando.so); `none` starts without it
#   PANDO_SERVER_START_SECONDS    how long a start (with its recovery) may take (300)
#   PANDO_SERVER_STOP_SECONDS     how long a stop may take before the server is killed (300)
#
# In DIR: data/ (the datadir), plugins/ (links to stock plugins, so that for example
# --plugin-load-add=ha_rocksdb.so works, and our plugin), tmp/, error.log, pid, options.
#
# A sourcing script has said `set -euo pipefail` itself.
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Directories of servers this shell started, for server_auto_stop.
PANDO_SERVERS=()
PANDO_TEMP_DIRS=()

# --- internals ----------------------------------------------------------------------------

# The server refuses unnecessary questions of root without this.
_server_user_option() { if [ "$(id -u)" = 0 ]; then printf -- '--user=root\n'; fi; }

# The address of a unix socket has room for 107 bytes.
server_socket() {
    local dir socket
    dir=$(realpath -m "$1")
    socket=$dir/mariadb.sock
    if [ ${#socket} -gt 100 ]; then
        socket=/tmp/pando-$(printf '%s' "$dir" | cksum | cut -d ' ' -f 1).sock
    fi
    printf '%s\n' "$socket"
}

# A datadir as mariadb-install-db leaves it takes a moment to make; make it once for each version
# of the server and copy it from then on.
_server_template() {
    local version template
    version=$(mariadbd --no-defaults --version | sed 's/.*Ver \([^ ]*\).*/\1/')
    template=$PANDO_BUILD/datadir-$version
    if [ ! -d "$template" ]; then
        mkdir -p "$PANDO_BUILD"
        (
            flock 7
            [ ! -d "$template" ] || exit 0
            rm -rf "$template.partial"
            # shellcheck disable=SC2046  # no word at all when not root
            mariadb-install-db --no-defaults $(_server_user_option) --datadir="$template.partial" \
                --auth-root-authentication-method=normal --skip-test-db >"$template.log" 2>&1 ||
                { tail -n 20 "$template.log" >&2; die "mariadb-install-db failed"; }
            mv "$template.partial" "$template"
            rm -f "$template.log"
        ) 7>"$PANDO_BUILD/.datadir-lock"
    fi
    printf '%s\n' "$template"
}

_server_create() {
    local dir=$1 template
    template=$(_server_template)
    rm -rf "$dir/data.partial"
    # The empty redo log is most of the template: keep it a hole.
    cp -a --sparse=always --reflink=auto "$template" "$dir/data.partial"
    mv "$dir/data.partial" "$dir/data"
}

_server_plugin() {
    local plugin=${PANDO_PLUGIN:-$PANDO_BUILD/ha_pando.so}
    if [ "$plugin" = none ]; then return 0; fi
    [ -f "$plugin" ] || die "no plugin at $plugin; run make build"
    printf '%s\n' "$plugin"
}

_server_show_log() {
    warn "--- the end of $1/error.log"
    tail -n 30 "$1/error.log" >&2 || true
    warn "---"
}

# Ready means: it answers, and has our engine. A plugin that fails to load does not stop a server.
_server_wait_ready() {
    local dir=$1 plugin=$2 socket deadline
    socket=$(server_socket "$dir")
    deadline=$((SECONDS + ${PANDO_SERVER_START_SECONDS:-300}))
    until mariadb-admin --no-defaults --socket="$socket" --user=root ping >/dev/null 2>&1; do
        if ! server_running "$dir"; then
            _server_show_log "$dir"
            warn "the server in $dir died while starting"
            return 1
        fi
        if [ $SECONDS -ge $deadline ]; then
            _server_show_log "$dir"
            warn "the server in $dir did not answer in time; killing it"
            server_kill "$dir"
            return 1
        fi
        sleep 0.05
    done
    if [ -n "$plugin" ] && [ -z "$(server_sql "$dir" -BNe \
        "SELECT 1 FROM information_schema.engines WHERE engine = 'PANDO' AND support <> 'NO'")" ]; then
        _server_show_log "$dir"
        warn "the server in $dir runs, but without the engine; stopping it"
        server_stop "$dir"
        return 1
    fi
}

# The process has ended altogether and waits only for its parent to ask how.
_server_is_zombie() {
    local tasks
    grep -q '^State:[[:space:]]*[ZX]' "/proc/$1/status" 2>/dev/null || [ ! -d "/proc/$1" ] || return 1
    tasks=$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)
    [ "$tasks" -le 1 ]
}

# In a session of its own, so that a ^C meant for the caller reaches its clean-up, not the server.
# The subshell sees to it that setsid need not fork and that $! is the server itself.
_server_launch() {
    local dir=$1
    shift
    (
        set +m
        # shellcheck disable=SC2046
        setsid mariadbd --no-defaults $(_server_user_option) "$@" \
            </dev/null >>"$dir/error.log" 2>&1 7>&- 8>&- 9>&- &
        printf '%s\n' $! >"$dir/pid"
        # For a moment it is still this shell; whoever looks must see the server or nothing.
        while [ -d "/proc/$!" ] && [ "$(cat "/proc/$!/comm" 2>/dev/null)" != mariadbd ]; do
            if _server_is_zombie $!; then break; fi
            sleep 0.01
        done
    )
}

_server_wait_gone() {
    local dir=$1 deadline=$((SECONDS + $2))
    while server_running "$dir"; do
        if [ $SECONDS -ge $deadline ]; then return 1; fi
        sleep 0.05
    done
    rm -f "$dir/pid" "$(server_socket "$dir")"
}

# --- For callers --------------------------------------------------------------------------

server_pid() { cat "$1/pid" 2>/dev/null; }

# Alive, and the very server of this directory (the number could have gone to someone else). A killed
# server counts until its last thread has let go of its files; a zombie, which in a container
# nobody may reap, does not count.
server_running() {
    local dir pid command
    dir=$(realpath -m "$1")
    pid=$(server_pid "$dir") || return 1
    [ -n "$pid" ] && [ -d "/proc/$pid" ] || return 1
    command=$(tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline") || return 1
    if [ -n "$command" ]; then
        grep -qxF -- "--datadir=$dir/data" <<<"$command"
    else
        if _server_is_zombie "$pid"; then return 1; fi
    fi
}

# server_start DIR [mariadbd option ...]: returns when the server answers. The options are kept for
# server_restart. Own options come last, so they win.
server_start() {
    local dir plugin options=()
    dir=$(realpath -m "$1")
    shift
    if server_running "$dir"; then
        warn "a server already runs in $dir"
        return 1
    fi
    command -v mariadbd >/dev/null || die "no mariadbd; run scripts/setup.sh"
    plugin=$(_server_plugin)
    mkdir -p "$dir/tmp"
    [ -d "$dir/data" ] || _server_create "$dir"
    fill_plugin_dir "$dir/plugins" "$plugin"
    printf '%s\0' "$@" >"$dir/options"
    options=(--datadir="$dir/data" --socket="$(server_socket "$dir")" --tmpdir="$dir/tmp"
        --log-error="$dir/error.log" --pid-file="$dir/server.pid" --skip-networking
        --character-set-server=utf8mb4 --collation-server=utf8mb4_general_ci
        --plugin-dir="$dir/plugins" --plugin-maturity=unknown)
    if [ -n "$plugin" ]; then options+=(--plugin-load-add=ha_pando.so); fi
    PANDO_SERVERS+=("$dir")
    _server_launch "$dir" "${options[@]}" "$@"
    _server_wait_ready "$dir" "$plugin"
}

# TERM and wait; KILL if it takes too long. No error when none runs.
server_stop() {
    local dir pid
    dir=$(realpath -m "$1")
    server_running "$dir" || return 0
    pid=$(server_pid "$dir")
    kill -TERM "$pid" 2>/dev/null || true
    if ! _server_wait_gone "$dir" "${PANDO_SERVER_STOP_SECONDS:-300}"; then
        warn "the server in $dir did not stop in time; killing it"
        server_kill "$dir"
        return 1
    fi
}

# kill -9: what a crash test does.
server_kill() {
    local dir
    dir=$(realpath -m "$1")
    server_running "$dir" || return 0
    kill -KILL "$(server_pid "$dir")" 2>/dev/null || true
    _server_wait_gone "$dir" 300
}

# server_restart DIR [mariadbd option ...]: stops it if it runs and starts it on the same data; with
# the options of the last start unless others are given.
server_restart() {
    local dir options=()
    dir=$(realpath -m "$1")
    shift
    if [ $# -gt 0 ]; then options=("$@"); else mapfile -d '' -t options <"$dir/options"; fi
    if [ ${#options[@]} = 1 ] && [ -z "${options[0]}" ]; then options=(); fi
    server_stop "$dir"
    server_start "$dir" ${options[@]+"${options[@]}"}
}

# server_sql DIR [mariadb client option ...]
server_sql() {
    local dir=$1
    shift
    mariadb --no-defaults --socket="$(server_socket "$dir")" --user=root --default-character-set=utf8mb4 "$@"
}

# server_temp_dir NAME: sets REPLY to a new directory that server_auto_stop removes. Not printed,
# because a command substitution is another shell and would forget it.
server_temp_dir() {
    REPLY=$(mktemp -d "${TMPDIR:-/tmp}/pando-$1.XXXXXX")
    PANDO_TEMP_DIRS+=("$REPLY")
}

# Kills (nobody needs their data any more) what this shell started and removes its directories.
server_clean_up() {
    local dir
    for dir in ${PANDO_SERVERS[@]+"${PANDO_SERVERS[@]}"}; do
        server_kill "$dir" || true
    done
    for dir in ${PANDO_TEMP_DIRS[@]+"${PANDO_TEMP_DIRS[@]}"}; do
        rm -rf "$dir"
    done
    PANDO_SERVERS=()
    PANDO_TEMP_DIRS=()
}

# However the calling script ends, its servers end too.
server_auto_stop() {
    trap server_clean_up EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# --- the command --------------------------------------------------------------------------

_server_usage() {
    sed -n '5,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
}

_server_main() {
    [ $# -ge 2 ] || _server_usage
    local command=$1 dir=$2
    shift 2
    case $command in
        start) server_start "$dir" "$@" && say "ready: mariadb --no-defaults -uroot -S $(server_socket "$dir")" ;;
        stop) server_stop "$dir" ;;
        kill) server_kill "$dir" ;;
        restart) server_restart "$dir" "$@" ;;
        sql) server_sql "$dir" "$@" ;;
        socket) server_socket "$dir" ;;
        status)
            if server_running "$dir"; then say "running, pid $(server_pid "$dir")"; else say "not running"; return 1; fi
            ;;
        *) _server_usage ;;
    esac
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -euo pipefail
    _server_main "$@"
fi
