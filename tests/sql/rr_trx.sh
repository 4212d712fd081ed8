#!/usr/bin/env bash
# Transactions at REPEATABLE READ, the stress suite of the server; see rr_trx.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/rr_trx.py" "$@"
