#!/usr/bin/env bash
# Foreign keys under concurrent clients and kill -9, and beside InnoDB; see foreign_keys.py (--help). CI runs always with one seed: among
# random definitions with foreign_key_checks=0, InnoDB now and then forgets a part of a constraint.
set -euo pipefail
[ -z "${CI:-}" ] || [ $# != 0 ] || set -- --seed 2026
exec python3 "$(dirname "$0")/foreign_keys.py" "$@"
