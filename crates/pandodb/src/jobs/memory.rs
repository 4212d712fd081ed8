//! Keeping to the limit of memory: what the cache may have, memtables that are written before they are full, and writers that
//! wait for them. The shares are in `db::memory`.
//!
//! Lock order: the turn of who looks comes before gates and the queue's mutex. Who writes only tries it.

use std::sync::Arc;
use std::time::Duration;

use pando_base::locks::MutexGuard;
use pando_base::Error;

use crate::db::Db;
use crate::table::Dict;

/// A change of the cache's limit that is not worth the locks of its shards (1 / this of it).
const CACHE_STEP: u64 = 64;
/// How long a writer sleeps before it asks again.
const WAIT: Duration = Duration::from_millis(2);
/// After so long a writer goes on all the same: it must not stand still because of memory that nobody can give back.
const WAIT_MAX_MICROS: u64 = 10_000_000;

impl Db {
    /// Called where memory is taken. Nearly always a few comparisons.
    pub(crate) fn look_at_memory_if_grown(&self) {
        if self.memory.has_grown() {
            self.look_at_memory();
        }
    }

    /// Gives the cache what the others leave, and has memtables written if they take too much. If somebody is at it, that is
    /// enough.
    pub(crate) fn look_at_memory(&self) {
        if let Some(turn) = self.memory.turn.try_lock() {
            self.divide_memory(&turn);
        }
    }

    fn divide_memory(&self, _turn: &MutexGuard<'_, ()>) {
        self.metrics.load_memory_bytes.set(self.load_memory.used());
        let wanted = self.memory.look(self.cache.bytes());
        let limit = self.cache.limit();
        let is_worth_it =
            wanted < limit || wanted - limit > limit / CACHE_STEP || self.memory.is_all_for_cache(wanted);
        if wanted != limit && is_worth_it {
            self.cache.set_limit(wanted);
        }
        let soft = self.memory.memtables_soft();
        if self.metrics.memtable_unwritten_bytes.get() > soft {
            self.seal_largest(soft / 2);
        }
    }

    /// Seals the largest active memtables until all others together take no more than `keep` bytes: few large runs are cheaper than many
    /// small ones.
    fn seal_largest(&self, keep: u64) {
        let mut active: Vec<(u64, Arc<Dict>)> = self
            .open_dicts()
            .into_iter()
            .filter(|dict| !dict.is_dropped())
            .map(|dict| (dict.tree.active_bytes(), dict))
            .collect();
        active.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let mut left: u64 = active.iter().map(|(bytes, _)| bytes).sum();
        for (bytes, dict) in active {
            if left <= keep {
                return;
            }
            left -= bytes;
            if dict.tree.seal(|| self.wal.last_seqno()) {
                self.metrics.memtable_seals_early.add(1);
                self.background.request(&dict);
            }
        }
    }

    /// Before a write to `dicts`: waits while memtables have all of their share, and `is_patient` says so.
    ///
    /// # Errors
    /// One of these dictionaries cannot write its own.
    pub(crate) fn wait_for_memtables(
        &self,
        dicts: &[Arc<Dict>],
        is_patient: impl Fn() -> bool,
    ) -> Result<(), Error> {
        let is_full = || self.metrics.memtable_unwritten_bytes.get() > self.memory.memtables_max();
        if !is_full() || self.background.workers == 0 || !is_patient() {
            return Ok(());
        }
        let started = self.vfs.now_micros();
        let waited = || self.vfs.now_micros().saturating_sub(started);
        self.metrics.memory_waits.add(1);
        let mut result = Ok(());
        while is_full() && is_patient() && waited() < WAIT_MAX_MICROS && !self.background.stopping() {
            self.look_at_memory();
            if let Some(error) = dicts.iter().find_map(|dict| dict.job_failure.get()) {
                result = Err(error);
                break;
            }
            std::thread::sleep(WAIT);
        }
        self.metrics.memory_wait_time.add(waited());
        result
    }

    /// Changes the limit of all memory.
    pub fn set_memory_bytes(&self, bytes: u64) {
        self.memory.set(bytes);
        self.load_memory.set_limit(self.memory.loads_max());
        self.divide_memory(&self.memory.turn.lock());
    }

    /// Changes the limit of the block cache, within that of all memory.
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.memory.set_cache_max(bytes);
        self.divide_memory(&self.memory.turn.lock());
    }

    /// Changes the memory of all bulk loads and index builds together, within their share of all memory.
    pub fn set_load_memory(&self, bytes: u64) {
        self.memory.set_loads_max(bytes);
        self.load_memory.set_limit(self.memory.loads_max());
    }

    /// What SELECTs in the engine may have together: their share of all memory.
    pub fn query_memory_max(&self) -> u64 {
        self.memory.queries_max()
    }
}
