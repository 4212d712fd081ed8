#!/usr/bin/env bash
# Queries of every kind beside clients that move money; see live_sums.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/live_sums.py" "$@"
