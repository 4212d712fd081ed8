#!/usr/bin/env bash
# Keys are added and dropped while others write; see hot_index.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/hot_index.py" "$@"
