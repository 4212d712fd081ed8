#!/usr/bin/env bash
# A partition of a Spider table moved between shards under load, with deaths at every step; see move_partition.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/move_partition.py" "$@"
