#!/usr/bin/env bash
# Foreign keys under concurrent clients and kill -9, and beside InnoDB; see foreign_keys.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/foreign_keys.py" "$@"
