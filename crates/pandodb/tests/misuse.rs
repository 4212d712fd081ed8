//! Mistakes of callers: what does not belong together, or is not there, is an error at the call, and nothing is done.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::fmt::Debug;
use std::sync::Arc;

use common::{count, disk, fill, open, open_logging, spec, with_table, Lines};
use pandodb::{Db, EngineError, Entry, Error, LockMode, LockWait, Options, ReadMode, Table, TableSpec};

const A: &str = "./db/a";

/// Makes sure that the caller is told of its mistake, in a text that has all these words.
fn is_refused<T: Debug, E: Into<Error>>(result: Result<T, E>, words: &str) {
    match result.map_err(Into::into) {
        Err(Error::Engine(EngineError::Argument { what })) => {
            assert!(words.split(", ").all(|word| what.contains(word)), "{what}")
        }
        other => panic!("{words}: {other:?}"),
    }
}

fn entry(key: &[u8]) -> Entry<'_> {
    Entry { key, value: b"stray", unique: true }
}

#[test]
fn a_table_of_another_database_is_refused_by_every_call() {
    let (_, one) = with_table(1, 100);
    // Its dictionaries have the numbers of those of the first one.
    let (vfs, two) = with_table(2, 20);
    let foreign = two.open_table(A).unwrap();
    let text = "db/a, belongs to another database";
    let mut txn = one.begin();
    let key = b"00000003".as_slice();
    is_refused(txn.get(&foreign, 0, key), text);
    is_refused(txn.get_latest(&foreign, 0, key), text);
    is_refused(txn.get_locked(&foreign, 0, key, LockMode::Exclusive, LockWait::NoWait), text);
    is_refused(txn.lock_existing(&foreign, 0, key, LockMode::Shared, LockWait::NoWait), text);
    is_refused(txn.lock_unread(&foreign, key), text);
    is_refused(txn.lock_all_rows(&foreign, LockMode::Shared), text);
    is_refused(txn.has_written(&foreign, 0, key), text);
    is_refused(txn.is_newer_than_snapshot(&foreign, key), text);
    is_refused(txn.put(&foreign, 0, key, b"stray", LockWait::NoWait), text);
    is_refused(txn.delete(&foreign, 0, key, LockWait::NoWait), text);
    is_refused(txn.delete_range(&foreign, b"", None), text);
    is_refused(txn.insert_row(&foreign, &[entry(b"x"), entry(b"x")]), text);
    let (old, new) = ([entry(key), entry(key)], [entry(b"y"), entry(b"y")]);
    is_refused(txn.update_row(&foreign, &old, &new), text);
    is_refused(txn.delete_row(&foreign, &old), text);
    is_refused(txn.raise_auto_increment(&foreign, 77), text);
    is_refused(txn.view(&foreign, 0).map(|_| ()), text);
    let mut cursor = txn.cursor(&foreign, 0);
    is_refused(cursor.seek(&mut txn, key, ReadMode::Snapshot), text);
    is_refused(cursor.seek_before(&mut txn, key, ReadMode::Latest), text);
    is_refused(cursor.seek_first(&mut txn, ReadMode::Locked(LockMode::Shared, LockWait::NoWait)), text);
    is_refused(cursor.seek_last(&mut txn, ReadMode::Snapshot), text);
    txn.unlock(&foreign, 0, key);
    is_refused(one.check_table(&foreign, &mut |_| true), text);
    is_refused(one.compact_table(&foreign, &mut |_| true), text);
    is_refused(one.dictionary_names(&foreign), text);
    is_refused(one.give_up_key(&foreign, 1), text);

    // A cursor that has its place, moved with a transaction of the other one.
    let mut others = two.begin();
    let mut cursor = others.cursor(&foreign, 0);
    cursor.seek_first(&mut others, ReadMode::Snapshot).unwrap();
    is_refused(cursor.next(&mut txn), text);
    is_refused(cursor.prev(&mut txn), text);
    cursor.next(&mut others).unwrap();
    assert_eq!(cursor.key(), b"00000001");
    drop((cursor, others));

    // The transaction goes on, and nothing of all that was done.
    let own = one.open_table(A).unwrap();
    txn.put(&own, 0, b"own", b"1", LockWait::NoWait).unwrap();
    txn.put(&own, 1, b"own", b"1", LockWait::NoWait).unwrap();
    txn.commit().unwrap();
    assert_eq!((count(&one, A).unwrap(), count(&two, A).unwrap()), (101, 20));
    drop((foreign, two));
    assert_eq!(count(&open(&vfs.crash()).unwrap(), A).unwrap(), 20);
}

