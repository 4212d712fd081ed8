#!/usr/bin/env bash
# A container image of a server with Pando: build/image/ with a file system (rootfs.tar.gz) and a Dockerfile, from the
# packages in build/packages. Needs root and debootstrap, not Docker (docs/packages.md).
#
#   scripts/image.sh          builds it
#   scripts/image.sh test     unpacks it and runs its entrypoint as a container would (chroot, namespaces)
#
# Environment: PANDO_MIRROR, PANDO_SECURITY_MIRROR as for scripts/packages-test.sh.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

MIRROR=${PANDO_MIRROR:-http://deb.debian.org/debian}
SECURITY=${PANDO_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
OUT=$PANDO_BUILD/image
LOG=$PANDO_BUILD/logs/image.log
ROOT=
TEST=

clean_up() {
    local status=$?
    [ -z "$ROOT" ] || rm -rf --one-file-system "$ROOT"
    if [ "$status" != 0 ] && [ -z "$TEST" ]; then
        tail -n 10 "$LOG" >&2
        warn "image: failed; see build/logs/image.log"
    fi
    exit "$status"
}

# Mounts and processes end with it.
inside() {
    unshare --mount --pid --fork --kill-child --mount-proc="$ROOT/proc" chroot "$ROOT" \
        /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

sources() {
    cat <<END
deb $MIRROR bookworm main
deb $MIRROR bookworm-updates main
deb $SECURITY bookworm-security main
END
}

make_system() {
    local package version part server=()
    package=$(compgen -G "$PANDO_BUILD/packages/mariadb-plugin-pando_*.deb") ||
        die "no packages; make packages builds them"
    version=$(dpkg-deb -f "$package" Depends | grep -o 'mariadb-server (= [^)]*' | sed 's/.*= //')
    say "image: Debian 12, MariaDB $version, Pando"
    debootstrap --variant=minbase bookworm "$ROOT" "$MIRROR" >"$LOG" 2>&1
    cp "$ROOT/etc/apt/sources.list" "$ROOT/sources.before"
    sources >"$ROOT/etc/apt/sources.list"
    apt-config dump Acquire >"$ROOT/etc/apt/apt.conf.d/90machine"
    if [ -s /etc/resolv.conf ]; then cp -L /etc/resolv.conf "$ROOT/etc/resolv.conf"; fi
    printf '#!/bin/sh\nexit 101\n' >"$ROOT/usr/sbin/policy-rc.d"
    chmod 755 "$ROOT/usr/sbin/policy-rc.d"
    mkdir "$ROOT/packages"
    cp "$package" "$PANDO_BUILD"/packages/pando-tools_*.deb "$ROOT/packages/"
    for part in server server-core client client-core; do server+=("mariadb-$part=$version"); done
    inside apt-get -qq update >>"$LOG" 2>&1
    inside apt-get -qq upgrade -y >>"$LOG" 2>&1
    inside sh -c 'apt-get -qq install -y --no-install-recommends /packages/*.deb "$@"' sh "${server[@]}" >>"$LOG" 2>&1
    inside apt-mark hold mariadb-plugin-pando >>"$LOG" 2>&1
    inside apt-get clean
}

furnish() {
    install -m 755 "$PANDO_ROOT"/packaging/image/pando-{entrypoint,healthcheck} "$ROOT/usr/local/bin/"
    install -m 644 "$PANDO_ROOT/packaging/image/90-image.cnf" "$ROOT/etc/mysql/mariadb.conf.d/"
    mkdir -p "$ROOT/docker-entrypoint-initdb.d"
    # What installing left behind, and what is of this machine.
    find "$ROOT/var/lib/mysql" -mindepth 1 -delete
    rm -rf "$ROOT/packages" "$ROOT/sources.before" "$ROOT/etc/apt/apt.conf.d/90machine" "$ROOT/usr/sbin/policy-rc.d" \
        "$ROOT/etc/hostname" "$ROOT"/var/lib/apt/lists/* "$ROOT"/var/log/*.log "$ROOT"/var/log/apt/* \
        "$ROOT"/var/cache/debconf/*-old "$ROOT"/var/cache/ldconfig/* "$ROOT"/run/* "$ROOT"/tmp/*
    : >"$ROOT/etc/resolv.conf"
    : >"$ROOT/etc/machine-id"
    # The public archive, whatever mirror was used.
    sed -e "s|$MIRROR |http://deb.debian.org/debian |; s|$SECURITY |http://deb.debian.org/debian-security |" \
        -i "$ROOT/etc/apt/sources.list"
    install -d -o "$(stat -c %u "$ROOT/var/lib/mysql")" -g "$(stat -c %g "$ROOT/var/lib/mysql")" "$ROOT/run/mysqld"
}

build() {
    local epoch
    epoch=$(git -C "$PANDO_ROOT" log -1 --format=%ct 2>/dev/null || date +%s)
    make_system
    furnish
    rm -rf "$OUT"
    mkdir -p "$OUT"
    tar -C "$ROOT" --one-file-system --numeric-owner --sort=name --mtime="@$epoch" --clamp-mtime \
        --exclude=./dev/* --exclude=./proc/* --exclude=./sys/* -c . | gzip -n >"$OUT/rootfs.tar.gz"
    cp "$PANDO_ROOT/packaging/image/Dockerfile" "$OUT/"
    say "image: build/image ($(du -h "$OUT/rootfs.tar.gz" | cut -f 1)); with Docker: docker build -t pando build/image"
}

try() {
    [ -f "$OUT/rootfs.tar.gz" ] || die "no image; make image builds it"
    tar -C "$ROOT" --numeric-owner -xf "$OUT/rootfs.tar.gz"
    # What a container gets from outside.
    mknod -m 666 "$ROOT/dev/null" c 1 3
    mknod -m 666 "$ROOT/dev/urandom" c 1 9
    mknod -m 666 "$ROOT/dev/random" c 1 8
    ln -s /proc/self/fd "$ROOT/dev/fd"
    cp "$PANDO_ROOT/tests/packages/image-inside.sh" "$ROOT/root/inside.sh"
    # With a network of its own, too.
    unshare --net "$0" --inside "$ROOT"
}

main() {
    [ "$(id -u)" = 0 ] || die "this needs root"
    if [ "${1:-}" = --inside ]; then
        ROOT=$2
        ip link set lo up 2>/dev/null || chroot "$ROOT" ip link set lo up
        inside bash /root/inside.sh
        return
    fi
    command -v debootstrap >/dev/null || die "missing: apt-get install debootstrap"
    mkdir -p "$(dirname "$LOG")"
    ROOT=$(mktemp -d "${TMPDIR:-/tmp}/pando-image.XXXXXX")
    chmod 755 "$ROOT"
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    if [ "${1:-}" = test ]; then
        TEST=1
        try
    else
        build
    fi
}

main "$@"
