#!/usr/bin/env bash
# Everything that has to hold before a change is merged, in stages, the quick ones first; stops at the
# first that fails.
#
#   scripts/test.sh               all stages
#   scripts/test.sh unit mtr      only these, in this order
#
# Stages:
#   setup     scripts/setup.sh
#   docs      the documents: links, generated tables, the reference beside the code (scripts/check-docs.sh)
#   format    cargo fmt --check
#   lint      clippy, warnings are errors; folders of crates in a circle (scripts/check-rooms.py); shellcheck and ruff;
#             results for other versions of the server fit (scripts/check-rdiffs.sh); licences of crates, if cargo-deny
#             is there (scripts/deny.sh)
#   unit      the crates' unit, property and simulation tests
#   pauses    those with threads, in a build that sleeps where threads race
#   packages  what can be said of the packages without building them (make packages-test tries them)
#   build     the plugin (C++ warnings are errors)
#   mtr       suites in the server's test driver
#   sql       tests/sql/*.sh: crash and recovery tests of a whole server, PANDO_SQL_PARALLEL at once (as many as
#             there are processors)
#
# Each stage starts from nothing that another one left behind, except that mtr and sql need the
# plugin and build it when it is not there. Logs: build/logs/test-STAGE.log.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

STAGES=(setup docs format lint unit pauses packages build mtr sql)
LOGS=$PANDO_BUILD/logs

stage_setup() { scripts/setup.sh; }
stage_docs() { scripts/check-docs.sh; }
stage_format() { cargo fmt --all --check; }
stage_lint() {
    scripts/check-rooms.py
    scripts/check-scripts.sh
    scripts/check-rdiffs.sh
    scripts/deny.sh --if-there
    cargo clippy --workspace --all-targets -- -D warnings
    cargo clippy -p pando-base --features pauses -- -D warnings
}
# In CI the property tests take the same cases each time: it judges the change at hand.
stage_unit() { ${CI:+env PROPTEST_RNG_SEED=2026} cargo test --workspace; }
stage_pauses() { scripts/pauses.sh; }
stage_packages() { scripts/packages-check.sh; }
stage_build() { scripts/build.sh; }

need_plugin() { [ -f "${PANDO_PLUGIN:-$PANDO_BUILD/ha_pando.so}" ] || scripts/build.sh; }

stage_mtr() {
    need_plugin
    scripts/mtr.sh
}

# As many at once as there are processors: each has servers of its own, and they wait for disks and clocks much of the
# time. What one says is shown whole when it has ended; after a failure no other one begins.
stage_sql() {
    local script scripts=()
    need_plugin
    for script in tests/sql/*.sh; do
        if [ -x "$script" ]; then scripts+=("$script"); fi
    done
    rm -f "$LOGS"/sql-*.failed
    if ! printf '%s\0' "${scripts[@]}" | xargs -0 -n 1 -P "${PANDO_SQL_PARALLEL:-$(nproc)}" "$0" --sql-test; then
        show_failed_sql_tests
        return 1
    fi
}

# Once more, at the very end: what else ran has been printed since.
show_failed_sql_tests() {
    local failed
    for failed in "$LOGS"/sql-*.failed; do
        say "--- failed: $(basename "$failed" .failed) (the end of build/logs/$(basename "$failed" .failed).log)"
        tail -n 12 "${failed%.failed}.log" | cut -c 1-400
    done
}

run_sql_test() {
    local script=$1 started=$SECONDS status=0 log
    log=$LOGS/sql-$(basename "$script" .sh).log
    "$script" >"$log" 2>&1 </dev/null || status=$?
    {
        flock 9
        say "--- $script"
        cat "$log"
        say "--- $script: status $status after $((SECONDS - started)) s"
    } 9>"$LOGS/sql.lock"
    # 255 is how xargs is told to begin nothing more.
    if [ "$status" != 0 ]; then
        touch "${log%.log}.failed"
        exit 255
    fi
}

# A stage is a process of its own: `set -e` holds inside it (it would not in a function that is part
# of a condition), and its output can be kept.
run_stage() {
    local stage=$1 started=$SECONDS status=0
    printf '\n=== %s\n' "$stage"
    "$0" --stage "$stage" 2>&1 | tee "$LOGS/test-$stage.log" || status=$?
    if [ "$status" != 0 ]; then
        warn "=== $stage: FAILED after $((SECONDS - started)) s (build/logs/test-$stage.log)"
        exit 1
    fi
    TIMES+=("$(printf '%-8s %5d s' "$stage" $((SECONDS - started)))")
    printf '=== %s: passed in %d s\n' "$stage" $((SECONDS - started))
}

main() {
    local stage
    cd "$PANDO_ROOT"
    find_cargo || true
    case ${1:-} in
        --stage)
            "stage_$2"
            return
            ;;
        --sql-test)
            run_sql_test "$2"
            return
            ;;
    esac
    if [ $# -gt 0 ]; then
        for stage in "$@"; do
            [[ " ${STAGES[*]} " == *" $stage "* ]] || die "no stage $stage; there are: ${STAGES[*]}"
        done
        STAGES=("$@")
    fi
    mkdir -p "$LOGS"
    TIMES=()
    for stage in "${STAGES[@]}"; do run_stage "$stage"; done
    printf '\n=== all passed\n'
    printf '%s\n' "${TIMES[@]}"
}

main "$@"
