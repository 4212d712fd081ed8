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
fn keys_that_lie_among_those_of_others_are_joined_when_nothing_else_helps() {
    // Symptom: every second row of a table of two million took a million locks, whatever the budget.
    const ROWS: u32 = 20_000;
    let (db, table) = database(0..ROWS);
    let mut other = db.begin();
    other.put(&table, 0, &5001u32.to_be_bytes(), b"x", LockWait::NoWait).unwrap();
    let mut txn = db.begin();
    for key in (0..ROWS).step_by(2) {
        txn.put(&table, 0, &key.to_be_bytes(), b"w", LockWait::NoWait).unwrap();
        let (keys, stretches) = counts(&db);
        assert!(keys + stretches <= BUDGET + 3, "{keys} {stretches} at {key}");
    }
    for key in (0..ROWS).step_by(2) {
        assert!(!is_free(&db, &table, key, LockMode::Shared), "{key}");
    }
    // What another had it keeps, and nothing is written there before it ends.
    let refused = txn.put(&table, 0, &5001u32.to_be_bytes(), b"w", LockWait::NoWait);
    assert!(matches!(refused, Err(Error::WouldBlock)), "{refused:?}");
    other.put(&table, 0, &5001u32.to_be_bytes(), b"y", LockWait::NoWait).unwrap();
    other.commit().unwrap();
    txn.put(&table, 0, &5001u32.to_be_bytes(), b"w", LockWait::NoWait).unwrap();
    txn.rollback();
    assert_eq!(counts(&db), (0, 0));
    assert!((0..ROWS).all(|key| is_free(&db, &table, key, LockMode::Exclusive)));
    assert_eq!(db.begin().get(&table, 0, &5001u32.to_be_bytes()).unwrap().as_deref(), Some(&b"y"[..]));
}

#[test]
fn what_lies_far_from_the_keys_held_stays_free() {
    let (db, table) = database((0..400).map(|n| n * 2).chain((0..400).map(|n| 1_000_000 + n * 2)));
    let mut txn = db.begin();
    for n in 0..200u32 {
        for key in [n * 4, 1_000_000 + n * 4] {
            txn.put(&table, 0, &key.to_be_bytes(), b"w", LockWait::NoWait).unwrap();
        }
    }
    let (keys, stretches) = counts(&db);
    assert!(keys + stretches <= BUDGET && stretches > 0, "{keys} {stretches}");
    for key in [900, 500_000, 999_999, 1_000_900] {
        assert!(is_free(&db, &table, key, LockMode::Exclusive), "{key}");
    }
}

