//! Ranges of rows that are deleted at once.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{disk, for_each_row, open, spec};
use pandodb::{Db, Entry, Error, LockMode, LockWait, SimVfs, Table, TableSpec, Txn};
use rand::{Rng, SeedableRng};

const PATH: &str = "./db/a";

/// Ranges are not deleted at once in encrypted files.
fn is_encrypted() -> bool {
    std::env::var_os("PANDO_TEST_ENCRYPTED").is_some()
}

fn key(n: u32) -> Vec<u8> {
    format!("{n:06}").into_bytes()
}

fn create(db: &Arc<Db>) -> Arc<Table> {
    db.create_table(&TableSpec { indexes: Vec::new(), ..spec(PATH) }).unwrap();
    db.open_table(PATH).unwrap()
}

fn insert(txn: &mut Txn, table: &Table, n: u32, value: &[u8]) -> pandodb::Result<()> {
    txn.insert_row(table, &[Entry { key: &key(n), value, unique: true }])
}

fn delete(db: &Arc<Db>, table: &Table, lo: u32, hi: Option<u32>) -> Option<u64> {
    let mut txn = db.begin();
    let deleted = txn.delete_range(table, &key(lo), hi.map(key).as_deref()).unwrap();
    txn.commit().unwrap();
    deleted
}

