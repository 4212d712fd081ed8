#!/usr/bin/env bash
# What can be said of the packages without building them: scripts parse, settings exist, the example compiles.
# scripts/packages.sh builds them, scripts/packages-test.sh tries them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

check_syntax() {
    local file
    for file in scripts/{packages*,image}.sh tests/packages/*.sh packaging/image/pando-*; do bash -n "$file"; done
    for file in packaging/debian/*.{postinst.in,prerm,postrm}; do sh -n "$file"; done
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' packaging/third-party.py
}

# A name that the server does not know would only be a line in its log.
check_settings() {
    local name
    for name in $(sed -n 's/^#loose_pando_\([a-z_]*\) = .*/\1/p' packaging/pando.cnf); do
        grep -qE "(SYSVAR|THDVAR)_[A-Z]+\($name," mariadb/src/server/variables.cc ||
            die "packaging/pando.cnf has pando_$name, which is no variable"
    done
}

check_header() {
    local file
    for file in packaging/examples/*.c; do
        cc -std=c99 -D_XOPEN_SOURCE=700 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Icrates/capi/include "$file"
    done
    printf '#include <pando.h>\n' | c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -Icrates/capi/include -x c++ -
}

main() {
    cd "$PANDO_ROOT"
    check_syntax
    check_settings
    check_header
    say "packages-check: passed"
}

main "$@"
