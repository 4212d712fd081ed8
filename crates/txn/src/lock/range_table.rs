//! The ranges held in dictionaries, and those who wait because of them: what one mutex protects.
//!
//! A range is held by one transaction, as one of two kinds:
//! - a **gap** keeps others from inserting keys; it says nothing of the keys that are there;
//! - a **stretch**, shared or exclusive, stands for that lock on every key in it.
//!
//! Gaps never conflict with anything and are granted at once. A stretch is granted unless it would share a key
//! with one of another's that excludes it: which of the two stood for a lock there could not be told. (Whoever asks for no
//! other lock may have one across others': `lock_all_beside_others`.) Who waits in the queue here wishes to insert a key, or to lock one. When ranges go, those whose wish no range of others covers any more are
//! woken, in the order of the queue; each then asks again, because what it wishes is not decided
//! here alone.
//!
//! Rule: nobody is in the queue whom no range of another blocks.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use pando_base::DictId;

use super::intervals::Intervals;
use super::table::Woken;
use super::txn::{TxnState, WaitEnd};
use super::LockMode;

/// Kind of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeKind {
    Gap,
    Stretch(LockMode),
}

impl RangeKind {
    pub(crate) const ALL: [RangeKind; 3] =
        [RangeKind::Gap, RangeKind::Stretch(LockMode::Shared), RangeKind::Stretch(LockMode::Exclusive)];

    fn position(self) -> usize {
        match self {
            RangeKind::Gap => 0,
            RangeKind::Stretch(LockMode::Shared) => 1,
            RangeKind::Stretch(LockMode::Exclusive) => 2,
        }
    }
}

/// What one who waits here wants to do with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Insert it.
    Insert,
    /// Lock it.
    Lock(LockMode),
    /// Lock it exclusively while holding it shared.
    Upgrade,
}

impl Wish {
    pub(crate) fn mode(self) -> LockMode {
        match self {
            Wish::Insert | Wish::Upgrade => LockMode::Exclusive,
            Wish::Lock(mode) => mode,
        }
    }

    /// Whether a range of this kind, held by another, is in its way.
    fn is_blocked_by(self, kind: RangeKind) -> bool {
        match (self, kind) {
            (Wish::Insert, RangeKind::Gap) => true,
            (Wish::Insert, _) | (_, RangeKind::Gap) => false,
            (Wish::Lock(mode), RangeKind::Stretch(held)) => !mode.admits(held),
            // Beside its shared lock nobody holds the key exclusively, whatever the stretch covers.
            (Wish::Upgrade, RangeKind::Stretch(held)) => held == LockMode::Shared,
        }
    }
}

/// The ranges of one transaction in one dictionary.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) txn: Arc<TxnState>,
    sets: [Intervals; 3],
}

impl Owner {
    pub(crate) fn set(&self, kind: RangeKind) -> &Intervals {
        &self.sets[kind.position()]
    }

    fn blocks(&self, wish: Wish, key: &[u8]) -> bool {
        RangeKind::ALL.iter().any(|kind| wish.is_blocked_by(*kind) && self.set(*kind).contains(key))
    }

    /// Number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.sets.iter().map(Intervals::len).sum()
    }

    pub(crate) fn has_gaps(&self) -> bool {
        !self.set(RangeKind::Gap).is_empty()
    }

    pub(crate) fn has_stretches(&self) -> bool {
        RangeKind::ALL[1..].iter().any(|kind| !self.set(*kind).is_empty())
    }
}

/// One in the queue.
#[derive(Debug)]
pub(crate) struct RangeWaiter {
    pub(crate) txn: Arc<TxnState>,
    pub(crate) wish: Wish,
    pub(crate) key: Vec<u8>,
}

/// The ranges in one dictionary.
#[derive(Debug, Default)]
pub(crate) struct DictRanges {
    pub(crate) owners: Vec<Owner>,
    pub(crate) queue: VecDeque<RangeWaiter>,
}

