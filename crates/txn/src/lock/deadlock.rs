//! The deadlock detector: finds cycles in who waits for whom, and breaks them.
//!
//! The wait-for graph is not stored. A waiting transaction names the lock it waits for, and the lock
//! names who is in its way; the detector reads both when a wait begins. So hand-overs,
//! upgrades, time-outs and single unlocks have no edges to keep right.
//!
//! **Who is in the way.** A request waits for the holders it cannot stand beside and for the requests
//! before it in the queue it cannot stand beside. Those wait for the same lock, so whatever is
//! reached through them is reached through the holders: the search follows holders only. A shared
//! request behind an exclusive one stands beside shared holders but waits for them all the
//! same, *via* the exclusive one, which then is a member of the cycle too. One who waits because of ranges
//! waits for all others whose ranges cover its key, and for nobody in the queue.
//!
//! **When.** Every edge that appears has as source or target the transaction that begins to wait:
//! grants go to the front of the queue, before which the others waited already. Or its target is a
//! transaction that runs: it takes a range that covers what another waits to insert, or replaces locks by
//! a stretch. Or its target is given the lock on a key that it has written, at the wish of one who has yet
//! to begin to wait for it. So a cycle exists
//! first when the last of its members begins to wait, and goes through that one. Each searches
//! *after* it is in its queue; of several that begin at once, one is last and sees all the others.
//!
//! **No false alarm.** The search locks one shard at a time, so what it finds may be put together from
//! different moments. Before a victim falls all shards of the cycle are locked, those of locks before those
//! of ranges, each ascending, and every edge is looked at again. Only one detector runs at a time, so two
//! do not fell two victims for one cycle.
//!
//! Lock order: detector, then shards of locks, then of ranges, ascending (all others hold one of each
//! at a time), then a transaction's wait state.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use pando_base::locks::MutexGuard;
use pando_base::TxnId;

use super::range_table::{RangeShard, Wish};
use super::ranges::Ranges;
use super::report::{key_row, wish_row, Deadlock, DeadlockWait, LockRow};
use super::table::{Lock, Place, Shard, Woken};
use super::txn::{TxnState, WaitEnd, WaitPlace};
use super::{LockManager, LockMode};

/// One edge of a cycle: `waiter` waits at `place`, which `holder` holds.
struct Edge {
    waiter: Arc<TxnState>,
    place: WaitPlace,
    /// The exclusive request through which a shared one waits for a shared holder.
    via: Option<Arc<TxnState>>,
    holder: Arc<TxnState>,
}

/// A transaction the search reached, and through which edge (its index in the list of edges).
struct Reached {
    txn: Arc<TxnState>,
    through: Option<usize>,
}

impl LockManager {
    /// Breaks every cycle `start`, which has just begun to wait, is in. Its wait may be over then.
    pub(crate) fn resolve_deadlocks(&self, start: &Arc<TxnState>) {
        if !self.someone_in_the_way_waits(start) {
            return;
        }
        let _one_detector = self.detector.lock();
        while let Some(cycle) = self.find_cycle(start) {
            self.break_cycle(&cycle);
        }
    }

    /// The cheap look that ends nearly every search: a cycle through `start` needs a holder that waits.
    fn someone_in_the_way_waits(&self, start: &Arc<TxnState>) -> bool {
        self.edges_of(start).iter().any(|edge| edge.holder.waits_at().is_some())
    }

    /// What `waiter` waits for now; empty if it does not wait any more.
    fn edges_of(&self, waiter: &Arc<TxnState>) -> Vec<Edge> {
        let Some(place) = waiter.waits_at() else { return Vec::new() };
        let mut frozen = Frozen::default();
        frozen.freeze(self, [place].into_iter());
        if waiter.waits_at() != Some(place) {
            return Vec::new();
        }
        frozen.edges_at(place, waiter)
    }

    /// A shortest cycle through `start`, as edges in order from `start` on.
    fn find_cycle(&self, start: &Arc<TxnState>) -> Option<Vec<Edge>> {
        let mut reached = vec![Reached { txn: Arc::clone(start), through: None }];
        let mut edges: Vec<(usize, Edge)> = Vec::new();
        let mut seen = HashSet::from([start.id]);
        let mut at = 0;
        while at < reached.len() {
            for edge in self.edges_of(&reached[at].txn) {
                let holder = Arc::clone(&edge.holder);
                let closes = Arc::ptr_eq(&holder, start);
                if closes || seen.insert(holder.id) {
                    edges.push((at, edge));
                    if closes {
                        return Some(path_back(&reached, edges));
                    }
                    reached.push(Reached { txn: holder, through: Some(edges.len() - 1) });
                }
            }
            at += 1;
            if cfg!(debug_assertions) {
                // Tests are to meet searches whose looks lie far apart.
                std::thread::yield_now();
            }
        }
        None
    }

