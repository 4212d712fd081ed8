//! Prepared transactions that their session has left: what they keep, and who finds them again.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use common::prepared::{is_locked, put, read, world, T};
use common::{count, open, options, spec, Lines};
use pandodb::{Db, EngineError, Error, LockWait, ReadMode, Vfs};

#[test]
fn a_detached_transaction_keeps_its_locks_and_its_table() {
    let (_, db, table) = world();
    let mut txn = db.begin();
    put(&mut txn, &table, "a", "1");
    txn.prepare(b"1").unwrap();
    let id = txn.id();
    txn.detach();
    assert!(txn.id() != id && !txn.is_prepared());
    assert!(is_locked(&db, 0, "a"));
    let told = db.check_resolved(T);
    for refused in [told, db.drop_table(T), db.truncate_table(T), db.rename_table(T, "./db/u")] {
        assert!(matches!(refused, Err(EngineError::InUse { .. })), "{refused:?}");
    }
    put(&mut txn, &table, "b", "2");
    txn.commit().unwrap();
    assert!(db.commit_by_xid(b"1").unwrap());
    assert_eq!(count(&db, T).unwrap(), 2);
    // A connection that goes away does the same.
    put(&mut txn, &table, "c", "3");
    txn.prepare(b"2").unwrap();
    drop(txn);
    assert!(is_locked(&db, 0, "c"));
    assert!(db.rollback_by_xid(b"2").unwrap());
    assert!(!is_locked(&db, 0, "c"));
    db.check_resolved(T).unwrap();
    db.truncate_table(T).unwrap();
    db.rename_table(T, "./db/u").unwrap();
    db.drop_table("./db/u").unwrap();
}

#[test]
fn a_detached_transaction_keeps_all_partitions_of_a_table() {
    let (_, db, _) = world();
    let partitions = ["./db/p#P#p0", "./db/p#P#p1", "./db/p2#P#p0"];
    partitions.iter().for_each(|path| db.create_table(&spec(path)).unwrap());
    let mut txn = db.begin();
    put(&mut txn, &db.open_table(partitions[1]).unwrap(), "a", "1");
    txn.prepare(b"1").unwrap();
    db.check_partitions_resolved("./db/p").unwrap();
    drop(txn);
    let refused = db.check_partitions_resolved("./db/p");
    assert!(matches!(refused, Err(EngineError::InUse { .. })), "{refused:?}");
    db.check_partitions_resolved("./db/p2").unwrap();
    assert!(db.rollback_by_xid(b"1").unwrap());
    db.check_partitions_resolved("./db/p").unwrap();
}

#[test]
fn a_write_that_met_a_lock_keeps_no_table_for_a_detached_transaction() {
    let (_, db, table) = world();
    db.create_table(&spec("./db/other")).unwrap();
    let other = db.open_table("./db/other").unwrap();
    let mut holder = db.begin();
    put(&mut holder, &other, "a", "1");
    let mut txn = db.begin();
    put(&mut txn, &table, "a", "1");
    let refused = txn.put(&other, 0, b"a", b"2", LockWait::NoWait);
    assert!(matches!(refused, Err(Error::WouldBlock)), "{refused:?}");
    txn.prepare(b"1").unwrap();
    drop((txn, holder));
    db.drop_table("./db/other").unwrap();
    assert!(matches!(db.drop_table(T), Err(EngineError::InUse { .. })));
}

#[test]
fn a_database_goes_with_what_a_detached_transaction_has_spilled() {
    // Spilled levels hold their dictionaries, which list their writers: only the database can part them.
    let (vfs, db, table) = world();
    let mut settings = options(&Lines::default());
    settings.write_set_bytes = 1;
    drop((db, table));
    let files: Arc<dyn Vfs> = vfs.clone();
    let db = Db::open_with_vfs(settings, files.clone(), files).unwrap();
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    put(&mut txn, &table, "a", "1");
    put(&mut txn, &table, "b", "1");
    assert!(db.metrics().spills.get() > 0);
    txn.prepare(b"1").unwrap();
    let dict = Arc::downgrade(&table.dicts()[0]);
    drop((txn, table, db));
    assert_eq!(dict.strong_count(), 0);
}

#[test]
fn one_that_has_left_is_found_by_its_name_while_its_object_lives() {
    let (_, db, table) = world();
    let mut txn = db.begin();
    let id = txn.id();
    put(&mut txn, &table, "a", "1");
    txn.prepare(b"1").unwrap();
    txn.leave();
    assert!(txn.id() != id && !txn.is_prepared());
    assert!(is_locked(&db, 0, "a"));
    assert!(matches!(db.truncate_table(T), Err(EngineError::InUse { .. })));
    assert!(db.commit_by_xid(b"1").unwrap());
    assert_eq!(read(&db, "a").as_deref(), Some("1"));
    // Somebody else has done it; what comes next is another one.
    assert!(matches!(txn.commit(), Err(Error::Engine(EngineError::InUse { .. }))));
    put(&mut txn, &table, "b", "2");
    txn.commit().unwrap();
    assert_eq!(count(&db, T).unwrap(), 2);
    // Its object goes: it stays what it is.
    put(&mut txn, &table, "c", "3");
    txn.prepare(b"2").unwrap();
    txn.leave();
    drop(txn);
    assert!(is_locked(&db, 0, "c"));
    assert_eq!(db.report_prepared(8), [b"2"]);
    assert!(db.rollback_by_xid(b"2").unwrap());
    assert_eq!(read(&db, "c"), None);
}

