//! Counters of the whole engine, one table from which the struct, the status variables of the
//! server and the text of `SHOW ENGINE PANDO STATUS` are generated.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter or gauge. Relaxed: figures for people, never for decisions that need order.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    /// Subtracts `n` (gauges).
    pub fn sub(&self, n: u64) {
        self.0.fetch_sub(n, Ordering::Relaxed);
    }
    /// Sets the value (gauges).
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }
    /// Raises the value to `n` if it is smaller (maxima).
    pub fn raise(&self, n: u64) {
        self.0.fetch_max(n, Ordering::Relaxed);
    }
    /// Reads the value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! metrics {
    ($($name:ident: $doc:literal,)*) => {
        /// All counters. Times are in microseconds, sizes in bytes.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $(#[doc = $doc] pub $name: Counter,)*
        }

        impl Metrics {
            /// Names and meanings, in the order of `values`.
            pub const TABLE: &'static [(&'static str, &'static str)] = &[$((stringify!($name), $doc),)*];

            /// Current values in the order of `TABLE`.
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$name.get(),)*]
            }
        }
    };
}

metrics! {
    cache_bytes: "decoded blocks in the cache now",
    cache_bytes_limit: "limit of the cache",
    cache_hits: "blocks found in the cache",
    cache_packed_uses: "uses of blocks that a full cache keeps as they are stored",
    cache_misses: "blocks read from a file",
    cache_read_bytes: "bytes read from tree files",
    cache_read_time: "time in those reads",
    cache_load_blocks: "blocks that the cache had before the start, to be read again",
    cache_loaded_blocks: "part of them that it has again",
    log_written_bytes: "bytes appended to the log",
    log_writes: "writes to log files",
    log_syncs: "syncs of log files",
    log_sync_time: "time in syncs of log files",
    log_waits: "commits that waited for a log write or sync of another",
    log_wait_time: "time in those waits",
    backup_held_bytes: "bytes of tables that would be free without the backup being taken",
    backup_files_left: "files that it has still to copy",
    log_kept_bytes: "log files kept for recovery now",
    log_held_bytes: "part of them kept for somebody for whom no checkpoint helps; Pando_log_holder says for whom",
    log_prepares_renewed: "prepared transactions logged anew, so that older log is not kept for them",
    memory_limit: "limit of all memory of the engine",
    memory_bytes: "of it in use now, all allocations",
    memtable_bytes: "memory of memtables now, those included that are written and only read by old snapshots",
    memtable_unwritten_bytes: "part of it that is not in files yet",
    buffer_bytes: "bytes in large buffers now, cache and memtables included, updated once a second",
    buffer_bytes_kept: "free bytes kept for the next buffers",
    heap_bytes: "bytes in smaller allocations of the engine now, updated once a second",
    memtable_seals: "memtables sealed",
    memtable_seals_early: "of these, sealed before they were full, to keep all memtables within their share of memory",
    memtable_written_bytes: "bytes written from memtables into runs",
    flushes: "flushes of a buffer to a child",
    flush_read_bytes: "raw bytes merged by flushes",
    flush_written_bytes: "bytes written by flushes",
    flush_by_reference: "runs passed down without rewriting",
    compactions: "merges of runs within a buffer or leaf",
    compaction_written_bytes: "bytes written by compactions",
    leaf_splits: "leaves split",
    node_splits: "internal nodes split",
    versions_dropped: "dead versions and tombstones dropped by merges",
    filter_probes: "keys looked up in filters",
    filter_negatives: "keys that a filter reported as absent",
    checkpoints: "dictionary checkpoints completed",
    checkpoint_written_bytes: "bytes of nodes and superblocks written by checkpoints",
    checkpoint_time: "time in checkpoints",
    backpressure_waits: "writes delayed because flushes were behind",
    backpressure_time: "time in those delays",
    backpressure_time_max: "longest such delay",
    memory_waits: "writes that waited until memtables were written, because these had all of their share of memory",
    memory_wait_time: "time in those waits",
    row_locks: "row locks held now",
    row_lock_requests: "row locks asked for",
    row_lock_waits: "requests that had to wait",
    row_lock_time: "time in those waits",
    rows_locked_ahead: "rows that scans locked ahead, many by one range lock",
    row_lock_stretches: "range locks that replaced row locks over the lock budget (lock escalation)",
    row_lock_timeouts: "waits that timed out",
    deadlocks: "deadlocks resolved",
    commits: "transactions committed with writes",
    rollbacks: "transactions rolled back",
    write_set_bytes: "memory of uncommitted changes now, of transactions with more than a few",
    statement_rollbacks: "rollbacks to a savepoint or statement start",
    spills: "parts of large transactions moved from memory into files of their tables",
    spill_written_bytes: "bytes written by spills",
    load_memory_bytes: "memory of bulk loads and index builds now",
    loads: "bulk loads done",
    rows_loaded: "rows in bulk loads",
    load_encode_time: "processor time of loads: rows to entries of keys",
    load_sort_time: "processor time of loads: sorting of entries",
    load_spill_time: "processor time of loads: sorted entries written beyond pando_load_memory",
    load_write_time: "processor time of loads: what came in key order written into leaves",
    load_merge_time: "processor time of loads: sorted entries merged into leaves",
    load_sync_time: "processor time of loads: syncs of files",
    load_spilled_bytes: "bytes of sorted entries written beyond pando_load_memory",
    query_memory_bytes: "memory of such queries now: groups, joins, sorting",
    queries_pushed: "queries that the engine answered itself",
    queries_given_back: "queries that it began to answer and then left to the server",
    query_spill_files: "temporary files of such queries, beyond pando_pushdown_memory",
    query_spilled_bytes: "bytes written to them",
    rows_aggregated: "rows that such queries scanned",
    rows_aggregated_in_columns: "of these, rows read as whole columns of segments",
    rows_skipped: "rows of segments that queries skipped by their zone maps",
    rows_filtered: "rows of scans that the engine evaluated and did not pass to the server",
    rows_read: "rows passed to the server",
    rows_inserted: "rows inserted",
    rows_updated: "rows updated",
    rows_deleted: "rows deleted",
    ranges_deleted: "ranges of rows deleted by one entry of the log",
    rows_unread: "rows inserted, changed or deleted without looking for what was there",
    tables_open: "tables open now",
    files_open: "tree files open now",
    file_descriptors: "file descriptors held now for files of tables",
    files_reopened: "files that had given up their descriptors and got them again",
    read_only_latched: "1 after a failed log write or sync",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_the_table() {
        let m = Metrics::default();
        m.cache_bytes.add(7);
        m.read_only_latched.set(1);
        let values = m.values();
        assert_eq!(values.len(), Metrics::TABLE.len());
        assert_eq!(values.first(), Some(&7));
        assert_eq!(values.last(), Some(&1));
        assert!(Metrics::TABLE.iter().all(|(name, doc)| !name.is_empty() && !doc.is_empty()));
    }
}
