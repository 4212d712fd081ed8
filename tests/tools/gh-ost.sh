#!/usr/bin/env bash
# gh-ost changes a table of each engine while others write. Its module is built by Go where it can be had, or TOOLS_GH_OST names the program.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
version=v1.1.7
program=${TOOLS_GH_OST:-$tools_work/gh-ost/gh-ost}
mkdir -p "$tools_work/gh-ost"
if [ ! -x "$program" ]; then
    command -v go >/dev/null || tools_skip "no Go on this machine"
    GOBIN=$tools_work/gh-ost go install -p 2 "github.com/github/gh-ost/go/cmd/gh-ost@$version" >"$tools_work/gh-ost/install.log" 2>&1 ||
        tools_skip "no module github.com/github/gh-ost $version"
fi
tools_version gh-ost "$version"
