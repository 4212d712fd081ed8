//! What the layer above is told of waits, and asked.
//!
//! Purpose: a replica that applies transactions in parallel commits them in the primary's order. One that
//! waits for its turn to commit waits for somebody the lock manager knows nothing of, so a cycle may go
//! through both kinds of waiting: the first in the order waits for a row of the second, the second for its
//! turn. Only the server sees the whole, and it resolves it by killing the later one. For that it has
//! to hear of every edge between two transactions, and the detector has to ask it which member of a
//! cycle of its own it would rather lose.
//!
//! When: an edge is told once, after the waiter has entered the queue and before it sleeps. The edge may
//! be gone by then, and the one who is in the way may have ended: whoever listens has to look again, on its
//! side, whether that transaction still runs. One kind of edge comes later: ranges are taken without regard
//! to those who wait to insert into them, and then the one who takes the range tells of it. Otherwise who is
//! granted something while others wait was before them in the queue, or held it when they came (see
//! `deadlock.rs`).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use pando_base::TxnId;

use super::txn::{TxnState, WaitPlace};
use super::LockManager;

/// One who listens to waits; see the head of this file.
pub trait LockWatch: Send + Sync + fmt::Debug {
    /// `waiter` is about to sleep until all of `blockers` are out of its way, or sleeps already and the one
    /// blocker has come into its way. No mutex is held; the calling thread is the waiter's, or the blocker's.
    fn waits(&self, waiter: TxnId, blockers: &[TxnId]);

    /// Which of two members of a cycle should rather be its victim: `Less` the first, `Greater` the second,
    /// `Equal` whichever loses less. Called with the detector's mutex held: it must not lock or unlock rows.
    fn victim(&self, first: TxnId, second: TxnId) -> Ordering;
}

impl LockManager {
    /// Tells the listener, if there is one, what `state`, which has entered a queue, waits for.
    pub(crate) fn report_wait(&self, state: &Arc<TxnState>) {
        let Some(watch) = &self.watch else { return };
        let blockers = self.blockers_of(state);
        if !blockers.is_empty() {
            watch.waits(state.id, &blockers);
        }
    }

    /// Tells the listener of a range that was taken while `waiter` waited already.
    pub(crate) fn report_edge(&self, waiter: TxnId, blocker: TxnId) {
        if let Some(watch) = &self.watch {
            watch.waits(waiter, &[blocker]);
        }
    }

    /// Everybody who has to be out of the way before `waiter` is granted what it waits for: holders and the
    /// requests before its own. Empty if it does not wait any more.
    fn blockers_of(&self, waiter: &Arc<TxnState>) -> Vec<TxnId> {
        let Some(place) = waiter.waits_at() else { return Vec::new() };
        let mut blockers: Vec<TxnId> = match place {
            WaitPlace::Lock(at) => {
                let shard = self.shard(at);
                if waiter.waits_at() != Some(place) {
                    return Vec::new();
                }
                let lock = shard.lock(at.slot);
                let before = lock.queue().take_while(|other| !Arc::ptr_eq(&other.txn, waiter));
                let in_the_way =
                    lock.holders().map(|holder| &holder.txn).chain(before.map(|other| &other.txn));
                in_the_way.map(|txn| txn.id).collect()
            }
            WaitPlace::Ranges(dict) => {
                let shard = self.ranges.lock(dict);
                if waiter.waits_at() != Some(place) {
                    return Vec::new();
                }
                shard.blockers_of(waiter, dict).map(|txn| txn.id).collect()
            }
        };
        blockers.retain(|id| *id != waiter.id);
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// What the listener says of two members of a cycle.
    pub(crate) fn preferred_victim(&self, first: TxnId, second: TxnId) -> Ordering {
        self.watch.as_ref().map_or(Ordering::Equal, |watch| watch.victim(first, second))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use pando_base::locks::Mutex;
    use pando_base::{DictId, Metrics};

    use super::super::LockMode::{Exclusive, Shared};
    use super::super::{LockError, Wait};
    use super::*;

    const DICT: DictId = DictId(1);
    const LONG: Wait = Wait::Timeout(Duration::from_secs(30));

    /// Notes what it is told; transactions with larger ids are the preferred victims, if it has a preference.
    #[derive(Debug, Default)]
    struct Notes {
        told: Mutex<Vec<(u64, Vec<u64>)>>,
        later_falls: bool,
    }

    impl LockWatch for Notes {
        fn waits(&self, waiter: TxnId, blockers: &[TxnId]) {
            self.told.lock().push((waiter.0, blockers.iter().map(|id| id.0).collect()));
        }

        fn victim(&self, first: TxnId, second: TxnId) -> Ordering {
            if self.later_falls {
                second.cmp(&first)
            } else {
                Ordering::Equal
            }
        }
    }

    fn watched(later_falls: bool) -> (Arc<LockManager>, Arc<Notes>) {
        let notes = Arc::new(Notes { later_falls, ..Notes::default() });
        (LockManager::watched(Arc::new(Metrics::default()), Some(notes.clone())), notes)
    }

    fn until_told(notes: &Notes, count: usize) {
        while notes.told.lock().len() < count {
            thread::yield_now();
        }
    }

    #[test]
    fn a_waiter_is_reported_with_holders_and_those_before_it() {
        let (locks, notes) = watched(false);
        let [a, b, c, d] = [1, 2, 3, 4].map(|id| locks.register(TxnId(id)));
        locks.lock(&a, DICT, b"k", Shared, LONG).unwrap();
        locks.lock(&b, DICT, b"k", Shared, LONG).unwrap();
        assert_eq!(locks.lock(&c, DICT, b"k", Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
        assert_eq!(*notes.told.lock(), [], "who does not wait is not reported");
        thread::scope(|scope| {
            let exclusive = scope.spawn(|| {
                locks.lock(&c, DICT, b"k", Exclusive, LONG).unwrap();
                locks.release_all(&c);
            });
            until_told(&notes, 1);
            let behind = scope.spawn(|| locks.lock(&d, DICT, b"k", Shared, LONG).unwrap());
            until_told(&notes, 2);
            // An upgrader waits for the other holders only.
            let upgrade = scope.spawn(|| {
                locks.lock(&a, DICT, b"k", Exclusive, LONG).unwrap();
                locks.release_all(&a);
            });
            until_told(&notes, 3);
            locks.release_all(&b);
            for thread in [exclusive, upgrade] {
                thread.join().unwrap();
            }
            behind.join().unwrap();
        });
        assert_eq!(*notes.told.lock(), [(3, vec![1, 2]), (4, vec![1, 2, 3]), (1, vec![2])]);
    }

    #[test]
    fn the_preferred_victim_falls_whatever_it_weighs() {
        for later_falls in [false, true] {
            let (locks, notes) = watched(later_falls);
            let [early, late] = [1, 2].map(|id| locks.register(TxnId(id)));
            late.set_weight(1000);
            locks.lock(&early, DICT, b"1", Exclusive, LONG).unwrap();
            locks.lock(&late, DICT, b"2", Exclusive, LONG).unwrap();
            thread::scope(|scope| {
                let first = scope.spawn(|| {
                    let answer = locks.lock(&early, DICT, b"2", Exclusive, LONG);
                    locks.release_all(&early);
                    answer
                });
                until_told(&notes, 1);
                let second = locks.lock(&late, DICT, b"1", Exclusive, LONG);
                locks.release_all(&late);
                let fell = if later_falls { second } else { first.join().unwrap() };
                assert_eq!(fell, Err(LockError::Deadlock));
            });
        }
    }
}
