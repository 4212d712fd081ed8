#!/usr/bin/env bash
# Rows read and written through the plugin HandlerSocket; see handlersocket.py.
set -euo pipefail
exec python3 "$(dirname "$0")/handlersocket.py" "$@"
