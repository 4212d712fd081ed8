use std::sync::atomic::AtomicBool;
use std::thread;

use super::LockMode::{Exclusive, Shared};
use super::*;

const DICT: DictId = DictId(3);
pub(super) const LONG: Wait = Wait::Timeout(Duration::from_secs(30));
pub(super) const GRANTED: Result<LockOutcome, LockError> = Ok(LockOutcome::Granted { waited: false });
pub(super) const WAITED: Result<LockOutcome, LockError> = Ok(LockOutcome::Granted { waited: true });
pub(super) const HELD: Result<LockOutcome, LockError> = Ok(LockOutcome::AlreadyHeld);

pub(super) fn manager() -> (Arc<LockManager>, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::default());
    (LockManager::new(Arc::clone(&metrics)), metrics)
}

impl TxnHandle {
    pub(super) fn ask(&self, key: &str, mode: LockMode, wait: Wait) -> Result<LockOutcome, LockError> {
        self.manager.lock(self, DICT, key.as_bytes(), mode, wait)
    }

    pub(super) fn give_back(&self, key: &str) -> bool {
        self.manager.unlock(self, DICT, key.as_bytes())
    }

    fn share(&self, key: &str) -> bool {
        self.manager.share(self, DICT, key.as_bytes())
    }

    pub(super) fn release(&self) {
        self.manager.release_all(self);
    }

    /// Lets another thread come to where it waits, and find no deadlock.
    pub(super) fn until_it_waits(&self) {
        while self.state.waiting_since().is_none() {
            thread::yield_now();
        }
    }
}

pub(super) fn txns<const N: usize>(locks: &Arc<LockManager>) -> [TxnHandle; N] {
    std::array::from_fn(|i| locks.register(TxnId(i as u64 + 1)))
}

pub(super) fn assert_nothing_is_left(locks: &LockManager, metrics: &Metrics) {
    assert_eq!(locks.rows(), []);
    assert_eq!(metrics.row_locks.get(), 0);
}

