#!/usr/bin/env bash
# Rows that expire, beside InnoDB and while they are removed; see ttl.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/ttl.py" "$@"
