#!/usr/bin/env bash
# Random SQL for two engines; see compare_engines.py (--help). Without arguments, as in CI: first a planted
# difference that must be noticed, then a short run of PANDO beside InnoDB, always with the same seed, so that
# CI judges the change at hand; new ground is broken by runs with --seconds and without --seed.
set -euo pipefail
here=$(dirname "$0")
if [ $# = 0 ]; then
    python3 "$here/compare_engines.py" --engine InnoDB --plant --rounds 3
    exec python3 "$here/compare_engines.py" --seed 2026
fi
exec python3 "$here/compare_engines.py" "$@"
