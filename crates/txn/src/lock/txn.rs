//! A transaction as the lock manager knows it: what it holds, whether it waits, how it is woken.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pando_base::locks::{Condvar, Mutex};
use pando_base::{DictId, TxnId};

use super::table::{Place, GIVEN};
use super::LockManager;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    Granted,
    Deadlock,
    TimedOut,
    Killed,
}

/// Where a transaction waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitPlace {
    /// In the queue of a lock.
    Lock(Place),
    /// In the queue of those whom ranges of a dictionary are in the way.
    Ranges(DictId),
}

/// ```text
/// Idle --enqueued--> Waiting --granted, victim, timed out, killed--> Ended --seen by its thread--> Idle
/// ```
/// `Waiting` begins and ends under the mutex of the shard it names, so whoever holds that mutex sees
/// a queue and its waiters' states agree.
#[derive(Clone, Copy, Debug)]
enum WaitState {
    Idle,
    Waiting(WaitPlace),
    Ended(WaitEnd),
}

/// Locks held, by place, so that release needs no search. A lock given back early leaves a hole if it is
/// not the last; holes are filled again.
#[derive(Debug, Default)]
pub(crate) struct HeldLocks {
    places: Vec<Option<Place>>,
    /// Where holes were made; some may be filled or beyond the end by now.
    holes: Vec<u32>,
}

impl HeldLocks {
    /// Notes a lock; the position is kept with the lock for `forget`.
    pub(crate) fn note(&mut self, place: Place) -> u32 {
        while let Some(hole) = self.holes.pop() {
            if let Some(vacant @ None) = self.places.get_mut(hole as usize) {
                *vacant = Some(place);
                return hole;
            }
        }
        self.places.push(Some(place));
        self.places.len() as u32 - 1
    }

    /// The lock noted at `position`.
    pub(crate) fn place(&self, position: u32) -> Place {
        self.places[position as usize].expect("a lock that is held")
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// All, with their positions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Place)> + '_ {
        self.places.iter().enumerate().filter_map(|(position, place)| Some((position as u32, (*place)?)))
    }

    /// The lock at `position` is not held any more. (Not for positions with `GIVEN`.)
    pub(crate) fn forget(&mut self, position: u32) {
        let place = self.places[position as usize].take();
        assert!(place.is_some(), "a lock is given back once");
        if (position as usize) < self.places.len() - 1 {
            self.holes.push(position);
        }
        while let Some(None) = self.places.last() {
            self.places.pop();
        }
    }

    /// Empties the list, giving each lock.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Place> + '_ {
        self.holes.clear();
        self.places.drain(..).flatten()
    }
}

/// The shared part: queues, holders and the deadlock detector refer to it.
#[derive(Debug)]
pub(crate) struct TxnState {
    pub(crate) id: TxnId,
    killed: AtomicBool,
    weight: AtomicU64,
    /// Number of locks held, for reports; the list itself is the transaction's own business.
    pub(crate) held_count: AtomicUsize,
    /// Taken by the transaction's own thread only, for the whole of one request.
    pub(crate) held: Mutex<HeldLocks>,
    /// Locks that other threads have given it (`LockManager::lock_for_owner`), noted under the mutex of
    /// the lock's shard.
    pub(crate) converted: Mutex<HeldLocks>,
    /// Number of ranges held, and the dictionaries they are in: of its own thread.
    pub(crate) range_count: AtomicUsize,
    pub(crate) range_dicts: Mutex<Vec<DictId>>,
    wait: Mutex<WaitState>,
    /// Number of the last wait begun, in the order in which all transactions' waits began.
    wait_number: AtomicU64,
    /// When that was, and when the transaction took its first lock or snapshot (0: not yet), in
    /// microseconds of `clock_start`. For reports.
    waits_since: AtomicU64,
    begun: AtomicU64,
    write_bytes: AtomicU64,
    woken: Condvar,
}

/// Where the clock of reports begins.
fn clock_start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// Now on the clock of reports, never 0.
fn clock() -> u64 {
    clock_start().elapsed().as_micros() as u64 + 1
}

