#!/usr/bin/env bash
# A primary and three replicas, failed over by scripts/failover.py; see failover.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/failover.py" "$@"
