//! One limit for all the memory of the engine, and what each use may have of it
//! ([decision 0038](../../../../docs/decisions/0038-one-memory-limit.md)).
//!
//! Each use has a **share** that it does not pass: what goes beyond is written to files (memtables, uncommitted changes, loads,
//! queries) or held more coarsely (row locks). The block cache has what the others leave. So the shares need not move: what
//! one use does not take, the cache has, and gives it up again when it is wanted.
//!
//! What keeps to the shares is elsewhere: `jobs::memory` for memtables and the cache, `Txn` for its changes and locks.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_base::observer::MEMORY_USES;
use pando_base::{limits, Metrics};

use crate::db::options::OtherMemory;

/// Shares are counted in these parts of the limit, without [`BESIDE_SHARES`].
const PARTS: u64 = 16;
/// What nobody counts takes so much however large the limit is: the log's buffers, what compresses and merges. Of a small limit, the other
/// bound is less: this part of it.
const BESIDE_SHARES: (u64, u64) = (32 << 20, 8);
/// Memtables that are not in the tables' files yet: beyond it, writers wait.
const MEMTABLES_MAX: u64 = 4;
/// What they have however short memory is.
const MEMTABLES_MIN: u64 = 1;
/// Beyond this part of what they may have, the largest are written before they are full.
const MEMTABLES_SOFT: (u64, u64) = (3, 4);
/// Uncommitted changes of all transactions: beyond it, long transactions spill theirs.
const WRITE_SETS: u64 = 2;
/// Bulk loads and index builds.
const LOADS: u64 = 3;
/// Groups, joins, and sorting of SELECTs in the engine.
const QUERIES: u64 = 3;
/// Row locks: beyond it, transactions with many replace them by range locks.
const LOCKS: u64 = 1;
/// What the cache keeps, whatever the others take.
const CACHE_MIN: u64 = 2;
// What is left is for what else nobody counts: inner nodes, background jobs, blocks that are being read.
const _: () = assert!(MEMTABLES_MAX + WRITE_SETS + LOADS + QUERIES + LOCKS + CACHE_MIN < PARTS);

/// What a row lock takes, about.
const ROW_LOCK_BYTES: u64 = 100;
/// Locks that a transaction may hold while all of them together are beyond their share.
const LOCKS_WHEN_SHORT: usize = 10_000;
/// The others are looked at again when they have taken so much more (1 / this of the limit).
const LOOKS: u64 = 128;

/// See the head of this file.
pub(crate) struct MemoryLimit {
    bytes: AtomicU64,
    /// What the cache may have of it, and loads, by limits of their own.
    cache_max: AtomicU64,
    loads_max: AtomicU64,
    /// Memory within the limit that the database does not know of.
    others: Option<OtherMemory>,
    /// What memtables may have now.
    memtables_max: AtomicU64,
    /// What was in use beside the cache when somebody looked last.
    seen: AtomicU64,
    /// Held by who looks.
    pub(crate) turn: Mutex<()>,
    metrics: Arc<Metrics>,
}

impl MemoryLimit {
    pub(crate) fn new(
        bytes: u64,
        cache_max: u64,
        others: Option<OtherMemory>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let limit = MemoryLimit {
            bytes: AtomicU64::new(0),
            cache_max: AtomicU64::new(cache_max),
            loads_max: AtomicU64::new(u64::MAX),
            others,
            memtables_max: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            turn: Mutex::default(),
            metrics,
        };
        limit.set(bytes);
        limit
    }

    pub(crate) fn set(&self, bytes: u64) {
        self.bytes.store(bytes.max(limits::MEMORY_BYTES_MIN), Ordering::Relaxed);
        self.metrics.memory_limit.set(self.bytes());
        self.divide(0);
    }