#[test]
fn shared_locks_stand_together_and_exclusive_ones_alone() {
    let (locks, metrics) = manager();
    let [a, b, c] = txns(&locks);
    assert_eq!(a.ask("k", Shared, LONG), GRANTED);
    assert_eq!(b.ask("k", Shared, LONG), GRANTED);
    assert_eq!(c.ask("k", Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
    assert_eq!(c.ask("k", Exclusive, Wait::SkipLocked), Err(LockError::WouldBlock));
    a.release();
    b.release();
    assert_eq!(c.ask("k", Exclusive, Wait::NoWait), GRANTED);
    assert_eq!(a.ask("k", Shared, Wait::NoWait), Err(LockError::WouldBlock));
    assert_eq!(a.ask("other", Exclusive, Wait::NoWait), GRANTED);
    assert_eq!((a.locks_held(), b.locks_held(), c.locks_held()), (1, 0, 1));
    assert_eq!(metrics.row_locks.get(), 2);
    assert_eq!(metrics.row_lock_requests.get(), 7);
    drop((a, b, c));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn keys_of_different_dictionaries_and_lengths_are_different_locks() {
    let (locks, _) = manager();
    let [a, b] = txns(&locks);
    let long = vec![7u8; 1000];
    for key in [&b""[..], b"k", &long[..22], &long[..23], &long] {
        assert_eq!(locks.lock(&a, DICT, key, Exclusive, Wait::NoWait), GRANTED);
        assert_eq!(locks.lock(&b, DictId(4), key, Exclusive, Wait::NoWait), GRANTED);
        assert_eq!(locks.lock(&b, DICT, key, Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
    }
}

#[test]
fn a_lock_is_re_entrant() {
    let (locks, _) = manager();
    let [a] = txns(&locks);
    assert_eq!(a.ask("k", Exclusive, LONG), GRANTED);
    assert_eq!(a.ask("k", Exclusive, LONG), HELD);
    assert_eq!(a.ask("k", Shared, LONG), HELD);
    assert_eq!(a.locks_held(), 1);
}

#[test]
fn unlock_undoes_what_was_granted_last() {
    let (locks, metrics) = manager();
    let [a, b] = txns(&locks);
    assert_eq!(a.ask("k", Shared, LONG), GRANTED);
    assert_eq!(a.ask("k", Exclusive, LONG), GRANTED);
    assert!(a.give_back("k"));
    assert_eq!(b.ask("k", Shared, Wait::NoWait), GRANTED, "a is back to shared");
    assert_eq!(b.ask("k", Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
    assert!(a.give_back("k"));
    assert!(!a.give_back("k"));
    assert_eq!(b.ask("k", Exclusive, Wait::NoWait), GRANTED);
    assert_eq!((a.locks_held(), b.locks_held()), (0, 1));
    drop((a, b));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn a_lock_that_is_shared_lets_in_those_who_waited_to_share_it() {
    let (locks, metrics) = manager();
    let [a, b, c] = txns(&locks);
    assert!(!a.share("k"), "it holds nothing");
    assert_eq!(a.ask("k", Exclusive, LONG), GRANTED);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| b.ask("k", Shared, LONG));
        b.until_it_waits();
        assert!(a.share("k"));
        assert_eq!(waiter.join().unwrap(), WAITED);
    });
    assert!(!a.share("k"), "it is shared already");
    assert_eq!(c.ask("k", Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
    assert_eq!(a.ask("k", Shared, Wait::NoWait), HELD);
    b.release();
    // What was shared and is made exclusive goes back to shared, as ever.
    assert_eq!(a.ask("k", Exclusive, Wait::NoWait), GRANTED);
    assert!(a.give_back("k"));
    assert_eq!(b.ask("k", Shared, Wait::NoWait), GRANTED);
    b.release();
    assert_eq!(a.ask("k", Exclusive, Wait::NoWait), GRANTED);
    assert!(a.share("k"));
    assert!(a.give_back("k"), "and then it is released");
    assert_eq!(c.ask("k", Exclusive, Wait::NoWait), GRANTED);
    c.release();
    a.release();
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn locks_given_back_out_of_order_are_not_released_twice() {
    let (locks, metrics) = manager();
    let [a] = txns(&locks);
    for key in ["1", "2", "3", "4"] {
        a.ask(key, Exclusive, LONG).unwrap();
    }
    for key in ["2", "4", "3"] {
        assert!(a.give_back(key));
    }
    a.ask("5", Exclusive, LONG).unwrap();
    assert_eq!(a.locks_held(), 2);
    a.release();
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn a_released_lock_is_handed_to_the_first_in_the_queue() {
    let (locks, metrics) = manager();
    let [a, b, c, d] = txns(&locks);
    a.ask("k", Exclusive, LONG).unwrap();
    thread::scope(|scope| {
        let in_turn: Vec<_> = [&b, &c]
            .map(|txn| {
                let thread = scope.spawn(|| txn.ask("k", Exclusive, LONG));
                txn.until_it_waits();
                thread
            })
            .into();
        assert_eq!(locks.rows().iter().filter(|row| row.waiting).count(), 2);
        a.release();
        // b owns it before its thread has run; nobody can come between.
        let holders: Vec<TxnId> = locks.rows().iter().filter(|row| !row.waiting).map(|row| row.txn).collect();
        assert_eq!(holders, [b.id()]);
        assert_eq!(d.ask("k", Shared, Wait::NoWait), Err(LockError::WouldBlock));
        let mut in_turn = in_turn.into_iter();
        assert_eq!(in_turn.next().unwrap().join().unwrap(), WAITED);
        b.release();
        assert_eq!(in_turn.next().unwrap().join().unwrap(), WAITED);
    });
    assert_eq!(metrics.row_lock_waits.get(), 2);
    drop((a, b, c, d));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn shared_requests_do_not_overtake_an_exclusive_one_that_waits() {
    let (locks, _) = manager();
    let [a, b, c] = txns(&locks);
    a.ask("k", Shared, LONG).unwrap();
    thread::scope(|scope| {
        let exclusive = scope.spawn(|| b.ask("k", Exclusive, LONG));
        b.until_it_waits();
        assert_eq!(c.ask("k", Shared, Wait::NoWait), Err(LockError::WouldBlock));
        let shared = scope.spawn(|| c.ask("k", Shared, LONG));
        c.until_it_waits();
        a.release();
        assert_eq!(exclusive.join().unwrap(), WAITED);
        assert!(!shared.is_finished());
        b.release();
        assert_eq!(shared.join().unwrap(), WAITED);
    });
}

#[test]
fn an_upgrade_stands_before_all_who_wait() {
    let (locks, _) = manager();
    let [a, b, c] = txns(&locks);
    a.ask("k", Shared, LONG).unwrap();
    b.ask("k", Shared, LONG).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| c.ask("k", Exclusive, LONG));
        c.until_it_waits();
        let upgrade = scope.spawn(|| a.ask("k", Exclusive, LONG));
        a.until_it_waits();
        b.release();
        assert_eq!(upgrade.join().unwrap(), WAITED);
        assert!(!waiting.is_finished());
        a.release();
        assert_eq!(waiting.join().unwrap(), WAITED);
    });
}

#[test]
fn a_wait_ends_when_its_time_is_over_and_lets_those_behind_pass() {
    let (locks, metrics) = manager();
    let [a, b, c] = txns(&locks);
    a.ask("k", Shared, LONG).unwrap();
    thread::scope(|scope| {
        let short = scope.spawn(|| b.ask("k", Exclusive, Wait::Timeout(Duration::from_millis(100))));
        // Its time may be over before this thread has seen that it waits.
        while b.state.waiting_since().is_none() && !short.is_finished() {
            thread::yield_now();
        }
        let behind = scope.spawn(|| c.ask("k", Shared, LONG));
        assert_eq!(short.join().unwrap(), Err(LockError::Timeout));
        // Not waiting at all is possible if this machine was too busy to start c in time.
        assert!(behind.join().unwrap().is_ok());
    });
    assert_eq!(b.locks_held(), 0);
    assert_eq!(metrics.row_lock_timeouts.get(), 1);
    assert!(metrics.row_lock_time.get() >= 100_000);
    assert_eq!(b.ask("k", Exclusive, Wait::Timeout(Duration::ZERO)), Err(LockError::Timeout));
    drop((a, b, c));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn a_failed_upgrade_keeps_the_shared_lock() {
    let (locks, metrics) = manager();
    let [a, b] = txns(&locks);
    a.ask("k", Shared, LONG).unwrap();
    b.ask("k", Shared, LONG).unwrap();
    assert_eq!(a.ask("k", Exclusive, Wait::Timeout(Duration::from_millis(5))), Err(LockError::Timeout));
    assert_eq!(a.ask("k", Shared, LONG), HELD);
    b.release();
    assert_eq!(b.ask("k", Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
    drop((a, b));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn a_kill_wakes_a_waiter_and_fails_later_requests() {
    let (locks, _) = manager();
    let [a, b] = txns(&locks);
    a.ask("k", Exclusive, LONG).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| b.ask("k", Exclusive, LONG));
        b.until_it_waits();
        locks.kill(b.id());
        assert_eq!(waiting.join().unwrap(), Err(LockError::Killed));
    });
    assert_eq!(b.ask("free", Exclusive, LONG), Err(LockError::Killed));
    b.clear_kill();
    assert_eq!(b.ask("free", Exclusive, LONG), GRANTED);
    locks.kill(TxnId(99));
}

#[test]
fn two_who_wait_for_each_other_are_a_deadlock_and_the_lighter_one_is_the_victim() {
    for heavy in [0, 1] {
        let (locks, metrics) = manager();
        let pair: [TxnHandle; 2] = txns(&locks);
        pair[heavy].set_weight(10);
        let [a, b] = &pair;
        a.ask("1", Exclusive, LONG).unwrap();
        b.ask("2", Exclusive, LONG).unwrap();
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                let result = a.ask("2", Exclusive, LONG);
                a.release();
                result
            });
            a.until_it_waits();
            let second = b.ask("1", Exclusive, LONG);
            b.release();
            let results = [first.join().unwrap(), second];
            assert_eq!(results[heavy], WAITED);
            assert_eq!(results[1 - heavy], Err(LockError::Deadlock));
        });
        assert_eq!(metrics.deadlocks.get(), 1);
        let text = locks.last_deadlock().unwrap().to_string();
        let victim = format!("victim: transaction {}", 2 - heavy);
        for part in ["deadlock of 2", "dictionary 3 key 31", "dictionary 3 key 32", "weight 10", &victim] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn among_equals_the_one_that_closed_the_cycle_is_the_victim() {
    let (locks, _) = manager();
    let [a, b, c] = txns(&locks);
    for (txn, key) in [(&a, "1"), (&b, "2"), (&c, "3")] {
        txn.ask(key, Exclusive, LONG).unwrap();
    }
    thread::scope(|scope| {
        let first = scope.spawn(|| a.ask("2", Exclusive, LONG));
        a.until_it_waits();
        let second = scope.spawn(|| b.ask("3", Exclusive, LONG));
        b.until_it_waits();
        assert_eq!(c.ask("1", Exclusive, LONG), Err(LockError::Deadlock));
        c.release();
        assert_eq!(second.join().unwrap(), WAITED);
        b.release();
        assert_eq!(first.join().unwrap(), WAITED);
    });
}

#[test]
fn two_upgraders_of_one_lock_are_a_deadlock() {
    let (locks, metrics) = manager();
    let [a, b] = txns(&locks);
    a.ask("k", Shared, LONG).unwrap();
    b.ask("k", Shared, LONG).unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(|| a.ask("k", Exclusive, LONG));
        a.until_it_waits();
        assert_eq!(b.ask("k", Exclusive, LONG), Err(LockError::Deadlock));
        assert!(!first.is_finished(), "the victim still holds its shared lock");
        b.release();
        assert_eq!(first.join().unwrap(), WAITED);
    });
    assert!(locks.last_deadlock().unwrap().to_string().contains("held shared"));
    drop((a, b));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn a_shared_request_behind_an_exclusive_one_closes_a_cycle_through_it() {
    // a holds k shared; b waits for it exclusive; c, shared, behind b. Then a waits for what c holds:
    // c would be granted beside a, but for b. The lightest is b, and with it out of the way c passes.
    let (locks, metrics) = manager();
    let [a, b, c] = txns(&locks);
    a.set_weight(5);
    c.set_weight(5);
    a.ask("k", Shared, LONG).unwrap();
    c.ask("of c", Exclusive, LONG).unwrap();
    thread::scope(|scope| {
        let through = scope.spawn(|| b.ask("k", Exclusive, LONG));
        b.until_it_waits();
        let behind = scope.spawn(|| {
            let result = c.ask("k", Shared, LONG);
            c.release();
            result
        });
        c.until_it_waits();
        assert_eq!(a.ask("of c", Exclusive, LONG), WAITED);
        assert_eq!(through.join().unwrap(), Err(LockError::Deadlock));
        assert_eq!(behind.join().unwrap(), WAITED);
    });
    let text = locks.last_deadlock().unwrap().to_string();
    assert!(text.contains("deadlock of 3") && text.contains("behind transaction 2"), "{text}");
    assert_eq!(metrics.deadlocks.get(), 1);
}

#[test]
fn a_wait_that_closes_two_cycles_fells_a_victim_in_each() {
    // b and c hold k shared and both wait for what a holds; a then wants k exclusive.
    let (locks, metrics) = manager();
    let [a, b, c] = txns(&locks);
    a.set_weight(100);
    a.ask("of a", Exclusive, LONG).unwrap();
    b.ask("k", Shared, LONG).unwrap();
    c.ask("k", Shared, LONG).unwrap();
    thread::scope(|scope| {
        let victims = [&b, &c].map(|txn| {
            let thread = scope.spawn(|| {
                let result = txn.ask("of a", Shared, LONG);
                txn.release();
                result
            });
            txn.until_it_waits();
            thread
        });
        assert_eq!(a.ask("k", Exclusive, LONG), WAITED);
        for victim in victims {
            assert_eq!(victim.join().unwrap(), Err(LockError::Deadlock));
        }
    });
    assert_eq!(metrics.deadlocks.get(), 2);
}

#[test]
fn waiting_for_one_who_runs_is_no_deadlock_however_long_the_chain() {
    let (locks, metrics) = manager();
    let chain: [TxnHandle; 12] = txns(&locks);
    for (i, txn) in chain.iter().enumerate() {
        txn.ask(&i.to_string(), Exclusive, LONG).unwrap();
    }
    thread::scope(|scope| {
        for (i, txn) in chain.iter().enumerate().skip(1) {
            scope.spawn(move || {
                assert_eq!(txn.ask(&(i - 1).to_string(), Exclusive, LONG), WAITED);
                txn.release();
            });
            txn.until_it_waits();
        }
        chain[0].release();
    });
    assert_eq!(metrics.deadlocks.get(), 0);
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn giving_back_a_single_lock_hands_it_over() {
    let (locks, _) = manager();
    let [a, b] = txns(&locks);
    a.ask("k", Shared, LONG).unwrap();
    a.ask("k", Exclusive, LONG).unwrap();
    let shared_too = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            assert_eq!(b.ask("k", Shared, LONG), WAITED);
            shared_too.store(true, Ordering::SeqCst);
        });
        b.until_it_waits();
        a.give_back("k");
        waiting.join().unwrap();
    });
    assert!(shared_too.load(Ordering::SeqCst));
}

#[test]
fn a_dropped_handle_leaves_no_locks_even_when_its_thread_panics() {
    let (locks, metrics) = manager();
    let a = locks.register(TxnId(1));
    let result = thread::scope(|scope| {
        scope
            .spawn(move || {
                a.ask("k", Exclusive, LONG).unwrap();
                std::panic::resume_unwind(Box::new("a bug"));
            })
            .join()
    });
    assert!(result.is_err());
    assert_nothing_is_left(&locks, &metrics);
    drop(locks.register(TxnId(1)));
}

#[test]
fn a_transaction_of_very_many_locks_leaves_no_memory_behind() {
    let (locks, metrics) = manager();
    let [a] = txns(&locks);
    for i in 0..100_000u32 {
        assert_eq!(locks.lock(&a, DICT, &i.to_be_bytes(), Exclusive, LONG), GRANTED);
    }
    assert_eq!((a.locks_held(), metrics.row_locks.get()), (100_000, 100_000));
    a.release();
    assert_nothing_is_left(&locks, &metrics);
    assert!(locks.shards.iter().all(|shard| shard.lock().slots() <= 64));
}
