//! Rows that are replaced and deleted by who has not read them.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{count, disk, for_each_row, open, spec};
use pandodb::{Clustering, Db, Entry, Error, LockMode, LockWait, NewIndex, OnDuplicate, SimVfs, Table, Txn};
use rand::{Rng, SeedableRng};

const PATH: &str = "./db/a";

/// The entry of the index follows from the row's key: it is this, the other way round.
fn keys(n: u32) -> (Vec<u8>, Vec<u8>) {
    let key = format!("{n:06}").into_bytes();
    let turned = key.iter().rev().copied().collect();
    (key, turned)
}

fn entries<'a>(keys: &'a (Vec<u8>, Vec<u8>), value: &'a [u8]) -> [Entry<'a>; 2] {
    [Entry { key: &keys.0, value, unique: true }, Entry { key: &keys.1, value: &keys.0, unique: false }]
}

fn replace(txn: &mut Txn, table: &Table, n: u32, value: &[u8]) -> pandodb::Result<()> {
    txn.insert_row_with(table, &entries(&keys(n), value), &[], OnDuplicate::Overwrite)
}

fn delete(txn: &mut Txn, table: &Table, n: u32) -> pandodb::Result<()> {
    let keys = keys(n);
    assert!(txn.lock_unread(table, &keys.0)?);
    txn.delete_row(table, &entries(&keys, b""))
}

fn create(db: &Arc<Db>) -> Arc<Table> {
    db.create_table(&spec(PATH)).unwrap();
    db.open_table(PATH).unwrap()
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn check(db: &Arc<Db>, txn: &mut Txn, table: &Arc<Table>, rows: &Rows) {
    let mut found = Rows::new();
    for_each_row(txn, table, 0, false, |key, value| {
        found.insert(key.to_vec(), value.to_vec());
    });
    assert_eq!(&found, rows);
    let mut by_index = Rows::new();
    for_each_row(txn, table, 1, false, |key, value| {
        by_index.insert(key.to_vec(), value.to_vec());
    });
    let expected: Rows = rows.keys().map(|key| (key.iter().rev().copied().collect(), key.clone())).collect();
    assert_eq!(by_index, expected);
    assert!(table.rows_estimate() <= 4000, "{} rows are told of at most 400", table.rows_estimate());
    db.check_table(table, &mut |_| true).unwrap();
}

/// Replaces and deletes at random, mostly unread, in transactions that end either way, with flushes and crashes between.
fn random_history(seed: u64) {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let vfs = disk(seed);
    let mut db = open(&vfs).unwrap();
    let mut table = create(&db);
    let mut committed = Rows::new();
    for round in 0..60 {
        let mut txn = db.begin();
        let mut rows = committed.clone();
        for _ in 0..random.random_range(1..60) {
            let n = random.random_range(0..400);
            let key = keys(n).0;
            let value = format!("value {round} {}", "x".repeat(random.random_range(0..40))).into_bytes();
            match random.random_range(0..10) {
                0..=4 => {
                    replace(&mut txn, &table, n, &value).unwrap();
                    rows.insert(key, value);
                }
                5..=7 => {
                    delete(&mut txn, &table, n).unwrap();
                    rows.remove(&key);
                }
                _ => match txn.insert_row(&table, &entries(&keys(n), &value)) {
                    Ok(()) => assert!(rows.insert(key, value).is_none()),
                    Err(Error::Duplicate { existing, .. }) => assert_eq!(rows.get(&key), Some(&existing)),
                    Err(other) => panic!("{other:?}"),
                },
            }
        }
        check(&db, &mut txn, &table, &rows);
        if random.random_bool(0.8) {
            txn.commit().unwrap();
            committed = rows;
        } else {
            txn.rollback();
        }
        if random.random_bool(0.3) {
            db.run_jobs().unwrap();
        }
        drop(txn);
        if round == 40 {
            drop((table, db));
            db = open(&vfs.crash()).unwrap();
            table = db.open_table(PATH).unwrap();
        }
        check(&db, &mut db.begin(), &table, &committed);
    }
    db.run_jobs().unwrap();
    assert_eq!(count(&db, PATH).unwrap() as usize, committed.len());
}

#[test]
fn rows_replaced_and_deleted_unread_are_what_they_would_be_otherwise() {
    (0..8).for_each(random_history);
}

#[test]
fn what_is_written_unread_is_locked() {
    let db = open(&disk(1)).unwrap();
    let table = create(&db);
    let (mut one, mut two) = (db.begin(), db.begin());
    replace(&mut one, &table, 1, b"one").unwrap();
    assert!(one.lock_unread(&table, &keys(2).0).unwrap());
    for n in [1, 2] {
        let lock = two.get_locked(&table, 0, &keys(n).0, LockMode::Shared, LockWait::NoWait);
        assert!(matches!(lock, Err(Error::WouldBlock)), "{lock:?}");
    }
    one.commit().unwrap();
    delete(&mut two, &table, 1).unwrap();
    two.commit().unwrap();
    assert_eq!(count(&db, PATH).unwrap(), 0);
}

#[test]
fn a_replaced_row_is_what_snapshots_of_before_do_not_see() {
    let db = open(&disk(2)).unwrap();
    let table = create(&db);
    let mut writer = db.begin();
    replace(&mut writer, &table, 1, b"old").unwrap();
    replace(&mut writer, &table, 2, b"gone").unwrap();
    writer.commit().unwrap();
    let mut reader = db.begin();
    let before: Rows = [(keys(1).0, b"old".to_vec()), (keys(2).0, b"gone".to_vec())].into();
    check(&db, &mut reader, &table, &before);
    replace(&mut writer, &table, 1, b"new").unwrap();
    delete(&mut writer, &table, 2).unwrap();
    writer.commit().unwrap();
    db.run_jobs().unwrap();
    check(&db, &mut reader, &table, &before);
    check(&db, &mut db.begin(), &table, &[(keys(1).0, b"new".to_vec())].into());
}

#[test]
fn beside_an_index_that_is_being_built_rows_are_read() {
    let db = open(&disk(3)).unwrap();
    let table = create(&db);
    let mut txn = db.begin();
    replace(&mut txn, &table, 1, b"old").unwrap();
    txn.commit().unwrap();
    drop((txn, table));
    let index = NewIndex {
        name: "new".into(),
        is_unique: false,
        clustering: Clustering::None,
        recipe: b"new".to_vec(),
    };
    let _build = db.begin_index_build(PATH, &[index]).unwrap();
    let table = db.open_table(PATH).unwrap();
    let mut txn = db.begin();
    let of_row = keys(1);
    let [row, entry] = entries(&of_row, b"new");
    let three = [row, entry, Entry { key: b"new", value: b"", unique: false }];
    let replaced = txn.insert_row_with(&table, &three, &[], OnDuplicate::Overwrite);
    assert!(matches!(replaced, Err(Error::Duplicate { index: 0, .. })), "{replaced:?}");
    assert!(!txn.lock_unread(&table, &of_row.0).unwrap());
}

#[test]
fn an_unread_write_that_fails_leaves_nothing() {
    let vfs: Arc<SimVfs> = disk(4);
    let db = open(&vfs).unwrap();
    let table = create(&db);
    let mut txn = db.begin();
    let long = (vec![b'k'; 100_000], b"entry".to_vec());
    assert!(txn.insert_row_with(&table, &entries(&long, b"v"), &[], OnDuplicate::Overwrite).is_err());
    assert!(!txn.has_writes());
    txn.commit().unwrap();
    assert_eq!(count(&db, PATH).unwrap(), 0);
}
