//! One shard of the lock table: locks by (dictionary, key), their holders and their queues.
//!
//! A lock exists while it is held or waited for. Locks live in a slab, a hash table of slab positions
//! finds them by key, and holders refer to them by position. A lock held by one transaction with a
//! key of up to 22 bytes is 64 bytes and no allocation of its own.
//!
//! Rules of a queue, kept by every function here:
//! 1. Holders are one exclusive, or any number of shared.
//! 2. Whoever is at the front of the queue cannot be granted beside the holders; `hand_over` after
//!    every departure and downgrade sees to it. So a lock without holders has no queue.
//! 3. Upgraders (a shared holder that wants exclusive) stand before all others, in order of arrival.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::hash_table::Entry;
use hashbrown::HashTable;
use pando_base::planted::{is_planted, Bug};
use pando_base::DictId;

use super::txn::{TxnState, WaitEnd, WaitPlace};
use super::LockMode;

/// Slots a shard may keep when it holds no lock at all; a larger slab is given back.
const IDLE_SLOTS_MAX: usize = 64;

/// Set in the held position of a lock that another thread has given its holder: the position is one in the
/// list of those.
pub(crate) const GIVEN: u32 = 1 << 31;

/// Where a lock lives: valid while one holds it, waits for it, or has its shard's mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) shard: u32,
    pub(crate) slot: u32,
}

/// Key bytes, short ones inline.
#[derive(Debug)]
enum LockKey {
    Inline(u8, [u8; 22]),
    Heap(Box<[u8]>),
}

impl LockKey {
    fn new(key: &[u8]) -> LockKey {
        let mut inline = [0; 22];
        match inline.get_mut(..key.len()) {
            Some(bytes) => {
                bytes.copy_from_slice(key);
                LockKey::Inline(key.len() as u8, inline)
            }
            None => LockKey::Heap(key.into()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            LockKey::Inline(len, bytes) => &bytes[..usize::from(*len)],
            LockKey::Heap(bytes) => bytes,
        }
    }
}

/// One that holds the lock.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) txn: Arc<TxnState>,
    /// Position in the transaction's list of held locks.
    pub(crate) held_position: u32,
    pub(crate) mode: LockMode,
    /// Exclusive now, shared before: giving it back goes back to shared.
    upgraded: bool,
}

/// One in the queue.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) txn: Arc<TxnState>,
    pub(crate) held_position: u32,
    pub(crate) mode: LockMode,
    /// It holds the lock shared already.
    pub(crate) upgrade: bool,
}

#[derive(Debug, Default)]
struct Company {
    other_holders: Vec<Holder>,
    queue: VecDeque<Waiter>,
}

/// A lock on one key.
#[derive(Debug)]
pub(crate) struct Lock {
    hash: u64,
    pub(crate) dict: DictId,
    key: LockKey,
    holder: Option<Holder>,
    company: Option<Box<Company>>,
}

const _: () = assert!(size_of::<Lock>() == 64);

/// What a request comes to without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// New to the transaction.
    Granted,
    /// Held shared, now exclusive.
    Upgraded,
    AlreadyHeld,
    /// Not without waiting. `upgrade`: held shared, noted at this position of the list of held locks.
    Blocked {
        upgrade: Option<u32>,
    },
}

/// What giving a lock back came to.
pub(crate) enum GivenBack {
    NotHeld,
    Downgraded,
    /// With the position in the list of held locks.
    Released(u32),
}

/// Transactions whose wait ended, to be woken once the mutex is free.
pub(crate) type Woken = Vec<Arc<TxnState>>;

impl Lock {
    fn vacant() -> Lock {
        Lock { hash: 0, dict: DictId(0), key: LockKey::new(&[]), holder: None, company: None }
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.key.bytes()
    }

