//! Gaps, inserts, implicit locks made explicit, stretches.

use std::thread;

use super::tests::{assert_nothing_is_left, manager, txns, GRANTED, HELD, LONG, WAITED};
use super::LockMode::{Exclusive, Shared};
use super::*;

const DICT: DictId = DictId(3);

impl TxnHandle {
    fn gap(&self, from: &str, to: &str) {
        self.manager.lock_gap(self, DICT, from.as_bytes(), Some(to.as_bytes()));
    }

    fn may(&self, key: &str) -> bool {
        self.manager.may_insert(self, DICT, key.as_bytes())
    }

    fn wait_to_insert(&self, key: &str, wait: Wait) -> Result<(), LockError> {
        self.manager.wait_to_insert(self, DICT, key.as_bytes(), wait)
    }

    fn escalate(&self) {
        let mut keys = self.manager.held_keys(self);
        keys.sort_by(|a, b| a.key.cmp(&b.key));
        self.manager.replace_by_stretch(self, &keys);
    }
}

#[test]
fn a_stretch_wider_than_what_was_asked_for_takes_nothing_from_others() {
    let (locks, metrics) = manager();
    let [a, b, c] = txns(&locks);
    assert_eq!(b.ask("d", Exclusive, Wait::NoWait), GRANTED);
    assert_eq!(b.ask("f", Shared, Wait::NoWait), GRANTED);
    for key in ["b", "e", "h"] {
        assert_eq!(a.ask(key, Exclusive, Wait::NoWait), GRANTED);
    }
    let mut keys = locks.held_keys(&a);
    keys.sort_by(|a, b| a.key.cmp(&b.key));
    assert!(locks.widen(&a, DICT, Exclusive, (b"b", Some(b"h\0")), &keys));
    assert_eq!((a.locks_held(), a.ranges_held()), (0, 1));
    let stretches = locks.held_stretches(&a);
    assert_eq!((stretches[0].from.as_slice(), stretches[0].to.as_deref()), (&b"b"[..], Some(&b"h\0"[..])));
    // What others held is theirs; what nobody held is a's; outside all is free.
    assert_eq!(a.ask("d", Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
    assert_eq!(a.ask("f", Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
    assert_eq!(a.ask("c", Exclusive, Wait::NoWait), HELD);
    assert_eq!(b.ask("d", Exclusive, Wait::NoWait), HELD);
    assert_eq!(b.ask("f", Exclusive, Wait::NoWait), GRANTED, "nobody else has it");
    for key in ["b", "c", "e", "g", "h"] {
        assert_eq!(c.ask(key, Shared, Wait::NoWait), Err(LockError::WouldBlock), "{key}");
    }
    assert_eq!(c.ask("a", Exclusive, Wait::NoWait), GRANTED);
    assert_eq!(c.ask("i", Exclusive, Wait::NoWait), GRANTED);
    // Nobody else's stretch goes over it.
    let held = locks.held_keys(&c);
    assert!(!locks.widen(&c, DICT, Exclusive, (b"a", Some(b"i\0")), &held));
    assert_eq!(c.locks_held(), 2);
    // When the other ends, its keys are a's.
    b.release();
    assert_eq!(a.ask("d", Exclusive, Wait::NoWait), HELD);
    assert_eq!(c.ask("d", Shared, Wait::NoWait), Err(LockError::WouldBlock));
    a.release();
    assert_eq!(c.ask("d", Shared, Wait::NoWait), GRANTED);
    c.release();
    drop((a, b, c));
    assert_nothing_is_left(&locks, &metrics);
}

/// Others came to the key's own lock before the stretch went over it, and get it without being asked about stretches.
#[test]
fn a_stretch_does_not_stand_for_a_lock_that_others_wait_for() {
    let (locks, metrics) = manager();
    let [a, b, c] = txns(&locks);
    assert_eq!(b.ask("d", Shared, Wait::NoWait), GRANTED);
    for key in ["a", "f"] {
        assert_eq!(a.ask(key, Shared, Wait::NoWait), GRANTED);
    }
    thread::scope(|scope| {
        let before = scope.spawn(|| c.ask("d", Exclusive, LONG));
        c.until_it_waits();
        a.escalate();
        assert_eq!((a.locks_held(), a.ranges_held()), (0, 1));
        assert_eq!(a.ask("d", Shared, Wait::NoWait), Err(LockError::WouldBlock));
        let behind = scope.spawn(|| a.ask("d", Shared, LONG));
        a.until_it_waits();
        b.release();
        assert_eq!(before.join().unwrap(), WAITED);
        c.release();
        assert_eq!(behind.join().unwrap(), WAITED);
    });
    assert_eq!(a.locks_held(), 1);
    a.release();
    drop((a, b, c));
    assert_nothing_is_left(&locks, &metrics);
}

/// Shared beneath an exclusive stretch: who waits to share it would get it when those before him give up.
#[test]
fn a_lock_that_others_wait_for_is_made_exclusive_itself_beneath_a_stretch() {
    let (locks, metrics) = manager();
    let [a, b, c] = txns(&locks);
    assert_eq!(a.ask("d", Shared, Wait::NoWait), GRANTED);
    for key in ["a", "f"] {
        assert_eq!(a.ask(key, Exclusive, Wait::NoWait), GRANTED);
    }
    thread::scope(|scope| {
        let first = scope.spawn(|| b.ask("d", Exclusive, LONG));
        b.until_it_waits();
        let second = scope.spawn(|| c.ask("d", Shared, LONG));
        c.until_it_waits();
        let mut keys = locks.held_keys(&a);
        keys.sort_by(|a, b| a.key.cmp(&b.key));
        assert!(locks.widen(&a, DICT, Exclusive, (b"a", Some(b"f\0")), &keys));
        assert_eq!(a.ask("d", Exclusive, Wait::NoWait), GRANTED);
        locks.kill(b.id());
        assert_eq!(first.join().unwrap(), Err(LockError::Killed));
        assert_eq!(b.ask("d", Shared, Wait::NoWait), Err(LockError::Killed));
        locks.kill(c.id());
        assert_eq!(second.join().unwrap(), Err(LockError::Killed), "it was not let in beside a");
    });
    a.release();
    drop((a, b, c));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn a_gap_keeps_others_from_inserting_and_from_nothing_else() {
    let (locks, metrics) = manager();
    let [a, b] = txns(&locks);
    assert!(!locks.has_gaps(DICT));
    a.gap("b", "d");
    b.gap("c", "f");
    assert!(locks.has_gaps(DICT));
    assert!(a.may("b") && !a.may("c") && !a.may("e"), "in b's gap");
    assert!(!b.may("b") && !b.may("c") && b.may("d") && b.may("a"));
    assert_eq!(b.wait_to_insert("b", Wait::NoWait), Err(LockError::WouldBlock));
    assert_eq!(b.ask("b", Exclusive, Wait::NoWait), GRANTED, "a key in a gap can be locked");
    assert_eq!((a.ranges_held(), a.locks_held(), b.locks_and_ranges_held()), (1, 0, 2));
    let rows = locks.rows();
    assert_eq!(rows.iter().filter(|row| row.kind == LockKind::Gap).count(), 2);
    assert!(rows.iter().any(|row| row.txn == a.id() && row.from == b"b" && row.to == Some(b"d".to_vec())));
    a.release();
    assert!(b.may("b"));
    b.release();
    assert!(!locks.has_gaps(DICT));
    drop((a, b));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn an_insert_waits_until_no_gap_of_others_covers_it() {
    let (locks, metrics) = manager();
    let [a, b, c] = txns(&locks);
    a.gap("b", "d");
    b.gap("a", "z");
    thread::scope(|scope| {
        let inserting = scope.spawn(|| c.wait_to_insert("c", LONG));
        c.until_it_waits();
        let row = locks.rows().into_iter().find(|row| row.waiting).unwrap();
        assert_eq!((row.kind, row.txn, row.from), (LockKind::Insert, c.id(), b"c".to_vec()));
        assert_eq!(row.blockers, [a.id(), b.id()]);
        a.release();
        assert!(!inserting.is_finished());
        b.release();
        assert_eq!(inserting.join().unwrap(), Ok(()));
    });
    assert!(c.may("c"));
    assert_eq!(metrics.row_lock_waits.get(), 1);
    drop((a, b, c));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn an_insert_that_waits_can_time_out_and_be_killed() {
    let (locks, metrics) = manager();
    let [a, b] = txns(&locks);
    a.gap("a", "z");
    assert_eq!(b.wait_to_insert("c", Wait::Timeout(Duration::from_millis(5))), Err(LockError::Timeout));
    thread::scope(|scope| {
        let inserting = scope.spawn(|| b.wait_to_insert("c", LONG));
        b.until_it_waits();
        locks.kill(b.id());
        assert_eq!(inserting.join().unwrap(), Err(LockError::Killed));
    });
    assert_eq!(b.wait_to_insert("c", LONG), Err(LockError::Killed));
    drop((a, b));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn two_who_hold_a_gap_and_both_insert_into_it_are_a_deadlock() {
    let (locks, metrics) = manager();
    let [a, b] = txns(&locks);
    a.gap("a", "z");
    b.gap("a", "z");
    thread::scope(|scope| {
        let first = scope.spawn(|| a.wait_to_insert("c", LONG));
        a.until_it_waits();
        assert_eq!(b.wait_to_insert("d", LONG), Err(LockError::Deadlock));
        b.release();
        assert_eq!(first.join().unwrap(), Ok(()));
    });
    assert_eq!(metrics.deadlocks.get(), 1);
    let text = locks.last_deadlock().unwrap().to_string();
    for part in
        ["waits to insert into dictionary 3 key 64, in a gap held by transaction 1", "victim: transaction 2"]
    {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_cycle_may_go_through_a_gap_and_a_key() {
    let (locks, _) = manager();
    let [a, b, c] = txns(&locks);
    a.gap("a", "z");
    b.ask("k", Exclusive, LONG).unwrap();
    thread::scope(|scope| {
        let inserting = scope.spawn(|| b.wait_to_insert("c", LONG));
        b.until_it_waits();
        // A gap that comes later is in the way of the one who waits already.
        c.gap("c", "d");
        let behind = scope.spawn(|| c.ask("k", Shared, LONG));
        thread::yield_now();
        // c's wait closes the cycle b -> c -> b.
        assert_eq!(behind.join().unwrap(), Err(LockError::Deadlock));
        c.release();
        a.release();
        assert_eq!(inserting.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_lock_given_to_the_one_who_wrote_the_key_is_its_until_it_ends() {
    let (locks, metrics) = manager();
    let [writer, reader] = txns(&locks);
    locks.lock_for_owner(writer.id(), DICT, b"k");
    locks.lock_for_owner(writer.id(), DICT, b"k");
    locks.lock_for_owner(TxnId(77), DICT, b"k");
    assert_eq!(writer.locks_held(), 1);
    assert_eq!(reader.ask("k", Shared, Wait::NoWait), Err(LockError::WouldBlock));
    assert_eq!(writer.ask("k", Exclusive, LONG), HELD);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| reader.ask("k", Shared, LONG));
        reader.until_it_waits();
        writer.release();
        assert_eq!(waiting.join().unwrap(), WAITED);
    });
    // Given while the owner itself waits for something else.
    thread::scope(|scope| {
        let waiting = scope.spawn(|| writer.ask("k", Exclusive, LONG));
        writer.until_it_waits();
        locks.lock_for_owner(writer.id(), DICT, b"other");
        assert_eq!(reader.ask("other", Shared, Wait::NoWait), Err(LockError::WouldBlock));
        reader.release();
        assert_eq!(waiting.join().unwrap(), WAITED);
    });
    assert!(writer.give_back("other") && writer.give_back("k"));
    assert_eq!(writer.locks_held(), 0);
    drop((writer, reader));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn a_lock_that_another_holds_is_not_given_away() {
    let (locks, metrics) = manager();
    let [holder, writer] = txns(&locks);
    holder.ask("k", Shared, LONG).unwrap();
    locks.lock_for_owner(writer.id(), DICT, b"k");
    assert_eq!((holder.locks_held(), writer.locks_held()), (1, 0));
    assert_eq!(holder.ask("k", Exclusive, Wait::NoWait), GRANTED);
    drop((holder, writer));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn a_stretch_stands_for_the_locks_it_replaced() {
    for mode in [Shared, Exclusive] {
        let (locks, metrics) = manager();
        let [a, b, c] = txns(&locks);
        for key in ["b", "c", "d"] {
            a.ask(key, mode, LONG).unwrap();
        }
        // One of them is shared with another, or waited for: it stays as it is.
        let waits = mode == Exclusive;
        thread::scope(|scope| {
            let other = scope.spawn(|| b.ask("c", Shared, LONG));
            if waits {
                b.until_it_waits();
            } else {
                assert_eq!(other.join().unwrap(), GRANTED);
            }
            a.escalate();
            assert_eq!((a.locks_held(), a.ranges_held()), (1, 1));
            for key in ["b", "c", "d"] {
                assert_eq!(a.ask(key, mode, LONG), HELD);
                assert_eq!(c.ask(key, Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
                let shared = c.ask(key, Shared, Wait::NoWait);
                assert_eq!(shared.is_ok(), mode == Shared);
                c.release();
            }
            assert_eq!(c.ask("bb", Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
            assert_eq!(c.ask("a", Exclusive, Wait::NoWait), GRANTED);
            assert_eq!(c.ask("d\0", Exclusive, Wait::NoWait), GRANTED);
            assert_eq!(a.ask("bb", mode, LONG), HELD, "nobody else can have it");
            a.release();
        });
        assert_eq!(c.ask("b", Exclusive, Wait::NoWait), GRANTED);
        drop((a, b, c));
        assert_nothing_is_left(&locks, &metrics);
    }
}

#[test]
fn those_who_wait_for_a_stretch_go_on_when_it_is_gone() {
    let (locks, metrics) = manager();
    let [a, b, c] = txns(&locks);
    for key in ["b", "d"] {
        a.ask(key, Exclusive, LONG).unwrap();
    }
    a.escalate();
    thread::scope(|scope| {
        let waiting = [(&b, "b"), (&c, "c")].map(|(txn, key)| {
            let thread = scope.spawn(move || txn.ask(key, Exclusive, LONG));
            txn.until_it_waits();
            thread
        });
        let rows: Vec<LockRow> = locks.rows().into_iter().filter(|row| row.waiting).collect();
        assert!(rows.iter().all(|row| row.kind == LockKind::Key && row.blockers == [a.id()]), "{rows:?}");
        a.release();
        for thread in waiting {
            assert_eq!(thread.join().unwrap(), WAITED);
        }
    });
    assert_eq!((b.locks_held(), c.locks_held()), (1, 1));
    drop((a, b, c));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn a_stretch_takes_nothing_from_those_who_hold_keys_in_it() {
    let (locks, _) = manager();
    let [a, b, c] = txns(&locks);
    a.ask("b", Exclusive, LONG).unwrap();
    a.ask("d", Exclusive, LONG).unwrap();
    b.ask("c", Shared, LONG).unwrap();
    a.escalate();
    assert_eq!(b.ask("c", Shared, LONG), HELD);
    assert_eq!(a.ask("c", Exclusive, Wait::NoWait), Err(LockError::WouldBlock), "b's");
    assert_eq!(b.ask("c", Exclusive, Wait::NoWait), GRANTED, "a does not hold c, whatever it covers");
    assert_eq!(a.ask("c", Shared, Wait::NoWait), Err(LockError::WouldBlock));
    assert_eq!(c.ask("c", Shared, Wait::NoWait), Err(LockError::WouldBlock));
}

/// The stretch said "held", and the other one, who has only to make his lock exclusive, went ahead.
#[test]
fn a_shared_lock_beside_anothers_is_taken_also_under_an_exclusive_stretch() {
    let (locks, metrics) = manager();
    let [a, b] = txns(&locks);
    a.ask("b", Exclusive, LONG).unwrap();
    a.ask("d", Exclusive, LONG).unwrap();
    b.ask("c", Shared, LONG).unwrap();
    a.escalate();
    assert_eq!(a.ask("c", Shared, Wait::NoWait), GRANTED);
    assert_eq!(a.ask("c", Shared, Wait::NoWait), HELD);
    assert_eq!(b.ask("c", Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
    b.release();
    assert_eq!(a.ask("c", Exclusive, Wait::NoWait), HELD, "alone in its stretch");
    drop((a, b));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn what_one_has_in_a_stretch_is_not_covered_by_the_stretch_of_another() {
    // Both lock keys of the same ground, one between the other's, and both are over their budget.
    let (locks, metrics) = manager();
    let [a, b] = txns(&locks);
    for key in ["b", "d", "f"] {
        assert_eq!(a.ask(key, Exclusive, Wait::NoWait), GRANTED);
    }
    for key in ["a", "c", "e"] {
        assert_eq!(b.ask(key, Exclusive, Wait::NoWait), GRANTED);
    }
    a.escalate();
    assert_eq!((a.locks_held(), a.ranges_held()), (0, 1));
    b.escalate();
    assert_eq!((b.locks_held(), b.ranges_held()), (3, 0));
    assert_eq!(b.ask("d", Exclusive, Wait::NoWait), Err(LockError::WouldBlock), "a has locked it");
    assert_eq!(b.ask("d", Shared, Wait::NoWait), Err(LockError::WouldBlock));
    for (txn, keys) in [(&a, ["b", "d", "f"]), (&b, ["a", "c", "e"])] {
        assert!(keys.iter().all(|key| txn.ask(key, Exclusive, Wait::NoWait) == HELD));
    }
    a.release();
    b.escalate();
    assert_eq!((b.locks_held(), b.ranges_held()), (0, 1));
    // Shared ones do not exclude each other.
    b.release();
    for txn in [&a, &b] {
        assert!(["b", "d"].iter().all(|key| txn.ask(key, Shared, Wait::NoWait) == GRANTED));
    }
    // Locks that others share are not replaced; of its own, each may.
    assert_eq!(a.ask("a", Shared, Wait::NoWait), GRANTED);
    assert_eq!(a.ask("c", Shared, Wait::NoWait), GRANTED);
    a.escalate();
    assert_eq!(b.ask("c", Shared, Wait::NoWait), GRANTED, "beside a shared stretch");
    assert_eq!(b.ask("c", Exclusive, Wait::NoWait), Err(LockError::WouldBlock));
    drop((a, b));
    assert_nothing_is_left(&locks, &metrics);
}

#[test]
fn deadlocks_through_stretches_are_found() {
    let (locks, metrics) = manager();
    let [a, b] = txns(&locks);
    a.ask("b", Exclusive, LONG).unwrap();
    a.escalate();
    b.ask("k", Exclusive, LONG).unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(|| a.ask("k", Exclusive, LONG));
        a.until_it_waits();
        assert_eq!(b.ask("b", Exclusive, LONG), Err(LockError::Deadlock));
        b.release();
        assert_eq!(first.join().unwrap(), WAITED);
    });
    assert_eq!(metrics.deadlocks.get(), 1);
    let text = locks.last_deadlock().unwrap().to_string();
    assert!(text.contains("key 62, held exclusive by transaction 1"), "{text}");
}

#[test]
fn positions_of_replaced_locks_are_used_again() {
    let (locks, metrics) = manager();
    let [a] = txns(&locks);
    for round in 0..20u32 {
        for i in 0..500u32 {
            let key = (round * 500 + i).to_be_bytes();
            assert_eq!(locks.lock(&a, DICT, &key, Exclusive, LONG), GRANTED);
        }
        locks.lock(&a, DictId(4), &round.to_be_bytes(), Exclusive, LONG).unwrap();
        let mut keys = locks.held_keys(&a);
        keys.retain(|key| key.dict == DICT);
        keys.sort_by(|x, y| x.key.cmp(&y.key));
        locks.replace_by_stretch(&a, &keys);
    }
    assert_eq!(a.locks_held(), 20);
    assert!(a.state.held.lock().len() <= 520);
    a.release();
    assert_nothing_is_left(&locks, &metrics);
}
