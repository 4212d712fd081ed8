#!/usr/bin/env bash
# Rows that move while others wait for them, on both engines; see moved_rows.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/moved_rows.py" "$@"
