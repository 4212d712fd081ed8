#!/usr/bin/env bash
# The demonstration (`make demo` sets up and builds first): real flights in PANDO tables, beside InnoDB.
# See demo/README.md. Options go to demo/run.py.
set -euo pipefail
exec python3 "$(dirname "$0")/../demo/run.py" "$@"
