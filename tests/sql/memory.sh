#!/usr/bin/env bash
# All memory within one limit; see memory.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/memory.py" "$@"