    pub(crate) fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.holder.iter().chain(self.company.iter().flat_map(|company| &company.other_holders))
    }

    pub(crate) fn queue(&self) -> impl DoubleEndedIterator<Item = &Waiter> {
        self.company.iter().flat_map(|company| &company.queue)
    }

    fn holder_mut(&mut self, txn: &Arc<TxnState>) -> Option<&mut Holder> {
        self.holder
            .iter_mut()
            .chain(self.company.iter_mut().flat_map(|company| &mut company.other_holders))
            .find(|holder| Arc::ptr_eq(&holder.txn, txn))
    }

    /// How `txn` holds it, if it does.
    pub(crate) fn mode_of(&self, txn: &Arc<TxnState>) -> Option<LockMode> {
        self.holders().find(|holder| Arc::ptr_eq(&holder.txn, txn)).map(|holder| holder.mode)
    }

    /// How `txn` holds it, if it does, nobody else does, and nobody waits.
    pub(crate) fn held_alone_by(&self, txn: &Arc<TxnState>) -> Option<LockMode> {
        let alone = self.is_sole_holder(txn) && self.queue().next().is_none();
        self.mode_of(txn).filter(|_| alone)
    }

    /// Whether `txn` could hold it in this mode beside all others that hold it.
    pub(crate) fn others_admit(&self, txn: &Arc<TxnState>, mode: LockMode) -> bool {
        self.holders().all(|holder| Arc::ptr_eq(&holder.txn, txn) || mode.admits(holder.mode))
    }

    fn is_sole_holder(&self, txn: &Arc<TxnState>) -> bool {
        self.holders().all(|holder| Arc::ptr_eq(&holder.txn, txn))
    }

    fn front(&self) -> Option<&Waiter> {
        self.company.as_ref()?.queue.front()
    }

    fn add_holder(&mut self, holder: Holder) {
        match &mut self.holder {
            None => self.holder = Some(holder),
            Some(_) => self.company.get_or_insert_default().other_holders.push(holder),
        }
    }

    fn remove_holder(&mut self, txn: &Arc<TxnState>) -> Option<Holder> {
        let others = self.company.as_mut().map(|company| &mut company.other_holders);
        if self.holder.as_ref().is_some_and(|holder| Arc::ptr_eq(&holder.txn, txn)) {
            let next = others.and_then(Vec::pop);
            return std::mem::replace(&mut self.holder, next);
        }
        let others = others?;
        let position = others.iter().position(|holder| Arc::ptr_eq(&holder.txn, txn))?;
        Some(others.swap_remove(position))
    }

    /// Whether `mode` can be held beside every holder.
    fn admits(&self, mode: LockMode) -> bool {
        self.holders().all(|holder| mode.admits(holder.mode))
    }

    fn front_is_grantable(&self) -> bool {
        self.front().is_some_and(|front| match front.upgrade {
            true => self.is_sole_holder(&front.txn),
            false => self.admits(front.mode),
        })
    }

    /// Grants from the front of the queue while the front can be granted (rule 2).
    fn hand_over(&mut self, woken: &mut Woken) {
        while self.front_is_grantable() {
            let company = self.company.as_mut().expect("a queue");
            let waiter = company.queue.pop_front().expect("a front");
            waiter.txn.end_wait(WaitEnd::Granted);
            woken.push(Arc::clone(&waiter.txn));
            if waiter.upgrade {
                self.upgrade(&waiter.txn);
            } else {
                let Waiter { txn, held_position, mode, .. } = waiter;
                self.add_holder(Holder { txn, held_position, mode, upgraded: false });
            }
        }
    }

    fn upgrade(&mut self, txn: &Arc<TxnState>) {
        let holder = self.holder_mut(txn).expect("an upgrader holds the lock");
        assert_eq!(holder.mode, LockMode::Shared);
        (holder.mode, holder.upgraded) = (LockMode::Exclusive, true);
    }

    /// Debug builds look at the rules at the head of this file after every change.
    fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let exclusive = self.holders().filter(|holder| holder.mode == LockMode::Exclusive).count();
        assert!(exclusive == 0 || self.holders().count() == 1, "rule 1");
        assert!(!self.front_is_grantable(), "rule 2");
        assert!(self.queue().is_sorted_by_key(|waiter| !waiter.upgrade), "rule 3");
    }
}

/// What a shard's mutex protects.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    by_key: HashTable<u32>,
    locks: Vec<Lock>,
    vacant: Vec<u32>,
}

