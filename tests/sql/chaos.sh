#!/usr/bin/env bash
# A mixed load, a replica, and troubles of every kind at random; see chaos.py (--help). CI runs about three minutes, always
# with one seed: so what is met there depends on the machine alone.
set -euo pipefail
[ -z "${CI:-}" ] || [ $# != 0 ] || set -- --seed 22
exec python3 "$(dirname "$0")/chaos.py" "$@"
