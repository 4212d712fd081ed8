#!/usr/bin/env bash
# Long statements end when they are killed; see kill_in_time.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/kill_in_time.py" "$@"
