#!/usr/bin/env bash
# Random expressions with pushdown and without; see expressions.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/expressions.py" "$@"
