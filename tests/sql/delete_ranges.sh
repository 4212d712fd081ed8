#!/usr/bin/env bash
# Ranges of rows deleted by several clients, with kills between; see delete_ranges.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/delete_ranges.py" "$@"