#[test]
fn one_that_has_left_is_taken_back_by_its_object() {
    let (vfs, db, table) = world();
    let mut txn = db.begin();
    let id = txn.id();
    for (key, ordered) in [("a", true), ("b", false)] {
        put(&mut txn, &table, key, "1");
        // Each takes back its own.
        let mut other = db.begin();
        put(&mut other, &table, &format!("other {key}"), "2");
        for (txn, name) in [(&mut other, b"y"), (&mut txn, b"x")] {
            txn.prepare(name).unwrap();
            txn.leave();
        }
        if ordered {
            txn.commit_ordered(true);
            assert_eq!(txn.id(), id);
        }
        txn.commit().unwrap();
        assert_eq!((txn.id(), read(&db, key).as_deref()), (id, Some("1")));
        other.rollback();
        assert_eq!(read(&db, &format!("other {key}")), None);
        assert!(!is_locked(&db, 0, &format!("other {key}")));
        assert!([b"x", b"y"].iter().all(|name| !db.commit_by_xid(*name).unwrap()));
    }
    // Nothing to leave, nothing to take back.
    txn.prepare(b"x").unwrap();
    txn.leave();
    txn.commit().unwrap();
    drop((txn, table));
    db.abandon();
    drop(db);
    let db = open(&vfs.crash()).unwrap();
    assert_eq!((count(&db, T).unwrap(), db.report_prepared(8).len()), (2, 0));
}

/// A truncation between the moment in which the transaction is taken from the list and its place in the order of
/// commits brought rows back without the entries of indexes that it had not written.
#[test]
fn a_table_is_not_truncated_under_one_that_is_being_committed_by_its_name() {
    const ROUNDS: u32 = 300;
    let (_, db, table) = world();
    let mut refused = 0;
    for round in 0..ROUNDS {
        let mut txn = db.begin();
        put(&mut txn, &table, "a", "1");
        txn.commit().unwrap();
        // Its entry in the index stays as it is.
        txn.put(&table, 0, b"a", format!("{round}").as_bytes(), LockWait::NoWait).unwrap();
        txn.prepare(b"x").unwrap();
        txn.leave();
        std::thread::scope(|scope| {
            let commit = scope.spawn(|| db.commit_by_xid(b"x").unwrap());
            // As soon as it can be done.
            while let Err(error) = db.truncate_table(T) {
                assert!(matches!(error, EngineError::InUse { .. }), "{error}");
                refused += 1;
            }
            assert!(commit.join().unwrap());
        });
        let rows = [0, 1].map(|dict| {
            let txn = &mut db.begin();
            let mut cursor = txn.cursor(&table, dict);
            cursor.seek_first(txn, ReadMode::Snapshot).unwrap();
            cursor.valid()
        });
        assert_eq!(rows[0], rows[1], "round {round}: a row, and an entry for it");
    }
    assert!(refused > 0);
}

/// As in a parallel replica: `XA COMMIT` comes first in the binary log, so the server keeps the others' threads until it is over, but asks
/// for its place in the order after theirs.
#[expect(clippy::disallowed_methods, reason = "a thread that may never end")]
#[test]
fn a_commit_by_name_waits_for_no_thread_of_an_ordered_commit() {
    let (_, db, table) = world();
    let mut named = db.begin();
    put(&mut named, &table, "a", "1");
    named.prepare(b"A").unwrap();
    named.detach();
    let mut ordered = db.begin();
    ["b", "c"].iter().for_each(|key| put(&mut ordered, &table, key, "1"));
    ordered.prepare(b"B").unwrap();
    ordered.commit_ordered(true);
    // Neither does one that comes after it, nor a snapshot.
    let mut later = db.begin();
    put(&mut later, &table, "d", "1");
    let (over, is_over) = std::sync::mpsc::channel();
    for commit in [
        Box::new({
            let db = db.clone();
            move || assert!(db.commit_by_xid(b"A").unwrap())
        }) as Box<dyn FnOnce() + Send>,
        Box::new(move || later.commit().unwrap()),
    ] {
        let over = over.clone();
        std::thread::spawn(move || {
            commit();
            over.send(()).unwrap();
        });
        is_over.recv_timeout(std::time::Duration::from_secs(60)).expect("it is over");
    }
    // Its locks stay until its own thread comes.
    assert!(is_locked(&db, 0, "b") && !is_locked(&db, 0, "a"));
    assert_eq!(count(&db, T).unwrap(), 4);
    ordered.commit().unwrap();
    assert!(!is_locked(&db, 0, "b"));
    assert_eq!(count(&db, T).unwrap(), 4);
}

/// Threads that bring in the records of others, and these themselves, at the same time.
#[test]
fn ordered_commits_come_in_once_whoever_brings_them() {
    let (_, db, table) = world();
    for round in 0..200 {
        let mut named = db.begin();
        put(&mut named, &table, &format!("a{round}"), "1");
        named.prepare(b"A").unwrap();
        named.detach();
        let mut ordered: Vec<_> = (0..3).map(|_| db.begin()).collect();
        for (number, txn) in ordered.iter_mut().enumerate() {
            (0..20).for_each(|key| put(txn, &table, &format!("{number}-{round}-{key}"), "1"));
            txn.prepare(format!("B{number}").as_bytes()).unwrap();
            txn.commit_ordered(true);
        }
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(db.commit_by_xid(b"A").unwrap()));
            for mut txn in ordered {
                scope.spawn(move || {
                    if round % 2 == 0 {
                        std::thread::sleep(std::time::Duration::from_millis(round % 8));
                    }
                    txn.commit().unwrap();
                });
            }
        });
        assert_eq!(count(&db, T).unwrap(), (round as u32 + 1) * 61);
    }
    db.checkpoint().unwrap();
}
