#!/usr/bin/env bash
# Gets the machine ready: compiler, MariaDB server and headers of one and the same version, the
# server's source (a storage engine includes headers that no package ships), Rust, and what checks scripts.
# Safe to run at any time; when nothing is to be done it takes well under a second.
#
#   scripts/setup.sh [--server]     --server: without Rust and what checks scripts
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

APT_DIR=$PANDO_BUILD/apt
DOWNLOADS=$PANDO_BUILD/downloads
SOURCE_STAMP=$PANDO_SERVER_SOURCE/.pando-version

# Without these nothing can be built or tested.
MARIADB_PACKAGES=(mariadb-server mariadb-client mariadb-backup libmariadbd-dev libmariadb-dev mariadb-test)
# Peers to compare with; not built for every architecture.
MARIADB_PEERS=(mariadb-plugin-rocksdb mariadb-plugin-spider)
RUFF_VERSION=0.17.6
# command:package
TOOLS=(g++:g++ cmake:cmake make:make curl:curl git:git python3:python3 pkg-config:pkg-config
    patch:patch perl:perl xz:xz-utils flock:util-linux)

if [ "$(id -u)" = 0 ]; then SUDO=(); else SUDO=(sudo -n); fi

may_install() { [ ${#SUDO[@]} = 0 ] || sudo -n true 2>/dev/null; }
as_root() { ${SUDO[@]+"${SUDO[@]}"} "$@"; }

# --- what is there ------------------------------------------------------------------------

missing_tools() {
    local entry
    for entry in "${TOOLS[@]}"; do
        command -v "${entry%%:*}" >/dev/null || printf '%s ' "${entry#*:}"
    done
    # rustup and cargo speak TLS only.
    [ -s /etc/ssl/certs/ca-certificates.crt ] || printf 'ca-certificates '
}

# The version all required MariaDB packages have in common; fails when one is missing or differs.
installed_version() {
    local versions
    versions=$(dpkg-query -W -f '${db:Status-Status} ${Version}\n' "${MARIADB_PACKAGES[@]}" 2>/dev/null) ||
        return 1
    versions=$(sort -u <<<"$versions")
    [[ $versions == "installed "* && $versions != *$'\n'* ]] || return 1
    printf '%s\n' "${versions#installed }"
}

source_version() { cat "$SOURCE_STAMP" 2>/dev/null; }

mariadb_ready() {
    local version
    version=$(installed_version) && [ "$version" = "$(source_version)" ]
}

# --- Debian packages ----------------------------------------------------------------------

refresh_lists() {
    [ -z "${LISTS_FRESH:-}" ] || return 0
    say "setup: refreshing the package lists"
    as_root apt-get -qq update || warn "setup: apt-get update complained; going on with what it has"
    LISTS_FRESH=1
}

install_tools() {
    local packages
    read -ra packages <<<"$1"
    say "setup: installing ${packages[*]}"
    refresh_lists
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${packages[@]}" \
        >"$PANDO_BUILD/logs/apt-tools.log" 2>&1 ||
        { tail -n 20 "$PANDO_BUILD/logs/apt-tools.log" >&2; die "could not install ${packages[*]}"; }
}

# apt with a private configuration that knows source packages, so that the machine's own
# configuration stays as it is. Needs no root.
apt_source() {
    local command=$1
    shift
    "$command" -o Dir::Etc::sourcelist="$APT_DIR/sources.list" -o Dir::Etc::sourceparts="$APT_DIR/parts" \
        -o Dir::State::lists="$APT_DIR/lists" -o Dir::Cache="$APT_DIR/cache" \
        -o APT::Sandbox::User="$(id -un)" "$@"
}

# Source lists for exactly the archives that offer the server: `apt-cache madison` prints
# "package | version | address suite/component architecture Packages".
write_source_lists() {
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg option=
    [ ! -f "$keyring" ] || option="[signed-by=$keyring] "
    mkdir -p "$APT_DIR"/{parts,lists/partial,cache/archives/partial}
    apt-cache madison mariadb-server | awk -F'|' -v option="$option" '
        { split($3, word, " "); n = split(word[2], suite, "/")
          if (n == 2) print "deb-src " option word[1] " " suite[1] " " suite[2] }' |
        sort -u >"$APT_DIR/sources.list"
    [ -s "$APT_DIR/sources.list" ] || die "apt knows no package mariadb-server (this needs Debian 12 or alike)"
    apt_source apt-get -qq update || warn "setup: some source lists could not be fetched"
}

# Versions worth trying: what is installed, then what apt offers, newest first.
candidate_versions() {
    { installed_version || true
      apt-cache madison mariadb-server | awk -F'|' '{ gsub(/ /, "", $2); print $2 }' | sort -rV; } |
        awk '!seen[$0]++'
}

download_source() {
    local version=$1
    mkdir -p "$DOWNLOADS"
    (cd "$DOWNLOADS" && apt_source apt-get -qq source --download-only "mariadb=$version") \
        >"$PANDO_BUILD/logs/apt-source.log" 2>&1
}

# Keeps apt from mixing versions: everything built from the server's source at one version.
write_pin() {
    printf 'Package: src:mariadb\nPin: version %s\nPin-Priority: 1001\n' "$1" >"$APT_DIR/preferences"
}

apt_pinned() {
    write_pin "$1"
    shift
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dir::Etc::preferences="$APT_DIR/preferences" \
        install -y --no-install-recommends --allow-downgrades "$@"
}

packages_for() {
    local version=$1 package
    printf '%s\n' "${MARIADB_PACKAGES[@]}"
    for package in "${MARIADB_PEERS[@]}"; do
        if apt-cache show "$package=$version" >/dev/null 2>&1; then printf '%s\n' "$package"; fi
    done
}

POLICY=/usr/sbin/policy-rc.d
POLICY_SAVED=$POLICY.before-pando

# Debian starts a server as soon as it is installed; ours are private ones, so that is prevented
# the way Debian provides for. A saved file means that an earlier run was cut short.
forbid_services() {
    if [ ! -e "$POLICY_SAVED" ] && [ -e "$POLICY" ]; then as_root cp -a "$POLICY" "$POLICY_SAVED"; fi
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$POLICY" >/dev/null
    as_root chmod 755 "$POLICY"
}

allow_services() {
    if [ -e "$POLICY_SAVED" ]; then as_root mv -f "$POLICY_SAVED" "$POLICY"; else as_root rm -f "$POLICY"; fi
}

without_services() {
    local log=$PANDO_BUILD/logs/apt-mariadb.log
    trap allow_services EXIT
    trap 'exit 130' INT TERM
    forbid_services
    "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; die "installing MariaDB failed; see build/logs/apt-mariadb.log"; }
    allow_services
    trap - EXIT INT TERM
}

install_mariadb() {
    local version=$1 log=$PANDO_BUILD/logs/apt-mariadb.log packages
    mapfile -t packages < <(packages_for "$version")
    apt_pinned "$version" --download-only "${packages[@]}" >"$log" 2>&1 || return 1
    say "setup: installing ${packages[*]} at $version (no service is started)"
    without_services apt_pinned "$version" "${packages[@]}"
}

# --- the server's source ------------------------------------------------------------------

# "1:10.11.18-0+deb12u1" -> the upstream archive of 10.11.18.
source_archive() {
    local upstream=${1#*:}
    upstream=${upstream%-*}
    find "$DOWNLOADS" -name "mariadb_$upstream.orig.tar.*" ! -name '*.asc' -print -quit
}

unpack_source() {
    local version=$1 archive partial=$PANDO_SERVER_SOURCE.partial
    archive=$(source_archive "$version")
    [ -n "$archive" ] || die "no source archive for $version in build/downloads"
    say "setup: unpacking the server's source to build/mariadb-src"
    rm -rf "$partial"
    mkdir -p "$partial"
    # Left out: large engines of others that nobody here reads.
    tar -xf "$archive" -C "$partial" --strip-components=1 \
        --exclude='*/storage/columnstore' --exclude='*/storage/mroonga' --exclude='*/sql-bench'
    # Generated by the server's own build; the version without probes is complete as it stands.
    cp "$partial/include/probes_mysql_nodtrace.h.in" "$partial/include/probes_mysql_nodtrace.h"
    printf '%s\n' "$version" >"$partial/.pando-version"
    rm -rf "$PANDO_SERVER_SOURCE"
    mv "$partial" "$PANDO_SERVER_SOURCE"
}

# Debian's pool keeps earlier versions, packages and source alike, when its index has gone on to one whose source is missing.
# scripts/pool/RELEASE_ARCHITECTURE.sha256 has the files of one such version with their sums, as no index vouches for them any more.
pool_sums() { printf '%s\n' "$PANDO_ROOT/scripts/pool/$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")_$(dpkg --print-architecture).sha256"; }

pool_version() { sed -n 's/.* mariadb_\(.*\)\.dsc$/1:\1/p' "$1"; }

fetch_from_pool() {
    local sums=$1 address=$2 sum file
    while read -r sum file; do
        if ! sha256sum --check --status <<<"$sum  $DOWNLOADS/$file" 2>/dev/null; then
            /usr/lib/apt/apt-helper download-file "$address/pool/main/m/mariadb/$file" "$DOWNLOADS/$file" "SHA256:$sum" || return 1
        fi
    done <"$sums"
}

install_from_pool() {
    local files
    mapfile -t files < <(awk -v at="$DOWNLOADS/" '/\.deb$/ { print at $2 }' "$1")
    say "setup: installing MariaDB $(pool_version "$1") from the archive's pool (no service is started)"
    without_services apt_pinned "$(pool_version "$1")" "${files[@]}"
}

set_up_from_pool() {
    local sums version address
    sums=$(pool_sums)
    [ -s "$sums" ] || return 1
    version=$(pool_version "$sums")
    mkdir -p "$DOWNLOADS"
    for address in $(awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^https?:/) print $i }' "$APT_DIR/sources.list" | sort -u); do
        if fetch_from_pool "$sums" "$address" >"$PANDO_BUILD/logs/apt-pool.log" 2>&1; then
            if [ "$(installed_version)" != "$version" ]; then
                may_install || complain "the MariaDB packages of build/downloads, all of version $version"
                install_from_pool "$sums"
            fi
            [ "$(source_version)" = "$version" ] || unpack_source "$version"
            return 0
        fi
    done
    return 1
}

# Server, headers and source must be of one version, and not every version that an archive offers
# as a package is there as source too (or the other way round): really try, newest first.
set_up_mariadb() {
    local version
    if may_install; then refresh_lists; fi
    write_source_lists
    while read -r version; do
        if ! download_source "$version"; then
            say "setup: $version has no source that can be fetched"
            continue
        fi
        if [ "$(installed_version)" != "$version" ]; then
            if ! may_install; then
                write_pin "$version"
                complain "the MariaDB packages, all of version $version"
            fi
            install_mariadb "$version" || { say "setup: packages of $version cannot be fetched"; continue; }
        fi
        [ "$(source_version)" = "$version" ] || unpack_source "$version"
        return 0
    done < <(candidate_versions)
    if set_up_from_pool; then return 0; fi
    die "found no MariaDB version with both packages and source; see build/logs/apt-*.log"
}

# --- Rust ---------------------------------------------------------------------------------

wanted_rust() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$PANDO_ROOT/Cargo.toml" | head -n 1; }

rust_is_recent() {
    local have
    have=$(cd "$PANDO_ROOT" && cargo --version | awk '{ print $2 }')
    [ "$(printf '%s\n%s\n' "$(wanted_rust)" "$have" | sort -V | head -n 1)" = "$(wanted_rust)" ]
}

set_up_rust() {
    if ! find_cargo; then
        say "setup: installing Rust with rustup"
        curl -fsS --retry 5 --proto '=https' --tlsv1.2 https://sh.rustup.rs |
            sh -s -- -y --profile minimal --component rustfmt --component clippy --no-modify-path ||
            die "could not install Rust; get version $(wanted_rust) or newer in another way, then run this again"
        find_cargo || die "rustup did not leave a cargo behind"
    fi
    if ! rust_is_recent; then
        command -v rustup >/dev/null || die "cargo is older than $(wanted_rust), and rustup is not there to update it"
        say "setup: updating Rust to at least $(wanted_rust)"
        rustup update stable && rustup default stable
        rust_is_recent || die "Rust is still older than $(wanted_rust)"
    fi
    if ! command -v rustfmt >/dev/null || ! command -v cargo-clippy >/dev/null; then
        say "setup: adding rustfmt and clippy"
        rustup component add rustfmt clippy
    fi
}

# --- checks of scripts ----------------------------------------------------------------------

# For scripts/check-scripts.sh (shellcheck, ruff), which does without where they cannot be had.
set_up_checkers() {
    local ruff=$PANDO_BUILD/tools/ruff log=$PANDO_BUILD/logs/checkers.log
    if ! command -v shellcheck >/dev/null && may_install; then
        (refresh_lists && install_tools shellcheck) || warn "setup: shellcheck cannot be had"
    fi
    if [ ! -x "$ruff/bin/ruff" ] && python3 -m pip --version >/dev/null 2>&1; then
        say "setup: fetching ruff"
        python3 -m pip install --quiet --disable-pip-version-check --target "$ruff" "ruff==$RUFF_VERSION" >"$log" 2>&1 ||
            warn "setup: no ruff; see build/logs/checkers.log"
    fi
}

# --- all of it ----------------------------------------------------------------------------

# Neither root nor sudo: say once and completely what an administrator has to do.
complain() {
    local pin=
    warn "setup: missing: $1"
    warn "setup: not root and no sudo; have this done, then run it again:"
    warn "  apt-get update"
    warn "  apt-get install --no-install-recommends ca-certificates ${TOOLS[*]#*:}"
    if ! mariadb_ready; then
        # The pin is there once it is known which version has a source.
        if [ -f "$APT_DIR/preferences" ]; then pin="-o Dir::Etc::preferences=$APT_DIR/preferences "; fi
        warn "  apt-get ${pin}install --no-install-recommends --allow-downgrades \\"
        warn "    ${MARIADB_PACKAGES[*]} ${MARIADB_PEERS[*]}"
    fi
    exit 1
}

main() {
    local tools server_only=
    [ "${1:-}" != --server ] || server_only=1
    command -v apt-get >/dev/null || die "this set-up knows Debian's packages only (apt-get not found)"
    mkdir -p "$PANDO_BUILD/logs"
    # Two set-ups at once would trip over each other.
    if command -v flock >/dev/null; then
        exec 9>"$PANDO_BUILD/.setup-lock"
        flock 9
    fi
    tools=$(missing_tools)
    if [ -n "$tools" ]; then
        may_install || complain "$tools"
        install_tools "$tools"
    fi
    mariadb_ready || set_up_mariadb
    if [ -n "$server_only" ]; then
        say "setup: ready: MariaDB $(source_version)"
        return 0
    fi
    set_up_rust
    set_up_checkers
    say "setup: ready: MariaDB $(source_version), $(cd "$PANDO_ROOT" && cargo --version)"
}

main "$@"
