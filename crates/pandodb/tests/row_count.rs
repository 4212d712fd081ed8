//! How many rows a table is said to have.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::ops::Range;
use std::sync::Arc;

use common::{disk, open, spec};
use pandodb::{Db, Entry, Table, Txn};

const PATH: &str = "./db/a";

fn key(n: u32) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

/// A row has the same key in both dictionaries and its value in that of the rows.
fn entries<'a>(key: &'a [u8], value: &'a [u8]) -> [Entry<'a>; 2] {
    [Entry { key, value, unique: true }, Entry { key, value: b"", unique: false }]
}

fn insert(txn: &mut Txn, table: &Table, rows: Range<u32>) {
    for n in rows {
        txn.insert_row(table, &entries(&key(n), b"new")).unwrap();
    }
}

fn update(txn: &mut Txn, table: &Table, rows: Range<u32>) {
    for n in rows {
        txn.update_row(table, &entries(&key(n), b"new"), &entries(&key(n), b"changed")).unwrap();
    }
}

fn delete(txn: &mut Txn, table: &Table, rows: Range<u32>) {
    for n in rows {
        txn.delete_row(table, &entries(&key(n), b"changed")).unwrap();
    }
}

fn commit(db: &Arc<Db>, act: impl FnOnce(&mut Txn)) {
    let mut txn = db.begin();
    act(&mut txn);
    txn.commit().unwrap();
}

fn table_of(db: &Arc<Db>, rows: u32) -> Arc<Table> {
    db.create_table(&spec(PATH)).unwrap();
    let table = db.open_table(PATH).unwrap();
    assert_eq!(table.rows_estimate(), 0);
    commit(db, |txn| insert(txn, &table, 0..rows));
    table
}

#[test]
fn rows_that_change_are_counted_once_whatever_has_been_merged() {
    let db = open(&disk(1)).unwrap();
    let table = table_of(&db, 1000);
    assert_eq!(table.rows_estimate(), 1000);
    for round in 0..20 {
        commit(&db, |txn| update(txn, &table, 0..200));
        if round % 3 == 0 {
            db.run_jobs().unwrap();
        }
        assert_eq!(table.rows_estimate(), 1000, "round {round}");
        let all = table.rows_in_range(0, None, None).unwrap();
        assert!((900..=1000).contains(&all), "{all} in the whole range");
        let half = table.rows_in_range(0, Some(&key(500)), None).unwrap();
        assert!((50..=700).contains(&half), "{half} in half the range");
    }
}

#[test]
fn what_is_rolled_back_does_not_count() {
    let db = open(&disk(2)).unwrap();
    let table = table_of(&db, 100);
    commit(&db, |txn| {
        insert(txn, &table, 100..110);
        let statement = txn.mark();
        insert(txn, &table, 110..150);
        delete(txn, &table, 0..30);
        txn.rollback_to(statement).unwrap();
        txn.release_mark(statement);
        delete(txn, &table, 0..5);
    });
    assert_eq!(table.rows_estimate(), 105);
    let mut txn = db.begin();
    delete(&mut txn, &table, 5..50);
    txn.rollback();
    assert_eq!(table.rows_estimate(), 105);
}

#[test]
fn after_truncate_and_after_a_restart_the_count_goes_on() {
    let vfs = disk(3);
    let db = open(&vfs).unwrap();
    let table = table_of(&db, 300);
    commit(&db, |txn| update(txn, &table, 0..300));
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    drop(table);
    drop(db);
    let db = open(&vfs).unwrap();
    let table = db.open_table(PATH).unwrap();
    let first = table.rows_estimate();
    assert!((300..=600).contains(&first), "{first}");
    commit(&db, |txn| insert(txn, &table, 300..310));
    assert_eq!(table.rows_estimate(), first + 10);
    db.compact_table(&table, &mut |_| true).unwrap();
    assert_eq!(table.rows_estimate(), 310);
    drop(table);
    db.truncate_table(PATH).unwrap();
    let table = db.open_table(PATH).unwrap();
    assert_eq!(table.rows_estimate(), 0);
    commit(&db, |txn| insert(txn, &table, 0..7));
    assert_eq!(table.rows_estimate(), 7);
}
