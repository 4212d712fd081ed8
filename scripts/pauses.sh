#!/usr/bin/env bash
# Tests with threads, in a build that sleeps where threads race (crates/base/src/pauses.rs): what else happens once in a
# thousand runs happens in seconds.
#
#   scripts/pauses.sh [ROUNDS]        the crates' tests with threads, so many times (1; CI)
#   scripts/pauses.sh --server        a plugin of that kind, build/pauses/ha_pando.so, and the tests of whole servers
#                                     with many clients (tests/sql), longer than in CI
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# Of the engine's tests those with threads that do not take turns.
ENGINE_TESTS=(concurrent concurrent_blocks ddl_concurrent background lock_budget locked_ahead prepared queues serializable)
SERVER_TESTS=("live_sums --seconds 60" "compare_histories --rounds 120" "rr_trx --seconds 60" "hot_index --rounds 12"
    "kill9 --rounds 12" "replication" "two_phase")

test_crates() {
    local round test tests=()
    for test in "${ENGINE_TESTS[@]}"; do tests+=(--test "$test"); done
    for ((round = 1; round <= $1; round++)); do
        say "--- round $round of $1"
        cargo test --features pando-base/pauses -p pando-txn -p pando-wal
        cargo test --features pando-base/pauses -p pando-tree --lib -- memtable concurrent chunks
        cargo test --features pauses -p pandodb "${tests[@]}"
    done
}

test_servers() {
    local test name arguments
    mkdir -p "$PANDO_BUILD/pauses"
    export PANDO_PLUGIN=$PANDO_BUILD/pauses/ha_pando.so
    PANDO_FEATURES=pauses PANDO_BUILT=$PANDO_PLUGIN scripts/build.sh
    for test in "${SERVER_TESTS[@]}"; do
        read -r name arguments <<<"$test"
        say "--- $test"
        # shellcheck disable=SC2086 # several words
        "tests/sql/$name.sh" $arguments
    done
}

main() {
    find_cargo || die "no cargo; run scripts/setup.sh"
    cd "$PANDO_ROOT"
    case ${1:-1} in
        --server) test_servers ;;
        *[!0-9]*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" && [[ $1 == --help ]] ;;
        *) test_crates "${1:-1}" ;;
    esac
}

main "$@"
