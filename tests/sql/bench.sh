#!/usr/bin/env bash
# pando-bench in small against real servers; see bench.py (--help).
set -euo pipefail
here=$(dirname "$0")
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"
find_cargo || die "no cargo; run scripts/setup.sh"
cargo build --quiet --manifest-path "$PANDO_ROOT/Cargo.toml" -p pando-bench
target=$(realpath -m "${CARGO_TARGET_DIR:-$PANDO_ROOT/target}")
exec python3 "$here/bench.py" --program "$target/debug/pando-bench" "$@"
