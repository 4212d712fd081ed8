#!/usr/bin/env bash
# Runs another program's tests on PANDO and on InnoDB, one after the other, and lists the tests that fail on one engine only:
#   tests/tools/compare.sh django|sqlalchemy [what django.sh or sqlalchemy.sh takes behind the engine ...]
#   tests/tools/compare.sh --judge django|sqlalchemy      compares the last two runs again
# Ends with 0 if the same tests fail on both. What the programs said stays in build/tools-work/PROGRAM-ENGINE.log.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
judge=
if [ "${1:-}" = --judge ]; then judge=1; shift; fi
program=${1:-}
case $program in django | sqlalchemy) ;; *) die "usage: compare.sh [--judge] django|sqlalchemy [...]" ;; esac
shift

# The names of the tests that failed, or ended in errors, one a line.
failing() {
    case $program in
        django) sed -nE 's/^(FAIL|ERROR): //p' "$1" ;;
        # Which of two processes ran a test is no part of its name, nor is what it said.
        sqlalchemy) sed -nE 's/^(FAILED|ERROR) (test\/[^ ]+).*/\2/p' "$1" ;;
    esac | sort -u
}

# The line with which the program ends; without it, it did not come to its end.
ending() {
    case $program in
        django) grep -E '^(Ran [0-9]+ tests in|OK|FAILED \()' "$1" | sed -E 's/ in .*//' | paste -sd ' ' ;;
        sqlalchemy) grep -E '^(=+ )?[0-9]+ (passed|failed).* in ' "$1" | tail -n 1 ;;
    esac
}

mkdir -p "$tools_work"
for engine in PANDO InnoDB; do
    log=$tools_work/$program-$engine.log
    if [ -z "$judge" ]; then "$tools_here/$program.sh" "$engine" "$@" >"$log" 2>&1 || true; fi
    end=$(ending "$log") || end=
    [ -n "$end" ] || { tail -n 20 "$log" >&2; die "$program did not come to its end with $engine"; }
    failing "$log" >"$tools_work/$program-$engine.failing"
    printf '%s: %s; %s names of failing tests\n' "$engine" "$end" "$(wc -l <"$tools_work/$program-$engine.failing")"
done
different=$(diff "$tools_work/$program-PANDO.failing" "$tools_work/$program-InnoDB.failing") || true
if [ -z "$different" ]; then
    echo "the same tests fail with both"
else
    sed -nE 's/^</only with PANDO: /p; s/^>/only with InnoDB:/p' <<<"$different"
    exit 1
fi
