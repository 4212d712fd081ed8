#!/usr/bin/env bash
# Queries answered in the engine give the server's answers, byte for byte; see pushdown.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/pushdown.py" "$@"
