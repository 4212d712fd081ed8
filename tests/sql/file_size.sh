#!/usr/bin/env bash
# A limit on the size of files; see file_size.py (--help).
set -euo pipefail
exec python3 "$(dirname "$0")/file_size.py" "$@"
