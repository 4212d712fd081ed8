#!/usr/bin/env bash
# The crates below pandodb, compiled for 64-bit ARM and their unit tests run under qemu: what a machine of another kind would find.
#
#   scripts/aarch64.sh                   all of CRATES
#   scripts/aarch64.sh pando-column      only these
#   PANDO_PAGE_BYTES=65536 scripts/aarch64.sh pando-memory    on a system with pages of 64 KiB
#
# Needs, on Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user, and `rustup target add aarch64-unknown-linux-gnu`.
# Emulation is some ten times slower than the processor; builds go to build/aarch64.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

TARGET=aarch64-unknown-linux-gnu
# Without pando-tree, whose tests go through every I/O: name it, and wait for more than twenty minutes.
CRATES=(pando-base pando-memory pando-storage pando-column pando-wal pando-run pando-txn)
SYSROOT=/usr/aarch64-linux-gnu

find_cargo || die "no cargo; run scripts/setup.sh"
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null || die "no $tool; on Debian: apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
done
[ -d "$(rustc --print sysroot)/lib/rustlib/$TARGET" ] || die "no standard library for $TARGET; rustup target add $TARGET"

if [ $# -gt 0 ]; then CRATES=("$@"); fi
packages=()
for crate in "${CRATES[@]}"; do packages+=(-p "$crate"); done
pages=${PANDO_PAGE_BYTES:+ -p $PANDO_PAGE_BYTES}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PANDO_BUILD/aarch64}
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64$pages -L $SYSROOT"
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
# With larger pages qemu itself ends where a backtrace is made.
if [ -n "$pages" ]; then export RUST_BACKTRACE=0; fi
cd "$PANDO_ROOT"
# Not the one that starts its own program anew: the system does not know how to run that.
skipped=(--skip a_lock_that_a_panic_lets_go_of_stops_the_process)
# Property tests with fewer cases: each is some ten times as slow.
export PROPTEST_CASES=${PROPTEST_CASES:-32}
cargo test --locked --no-fail-fast --target "$TARGET" "${packages[@]}" --lib -- "${skipped[@]}"
