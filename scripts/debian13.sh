#!/usr/bin/env bash
# Pando with MariaDB 11.8: a Debian 13 in build/debian13/root, where this tree's plugin is built and tested beside the one for
# the machine's own server. Needs root, debootstrap, network and 6 GiB. Nothing outside of build/ changes.
#
#   scripts/debian13.sh                  makes the system, installs the server, builds build/debian13/ha_pando.so
#   scripts/debian13.sh mtr [ARG ...]    the same, then scripts/mtr.sh ARG ... there (--suite pando)
#   scripts/debian13.sh test ARG ...     scripts/mtr.sh ARG ... there with what has been built
#   scripts/debian13.sh sql [SCRIPT ...] tests/sql/SCRIPT there with what has been built, else all scripts that CI runs; after one that fails
#                                        the next begins, and the end says which failed. Logs: build/debian13/logs/sql-SCRIPT.log
#   scripts/debian13.sh packages         Debian 13's packages: build/debian13/packages/*.deb (scripts/packages.sh)
#   scripts/debian13.sh packages-test    the same, then scripts/packages-test.sh [--keep]: they are tried in another new Debian 13
#   scripts/debian13.sh run COMMAND ...  a command there, in the project's directory
#   scripts/debian13.sh remove           removes build/debian13
#
# The Rust side is built here, since an older C library than Debian 13's does there, too; the C++ is built there. In the system the project has the
# same path, and build/debian13 is its build directory. Processes and mounts are of namespaces of their own and end with the command.
#
# Environment: PANDO_MIRROR (http://deb.debian.org/debian), PANDO_SECURITY_MIRROR (http://deb.debian.org/debian-security).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

