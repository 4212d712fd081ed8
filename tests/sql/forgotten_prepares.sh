#!/usr/bin/env bash
# kill -9 while forgotten prepared transactions are logged anew; see forgotten_prepares.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/forgotten_prepares.py" "$@"
