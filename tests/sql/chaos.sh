#!/usr/bin/env bash
# A mixed load, a replica, and troubles of every kind at random; see chaos.py (--help). CI runs about three minutes.
set -euo pipefail
exec python3 "$(dirname "$0")/chaos.py" "$@"