impl DictRanges {
    /// The others whose ranges are in the way of `txn`'s wish.
    pub(crate) fn blockers<'a>(
        &'a self,
        txn: &'a Arc<TxnState>,
        wish: Wish,
        key: &'a [u8],
    ) -> impl Iterator<Item = &'a Arc<TxnState>> {
        let others = self.owners.iter().filter(move |owner| !Arc::ptr_eq(&owner.txn, txn));
        others.filter(move |owner| owner.blocks(wish, key)).map(|owner| &owner.txn)
    }

    pub(crate) fn is_blocked(&self, txn: &Arc<TxnState>, wish: Wish, key: &[u8]) -> bool {
        self.blockers(txn, wish, key).next().is_some()
    }

    pub(crate) fn owner(&self, txn: &Arc<TxnState>) -> Option<&Owner> {
        self.owners.iter().find(|owner| Arc::ptr_eq(&owner.txn, txn))
    }

    /// Wakes those who are not blocked any more.
    fn hand_over(&mut self, woken: &mut Woken) {
        let queue = std::mem::take(&mut self.queue);
        for waiter in queue {
            if self.is_blocked(&waiter.txn, waiter.wish, &waiter.key) {
                self.queue.push_back(waiter);
            } else {
                waiter.txn.end_wait(WaitEnd::Granted);
                woken.push(waiter.txn);
            }
        }
    }
}

/// What adding a range came to.
#[derive(Debug)]
pub(crate) struct Added {
    /// The transaction's number of ranges in the dictionary, before and after.
    pub(crate) before: usize,
    pub(crate) after: usize,
    /// Its first range of this kind (gap or stretch) in the dictionary.
    pub(crate) first_of_kind: bool,
    /// It held no range in the dictionary before.
    pub(crate) new_dict: bool,
}

/// What went when a transaction gave its ranges of a dictionary back.
#[derive(Debug)]
pub(crate) struct Removed {
    pub(crate) gaps: bool,
    pub(crate) stretches: bool,
}

/// Dictionaries that share a mutex.
#[derive(Debug, Default)]
pub(crate) struct RangeShard {
    dicts: HashMap<DictId, DictRanges>,
}

impl RangeShard {
    pub(crate) fn dict(&self, dict: DictId) -> Option<&DictRanges> {
        self.dicts.get(&dict)
    }

    pub(crate) fn dicts(&self) -> impl Iterator<Item = (DictId, &DictRanges)> {
        self.dicts.iter().map(|(dict, ranges)| (*dict, ranges))
    }

    /// Whether ranges of others are in the way.
    pub(crate) fn is_blocked(&self, txn: &Arc<TxnState>, dict: DictId, wish: Wish, key: &[u8]) -> bool {
        self.dict(dict).is_some_and(|ranges| ranges.is_blocked(txn, wish, key))
    }

    /// Whether the transaction's own stretches stand for this lock.
    pub(crate) fn owns(&self, txn: &Arc<TxnState>, dict: DictId, mode: LockMode, key: &[u8]) -> bool {
        let owner = self.dict(dict).and_then(|ranges| ranges.owner(txn));
        let holds = |owner: &Owner, held| owner.set(RangeKind::Stretch(held)).contains(key);
        owner.is_some_and(|owner| {
            holds(owner, LockMode::Exclusive) || (mode == LockMode::Shared && holds(owner, LockMode::Shared))
        })
    }

    /// Whether a shared stretch of its own has the key.
    pub(crate) fn owns_shared(&self, txn: &Arc<TxnState>, dict: DictId, key: &[u8]) -> bool {
        let owner = self.dict(dict).and_then(|ranges| ranges.owner(txn));
        owner.is_some_and(|owner| owner.set(RangeKind::Stretch(LockMode::Shared)).contains(key))
    }

    /// Whether a stretch of another that excludes this one has some of its keys.
    pub(crate) fn is_across(
        &self,
        txn: &Arc<TxnState>,
        dict: DictId,
        mode: LockMode,
        (from, to): (&[u8], Option<&[u8]>),
    ) -> bool {
        let Some(ranges) = self.dict(dict) else { return false };
        let mut others = ranges.owners.iter().filter(|owner| !Arc::ptr_eq(&owner.txn, txn));
        others.any(|owner| {
            let excludes =
                [LockMode::Shared, LockMode::Exclusive].into_iter().filter(|held| !mode.admits(*held));
            excludes.into_iter().any(|held| owner.set(RangeKind::Stretch(held)).overlaps(from, to))
        })
    }