MIRROR=${PANDO_MIRROR:-http://deb.debian.org/debian}
SECURITY=${PANDO_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
HOME_THERE=$PANDO_BUILD/debian13
ROOT=$HOME_THERE/root
LOG=$HOME_THERE/logs/system.log

# With ALONE set, with a network of its own, too: ports of the tests are taken from a register that this machine's tests do not see.
ALONE=

# shellcheck disable=SC2016  # expanded there
inside() {
    unshare ${ALONE:+--net} --mount --pid --fork --kill-child bash -euc '
        [ -z "$3" ] || python3 -c "import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack(\"16sh\", b\"lo\", 0x41))"
        mount --bind "$1" "$1"  # a mount, without which tests could not make mounts in namespaces of their own
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        mkdir -p "$1$2"
        mount --bind "$2" "$1$2"
        there=$1 project=$2
        shift 3
        exec chroot "$there" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            PANDO_BUILD="$project/build/debian13" PANDO_CAPI_LIBRARY="$project/build/debian13/libpando_capi.a" \
            PANDO_TOOL="$project/build/debian13/pando" PANDO_BENCH="$project/build/debian13/pando-bench" \
            PANDO_PLUGIN="$project/build/debian13/ha_pando.so" \
            PANDO_MTR_PARALLEL="${PANDO_MTR_PARALLEL:-2}" ${PANDO_MAINTAINER:+PANDO_MAINTAINER="$PANDO_MAINTAINER"} sh -c "cd \"\$0\" && exec \"\$@\"" "$project" "$@"
    ' bash "$ROOT" "$PANDO_ROOT" "$ALONE" "$@"
}

make_system() {
    [ ! -e "$HOME_THERE/.system" ] || return 0
    command -v debootstrap >/dev/null || die "missing: apt-get install debootstrap"
    say "debian13: a new Debian (trixie) in build/debian13/root"
    rm -rf --one-file-system "$ROOT"
    mkdir -p "$ROOT"
    debootstrap --variant=minbase --include=ca-certificates,procps trixie "$ROOT" "$MIRROR" >"$LOG" 2>&1 ||
        { tail -n 5 "$LOG" >&2; die "debootstrap failed"; }
    cat >"$ROOT/etc/apt/sources.list" <<END
deb $MIRROR trixie main
deb $MIRROR trixie-updates main
deb $SECURITY trixie-security main
END
    # Proxies and whatever else this machine needs to fetch packages.
    apt-config dump Acquire >"$ROOT/etc/apt/apt.conf.d/90machine"
    if [ -s /etc/resolv.conf ]; then cp -L /etc/resolv.conf "$ROOT/etc/resolv.conf"; fi
    cp -L /etc/hosts "$ROOT/etc/hosts"
    touch "$HOME_THERE/.system"
}

build_rust() {
    local target
    find_cargo || die "no cargo; run scripts/setup.sh"
    target=$(cd "$PANDO_ROOT" && realpath -m "${CARGO_TARGET_DIR:-target}")
    (cd "$PANDO_ROOT" && cargo build --release -p pando-capi)
    cp -u --reflink=auto "$target/release/libpando_capi.a" "$HOME_THERE/"
}

# The programs that tests of SQL use.
build_tools() {
    local target
    find_cargo || die "no cargo; run scripts/setup.sh"
    target=$(cd "$PANDO_ROOT" && realpath -m "${CARGO_TARGET_DIR:-target}")
    (cd "$PANDO_ROOT" && cargo build --quiet -p pando-cli -p pando-bench)
    cp -u --reflink=auto "$target/debug/pando" "$target/debug/pando-bench" "$HOME_THERE/"
}

# One at a time: the ids of processes, which name the driver's directories, are the same in each system of its own.
mtr() {
    exec 9>"$HOME_THERE/.mtr-lock"
    flock 9
    ALONE=1
    inside scripts/mtr.sh "$@" 9>&-
}

# Those that are named, or the executable ones, as scripts/test.sh.
sql_tests() {
    local script scripts=()
    if [ $# = 0 ]; then
        for script in "$PANDO_ROOT"/tests/sql/*.sh; do
            if [ -x "$script" ]; then scripts+=("${script##*/}"); fi
        done
        set -- "${scripts[@]}"
    fi
    # shellcheck disable=SC2016  # expanded there
    inside bash -uc 'set -o pipefail
        failed=()
        for script; do
            started=$SECONDS
            echo "--- $script"
            result=passed
            bash "tests/sql/$script" 2>&1 | tee "$PANDO_BUILD/logs/sql-$script.log" || { result=FAILED; failed+=("$script"); }
            echo "--- $script: $result, $((SECONDS - started)) s"
        done
        [ ${#failed[@]} = 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
    ' bash "$@"
}

build() {
    mkdir -p "$HOME_THERE/logs"
    make_system
    build_rust
    inside scripts/setup.sh --server
    inside scripts/build.sh
}

packages() {
    mkdir -p "$HOME_THERE/logs"
    make_system
    PANDO_BUILD=$HOME_THERE "$PANDO_ROOT/scripts/packages.sh" --rust
    inside scripts/setup.sh --server
    inside scripts/packages.sh --pack
}

main() {
    local what=${1:-build}
    [ "$(id -u)" = 0 ] || die "this needs root"
    [ $# = 0 ] || shift
    case $what in
        build) build ;;
        mtr)
            build
            [ $# -gt 0 ] || set -- --suite pando
            mtr "$@"
            ;;
        test) mtr "$@" ;;
        sql)
            build_tools
            ALONE=1
            sql_tests "$@"
            ;;
        packages) packages ;;
        packages-test)
            packages
            PANDO_BUILD=$HOME_THERE PANDO_SUITE=trixie PANDO_SERVER_PACKAGES=$HOME_THERE/downloads \
                "$PANDO_ROOT/scripts/packages-test.sh" "$@"
            ;;
        run) inside "$@" ;;
        remove) rm -rf --one-file-system "$HOME_THERE" ;;
        *) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" | sed '/^set -euo/,$d'; exit 2 ;;
    esac
}

main "$@"
