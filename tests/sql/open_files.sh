#!/usr/bin/env bash
# More files than may be open; see open_files.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/open_files.py" "$@"
