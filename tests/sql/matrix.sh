#!/usr/bin/env bash
# Conditions x types x constants x modes, and collations; see matrix.py (--help). Without arguments, as in CI: a sample of each, always
# the same.
set -euo pipefail
here=$(dirname "$0")
if [ $# = 0 ]; then
    python3 "$here/matrix.py" --seed 2026
    exec python3 "$here/matrix.py" --seed 2026 --collations
fi
exec python3 "$here/matrix.py" "$@"
