# shellcheck shell=bash
# What the scripts of this folder share: programs at pinned versions, each in a folder of build/tools-work with a Python of its
# own. Sourced.
tools_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=scripts/private-server.sh
. "$tools_here/../../scripts/private-server.sh"
tools_work=$PANDO_BUILD/tools-work

# tools_install NAME PACKAGE VERSION: the source package, unpacked, and what NAME.requirements lists. Made once for each state of
# that list; what a broken-off run leaves is made anew. Sets tools_python and tools_source.
tools_install() {
    local package=$2 version=$3 dir=$tools_work/$1-$3 wanted=$tools_here/$1.requirements
    tools_python=$dir/python/bin/python
    tools_source=$dir/source
    if cmp -s "$wanted" "$dir/.made"; then return; fi
    rm -rf "$dir"
    mkdir -p "$dir"
    python3 -m venv "$dir/python"
    "$tools_python" -m pip install -q --disable-pip-version-check --no-deps -r "$wanted"
    # No build of its metadata: a source package is all that is wanted.
    "$tools_python" -m pip download -q --disable-pip-version-check --no-deps --no-build-isolation --no-binary "$package" \
        -d "$dir/sdist" "$package==$version"
    mkdir "$tools_source"
    tar xzf "$dir"/sdist/*.tar.gz --strip-components=1 -C "$tools_source"
    cp "$wanted" "$dir/.made"
}

# tools_server ENGINE: a private server whose default engine this is, with an empty folder. Sets tools_socket.
tools_server() {
    server_auto_stop
    server_temp_dir tools
    server_start "$REPLY" --default-storage-engine="$1" --pando-flush-log-at-trx-commit=2 --innodb-flush-log-at-trx-commit=2
    tools_directory=$REPLY
    # shellcheck disable=SC2034 # who sources this reads it
    tools_socket=$(server_socket "$tools_directory")
}

tools_check_engine() {
    case $1 in PANDO | InnoDB) ;; *) die "the engine is PANDO or InnoDB, not $1" ;; esac
}
