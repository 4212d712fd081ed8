#!/usr/bin/env bash
# MariaDB's driver for JDBC (jdbc/Client.java) on tables of each engine.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
version=3.5.6
command -v javac >/dev/null && command -v mvn >/dev/null || tools_skip "no JDK or no Maven on this machine"
jar=$tools_work/jdbc/mariadb-java-client-$version.jar
mkdir -p "$tools_work/jdbc"
[ -f "$jar" ] || mvn -q -B dependency:copy -Dartifact=org.mariadb.jdbc:mariadb-java-client:$version \
    -DoutputDirectory="$tools_work/jdbc" >"$tools_work/jdbc/install.log" 2>&1 || tools_skip "no package mariadb-java-client $version"
tools_version "mariadb-java-client $version, Java $(javac -version 2>&1 | cut -d ' ' -f 2)"
javac -d "$tools_work/jdbc" "$tools_here/jdbc/Client.java"
tools_start
for engine in PANDO InnoDB; do
    tools_schema "${engine,,}" "$engine"
    java -cp "$jar:$tools_work/jdbc" Client "jdbc:mariadb://127.0.0.1:$tools_port/${engine,,}?user=tools&password=tools" "$engine" ||
        tools_failed=$((tools_failed + 1))
done
tools_end
