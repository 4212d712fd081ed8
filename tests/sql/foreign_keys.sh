#!/usr/bin/env bash
# Foreign keys under concurrent clients and kill -9, and beside InnoDB; see foreign_keys.py (--help). Among random definitions with
# foreign_key_checks=0, InnoDB now and then forgets a part of a constraint: such a seed fails without a fault of PANDO's.
set -euo pipefail
exec python3 "$(dirname "$0")/foreign_keys.py" "$@"
