#!/usr/bin/env bash
# Tables over shards through Spider, with servers killed and broken; see spider.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/spider.py" "$@"
