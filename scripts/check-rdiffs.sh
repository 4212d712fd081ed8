#!/usr/bin/env bash
# Results of other versions of the server are kept as differences to those of this one (r/NAME,VERSION.rdiff). One that no longer fits its
# result makes its test fail there, where this version's runs do not see it.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

cd "$PANDO_ROOT/mariadb/mysql-test/suite/pando/r"
if ! command -v patch >/dev/null; then
    say "check-rdiffs: no patch; scripts/setup.sh installs it"
    exit
fi
failed=0
for rdiff in *.rdiff; do
    if ! patch --dry-run --silent --fuzz=0 --output=- "${rdiff%,*}.result" "$rdiff" >/dev/null; then
        say "check-rdiffs: $rdiff does not fit ${rdiff%,*}.result any more: scripts/debian13.sh mtr --suite pando ${rdiff%,*}"
        failed=1
    fi
done
[ "$failed" = 0 ] && say "check-rdiffs: $(ls -- *.rdiff | wc -l) differences"
exit "$failed"
