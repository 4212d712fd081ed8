//! Many threads against the lock manager, each key guarded a second time by a model that knows who
//! holds it. Every request must come to an end: a lost wake-up or a deadlock not found would let the
//! time limit pass, which is far beyond what the work needs, and no time-out is allowed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use pando_base::{DictId, Metrics, TxnId};
use pando_txn::{LockError, LockManager, LockMode, LockOutcome, TxnHandle, Wait};

const DICT: DictId = DictId(1);
const THREADS: u64 = 8;
const PATIENCE: Wait = Wait::Timeout(Duration::from_secs(60));

/// A small generator of numbers; the seed is the thread's number.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Who holds a key now: -1 for one exclusive holder, else the number of shared ones.
struct Guard(AtomicI64);

impl Guard {
    fn enter(&self, mode: LockMode) {
        let before = match mode {
            LockMode::Shared => self.0.fetch_add(1, Ordering::SeqCst),
            LockMode::Exclusive => self.0.fetch_sub(1, Ordering::SeqCst),
        };
        let alone = before == 0 || (mode == LockMode::Shared && before > 0);
        assert!(alone, "{mode} beside {before}");
    }

    fn upgrade(&self) {
        assert_eq!(self.0.swap(-1, Ordering::SeqCst), 1, "an upgrader is the only holder");
    }

    fn leave(&self, mode: LockMode) {
        match mode {
            LockMode::Shared => self.0.fetch_sub(1, Ordering::SeqCst),
            LockMode::Exclusive => self.0.fetch_add(1, Ordering::SeqCst),
        };
    }

    fn downgrade(&self) {
        assert_eq!(self.0.swap(1, Ordering::SeqCst), -1);
    }
}

struct Stage {
    locks: Arc<LockManager>,
    metrics: Arc<Metrics>,
    guards: Vec<Guard>,
    next_txn: AtomicU64,
}

impl Stage {
    fn new(keys: u64) -> Stage {
        let metrics = Arc::new(Metrics::default());
        Stage {
            locks: LockManager::new(Arc::clone(&metrics)),
            metrics,
            guards: (0..keys).map(|_| Guard(AtomicI64::new(0))).collect(),
            next_txn: AtomicU64::new(1),
        }
    }

    fn begin(&self) -> Actor<'_> {
        let id = TxnId(self.next_txn.fetch_add(1, Ordering::SeqCst));
        Actor { stage: self, txn: self.locks.register(id), held: BTreeMap::new() }
    }

    fn assert_empty(&self) {
        assert_eq!(self.locks.rows(), []);
        assert_eq!(self.metrics.row_locks.get(), 0);
        assert!(self.guards.iter().all(|guard| guard.0.load(Ordering::SeqCst) == 0));
    }
}

/// One transaction and what the model says it holds: mode now, and whether it was upgraded.
struct Actor<'a> {
    stage: &'a Stage,
    txn: TxnHandle,
    held: BTreeMap<u64, (LockMode, bool)>,
}

impl Actor<'_> {
    fn lock(&mut self, key: u64, mode: LockMode, wait: Wait) -> Result<(), LockError> {
        let guard = &self.stage.guards[key as usize];
        let before = self.held.get(&key).copied();
        let outcome = self.stage.locks.lock(&self.txn, DICT, &key.to_be_bytes(), mode, wait)?;
        match (before, mode) {
            (None, _) => {
                assert!(matches!(outcome, LockOutcome::Granted { .. }));
                guard.enter(mode);
                self.held.insert(key, (mode, false));
            }
            (Some((LockMode::Shared, _)), LockMode::Exclusive) => {
                assert!(matches!(outcome, LockOutcome::Granted { .. }));
                guard.upgrade();
                self.held.insert(key, (LockMode::Exclusive, true));
            }
            (Some(_), _) => assert_eq!(outcome, LockOutcome::AlreadyHeld),
        }
        assert_eq!(self.txn.locks_held(), self.held.len());
        Ok(())
    }

    fn unlock(&mut self, key: u64) {
        let guard = &self.stage.guards[key as usize];
        match self.held.remove(&key) {
            Some((_, true)) => {
                guard.downgrade();
                self.held.insert(key, (LockMode::Shared, false));
            }
            Some((mode, false)) => guard.leave(mode),
            None => {}
        }
        self.stage.locks.unlock(&self.txn, DICT, &key.to_be_bytes());
    }

    fn end(self) {
        for (key, (mode, _)) in &self.held {
            self.stage.guards[*key as usize].leave(*mode);
        }
        self.stage.locks.release_all(&self.txn);
    }
}

fn on_all_threads(work: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
}

