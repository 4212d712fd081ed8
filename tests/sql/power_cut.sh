#!/usr/bin/env bash
# The power of a server's disk goes in the midst of DDL and transactions; see power_cut.py (--help).
set -euo pipefail
# In a name space of its own, so that no mount outlives the test.
enter=()
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then enter=(unshare --mount --propagation private); fi
exec ${enter[@]+"${enter[@]}"} python3 "$(dirname "$0")/power_cut.py" "$@"
