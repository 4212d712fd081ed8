#!/usr/bin/env bash
# Builds the release plugin: build/ha_pando.so.
# Set-up has been done before (`make build` does both).
#
# Environment: PANDO_PROFILE (release): another profile of Cargo.toml, as quick, which builds faster and checks itself.
#              PANDO_FEATURES (none): features of the crates, as pauses (scripts/pauses.sh).
#              PANDO_BUILT (build/ha_pando.so): where the plugin goes.
#              PANDO_CAPI_LIBRARY (none): the Rust side, built before; then no Rust is needed (scripts/debian13.sh).
#              PANDO_CXX_FLAGS (none), PANDO_CMAKE_DIR (build/cmake): more flags for the C++, and where it is built (scripts/sanitize.sh).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# A server may have the old file mapped: writing into it would crash that server, so a new file is
# renamed into its place. An unchanged plugin keeps its file and time.
install_plugin() {
    local from=$1 to=$2
    if cmp -s "$from" "$to"; then return 0; fi
    cp "$from" "$to.new.$$"
    mv -f "$to.new.$$" "$to"
}

main() {
    local target library=${PANDO_CAPI_LIBRARY:-} profile=${PANDO_PROFILE:-release} built=${PANDO_BUILT:-$PANDO_BUILD/ha_pando.so}
    local cmake_dir=${PANDO_CMAKE_DIR:-$PANDO_BUILD/cmake}
    cd "$PANDO_ROOT"
    mkdir -p "$PANDO_BUILD"
    # Builds that run side by side would share build/cmake.
    exec 8>"$PANDO_BUILD/.build-lock"
    flock 8
    if [ -z "$library" ]; then
        find_cargo || die "no cargo; run scripts/setup.sh"
        target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
        library=$target/$profile/libpando_capi.a
        cargo build --profile "$profile" -p pando-capi --features "${PANDO_FEATURES:-}" 8>&-
    fi
    cmake -S mariadb -B "$cmake_dir" -DCMAKE_CXX_FLAGS="${PANDO_CXX_FLAGS:-}" -DPANDO_CAPI_LIBRARY="$library" \
        -DPANDO_SERVER_SOURCE="$PANDO_SERVER_SOURCE" -DCMAKE_BUILD_TYPE=RelWithDebInfo --log-level=WARNING 8>&- >"$PANDO_BUILD/cmake-configure.log"
    # Not a part of a surrounding make, which would announce every directory.
    env -u MAKEFLAGS -u MAKELEVEL cmake --build "$cmake_dir" --parallel "$(nproc)" 8>&-
    install_plugin "$cmake_dir/ha_pando.so" "$built"
    say "build: ${built#"$PANDO_ROOT/"}"
}

main "$@"
