#!/usr/bin/env bash
# Builds the Debian packages, for the MariaDB that is installed here (docs/packages.md): build/packages/*.deb.
# Set-up has been done before (`make packages` does both).
#
#   scripts/packages.sh           all of it
#   scripts/packages.sh --rust    only the Rust side, which needs no server: for another system (scripts/debian13.sh)
#   scripts/packages.sh --pack    the rest, where there is no Rust
#
# Times in the files are those of the commit, and paths are left out, so that builds can be compared.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

OUT=$PANDO_BUILD/packages
WORK=$PANDO_BUILD/packages-work
TARGET=$PANDO_BUILD/packages-target
# command:package
TOOLS=(dpkg-buildpackage:dpkg-dev dh:debhelper fakeroot:fakeroot lintian:lintian man:man-db)
# What `rustc --print native-static-libs` says of the static library.
PRIVATE_LIBS="-lgcc_s -lutil -lrt -lpthread -lm -ldl"
MAINTAINER=${PANDO_MAINTAINER:-pando@packages.invalid}

need_tools() {
    local entry missing=()
    for entry in "${TOOLS[@]}"; do
        command -v "${entry%%:*}" >/dev/null || missing+=("${entry#*:}")
    done
    # It has no command of its own.
    [ "$(dpkg-query -W -f '${db:Status-Status}' build-essential 2>/dev/null)" = installed ] || missing+=(build-essential)
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" = 0 ]; then
        say "packages: installing ${missing[*]}"
        DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null ||
            die "could not install ${missing[*]}"
    else
        die "missing: apt-get install --no-install-recommends ${missing[*]}"
    fi
}

# --- versions -----------------------------------------------------------------------------

set_own_version() {
    UPSTREAM=$(sed -n 's/^version *= *"\(.*\)"/\1/p' Cargo.toml | head -n 1)
    # While the first number is 0, the second one counts what does not fit together.
    if [[ $UPSTREAM == 0.* ]]; then SONUMBER=${UPSTREAM%.*}; else SONUMBER=${UPSTREAM%%.*}; fi
    if git rev-parse -q --verify HEAD >/dev/null; then
        SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
        SNAPSHOT="~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M)"
        [ -z "$(git tag --points-at HEAD "v$UPSTREAM")" ] || SNAPSHOT=
        [ -z "$(git status --porcelain --untracked-files=no)" ] || SNAPSHOT=${SNAPSHOT:-+}c
    else
        SOURCE_DATE_EPOCH=$(stat -c %Y Cargo.toml)
        SNAPSHOT=
    fi
    COMMIT=$(git log -1 --format=', commit %h' 2>/dev/null || true)
    export SOURCE_DATE_EPOCH
}

# The Rust side may be of an hour ago and another system: packages have its version.
keep_own_version() { printf '%s\n' "$UPSTREAM" "$SONUMBER" "$SNAPSHOT" "$SOURCE_DATE_EPOCH" "$COMMIT" >"$TARGET/own-version"; }

take_own_version() {
    local value
    mapfile -t value <"$TARGET/own-version" || die "no Rust side; scripts/packages.sh --rust builds it"
    UPSTREAM=${value[0]} SONUMBER=${value[1]} SNAPSHOT=${value[2]} COMMIT=${value[4]}
    export SOURCE_DATE_EPOCH=${value[3]}
}

