#!/usr/bin/env bash
# SQLAlchemy's own tests with an engine as the default one:
#   tests/tools/sqlalchemy.sh [PANDO|InnoDB] [pytest's options, files or names ...]
# Without names: all tests but those of speed and memory. TOOLS_PROCESSES (2) of them run at once. Prints what pytest says;
# compare.sh runs both engines and compares.
# Everything is installed by the first run, at the versions of sqlalchemy.requirements, into build/tools-work.
#
# SQLAlchemy's tests name an engine for each table that they make: InnoDB where they need foreign keys or transactions, MyISAM
# elsewhere, because some leave rows in an order that constraints forbid. Here both names give way to ENGINE, on either engine alike:
# so all tables are the engine's, and tests that fail for that reason fail on both.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
engine=${1:-PANDO}
shift || true
tools_check_engine "$engine"
tools_install sqlalchemy sqlalchemy 2.0.44
tools_server "$engine"
# As SQLAlchemy's README.unittests wants them.
server_sql "$tools_directory" -e 'CREATE DATABASE test; CREATE DATABASE test_schema'
cd "$tools_source"
names=lib/sqlalchemy/testing/schema.py
sed -i -E "s/(_engine\"\] = )\"\w+\"/\1\"$engine\"/" "$names"
[ "$(grep -c "_engine\"\] = \"$engine\"" "$names")" = 4 ] || die "$names does not name engines where it did"
if [ $# -eq 0 ]; then set -- --ignore=test/aaa_profiling --ignore=test/perf --ignore=test/typing --ignore=test/ext/mypy test; fi
"$tools_python" -m pytest -p no:cacheprovider -q -rfE --tb=short -n "${TOOLS_PROCESSES:-2}" --maxfail=1000000 \
    --dburi "mariadb+mysqldb://root@localhost/test?unix_socket=$tools_socket&charset=utf8mb4" "$@"
