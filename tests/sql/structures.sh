#!/usr/bin/env bash
# Queries whose structure is random and whose conditions are simple; see structures.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/structures.py" "$@"
