#!/usr/bin/env bash
# A server dies in the midst of RENAME TABLE of several partitioned tables; see rename_crash.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/rename_crash.py" "$@"