    pub(crate) fn set_cache_max(&self, bytes: u64) {
        self.cache_max.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set_loads_max(&self, bytes: u64) {
        self.loads_max.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn parts(&self, parts: u64) -> u64 {
        let (bytes, part) = BESIDE_SHARES;
        let bytes = self.bytes() - bytes.min(self.bytes() / part);
        bytes / PARTS * parts
    }

    pub(crate) fn memtables_max(&self) -> u64 {
        self.memtables_max.load(Ordering::Relaxed)
    }

    pub(crate) fn memtables_soft(&self) -> u64 {
        self.memtables_max() / MEMTABLES_SOFT.1 * MEMTABLES_SOFT.0
    }

    /// Memtables have less where everything else, `beside` the cache, has passed its share: they can be written soonest.
    fn divide(&self, beside: u64) {
        let others = beside.saturating_sub(self.metrics.memtable_unwritten_bytes.get());
        let left = self.bytes().saturating_sub(others + self.parts(CACHE_MIN));
        let max = left.clamp(self.parts(MEMTABLES_MIN), self.parts(MEMTABLES_MAX));
        self.memtables_max.store(max, Ordering::Relaxed);
    }

    /// Whether this is the most that the cache may have.
    pub(crate) fn is_all_for_cache(&self, bytes: u64) -> bool {
        bytes >= self.cache_max.load(Ordering::Relaxed)
    }

    /// For SELECTs in the engine, which are not the database's to bound.
    pub(crate) fn queries_max(&self) -> u64 {
        self.parts(QUERIES)
    }

    pub(crate) fn loads_max(&self) -> u64 {
        self.parts(LOADS).min(self.loads_max.load(Ordering::Relaxed))
    }

    /// Whether all uncommitted changes together have passed their share.
    pub(crate) fn is_short_of_write_sets(&self) -> bool {
        self.metrics.write_set_bytes.get() > self.parts(WRITE_SETS)
    }

    /// Of a budget of row locks for each transaction, what one may have now.
    pub(crate) fn lock_budget(&self, budget: usize) -> usize {
        match self.lock_bytes() > self.parts(LOCKS) {
            true => budget.min(LOCKS_WHEN_SHORT),
            false => budget,
        }
    }

    /// What is in use beside the cache, of what is counted at once.
    fn counted(&self) -> u64 {
        let metrics = &self.metrics;
        metrics.memtable_bytes.get()
            + metrics.write_set_bytes.get()
            + metrics.load_memory_bytes.get()
            + self.lock_bytes()
            + self.bytes_of_others()
    }

    /// What is in use now, by what for: see [`MEMORY_USES`]. Memtables include uncommitted changes, which become theirs.
    pub(crate) fn uses(&self, cached: u64) -> [u64; MEMORY_USES.len()] {
        let metrics = &self.metrics;
        let known = [
            cached,
            metrics.memtable_bytes.get() + metrics.write_set_bytes.get(),
            self.lock_bytes(),
            metrics.load_memory_bytes.get(),
            self.bytes_of_others(),
        ];
        let other = metrics.memory_bytes.get().saturating_sub(known.iter().sum());
        let [cache, memtables, locks, loads, queries] = known;
        [cache, memtables, locks, loads, queries, other]
    }

    /// What all row locks take, about.
    pub(crate) fn lock_bytes(&self) -> u64 {
        self.metrics.row_locks.get() * ROW_LOCK_BYTES
    }

    fn bytes_of_others(&self) -> u64 {
        self.others.as_ref().map_or(0, OtherMemory::bytes)
    }

    /// Whether much has been taken since [`Self::look`]: it is time for the next.
    pub(crate) fn has_grown(&self) -> bool {
        self.counted().saturating_sub(self.seen.load(Ordering::Relaxed)) > self.bytes() / LOOKS
    }

    /// What the cache may have now, `cached` bytes being in it.
    pub(crate) fn look(&self, cached: u64) -> u64 {
        self.metrics.query_memory_bytes.set(self.bytes_of_others());
        let counted = self.counted();
        self.seen.store(counted, Ordering::Relaxed);
        // Nobody counts blocks that are being read or merged, nodes, or lists: all allocations together have them.
        let allocated = pando_memory::usage();
        let in_use = allocated.used_bytes + allocated.small_bytes;
        let beside = counted.max(in_use.saturating_sub(cached)) + allocated.kept_bytes;
        self.metrics.memory_bytes.set(cached + beside);
        self.divide(beside);
        let cache_max = self.cache_max.load(Ordering::Relaxed);
        self.bytes()
            .saturating_sub(beside)
            .max(self.parts(CACHE_MIN))
            .min(cache_max)
            .max(limits::CACHE_BYTES_MIN)
    }
}

impl fmt::Debug for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLimit").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn limit(bytes: u64, cache_max: u64) -> MemoryLimit {
        MemoryLimit::new(bytes, cache_max, None, Arc::default())
    }

