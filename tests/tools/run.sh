#!/usr/bin/env bash
# Runs the scripts that put other people's programs to work on PANDO and InnoDB, and prints a table of what came of it:
#   tests/tools/run.sh [NAME ...]        all of them without a name
# Ends with 0 if no check failed. What they said stays in build/tools-work/NAME.log. Packages are fetched by the first run.
# The tests that Django and SQLAlchemy have of their own take much longer: compare.sh.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
names=(percona-toolkit gh-ost mydumper mysqltuner mysqld-exporter phpmyadmin wordpress jdbc node go)
if [ $# -gt 0 ]; then names=("$@"); fi
mkdir -p "$tools_work"
table=() status=0
for name in "${names[@]}"; do
    [ -x "$tools_here/$name.sh" ] || die "no tool $name; there are ${names[*]}"
    log=$tools_work/$name.log code=0
    say "--- $name"
    "$tools_here/$name.sh" 2>&1 | tee "$log" || code=$?
    version=$(sed -nE 's/^version //p' "$log" | paste -sd , | sed 's/, */, /g')
    passed=$(grep -c '^ok ' "$log") || true
    failed=$(grep -c '^FAILED ' "$log") || true
    case $code in
        0) result="$passed checks ok" ;;
        77) result="skipped: $(sed -nE 's/^skipped //p' "$log")" ;;
        *) result="FAILED: $failed of $((passed + failed)) checks, status $code" status=1 ;;
    esac
    table+=("$(printf '%-16s %-44s %s' "$name" "${version:--}" "$result")")
done
printf '\n%-16s %-44s %s\n' tool version result
printf '%s\n' "${table[@]}"
exit "$status"