#[test]
fn two_that_both_take_every_second_row_lose_nothing() {
    // Each widens where the other has no stretch; what the other holds inside stays its own.
    let (db, table) = database(0..2000);
    let (mut a, mut b) = (db.begin(), db.begin());
    let mut owner = vec![None; 2000];
    for key in 0..2000u32 {
        let is_a = key % 2 == 0;
        let txn = if is_a { &mut a } else { &mut b };
        match txn.put(&table, 0, &key.to_be_bytes(), b"w", LockWait::NoWait) {
            Ok(()) => owner[key as usize] = Some(is_a),
            Err(Error::WouldBlock) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(counts(&db).1 > 0);
    for (key, owner) in owner.iter().enumerate() {
        let Some(is_a) = owner else { continue };
        let (own, other) = if *is_a { (&mut a, &mut b) } else { (&mut b, &mut a) };
        let key = (key as u32).to_be_bytes();
        let refused = other.put(&table, 0, &key, b"o", LockWait::NoWait);
        assert!(matches!(refused, Err(Error::WouldBlock)), "{refused:?}");
        own.put(&table, 0, &key, b"w", LockWait::NoWait).unwrap();
    }
    a.commit().unwrap();
    b.commit().unwrap();
    assert_eq!(counts(&db), (0, 0));
}

#[test]
fn a_prepared_transaction_of_scattered_keys_comes_back_within_its_budget() {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    let table = db.open_table("./db/a").unwrap();
    let mut txn = db.begin();
    for key in 0..4000u32 {
        txn.put(&table, 0, &key.to_be_bytes(), b"v", LockWait::NoWait).unwrap();
    }
    txn.commit().unwrap();
    for key in (0..4000u32).step_by(2) {
        txn.put(&table, 0, &key.to_be_bytes(), b"w", LockWait::NoWait).unwrap();
    }
    txn.prepare(b"x").unwrap();
    drop((txn, table, db));
    let mut settings = options(&Lines::default());
    settings.lock_budget = BUDGET;
    let files: Arc<dyn Vfs> = vfs.crash();
    let db = Db::open_with_vfs(settings, files.clone(), files).unwrap();
    let (keys, stretches) = counts(&db);
    assert!(keys + stretches <= BUDGET, "{keys} {stretches}");
    let table = db.open_table("./db/a").unwrap();
    assert!((0..4000).step_by(2).all(|key| !is_free(&db, &table, key, LockMode::Shared)));
    assert!(db.commit_by_xid(b"x").unwrap());
    assert_eq!(counts(&db), (0, 0));
}

/// Threads add to counters under tiny budgets. What one adds while another holds the counter would be lost.
#[test]
fn no_update_is_lost_among_transactions_that_widen() {
    const COUNTERS: u64 = 600;
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 25;
    const ADDED: u64 = 60;
    let (db, table) = database(0..0);
    let key = |n: u64| (n as u32).to_be_bytes();
    let mut txn = db.begin();
    (0..COUNTERS).for_each(|n| txn.put(&table, 0, &key(n), &0u64.to_le_bytes(), LockWait::NoWait).unwrap());
    txn.commit().unwrap();
    db.set_lock_budget(16);
    let add = |seed: u64, attempt: u64| -> pandodb::Result<()> {
        let mut txn = db.begin();
        // Some in order and some not, so that some deadlock.
        let mut at = seed.wrapping_mul(7919) + attempt;
        for _ in 0..ADDED {
            at = (at + 1 + seed % 7) % COUNTERS;
            let mode = if at % 3 == 0 { LockMode::Shared } else { LockMode::Exclusive };
            txn.get_locked(&table, 0, &key(at), mode, LockWait::Seconds(300))?;
            let read =
                match txn.get_locked(&table, 0, &key(at), LockMode::Exclusive, LockWait::Seconds(300))? {
                    pandodb::LockedRead::Row(value) => u64::from_le_bytes(value[..8].try_into().unwrap()),
                    other => panic!("{other:?}"),
                };
            txn.put(&table, 0, &key(at), &(read + 1).to_le_bytes(), LockWait::NoWait)?;
        }
        txn.commit()
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let mut attempt = 0;
                    while let Err(error) = add(thread * ROUNDS + round, attempt) {
                        assert!(matches!(error, Error::Deadlock), "{error}");
                        attempt += 1;
                    }
                }
            });
        }
    });
    assert!(db.metrics().row_lock_stretches.get() > 100);
    let mut reader = db.begin();
    let sum: u64 = (0..COUNTERS)
        .map(|n| {
            u64::from_le_bytes(reader.get(&table, 0, &key(n)).unwrap().unwrap()[..8].try_into().unwrap())
        })
        .sum();
    assert_eq!(sum, THREADS * ROUNDS * ADDED);
    assert_eq!(counts(&db), (0, 0));
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

#[test]
fn a_scan_in_read_committed_beyond_its_budget_goes_on_by_stretches() {
    let rows = 20_000;
    let (db, table) = database((0..rows).map(|n| n * 10));
    let mut txn = db.begin();
    let mut cursor = txn.cursor(&table, 0);
    cursor.allow_ahead(true, true);
    let read = ReadMode::Locked(LockMode::Exclusive, LockWait::Default);
    cursor.seek_first(&mut txn, read).unwrap();
    let mut scanned = 0;
    while cursor.valid() && scanned < rows - 5 {
        scanned += 1;
        cursor.next(&mut txn).unwrap();
    }
    let ahead = db.metrics().rows_locked_ahead.get();
    assert!(ahead > u64::from(rows) / 2, "{ahead}");
    let (keys, stretches) = counts(&db);
    assert!(keys + stretches <= 2 * BUDGET, "{keys} {stretches}");
    for key in (0..scanned).step_by(7) {
        assert!(!is_free(&db, &table, key * 10, LockMode::Shared), "{key}");
    }
    // Another transaction begins anew, one key after the other.
    txn.rollback();
    let mut txn = db.begin();
    let mut cursor = txn.cursor(&table, 0);
    cursor.allow_ahead(true, true);
    cursor.seek_first(&mut txn, read).unwrap();
    for _ in 0..BUDGET - 10 {
        cursor.next(&mut txn).unwrap();
    }
    assert_eq!(db.metrics().rows_locked_ahead.get(), ahead);
    assert!(is_free(&db, &table, 5, LockMode::Exclusive));
}
