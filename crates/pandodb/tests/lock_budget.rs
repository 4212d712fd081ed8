//! A transaction over its lock budget holds stretches, and takes no more than it holds.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;

use common::{disk, open, options, spec, Lines};
use pandodb::{Db, Error, LockKind, LockMode, LockWait, ReadMode, Table, Vfs};

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

#[test]
fn two_bulk_inserts_into_the_same_fresh_ground_exclude_each_other() {
    // Symptom: both wrote the same key. Each had turned its locks into a stretch over all that lay between, which
    // nobody had committed, and then took what was inside for its own.
    let (db, table) = database(std::iter::empty());
    let (mut a, mut b) = (db.begin(), db.begin());
    for n in 0..4 * BUDGET as u32 {
        let txn = if n % 2 == 0 { &mut a } else { &mut b };
        txn.put(&table, 0, &n.to_be_bytes(), b"v", LockWait::NoWait).unwrap();
    }
    assert!(counts(&db).1 > 0, "the test is to meet a stretch");
    for n in 0..4 * BUDGET as u32 {
        let (own, other) = if n % 2 == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
        let refused = other.put(&table, 0, &n.to_be_bytes(), b"w", LockWait::NoWait);
        assert!(matches!(refused, Err(Error::WouldBlock)), "{n}: {refused:?}");
        own.put(&table, 0, &n.to_be_bytes(), b"w", LockWait::NoWait).unwrap();
    }
}

#[test]
fn prepared_transactions_over_their_budget_come_back_beside_each_other() {
    // Symptom: the database did not open. The first one's locks became a stretch over the keys of the second, which
    // were not locked yet.
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    let table = db.open_table("./db/a").unwrap();
    let (mut a, mut b) = (db.begin(), db.begin());
    for n in 0..4 * BUDGET as u32 {
        let txn = if n % 2 == 0 { &mut a } else { &mut b };
        txn.put(&table, 0, &n.to_be_bytes(), b"v", LockWait::NoWait).unwrap();
    }
    a.prepare(b"a").unwrap();
    b.prepare(b"b").unwrap();
    drop((a, b, table, db));
    let mut settings = options(&Lines::default());
    settings.lock_budget = BUDGET;
    let files: Arc<dyn Vfs> = vfs.crash();
    let db = Db::open_with_vfs(settings, files.clone(), files).unwrap();
    let table = db.open_table("./db/a").unwrap();
    assert!(counts(&db).1 > 0, "the test is to meet a stretch");
    let held =
        |db: &Arc<Db>| (0..4 * BUDGET as u32).filter(|n| !is_free(db, &table, *n, LockMode::Shared)).count();
    assert_eq!(held(&db), 4 * BUDGET);
    assert!(db.rollback_by_xid(b"a").unwrap());
    for n in 0..4 * BUDGET as u32 {
        assert_eq!(is_free(&db, &table, n, LockMode::Shared), n % 2 == 0, "{n}");
    }
    assert!(db.commit_by_xid(b"b").unwrap());
    assert_eq!((held(&db), counts(&db)), (0, (0, 0)));
}
