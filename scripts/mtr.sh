#!/usr/bin/env bash
# Runs suites of the server's test driver against the plugin.
#
#   scripts/mtr.sh                               every suite of ours, then the storage_engine suite
#   scripts/mtr.sh --suite pando [TEST ...]      one suite, or only some tests of it
#   scripts/mtr.sh --suite storage_engine        the server's own suite for engines, as far as
#                                                mariadb/mysql-test/overlay/storage_engine adapts it
#   scripts/mtr.sh --suite main [TEST ...]       a suite of the server with PANDO in place of InnoDB and
#                                                MyISAM: scripts/conformance.sh has the suites and how
#   scripts/mtr.sh --record --suite pando TEST   other options go to the driver as they are
#
# Our suites are mariadb/mysql-test/suite/*, overlays for suites of the server are
# mariadb/mysql-test/overlay/*, what adapts the server's suites that use the default engine is
# mariadb/mysql-test/default_engine/*.
#
# The driver looks for suites only below the directory it stands in, and for plugins only below
# the directories above that one. So build/mtr is a view of the installed driver made of links, with
# our suites and our plugin added:
#
#   build/mtr/{bin,sbin,share/mysql}            the installed server (11.8: share/mariadb)
#   build/mtr/lib/mysql/plugin/                 stock plugins and ha_pando.so
#   build/mtr/mysql-test/                       the driver
#   build/mtr/mysql-test/suite/                 its suites and ours
#   build/mtr/mysql-test/plugin/pando/          our overlays
#
# Environment: PANDO_PLUGIN (build/ha_pando.so), PANDO_MTR_PARALLEL (2), PANDO_TEST_ENGINE (PANDO).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# What the server's packages install, and the driver in it: of 10.11 or of 11.8.
INSTALLED=/usr/share/mysql
DRIVER_HOME=$INSTALLED/mysql-test
if [ -d /usr/share/mariadb/mariadb-test ]; then
    INSTALLED=/usr/share/mariadb
    DRIVER_HOME=$INSTALLED/mariadb-test
fi
OURS=$PANDO_ROOT/mariadb/mysql-test
VIEW=$PANDO_BUILD/mtr
# shellcheck source=scripts/conformance.sh
. "$(dirname "$0")/conformance.sh"

# mirror FROM TO NAME...: TO becomes a directory of links to the entries of FROM, except the named ones.
mirror() {
    local from=$1 to=$2 entry
    shift 2
    mkdir -p "$to"
    for entry in "$from"/*; do
        case " $* " in
            *" ${entry##*/} "*) ;;
            *) ln -sfn "$entry" "$to/" ;;
        esac
    done
}

# Nobody has refreshed the recorded results of the suite storage_engine for years: bring what every
# engine prints differently by now up to date in a copy, so that the overlay mostly tells how our engine
# differs. For the same reason the suite disables twelve of its tests for every engine; they run here.
copy_engine_suite() {
    local from=$DRIVER_HOME/suite/storage_engine to=$VIEW/mysql-test/suite/storage_engine
    # The stamp names the server's version and, by its time, this recipe's.
    if cmp -s "$PANDO_SERVER_SOURCE/.pando-version" "$to/.pando-version" &&
        [ "$to/.pando-version" -nt "$PANDO_ROOT/scripts/mtr.sh" ]; then return 0; fi
    rm -rf "$to"
    cp -r "$from" "$to"
    # In turn: SHOW CREATE TABLE names the collation, SHOW INDEX has a last column Ignored, and ANALYZE
    # TABLE of a whole table reports the server's own statistics first.
    find "$to" -name '*.result' -exec sed -i -E \
        -e 's/^(\) ENGINE=.* DEFAULT CHARSET=latin1)( |$)/\1 COLLATE=latin1_swedish_ci\2/' \
        -e 's/^(Table\tNon_unique\t.*\tIndex_comment)$/\1\tIgnored/' \
        -e 's/^(t[0-9]\t[01]\t([^\t]*\t){10}[^\t]*)$/\1\tNO/' {} +
    find "$to" -name '*.result' ! -path '*/parts/*' -exec sed -i -E \
        -e 's/^(test\.t[0-9]\tanalyze\tstatus\t)OK$/\1Engine-independent statistics collected\n&/' {} +
    rm "$to/disabled.def"
    cp "$PANDO_SERVER_SOURCE/.pando-version" "$to/"
}

