//! Mistakes of callers: what does not belong together, or is not there, is an error at the call, and nothing is done.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::fmt::Debug;
use std::sync::Arc;

use common::{count, disk, fill, open, open_logging, spec, with_table, Lines};
use pandodb::{
    Db, EngineError, Entries, Entry, Error, IndexPlace, IndexSource, IndexSpec, LoadEnd, LockMode, LockWait,
    Options, ReadMode, RowEncoder, Table, TableSpec, Txn,
};

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

/// Encodes nothing but this: a panic, or a key that is too long.
struct Faulty {
    key_bytes: Option<usize>,
}

impl RowEncoder for Faulty {
    type Batch = ();

    fn encode(&self, (): (), entries: &mut [Entries]) -> Result<(), i32> {
        let Some(key_bytes) = self.key_bytes else { panic!("a row that it does not know") };
        entries.iter_mut().for_each(|entries| entries.push(&vec![b'k'; key_bytes], b"v"));
        Ok(())
    }
}

/// With threads for loads.
fn open_with_threads() -> (tempfile::TempDir, Arc<Db>, Arc<Table>) {
    let dir = tempfile::tempdir().unwrap();
    let db = open_in(dir.path()).unwrap();
    db.create_table(&TableSpec { path: "t".into(), ..TableSpec::default() }).unwrap();
    let table = db.open_table("t").unwrap();
    (dir, db, table)
}

#[test]
fn a_load_whose_encoder_panics_ends_with_the_panic_and_its_threads_go_on() {
    let (_dir, db, table) = open_with_threads();
    for is_finished in [true, false] {
        for _ in 0..8 {
            let mut txn = db.begin();
            let mut load = txn.begin_load(&table, &[true], Faulty { key_bytes: None }).unwrap().unwrap();
            // More batches than may wait.
            while load.submit((), 1, 100_000) {}
            if is_finished {
                let end = std::panic::AssertUnwindSafe(|| txn.finish_load(load, &mut |_| true));
                let panic = std::panic::catch_unwind(end).unwrap_err();
                assert_eq!(panic.downcast_ref::<&str>(), Some(&"a row that it does not know"));
            }
        }
    }
    // The memory that they held is free, the threads are there.
    let mut txn = db.begin();
    let mut load = txn.begin_load(&table, &[true], Faulty { key_bytes: Some(10) }).unwrap().unwrap();
    assert!(load.submit((), 1, 100));
    assert_eq!(txn.finish_load(load, &mut |_| true).unwrap(), LoadEnd::Loaded);
    txn.commit().unwrap();
    db.close().unwrap();
}

#[test]
fn a_load_with_a_key_that_is_too_long_says_so() {
    let (_dir, db, table) = open_with_threads();
    for batches in [1, 3] {
        let mut txn = db.begin();
        let faulty = Faulty { key_bytes: Some(65_537) };
        let mut load = txn.begin_load(&table, &[true], faulty).unwrap().unwrap();
        (0..batches).for_each(|_| _ = load.submit((), 1, 100));
        let end = txn.finish_load(load, &mut |_| true);
        assert!(
            matches!(end, Err(Error::Engine(EngineError::TooLong { what: "key", size: 65_537, .. }))),
            "{end:?}"
        );
    }
    assert_eq!(count(&db, "t").unwrap(), 0);
}

