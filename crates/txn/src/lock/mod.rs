//! Row locks: who may change or depend on which key.
//!
//! Purpose: point locks by (dictionary, key), shared and exclusive, held until the transaction ends.
//! Locks are of keys, not of rows: a key that does not exist can be locked, which is how inserts of
//! the same unique key meet. Ranges of keys can be held too: gaps that others do not insert into, and stretches
//! that stand for many point locks (`ranges.rs`).
//!
//! What holds (I1 and I6 need no locks; these are the lock manager's own):
//! 1. Mutual exclusion: an exclusive lock has one holder, a shared one any number.
//! 2. First come, first served: a request waits if anyone waits, but re-entrant requests are answered at
//!    once, and a shared holder that wants exclusive stands before all who hold nothing.
//! 3. No lost wake-up, no herd: whoever departs from a lock (release, downgrade, withdrawal from
//!    the queue) grants it, under the shard's mutex, to exactly those who can have it now, and wakes these.
//!    A woken thread owns the lock already.
//! 4. Every deadlock is found when its last member begins to wait, and only real ones (`deadlock.rs`).
//! 5. A wait ends exactly once: granted, victim, timed out, or killed. A kill that comes between two
//!    requests makes the next one fail.
//!
//! 6. A gap keeps others from inserting, and nothing else; ranges are granted at once, whoever waits.
//!
//! Life of a request: hash (dictionary, key) to a shard; under its mutex, grant at once (a new lock,
//! or beside the holders of one without a queue) or enter the queue. Having entered, outside the
//! mutex: look for a kill, look for deadlocks, tell who listens (`watch.rs`), sleep on the transaction's own
//! condition variable. `release_all` goes through the list of places held, without hashing or comparing a key.
//!
//! Lock order: the list of held locks (own thread only), detector, shards of locks (one at a time; the
//! detector several, ascending), shards of ranges (the same), wait state. The registry of transactions, a
//! transaction's lists of locks given to it and of dictionaries with ranges, and the last deadlock are leaves.
//! Nobody is woken, and no I/O happens, under a shard's mutex.

mod deadlock;
mod intervals;
mod range_table;
mod ranges;
mod report;
mod table;
mod txn;
mod watch;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pando_base::locks::{Mutex, MutexGuard};
use pando_base::{panics, pause, DictId, Metrics, TxnId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use ranges::{Beside, Patience, Ranges};
pub use ranges::{HeldKey, HeldStretch};
pub use report::{Deadlock, DeadlockWait, LockKind, LockRow, TxnRow};
use table::{Answer, GivenBack, Place, Shard, Waiter, Woken};
pub use txn::TxnHandle;
use txn::{TxnState, WaitEnd, WaitPlace};
pub use watch::LockWatch;

/// Shards of the lock table: enough that a hundred busy threads rarely meet. A power of two.
const SHARDS: usize = 128;

/// Shards of the registry of transactions.
const REGISTRY_SHARDS: usize = 16;

const _: () = assert!(SHARDS.is_power_of_two());

/// How a key is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Others may hold it shared too.
    Shared,
    /// Nobody else may hold it.
    Exclusive,
}

impl LockMode {
    /// Whether this mode can be held by one while another holds `other`.
    pub fn admits(self, other: LockMode) -> bool {
        self == LockMode::Shared && other == LockMode::Shared
    }
}

impl fmt::Display for LockMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LockMode::Shared => "shared",
            LockMode::Exclusive => "exclusive",
        })
    }
}

/// What to do when a lock cannot be granted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Wait so long.
    Timeout(Duration),
    /// Fail at once; the statement fails.
    NoWait,
    /// Fail at once; the statement goes on without the row.
    SkipLocked,
}

/// A request that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    /// The lock, or its upgrade to exclusive, is new to the transaction; `unlock` undoes it.
    Granted {
        /// Whether it had to wait: what was read before the lock may be old.
        waited: bool,
    },
    /// The transaction held it before, as strong as asked for or stronger.
    AlreadyHeld,
}

/// A request that failed. The transaction holds what it held before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockError {
    /// The transaction is a deadlock's victim and must be rolled back.
    Deadlock,
    /// The time was over.
    Timeout,
    /// The transaction was killed, before or while it waited.
    Killed,
    /// Another holds it, and the request was not to wait (`NoWait`, `SkipLocked`).
    WouldBlock,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct PaddedShard(Mutex<Shard>);

type Registry = HashMap<TxnId, Arc<TxnState>>;

/// The table of row locks; see the head of this module.
#[derive(Debug)]
pub struct LockManager {
    shards: Box<[PaddedShard]>,
    ranges: Ranges,
    registry: [Mutex<Registry>; REGISTRY_SHARDS],
    /// Held by the one who looks for deadlocks.
    detector: Mutex<()>,
    waits_begun: AtomicU64,
    last_deadlock: Mutex<Option<Deadlock>>,
    watch: Option<Arc<dyn LockWatch>>,
    metrics: Arc<Metrics>,
}

impl LockManager {
    /// A manager without locks.
    pub fn new(metrics: Arc<Metrics>) -> Arc<LockManager> {
        LockManager::watched(metrics, None)
    }

