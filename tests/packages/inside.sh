#!/bin/bash
# The steps of scripts/packages-test.sh, inside of the new system, which has the packages in /packages, and in /server those of the
# server if it is not to come from the archive.
# Not for any other system: it installs, removes and purges packages.
set -euo pipefail

SOCKET=/run/mysqld/packages-test.sock
LOG=/root/error.log
OUT=/root/out
SERVER_PID=

say() { printf 'packages-test: %s\n' "$*"; }
fail() {
    printf 'packages-test: FAILED: %s\n' "$*" >&2
    [ ! -s "$OUT" ] || { printf -- '--- output\n'; tail -n 25 "$OUT"; } >&2
    [ ! -s "$LOG" ] || { printf -- '--- error log\n'; tail -n 25 "$LOG"; } >&2
    exit 1
}

# Runs a command, keeps what it says.
run() { "$@" >"$OUT" 2>&1 || fail "$*"; }
says() { grep -qE -- "$1" "${2:-$OUT}" || fail "${2:-the output} does not say: $1"; }

sql() { mariadb --socket="$SOCKET" -uroot -N -e "$1" 2>&1; }
expect() {
    local got
    got=$(sql "$1") || true
    [ "$got" = "$2" ] || fail "$1 gives \"$got\", not \"$2\""
}

refuses() {
    if sql "$1" >"$OUT"; then fail "$1 succeeds"; fi
    says "^ERROR .*$2"
}

# The server as Debian configures it, but for the socket.
start_server() {
    local program=${1:-/usr/sbin/mariadbd} i
    : >"$LOG"
    install -d -o mysql -g mysql /run/mysqld
    "$program" --user=mysql --skip-networking --socket="$SOCKET" --pid-file=/run/mysqld/packages-test.pid \
        "${@:2}" >>"$LOG" 2>&1 &
    SERVER_PID=$!
    for i in $(seq 300); do
        if sql 'SELECT 1' >/dev/null; then return 0; fi
        kill -0 "$SERVER_PID" 2>/dev/null || fail "the server did not start"
        sleep 0.2
    done
    fail "the server does not answer after 60 s ($i tries)"
}

stop_server() {
    kill "$SERVER_PID"
    wait "$SERVER_PID" || fail "the server did not stop cleanly"
}

tables_are_there() {
    [ -f /var/lib/mysql/.pando/catalog.pando ] && [ -f /var/lib/mysql/shop/orders.pando/main.pando ] ||
        fail "the tables' files are gone"
}

rows_are_there() { expect 'SELECT COUNT(*), SUM(n) FROM shop.orders' $'1000\t500500'; }

# --- steps --------------------------------------------------------------------------------

VERSION=$(dpkg-deb -f /packages/mariadb-plugin-pando_*.deb Depends | grep -o 'mariadb-server (= [^)]*' | sed 's/.*= //')
UPSTREAM=$(sed 's/^[0-9]*://; s/[-+].*//' <<<"$VERSION")

