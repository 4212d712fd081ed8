#!/usr/bin/env bash
# Tries the packages of build/packages in a new Debian 12 (or another, PANDO_SUITE): install, use, upgrade held back, remove,
# purge, install again, a server of another version (tests/packages/inside.sh has the steps). Needs root and some 2 GiB in
# the temporary directory. Nothing of it is left behind; servers run in it alone, without network.
#
#   scripts/packages-test.sh [--keep]     --keep leaves the system's directory for a look
#
# Environment: PANDO_SERVER_PACKAGES (none): a directory with the server's packages, where the archive's index lacks that version.
#              PANDO_SUITE (bookworm), PANDO_MIRROR (http://deb.debian.org/debian),
#              PANDO_SECURITY_MIRROR (http://deb.debian.org/debian-security).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

SUITE=${PANDO_SUITE:-bookworm}
MIRROR=${PANDO_MIRROR:-http://deb.debian.org/debian}
SECURITY=${PANDO_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
LOGS=$PANDO_BUILD/logs
PACKAGES=$PANDO_BUILD/packages
KEEP=
ROOT=

# Mounts and processes are of a namespace of their own and end with it, so this is all there is to do.
clean_up() {
    if [ -n "$ROOT" ] && [ -z "$KEEP" ]; then rm -rf --one-file-system "$ROOT"; fi
    [ -z "$KEEP" ] || say "packages-test: kept: $ROOT"
}

inside() {
    unshare --mount --pid --fork --kill-child --mount-proc="$ROOT/proc" \
        chroot "$ROOT" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@"
}

make_system() {
    say "packages-test: a new Debian ($SUITE)"
    debootstrap --variant=minbase "$SUITE" "$ROOT" "$MIRROR" >"$LOGS/packages-test-debootstrap.log" 2>&1 ||
        { tail -n 5 "$LOGS/packages-test-debootstrap.log" >&2; die "debootstrap failed"; }
    cat >"$ROOT/etc/apt/sources.list" <<END
deb $MIRROR $SUITE main
deb $MIRROR $SUITE-updates main
deb $SECURITY $SUITE-security main
END
    # Proxies and whatever else this machine needs to fetch packages.
    apt-config dump Acquire >"$ROOT/etc/apt/apt.conf.d/90machine"
    if [ -s /etc/resolv.conf ]; then cp -L /etc/resolv.conf "$ROOT/etc/resolv.conf"; fi
    cp -L /etc/hosts "$ROOT/etc/hosts"
    # No service is started by installing.
    printf '#!/bin/sh\nexit 101\n' >"$ROOT/usr/sbin/policy-rc.d"
    chmod 755 "$ROOT/usr/sbin/policy-rc.d"
}

copy_server() {
    local part
    [ -n "${PANDO_SERVER_PACKAGES:-}" ] || return 0
    mkdir "$ROOT/server"
    for part in mariadb-server mariadb-server-core mariadb-client mariadb-client-core mariadb-backup mariadb-common libmariadb3; do
        cp "$PANDO_SERVER_PACKAGES/${part}"_*.deb "$ROOT/server/"
    done
}

main() {
    [ "${1:-}" != --keep ] || KEEP=1
    [ "$(id -u)" = 0 ] || die "this needs root"
    compgen -G "$PACKAGES/mariadb-plugin-pando_*.deb" >/dev/null || die "no packages; make packages builds them"
    command -v debootstrap >/dev/null || die "missing: apt-get install debootstrap"
    mkdir -p "$LOGS"
    ROOT=$(mktemp -d "${TMPDIR:-/tmp}/pando-packages.XXXXXX")
    chmod 755 "$ROOT"
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    make_system
    mkdir "$ROOT/packages"
    cp "$PACKAGES"/*.deb "$ROOT/packages/"
    copy_server
    cp "$PANDO_ROOT/tests/packages/inside.sh" "$ROOT/root/inside.sh"
    inside bash /root/inside.sh
}

main "$@"
