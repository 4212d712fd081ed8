#!/usr/bin/env bash
# A server dies in the midst of ALTER TABLE that copies tables with foreign keys; see copy_crash.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/copy_crash.py" "$@"
