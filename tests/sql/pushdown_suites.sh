#!/usr/bin/env bash
# The star schema benchmark and TPC-H, answered in the engine; see pushdown_suites.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/pushdown_suites.py" "$@"