    /// Looks at every edge again with all shards locked; if the cycle is real, ends one wait in it.
    fn break_cycle(&self, cycle: &[Edge]) {
        // Before the shards are locked: the listener is asked, and knows nothing of them.
        let (victim, place) = self.choose_victim(cycle);
        let mut frozen = Frozen::default();
        frozen.freeze(self, cycle.iter().map(|edge| edge.place));
        let real = cycle.iter().all(|edge| edge.still_holds(&frozen));
        if !real {
            return;
        }
        *self.last_deadlock.lock() = Some(describe(cycle, &victim, &frozen));
        self.metrics.deadlocks.add(1);

        let mut woken = Woken::new();
        frozen.withdraw(place, &victim, &mut woken);
        drop(frozen);
        woken.iter().for_each(|txn| txn.wake());
    }

    /// The one that the layer above would rather lose; without such a wish the member with the smallest
    /// weight; among equals the one whose wait closed the cycle, which is the last that began (not
    /// always the one that searches: a thread may come to its search late).
    fn choose_victim(&self, cycle: &[Edge]) -> (Arc<TxnState>, WaitPlace) {
        let weight = |txn: &TxnState| (txn.weight(), Reverse(txn.wait_number()));
        let members = cycle.iter().flat_map(|edge| {
            std::iter::once(&edge.waiter).chain(&edge.via).map(move |member| (member, edge.place))
        });
        let (victim, place) = members
            .reduce(|victim, next| match self.preferred_victim(victim.0.id, next.0.id) {
                Ordering::Less => victim,
                Ordering::Greater => next,
                Ordering::Equal if weight(next.0) < weight(victim.0) => next,
                Ordering::Equal => victim,
            })
            .expect("a cycle has members");
        (Arc::clone(victim), place)
    }
}

/// Shards that are locked, so that what is in them stands still.
#[derive(Default)]
struct Frozen<'a> {
    shards: BTreeMap<u32, MutexGuard<'a, Shard>>,
    ranges: BTreeMap<u32, MutexGuard<'a, RangeShard>>,
}

impl<'a> Frozen<'a> {
    /// Locks what these places need, in the lock order. Requires: nothing is locked.
    fn freeze(&mut self, manager: &'a LockManager, places: impl Iterator<Item = WaitPlace> + Clone) {
        let mut locks: Vec<u32> =
            places.clone().filter_map(|place| as_lock(place).map(|at| at.shard)).collect();
        locks.sort_unstable();
        locks.dedup();
        self.shards =
            locks.into_iter().map(|number| (number, manager.shards[number as usize].lock())).collect();
        let in_ranges = |place| match place {
            WaitPlace::Ranges(dict) => Some(Ranges::number(dict)),
            WaitPlace::Lock(_) => None,
        };
        let mut ranges: Vec<u32> = places.filter_map(in_ranges).collect();
        ranges.sort_unstable();
        ranges.dedup();
        self.ranges = ranges.into_iter().map(|number| (number, manager.ranges.lock_number(number))).collect();
    }

    /// The edges from `waiter`, which waits at `place`, to all in its way but itself.
    fn edges_at(&self, place: WaitPlace, waiter: &Arc<TxnState>) -> Vec<Edge> {
        let edge = |via: Option<Arc<TxnState>>, holder: &Arc<TxnState>| Edge {
            waiter: Arc::clone(waiter),
            place,
            via: via.filter(|via| !Arc::ptr_eq(via, holder)),
            holder: Arc::clone(holder),
        };
        match place {
            WaitPlace::Lock(at) => {
                let (via, holders) = in_the_way(&self.shards[&at.shard], at, waiter);
                holders.iter().map(|holder| edge(via.clone(), holder)).collect()
            }
            WaitPlace::Ranges(dict) => {
                let shard = &self.ranges[&Ranges::number(dict)];
                shard.blockers_of(waiter, dict).map(|holder| edge(None, holder)).collect()
            }
        }
    }

