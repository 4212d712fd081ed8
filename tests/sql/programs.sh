#!/usr/bin/env bash
# The program that people are shown keeps working: the demonstration.
set -euo pipefail
exec "$(dirname "$0")/../../scripts/demo.sh" --runs 3
