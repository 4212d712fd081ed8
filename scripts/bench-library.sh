#!/usr/bin/env bash
# The library beside other embedded stores (redb, fjall, RocksDB): one workload, each store in each of three rounds, what is read is
# checked. A few minutes, after a build of some minutes.
#
#   scripts/bench-library.sh                                 2 million rows of 100 bytes, three rounds
#   scripts/bench-library.sh --rows 200000 --only pandodb,fjall
#   scripts/bench-library.sh --json bench/results/library-stores.json --date 2026-11-28 --conditions "Nothing else ran."
#
# PANDO_BENCH_DIR: a directory on the disk that is measured (build/bench/library). RocksDB is the system's, if it has one (Debian: librocksdb-dev);
# else the crate compiles its own, which takes half an hour and needs libclang.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

find_cargo || die "no cargo; run scripts/setup.sh"
place=${PANDO_BENCH_DIR:-$PANDO_BUILD/bench/library}
mkdir -p "$place"
for library in /usr/lib/*/librocksdb.so /usr/lib64/librocksdb.so; do
    if [ -z "${ROCKSDB_LIB_DIR:-}" ] && [ -e "$library" ]; then
        ROCKSDB_LIB_DIR=$(dirname "$library")
        export ROCKSDB_LIB_DIR
    fi
done
target=${CARGO_TARGET_DIR:-$PANDO_BUILD/bench/library-target}
CARGO_TARGET_DIR=$target cargo build --release --locked --manifest-path "$PANDO_ROOT/bench/library/Cargo.toml"
data=$(mktemp -d "$place/data.XXXXXX")
trap 'rm -rf "$data"' EXIT
"$target/release/pando-bench-library" "$data" "$@"
