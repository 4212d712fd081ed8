#!/usr/bin/env bash
# Node's clients mysql2 and mariadb (node/client.js) on tables of each engine.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
command -v npm >/dev/null || tools_skip "no npm on this machine"
work=$tools_work/node
mkdir -p "$work"
cp "$tools_here/node/package.json" "$tools_here/node/client.js" "$work"
cd "$work"
if ! cmp -s package.json .made; then
    npm install --silent --no-audit --no-fund --ignore-scripts --no-package-lock >install.log 2>&1 || { tail -n 5 install.log; tools_skip "no packages mysql2 and mariadb"; }
    cp package.json .made
fi
tools_version "$(node -p "const of = (name) => name + ' ' + JSON.parse(require('fs').readFileSync('node_modules/' + name + '/package.json')).version;
    of('mysql2') + ', ' + of('mariadb') + ', Node ' + process.versions.node")"
tools_start
for engine in PANDO InnoDB; do
    tools_schema "${engine,,}" "$engine"
    node client.js "$tools_socket" "${engine,,}" "$engine" || tools_failed=$((tools_failed + 1))
done
tools_end
