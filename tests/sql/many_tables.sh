#!/usr/bin/env bash
# Very many tables in one server; see many_tables.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/many_tables.py" "$@"