#[test]
fn a_dictionary_that_the_table_does_not_have_is_refused() {
    let (_vfs, db) = with_table(1, 10);
    let table = db.open_table(A).unwrap();
    let text = "db/a, no dictionary 2, it has 2";
    let mut txn = db.begin();
    txn.put(&table, 0, b"kept", b"", LockWait::NoWait).unwrap();
    txn.put(&table, 1, b"kept", b"", LockWait::NoWait).unwrap();
    is_refused(txn.get(&table, 2, b"k"), text);
    is_refused(txn.get_latest(&table, 2, b"k"), text);
    is_refused(txn.get_locked(&table, 2, b"k", LockMode::Shared, LockWait::NoWait), text);
    is_refused(txn.put(&table, 2, b"k", b"v", LockWait::NoWait), text);
    is_refused(txn.delete(&table, 2, b"k", LockWait::NoWait), text);
    is_refused(txn.has_written(&table, 2, b"k"), text);
    is_refused(txn.view(&table, 2).map(|_| ()), text);
    is_refused(txn.cursor(&table, 2).seek(&mut txn, b"k", ReadMode::Snapshot), text);
    is_refused(table.rows_in_range(2, None, None), text);
    is_refused(db.distinct_keys(&table, 2, 1, false, &mut |_, _| false), text);
    is_refused(db.give_up_key(&table, 2), text);
    txn.unlock(&table, 2, b"k");
    assert!(!table.is_unusable(2));
    is_refused(txn.insert_row(&table, &[entry(b"x")]), "db/a, has 2 entries, not 1");
    let two = [entry(b"x"), entry(b"x")];
    is_refused(txn.update_row(&table, &two, &two[..1]), "has 2 entries, not 1");
    is_refused(txn.delete_row(&table, &[]), "has 2 entries, not 0");
    txn.commit().unwrap();
    assert_eq!(count(&db, A).unwrap(), 11);
}

#[test]
fn a_cursor_at_no_row_cannot_be_moved() {
    let (_vfs, db) = with_table(1, 3);
    let (table, mut txn) = (db.open_table(A).unwrap(), db.begin());
    let mut cursor = txn.cursor(&table, 0);
    is_refused(cursor.next(&mut txn), "cursor, at no row");
    is_refused(cursor.prev(&mut txn), "cursor, at no row");
    cursor.seek_last(&mut txn, ReadMode::Snapshot).unwrap();
    cursor.next(&mut txn).unwrap();
    assert!(!cursor.valid());
    is_refused(cursor.next(&mut txn), "cursor, at no row");
    is_refused(cursor.prev(&mut txn), "cursor, at no row");
    is_refused(cursor.read_again(&mut txn), "cursor, at no row");
    cursor.seek_last(&mut txn, ReadMode::Snapshot).unwrap();
    assert_eq!(cursor.key(), b"00000002");
}

#[test]
fn a_path_that_no_table_can_have_is_refused() {
    let (vfs, db) = with_table(1, 10);
    for (path, why) in [
        ("", "no name"),
        ("./", "no name"),
        ("db/", "no name"),
        ("../up", "leads out"),
        ("db/../../up", "leads out"),
        ("db/a\0b", "byte 0"),
    ] {
        is_refused(db.create_table(&spec(path)), why);
        is_refused(db.rename_table(A, path), why);
        assert!(matches!(db.open_table(path), Err(EngineError::NotFound { .. })), "{path:?}");
    }
    // Those of the server's temporary tables, and names that only look like these.
    db.create_table(&TableSpec { temporary: true, ..spec("/tmp/#sql-1") }).unwrap();
    db.rename_table("/tmp/#sql-1", "/tmp/#sql-2").unwrap();
    db.create_table(&spec("./db/..a..")).unwrap();
    db.create_table(&spec("/elsewhere/t")).unwrap();
    assert_eq!(count(&db, A).unwrap(), 10);
    drop(db);
    assert_eq!(count(&open(&vfs.crash()).unwrap(), A).unwrap(), 10);
}

#[test]
fn a_rename_makes_the_directory_that_is_missing_and_finds_it_after_a_crash() {
    let (vfs, db) = with_table(1, 10);
    let new = "./other/deep/b";
    db.rename_table(A, new).unwrap();
    assert_eq!(count(&db, new).unwrap(), 10);
    drop(db);
    let lines = Lines::default();
    let db = open_logging(&vfs.crash(), &lines).unwrap();
    assert_eq!(count(&db, new).unwrap(), 10);
    assert!(!db.table_exists(A));
    let warnings =
        lines.lock().unwrap().iter().filter(|line| !line.1.starts_with("recovery replayed")).count();
    assert_eq!(warnings, 0, "{lines:?}");
}