install_packages() {
    local part server=()
    run apt-get -qq update
    if apt-cache policy mariadb-server | grep -qF "Candidate: $VERSION"; then
        say "installing the packages, and with them MariaDB $VERSION"
    else
        say "installing the packages and MariaDB $VERSION, which is not the newest"
        # apt proposes the newest server only, and says so.
        if apt-get -s install /packages/mariadb-plugin-pando_*.deb >"$OUT" 2>&1; then fail "apt takes another server"; fi
        says "mariadb-plugin-pando : Depends: mariadb-server \(= $(sed 's/[+.]/\\&/g' <<<"$VERSION")\)"
        if [ -d /server ]; then
            server=(/server/*.deb)
        else
            for part in server server-core client client-core; do server+=("mariadb-$part=$VERSION"); done
        fi
    fi
    run apt-get -qq install -y --no-install-recommends /packages/*.deb ${server[@]+"${server[@]}"}
    says 'Pando: restart the server to load the engine'
    [ "$(dpkg-query -W -f '${Version}' mariadb-server-core)" = "$VERSION" ] || fail "not MariaDB $VERSION"
}

use_it() {
    say "a table, rows, a restart"
    start_server
    expect "SELECT SUPPORT FROM information_schema.ENGINES WHERE ENGINE = 'PANDO'" YES
    expect 'CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT, KEY (n)) ENGINE=PANDO' ''
    expect 'INSERT INTO shop.orders SELECT seq, seq FROM shop.seq_1_to_1000' ''
    rows_are_there
    stop_server
    start_server
    rows_are_there
    stop_server
    if grep -E '\[ERROR\]' "$LOG"; then fail "errors in the log"; fi
}

settings() {
    local name
    say "every setting of pando.cnf is a variable of the server, with that default"
    cp /etc/mysql/mariadb.conf.d/pando.cnf /root/pando.cnf
    sed -i 's/^#loose_/loose_/' /etc/mysql/mariadb.conf.d/pando.cnf
    start_server
    if grep -iE 'unknown (variable|option)|ambiguous' "$LOG"; then fail "pando.cnf has settings that the server does not know"; fi
    expect 'SELECT @@pando_memory' $((1 << 30))
    stop_server
    sed -i 's/^loose_/#loose_/' /etc/mysql/mariadb.conf.d/pando.cnf
    cmp -s /root/pando.cnf /etc/mysql/mariadb.conf.d/pando.cnf || fail "pando.cnf did not come back"
    start_server
    for name in $(sed -n 's/^#loose_\([a-z_]*\) = .*/\1/p' /root/pando.cnf); do
        expect "SELECT VARIABLE_NAME = '$name' FROM information_schema.SYSTEM_VARIABLES WHERE VARIABLE_NAME = '$name'" 1
        [ "$name" = pando_memory ] ||
            expect "SELECT GLOBAL_VALUE = DEFAULT_VALUE FROM information_schema.SYSTEM_VARIABLES
                    WHERE VARIABLE_NAME = '$name'" 1
    done
    stop_server
}

tools() {
    local file
    say "pando, pando-bench, man pages, completions"
    run pando verify /var/lib/mysql/shop/orders.pando
    says 'main.pando: ok'
    run pando-bench list
    run pando-bench --version
    # minbase leaves out man pages.
    for file in /packages/*.deb; do
        dpkg-deb -c "$file" | grep -oE '\./usr/share/(man|fish|zsh|bash).*[^/]$' || true
    done >"$OUT"
    for file in man7/mariadb-plugin-pando.7.gz man1/pando.1.gz man1/pando-verify.1.gz man1/pando-bench.1.gz \
        man1/pando-bench-run.1.gz completions/pando completions/pando-bench _pando _pando-bench pando.fish; do
        says "/$file\$"
    done
    run bash -n /usr/share/bash-completion/completions/pando-bench
}

# What is installed can be upgraded only if there is something newer.
held_back() {
    OTHER=$(apt-cache madison mariadb-server | awk -F'|' '{ gsub(/ /, "", $2); print $2 }' | sort -V | tail -n 1)
    if [ "$OTHER" = "$VERSION" ]; then
        OTHER=
        say "NOT TESTED: the archive has no other version of MariaDB"
        return 0
    fi
    say "apt keeps MariaDB back, though there is $OTHER"
    run apt-get -s upgrade
    says 'kept back'
    says '^ .*mariadb-server'
    unchanged
    # Without a hold, full-upgrade removes the plugin to get the server.
    run apt-get -s full-upgrade
    says '^Remv mariadb-plugin-pando '
    run apt-mark hold mariadb-plugin-pando
    run apt-get -s full-upgrade
    says 'kept back'
    unchanged
    if apt-get -s install mariadb-server >"$OUT" 2>&1; then fail "apt upgrades the server"; fi
    says 'mariadb-plugin-pando : Depends: mariadb-server \(= '
    run apt-mark unhold mariadb-plugin-pando
}

unchanged() {
    if grep -E '^(Inst mariadb-server|Remv mariadb-plugin-pando)' "$OUT"; then fail "apt does not keep MariaDB back"; fi
}

remove_and_purge() {
    say "removing, purging, installing again"
    run apt-get -qq remove -y mariadb-plugin-pando
    says 'WARNING: /var/lib/mysql has PANDO tables: 1, for example'
    says '^  shop/orders$'
    tables_are_there
    # The settings are still there; the server says what it misses and starts.
    start_server
    says "ha_pando" "$LOG"
    refuses 'SELECT COUNT(*) FROM shop.orders' "Unknown storage engine 'PANDO'"
    stop_server
    run apt-get -qq purge -y mariadb-plugin-pando
    says "Pando: the tables' files stay"
    [ ! -e /etc/mysql/mariadb.conf.d/pando.cnf ] || fail "purge left pando.cnf"
    tables_are_there
    start_server
    if grep -E '\[ERROR\]' "$LOG"; then fail "errors in the log"; fi
    stop_server
    run apt-get -qq install -y --no-install-recommends /packages/mariadb-plugin-pando_*.deb
    start_server
    rows_are_there
    expect 'INSERT INTO shop.orders VALUES (1001, 0)' ''
    expect 'DELETE FROM shop.orders WHERE id = 1001' ''
    stop_server
}

c_example() {
    local how
    say "the C example"
    run apt-get -qq install -y --no-install-recommends gcc libc6-dev pkg-config
    cp /usr/share/doc/libpandodb-dev/examples/shop.c* /root/
    [ ! -f /root/shop.c.gz ] || gunzip /root/shop.c.gz
    printf '3000 is coffee\n2000 bread\n3000 coffee\n4000 dates\n' >/root/expected
    for how in dynamic static; do
        if [ $how = dynamic ]; then
            # shellcheck disable=SC2046  # words
            run gcc -std=c99 -D_XOPEN_SOURCE=700 -Wall -Wextra -Wpedantic -Werror /root/shop.c -o /root/shop \
                $(pkg-config --cflags --libs pandodb)
            ldd /root/shop >"$OUT"
            says 'libpandodb.so.0'
        else
            # shellcheck disable=SC2046
            run gcc /root/shop.c -o /root/shop $(pkg-config --cflags pandodb) -Wl,-Bstatic -lpandodb -Wl,-Bdynamic \
                $(pkg-config --static --libs-only-l pandodb | sed 's/-lpandodb//')
            ldd /root/shop >"$OUT"
            if grep libpandodb "$OUT"; then fail "not static"; fi
        fi
        rm -rf /root/shop.data
        run /root/shop /root/shop.data
        cmp "$OUT" /root/expected || fail "shop.c, $how, prints something else"
        if command -v valgrind >/dev/null; then
            rm -rf /root/shop.data
            run valgrind -q --error-exitcode=99 --log-file=/root/valgrind.log /root/shop /root/shop.data
            cmp "$OUT" /root/expected || fail "shop.c, $how, prints something else under valgrind"
        fi
    done
}

# By force, as nobody can do it with apt.
other_version() {
    [ -n "$OTHER" ] || return 0
    say "the server $OTHER and the plugin for $VERSION"
    (cd /root && run apt-get -qq download "mariadb-server-core=$OTHER")
    run dpkg-deb -x /root/mariadb-server-core_*.deb /root/other
    chmod 755 /root
    start_server /root/other/usr/sbin/mariadbd
    says "PANDO: this ha_pando.so was built for MariaDB $UPSTREAM and this is MariaDB" "$LOG"
    says 'API version for STORAGE ENGINE plugin PANDO not supported by this version of the server' "$LOG"
    grep -E 'PANDO|pando' "$LOG" | cut -c 1-400
    refuses 'SELECT COUNT(*) FROM shop.orders' "Unknown storage engine 'PANDO'"
    stop_server
    start_server
    rows_are_there
    stop_server
    tables_are_there
}

install_packages
use_it
settings
tools
held_back
remove_and_purge
c_example
other_version
say "passed"
