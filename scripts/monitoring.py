#!/usr/bin/env python3
"""Writes the Grafana dashboard and the Prometheus rules of packaging/monitoring from the tables below.

    scripts/monitoring.py           write the files
    scripts/monitoring.py --check   fail if a file is not what would be written, or names an unknown counter

mysqld_exporter shows each status counter as mysql_global_status_NAME, NAME in small letters. So a panel names a counter of
docs/variables.md, and --check (part of scripts/check-docs.sh) compares the names with that page, which is itself compared with
the source.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "packaging/monitoring"
PREFIX = "mysql_global_status_"
SELECTOR = '{instance="$instance"}'
RATE = "rate({}[$__rate_interval])"

# Rows of the dashboard: title, then panels of title, unit of Grafana, and queries of legend and expression. In an
# expression, r(NAME) is the rate of a counter and g(NAME) a gauge.
ROWS = [
    ("Is it well", [
        ("Read-only", "bool_on_off", [("refuses writes", "g(Pando_read_only_latched)")]),
        ("Log kept for recovery", "bytes", [("kept", "g(Pando_log_kept_bytes)")]),
        ("Delay of writers (share of a second, all sessions)", "percentunit", [("backpressure", "r(Pando_backpressure_time) / 1e6")]),
        ("Open tables and files", "short", [("tables", "g(Pando_tables_open)"), ("files", "g(Pando_files_open)")]),
    ]),
    ("Work", [
        ("Rows per second", "short", [("read", "r(Pando_rows_read)"), ("inserted", "r(Pando_rows_inserted)"),
                                      ("updated", "r(Pando_rows_updated)"), ("deleted", "r(Pando_rows_deleted)"),
                                      ("bulk loaded", "r(Pando_rows_loaded)")]),
        ("Transactions per second", "short", [("commits", "r(Pando_commits)"), ("rollbacks", "r(Pando_rollbacks)"),
                                              ("statement rollbacks", "r(Pando_statement_rollbacks)")]),
        ("Queries on columns per second", "short", [("answered", "r(Pando_queries_pushed)"),
                                                    ("given back", "r(Pando_queries_given_back)")]),
        ("Rows of queries on columns", "short", [("aggregated", "r(Pando_rows_aggregated)"), ("skipped by zone maps", "r(Pando_rows_skipped)"),
                                                 ("filtered in scans", "r(Pando_rows_filtered)")]),
    ]),
    ("Memory", [
        ("Block cache", "bytes", [("used", "g(Pando_cache_bytes)"), ("limit", "g(Pando_cache_bytes_limit)")]),
        ("Cache hit ratio", "percentunit", [("hits", "r(Pando_cache_hits) / (r(Pando_cache_hits) + r(Pando_cache_misses))")]),
        ("Time of a cache miss", "µs", [("miss", "r(Pando_cache_read_time) / r(Pando_cache_misses)")]),
        ("Large buffers", "bytes", [("memtables", "g(Pando_memtable_bytes)"), ("all buffers", "g(Pando_buffer_bytes)"),
                                    ("free, kept", "g(Pando_buffer_bytes_kept)")]),
    ]),
    ("Disk", [
        ("Bytes written per second", "Bps", [("log", "r(Pando_log_written_bytes)"), ("memtables", "r(Pando_memtable_written_bytes)"),
                                             ("flushes", "r(Pando_flush_written_bytes)"), ("compactions", "r(Pando_compaction_written_bytes)"),
                                             ("checkpoints", "r(Pando_checkpoint_written_bytes)"), ("spills", "r(Pando_spill_written_bytes)")]),
        ("Bytes read per second", "Bps", [("tables", "r(Pando_cache_read_bytes)")]),
        ("Time of a log sync", "µs", [("sync", "r(Pando_log_sync_time) / r(Pando_log_syncs)")]),
        ("Jobs per second", "short", [("flushes", "r(Pando_flushes)"), ("compactions", "r(Pando_compactions)"),
                                      ("checkpoints", "r(Pando_checkpoints)"), ("leaf splits", "r(Pando_leaf_splits)")]),
    ]),
    ("Locks", [
        ("Row locks held", "short", [("locks", "g(Pando_row_locks)")]),
        ("Waits per second", "short", [("waits", "r(Pando_row_lock_waits)"), ("timeouts", "r(Pando_row_lock_timeouts)"),
                                       ("deadlocks", "r(Pando_deadlocks)")]),
        ("Sessions waiting (average)", "short", [("waiting", "r(Pando_row_lock_time) / 1e6")]),
        ("Lock escalation per second", "short", [("range locks", "r(Pando_row_lock_stretches)")]),
    ]),
]

# Rules: name, expression, for, severity, summary. In an expression, g() and r() as above, r over five minutes. Metrics of
# other collectors of the exporter stand as they are.
RULES = [
    ("PandoReadOnly", "g(Pando_read_only_latched) == 1", "0m", "critical",
     "PANDO refuses writes after a failed write or sync of its log. Repair the disk, then restart the server."),
    ("PandoLogKept", "g(Pando_log_kept_bytes) > 1024 * 1024 * 1024", "15m", "warning",
     "PANDO keeps more than 1 GiB of log. The error log names what holds it: a prepared transaction, a damaged table, a failing disk."),
    ("PandoWritersDelayed", "r(Pando_backpressure_time) / 1e6 > 0.5", "10m", "warning",
     "PANDO delays writers: flushing is behind. The disk is too slow for the rate of writes, or pando_background_threads is too low."),
    ("PandoLogSyncSlow", "r(Pando_log_sync_time) / r(Pando_log_syncs) > 50000", "10m", "warning",
     "A sync of the PANDO log takes more than 50 ms on average. Look at the disk."),
    ("PandoLockTimeouts", "r(Pando_row_lock_timeouts) > 0.1", "10m", "warning",
     "Statements end with error 1205 (lock wait timeout). Look at information_schema.PANDO_LOCK_WAITS."),
    ("PandoQueriesGivenBack", "r(Pando_queries_given_back) > 0.2 * r(Pando_queries_pushed) and r(Pando_queries_given_back) > 0.1", "15m", "info",
     "A fifth of the queries on columns run twice. Raise pando_pushdown_memory, or set pando_pushdown=OFF for them."),
    ("MariadbReplicaStopped", "mysql_slave_status_slave_sql_running == 0 or mysql_slave_status_slave_io_running == 0", "1m", "critical",
     "A thread of the replica has stopped. SHOW REPLICA STATUS tells why."),
    ("MariadbReplicaLag", "mysql_slave_status_seconds_behind_master > 60", "5m", "warning",
     "The replica is more than a minute behind."),
    ("MariadbSemiSyncFellBack", "mysql_global_variables_rpl_semi_sync_master_enabled == 1 and mysql_global_status_rpl_semi_sync_master_status == 0",
     "1m", "critical", "Semi-synchronous replication has fallen back to asynchronous: an acknowledged commit may be on the primary alone."),
    ("MariadbSemiSyncUnacknowledged", "increase(mysql_global_status_rpl_semi_sync_master_no_tx[5m]) > 0",
     "0m", "critical", "Commits did not wait for a replica: semi-synchronous replication fell back, or a session that waited was killed."),
    ("MariadbSemiSyncNoReplica", "mysql_global_variables_rpl_semi_sync_master_enabled == 1 and mysql_global_status_rpl_semi_sync_master_clients == 0",
     "1m", "critical", "The primary has no semi-synchronous replica."),
]


def expand(expression, rate, selector):
    """An expression for Prometheus: r(NAME) and g(NAME) become queries of the exporter's metrics."""
    def one(match):
        metric = f"{PREFIX}{match[2].lower()}{selector}"
        return rate.format(metric) if match[1] == "r" else metric

    return re.sub(r"\b([rg])\((\w+)\)", one, expression)


