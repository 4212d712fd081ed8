#!/usr/bin/env bash
# kill -9 of a loaded server at random moments; see kill9.py (--help). CI runs the default 8 rounds.
set -euo pipefail
exec python3 "$(dirname "$0")/kill9.py" "$@"
