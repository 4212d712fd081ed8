#!/usr/bin/env bash
# Histories of many clients, judged by what each isolation level promises; see anomalies.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/anomalies.py" "$@"
