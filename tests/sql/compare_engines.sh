#!/usr/bin/env bash
# Random SQL for two engines; see compare_engines.py (--help). Without arguments, as in CI: first a planted
# difference that must be noticed, then a short run of PANDO beside InnoDB.
set -euo pipefail
here=$(dirname "$0")
if [ $# = 0 ]; then
    python3 "$here/compare_engines.py" --engine InnoDB --plant --rounds 3
fi
exec python3 "$here/compare_engines.py" "$@"
