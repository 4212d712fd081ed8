//! How a replay is divided, and what its lanes share.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_base::DictId;
use pando_storage::vfs::Vfs;

use crate::db::options::{LogLevel, LogSink};

/// Divides dictionaries, each given with what it costs, among so many lanes at most, so that none has much more to do than the
/// others: the largest first, each to the lane that has least so far (Graham, "Bounds on Multiprocessing Timing Anomalies", 1969:
/// the longest lane takes a third more than in the best division at most).
pub(super) fn divide(costs: &BTreeMap<DictId, u64>, lanes: usize) -> Vec<Vec<DictId>> {
    let mut largest_first: Vec<(DictId, u64)> = costs.iter().map(|(id, cost)| (*id, *cost)).collect();
    largest_first.sort_by_key(|(id, cost)| (Reverse(*cost), *id));
    let mut divided = vec![(0u64, Vec::new()); lanes.clamp(1, costs.len().max(1))];
    for (id, cost) in largest_first {
        if let Some((sum, ids)) = divided.iter_mut().min_by_key(|(sum, ids)| (*sum, ids.len())) {
            *sum = sum.saturating_add(cost);
            ids.push(id);
        }
    }
    let sorted = |(_, mut ids): (u64, Vec<DictId>)| {
        ids.sort();
        ids
    };
    divided.into_iter().map(sorted).collect()
}

/// The memory that sealed memtables may take until the replay has ended.
pub(super) struct ReplayMemory {
    limit: u64,
    taken: AtomicU64,
}

impl ReplayMemory {
    pub(super) fn new(limit: u64) -> ReplayMemory {
        ReplayMemory { limit, taken: AtomicU64::new(0) }
    }

    /// A dictionary's part of it has changed.
    pub(super) fn changed(&self, before: u64, now: u64) {
        self.taken.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Memtables must be written before more are sealed.
    pub(super) fn is_full(&self) -> bool {
        self.taken.load(Ordering::Relaxed) > self.limit
    }
}

/// Between two lines of progress.
const PROGRESS_MICROS: u64 = 5_000_000;
/// A lane says so often how far it is.
const PROGRESS_BYTES: u64 = 1 << 20;

/// How far all lanes together are, for the operator's log.
pub(super) struct Progress<'a> {
    log: &'a LogSink,
    vfs: &'a dyn Vfs,
    /// Bytes that all passes of all lanes will read.
    total: u64,
    /// Times that the log is read.
    passes: u64,
    read: AtomicU64,
    said_at: AtomicU64,
}

impl<'a> Progress<'a> {
    /// Of so many passes over a log of `bytes`.
    pub(super) fn new(log: &'a LogSink, vfs: &'a dyn Vfs, bytes: u64, passes: usize) -> Progress<'a> {
        let passes = passes.max(1) as u64;
        let (total, said_at) = (bytes.saturating_mul(passes), AtomicU64::new(vfs.now_micros()));
        Progress { log, vfs, total, passes, read: AtomicU64::new(0), said_at }
    }

    /// A lane has read a batch of `bytes`; `unsaid` is its own.
    pub(super) fn batch(&self, bytes: usize, unsaid: &mut u64) {
        *unsaid += bytes as u64;
        if *unsaid < PROGRESS_BYTES {
            return;
        }
        let read = self.read.fetch_add(*unsaid, Ordering::Relaxed) + *unsaid;
        *unsaid = 0;
        let (now, said_at) = (self.vfs.now_micros(), self.said_at.load(Ordering::Relaxed));
        let is_due = now.saturating_sub(said_at) >= PROGRESS_MICROS;
        if is_due && self.said_at.compare_exchange(said_at, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            let mib = |bytes: u64| bytes / self.passes / (1 << 20);
            let text = format!("recovery has replayed {} of {} MiB of the log", mib(read), mib(self.total));
            (self.log)(LogLevel::Note, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_have_about_as_much_to_do_and_every_dictionary_has_one() {
        let costs: BTreeMap<DictId, u64> = (0..50).map(|n| (DictId(n), (n * 7919) % 101)).collect();
        for lanes in [1, 2, 3, 8] {
            let divided = divide(&costs, lanes);
            assert_eq!(divided.len(), lanes);
            let sums: Vec<u64> = divided.iter().map(|ids| ids.iter().map(|id| costs[id]).sum()).collect();
            let (least, most) = (sums.iter().min().unwrap(), sums.iter().max().unwrap());
            assert!(most - least <= 101, "{sums:?}");
            assert!(divided.iter().all(|ids| ids.is_sorted()));
            let mut all: Vec<DictId> = divided.concat();
            all.sort();
            assert!(all.iter().eq(costs.keys()));
        }
    }

    #[test]
    fn few_dictionaries_have_few_lanes() {
        let costs = BTreeMap::from([(DictId(3), 5), (DictId(9), 0)]);
        assert_eq!(divide(&costs, 8), [[DictId(3)], [DictId(9)]]);
        assert_eq!(divide(&BTreeMap::new(), 8), [[]]);
    }
}
