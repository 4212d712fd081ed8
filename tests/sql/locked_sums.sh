#!/usr/bin/env bash
# Statements over all rows beside sessions that move money; see locked_sums.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/locked_sums.py" "$@"
