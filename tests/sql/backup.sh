#!/usr/bin/env bash
# Backups of a server in use, and what is made of them; see backup.py (--help). CI runs two rounds.
set -euo pipefail
exec python3 "$(dirname "$0")/backup.py" "$@"
