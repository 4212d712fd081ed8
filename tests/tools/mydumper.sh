#!/usr/bin/env bash
# mydumper and myloader: a dump of a schema of each engine, loaded again, is the same; and when mydumper lets writers go on.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
tools_debs mydumper mydumper
tools_version mydumper "$(mydumper --version | sed -E 's/mydumper ([^,]*),.*/\1/')"
tools_start

dump() {
    local to=$1 database=$2
    shift 2
    mydumper --socket "$tools_socket" --user root --database "$database" --outputdir "$tools_directory/$to" --threads 2 \
        --triggers --routines --events --verbose 3 "$@"
}

for engine in PANDO InnoDB; do
    database=${engine,,}
    tools_schema "$database" "$engine"
    tools_ok "$engine: mydumper --trx-consistency-only, in chunks" dump "$database-1" "$database" --trx-consistency-only --rows 5000 --compress
    tools_ok "$engine: myloader into another schema" myloader --socket "$tools_socket" --user root --directory "$tools_directory/$database-1" \
        --database "$database-copy" --threads 2 --enable-binlog
    tools_same "$engine: the rows of the copy" "$(tools_count "\`$database-copy\`."{customer,purchase,reading,nothing})" \
        "$(tools_count "$database".{customer,purchase,reading,nothing})"
    tools_same "$engine: its engine, foreign key, trigger and view" "$(tools_engine_of "$database-copy.purchase") $(tools_sql -e "
        SELECT COUNT(*) FROM information_schema.referential_constraints WHERE constraint_schema = '$database-copy';
        SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = '$database-copy';
        SELECT n FROM \`$database-copy\`.paid WHERE customer = 2" | paste -sd ' ')" "$engine 1 1 4"

    # Which statement ends the lock that keeps all writers waiting, and what is read before that.
    tools_sql -e "SET GLOBAL general_log_file = '$tools_directory/$database.log'; SET GLOBAL general_log = 1"
    tools_ok "$engine: mydumper without --trx-consistency-only" dump "$database-2" "$database"
    tools_sql -e "SET GLOBAL general_log = 0"
    locked=$(sed -n '/FLUSH TABLES WITH READ LOCK/,/UNLOCK TABLES .. FTWRL/p' "$tools_directory/$database.log")
    read_locked=$(grep -cE "SELECT .*FROM .$database.\..(customer|purchase|reading)" <<<"$locked") || true
    if [ "$engine" = PANDO ]; then
        tools_same "PANDO: then all tables with rows are read while writers wait" "$read_locked" 3
    else
        # How many reads begin before the lock goes is left to chance there.
        say "        InnoDB: $read_locked of 3 tables were begun while writers waited"
    fi
done
tools_end