    /// A manager without locks that tells `watch` of waits.
    pub fn watched(metrics: Arc<Metrics>, watch: Option<Arc<dyn LockWatch>>) -> Arc<LockManager> {
        Arc::new(LockManager {
            shards: (0..SHARDS).map(|_| PaddedShard::default()).collect(),
            ranges: Ranges::new(),
            registry: Default::default(),
            detector: Mutex::new(()),
            waits_begun: AtomicU64::new(0),
            last_deadlock: Mutex::new(None),
            watch,
            metrics,
        })
    }

    /// Makes a transaction known. Requires: no other lives with this id.
    pub fn register(self: &Arc<Self>, id: TxnId) -> TxnHandle {
        let state = Arc::new(TxnState::new(id));
        let other = self.registry_of(id).insert(id, Arc::clone(&state));
        assert!(other.is_none(), "transaction {id} is registered twice");
        TxnHandle { state, manager: Arc::clone(self) }
    }

    /// Locks `key` of `dict` for `txn`, or makes a shared lock exclusive.
    ///
    /// Errors leave what `txn` holds unchanged.
    pub fn lock(
        &self,
        txn: &TxnHandle,
        dict: DictId,
        key: &[u8],
        mode: LockMode,
        wait: Wait,
    ) -> Result<LockOutcome, LockError> {
        let _scope = panics::uncontained();
        let state = &txn.state;
        self.metrics.row_lock_requests.add(1);
        state.note_begun();
        if state.is_killed() {
            return Err(LockError::Killed);
        }
        let (hash, number) = hash_of(dict, key);
        let mut held = state.held.lock();
        let mut patience = Patience::new(wait);
        pause(256);
        let mut shard = loop {
            let shard = self.shards[number as usize].lock();
            if !self.ranges.has_stretches(dict) {
                break shard;
            }
            match self.beside_stretches(&shard, hash, (dict, key), state, mode) {
                Beside::Free => break shard,
                Beside::Held => return Ok(LockOutcome::AlreadyHeld),
                Beside::Blocked(wish) => {
                    let ranges = self.ranges.lock(dict);
                    // They may have gone since they were asked.
                    if ranges.is_blocked(state, dict, wish, key) {
                        drop(shard);
                        self.wait_for_ranges(ranges, state, dict, wish, key, &mut patience)?;
                    }
                }
            }
        };
        let (slot, answer) =
            shard.request(hash, (dict, key), state, mode, |slot| held.note(Place { shard: number, slot }));
        let waited = patience.has_waited();
        let upgrade = match answer {
            Answer::AlreadyHeld => return Ok(LockOutcome::AlreadyHeld),
            Answer::Upgraded => return Ok(LockOutcome::Granted { waited }),
            Answer::Granted => {
                drop(shard);
                self.count_new(state);
                return Ok(LockOutcome::Granted { waited });
            }
            Answer::Blocked { upgrade } => upgrade,
        };
        let Some(timeout) = patience.left() else { return Err(LockError::WouldBlock) };

        let place = Place { shard: number, slot };
        let held_position = upgrade.unwrap_or_else(|| held.note(place));
        let txn = Arc::clone(state);
        let wait_number = self.waits_begun.fetch_add(1, Ordering::Relaxed);
        shard.enqueue(place, Waiter { txn, held_position, mode, upgrade: upgrade.is_some() }, wait_number);
        drop(shard);
        let end = self.wait(state, timeout);
        match (end, upgrade) {
            (WaitEnd::Granted, None) => self.count_new(state),
            (WaitEnd::Granted, Some(_)) | (_, Some(_)) => {}
            (_, None) => held.forget(held_position),
        }
        match end {
            WaitEnd::Granted => Ok(LockOutcome::Granted { waited: true }),
            WaitEnd::Deadlock => Err(LockError::Deadlock),
            WaitEnd::TimedOut => Err(LockError::Timeout),
            WaitEnd::Killed => Err(LockError::Killed),
        }
    }

    /// Undoes what the last `Granted` for this key gave: a lock made exclusive is shared again,
    /// another is released (READ COMMITTED gives back rows that did not match). Not to be called
    /// after `AlreadyHeld`: the row may have been locked for a reason. False if nothing is held.
    pub fn unlock(&self, txn: &TxnHandle, dict: DictId, key: &[u8]) -> bool {
        let _scope = panics::uncontained();
        let state = &txn.state;
        let (hash, number) = hash_of(dict, key);
        let mut woken = Woken::new();
        let mut held = state.held.lock();
        let given_back = self.shards[number as usize].lock().give_back(hash, (dict, key), state, &mut woken);
        woken.iter().for_each(|txn| txn.wake());
        match given_back {
            GivenBack::NotHeld => return false,
            GivenBack::Downgraded => {}
            GivenBack::Released(position) => {
                state.forget(&mut held, position);
                state.held_count.fetch_sub(1, Ordering::Relaxed);
                self.metrics.row_locks.sub(1);
            }
        }
        true
    }

