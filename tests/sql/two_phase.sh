#!/usr/bin/env bash
# Death at every step of a commit in two engines and the binary log; see two_phase.py (--help). CI tries 10 points for
# each coordinator.
set -euo pipefail
exec python3 "$(dirname "$0")/two_phase.py" "$@"
