//! A snapshot that is older than a table's content is told so, instead of finding the table empty: a dump in one
//! transaction, say, beside an ALTER TABLE that copies.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;

use common::{disk, fill, open, options, spec, Lines};
use pandodb::{Db, Error, ReadMode, TableSpec, Txn, Vfs};

const T: &str = "./db/t";
const INTERIM: &str = "./db/#sql-alter-1";

fn old_snapshot(db: &Arc<Db>) -> Txn {
    let mut txn = db.begin();
    txn.open_snapshot();
    txn
}

/// Rows that each way of reading a table in a transaction's snapshot finds; None: all say that the table has changed.
fn rows_seen(db: &Arc<Db>, txn: &mut Txn, path: &str) -> Option<u32> {
    let table = db.open_table(path).unwrap();
    let mut seen = Vec::new();
    for index in 0..2 {
        let got = txn.get(&table, index, b"00000000").map(|_| ());
        let view = txn.view(&table, index).map(|_| ());
        assert!(got.is_ok() == view.is_ok(), "{got:?}, {view:?}");
        let mut cursor = txn.cursor(&table, index);
        let mut rows = 0;
        match cursor.seek_first(txn, ReadMode::Snapshot) {
            Err(Error::DefinitionChanged) => {
                assert!(matches!(got, Err(Error::DefinitionChanged)));
                seen.push(None);
                continue;
            }
            other => other.unwrap(),
        }
        got.unwrap();
        while cursor.valid() {
            rows += 1;
            cursor.next(txn).unwrap();
        }
        seen.push(Some(rows));
    }
    assert_eq!(seen[0], seen[1]);
    seen[0]
}

/// The newest rows are there for those who ask for them, whatever their snapshot.
fn rows_now(db: &Arc<Db>, txn: &mut Txn, path: &str) -> u32 {
    let table = db.open_table(path).unwrap();
    let mut cursor = txn.cursor(&table, 0);
    cursor.seek_first(txn, ReadMode::Latest).unwrap();
    let mut rows = 0;
    while cursor.valid() {
        rows += 1;
        cursor.next(txn).unwrap();
    }
    rows
}

#[test]
fn a_table_made_after_a_snapshot_is_not_empty_for_it_but_unreadable() {
    let db = open(&disk(1)).unwrap();
    let mut old = old_snapshot(&db);
    db.create_table(&spec(T)).unwrap();
    let mut between = old_snapshot(&db);
    fill(&db, T, 0..3).unwrap();
    assert_eq!(rows_seen(&db, &mut old, T), None);
    assert_eq!(rows_now(&db, &mut old, T), 3);
    assert_eq!(rows_seen(&db, &mut between, T), Some(0));
    assert_eq!(rows_seen(&db, &mut old_snapshot(&db), T), Some(3));
    // Its next snapshot is a newer one.
    old.commit().unwrap();
    assert_eq!(rows_seen(&db, &mut old_snapshot(&db), T), Some(3));
}

#[test]
fn a_table_emptied_after_a_snapshot_is_unreadable_for_it() {
    let db = open(&disk(2)).unwrap();
    db.create_table(&spec(T)).unwrap();
    fill(&db, T, 0..3).unwrap();
    let mut old = old_snapshot(&db);
    db.truncate_table(T).unwrap();
    assert_eq!(rows_seen(&db, &mut old, T), None);
    assert_eq!(rows_seen(&db, &mut old_snapshot(&db), T), Some(0));
}

#[test]
fn a_copy_is_readable_for_snapshots_since_it_got_its_name() {
    let db = open(&disk(3)).unwrap();
    db.create_table(&spec(T)).unwrap();
    fill(&db, T, 0..3).unwrap();
    let mut before = old_snapshot(&db);
    db.create_table(&TableSpec { interim: true, ..spec(INTERIM) }).unwrap();
    // Newer than the copy's table, and older than its rows.
    let mut meanwhile = old_snapshot(&db);
    fill(&db, INTERIM, 0..3).unwrap();
    db.rename_table(T, "./db/#sql-backup-1").unwrap();
    db.rename_table(INTERIM, T).unwrap();
    let mut since = old_snapshot(&db);
    assert_eq!(rows_seen(&db, &mut before, T), None);
    assert_eq!(rows_seen(&db, &mut meanwhile, T), None);
    assert_eq!(rows_now(&db, &mut meanwhile, T), 3);
    assert_eq!(rows_seen(&db, &mut since, T), Some(3));
    // What was there before keeps its content, whatever it is called.
    assert_eq!(rows_seen(&db, &mut before, "./db/#sql-backup-1"), Some(3));
    fill(&db, T, 3..5).unwrap();
    db.rename_table(T, "./db/u").unwrap();
    assert_eq!(rows_seen(&db, &mut since, "./db/u"), Some(3));
}

#[test]
fn a_temporary_table_is_readable_for_the_older_snapshot_of_its_session() {
    let db = open(&disk(4)).unwrap();
    let mut session = old_snapshot(&db);
    db.create_table(&TableSpec { temporary: true, interim: true, ..spec(T) }).unwrap();
    assert_eq!(rows_seen(&db, &mut session, T), Some(0));
    db.rename_table(T, "./db/u").unwrap();
    db.truncate_table("./db/u").unwrap();
    assert_eq!(rows_seen(&db, &mut session, "./db/u"), Some(0));
}

#[test]
fn a_table_that_was_closed_meanwhile_is_still_unreadable() {
    let mut options = options(&Lines::default());
    options.files_open_max = 3;
    let files: Arc<dyn Vfs> = disk(5);
    let db = Db::open_with_vfs(options, files.clone(), files).unwrap();
    let mut old = old_snapshot(&db);
    for n in 0..5 {
        let path = format!("{T}{n}");
        db.create_table(&spec(&path)).unwrap();
        fill(&db, &path, 0..3).unwrap();
    }
    db.checkpoint().unwrap();
    db.tick();
    assert_eq!(rows_seen(&db, &mut old, "./db/t0"), None);
    drop(old);
    db.tick();
    assert!(db.metrics().files_open.get() <= 3, "{} files", db.metrics().files_open.get());
    assert_eq!(rows_seen(&db, &mut old_snapshot(&db), "./db/t0"), Some(3));
}