impl Shard {
    /// Grants the request if that needs no waiting. The slot is meaningful in every answer.
    /// `held_position` is where the caller will note the lock if the answer is `Granted`.
    pub(crate) fn request(
        &mut self,
        hash: u64,
        (dict, key): (DictId, &[u8]),
        txn: &Arc<TxnState>,
        mode: LockMode,
        held_position: impl FnOnce(u32) -> u32,
    ) -> (u32, Answer) {
        let locks = &mut self.locks;
        let entry = self.by_key.entry(
            hash,
            |slot| locks[*slot as usize].is(hash, dict, key),
            |slot| locks[*slot as usize].hash,
        );
        match entry {
            Entry::Vacant(entry) => {
                let slot = self.vacant.pop().unwrap_or_else(|| {
                    self.locks.push(Lock::vacant());
                    self.locks.len() as u32 - 1
                });
                entry.insert(slot);
                let held_position = held_position(slot);
                let holder = Holder { txn: Arc::clone(txn), held_position, mode, upgraded: false };
                self.locks[slot as usize] =
                    Lock { hash, dict, key: LockKey::new(key), holder: Some(holder), company: None };
                (slot, Answer::Granted)
            }
            Entry::Occupied(entry) => {
                let slot = *entry.get();
                (slot, self.locks[slot as usize].request(txn, mode, || held_position(slot)))
            }
        }
    }

    /// Puts a request that was `Blocked` into the queue; `wait_number` is the number of its wait.
    pub(crate) fn enqueue(&mut self, place: Place, waiter: Waiter, wait_number: u64) {
        let lock = &mut self.locks[place.slot as usize];
        waiter.txn.begin_wait(WaitPlace::Lock(place), wait_number);
        let queue = &mut lock.company.get_or_insert_default().queue;
        let position = match waiter.upgrade {
            true => queue.iter().take_while(|other| other.upgrade).count(),
            false => queue.len(),
        };
        queue.insert(position, waiter);
        lock.check();
    }

    /// Ends the wait of `txn`, which is in the queue at `slot`, without a grant.
    pub(crate) fn withdraw(&mut self, slot: u32, txn: &Arc<TxnState>, end: WaitEnd, woken: &mut Woken) {
        let lock = &mut self.locks[slot as usize];
        let queue = &mut lock.company.as_mut().expect("a queue").queue;
        let position = queue.iter().position(|waiter| Arc::ptr_eq(&waiter.txn, txn));
        queue.remove(position.expect("a waiting transaction is in its queue"));
        txn.end_wait(end);
        woken.push(Arc::clone(txn));
        lock.hand_over(woken);
        lock.check();
    }

    /// Undoes what the last grant to `txn` gave it: an upgraded lock goes back to shared, another is
    /// released.
    pub(crate) fn give_back(
        &mut self,
        hash: u64,
        (dict, key): (DictId, &[u8]),
        txn: &Arc<TxnState>,
        woken: &mut Woken,
    ) -> GivenBack {
        let Some(slot) = self.slot_of(hash, dict, key) else { return GivenBack::NotHeld };
        let lock = &mut self.locks[slot as usize];
        match lock.holder_mut(txn) {
            None => GivenBack::NotHeld,
            Some(holder) if holder.upgraded => {
                (holder.mode, holder.upgraded) = (LockMode::Shared, false);
                lock.hand_over(woken);
                lock.check();
                GivenBack::Downgraded
            }
            Some(holder) => {
                let position = holder.held_position;
                self.release(slot, txn, woken);
                GivenBack::Released(position)
            }
        }
    }

    /// Makes a lock that `txn` holds shared. False: it does not hold it exclusively, as a lock of this key.
    pub(crate) fn share(
        &mut self,
        hash: u64,
        (dict, key): (DictId, &[u8]),
        txn: &Arc<TxnState>,
        woken: &mut Woken,
    ) -> bool {
        let Some(slot) = self.slot_of(hash, dict, key) else { return false };
        let lock = &mut self.locks[slot as usize];
        let Some(holder) = lock.holder_mut(txn).filter(|holder| holder.mode == LockMode::Exclusive) else {
            return false;
        };
        (holder.mode, holder.upgraded) = (LockMode::Shared, false);
        lock.hand_over(woken);
        lock.check();
        true
    }

