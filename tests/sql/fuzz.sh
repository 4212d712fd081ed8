#!/usr/bin/env bash
# Random SQL for two engines and for many sessions; see fuzz.py (--help). Without arguments, as in CI: a planted difference that
# must be noticed, a short run beside InnoDB with a fixed seed, and one of eight sessions at once. New ground is broken by
# --seconds N without --seed.
set -euo pipefail
here=$(dirname "$0")
if [ $# = 0 ]; then
    python3 "$here/fuzz.py" --plant --seed 2026
    python3 "$here/fuzz.py" --seed 2026 --statements 1500
    exec python3 "$here/fuzz.py" --seed 2026 --sessions 8 --seconds 10
fi
exec python3 "$here/fuzz.py" "$@"
