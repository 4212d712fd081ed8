//! The text of `SHOW ENGINE PANDO STATUS`.

use std::fmt::Write as _;

use pando_base::Metrics;

use crate::db::Db;

/// Sections of the text: title, and the prefixes of the counters that belong to it.
const SECTIONS: &[(&str, &[&str])] = &[
    ("CACHE", &["cache_"]),
    ("LOG", &["log_"]),
    ("MEMTABLES", &["memtable_"]),
    ("BUFFERS", &["buffer_"]),
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
            "tables_",
            "file",
            "read_only",
            "spill",
        ],
    ),
    ("LOADS", &["load", "rows_loaded"]),
    ("WHOLE QUERIES", &["queries_", "query_", "rows_aggregated", "rows_skipped", "rows_filtered"]),
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
