#!/usr/bin/env bash
# Death in the midst of CREATE TABLE of a partitioned table, and a power cut after the recovery; see create_crash.py.
set -euo pipefail
exec python3 "$(dirname "$0")/create_crash.py" "$@"