    pub(crate) fn add(
        &mut self,
        txn: &Arc<TxnState>,
        dict: DictId,
        kind: RangeKind,
        (from, to): (&[u8], Option<&[u8]>),
    ) -> Added {
        let ranges = self.dicts.entry(dict).or_default();
        let position = ranges.owners.iter().position(|owner| Arc::ptr_eq(&owner.txn, txn));
        let position = position.unwrap_or_else(|| {
            ranges.owners.push(Owner { txn: Arc::clone(txn), sets: Default::default() });
            ranges.owners.len() - 1
        });
        let owner = &mut ranges.owners[position];
        let before = owner.len();
        let had = if kind == RangeKind::Gap { owner.has_gaps() } else { owner.has_stretches() };
        owner.sets[kind.position()].add(from, to);
        let has = if kind == RangeKind::Gap { owner.has_gaps() } else { owner.has_stretches() };
        let after = owner.len();
        if after == 0 {
            // An empty range, and nothing else.
            ranges.owners.swap_remove(position);
            self.forget_if_empty(dict);
        }
        Added { before, after, first_of_kind: has && !had, new_dict: before == 0 && after > 0 }
    }

    /// Takes all ranges of a transaction in a dictionary away.
    pub(crate) fn remove(&mut self, txn: &Arc<TxnState>, dict: DictId, woken: &mut Woken) -> Removed {
        let ranges = self.dicts.get_mut(&dict).expect("a transaction gives back what it holds");
        let position = ranges.owners.iter().position(|owner| Arc::ptr_eq(&owner.txn, txn));
        let owner = ranges.owners.swap_remove(position.expect("a transaction gives back what it holds"));
        ranges.hand_over(woken);
        self.forget_if_empty(dict);
        Removed { gaps: owner.has_gaps(), stretches: owner.has_stretches() }
    }

    /// Puts one who is blocked into the queue.
    pub(crate) fn enqueue(&mut self, dict: DictId, waiter: RangeWaiter) {
        let ranges = self.dicts.get_mut(&dict).expect("it is blocked by a range");
        debug_assert!(ranges.is_blocked(&waiter.txn, waiter.wish, &waiter.key));
        ranges.queue.push_back(waiter);
    }

    /// The waiter that `txn` is, with its dictionary. Requires: it waits here.
    pub(crate) fn waiter(&self, txn: &Arc<TxnState>, dict: DictId) -> &RangeWaiter {
        let mut queue = self.dict(dict).into_iter().flat_map(|ranges| &ranges.queue);
        queue.find(|waiter| Arc::ptr_eq(&waiter.txn, txn)).expect("a waiting transaction is in its queue")
    }

    /// Who is in the way of `txn`, which waits here.
    pub(crate) fn blockers_of<'a>(
        &'a self,
        txn: &'a Arc<TxnState>,
        dict: DictId,
    ) -> impl Iterator<Item = &'a Arc<TxnState>> {
        let waiter = self.waiter(txn, dict);
        self.dict(dict).into_iter().flat_map(|ranges| ranges.blockers(txn, waiter.wish, &waiter.key))
    }

    /// Ends the wait of `txn`, which is in the queue of `dict`, without what it wished.
    pub(crate) fn withdraw(&mut self, txn: &Arc<TxnState>, dict: DictId, end: WaitEnd, woken: &mut Woken) {
        let ranges = self.dicts.get_mut(&dict).expect("a waiting transaction is in its queue");
        let position = ranges.queue.iter().position(|waiter| Arc::ptr_eq(&waiter.txn, txn));
        ranges.queue.remove(position.expect("a waiting transaction is in its queue"));
        txn.end_wait(end);
        woken.push(Arc::clone(txn));
    }

    fn forget_if_empty(&mut self, dict: DictId) {
        let empty = |ranges: &DictRanges| ranges.owners.is_empty();
        if self.dicts.get(&dict).is_some_and(empty) {
            let ranges = self.dicts.remove(&dict);
            assert!(ranges.is_none_or(|ranges| ranges.queue.is_empty()), "nobody waits for nothing");
        }
    }
}
