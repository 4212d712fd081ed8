#!/usr/bin/env bash
# The programs that people are shown keep working: the demonstration, and the insert benchmark in small.
set -euo pipefail
scripts=$(dirname "$0")/../../scripts
"$scripts/demo.sh" --runs 3
exec "$scripts/bench-insert.py" --rows 50000 --cache-mb 64