set_package_version() {
    SERVER=$(cat "$PANDO_SERVER_SOURCE/.pando-version")
    [ "$(dpkg-query -W -f '${Version}' libmariadbd-dev)" = "$SERVER" ] ||
        die "the server's headers and source differ in version; run scripts/setup.sh"
    SERVER_UPSTREAM=${SERVER#*:}
    SERVER_UPSTREAM=${SERVER_UPSTREAM%-*}
    # Debian's mark of a source that was changed, as in 11.8.9+ds.
    SERVER_UPSTREAM=${SERVER_UPSTREAM%%+*}
    ABI=$SONUMBER
    MULTIARCH=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
    # Before a release, and newer for a newer server. Short: lintian wants the file's name to fit on media. "c" is for a
    # tree that was changed since the commit.
    VERSION=$UPSTREAM${SNAPSHOT}+$(sed 's/^[0-9]*://; s/-/./g' <<<"$SERVER")
}

# --- building -----------------------------------------------------------------------------

build_rust() {
    local cargo_home=${CARGO_HOME:-$HOME/.cargo}
    export RUSTFLAGS="--remap-path-prefix=$PANDO_ROOT=/usr/src/pando --remap-path-prefix=$cargo_home=/usr/src/cargo"
    export CFLAGS="-O2 -g -ffile-prefix-map=$PANDO_ROOT=/usr/src/pando -ffile-prefix-map=$cargo_home=/usr/src/cargo"
    # The shared library, too, which scripts/build.sh has no use for.
    CARGO_TARGET_DIR=$TARGET/library cargo rustc --locked --release -p pando-capi --lib --crate-type staticlib,cdylib -- \
        -C "link-arg=-Wl,-soname,libpandodb.so.$SONUMBER"
    # Programs want the crates compiled in another way; in one directory the two would chase each other out.
    CARGO_TARGET_DIR=$TARGET/tools cargo build --locked --release -p pando-cli -p pando-bench -p pando-pages
    python3 packaging/third-party.py pando-capi >"$TARGET/third-party-library"
    python3 packaging/third-party.py pando-cli pando-bench >"$TARGET/third-party-tools"
}

build_plugin() {
    local map="-ffile-prefix-map=$PANDO_ROOT=/usr/src/pando"
    cmake -S mariadb -B "$PANDO_BUILD/packages-cmake" -DPANDO_CAPI_LIBRARY="$TARGET/library/release/libpando_capi.a" \
        -DPANDO_SERVER_SOURCE="$PANDO_SERVER_SOURCE" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS="$map" --log-level=WARNING \
        >"$PANDO_BUILD/packages-cmake.log"
    env -u MAKEFLAGS -u MAKELEVEL cmake --build "$PANDO_BUILD/packages-cmake" --parallel "$(nproc)"
}

# --- packing ------------------------------------------------------------------------------

fill_in() {
    sed -e "s|@SERVER@|$SERVER|g; s|@SERVER_UPSTREAM@|$SERVER_UPSTREAM|g; s|@UPSTREAM@|$UPSTREAM|g" \
        -e "s|@VERSION@|$VERSION|g; s|@ABI@|$ABI|g; s|@SONUMBER@|$SONUMBER|g; s|@MULTIARCH@|$MULTIARCH|g" \
        -e "s|@MAINTAINER@|$MAINTAINER|g" -e "s|@PRIVATE_LIBS@|$PRIVATE_LIBS|g" "$1"
}

stage() {
    local staged=$TREE/staged file tool
    rm -rf "$WORK"
    mkdir -p "$staged"/{plugin,tools,library,completions}
    cp "$PANDO_BUILD/packages-cmake/ha_pando.so" packaging/pando.cnf packaging/mariadb-plugin-pando.7 \
        crates/capi/include/pando.h "$TARGET"/tools/release/{pando,pando-bench} "$staged/"
    cp "$TARGET/library/release/libpando_capi.a" "$staged/libpandodb.a"
    cp "$TARGET/library/release/libpando_capi.so" "$staged/libpandodb.so.$UPSTREAM"
    ln -s "libpandodb.so.$UPSTREAM" "$staged/libpandodb.so.$SONUMBER"
    ln -s "libpandodb.so.$SONUMBER" "$staged/libpandodb.so"
    fill_in packaging/pandodb.pc.in >"$staged/pandodb.pc"
    "$TARGET/tools/release/pando-pages" "$staged/pages"
    for tool in pando pando-bench; do cp "$staged/pages/bash/$tool.bash" "$staged/completions/$tool"; done
    cp "$TARGET/third-party-library" "$staged/plugin/third-party"
    cp "$TARGET/third-party-library" "$staged/library/third-party"
    cp "$TARGET/third-party-tools" "$staged/tools/third-party"

    mkdir -p "$TREE/packaging"
    cp -r packaging/examples "$TREE/packaging/"
    cp -r packaging/debian "$TREE/"
    for file in "$TREE"/debian/*.in; do
        fill_in "$file" >"${file%.in}"
        rm "$file"
    done
    for file in install docs lintian-overrides; do
        [ ! -f "$TREE/debian/libpandodb.$file" ] ||
            mv "$TREE/debian/libpandodb.$file" "$TREE/debian/libpandodb$ABI.$file"
    done
    chmod 755 "$TREE/debian/rules"
    cat >"$TREE/debian/changelog" <<END
pando ($VERSION) unstable; urgency=medium

  * Built for MariaDB $SERVER from Pando $UPSTREAM$COMMIT.

 -- The Pando developers <$MAINTAINER>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END
}

pack() {
    say "packages: packing"
    (cd "$TREE" && env -u MAKEFLAGS -u MAKELEVEL -u RUSTFLAGS -u CFLAGS \
        DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -b -us -uc -ui) >"$PANDO_BUILD/packages.log" 2>&1 ||
        { tail -n 20 "$PANDO_BUILD/packages.log" >&2; die "packing failed; see build/packages.log"; }
}

keep() {
    rm -rf "$OUT"
    mkdir -p "$OUT"
    mv "$WORK"/*.deb "$OUT/"
    (cd "$OUT" && sha256sum -- *.deb >SHA256SUMS)
}

check() {
    say "packages: lintian"
    local options=()
    [ "$(id -u)" != 0 ] || options=(--allow-root)
    lintian ${options[@]+"${options[@]}"} --tag-display-limit 0 --fail-on error,warning "$WORK"/*.changes ||
        die "lintian does not like the packages"
}

main() {
    local step=${1:-}
    cd "$PANDO_ROOT"
    mkdir -p "$PANDO_BUILD"
    if [ "$step" != --pack ]; then
        find_cargo || die "no cargo; run scripts/setup.sh"
        set_own_version
        build_rust
        keep_own_version
        [ "$step" != --rust ] || return 0
    fi
    take_own_version
    need_tools
    set_package_version
    TREE=$WORK/pando
    build_plugin
    stage
    pack
    check
    keep
    for file in "$OUT"/*.deb; do say "packages: ${file#"$PANDO_ROOT/"}"; done
    rm -rf "$WORK"
}

main "$@"
