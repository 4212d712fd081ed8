//! The text of `SHOW ENGINE PANDO STATUS`.

use std::fmt::Write as _;

use pando_base::Metrics;

use crate::db::Db;

/// Sections of the text: title, and the prefixes of the counters that belong to it.
const SECTIONS: &[(&str, &[&str])] = &[
    ("CACHE", &["cache_"]),
    ("LOG", &["log_"]),
    ("MEMTABLES", &["memtable_"]),
    ("MEMORY", &["memory_", "buffer_", "write_set_", "load_memory", "heap_bytes", "query_memory"]),
    (
        "FLUSH AND COMPACTION",
        &["flush", "compaction", "leaf_", "node_", "versions_", "filter_", "backpressure_"],
    ),
    ("CHECKPOINTS", &["checkpoint"]),
    ("BACKUP", &["backup_"]),
    ("LOCKS", &["row_lock", "rows_locked", "deadlocks"]),
    (
        "TRANSACTIONS",
        &[
            "commits",
            "rollbacks",
            "statement_",
            "rows_read",
            "rows_inserted",
            "rows_updated",
            "rows_deleted",
            "ranges_deleted",
            "rows_unread",
            "tables_",
            "file",
            "read_only",
            "spill",
        ],
    ),
    ("LOADS", &["loads", "load_encode", "load_s", "load_write", "load_merge", "rows_loaded"]),
    ("WHOLE QUERIES", &["queries_", "query_spill", "rows_aggregated", "rows_skipped", "rows_filtered"]),
];

impl Db {
    /// Counters by topic. The last deadlock is [`Db::last_deadlock`].
    pub fn status_text(&self) -> String {
        let mut text = String::new();
        let values = self.metrics().values();
        for (title, prefixes) in SECTIONS {
            let _ = writeln!(text, "{title}");
            for ((name, doc), value) in Metrics::TABLE.iter().zip(&values) {
                if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                    let _ = writeln!(text, "  {name:<26} {value:>20}  {doc}");
                }
            }
        }
        let _ = writeln!(text, "WHO HAS THE MEMORY\n{}", self.memory_text());
        if let Some((_, holder)) = self.log_holder() {
            let _ = writeln!(text, "WHO HOLDS THE OLDEST LOG\n  {holder}");
        }
        let _ = writeln!(
            text,
            "SNAPSHOTS\n  visible {}, live {:?}",
            self.snapshots.visible(),
            self.snapshots.live()
        );
        text
    }
}

impl Db {
    /// Who has how much of the limit of memory.
    fn memory_text(&self) -> String {
        let m = &self.metrics;
        let uses = [
            ("block cache", m.cache_bytes.get()),
            ("memtables", m.memtable_bytes.get()),
            ("uncommitted changes", m.write_set_bytes.get()),
            ("row locks", self.memory.lock_bytes()),
            ("loads, index builds", m.load_memory_bytes.get()),
            ("SELECTs in the engine", m.query_memory_bytes.get()),
            ("free, for next buffers", m.buffer_bytes_kept.get()),
        ];
        let (all, limit) = (m.memory_bytes.get(), m.memory_limit.get());
        let other = all.saturating_sub(uses.iter().map(|(_, bytes)| bytes).sum());
        let rest = [("everything else", other), ("all", all), ("limit", limit)];
        let line = |(what, bytes): &(&str, u64)| {
            let share = *bytes as f64 * 100.0 / limit.max(1) as f64;
            format!("  {what:<26} {bytes:>20}  {share:.1} %")
        };
        uses.iter().chain(&rest).map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_in_exactly_one_section() {
        for (name, _) in Metrics::TABLE {
            let homes = SECTIONS.iter().filter(|(_, ps)| ps.iter().any(|p| name.starts_with(p))).count();
            assert_eq!(homes, 1, "{name}");
        }
    }
}
