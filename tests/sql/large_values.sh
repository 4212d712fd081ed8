#!/usr/bin/env bash
# Large values beside changes of their rows, and kill -9; see large_values.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/large_values.py" "$@"