/// As strangers begin, with the text that they would see.
fn open_in(dir: &std::path::Path) -> Result<Arc<Db>, String> {
    let mut options = Options::new(dir);
    (options.cache_bytes, options.log_file_bytes) = (8 << 20, 1 << 20);
    Db::open(options).map_err(|error| error.to_string())
}

fn put(db: &Arc<Db>, table: &Table, key: &[u8]) -> pandodb::Result<()> {
    let mut txn = db.begin();
    txn.put(table, 0, key, b"", LockWait::Default)?;
    txn.commit()
}

#[test]
fn a_database_that_was_closed_refuses_all_calls_and_can_be_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let db = open_in(dir.path()).unwrap();
    db.create_table(&TableSpec { path: "t".into(), ..TableSpec::default() }).unwrap();
    let table = db.open_table("t").unwrap();
    put(&db, &table, b"before").unwrap();
    let in_use = open_in(dir.path()).unwrap_err();
    assert!(in_use.starts_with("the database is in use, by another process or by this one: "), "{in_use}");
    db.close().unwrap();

    let again = open_in(dir.path()).unwrap();
    let text = "the database was closed";
    is_refused(put(&db, &table, b"after"), text);
    is_refused(db.begin().get(&table, 0, b"before"), text);
    is_refused(db.open_table("t"), text);
    is_refused(db.create_table(&TableSpec { path: "u".into(), ..TableSpec::default() }), text);
    is_refused(db.rename_table("t", "u"), text);
    is_refused(db.drop_table("t"), text);
    is_refused(db.truncate_table("t"), text);
    is_refused(db.checkpoint(), text);
    is_refused(db.run_jobs(), text);
    db.close().unwrap();
    drop((db, table));
    let table = again.open_table("t").unwrap();
    put(&again, &table, b"again").unwrap();

    // Whoever is in the middle of something keeps the directory.
    let (mut txn, other) = (again.begin(), again.clone());
    txn.put(&table, 0, b"open", b"", LockWait::Default).unwrap();
    again.close().unwrap();
    assert!(open_in(dir.path()).is_err());
    let late = txn.commit();
    assert!(matches!(late, Err(Error::Engine(EngineError::ReadOnly { .. }))), "{late:?}");
    drop((txn, again));
    assert!(open_in(dir.path()).is_err());
    drop(other);
    let db = open_in(dir.path()).unwrap();
    let (table, mut txn) = (db.open_table("t").unwrap(), db.begin());
    for (key, is_there) in [("before", true), ("again", true), ("open", false), ("after", false)] {
        assert_eq!(txn.get(&table, 0, key.as_bytes()).unwrap().is_some(), is_there, "{key}");
    }
}

#[test]
fn a_closed_database_has_nothing_of_who_wrote_to_it_too_late() {
    let (vfs, db) = with_table(1, 10);
    db.close().unwrap();
    is_refused(fill(&db, A, 10..20), "closed");
    drop(db);
    assert_eq!(count(&open(&vfs).unwrap(), A).unwrap(), 10);
    assert!(open(&disk(2)).is_ok());
}

#[test]
fn keys_too_long_for_a_file_are_refused_also_of_rows_that_go() {
    let (vfs, db) = with_table(7, 100);
    let table = db.open_table(A).unwrap();
    let long = vec![b'x'; 65_537];
    let key = b"00000003".as_slice();
    let mut txn = db.begin();
    let is_too_long = |result: pandodb::Result<()>| {
        assert!(
            matches!(result, Err(Error::Engine(EngineError::TooLong { what: "key", size: 65_537, .. }))),
            "{result:?}"
        )
    };
    for index in 0..2 {
        is_too_long(txn.put(&table, index, &long, b"v", LockWait::NoWait));
        is_too_long(txn.delete(&table, index, &long, LockWait::NoWait));
    }
    let of = |rows, index| [Entry { key: rows, ..entry(b"") }, Entry { key: index, ..entry(b"") }];
    for (old, new) in
        [(of(&long, key), of(key, key)), (of(key, &long), of(key, key)), (of(key, key), of(key, &long))]
    {
        is_too_long(txn.update_row(&table, &old, &new));
        is_too_long(txn.update_newer_row(&table, &old, &new));
    }
    for old in [of(&long, key), of(key, &long)] {
        is_too_long(txn.delete_row(&table, &old));
        is_too_long(txn.insert_row(&table, &old));
    }
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    drop((table, txn, db));
    let db = open(&vfs).unwrap();
    assert_eq!(count(&db, A).unwrap(), 100);
}