# The installed server and its plugins with ours in directory $1.
link_server() {
    local view=$1 plugin=$2 multiarch
    mkdir -p "$view/share" "$view/lib"
    ln -sfn /usr/bin /usr/sbin "$view/"
    ln -sfn "$INSTALLED" "$view/share/"
    for multiarch in /usr/lib/*/libmariadb3; do
        mkdir -p "$view/lib/$(basename "$(dirname "$multiarch")")"
        ln -sfn "$multiarch" "$view/lib/$(basename "$(dirname "$multiarch")")/"
    done
    fill_plugin_dir "$view/lib/mysql/plugin" "$plugin"
}

# Our results were recorded with 10.11, whose driver makes the database of the tests with latin1; that of 11.8 takes utf8mb4 for it
# (mariadb/mysql-test/suite/*/suite.opt sets the servers' default).
link_driver() {
    local driver=mariadb-test-run.pl
    mirror "$DRIVER_HOME" "$VIEW/mysql-test" suite plugin var "$driver"
    rm -f "$VIEW/mysql-test/$driver"
    sed 's/DATABASE IF NOT EXISTS test CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_ai_ci/DATABASE IF NOT EXISTS test CHARACTER SET latin1 COLLATE latin1_swedish_ci/' \
        "$DRIVER_HOME/$driver" >"$VIEW/mysql-test/$driver"
    chmod 755 "$VIEW/mysql-test/$driver"
}

build_view() {
    local directory
    link_server "$VIEW" "$1"
    link_driver
    mirror "$DRIVER_HOME/suite" "$VIEW/mysql-test/suite" storage_engine engines
    mirror "$DRIVER_HOME/plugin" "$VIEW/mysql-test/plugin"
    copy_engine_suite

    mkdir -p "$VIEW/mysql-test/plugin/pando"
    find "$VIEW/mysql-test/suite" "$VIEW/mysql-test/plugin/pando" -xtype l -delete
    for directory in "$OURS"/suite/*/; do
        [ ! -d "$directory" ] || ln -sfn "${directory%/}" "$VIEW/mysql-test/suite/"
    done
    for directory in "$OURS"/overlay/*/; do
        [ ! -d "$directory" ] || ln -sfn "${directory%/}" "$VIEW/mysql-test/plugin/pando/"
    done
}

# What to ask the driver for. "name-pando" means: the suite as our overlay sees it; its
# sub-suites (parts, trx) are suites of their own.
driver_suites() {
    local suite=$1 sub names
    if [ -d "$OURS/overlay/$suite" ]; then
        names=$suite-pando
        for sub in "$OURS/overlay/$suite"/*/; do
            [ ! -d "$sub" ] || names+=,$suite/$(basename "$sub")-pando
        done
        printf '%s\n' "$names"
    else
        printf '%s\n' "$suite"
    fi
}

all_suites() {
    local directory suites=()
    for directory in "$OURS"/suite/*/ "$OURS"/overlay/*/; do
        [ ! -d "$directory" ] || suites+=("$(basename "$directory")")
    done
    printf '%s\n' ${suites[@]+"${suites[@]}"}
}

# Logs of failed runs stay until the next run; those of running ones are not touched.
remove_old_logs() {
    local directory
    for directory in "$PANDO_BUILD"/mtr-var/*/; do
        if [ -d "$directory" ] && ! kill -0 "$(basename "$directory" | cut -d. -f1)" 2>/dev/null; then rm -rf "$directory"; fi
    done
}

# The ids of all processes of this run: each names the run's directory on its command line.
processes_of_run() {
    local process
    for process in /proc/[0-9]*; do
        if tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -qF "$VAR"; then printf '%s\n' "${process#/proc/}"; fi
    done 2>/dev/null
}

# A driver that is told to end leaves workers and servers behind, so end those too: first
# politely, in the end surely.
stop_driver() {
    local signal pids
    if [ -n "$DRIVER" ]; then
        for signal in TERM TERM KILL; do
            mapfile -t pids < <(processes_of_run)
            if [ ${#pids[@]} = 0 ]; then break; fi
            kill "-$signal" "${pids[@]}" 2>/dev/null || true
            sleep 1
        done
    fi
    rm -rf "$TEMP"
}

run_driver() {
    local status=0
    VAR=$PANDO_BUILD/mtr-var/$$${RUN_NAME:+.$RUN_NAME}
    # Sockets are made here and their addresses have little room.
    TEMP=$(mktemp -d /tmp/pmtr.XXXXXX)
    DRIVER=
    mkdir -p "$VAR"
    trap stop_driver EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    cd "$VIEW/mysql-test"
    # --force: report all failures, not the first. Ports: the driver's register of port ranges in use
    # keeps runs that go side by side apart. Limits (minutes for a test, seconds for a server) are those of a hang on a slow machine.
    MTR_BUILD_THREAD=auto MTR_TESTCASE_TIMEOUT=${MTR_TESTCASE_TIMEOUT:-60} MTR_START_TIMEOUT=${MTR_START_TIMEOUT:-600} \
        MTR_SHUTDOWN_TIMEOUT=${MTR_SHUTDOWN_TIMEOUT:-120} perl ./mariadb-test-run.pl --vardir="$VAR" --tmpdir="$TEMP" \
        --parallel="${PANDO_MTR_PARALLEL:-2}" --force --max-test-fail=0 --retry=0 "$@" &
    DRIVER=$!
    wait "$DRIVER" || status=$?
    DRIVER=
    # What patching expected results leaves behind; after a failure its .reject files stay to be read.
    find "$OURS" -name '*.result~' -delete
    if [ "$status" = 0 ]; then
        find "$OURS" -name '*.reject' -delete
        rm -rf "$VAR"
    else
        warn "mtr: logs are in ${VAR#"$PANDO_ROOT"/}"
    fi
    return "$status"
}

main() {
    local plugin=${PANDO_PLUGIN:-$PANDO_BUILD/ha_pando.so} suites=() names=() options=() suite
    local engine=${PANDO_TEST_ENGINE:-PANDO} conformance=() status=0
    while [ $# -gt 0 ]; do
        case $1 in
            --suite) [ $# -ge 2 ] || die "--suite needs a name"; suites+=("$2"); shift ;;
            --suite=*) suites+=("${1#*=}") ;;
            -h | --help) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" | sed '/^set -euo/,$d'; exit 0 ;;
            *) options+=("$1") ;;
        esac
        shift
    done
    [ -x "$DRIVER_HOME/mariadb-test-run.pl" ] || die "no test driver; run scripts/setup.sh"
    [ -f "$plugin" ] || die "no plugin at $plugin; run make build"
    [ ${#suites[@]} -gt 0 ] || mapfile -t suites < <(all_suites)
    [ -n "${suites[*]}" ] || { say "mtr: no suites in mariadb/mysql-test"; exit 0; }
    remove_old_logs
    for suite in "${suites[@]}"; do
        if is_conformance_suite "$suite"; then conformance+=("$suite"); else names+=("$(driver_suites "$suite")"); fi
    done
    if [ ${#names[@]} -gt 0 ]; then
        build_view "$plugin"
        (run_driver --suite="$(IFS=,; printf '%s' "${names[*]}")" ${options[@]+"${options[@]}"}) || status=$?
    fi
    if [ ${#conformance[@]} -gt 0 ]; then
        VIEW=$PANDO_BUILD/mtr-${engine,,}
        build_conformance_view "$engine" "$VIEW" "${conformance[@]}"
        link_server "$VIEW" "$plugin"
        for suite in "${conformance[@]}"; do
            (run_conformance_suite "$suite" "$engine" ${options[@]+"${options[@]}"}) || status=$?
        done
    fi
    return "$status"
}

# One suite in one run of the driver, since they differ in their options.
run_conformance_suite() {
    local suite=$1 engine=$2 tests=() servers=() arguments=() argument
    shift 2
    mapfile -t servers < <(conformance_options "$suite" "$engine" | sed 's/^/--mysqld=--/')
    # Tests that are named replace the list.
    for argument in "$@"; do
        case $argument in --*) arguments+=("$argument") ;; *) tests+=("$argument") ;; esac
    done
    [ ${#tests[@]} -gt 0 ] || mapfile -t tests < <(conformance_tests "$suite" "$VIEW")
    if [ -n "${PANDO_RECORD:-}" ]; then arguments+=(--record); fi
    RUN_NAME=${suite//\//-}
    run_driver --suite="$suite" "${servers[@]}" ${arguments[@]+"${arguments[@]}"} ${tests[@]+"${tests[@]}"}
}

# In one line: the shell has read it whole, so the file may change while it runs.
{ main "$@"; exit; }
