//! Range locks: gaps, inserts that wait for them, and stretches that stand for many locks.
//!
//! **Gaps and inserts.** A locking scan holds the gaps it has looked at; nobody else inserts into
//! them. Who inserts asks `may_insert` *while nobody can look at its writes*, and writes only on
//! yes. A scan first holds its gap (`lock_gap`) and then looks at the others' writes. So of an insert and
//! a scan that meet, either the insert sees the gap, or the scan sees the insert: there it asks for
//! the key's lock, which `lock_for_owner` has given to the one who wrote it (locks of new keys in an
//! index that is not unique are implicit until somebody asks).
//!
//! **Stretches.** A transaction over its lock budget replaces locks on neighbouring keys by a stretch.
//! The stretch is there before the locks go, and requests look for stretches under the mutex of the key's
//! shard, so there is no moment without either. Locks that others wait for or share are left as they are.
//! A stretch may cover keys that others hold: it takes nothing from them, it only keeps new requests out. Those
//! keys stay single locks: what one has as a stretch nobody else covers by his (unless both are shared).
//! A stretch may also be wider than what was asked for (`widen`): where keys lie too scattered to be joined, the budget counts
//! more than others' wait for keys between.
//!
//! **Cost for those without ranges.** One atomic load per request or insert, of a count of the
//! transactions that hold ranges in the dictionary (and in those that share its shard).
//!
//! **Fairness.** Who waits for ranges is woken when none of others is in its way, and asks again; ranges
//! taken meanwhile are in its way again, as they are for who comes later. The time limit counts for
//! all its waits together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pando_base::locks::{Mutex, MutexGuard};
use pando_base::planted::{is_planted, Bug};
use pando_base::{panics, DictId, TxnId};

use super::range_table::{Added, RangeKind, RangeShard, RangeWaiter, Wish};
use super::table::{Lock, Place, Shard, Woken};
use super::txn::{TxnState, WaitEnd, WaitPlace};
use super::{hash_of, LockError, LockManager, LockMode, TxnHandle, Wait};

/// Shards of the table of ranges; dictionaries that share one disturb each other a little.
const RANGE_SHARDS: u64 = 256;

/// A shard and how many transactions hold gaps and stretches in its dictionaries.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CountedShard {
    gaps: AtomicUsize,
    stretches: AtomicUsize,
    shard: Mutex<RangeShard>,
}

/// All ranges.
#[derive(Debug)]
pub(crate) struct Ranges {
    shards: Box<[CountedShard]>,
}

/// A lock on one key that its transaction alone holds and nobody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldKey {
    /// The dictionary.
    pub dict: DictId,
    /// How the key is locked.
    pub mode: LockMode,
    /// The key.
    pub key: Vec<u8>,
    /// Position in the list of held locks.
    position: u32,
}

/// A stretch that a transaction holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldStretch {
    /// The dictionary.
    pub dict: DictId,
    /// How its keys are locked.
    pub mode: LockMode,
    /// The first key.
    pub from: Vec<u8>,
    /// The first key behind it; `None`: without end.
    pub to: Option<Vec<u8>>,
}

/// What stretches say to a request.
pub(crate) enum Beside {
    /// Nothing.
    Free,
    /// The transaction's own stands for the lock.
    Held,
    /// Others' are in the way; this is the wish that they block.
    Blocked(Wish),
}

impl Ranges {
    pub(crate) fn new() -> Ranges {
        Ranges { shards: (0..RANGE_SHARDS).map(|_| CountedShard::default()).collect() }
    }

    fn at(&self, dict: DictId) -> &CountedShard {
        &self.shards[(dict.0 % RANGE_SHARDS) as usize]
    }

    pub(crate) fn lock(&self, dict: DictId) -> MutexGuard<'_, RangeShard> {
        self.at(dict).shard.lock()
    }

    /// Position of the dictionary's mutex in the lock order.
    pub(crate) fn number(dict: DictId) -> u32 {
        (dict.0 % RANGE_SHARDS) as u32
    }

    pub(crate) fn lock_number(&self, number: u32) -> MutexGuard<'_, RangeShard> {
        self.shards[number as usize].shard.lock()
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, RangeShard>> {
        let used = |shard: &&CountedShard| {
            shard.gaps.load(Ordering::SeqCst) > 0 || shard.stretches.load(Ordering::SeqCst) > 0
        };
        self.shards.iter().filter(used).map(|shard| shard.shard.lock())
    }

    pub(crate) fn has_stretches(&self, dict: DictId) -> bool {
        self.at(dict).stretches.load(Ordering::SeqCst) > 0
    }
}

