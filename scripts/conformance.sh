# shellcheck shell=bash
# The server's own suites with PANDO in the place of the engines they were written with. Sourced by
# scripts/mtr.sh, which builds a second view of the driver for them, build/mtr-pando: there the tests, what
# they include, their options and their recorded results are copies, changed as follows.
#
# 1. PANDO is the server's default engine.
# 2. Where a test names an engine for a table (ENGINE=InnoDB, SET default_storage_engine=..., let $engine=...),
#    PANDO stands there, in the test and in the recorded result alike. Both InnoDB and MyISAM are replaced, since the
#    driver's default is MyISAM; in binlog and rpl only InnoDB is, because there a MyISAM table means "one without
#    transactions". Where a test looks who waits for a lock, or says how long to wait, PANDO's tables of
#    INFORMATION_SCHEMA and PANDO's variable stand for InnoDB's.
# 3. INSERT DELAYED, which both PANDO and InnoDB refuse, becomes INSERT, outside the tests about it.
# 4. mariadb/mysql-test/default_engine/SUITE says what else is different with PANDO:
#      NAME.rdiff, NAME,COMBINATION.rdiff   a difference from the recorded result, its first line says why
#      disabled.def                         tests that cannot apply, each line with the reason
#      tests                                patterns of the tests that are run, with ! of those that are not; without
#                                           it, all
#
# A test ends at the first error that it does not expect, and at the first that it expects and does not
# meet. The tests named in PANDO_GO_ON go on: the error stands in the result. So the rest of a test is not
# lost for the sake of a FULLTEXT key or of a value that only engines without transactions let pass in
# today's strict mode.
#
# Queries are not answered in the engine, since many tests show how the server goes through keys; with PANDO_TEST_PUSHDOWN=ON
# they are, and other plans are what should be different then.
#
# With PANDO_TEST_ENGINE=InnoDB the same tests run with InnoDB in PANDO's place (build/mtr-innodb): the
# measure of what is a difference for users of InnoDB, since many results were recorded with MyISAM.

CONFORMANCE_SUITES=(engines/funcs engines/iuds handler vcol gcol parts period versioning sql_sequence main
    binlog rpl innodb sys_vars funcs_1)

is_conformance_suite() {
    case " ${CONFORMANCE_SUITES[*]} " in *" $1 "*) return 0 ;; *) return 1 ;; esac
}