fn filled(seed: u64, rows: u32) -> (Arc<SimVfs>, Arc<Db>, Arc<Table>) {
    let vfs = disk(seed);
    let db = open(&vfs).unwrap();
    let table = create(&db);
    let mut txn = db.begin();
    for n in 0..rows {
        insert(&mut txn, &table, n, format!("value {n}").as_bytes()).unwrap();
    }
    txn.commit().unwrap();
    (vfs, db, table)
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn rows(txn: &mut Txn, table: &Arc<Table>, backward: bool) -> Rows {
    let mut found = Rows::new();
    for_each_row(txn, table, 0, backward, |key, value| {
        found.insert(key.to_vec(), value.to_vec());
    });
    found
}

fn check(db: &Arc<Db>, table: &Arc<Table>, expected: &Rows) {
    assert_eq!(&rows(&mut db.begin(), table, false), expected);
    assert_eq!(&rows(&mut db.begin(), table, true), expected);
    let told = table.rows_estimate();
    assert_eq!(told as usize, expected.len(), "rows told");
    db.check_table(table, &mut |_| true).unwrap();
}

/// Inserts, changes and deletes, rows and ranges, with snapshots that see what was, jobs, checkpoints and crashes.
fn random_history(seed: u64) {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let (mut vfs, mut db, mut table) = filled(seed, 300);
    let mut committed = rows(&mut db.begin(), &table, false);
    let mut old: Option<(Txn, Rows)> = None;
    for round in 0..120 {
        if random.random_bool(0.4) {
            let (a, b) = (random.random_range(0..400), random.random_range(0..400));
            let (lo, hi) = (a.min(b), random.random_bool(0.9).then_some(a.max(b)));
            let inside = |key: &Vec<u8>| *key >= self::key(lo) && hi.is_none_or(|hi| *key < self::key(hi));
            let expected = committed.keys().filter(|key| inside(key)).count() as u64;
            if let Some(deleted) = delete(&db, &table, lo, hi) {
                assert_eq!(deleted, expected, "round {round}");
                committed.retain(|key, _| !inside(key));
            }
        } else {
            let mut txn = db.begin();
            for _ in 0..random.random_range(1..80) {
                let n = random.random_range(0..400);
                let value = format!("{round} {}", "x".repeat(random.random_range(0..60))).into_bytes();
                match (committed.contains_key(&key(n)), random.random_bool(0.8)) {
                    (false, true) => {
                        insert(&mut txn, &table, n, &value).unwrap();
                        committed.insert(key(n), value);
                    }
                    (true, true) => {
                        let before =
                            txn.get_locked(&table, 0, &key(n), LockMode::Exclusive, LockWait::NoWait);
                        assert!(
                            matches!(before, Ok(pandodb::LockedRead::Row(row)) if row == committed[&key(n)])
                        );
                        txn.put(&table, 0, &key(n), &value, LockWait::NoWait).unwrap();
                        committed.insert(key(n), value);
                    }
                    _ => {}
                }
            }
            txn.commit().unwrap();
        }
        // Ranges from before are in superblocks and in the log of a file that is encrypted in place.
        if seed % 3 == 1 && round >= 60 {
            db.encrypt_table(PATH, 7).unwrap();
            if round % 10 == 5 {
                db.key_rotation_looks_again();
                db.encrypt_tables();
            }
        }
        match random.random_range(0..10) {
            0..=2 => db.run_jobs().unwrap(),
            3 => db.checkpoint().unwrap(),
            4 if old.is_none() => {
                let mut txn = db.begin();
                txn.open_snapshot();
                old = Some((txn, committed.clone()));
            }
            5 => old = None,
            6 if random.random_bool(0.4) => {
                drop((old.take(), table, db));
                vfs = vfs.crash();
                db = open(&vfs).unwrap();
                table = db.open_table(PATH).unwrap();
            }
            _ => {}
        }
        if let Some((txn, seen)) = &mut old {
            assert_eq!(&rows(txn, &table, round % 2 == 0), seen, "round {round}");
        }
        assert_eq!(rows(&mut db.begin(), &table, round % 2 == 0), committed, "round {round}");
    }
    drop(old);
    db.checkpoint().unwrap();
    db.run_jobs().unwrap();
    check_rows_only(&db, &table, &committed);
    assert_eq!(table.dicts()[0].tree().deleted_ranges(), 0);
}

fn check_rows_only(db: &Arc<Db>, table: &Arc<Table>, expected: &Rows) {
    assert_eq!(&rows(&mut db.begin(), table, false), expected);
    db.check_table(table, &mut |_| true).unwrap();
}

#[test]
fn ranges_deleted_are_what_their_rows_deleted_would_be() {
    (0..20).for_each(random_history);
}

#[test]
fn a_range_is_deleted_without_a_look_at_its_rows_and_its_space_comes_back() {
    let (_, db, table) = filled(1, 20_000);
    db.checkpoint().unwrap();
    let before = table.info(true).unwrap().data_bytes;
    assert_eq!(delete(&db, &table, 0, Some(19_000)), (!is_encrypted()).then_some(19_000));
    if is_encrypted() {
        return;
    }
    assert_eq!(table.rows_estimate(), 1000);
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    let after = table.info(true).unwrap().data_bytes;
    assert!(after < before / 4, "{before} bytes, then {after}");
    let expected = (19_000..20_000).map(|n| (key(n), format!("value {n}").into_bytes())).collect();
    check(&db, &table, &expected);
}

#[test]
fn others_keep_a_range_from_being_deleted_and_then_it_keeps_them_out() {
    if is_encrypted() {
        return;
    }
    let (_, db, table) = filled(2, 100);
    let mut other = db.begin();
    other.get_locked(&table, 0, &key(50), LockMode::Shared, LockWait::NoWait).unwrap();
    assert_eq!(delete(&db, &table, 0, Some(60)), None);
    assert_eq!(delete(&db, &table, 0, Some(50)), Some(50));
    insert(&mut other, &table, 20, b"new").unwrap();
    assert_eq!(delete(&db, &table, 10, Some(30)), None);
    other.rollback();
    let mut txn = db.begin();
    assert_eq!(txn.delete_range(&table, &key(60), None).unwrap(), Some(40));
    for n in [60, 99, 500] {
        let lock = other.get_locked(&table, 0, &key(n), LockMode::Shared, LockWait::NoWait);
        assert!(matches!(lock, Err(Error::WouldBlock)), "{lock:?}");
    }
    assert_eq!(txn.delete_range(&table, &key(0), None).unwrap(), None, "one of a transaction");
    txn.rollback();
    assert_eq!(rows(&mut db.begin(), &table, false).len(), 50);
}

#[test]
fn a_statement_is_rolled_back_with_its_range() {
    if is_encrypted() {
        return;
    }
    let (_, db, table) = filled(3, 100);
    let mut txn = db.begin();
    let mark = txn.mark();
    assert_eq!(txn.delete_range(&table, &key(0), None).unwrap(), Some(100));
    txn.rollback_to(mark).unwrap();
    assert!(!txn.has_writes());
    insert(&mut txn, &table, 200, b"after").unwrap();
    txn.commit().unwrap();
    assert_eq!(rows(&mut db.begin(), &table, false).len(), 101);
    assert_eq!(table.rows_estimate(), 101);
}

/// A range, and then reads, writes, savepoints and rollbacks to them, in one transaction.
fn random_transaction(seed: u64) {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let (vfs, db, table) = filled(seed, 200);
    db.run_jobs().unwrap();
    let before = rows(&mut db.begin(), &table, false);
    let mut txn = db.begin();
    if random.random_bool(0.5) {
        txn.open_snapshot();
    }
    let mut own = before.clone();
    let mut marks = Vec::new();
    if random.random_bool(0.5) {
        marks.push((txn.mark(), own.clone()));
    }
    let (a, b) = (random.random_range(0..200), random.random_range(0..200));
    let (lo, hi) = (key(a.min(b)), key(a.max(b)));
    let deleted = txn.delete_range(&table, &lo, Some(&hi)).unwrap();
    if deleted.is_some() {
        own.retain(|key, _| *key < lo || *key >= hi);
        assert_eq!(deleted, Some((before.len() - own.len()) as u64));
    }
    for step in 0..random.random_range(0..12) {
        let n = random.random_range(0..220);
        match random.random_range(0..8) {
            0 | 1 => marks.push((txn.mark(), own.clone())),
            2 if !marks.is_empty() => {
                let at = random.random_range(0..marks.len());
                marks.truncate(at + 1);
                let (mark, rows) = marks[at].clone();
                txn.rollback_to(mark).unwrap();
                own = rows;
            }
            3 => assert_eq!(txn.get(&table, 0, &key(n)).unwrap().as_ref(), own.get(&key(n))),
            4 => assert_eq!(rows(&mut txn, &table, step % 2 == 0), own, "seed {seed}, step {step}"),
            5 | 6 => match insert(&mut txn, &table, n, b"own") {
                Ok(()) => assert!(own.insert(key(n), b"own".to_vec()).is_none()),
                Err(Error::Duplicate { existing, .. }) => assert_eq!(own.get(&key(n)), Some(&existing)),
                Err(other) => panic!("{other:?}"),
            },
            _ => {
                txn.delete(&table, 0, &key(n), LockWait::NoWait).unwrap();
                own.remove(&key(n));
            }
        }
    }
    let kept = match random.random_range(0..4) {
        0 => {
            txn.rollback();
            before
        }
        1 => {
            txn.prepare(b"x").unwrap();
            txn.commit().unwrap();
            own
        }
        _ => {
            txn.commit().unwrap();
            own
        }
    };
    check_rows_only(&db, &table, &kept);
    drop((txn, table, db));
    let db = open(&vfs.crash()).unwrap();
    let table = db.open_table(PATH).unwrap();
    check_rows_only(&db, &table, &kept);
    db.run_jobs().unwrap();
    check_rows_only(&db, &table, &kept);
}

#[test]
fn what_a_transaction_does_after_a_range_is_what_it_would_do_otherwise() {
    (0..400).for_each(random_transaction);
}

#[test]
fn where_rows_are_more_than_their_entries_ranges_are_not_deleted() {
    let db = open(&disk(4)).unwrap();
    db.create_table(&spec(PATH)).unwrap();
    let table = db.open_table(PATH).unwrap();
    assert_eq!(delete(&db, &table, 0, None), None);
    let (_, db, table) = filled(5, 10);
    let mut txn = db.begin();
    insert(&mut txn, &table, 20, b"own").unwrap();
    assert_eq!(txn.delete_range(&table, &key(0), None).unwrap(), None);
    assert_eq!(delete(&db, &table, 9, Some(9)), None);
}

#[test]
fn a_prepared_range_survives_restarts_with_its_lock_and_can_be_resolved_then() {
    if is_encrypted() {
        return;
    }
    for commit in [true, false] {
        let (vfs, db, table) = filled(6, 100);
        let mut txn = db.begin();
        assert_eq!(txn.delete_range(&table, &key(10), Some(&key(90))).unwrap(), Some(80));
        txn.prepare(b"xid").unwrap();
        drop((txn, table, db));
        let mut vfs = vfs.crash();
        for _ in 0..2 {
            let db = open(&vfs).unwrap();
            let table = db.open_table(PATH).unwrap();
            assert_eq!(db.report_prepared(9), [b"xid"]);
            assert_eq!(rows(&mut db.begin(), &table, false).len(), 100);
            let mut txn = db.begin();
            for n in [10, 89] {
                let lock = txn.get_locked(&table, 0, &key(n), LockMode::Shared, LockWait::NoWait);
                assert!(matches!(lock, Err(Error::WouldBlock)), "{lock:?}");
            }
            txn.get_locked(&table, 0, &key(9), LockMode::Exclusive, LockWait::NoWait).unwrap();
            drop(txn);
            db.checkpoint().unwrap();
            drop((table, db));
            vfs = vfs.crash();
        }
        let db = open(&vfs).unwrap();
        let done = if commit { db.commit_by_xid(b"xid") } else { db.rollback_by_xid(b"xid") };
        assert!(done.unwrap());
        let left = if commit { 20 } else { 100 };
        let table = db.open_table(PATH).unwrap();
        assert_eq!(rows(&mut db.begin(), &table, false).len(), left);
        insert(&mut db.begin(), &table, 50, b"free").ok();
        drop((table, db));
        let db = open(&vfs.crash()).unwrap();
        let table = db.open_table(PATH).unwrap();
        assert_eq!(rows(&mut db.begin(), &table, false).len(), left);
    }
}

#[test]
fn a_crash_at_every_io_leaves_all_of_a_range_or_none() {
    if is_encrypted() {
        return;
    }
    let trace = |db: &Arc<Db>, table: &Arc<Table>| {
        assert_eq!(delete(db, table, 10, Some(90)), Some(80));
        db.run_jobs().unwrap();
        db.checkpoint().unwrap();
    };
    let prepared = || {
        let (vfs, db, table) = filled(7, 100);
        db.checkpoint().unwrap();
        (vfs, db, table)
    };
    let (vfs, db, table) = prepared();
    let before = vfs.io_count();
    trace(&db, &table);
    let ios = vfs.io_count() - before;
    let (vfs, db, table) = prepared();
    vfs.copies_before_ios(&(1..=ios).collect::<Vec<u64>>());
    trace(&db, &table);
    let mut found = Vec::new();
    for copy in vfs.take_copies() {
        let db = open(&copy).unwrap();
        let table = db.open_table(PATH).unwrap();
        found.push(rows(&mut db.begin(), &table, false).len());
        db.check_table(&table, &mut |_| true).unwrap();
    }
    assert!(found.len() > 5 && found.iter().all(|rows| [20, 100].contains(rows)), "{found:?}");
    assert_eq!((found.first(), found.last()), (Some(&100), Some(&20)), "{found:?}");
}

#[test]
fn more_ranges_than_fit_into_a_file_are_never_there_whatever_is_replayed() {
    if is_encrypted() {
        return;
    }
    let (vfs, db, table) = filled(8, 2000);
    db.checkpoint().unwrap();
    let mut left = 2000;
    for n in 0..500 {
        // They go at once, but the log has them until a checkpoint.
        let deleted = delete(&db, &table, n * 4, Some(n * 4 + 2));
        left -= deleted.unwrap_or(0) as usize;
        db.run_jobs().unwrap();
    }
    assert!((1800..2000).contains(&left), "{left} rows");
    drop((table, db));
    let db = open(&vfs.crash()).unwrap();
    db.checkpoint().unwrap();
    let table = db.open_table(PATH).unwrap();
    assert_eq!(rows(&mut db.begin(), &table, false).len(), left);
    // They go, and the next checkpoint leaves room.
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    let behind = rows(&mut db.begin(), &table, false).range(key(1500)..).count() as u64;
    assert_eq!(delete(&db, &table, 1500, None), Some(behind));
}

#[test]
fn transactions_that_delete_ranges_side_by_side_are_no_more_than_fit() {
    if is_encrypted() {
        return;
    }
    let (vfs, db, table) = filled(9, 2000);
    let mut open_ones = Vec::new();
    for n in 0..100 {
        let mut txn = db.begin();
        if txn.delete_range(&table, &key(n * 10), Some(&key(n * 10 + 5))).unwrap().is_some() {
            if n % 3 == 0 {
                txn.prepare(format!("{n}").as_bytes()).unwrap();
            }
            open_ones.push(txn);
        }
    }
    let taken = open_ones.len();
    assert!((8..=32).contains(&taken), "{taken} at a time");
    // One that ends makes room for another.
    open_ones.pop().unwrap().rollback();
    assert_eq!(delete(&db, &table, 1500, Some(1510)), Some(10));
    open_ones.iter_mut().for_each(|txn| txn.commit().unwrap());
    db.checkpoint().unwrap();
    drop((open_ones, table, db));
    let db = open(&vfs.crash()).unwrap();
    let table = db.open_table(PATH).unwrap();
    assert_eq!(rows(&mut db.begin(), &table, false).len(), 2000 - 10 - 5 * (taken - 1));
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    assert_eq!(delete(&db, &table, 1600, Some(1610)), Some(10));
}

#[test]
fn ranges_with_long_keys_are_deleted_row_by_row() {
    let (_, db, table) = filled(10, 10);
    let mut txn = db.begin();
    assert_eq!(txn.delete_range(&table, &[b'0'; 100], Some(&[b'9'; 100])).unwrap(), None);
}
