#!/bin/bash
# The steps of `scripts/image.sh test`, inside of the unpacked image.
set -euo pipefail

LOG=/root/log
PID=

say() { printf 'image-test: %s\n' "$*"; }
fail() {
    printf 'image-test: FAILED: %s\n' "$*" >&2
    [ ! -s "$LOG" ] || tail -n 25 "$LOG" >&2
    exit 1
}

# start NAME=VALUE ... [-- argument ...]: as `docker run` would.
start() {
    local settings=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    [ $# = 0 ] || shift
    env ${settings[@]+"${settings[@]}"} pando-entrypoint "${@:-mariadbd}" >"$LOG" 2>&1 &
    PID=$!
}

healthy() {
    local i
    for i in $(seq 300); do
        # The server of the set-up is on the socket, too, so ask on the network's side as well.
        if pando-healthcheck >/dev/null 2>&1 && (exec 3<>/dev/tcp/127.0.0.1/3306) 2>/dev/null; then return 0; fi
        kill -0 "$PID" 2>/dev/null || fail "the container ended"
        sleep 0.2
    done
    fail "not healthy after 60 s ($i)"
}

stop() {
    kill "$PID"
    wait "$PID" || fail "exit status $? after SIGTERM"
    if pando-healthcheck >/dev/null 2>&1; then fail "healthy without a server"; fi
}

refused() {
    wait "$PID" && fail "it starts"
    grep -qF -- "$1" "$LOG" || fail "it does not say: $1"
}

as() { mariadb --no-defaults -h127.0.0.1 -u"$1" ${2:+-p"$2"} -N -e "$3" 2>&1; }
expect() {
    local got
    got=$(as "$1" "$2" "$3") || true
    [ "$got" = "$4" ] || fail "$1: $3 gives \"$got\", not \"$4\""
}

empty() { find /var/lib/mysql -mindepth 1 -delete; }

say "nothing said about root's password"
start
refused 'set MARIADB_ROOT_PASSWORD'
[ -z "$(ls -A /var/lib/mysql)" ] || fail "it has written into the data directory"

say "accounts, a database, files of the user"
printf 'CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT) ENGINE=PANDO;\n' >/docker-entrypoint-initdb.d/1.sql
printf "INSERT INTO fruit VALUES (1, 'plum');\n" | gzip >/docker-entrypoint-initdb.d/2.sql.gz
printf 'echo from a script\n' >/docker-entrypoint-initdb.d/3.sh
secret="it's \\ \`\"secret"
printf '%s' "$secret" >/root/secret
chmod 644 /root/secret
chmod 755 /root
start MARIADB_ROOT_PASSWORD_FILE=/root/secret MARIADB_DATABASE=shop_1 MARIADB_USER=ann MARIADB_PASSWORD=pw
healthy
grep -q 'from a script' "$LOG" || fail "the script did not run"
expect ann pw 'SELECT name FROM shop_1.fruit' plum
expect ann pw "INSERT INTO shop_1.fruit VALUES (2, 'fig')" ''
expect root "$secret" 'SELECT COUNT(*) FROM shop_1.fruit' 2
as root wrong 'SELECT 1' >/dev/null && fail "a wrong password will do"
as ann pw 'CREATE DATABASE other' >/dev/null && fail "ann may do everything"
as ann pw 'CREATE DATABASE shopx1' >/dev/null && fail "the database's name is a pattern"
[ "$(ps -o user= -p "$PID" 2>/dev/null | tr -d ' ')" = mysql ] || fail "the server does not run as mysql"
stop

say "the volume again, with an option"
start -- --max-connections=33
healthy
expect ann pw 'SELECT COUNT(*), @@max_connections FROM shop_1.fruit' $'2\t33'
say "killed"
kill -9 "$PID"
wait "$PID" || true
start
healthy
expect ann pw 'SELECT COUNT(*) FROM shop_1.fruit' 2
stop

say "a set-up that does not end"
empty
printf 'SELEKT;\n' >/docker-entrypoint-initdb.d/1.sql
start MARIADB_ALLOW_EMPTY_ROOT_PASSWORD=1
refused 'SELEKT'
start MARIADB_ALLOW_EMPTY_ROOT_PASSWORD=1
refused 'an earlier set-up did not finish'
rm /docker-entrypoint-initdb.d/*
empty

say "a random password"
start MARIADB_RANDOM_ROOT_PASSWORD=1
healthy
expect root "$(sed -n 's/^pando-entrypoint: the password of root: //p' "$LOG")" 'SELECT 1' 1
stop
say "passed"
