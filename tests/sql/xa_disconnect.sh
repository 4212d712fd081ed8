#!/usr/bin/env bash
# XA COMMIT by others while the preparing connection goes away; see xa_disconnect.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/xa_disconnect.py" "$@"
