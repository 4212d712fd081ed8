#!/usr/bin/env bash
# Go's driver (go/main.go) on tables of each engine.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
command -v go >/dev/null || tools_skip "no Go on this machine"
mkdir -p "$tools_work/go"
(cd "$tools_here/go" && go mod download) >"$tools_work/go/install.log" 2>&1 || tools_skip "no module github.com/go-sql-driver/mysql"
(cd "$tools_here/go" && go build -p 2 -o "$tools_work/go/client" .)
tools_version "$(cd "$tools_here/go" && go list -m -f 'go-sql-driver/mysql {{.Version}}' github.com/go-sql-driver/mysql), $(go env GOVERSION)"
tools_start --local-infile=1
for engine in PANDO InnoDB; do
    tools_schema "${engine,,}" "$engine"
    "$tools_work/go/client" "$tools_socket" "${engine,,}" "$engine" || tools_failed=$((tools_failed + 1))
done
tools_end