    /// Ends the victim's wait.
    fn withdraw(&mut self, place: WaitPlace, victim: &Arc<TxnState>, woken: &mut Woken) {
        let end = WaitEnd::Deadlock;
        match place {
            WaitPlace::Lock(at) => {
                let shard = self.shards.get_mut(&at.shard).expect("its shard is locked");
                shard.withdraw(at.slot, victim, end, woken);
            }
            WaitPlace::Ranges(dict) => {
                let shard = self.ranges.get_mut(&Ranges::number(dict)).expect("its shard is locked");
                shard.withdraw(victim, dict, end, woken);
            }
        }
    }
}

fn as_lock(place: WaitPlace) -> Option<Place> {
    match place {
        WaitPlace::Lock(at) => Some(at),
        WaitPlace::Ranges(_) => None,
    }
}

impl Edge {
    fn still_holds(&self, frozen: &Frozen<'_>) -> bool {
        self.waiter.waits_at() == Some(self.place)
            && frozen.edges_at(self.place, &self.waiter).iter().any(|edge| {
                Arc::ptr_eq(&edge.holder, &self.holder)
                    && edge.via.as_ref().map(Arc::as_ptr) == self.via.as_ref().map(Arc::as_ptr)
            })
    }
}

/// The holders that `waiter` waits for at `place`, and via whom.
fn in_the_way(
    shard: &Shard,
    place: Place,
    waiter: &Arc<TxnState>,
) -> (Option<Arc<TxnState>>, Vec<Arc<TxnState>>) {
    let lock = shard.lock(place.slot);
    let mut before = lock.queue().rev().skip_while(|other| !Arc::ptr_eq(&other.txn, waiter));
    let mode = before.next().expect("a waiting transaction is in its queue").mode;
    let shared = mode == LockMode::Shared && lock.holders().all(|holder| holder.mode == LockMode::Shared);
    let via = match shared {
        true => before.find(|other| other.mode == LockMode::Exclusive).map(|other| Arc::clone(&other.txn)),
        false => None,
    };
    assert!(!shared || via.is_some(), "a shared request beside shared holders waits behind an exclusive one");
    let others = lock.holders().filter(|holder| !Arc::ptr_eq(&holder.txn, waiter));
    (via, others.map(|holder| Arc::clone(&holder.txn)).collect())
}

/// The edges that led to the last one, in order from the start.
fn path_back(reached: &[Reached], mut edges: Vec<(usize, Edge)>) -> Vec<Edge> {
    let mut path = Vec::new();
    let mut through = Some(edges.len() - 1);
    while let Some(index) = through {
        // Later edges were not on the path or are taken already.
        edges.truncate(index + 1);
        let (from, edge) = edges.pop().expect("edges are numbered");
        path.push(edge);
        through = reached[from].through;
    }
    path.reverse();
    path
}

/// What is kept of a cycle for reports. Requires: all its shards are locked.
fn describe(cycle: &[Edge], victim: &Arc<TxnState>, frozen: &Frozen<'_>) -> Deadlock {
    let mut waits = Vec::new();
    for edge in cycle {
        match edge.place {
            WaitPlace::Lock(at) => describe_lock(&mut waits, edge, frozen.shards[&at.shard].lock(at.slot)),
            WaitPlace::Ranges(dict) => {
                let shard = &frozen.ranges[&Ranges::number(dict)];
                let waiter = shard.waiter(&edge.waiter, dict);
                let held = match shard.owns(&edge.holder, dict, LockMode::Exclusive, &waiter.key) {
                    true => LockMode::Exclusive,
                    false => LockMode::Shared,
                };
                waits.push(DeadlockWait {
                    lock: LockRow { blockers: vec![edge.holder.id], ..wish_row(dict, waiter) },
                    weight: edge.waiter.weight(),
                    upgrade: waiter.wish == Wish::Upgrade,
                    held: Some(held),
                });
            }
        }
    }
    Deadlock { waits, victim: victim.id }
}

fn describe_lock(waits: &mut Vec<DeadlockWait>, edge: &Edge, lock: &Lock) {
    let mut wait = |txn: &Arc<TxnState>, blocker: TxnId, held| {
        let waiter = lock.queue().find(|waiter| Arc::ptr_eq(&waiter.txn, txn));
        let (mode, upgrade) = waiter.map_or((LockMode::Exclusive, false), |w| (w.mode, w.upgrade));
        let lock = LockRow { waiting: true, blockers: vec![blocker], ..key_row(lock, txn, mode) };
        waits.push(DeadlockWait { lock, weight: txn.weight(), upgrade, held });
    };
    let last = match &edge.via {
        None => &edge.waiter,
        Some(via) => {
            wait(&edge.waiter, via.id, None);
            via
        }
    };
    wait(last, edge.holder.id, lock.mode_of(&edge.holder));
}