def names():
    """All counters that panels and rules name."""
    expressions = [query for _, panels in ROWS for _, _, queries in panels for _, query in queries]
    expressions += [rule[1] for rule in RULES]
    return {name for expression in expressions for name in re.findall(r"\b[rg]\((\w+)\)", expression)}


def panel(number, title, unit, queries, x, y):
    targets = [
        {"expr": expand(query, RATE, SELECTOR), "legendFormat": legend, "refId": chr(ord("A") + at)}
        for at, (legend, query) in enumerate(queries)
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"h": 8, "w": 6, "x": x, "y": y},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def dashboard():
    panels, number, y = [], 1, 0
    for title, row in ROWS:
        panels.append({"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": {"h": 1, "w": 24, "x": 0, "y": y}, "panels": []})
        number += 1
        for at, (name, unit, queries) in enumerate(row):
            panels.append(panel(number, name, unit, queries, at * 6, y + 1))
            number += 1
        y += 9
    variables = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
        {"name": "instance", "type": "query", "label": "Server", "datasource": {"type": "prometheus", "uid": "${datasource}"},
         "query": f"label_values({PREFIX}pando_commits, instance)", "refresh": 2},
    ]
    return json.dumps({
        "title": "MariaDB: PANDO", "uid": "pando", "tags": ["mariadb", "pando"], "schemaVersion": 39, "version": 1,
        "time": {"from": "now-3h", "to": "now"}, "refresh": "30s", "templating": {"list": variables}, "panels": panels,
    }, indent=2, ensure_ascii=False) + "\n"


def rules():
    lines = ["# Written by scripts/monitoring.py. Alerts for Prometheus over mysqld_exporter.", "groups:", "  - name: pando", "    rules:"]
    for name, expression, wait, severity, summary in RULES:
        lines += [f"      - alert: {name}", f"        expr: {json.dumps(expand(expression, 'rate({}[5m])', ''))}", f"        for: {wait}",
                  "        labels:", f"          severity: {severity}", "        annotations:", f"          summary: {json.dumps(summary)}"]
    return "\n".join(lines) + "\n"


def main():
    files = {"grafana-dashboard.json": dashboard(), "prometheus-rules.yml": rules()}
    known = set(re.findall(r"^\| `(Pando_\w+)`", (ROOT / "docs/variables.md").read_text(), re.M))
    troubles = [f"scripts/monitoring.py: {name} is no counter of docs/variables.md" for name in sorted(names() - known)]
    for name, text in files.items():
        path = FOLDER / name
        if sys.argv[1:] == ["--check"]:
            if not path.exists() or path.read_text() != text:
                troubles.append(f"packaging/monitoring/{name} is not what scripts/monitoring.py writes; run it")
        else:
            path.write_text(text)
    print("\n".join(troubles), end="\n" if troubles else "", file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
