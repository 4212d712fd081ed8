#!/usr/bin/env bash
# Scripts: shellcheck for those of the shell, ruff for Python (ruff.toml says what is looked for). scripts/setup.sh installs
# both; where one is missing, this says so and goes on.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

cd "$PANDO_ROOT"
mapfile -t shell < <(git ls-files '*.sh')
if command -v shellcheck >/dev/null; then
    shellcheck --external-sources --severity=warning "${shell[@]}"
    say "check-scripts: ${#shell[@]} shell scripts"
else
    say "check-scripts: no shellcheck; scripts/setup.sh installs it"
fi
ruff=$PANDO_BUILD/tools/ruff/bin/ruff
if [ -x "$ruff" ]; then
    "$ruff" check --quiet .
    say "check-scripts: Python"
else
    say "check-scripts: no ruff; scripts/setup.sh installs it"
fi