impl TxnState {
    pub(crate) fn new(id: TxnId) -> TxnState {
        TxnState {
            id,
            killed: AtomicBool::new(false),
            weight: AtomicU64::new(0),
            held_count: AtomicUsize::new(0),
            held: Mutex::default(),
            converted: Mutex::default(),
            range_count: AtomicUsize::new(0),
            range_dicts: Mutex::default(),
            wait: Mutex::new(WaitState::Idle),
            wait_number: AtomicU64::new(0),
            waits_since: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            write_bytes: AtomicU64::new(0),
            woken: Condvar::new(),
        }
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::SeqCst)
    }

    pub(crate) fn set_killed(&self, killed: bool) {
        self.killed.store(killed, Ordering::SeqCst);
    }

    /// The lock noted at `position` is not held any more; `held` is the list of its own.
    pub(crate) fn forget(&self, held: &mut HeldLocks, position: u32) {
        match position & GIVEN {
            0 => held.forget(position),
            _ => self.converted.lock().forget(position & !GIVEN),
        }
    }

    pub(crate) fn weight(&self) -> u64 {
        self.weight.load(Ordering::Relaxed)
    }

    pub(crate) fn wait_number(&self) -> u64 {
        self.wait_number.load(Ordering::Relaxed)
    }

    pub(crate) fn write_bytes(&self) -> u64 {
        self.write_bytes.load(Ordering::Relaxed)
    }

    /// Of the transaction's own thread.
    pub(crate) fn note_begun(&self) {
        if self.begun.load(Ordering::Relaxed) == 0 {
            self.begun.store(clock(), Ordering::Relaxed);
        }
    }

    /// When it took its first lock or snapshot, if it did.
    pub(crate) fn begun(&self) -> Option<Instant> {
        match self.begun.load(Ordering::Relaxed) {
            0 => None,
            micros => Some(clock_start() + Duration::from_micros(micros)),
        }
    }

    /// Since when it sleeps in a wait, if it does. Not before it has looked for deadlocks: that one waits is
    /// told only when it will go on doing so until somebody does something.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        self.waits_at()?;
        match self.waits_since.load(Ordering::Relaxed) {
            0 => None,
            micros => Some(clock_start() + Duration::from_micros(micros)),
        }
    }

    /// Its wait, which has begun, closes no deadlock: it is going to sleep, and is in reports as one that waits.
    pub(crate) fn note_asleep(&self) {
        self.waits_since.store(clock(), Ordering::Relaxed);
    }

    /// Requires the shard's mutex.
    pub(crate) fn begin_wait(&self, place: WaitPlace, number: u64) {
        self.wait_number.store(number, Ordering::Relaxed);
        self.waits_since.store(0, Ordering::Relaxed);
        let mut wait = self.wait.lock();
        assert!(matches!(*wait, WaitState::Idle), "a transaction waits for one lock at a time");
        *wait = WaitState::Waiting(place);
    }

    /// Requires the mutex of the shard it waits in. Its thread is to be woken with `wake` once no
    /// mutex is held.
    pub(crate) fn end_wait(&self, end: WaitEnd) {
        let mut wait = self.wait.lock();
        assert!(matches!(*wait, WaitState::Waiting(_)), "a wait ends once");
        *wait = WaitState::Ended(end);
    }

    pub(crate) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Where it waits, if it does.
    pub(crate) fn waits_at(&self) -> Option<WaitPlace> {
        match *self.wait.lock() {
            WaitState::Waiting(place) => Some(place),
            WaitState::Idle | WaitState::Ended(_) => None,
        }
    }

    /// Sleeps until the wait has ended, or the deadline passed (`None`, and it still waits).
    pub(crate) fn sleep(&self, deadline: Option<Instant>) -> Option<WaitEnd> {
        let mut wait = self.wait.lock();
        loop {
            if let WaitState::Ended(end) = *wait {
                *wait = WaitState::Idle;
                return Some(end);
            }
            match deadline {
                None => self.woken.wait(&mut wait),
                Some(deadline) if self.woken.wait_until(&mut wait, deadline).timed_out() => {
                    if let WaitState::Waiting(_) = *wait {
                        return None;
                    }
                }
                Some(_) => {}
            }
        }
    }
}

/// A registered transaction. Dropping it releases its locks.
///
/// One thread at a time asks for locks in its name; it may move between threads.
#[derive(Debug)]
pub struct TxnHandle {
    pub(crate) state: Arc<TxnState>,
    pub(crate) manager: Arc<LockManager>,
}

impl TxnHandle {
    /// The transaction's id.
    pub fn id(&self) -> TxnId {
        self.state.id
    }

    /// Tells how much would be lost with this transaction (its writes so far): of the transactions in a
    /// deadlock the one with the smallest weight is the victim.
    pub fn set_weight(&self, writes: u64) {
        self.state.weight.store(writes, Ordering::Relaxed);
    }

    /// What `set_weight` was told last.
    pub fn weight(&self) -> u64 {
        self.state.weight()
    }

    /// Whether it was killed: lock requests fail until `clear_kill`.
    pub fn is_killed(&self) -> bool {
        self.state.is_killed()
    }

    /// The killed statement is over, the transaction goes on.
    pub fn clear_kill(&self) {
        self.state.set_killed(false);
    }

    /// The transaction does its first work: from now on it is in reports.
    pub fn note_begun(&self) {
        self.state.note_begun();
    }

    /// Counts bytes written, for reports.
    pub fn add_write_bytes(&self, bytes: u64) {
        // Only its own thread writes it.
        let before = self.state.write_bytes();
        self.state.write_bytes.store(before + bytes, Ordering::Relaxed);
    }

    /// The transaction is over, and the next one of this handle has not begun.
    pub fn note_ended(&self) {
        self.state.begun.store(0, Ordering::Relaxed);
        self.state.write_bytes.store(0, Ordering::Relaxed);
        self.state.weight.store(0, Ordering::Relaxed);
        self.state.set_killed(false);
    }

    /// Number of locks held, ranges counted too.
    pub fn locks_and_ranges_held(&self) -> usize {
        self.locks_held() + self.ranges_held()
    }

    /// Number of ranges held.
    pub fn ranges_held(&self) -> usize {
        self.state.range_count.load(Ordering::Relaxed)
    }

    /// Number of row locks held.
    pub fn locks_held(&self) -> usize {
        self.state.held_count.load(Ordering::Relaxed)
    }
}

impl Drop for TxnHandle {
    fn drop(&mut self) {
        self.manager.unregister(self);
    }
}
