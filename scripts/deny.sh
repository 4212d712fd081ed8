#!/usr/bin/env bash
# Licences, sources and banned crates of all that is compiled into what we ship (deny.toml), with cargo-deny.
#
#   scripts/deny.sh              licences, bans, sources; needs no network once the crates are there
#   scripts/deny.sh advisories   known vulnerabilities; fetches the list of them
#   scripts/deny.sh --install    builds cargo-deny of the pinned version into build/tools (some ten minutes of a processor)
#
# `scripts/test.sh lint` runs the first one where cargo-deny is there.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

VERSION=0.18.3  # the last one that Rust 1.85 compiles

find_cargo || die "no cargo; run scripts/setup.sh"
PATH=$PANDO_BUILD/tools/bin:$PATH
cd "$PANDO_ROOT"
case ${1:-} in
    --install) cargo install "cargo-deny@$VERSION" --locked --root "$PANDO_BUILD/tools" ;;
    --if-there)
        command -v cargo-deny >/dev/null || { say "deny: no cargo-deny; scripts/deny.sh --install builds it" && exit 0; }
        cargo deny --offline check licenses bans sources
        ;;
    advisories) cargo deny check advisories ;;
    "") cargo deny --offline check licenses bans sources ;;
    *) die "usage: scripts/deny.sh [advisories | --install]" ;;
esac
