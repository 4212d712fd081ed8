#!/usr/bin/env bash
# Damaged files and a full disk; see bad_input.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/bad_input.py" "$@"
