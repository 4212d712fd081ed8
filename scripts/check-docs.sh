#!/usr/bin/env bash
# What has to hold for the documents; a second of Python, nothing is built. `scripts/test.sh docs` runs it.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

cd "$PANDO_ROOT"
scripts/check-links.py
scripts/bench-pages.py --check
scripts/check-reference.py
scripts/monitoring.py --check
