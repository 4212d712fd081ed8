#!/usr/bin/env bash
# kill -9 of a server that changes columns all the time; see alter_crash.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/alter_crash.py" "$@"