# What the engine's name is put for in a suite, as a regular expression; nothing: the suite names no engines.
engines_replaced_in() {
    case $1 in
        engines/*) ;;
        binlog | rpl) printf 'InnoDB' ;;
        *) printf 'InnoDB|MyISAM' ;;
    esac
}

# Options of the servers of a suite.
conformance_options() {
    printf '%s\n' loose-innodb plugin-load-add=ha_pando.so plugin-maturity=unknown loose-pando-cache-size=64M \
        loose-pando-log-file-size=4M loose-pando-flush-log-at-trx-commit=2 \
        "loose-pando-pushdown=${PANDO_TEST_PUSHDOWN:-OFF}"
    case $1 in
        binlog | rpl) ;;
        *) printf '%s\n' "default-storage-engine=$2" ;;
    esac
    # What waits for a metadata lock in a test that goes on after errors shall not wait until the driver ends the test.
    if [ -n "${PANDO_GO_ON:-}" ]; then printf '%s\n' lock-wait-timeout=10; fi
}

# A statement or an option that names an engine for tables: ENGINE=x, ENGINE x, default_storage_engine="x",
# let $engine_type=x. Not SHOW ENGINE x STATUS, which is about that engine.
replace_engine() {
    local names=$1 engine=$2
    shift 2
    find "$@" -type f \( -name '*.test' -o -name '*.inc' -o -name '*.opt' -o -name '*.cnf' -o -name '*.result' \
        -o -name '*.rdiff' -o -name '*combinations' -o -name '*.sql' \) -print0 |
        NAMES=$names ENGINE=$engine xargs -0 perl -pi -e '
            BEGIN { $names = $ENV{NAMES}; $engine = $ENV{ENGINE}; }
            s/(engine\w*\]?[\x27"`]?\s*(?:=\s*|\s)[\x27"`]?)(?:$names)\b(?!\s+(?:STATUS|MUTEX|LOGS))/$1$engine/gi;
            s/\b(insert|replace)\s+delayed\s+into\b/$1 into/gi if $ARGV !~ m{/delayed[^/]*$};
            next if $engine ne "PANDO";
            s/\binnodb_(trx|locks|lock_waits)\b/PANDO_\U$1/gi;
            s/\b(gtid_slave_pos_)innodb\b/$1$engine/gi;
            s/\binnodb([_-]lock[_-]wait[_-]timeout)\b/pando$1/gi'
}

# One suite as a copy below the view. The tests of main lie beside the suites.
copy_conformance_suite() {
    local suite=$1 engine=$2 view=$3 from=$DRIVER_HOME/suite/$1 to=$3/mysql-test/suite/$1 names file name
    if [ "$suite" = main ]; then from=$DRIVER_HOME/main to=$view/mysql-test/main; fi
    rm -rf "$to"
    mkdir -p "$(dirname "$to")"
    cp -r "$from" "$to"
    names=$(engines_replaced_in "$suite")
    if [ -n "$names" ]; then
        replace_engine "$names" "$engine" "$to"
        # One of the two is enough.
        find "$to" -name '*combinations' -exec sed -i '/^\[myisam\]/,/^$/d' {} +
    else
        # A combination for each of two engines, which print different names of themselves: now one.
        rm -f "$to"/{combinations,disabled.def} "$to"/t/disabled.def
        for file in "$to"/r/*,innodb.rdiff; do
            if [ -f "$file" ]; then
                sed "s/InnoDB/$engine/g" "$file" | patch -s "${file%,innodb.rdiff}.result"
                rm "$file"
            fi
        done
    fi
    if [ "$engine" = PANDO ]; then adapt_results "$OURS/default_engine/$suite" "$to"; fi
    if [ -n "${PANDO_RECORD:-}" ]; then save_results "$to"; fi
    for name in ${PANDO_GO_ON:-}; do
        if [ -d "$to/t" ]; then go_on_after_errors "$to/t" "$name"; else go_on_after_errors "$to" "$name"; fi
    done
}

# The driver is going to record: keeps the results as they are in a directory beside.
save_results() {
    local results=$1
    if [ -d "$1/r" ]; then results=$1/r; fi
    rm -rf "$results.recorded"
    mkdir "$results.recorded"
    cp "$results"/*.result "$results.recorded/"
}

# Lets test $2 in directory $1 go on after errors. What it sources from suites becomes a part of it, for the
# same to hold there; except where the driver takes options or combinations from beside the sourced file.
go_on_after_errors() {
    local view=${1%%/mysql-test/*}/mysql-test
    if [ ! -f "$1/$2.test" ]; then return; fi
    (cd "$view" && TESTS=$1 perl -e '
        sub show {
            my ($file) = @_;
            open(my $lines, "<", $file) or die "$file: $!";
            while (<$lines>) {
                if (/^\s*(?:--\s*)?source\s+([^\s;]+)\s*;?\s*$/) {
                    my ($path) = grep { -f } "$ENV{TESTS}/$1", "$ENV{TESTS}/../$1", $1;
                    (my $stem = $path // "") =~ s/\.[^.\/]*$//;
                    if ($path && $path !~ m{^(\./)?include/} && $path !~ /\$/ && !-f "$stem.combinations" && !-f "$stem.opt") {
                        show($path);
                        next;
                    }
                }
                s/^\s*(--\s*)?error\s.*//;
                s/^\s*--\s*(enable|disable)_abort_on_error.*//;
                print;
            }
        }
        my $name = shift;
        open(my $out, ">", "$name.new") or die;
        select $out;
        print "--disable_abort_on_error\n";
        show($name);
        close $out;
        rename "$name.new", $name;
    ' "$1/$2.test")
}

