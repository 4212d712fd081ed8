#!/usr/bin/env bash
# Backups of a server in use, and what is made of them; see backup.py (--help). CI runs two rounds.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

if [ -z "${PANDO_TOOL:-}" ]; then
    find_cargo || die "no cargo; run scripts/setup.sh"
    cargo build --quiet --manifest-path "$PANDO_ROOT/Cargo.toml" -p pando-cli
    export PANDO_TOOL=${CARGO_TARGET_DIR:-$PANDO_ROOT/target}/debug/pando
fi
exec python3 "$(dirname "$0")/backup.py" "$@"
