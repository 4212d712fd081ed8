# shellcheck shell=bash
# What the scripts of this folder share: programs at pinned versions, each in a folder of build/tools-work with a Python of its
# own. Sourced.
tools_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=scripts/private-server.sh
. "$tools_here/../../scripts/private-server.sh"
tools_work=$PANDO_BUILD/tools-work

# tools_install NAME PACKAGE VERSION: the source package, unpacked, and what NAME.requirements lists. Made once for each state of
# that list; what a broken-off run leaves is made anew. Sets tools_python and tools_source.
tools_install() {
    local package=$2 version=$3 dir=$tools_work/$1-$3 wanted=$tools_here/$1.requirements
    tools_python=$dir/python/bin/python
    tools_source=$dir/source
    if cmp -s "$wanted" "$dir/.made"; then return; fi
    rm -rf "$dir"
    mkdir -p "$dir"
    python3 -m venv "$dir/python"
    "$tools_python" -m pip install -q --disable-pip-version-check --no-deps -r "$wanted"
    # No build of its metadata: a source package is all that is wanted.
    "$tools_python" -m pip download -q --disable-pip-version-check --no-deps --no-build-isolation --no-binary "$package" \
        -d "$dir/sdist" "$package==$version"
    mkdir "$tools_source"
    tar xzf "$dir"/sdist/*.tar.gz --strip-components=1 -C "$tools_source"
    cp "$wanted" "$dir/.made"
}

# tools_server ENGINE: a private server whose default engine this is, with an empty folder. Sets tools_socket.
tools_server() {
    server_auto_stop
    server_temp_dir tools
    server_start "$REPLY" --default-storage-engine="$1" --pando-flush-log-at-trx-commit=2 --innodb-flush-log-at-trx-commit=2
    tools_directory=$REPLY
    # shellcheck disable=SC2034 # who sources this reads it
    tools_socket=$(server_socket "$tools_directory")
}

tools_check_engine() {
    case $1 in PANDO | InnoDB) ;; *) die "the engine is PANDO or InnoDB, not $1" ;; esac
}

# --- Programs that scripts of our own put to work (run.sh runs these) -----------------------
#
# Such a script says what it tries with tools_ok and ends with tools_end: status 0 if all held, 1 if not, 77 if the program's
# package cannot be had.

tools_failed=0

# tools_ok WHAT COMMAND ...: one line; ok if the command succeeds. What it prints is shown where it fails.
tools_ok() {
    local what=$1 out
    shift
    if out=$("$@" 2>&1); then
        say "ok      $what"
    else
        say "FAILED  $what"
        tail -n 20 <<<"$out" | sed 's/^/        /'
        tools_failed=$((tools_failed + 1))
    fi
}

# tools_same WHAT A B: ok if both are the same and not empty.
tools_same() { tools_ok "$1" _tools_same "$2" "$3"; }
_tools_same() {
    [ -n "$1" ] && [ "$1" = "$2" ] && return
    printf 'not the same:\n%s\n---\n%s\n' "$1" "$2"
    return 1
}

# tools_says WHAT PATTERN TEXT: ok if a line of the text has the pattern (grep -E).
tools_says() { tools_ok "$1" _tools_says "$2" "$3"; }
_tools_says() {
    grep -qE -- "$1" <<<"$2" && return
    printf 'no line with %s in:\n%s\n' "$1" "$2"
    return 1
}

tools_fails() { ! "$@"; }

tools_version() { say "version $*"; }

tools_skip() {
    say "skipped $*"
    exit 77
}

tools_end() {
    if [ "$tools_failed" = 0 ]; then exit 0; fi
    say "$tools_failed checks failed"
    exit 1
}

# tools_debs NAME PACKAGE ... [-- PACKAGE ...]: Debian packages, unpacked into a folder and not installed: with the packages that
# they need and the system lacks; those behind -- alone. Sets tools_root, PATH, LD_LIBRARY_PATH and PERL5LIB.
tools_debs() {
    local dir=$tools_work/$1 wanted="$*" all=() alone=() package
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do all+=("$1"); shift; done
    if [ $# -gt 0 ]; then alone=("${@:2}"); fi
    tools_root=$dir/root
    if [ "$wanted" != "$(cat "$dir/.made" 2>/dev/null)" ]; then
        rm -rf "$dir"
        mkdir -p "$dir/debs" "$tools_root"
        # apt simulates an installation and says which packages it would add.
        (
            cd "$dir/debs"
            apt-get -s install --no-install-recommends ${all[@]+"${all[@]}"} >plan 2>&1 &&
                mapfile -t all < <(sed -nE 's/^Inst ([^ ]+) .*/\1/p' plan) &&
                { [ ${#all[@]} = 0 ] && [ ${#alone[@]} = 0 ] ||
                    apt-get -qq -o APT::Sandbox::User=root download ${all[@]+"${all[@]}"} ${alone[@]+"${alone[@]}"} >>plan 2>&1; }
        ) || { tail -n 5 "$dir/debs/plan"; tools_skip "no package ${all[*]} ${alone[*]}"; }
        for package in "$dir"/debs/*.deb; do
            if [ -f "$package" ]; then dpkg -x "$package" "$tools_root"; fi
        done
        rm -rf "$dir/debs"
        printf '%s' "$wanted" >"$dir/.made"
    fi
    export PATH=$tools_root/usr/bin:$tools_root/usr/sbin:$PATH
    LD_LIBRARY_PATH=$(printf '%s:' "$tools_root"/{usr/lib,lib}/*-linux-*)${LD_LIBRARY_PATH:-}
    PERL5LIB=$tools_root/usr/share/perl5:$(printf '%s:' "$tools_root"/usr/lib/*-linux-*/perl5/*)
    export LD_LIBRARY_PATH
    export PERL5LIB
}

# tools_php NAME: sets `php` to the command of PHP from the packages of tools_debs, with the extensions in them.
tools_php() {
    local program=$tools_root/usr/bin/php8.2 ini=$tools_work/php-$1.ini
    if [ ! -x "$program" ]; then php=(php); return; fi
    printf 'extension_dir = %s\nmemory_limit = 512M\ninclude_path = .:%s\n' "$(echo "$tools_root"/usr/lib/php/2*)" "$tools_root/usr/share/php" >"$ini"
    # Each has its priority in its first lines.
    grep -HoE 'priority=[0-9]+' "$tools_root"/usr/share/php8.2-*/*/*.ini | sort -t= -k2n | cut -d : -f 1 |
        while read -r extension; do grep -E '^(zend_)?extension=' "$extension"; done | grep -v opcache >>"$ini"
    # shellcheck disable=SC2034 # who sources this reads it
    php=("$program" -c "$ini")
    export PHP_INI_SCAN_DIR=
}

# tools_start [mariadbd option ...]: a private server with a binary log, both engines, and a TCP port of this machine only, for
# clients that know no sockets: user tools, password tools. Sets tools_directory, tools_socket and tools_port. May be called again
# for another server.
tools_start() {
    server_auto_stop
    server_temp_dir tools
    tools_directory=$REPLY
    tools_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    server_start "$tools_directory" --skip-networking=0 --bind-address=127.0.0.1 --port="$tools_port" --skip-name-resolve \
        --server-id=1 --log-bin=binlog --binlog-format=ROW --pando-flush-log-at-trx-commit=2 \
        --innodb-flush-log-at-trx-commit=2 "$@"
    # shellcheck disable=SC2034
    tools_socket=$(server_socket "$tools_directory")
    tools_sql -e "GRANT ALL ON *.* TO tools@127.0.0.1 IDENTIFIED BY 'tools' WITH GRANT OPTION"
}

tools_sql() { server_sql "$tools_directory" -BN "$@"; }

# tools_count TABLE ...: rows and checksum of each; the same for the same rows on either engine.
tools_count() {
    local table
    for table in "$@"; do
        tools_sql -e "SELECT COUNT(*) FROM $table; CHECKSUM TABLE $table EXTENDED" | cut -f 2 | paste -sd ' '
    done
}
tools_engine_of() {
    tools_sql -e "SELECT engine FROM information_schema.tables WHERE CONCAT(table_schema, '.', table_name) = '$1'"
}

# tools_schema DATABASE ENGINE: a schema with rows of many kinds: a parent with a foreign key to it, a partitioned table (and an empty one), a view,
# a trigger. 20,000 rows in the largest. Each table names its engine, as a replica does not learn the session's default.
tools_schema() {
    tools_sql -e "CREATE DATABASE $1" && tools_sql "$1" <<EOF
CREATE TABLE customer (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(60) NOT NULL, born DATE, note TEXT,
    balance DECIMAL(12,2) NOT NULL DEFAULT 0, extra BLOB, changed TIMESTAMP(3) NULL, UNIQUE KEY (name), KEY (born))
    ENGINE=$2;
INSERT INTO customer SELECT seq, CONCAT('name ', seq, ' 🌳 ü'), '1950-01-01' + INTERVAL seq DAY, REPEAT('note ', seq % 90), seq / 7,
    IF(seq % 5, UNHEX(MD5(seq)), NULL), '2026-01-01' + INTERVAL seq SECOND FROM seq_1_to_2000;
CREATE TABLE purchase (id BIGINT AUTO_INCREMENT PRIMARY KEY, customer INT UNSIGNED NOT NULL, at DATETIME NOT NULL,
    state ENUM('new', 'paid', 'sent') NOT NULL, price DOUBLE, doc JSON, KEY (at), KEY (state, customer),
    CONSTRAINT purchase_of FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE) ENGINE=$2;
INSERT INTO purchase SELECT seq, 1 + seq % 2000, '2026-01-01' + INTERVAL seq MINUTE, 1 + seq % 3, SQRT(seq),
    JSON_OBJECT('n', seq) FROM seq_1_to_20000;
CREATE TABLE reading (sensor INT, at DATETIME, value FLOAT, PRIMARY KEY (sensor, at)) ENGINE=$2
    PARTITION BY RANGE (TO_DAYS(at)) (PARTITION p1 VALUES LESS THAN (TO_DAYS('2026-01-08')), PARTITION p2 VALUES LESS THAN MAXVALUE);
INSERT INTO reading SELECT seq % 10, '2026-01-01' + INTERVAL seq MINUTE, seq / 4 FROM seq_1_to_15000;
CREATE TABLE nothing LIKE reading;
CREATE VIEW paid AS SELECT customer, COUNT(*) AS n FROM purchase WHERE state = 'paid' GROUP BY customer;
CREATE TRIGGER purchase_before BEFORE INSERT ON purchase FOR EACH ROW SET NEW.price = IFNULL(NEW.price, 0);
EOF
}