impl LockManager {
    /// Whether anybody may hold gaps in the dictionary; false is certain.
    pub fn has_gaps(&self, dict: DictId) -> bool {
        self.ranges.at(dict).gaps.load(Ordering::SeqCst) > 0
    }

    /// Keeps others from inserting keys from `from` up to, but without, `to` (`None`: without end) until
    /// `txn` ends. Never waits. What is there already, committed or not, is the caller's to look for after.
    pub fn lock_gap(&self, txn: &TxnHandle, dict: DictId, from: &[u8], to: Option<&[u8]>) {
        let _scope = panics::uncontained();
        txn.state.note_begun();
        let added = self.add_range(&txn.state, dict, RangeKind::Gap, (from, to));
        debug_assert!(added, "gaps are always granted");
    }

    /// Whether no gap of another covers `key`. To be asked while others cannot look at the
    /// transaction's writes, and the answer used before they can.
    pub fn may_insert(&self, txn: &TxnHandle, dict: DictId, key: &[u8]) -> bool {
        is_planted(Bug::InsertIgnoresGaps)
            || !self.has_gaps(dict)
            || !self.ranges.lock(dict).is_blocked(&txn.state, dict, Wish::Insert, key)
    }

    /// Waits until no gap of another covers `key`; then it is to ask again (`may_insert`).
    pub fn wait_to_insert(
        &self,
        txn: &TxnHandle,
        dict: DictId,
        key: &[u8],
        wait: Wait,
    ) -> Result<(), LockError> {
        let _scope = panics::uncontained();
        let mut patience = Patience::new(wait);
        loop {
            if txn.state.is_killed() {
                return Err(LockError::Killed);
            }
            let shard = self.ranges.lock(dict);
            if !shard.is_blocked(&txn.state, dict, Wish::Insert, key) {
                return Ok(());
            }
            self.wait_for_ranges(shard, &txn.state, dict, Wish::Insert, key, &mut patience)?;
        }
    }

    /// Gives `owner`, which has written `key` and not ended, its exclusive lock. The caller keeps the owner
    /// from ending meanwhile. Unknown transactions have ended.
    pub fn lock_for_owner(&self, owner: TxnId, dict: DictId, key: &[u8]) {
        let _scope = panics::uncontained();
        let Some(state) = self.registry_of(owner).get(&owner).cloned() else { return };
        let (hash, number) = hash_of(dict, key);
        let mut shard = self.shards[number as usize].lock();
        let new = shard.give(hash, (dict, key), &state, |slot| {
            state.converted.lock().note(Place { shard: number, slot })
        });
        if new {
            self.count_new(&state);
        }
    }

    /// The end of the gap of `txn` that `key` is in, if it is in one: the first key after it, `None` if there is
    /// none.
    pub fn own_gap_end(&self, txn: &TxnHandle, dict: DictId, key: &[u8]) -> Option<Option<Vec<u8>>> {
        if !self.has_gaps(dict) {
            return None;
        }
        let shard = self.ranges.lock(dict);
        let owner = shard.dict(dict)?.owner(&txn.state)?;
        owner.set(RangeKind::Gap).end_around(key).map(|end| end.map(<[u8]>::to_vec))
    }

    /// The locks of `txn` that a stretch could replace.
    pub fn held_keys(&self, txn: &TxnHandle) -> Vec<HeldKey> {
        let held = txn.state.held.lock();
        let locks = held.iter().filter_map(|(position, place)| {
            let shard = self.shard(place);
            let lock = shard.lock(place.slot);
            let mode = lock.held_alone_by(&txn.state)?;
            Some(HeldKey { dict: lock.dict, mode, key: lock.key().to_vec(), position })
        });
        locks.collect()
    }

    /// The stretches of `txn`.
    pub fn held_stretches(&self, txn: &TxnHandle) -> Vec<HeldStretch> {
        let dicts = txn.state.range_dicts.lock().clone();
        let mut stretches = Vec::new();
        for dict in dicts {
            let shard = self.ranges.lock(dict);
            let Some(owner) = shard.dict(dict).and_then(|ranges| ranges.owner(&txn.state)) else { continue };
            for mode in [LockMode::Shared, LockMode::Exclusive] {
                stretches.extend(owner.set(RangeKind::Stretch(mode)).iter().map(|(from, to)| HeldStretch {
                    dict,
                    mode,
                    from: from.to_vec(),
                    to: to.map(<[u8]>::to_vec),
                }));
            }
        }
        stretches
    }