    /// Makes the exclusive lock on a key shared, for one that wanted to write it and will not. Not to be called after
    /// `AlreadyHeld`: the key may have been written. False: nothing changed, as it holds no exclusive lock of that key
    /// alone (but, perhaps, a stretch with it).
    pub fn share(&self, txn: &TxnHandle, dict: DictId, key: &[u8]) -> bool {
        let _scope = panics::uncontained();
        let (hash, number) = hash_of(dict, key);
        let mut woken = Woken::new();
        let is_shared = self.shards[number as usize].lock().share(hash, (dict, key), &txn.state, &mut woken);
        woken.iter().for_each(|txn| txn.wake());
        is_shared
    }

    /// Releases all locks of `txn`.
    pub fn release_all(&self, txn: &TxnHandle) {
        let _scope = panics::uncontained();
        let state = &txn.state;
        let mut held = state.held.lock();
        let count = state.held_count.swap(0, Ordering::Relaxed);
        if count > 0 {
            self.metrics.row_locks.sub(count as u64);
            let mut woken = Woken::new();
            // Others take that list under a shard's mutex: it is let go of before these are taken.
            let mut converted = std::mem::take(&mut *state.converted.lock());
            for place in held.drain().chain(converted.drain()) {
                pause(256);
                self.shard(place).release(place.slot, state, &mut woken);
                woken.drain(..).for_each(|txn| txn.wake());
            }
        }
        drop(held);
        self.release_ranges(state);
    }

    /// Makes `txn`'s wait, if it waits, and its further requests fail with `Killed`. Unknown ids are
    /// none of our business: the transaction has ended.
    pub fn kill(&self, txn: TxnId) {
        let _scope = panics::uncontained();
        let state = self.registry_of(txn).get(&txn).cloned();
        if let Some(state) = state {
            // First the flag, then the wait; the waiter enters its queue first and then looks at the flag.
            state.set_killed(true);
            self.cancel(&state, WaitEnd::Killed);
        }
    }

    /// The last deadlock: who waited for what held by whom, and the victim.
    pub fn last_deadlock(&self) -> Option<Deadlock> {
        self.last_deadlock.lock().clone()
    }

    pub(crate) fn unregister(&self, txn: &TxnHandle) {
        self.release_all(txn);
        self.registry_of(txn.id()).remove(&txn.id());
    }

    /// Waits for the end of a wait that has begun.
    fn wait(&self, state: &Arc<TxnState>, timeout: Duration) -> WaitEnd {
        self.metrics.row_lock_waits.add(1);
        // Time limits of waits are real time even in a simulation: threads really sleep here.
        let begun = Instant::now();
        pause(16);
        if state.is_killed() {
            self.cancel(state, WaitEnd::Killed);
        }
        self.resolve_deadlocks(state);
        pause(16);
        state.note_asleep();
        self.report_wait(state);
        // A time beyond the clock's range is for ever.
        let end = state.sleep(begun.checked_add(timeout)).unwrap_or_else(|| {
            self.cancel(state, WaitEnd::TimedOut);
            state.sleep(None).expect("the wait has ended, by the time limit or before")
        });
        self.metrics.row_lock_time.add(begun.elapsed().as_micros() as u64);
        if end == WaitEnd::TimedOut {
            self.metrics.row_lock_timeouts.add(1);
        }
        end
    }

    /// Ends the wait of `state` if it still waits.
    fn cancel(&self, state: &Arc<TxnState>, end: WaitEnd) {
        let Some(place) = state.waits_at() else { return };
        pause(4);
        let mut woken = Woken::new();
        {
            // Waits begin and end under the shard's mutex: only with it, it is certain.
            let still = || state.waits_at() == Some(place);
            match place {
                WaitPlace::Lock(place) => {
                    let mut shard = self.shard(place);
                    if !still() {
                        return;
                    }
                    shard.withdraw(place.slot, state, end, &mut woken);
                }
                WaitPlace::Ranges(dict) => {
                    let mut shard = self.ranges.lock(dict);
                    if !still() {
                        return;
                    }
                    shard.withdraw(state, dict, end, &mut woken);
                }
            }
        }
        woken.iter().for_each(|txn| txn.wake());
    }

    fn count_new(&self, state: &TxnState) {
        state.held_count.fetch_add(1, Ordering::Relaxed);
        self.metrics.row_locks.add(1);
    }

    fn shard(&self, place: Place) -> MutexGuard<'_, Shard> {
        self.shards[place.shard as usize].lock()
    }

    fn registry_of(&self, txn: TxnId) -> MutexGuard<'_, Registry> {
        self.registry[txn.0 as usize % REGISTRY_SHARDS].lock()
    }
}

impl PaddedShard {
    fn lock(&self) -> MutexGuard<'_, Shard> {
        self.0.lock()
    }
}

/// The hash of a lock and its shard, which comes from bits the shard's hash table does not use first.
fn hash_of(dict: DictId, key: &[u8]) -> (u64, u32) {
    let hash = xxh3_64_with_seed(key, dict.0);
    (hash, (hash >> 40) as u32 & (SHARDS as u32 - 1))
}

#[cfg(test)]
mod range_tests;
#[cfg(test)]
mod report_tests;
#[cfg(test)]
mod tests;
