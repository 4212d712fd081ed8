#!/usr/bin/env bash
# The quick checks of a change, for before a commit: format, documents, folders, and of the crates that the change touches
# clippy and the unit tests. What is built already is not built again, so it takes seconds after the first time.
#
#   scripts/quick.sh          what differs from the last commit; with nothing changed, the last commit itself
#   scripts/quick.sh BASE     what differs from the commit BASE (origin/main)
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# Files that the change adds or changes.
changed_files() {
    local base=$1
    git diff --name-only --diff-filter=d "$base"
    git ls-files --others --exclude-standard
}

main() {
    local base=${1:-HEAD} files crate crates=() packages=()
    find_cargo || die "no cargo; run scripts/setup.sh"
    cd "$PANDO_ROOT"
    files=$(changed_files "$base")
    if [ -z "$files" ] && [ $# = 0 ]; then
        files=$(changed_files HEAD~1)
    fi
    mapfile -t crates < <(sed -nE 's#^crates/([^/]+)/.*#\1#p' <<<"$files" | sort -u)
    for crate in "${crates[@]}"; do
        packages+=(-p "$(sed -nE 's/^name = "(.*)"/\1/p' "crates/$crate/Cargo.toml" | head -n 1)")
    done

    say "quick: format, documents, folders, scripts"
    cargo fmt --all --check
    scripts/check-docs.sh
    scripts/check-rooms.py
    scripts/check-scripts.sh
    if [ ${#packages[@]} != 0 ]; then
        say "quick: ${crates[*]}"
        cargo clippy "${packages[@]}" --all-targets -- -D warnings
        # The crates' unit tests alone: those that open databases are for `make test`.
        cargo test --quiet "${packages[@]}" --lib
    fi
    say "quick: all is well in $SECONDS s"
}

main "$@"