# Applies the differences and the list of disabled tests in directory $1 to the suite in $2.
adapt_results() {
    local ours=$1 suite=$2 results file name base
    results=$suite
    if [ -d "$suite/t" ]; then results=$suite/r; fi
    if [ -f "$ours/disabled.def" ]; then
        # The server's own list stays; where it has one in t/, only that is read.
        file=$suite/disabled.def
        if [ -f "$suite/t/disabled.def" ]; then file=$suite/t/disabled.def; fi
        grep -v '^#' "$ours/disabled.def" >>"$file" || true
    fi
    for file in "$ours"/*.rdiff; do
        if [ ! -f "$file" ]; then continue; fi
        name=$(basename "$file" .rdiff)
        base=$results/${name%%,*}.result
        if [ "$name" != "${name%%,*}" ]; then
            # For one combination: the server's own difference for it comes first.
            if [ ! -f "$results/$name.result" ]; then cp "$base" "$results/$name.result"; fi
            if [ -f "$results/$name.rdiff" ]; then
                patch -s "$results/$name.result" "$results/$name.rdiff"
                rm "$results/$name.rdiff"
            fi
            base=$results/$name.result
        fi
        patch -s "$base" "$file" || warn "conformance: $file does not apply"
    done
}

# The view of the driver for engine $1, with the suites $2... in it. What only depends on the server and on
# this recipe is made once.
build_conformance_view() {
    local engine=$1 view=$2 stamp=$2/.stamp suite
    shift 2
    # Runs of several suites may go side by side.
    exec 7>"$view.lock"
    flock 7
    if [ ! -f "$stamp" ] || ! cmp -s "$PANDO_SERVER_SOURCE/.pando-version" "$stamp" ||
        [ "$PANDO_ROOT/scripts/conformance.sh" -nt "$stamp" ]; then
        rm -rf "$view"
        mkdir -p "$view/mysql-test/suite"
        mirror "$DRIVER_HOME" "$view/mysql-test" suite main include var
        mirror "$DRIVER_HOME/suite" "$view/mysql-test/suite" engines "${CONFORMANCE_SUITES[@]}"
        cp -r "$DRIVER_HOME/include" "$view/mysql-test/"
        replace_engine 'InnoDB|MyISAM' "$engine" "$view/mysql-test/include"
        # What the driver itself reads must stay as it is.
        cp "$DRIVER_HOME"/include/{default_*.cnf,mtr_*,check-*.test} "$view/mysql-test/include/"
        # Some source what belongs to others.
        for suite in "${CONFORMANCE_SUITES[@]}"; do copy_conformance_suite "$suite" "$engine" "$view"; done
        cp "$PANDO_SERVER_SOURCE/.pando-version" "$stamp"
    else
        for suite in "$@"; do copy_conformance_suite "$suite" "$engine" "$view"; done
    fi
    exec 7>&-
}

# The tests of a suite that are run, as the driver wants them named; nothing: all.
conformance_tests() {
    local suite=$1 directory=$2/mysql-test/suite/$1 list=$OURS/default_engine/$1/tests pattern file name
    local -A chosen=()
    if [ "$suite" = main ]; then directory=$2/mysql-test/main; fi
    if [ -d "$directory/t" ]; then directory=$directory/t; fi
    if [ ! -f "$list" ]; then return 0; fi
    while read -r pattern; do
        # shellcheck disable=SC2231  # a pattern
        for file in "$directory"/${pattern#!}.test; do
            name=$(basename "$file" .test)
            case $pattern in
                !*) unset "chosen[$name]" ;;
                *) if [ -f "$file" ]; then chosen[$name]=1; fi ;;
            esac
        done
    done < <(sed '/^#/d' "$list" | tr -s ' ' '\n')
    printf '%s\n' "${!chosen[@]}" | sort
}