    /// Replaces `keys`, locks of one dictionary and mode that `held_keys` has just told, ascending, by a
    /// stretch from the first to the last. Those that others have come to wait for stay. False: all stay,
    /// because others have a stretch there.
    pub fn replace_by_stretch(&self, txn: &TxnHandle, keys: &[HeldKey]) -> bool {
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return false };
        let mut to = last.key.clone();
        if !is_planted(Bug::StretchTooShort) {
            to.push(0);
        }
        self.widen(txn, first.dict, first.mode, (&first.key, Some(&to)), keys)
    }

    /// Replaces `keys`, locks of this dictionary and mode within the range that `held_keys` has just told, by a stretch over all
    /// of the range, whatever else is there: nothing is taken from others who hold keys in it, but nobody else gets any. False: all stay,
    /// because others have a stretch there.
    pub fn widen(
        &self,
        txn: &TxnHandle,
        dict: DictId,
        mode: LockMode,
        range: (&[u8], Option<&[u8]>),
        keys: &[HeldKey],
    ) -> bool {
        let _scope = panics::uncontained();
        if !self.add_range(&txn.state, dict, RangeKind::Stretch(mode), range) {
            return false;
        }
        let mut held = txn.state.held.lock();
        let mut woken = Woken::new();
        for key in keys {
            let place = held.place(key.position);
            let mut shard = self.shard(place);
            if shard.lock(place.slot).held_alone_by(&txn.state) != Some(mode) {
                continue;
            }
            shard.release(place.slot, &txn.state, &mut woken);
            drop(shard);
            held.forget(key.position);
            txn.state.held_count.fetch_sub(1, Ordering::Relaxed);
            self.metrics.row_locks.sub(1);
        }
        debug_assert!(woken.is_empty(), "nobody waited");
        true
    }

    /// Locks the keys from `from` up to, but without, `to` by a stretch. Takes nothing from others: ask
    /// [`Self::first_held_by_others`] after it. False: others have a stretch there that excludes it.
    pub fn lock_stretch(
        &self,
        txn: &TxnHandle,
        dict: DictId,
        mode: LockMode,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> bool {
        txn.state.note_begun();
        self.add_range(&txn.state, dict, RangeKind::Stretch(mode), (from, to))
    }

    /// The first of `keys`, ascending, that a lock of others which excludes `mode`, or a queue, is on; stretches are not
    /// looked at. Under a stretch of `txn` it stays as it is then: nobody gets a lock there who had none before.
    pub fn first_held_by_others(
        &self,
        txn: &TxnHandle,
        dict: DictId,
        mode: LockMode,
        keys: &[&[u8]],
    ) -> Option<usize> {
        let is_held = |lock: &Lock| is_obstacle(lock, txn, dict, mode);
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return None };
        if self.metrics.row_locks.get() > keys.len() as u64 {
            return keys.iter().position(|key| {
                let (hash, number) = hash_of(dict, key);
                self.shards[number as usize].lock().find(hash, dict, key).is_some_and(is_held)
            });
        }
        // Few locks: all of them are looked at.
        let mut found: Option<usize> = None;
        for shard in &self.shards {
            let shard = shard.lock();
            for lock in shard.locks().filter(|lock| is_held(lock)) {
                if lock.key() >= *first && lock.key() <= *last {
                    if let Ok(at) = keys.binary_search(&lock.key()) {
                        found = Some(found.map_or(at, |found| found.min(at)));
                    }
                }
            }
        }
        found
    }

    /// As [`Self::first_held_by_others`], of all keys of the dictionary. Looks at all locks that there are.
    pub fn is_any_held_by_others(&self, txn: &TxnHandle, dict: DictId, mode: LockMode) -> bool {
        self.is_any_held_between(txn, dict, mode, b"", None)
    }

    /// As [`Self::is_any_held_by_others`], of the keys from `from` up to, but without, `to`.
    pub fn is_any_held_between(
        &self,
        txn: &TxnHandle,
        dict: DictId,
        mode: LockMode,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> bool {
        let is_between = |key: &[u8]| from <= key && to.is_none_or(|to| key < to);
        self.shards.iter().any(|shard| {
            let shard = shard.lock();
            let found =
                shard.locks().any(|lock| is_obstacle(lock, txn, dict, mode) && is_between(lock.key()));
            found
        })
    }

    /// Locks every key of a dictionary exclusively. Takes nothing from others: ask [`Self::others_hold_any`]
    /// after it. Inserts of keys that others need no lock for are not kept out.
    pub fn lock_all(&self, txn: &TxnHandle, dict: DictId) {
        let _scope = panics::uncontained();
        txn.state.note_begun();
        self.add_range(&txn.state, dict, RangeKind::Stretch(LockMode::Exclusive), (b"", None));
    }

    /// As [`Self::lock_all`], also across stretches of others. For who asks for no other lock in the dictionary: of a key that two
    /// have so nobody could say whose it is.
    pub fn lock_all_beside_others(&self, txn: &TxnHandle, dict: DictId) {
        let _scope = panics::uncontained();
        txn.state.note_begun();
        self.put_range(&txn.state, dict, RangeKind::Stretch(LockMode::Exclusive), (b"", None), true);
    }

    /// Whether others hold, or wait for, locks on keys or stretches of keys of the dictionaries. Looks at all
    /// locks that there are.
    pub fn others_hold_any(&self, txn: &TxnHandle, dicts: &[DictId]) -> bool {
        let is_other = |state: &Arc<TxnState>| !Arc::ptr_eq(state, &txn.state);
        let stretches = dicts.iter().any(|dict| {
            let shard = self.ranges.lock(*dict);
            let owners = shard.dict(*dict).map(|ranges| &ranges.owners).into_iter().flatten();
            owners.filter(|owner| is_other(&owner.txn)).any(|owner| owner.has_stretches())
        });
        stretches
            || self.shards.iter().any(|shard| {
                let shard = shard.lock();
                let held = |lock: &Lock| {
                    lock.holders().any(|holder| is_other(&holder.txn)) || lock.queue().next().is_some()
                };
                let found = shard.locks().any(|lock| dicts.contains(&lock.dict) && held(lock));
                found
            })
    }

    /// Others' gaps in the dictionary: from where up to, but without, where (`None`: without end).
    pub fn gaps_of_others(&self, txn: &TxnHandle, dict: DictId) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        if !self.has_gaps(dict) {
            return Vec::new();
        }
        let shard = self.ranges.lock(dict);
        let owners = shard.dict(dict).map(|ranges| &ranges.owners).into_iter().flatten();
        let others = owners.filter(|owner| !Arc::ptr_eq(&owner.txn, &txn.state));
        let gaps = others.flat_map(|owner| owner.set(RangeKind::Gap).iter());
        gaps.map(|(from, to)| (from.to_vec(), to.map(<[u8]>::to_vec))).collect()
    }

    /// What stretches say to a request for a key. Requires the mutex of the key's shard.
    pub(crate) fn beside_stretches(
        &self,
        shard: &Shard,
        hash: u64,
        (dict, key): (DictId, &[u8]),
        txn: &Arc<TxnState>,
        mode: LockMode,
    ) -> Beside {
        let ranges = self.ranges.lock(dict);
        let lock = shard.find(hash, dict, key);
        let held = lock.and_then(|lock| lock.mode_of(txn));
        if held.is_some_and(|held| held == LockMode::Exclusive || mode == LockMode::Shared) {
            return Beside::Free;
        }
        // A stretch of its own says nothing to those who had a lock beneath it before: they can upgrade it. So beside
        // them only one that is shared, too, protects what it has.
        let is_alone = lock.is_none_or(|lock| lock.others_admit(txn, LockMode::Exclusive));
        let is_owned = match is_alone {
            true => ranges.owns(txn, dict, mode, key),
            false => mode == LockMode::Shared && ranges.owns_shared(txn, dict, key),
        };
        // Who waits for the key's own lock came before the stretch, which nobody asks when the lock is handed over:
        // so nothing is held beside a queue but the lock itself.
        let others_admit =
            lock.is_none_or(|lock| lock.others_admit(txn, mode) && lock.queue().next().is_none());
        if others_admit && is_owned {
            debug_assert!(!ranges.is_blocked(txn, dict, Wish::Lock(mode), key), "two have the same key");
            return Beside::Held;
        }
        let wish = if held.is_some() { Wish::Upgrade } else { Wish::Lock(mode) };
        match ranges.is_blocked(txn, dict, wish, key) {
            true => Beside::Blocked(wish),
            false => Beside::Free,
        }
    }

    /// Enters the queue and waits there. Requires: ranges of others block the wish.
    pub(crate) fn wait_for_ranges(
        &self,
        mut shard: MutexGuard<'_, RangeShard>,
        state: &Arc<TxnState>,
        dict: DictId,
        wish: Wish,
        key: &[u8],
        patience: &mut Patience,
    ) -> Result<(), LockError> {
        let Some(timeout) = patience.left() else { return Err(LockError::WouldBlock) };
        // Inserts come here before they lock anything.
        state.note_begun();
        let number = self.waits_begun.fetch_add(1, Ordering::Relaxed);
        state.begin_wait(WaitPlace::Ranges(dict), number);
        shard.enqueue(dict, RangeWaiter { txn: Arc::clone(state), wish, key: key.to_vec() });
        drop(shard);
        match self.wait(state, timeout) {
            WaitEnd::Granted => Ok(()),
            WaitEnd::Deadlock => Err(LockError::Deadlock),
            WaitEnd::TimedOut => Err(LockError::Timeout),
            WaitEnd::Killed => Err(LockError::Killed),
        }
    }

    /// Gives all ranges of a transaction back.
    pub(crate) fn release_ranges(&self, state: &Arc<TxnState>) {
        if state.range_count.swap(0, Ordering::Relaxed) == 0 {
            return;
        }
        let mut woken = Woken::new();
        for dict in state.range_dicts.lock().drain(..) {
            let counted = self.ranges.at(dict);
            let removed = counted.shard.lock().remove(state, dict, &mut woken);
            counted.gaps.fetch_sub(usize::from(removed.gaps), Ordering::SeqCst);
            counted.stretches.fetch_sub(usize::from(removed.stretches), Ordering::SeqCst);
            woken.drain(..).for_each(|txn| txn.wake());
        }
    }

    /// False: it is a stretch that others' exclude.
    fn add_range(
        &self,
        state: &Arc<TxnState>,
        dict: DictId,
        kind: RangeKind,
        range: (&[u8], Option<&[u8]>),
    ) -> bool {
        self.put_range(state, dict, kind, range, false)
    }

    fn put_range(
        &self,
        state: &Arc<TxnState>,
        dict: DictId,
        kind: RangeKind,
        range: (&[u8], Option<&[u8]>),
        may_be_across: bool,
    ) -> bool {
        let counted = self.ranges.at(dict);
        let newly_blocked = {
            let mut shard = counted.shard.lock();
            let is_across =
                matches!(kind, RangeKind::Stretch(mode) if shard.is_across(state, dict, mode, range));
            if is_across && !may_be_across {
                return false;
            }
            let Added { before, after, first_of_kind, new_dict } = shard.add(state, dict, kind, range);
            let count = if kind == RangeKind::Gap { &counted.gaps } else { &counted.stretches };
            count.fetch_add(usize::from(first_of_kind), Ordering::SeqCst);
            if new_dict {
                state.range_dicts.lock().push(dict);
            }
            // Its own thread alone changes it.
            let all = state.range_count.load(Ordering::Relaxed);
            state.range_count.store(all + after - before, Ordering::Relaxed);
            self.waiters_behind(&shard, state, dict)
        };
        for waiter in newly_blocked {
            self.report_edge(waiter, state.id);
        }
        true
    }

    /// Those whom a range of `state` keeps waiting, for the listener.
    fn waiters_behind(&self, shard: &RangeShard, state: &Arc<TxnState>, dict: DictId) -> Vec<TxnId> {
        let Some(ranges) = shard.dict(dict).filter(|_| self.watch.is_some()) else { return Vec::new() };
        let behind = |waiter: &&RangeWaiter| {
            ranges.blockers(&waiter.txn, waiter.wish, &waiter.key).any(|txn| Arc::ptr_eq(txn, state))
        };
        ranges.queue.iter().filter(behind).map(|waiter| waiter.txn.id).collect()
    }
}

/// Whether a lock of others, or a queue, is in the way of a stretch.
fn is_obstacle(lock: &Lock, txn: &TxnHandle, dict: DictId, mode: LockMode) -> bool {
    lock.dict == dict && (lock.queue().next().is_some() || !lock.others_admit(&txn.state, mode))
}

/// How long one request may go on waiting, over several waits.
pub(crate) struct Patience {
    wait: Wait,
    begun: Option<Instant>,
}

impl Patience {
    pub(crate) fn new(wait: Wait) -> Patience {
        Patience { wait, begun: None }
    }

    /// For the next wait. `None`: not to wait.
    pub(crate) fn left(&mut self) -> Option<Duration> {
        let Wait::Timeout(timeout) = self.wait else { return None };
        let begun = *self.begun.get_or_insert_with(Instant::now);
        Some(timeout.saturating_sub(begun.elapsed()))
    }

    pub(crate) fn has_waited(&self) -> bool {
        self.begun.is_some()
    }
}