fn some_mode(dice: &mut Dice) -> LockMode {
    match dice.below(2) {
        0 => LockMode::Shared,
        _ => LockMode::Exclusive,
    }
}

#[test]
fn locks_taken_in_any_order_exclude_each_other_and_every_deadlock_is_resolved() {
    let stage = Stage::new(12);
    on_all_threads(|thread| {
        let mut dice = Dice(thread);
        for _ in 0..1_500 {
            let mut actor = stage.begin();
            for writes in 0..dice.below(6) {
                actor.txn.set_weight(writes);
                let (key, mode) = (dice.below(12), some_mode(&mut dice));
                match actor.lock(key, mode, PATIENCE) {
                    Ok(()) => {}
                    Err(LockError::Deadlock) => break,
                    Err(other) => panic!("{other:?}: nobody was killed, and nobody is slow"),
                }
                match dice.below(8) {
                    0 => actor.unlock(key),
                    1 => std::thread::yield_now(),
                    _ => {}
                }
            }
            actor.end();
        }
    });
    stage.assert_empty();
    assert!(stage.metrics.deadlocks.get() > 0, "the test is to meet some");
}

#[test]
fn locks_taken_in_one_order_never_meet_a_false_deadlock() {
    let stage = Stage::new(10);
    on_all_threads(|thread| {
        let mut dice = Dice(thread + 100);
        for _ in 0..1_500 {
            let mut actor = stage.begin();
            // Ascending, each key once, given back in any order: no cycle can be.
            for key in 0..10 {
                if dice.below(3) == 0 {
                    actor.lock(key, some_mode(&mut dice), PATIENCE).unwrap();
                    if dice.below(4) == 0 {
                        actor.unlock(dice.below(key + 1));
                    }
                }
            }
            actor.end();
        }
    });
    stage.assert_empty();
    assert_eq!(stage.metrics.deadlocks.get(), 0);
    assert_eq!(stage.locks.last_deadlock(), None);
}

#[test]
fn a_cycle_put_together_from_different_moments_is_no_deadlock() {
    // Some hold key 0 and wait for key 1. The others hold key 1 shared, give it back, and only then wait
    // for key 0. Who reads "waits for key 1, which the other holds" before and "the other waits for key
    // 0" after sees a cycle that never was.
    let stage = Stage::new(2);
    on_all_threads(|thread| {
        for _ in 0..4_000 {
            let mut actor = stage.begin();
            if thread < 2 {
                actor.lock(0, LockMode::Exclusive, PATIENCE).unwrap();
                actor.lock(1, LockMode::Exclusive, PATIENCE).unwrap();
            } else {
                actor.lock(1, LockMode::Shared, PATIENCE).unwrap();
                actor.unlock(1);
                actor.lock(0, LockMode::Shared, PATIENCE).unwrap();
            }
            actor.end();
        }
    });
    stage.assert_empty();
    assert_eq!(stage.metrics.deadlocks.get(), 0);
}

#[test]
fn kills_and_time_limits_at_any_moment_leave_everything_in_order() {
    let stage = Stage::new(5);
    on_all_threads(|thread| {
        let mut dice = Dice(thread + 200);
        for _ in 0..1_000 {
            let mut actor = stage.begin();
            for _ in 0..dice.below(5) {
                let wait = match dice.below(4) {
                    0 => Wait::NoWait,
                    1 => Wait::SkipLocked,
                    2 => Wait::Timeout(Duration::from_micros(dice.below(50))),
                    _ => PATIENCE,
                };
                let (key, mode) = (dice.below(5), some_mode(&mut dice));
                match actor.lock(key, mode, wait) {
                    Ok(()) | Err(LockError::WouldBlock) => {}
                    Err(LockError::Timeout) => assert!(wait != PATIENCE, "nobody is that slow"),
                    Err(LockError::Killed) => actor.txn.clear_kill(),
                    Err(LockError::Deadlock) => break,
                }
                let newest = stage.next_txn.load(Ordering::SeqCst);
                if dice.below(4) == 0 {
                    stage.locks.kill(TxnId(newest.saturating_sub(dice.below(2 * THREADS))));
                }
            }
            actor.end();
        }
    });
    stage.assert_empty();
}

#[test]
fn one_hot_key_goes_through_all_hands() {
    let stage = Stage::new(1);
    on_all_threads(|_| {
        for _ in 0..2_000 {
            let mut actor = stage.begin();
            actor.lock(0, LockMode::Exclusive, PATIENCE).unwrap();
            actor.end();
        }
    });
    stage.assert_empty();
    assert_eq!(stage.metrics.row_lock_requests.get(), THREADS * 2_000);
    assert_eq!(stage.metrics.deadlocks.get(), 0);
}
