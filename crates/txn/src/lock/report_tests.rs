//! Reports: what is told of transactions and locks.

use std::thread;

use super::tests::{manager, txns, LONG};
use super::LockMode::{Exclusive, Shared};
use super::*;

#[test]
fn a_waiter_is_told_with_all_who_are_in_its_way() {
    let (locks, _) = manager();
    let [a, b, c, d] = txns(&locks);
    a.ask("k", Shared, LONG).unwrap();
    b.ask("k", Shared, LONG).unwrap();
    thread::scope(|scope| {
        let exclusive = scope.spawn(|| c.ask("k", Exclusive, LONG));
        c.until_it_waits();
        let shared = scope.spawn(|| d.ask("k", Shared, LONG));
        d.until_it_waits();
        let waiting: Vec<LockRow> = locks.rows().into_iter().filter(|row| row.waiting).collect();
        let told = |txn: &TxnHandle| waiting.iter().find(|row| row.txn == txn.id()).unwrap().clone();
        assert_eq!(told(&c).blockers, [a.id(), b.id()]);
        assert_eq!(told(&d).blockers, [c.id()], "shared holders are not in its way");
        assert_eq!((told(&c).kind, told(&c).from, told(&c).mode), (LockKind::Key, b"k".to_vec(), Exclusive));
        let rows = locks.transactions();
        assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [a.id(), b.id(), c.id(), d.id()]);
        let waits: Vec<bool> = rows.iter().map(|row| row.waiting.is_some()).collect();
        assert_eq!(waits, [false, false, true, true]);
        assert_eq!(rows.iter().map(|row| row.key_locks).collect::<Vec<_>>(), [1, 1, 0, 0]);
        a.release();
        b.release();
        exclusive.join().unwrap().unwrap();
        c.release();
        shared.join().unwrap().unwrap();
    });
}

#[test]
fn a_transaction_is_told_from_its_first_work_to_its_end() {
    let (locks, _) = manager();
    let [a, b] = txns(&locks);
    assert_eq!(locks.transactions(), []);
    a.note_begun();
    b.ask("k", Shared, LONG).unwrap();
    b.add_write_bytes(7);
    b.set_weight(3);
    let rows = locks.transactions();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [a.id(), b.id()]);
    assert_eq!((rows[1].writes, rows[1].write_bytes, rows[1].key_locks), (2, 7, 1));
    a.note_ended();
    b.release();
    b.note_ended();
    assert_eq!(locks.transactions(), []);
}
