#!/usr/bin/env bash
# Tests under the compilers' sanitizers, by hand before a release: data races between threads, and memory and undefined behaviour in
# the plugin's C++.
#
#   scripts/sanitize.sh threads             the crates' tests with threads under ThreadSanitizer (some 15 minutes)
#   scripts/sanitize.sh handler [TEST ...]  a plugin whose C++ has AddressSanitizer and UndefinedBehaviorSanitizer, and the suite
#                                           pando, or some tests of it, on a server with it (some 40 minutes)
#
# ThreadSanitizer needs options of the compiler that are not stable, for which RUSTC_BOOTSTRAP is set; what it cannot see, and
# therefore must not report, is in scripts/sanitize/threads.supp. The server itself is not instrumented: of its memory only
# what goes through malloc, memcpy and the like is checked.
#
# Builds go to build/sanitize. Exit code 1: something was reported, or tests fail.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

PLACE=$PANDO_BUILD/sanitize
# Of the engine's tests those with threads that do not take turns.
ENGINE_TESTS=(concurrent concurrent_blocks ddl_concurrent background locked_ahead queues serializable recovery_lanes)

test_threads() {
    local target test tests=() failed=0
    target=$(rustc -vV | sed -n 's/^host: //p')
    export RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$PLACE/threads
    export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
    export TSAN_OPTIONS="suppressions=$PANDO_ROOT/scripts/sanitize/threads.supp"
    for test in "${ENGINE_TESTS[@]}"; do tests+=(--test "$test"); done
    cargo test --target "$target" -p pando-txn -p pando-wal --lib || failed=1
    cargo test --target "$target" -p pando-run --lib -- cache || failed=1
    cargo test --target "$target" -p pando-tree --lib -- memtable concurrent chunks || failed=1
    cargo test --target "$target" --no-fail-fast -p pandodb "${tests[@]}" || failed=1
    [ "$failed" = 0 ] || die "sanitize: tests failed, or races were reported"
    say "sanitize: nothing was reported"
}

# The library that has to be loaded before all others.
runtime() { "${CXX:-c++}" -print-file-name="lib$1.so"; }

test_handler() {
    local reports failed=0 flags="-fsanitize=address,undefined -fno-sanitize=vptr,alignment"
    mkdir -p "$PLACE"
    PANDO_CXX_FLAGS=$flags PANDO_CMAKE_DIR=$PLACE/cmake PANDO_BUILT=$PLACE/ha_pando.so scripts/build.sh
    reports=$(mktemp -d "$PLACE/reports.XXXXXX")
    # Leaks are not looked for: the server ends without freeing all it has. Its headers poison memory that its own code does not
    # give free again: it is not instrumented.
    export PANDO_PLUGIN=$PLACE/ha_pando.so
    if ! scripts/mtr.sh --suite pando \
        --mysqld-env="LD_PRELOAD=$(runtime asan):$(runtime ubsan)" \
        --mysqld-env="ASAN_OPTIONS=detect_leaks=0:allow_user_poisoning=0:detect_odr_violation=0:handle_segv=0:log_path=$reports/address" \
        --mysqld-env="UBSAN_OPTIONS=print_stacktrace=1:log_path=$reports/undefined" "$@"; then
        warn "sanitize: some tests fail (they may be too slow here; see above)"
        failed=1
    fi
    if [ -n "$(ls "$reports")" ]; then
        warn "sanitize: reports are in ${reports#"$PANDO_ROOT/"}"
        grep -h "ERROR: AddressSanitizer\|runtime error" "$reports"/* | sort | uniq -c | sort -rn >&2
        exit 1
    fi
    rmdir "$reports"
    [ "$failed" = 0 ] || exit 1
    say "sanitize: nothing was reported"
}

main() {
    find_cargo || die "no cargo; run scripts/setup.sh"
    cd "$PANDO_ROOT"
    case ${1:-} in
        threads) test_threads ;;
        handler) shift && test_handler "$@" ;;
        *) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" && [[ ${1:-} == --help ]] ;;
    esac
}

main "$@"
