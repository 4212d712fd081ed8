#!/usr/bin/env bash
# Two servers that replicate, killed, exchanged, changed one before the other; see replication.py (--help). CI runs the
# default 2 rounds of each.
set -euo pipefail
exec python3 "$(dirname "$0")/replication.py" "$@"
