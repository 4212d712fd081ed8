//! A transaction over its lock budget holds stretches, and takes no more than it holds.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;

use common::{disk, open, spec};
use pandodb::{Db, Error, LockKind, LockMode, LockWait, ReadMode, Table};

const BUDGET: usize = 100;

fn database(keys: impl Iterator<Item = u32>) -> (Arc<Db>, Arc<Table>) {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    let table = db.open_table("./db/a").unwrap();
    let mut txn = db.begin();
    keys.for_each(|key| txn.put(&table, 0, &key.to_be_bytes(), b"v", LockWait::NoWait).unwrap());
    txn.commit().unwrap();
    db.set_lock_budget(BUDGET);
    (db, table)
}

fn counts(db: &Db) -> (usize, usize) {
    let rows = db.locks();
    let count = |kind| rows.iter().filter(|row| row.lock.kind == kind).count();
    (count(LockKind::Key), count(LockKind::Stretch))
}

fn is_free(db: &Arc<Db>, table: &Table, key: u32, mode: LockMode) -> bool {
    match db.begin().get_locked(table, 0, &key.to_be_bytes(), mode, LockWait::NoWait) {
        Ok(_) => true,
        Err(Error::WouldBlock) => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_scan_over_its_budget_holds_what_it_has_scanned() {
    for takes_gaps in [true, false] {
        let (db, table) = database((0..1000).map(|n| n * 2));
        let mut txn = db.begin();
        txn.set_takes_gaps(takes_gaps);
        let mut cursor = txn.cursor(&table, 0);
        cursor.set_stop(Some(&1500u32.to_be_bytes()));
        let read = ReadMode::Locked(LockMode::Shared, LockWait::Default);
        cursor.seek(&mut txn, &500u32.to_be_bytes(), read).unwrap();
        while cursor.valid() {
            cursor.next(&mut txn).unwrap();
        }
        let (keys, stretches) = counts(&db);
        assert!(keys <= BUDGET + 1 && (1..=6).contains(&stretches), "{keys} {stretches}");
        for key in (0..2000).step_by(2) {
            assert_eq!(is_free(&db, &table, key, LockMode::Exclusive), !(500..1500).contains(&key), "{key}");
            assert!(is_free(&db, &table, key, LockMode::Shared));
        }
        txn.rollback();
        assert_eq!(counts(&db), (0, 0));
        assert!(is_free(&db, &table, 700, LockMode::Exclusive));
    }
}

#[test]
fn a_bulk_insert_over_its_budget_holds_its_keys_and_none_of_others() {
    // Two regions of own rows, with rows of others before, between and after.
    let others = [0, 1, 5_000, 5_001, 20_000];
    let (db, table) = database(others.into_iter());
    let mut txn = db.begin();
    for n in 0..500u32 {
        // Scattered in each region.
        let at = n.wrapping_mul(7919) % 500;
        for key in [1_000 + at, 10_000 + at] {
            txn.put(&table, 0, &key.to_be_bytes(), b"w", LockWait::NoWait).unwrap();
        }
    }
    let (keys, stretches) = counts(&db);
    assert!(keys <= 2 * BUDGET && stretches == 2, "{keys} {stretches}");
    for key in others {
        assert!(is_free(&db, &table, key, LockMode::Exclusive), "{key}");
    }
    for at in 0..500 {
        assert!(!is_free(&db, &table, 1_000 + at, LockMode::Shared));
        assert!(!is_free(&db, &table, 10_000 + at, LockMode::Shared));
    }
    txn.commit().unwrap();
    assert!(is_free(&db, &table, 1_000, LockMode::Exclusive));
}

#[test]
fn keys_that_lie_among_those_of_others_are_not_joined() {
    let (db, table) = database(0..2000);
    let mut txn = db.begin();
    for key in (0..2000u32).step_by(2) {
        txn.put(&table, 0, &key.to_be_bytes(), b"w", LockWait::NoWait).unwrap();
    }
    assert_eq!(counts(&db), (1000, 0));
    for key in 0..2000 {
        assert_eq!(is_free(&db, &table, key, LockMode::Exclusive), key % 2 == 1);
    }
}
