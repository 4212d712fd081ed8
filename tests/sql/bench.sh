#!/usr/bin/env bash
# pando-bench in small against real servers; see bench.py (--help).
set -euo pipefail
here=$(dirname "$0")
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"
if [ -z "${PANDO_BENCH:-}" ]; then
    find_cargo || die "no cargo; run scripts/setup.sh"
    cargo build --quiet --manifest-path "$PANDO_ROOT/Cargo.toml" -p pando-bench
    PANDO_BENCH=$(realpath -m "${CARGO_TARGET_DIR:-$PANDO_ROOT/target}")/debug/pando-bench
fi
exec python3 "$here/bench.py" --program "$PANDO_BENCH" "$@"