    #[test]
    fn the_cache_has_what_the_others_leave_but_never_less_than_its_share() {
        let limit = limit(1632 * MIB, 1200 * MIB);
        assert_eq!(limit.look(0), 1200 * MIB);
        limit.metrics.memtable_bytes.add(300 * MIB);
        assert_eq!(limit.look(0), 1200 * MIB);
        limit.metrics.write_set_bytes.add(200 * MIB);
        assert_eq!(limit.look(0), 1132 * MIB);
        limit.metrics.row_locks.add(MIB);
        assert_eq!(limit.look(0), 1032 * MIB);
        limit.metrics.load_memory_bytes.add(5000 * MIB);
        assert_eq!(limit.look(0), 200 * MIB);
        limit.set_cache_max(100 * MIB);
        assert_eq!(limit.look(0), 100 * MIB);
    }

    #[test]
    fn memtables_have_less_where_others_have_passed_their_shares() {
        let limit = limit(1632 * MIB, 1200 * MIB);
        limit.look(0);
        assert_eq!((limit.memtables_max(), limit.memtables_soft()), (400 * MIB, 300 * MIB));
        limit.metrics.memtable_unwritten_bytes.add(350 * MIB);
        limit.metrics.memtable_bytes.add(350 * MIB);
        limit.metrics.load_memory_bytes.add(1032 * MIB);
        limit.look(0);
        assert_eq!(limit.memtables_max(), 400 * MIB);
        limit.metrics.load_memory_bytes.add(200 * MIB);
        limit.look(0);
        assert_eq!(limit.memtables_max(), 200 * MIB);
        limit.metrics.load_memory_bytes.add(200 * MIB);
        limit.look(0);
        assert_eq!(limit.memtables_max(), 100 * MIB);
    }

    #[test]
    fn who_takes_much_is_noticed_once() {
        let limit = limit(1280 * MIB, 1000 * MIB);
        limit.look(0);
        limit.metrics.memtable_bytes.add(10 * MIB);
        assert!(!limit.has_grown());
        limit.metrics.memtable_bytes.add(1);
        assert!(limit.has_grown());
        limit.look(0);
        assert!(!limit.has_grown());
    }

    #[test]
    fn a_limit_of_its_own_keeps_a_use_below_its_share() {
        let limit = limit(1632 * MIB, 1000 * MIB);
        assert_eq!(limit.loads_max(), 300 * MIB);
        limit.set_loads_max(50 * MIB);
        assert_eq!(limit.loads_max(), 50 * MIB);
        assert_eq!(limit.lock_budget(200_000), 200_000);
        limit.metrics.row_locks.add(2 * MIB);
        assert_eq!((limit.lock_budget(200_000), limit.lock_budget(5)), (LOCKS_WHEN_SHORT, 5));
    }

    #[test]
    fn no_limit_is_too_small_to_work_with() {
        assert_eq!(limit(128 * MIB, MIB).loads_max(), 21 * MIB);
        assert_eq!(limit(1, MIB).bytes(), limits::MEMORY_BYTES_MIN);
    }
}