    /// Releases the lock at `slot`, which `txn` holds, whatever its mode.
    pub(crate) fn release(&mut self, slot: u32, txn: &Arc<TxnState>, woken: &mut Woken) {
        let lock = &mut self.locks[slot as usize];
        lock.remove_holder(txn).expect("a transaction releases what it holds");
        if lock.company.is_some() {
            lock.hand_over(woken);
        }
        lock.check();
        if lock.holder.is_none() {
            self.remove(slot);
        }
    }

    /// Makes `txn` the exclusive holder of a lock. True if it held nothing: then `held_position` has noted the
    /// lock. Where others hold it, it stays theirs: one who has once waited for an entry of an index keeps it
    /// locked, while the row's lock decides who may delete it. Whoever asks looks again when it is granted.
    pub(crate) fn give(
        &mut self,
        hash: u64,
        (dict, key): (DictId, &[u8]),
        txn: &Arc<TxnState>,
        held_position: impl FnOnce(u32) -> u32,
    ) -> bool {
        let mode = LockMode::Exclusive;
        let (_, answer) = self.request(hash, (dict, key), txn, mode, |slot| held_position(slot) | GIVEN);
        matches!(answer, Answer::Granted)
    }

    /// The lock on a key, if there is one.
    pub(crate) fn find(&self, hash: u64, dict: DictId, key: &[u8]) -> Option<&Lock> {
        Some(&self.locks[self.slot_of(hash, dict, key)? as usize])
    }

    fn slot_of(&self, hash: u64, dict: DictId, key: &[u8]) -> Option<u32> {
        self.by_key.find(hash, |slot| self.locks[*slot as usize].is(hash, dict, key)).copied()
    }

    /// The lock at `slot`.
    pub(crate) fn lock(&self, slot: u32) -> &Lock {
        &self.locks[slot as usize]
    }

    /// Memory in use, in locks.
    #[cfg(test)]
    pub(crate) fn slots(&self) -> usize {
        self.locks.capacity()
    }

    /// All locks.
    pub(crate) fn locks(&self) -> impl Iterator<Item = &Lock> {
        self.locks.iter().filter(|lock| lock.holder.is_some())
    }

    fn remove(&mut self, slot: u32) {
        let hash = self.locks[slot as usize].hash;
        let entry = self.by_key.find_entry(hash, |other| *other == slot);
        entry.expect("a lock is found by its key").remove();
        if self.by_key.is_empty() && self.locks.len() > IDLE_SLOTS_MAX {
            *self = Shard::default();
        } else {
            self.locks[slot as usize] = Lock::vacant();
            self.vacant.push(slot);
        }
    }
}

impl Lock {
    fn is(&self, hash: u64, dict: DictId, key: &[u8]) -> bool {
        self.hash == hash && self.dict == dict && self.key() == key
    }

    fn request(
        &mut self,
        txn: &Arc<TxnState>,
        mode: LockMode,
        held_position: impl FnOnce() -> u32,
    ) -> Answer {
        if let Some(holder) = self.holder_mut(txn) {
            if holder.mode == LockMode::Exclusive || mode == LockMode::Shared {
                return Answer::AlreadyHeld;
            }
            let held_position = holder.held_position;
            if !self.is_sole_holder(txn) {
                return Answer::Blocked { upgrade: Some(held_position) };
            }
            self.upgrade(txn);
            self.check();
            return Answer::Upgraded;
        }
        let is_wrongly_shared = mode == LockMode::Shared && is_planted(Bug::SharedBesideExclusive);
        if self.front().is_some() || !self.admits(mode) && !is_wrongly_shared {
            return Answer::Blocked { upgrade: None };
        }
        self.add_holder(Holder {
            txn: Arc::clone(txn),
            held_position: held_position(),
            mode,
            upgraded: false,
        });
        self.check();
        Answer::Granted
    }
}
