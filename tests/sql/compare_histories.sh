#!/usr/bin/env bash
# Random interleaved transactions; see compare_histories.py (--help). Without arguments, as in CI: first a planted
# fault that must be noticed, then a short run of PANDO beside InnoDB, always with the same seed.
set -euo pipefail
here=$(dirname "$0")
if [ $# = 0 ]; then
    python3 "$here/compare_histories.py" --plant --seed 2026
    exec python3 "$here/compare_histories.py" --seed 2026
fi
exec python3 "$here/compare_histories.py" "$@"