fn is_gone<T: Debug>(result: pandodb::Result<T>) {
    match result {
        Err(Error::Engine(EngineError::NotFound { what })) => assert!(what.contains("was dropped"), "{what}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn writes_to_a_table_that_was_dropped_are_refused_and_the_transaction_goes_on() {
    for is_database in [false, true] {
        let (_vfs, db) = with_table(1, 10);
        db.create_table(&spec("./other/b")).unwrap();
        let (gone, there) = (db.open_table(A).unwrap(), db.open_table("./other/b").unwrap());
        let mut loading = db.begin();
        let load = loading.begin_load_beside(&gone, &[true, true], Faulty { key_bytes: Some(9) });
        let mut load = load.unwrap().unwrap();
        load.submit((), 1, 100);
        loading.rollback();
        match is_database {
            true => db.drop_database("db").unwrap(),
            false => db.drop_table(A).unwrap(),
        }
        is_gone(loading.finish_load(load, &mut |_| true));
        // Another one of this name is not the same.
        db.create_table(&spec(A)).unwrap();
        let mut txn = db.begin();
        let key = b"00000003".as_slice();
        let (old, new) = ([entry(key), entry(key)], [entry(b"y"), entry(b"y")]);
        is_gone(txn.put(&gone, 0, key, b"", LockWait::NoWait));
        is_gone(txn.delete(&gone, 1, key, LockWait::NoWait));
        is_gone(txn.insert_row(&gone, &new));
        is_gone(txn.update_row(&gone, &old, &new));
        is_gone(txn.delete_row(&gone, &old));
        is_gone(txn.delete_range(&gone, b"", None));
        is_gone(txn.raise_auto_increment(&gone, 7));
        is_gone(txn.begin_load(&gone, &[true, true], Faulty { key_bytes: None }));
        is_gone(txn.begin_load_beside(&gone, &[true, true], Faulty { key_bytes: None }));
        is_gone(txn.begin_load_by_row(&gone, &[true, true], Faulty { key_bytes: None }));
        assert!(!txn.has_writes());
        txn.insert_row(&there, &new).unwrap();
        txn.commit().unwrap();
        assert_eq!((count(&db, A).unwrap(), count(&db, "./other/b").unwrap()), (0, 1));
    }
}

#[test]
fn a_transaction_is_prepared_once_under_a_name_that_no_other_has_and_writes_no_more() {
    let (vfs, db) = with_table(1, 10);
    let table = db.open_table(A).unwrap();
    let row = |key: &'static [u8]| [entry(key), entry(key)];
    let prepare = |key, xid: &[u8]| {
        let mut txn = db.begin();
        txn.insert_row(&table, &row(key)).unwrap();
        txn.prepare(xid).map(|()| txn)
    };
    let mut txn = db.begin();
    let mark = txn.mark();
    txn.insert_row(&table, &row(b"a")).unwrap();
    // Not prepared: nothing to leave.
    txn.detach();
    txn.prepare(b"one").unwrap();
    let text = "is prepared";
    is_refused(txn.prepare(b"one"), text);
    is_refused(txn.prepare(b"other"), text);
    is_refused(txn.insert_row(&table, &row(b"b")), text);
    is_refused(txn.delete_row(&table, &row(b"a")), text);
    is_refused(txn.update_row(&table, &row(b"a"), &row(b"b")), text);
    is_refused(txn.put(&table, 0, b"b", b"", LockWait::NoWait), text);
    is_refused(txn.delete(&table, 0, b"b", LockWait::NoWait), text);
    is_refused(txn.delete_range(&table, b"", None), text);
    is_refused(txn.raise_auto_increment(&table, 7), text);
    is_refused(txn.begin_load(&table, &[true, true], Faulty { key_bytes: None }), text);
    is_refused(txn.begin_load_beside(&table, &[true, true], Faulty { key_bytes: None }), text);
    is_refused(txn.rollback_to(mark), text);
    is_refused(prepare(b"c", b"one").map(|_| ()), "under this name already");
    txn.leave();
    is_refused(txn.insert_row(&table, &row(b"b")), text);
    is_refused(prepare(b"c", b"one").map(|_| ()), "under this name already");
    drop(txn);
    // Once it is resolved the name is free; so it is if its prepare failed, and after a rollback.
    assert!(db.commit_by_xid(b"one").unwrap());
    prepare(b"d", b"one").unwrap().rollback();
    prepare(b"e", b"one").unwrap().commit().unwrap();
    let mut ordered = prepare(b"f", b"one").unwrap();
    ordered.commit_ordered(true);
    // Too late.
    ordered.rollback();
    drop(prepare(b"g", b"one").unwrap());
    drop((table, ordered, db));

    let db = open(&vfs.crash()).unwrap();
    let table = db.open_table(A).unwrap();
    let mut txn = db.begin();
    txn.insert_row(&table, &row(b"h")).unwrap();
    is_refused(txn.prepare(b"one"), "under this name already");
    txn.prepare(b"two").unwrap();
    assert!(db.commit_by_xid(b"one").unwrap());
    txn.commit().unwrap();
    assert_eq!(count(&db, A).unwrap(), 10 + 5);
}

#[test]
fn a_mark_that_is_not_there_is_refused_and_nothing_is_undone() {
    let (_vfs, db) = with_table(1, 10);
    let (table, mut txn) = (db.open_table(A).unwrap(), db.begin());
    let put = |txn: &mut Txn, key: &[u8]| txn.insert_row(&table, &[Entry { key, ..entry(b"") }; 2]).unwrap();
    let first = txn.mark();
    put(&mut txn, b"a");
    let second = txn.mark();
    put(&mut txn, b"b");
    let third = txn.mark();
    let text = "no such mark";
    txn.release_mark(third);
    is_refused(txn.rollback_to(third), text);
    txn.rollback_to(second).unwrap();
    txn.rollback_to(second).unwrap();
    put(&mut txn, b"c");
    txn.rollback_to(first).unwrap();
    is_refused(txn.rollback_to(second), text);
    put(&mut txn, b"d");
    txn.commit().unwrap();
    put(&mut txn, b"e");
    is_refused(txn.rollback_to(second), text);
    is_refused(txn.rollback_to(first), text);
    txn.commit().unwrap();
    assert_eq!(count(&db, A).unwrap(), 12);
}

#[test]
fn a_closed_database_neither_flushes_its_log_nor_is_backed_up() {
    let (_vfs, db) = with_table(1, 10);
    db.close().unwrap();
    is_refused(db.flush_logs(), "closed");
    is_refused(db.set_encrypt_log(false), "closed");
    is_refused(db.drop_database("db"), "closed");
    for command in ["arm", "pin", "list", "log", "log done", "file 1", "done 1"] {
        is_refused(db.backup_command(1, command), "closed");
    }
    db.backup_command(1, "end").unwrap();
}

#[test]
fn the_last_number_of_a_counter_is_given_out_once() {
    let (_vfs, db) = with_table(1, 0);
    let table = db.open_table(A).unwrap();
    let top = u64::MAX - 3;
    assert_eq!(table.auto_increment_reserve(top, 1, 1, 1), Some(top));
    assert_eq!(table.auto_increment_reserve(1, 1, 1, 1), Some(top + 1));
    assert_eq!(table.auto_increment_reserve(1, 1, 1, 10), Some(top + 2));
    for count in [1, 1, 10] {
        assert_eq!(table.auto_increment_reserve(1, 1, 1, count), None);
    }
}

#[test]
fn a_table_can_have_127_indexes_and_not_more() {
    let (_vfs, db) = with_table(1, 0);
    let index = |n: usize| IndexSpec::from(format!("i{n}").as_str());
    let spec = |path: &str, indexes| TableSpec { indexes: (0..indexes).map(index).collect(), ..spec(path) };
    is_refused(db.create_table(&spec("./db/more", 128)), "db/more, 128 indexes, 127 at most");
    db.create_table(&spec("./db/most", 127)).unwrap();
    let table = db.open_table("./db/most").unwrap();
    let place = |source| IndexPlace { name: format!("{source:?}"), source };
    let kept = |at: usize| place(IndexSource::Kept(at));
    let all: Vec<IndexPlace> = (1..128).map(kept).collect();
    let with = |source| [all.clone(), vec![place(source)]].concat();
    is_refused(db.change_indexes("./db/most", &with(IndexSource::New(0))), "128 indexes, 127 at most");
    for source in [IndexSource::Kept(0), IndexSource::Kept(1), IndexSource::Kept(128), IndexSource::New(0)] {
        is_refused(db.change_indexes("./db/most", &[kept(1), place(source)]), "no such index");
    }
    let mut txn = db.begin();
    let row = |key, value| [Entry { key, value, unique: false }; 128];
    txn.insert_row(&table, &row(b"a", b"1")).unwrap();
    let mut changed = row(b"a", b"1");
    (changed[127].key, changed[127].value) = (b"b", b"2");
    txn.update_row(&table, &row(b"a", b"1"), &changed).unwrap();
    txn.commit().unwrap();
    assert_eq!(db.begin().get(&table, 127, b"b").unwrap().as_deref(), Some(b"2".as_slice()));
}

#[test]
fn a_load_that_is_not_told_of_each_dictionary_and_a_database_without_a_name_are_refused() {
    let (_vfs, db) = with_table(1, 0);
    let (table, mut txn) = (db.open_table(A).unwrap(), db.begin());
    let text = "db/a, 2 dictionaries, not 1";
    is_refused(txn.begin_load(&table, &[true], Faulty { key_bytes: None }), text);
    is_refused(txn.begin_load_beside(&table, &[true], Faulty { key_bytes: None }), text);
    is_refused(txn.begin_load_by_row(&table, &[true], Faulty { key_bytes: None }), text);
    for name in ["", "/", "./"] {
        is_refused(db.drop_database(name), "has to have a name");
    }
}
