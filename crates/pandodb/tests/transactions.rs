//! What one transaction may rely on: locks that are really held, rows written whole or not at all, cursors
//! that do not meet their own writes, unique keys that stay unique whoever comes at the same time.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use common::{count, disk, fill, open, options, spec, Lines};
use pando_storage::vfs::FaultKind;
use pandodb::{Cursor, Db, Entry, Error, LockMode, LockWait, LockedRead, ReadMode, Table, Txn, Vfs};

fn database() -> (Arc<Db>, Arc<Table>) {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    let table = db.open_table("./db/a").unwrap();
    (db, table)
}

fn entry<'a>(key: &'a [u8], value: &'a [u8], unique: bool) -> Entry<'a> {
    Entry { key, value, unique }
}

#[test]
fn a_write_that_passes_locked_rows_by_is_refused_and_not_done_without_the_lock() {
    let (db, table) = database();
    let (mut one, mut two) = (db.begin(), db.begin());
    one.put(&table, 0, b"k", b"one", LockWait::NoWait).unwrap();
    for result in [
        two.put(&table, 0, b"k", b"two", LockWait::SkipLocked),
        two.delete(&table, 0, b"k", LockWait::SkipLocked),
    ] {
        assert!(matches!(result, Err(Error::WouldBlock)), "{result:?}");
    }
    assert!(!two.has_writes());
    one.commit().unwrap();
    assert_eq!(two.get(&table, 0, b"k").unwrap().as_deref(), Some(&b"one"[..]));
}

#[test]
fn a_row_with_an_entry_that_is_too_long_leaves_none_of_its_entries() {
    let (db, table) = database();
    let mut txn = db.begin();
    let long = vec![b'x'; 100_000];
    let refused = txn.insert_row(&table, &[entry(b"k", b"v", true), entry(&long, b"", false)]);
    assert!(matches!(refused, Err(Error::Engine(_))), "{refused:?}");
    assert!(!txn.has_writes(), "half a row is left");
    let old = [entry(b"k", b"v", true), entry(b"i", b"", false)];
    txn.insert_row(&table, &old).unwrap();
    let refused = txn.update_row(&table, &old, &[entry(b"l", b"v", true), entry(&long, b"", false)]);
    assert!(matches!(refused, Err(Error::Engine(_))), "{refused:?}");
    txn.commit().unwrap();
    assert_eq!(count(&db, "./db/a").unwrap(), 1);
    assert_eq!(db.begin().get(&table, 0, b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_scan_that_moves_the_rows_it_reads_meets_each_once() {
    let (db, table) = database();
    let mut txn = db.begin();
    for n in 0..500u32 {
        let (id, place) = (n.to_be_bytes(), n.to_be_bytes());
        txn.insert_row(&table, &[entry(&id, &place, true), entry(&place, &id, false)]).unwrap();
        if n == 250 {
            txn.commit().unwrap();
        }
    }
    for forward in [true, false] {
        let mut cursor = txn.cursor(&table, 1);
        if forward {
            cursor.seek_first(&mut txn, ReadMode::Latest).unwrap();
        } else {
            cursor.seek_last(&mut txn, ReadMode::Latest).unwrap();
        }
        let mut met = 0;
        while cursor.valid() {
            let (place, id) = (cursor.key().to_vec(), cursor.value().to_vec());
            let number = u32::from_be_bytes(place[..4].try_into().unwrap());
            let to = if forward { number + 777 } else { number - 777 }.to_be_bytes();
            let old = [entry(&id, &place, true), entry(&place, &id, false)];
            txn.update_row(&table, &old, &[entry(&id, &to, true), entry(&to, &id, false)]).unwrap();
            met += 1;
            if forward {
                cursor.next(&mut txn).unwrap();
            } else {
                cursor.prev(&mut txn).unwrap();
            }
        }
        assert_eq!(met, 500);
    }
    txn.commit().unwrap();
    assert_eq!(count(&db, "./db/a").unwrap(), 500);
}

#[test]
fn a_commit_waits_for_the_sync_unless_its_transaction_does_without() {
    let (db, table) = database();
    let mut txn = db.begin();
    for (is_synced, syncs) in [(true, 1), (false, 0), (true, 1)] {
        let before = db.metrics().log_syncs.get();
        txn.set_synced(is_synced);
        txn.put(&table, 0, b"k", b"v", LockWait::NoWait).unwrap();
        txn.commit().unwrap();
        assert_eq!(db.metrics().log_syncs.get() - before, syncs, "synced: {is_synced}");
    }
}

#[test]
fn an_unlocked_row_is_free_unless_it_was_locked_before_or_written() {
    let (db, table) = database();
    let mut txn = db.begin();
    for key in [b"a", b"b", b"c"] {
        txn.put(&table, 0, key, b"v", LockWait::NoWait).unwrap();
    }
    txn.commit().unwrap();
    let free = |key: &[u8], mode| {
        let read = db.begin().get_locked(&table, 0, key, mode, LockWait::NoWait);
        assert!(matches!(read, Ok(LockedRead::Row(_)) | Err(Error::WouldBlock)));
        read.is_ok()
    };
    txn.get_locked(&table, 0, b"a", LockMode::Exclusive, LockWait::NoWait).unwrap();
    assert!(txn.just_locked());
    txn.unlock(&table, 0, b"a");
    assert!(free(b"a", LockMode::Exclusive));

    // Shared by an earlier statement; this one's upgrade alone is undone.
    txn.get_locked(&table, 0, b"b", LockMode::Shared, LockWait::NoWait).unwrap();
    txn.get_locked(&table, 0, b"b", LockMode::Exclusive, LockWait::NoWait).unwrap();
    assert!(txn.just_locked());
    txn.unlock(&table, 0, b"b");
    assert!(free(b"b", LockMode::Shared) && !free(b"b", LockMode::Exclusive));

    // A write that a rollback to a mark has undone leaves the lock (as in InnoDB).
    let mark = txn.mark();
    txn.put(&table, 0, b"c", b"w", LockWait::NoWait).unwrap();
    txn.rollback_to(mark).unwrap();
    txn.get_locked(&table, 0, b"c", LockMode::Exclusive, LockWait::NoWait).unwrap();
    assert!(!txn.just_locked());
    assert!(!free(b"c", LockMode::Shared));
}

#[test]
fn a_lock_of_a_row_that_is_not_read_is_that_of_a_read() {
    let (db, table) = database();
    let mut txn = db.begin();
    for key in [b"a", b"b", b"c"] {
        txn.put(&table, 0, key, b"v", LockWait::NoWait).unwrap();
    }
    txn.commit().unwrap();
    let lock = |txn: &mut Txn, key: &[u8], mode, wait| txn.lock_existing(&table, 0, key, mode, wait);
    let (shared, exclusive) = (LockMode::Shared, LockMode::Exclusive);
    assert!(matches!(lock(&mut txn, b"a", shared, LockWait::NoWait), Ok(Some(true))) && txn.just_locked());
    let mut other = db.begin();
    assert!(matches!(lock(&mut other, b"a", shared, LockWait::NoWait), Ok(Some(true))));
    assert!(matches!(lock(&mut other, b"a", exclusive, LockWait::NoWait), Err(Error::WouldBlock)));
    assert!(matches!(lock(&mut other, b"a", exclusive, LockWait::SkipLocked), Ok(None)));

    // The newest of others, whatever the snapshot; then the own.
    other.rollback();
    assert_eq!(other.get(&table, 0, b"b").unwrap().as_deref(), Some(&b"v"[..]));
    txn.delete(&table, 0, b"b", LockWait::NoWait).unwrap();
    txn.put(&table, 0, b"n", b"v", LockWait::NoWait).unwrap();
    assert!(matches!(lock(&mut txn, b"b", shared, LockWait::NoWait), Ok(Some(false))));
    assert!(matches!(lock(&mut txn, b"n", shared, LockWait::NoWait), Ok(Some(true))));
    txn.commit().unwrap();
    assert!(matches!(lock(&mut other, b"b", shared, LockWait::NoWait), Ok(Some(false))));
    assert!(matches!(lock(&mut other, b"n", shared, LockWait::NoWait), Ok(Some(true))));
    let mark = other.mark();
    other.delete(&table, 0, b"n", LockWait::NoWait).unwrap();
    assert!(matches!(lock(&mut other, b"n", exclusive, LockWait::NoWait), Ok(Some(false))));
    other.rollback_to(mark).unwrap();
    assert!(matches!(lock(&mut other, b"n", exclusive, LockWait::NoWait), Ok(Some(true))));

    // A key without a row stays locked only for who takes gaps.
    assert!(lock(&mut txn, b"b", exclusive, LockWait::NoWait).is_ok());
    txn.set_takes_gaps(true);
    assert!(matches!(lock(&mut txn, b"x", shared, LockWait::NoWait), Ok(Some(false))));
    assert!(matches!(lock(&mut other, b"x", exclusive, LockWait::NoWait), Err(Error::WouldBlock)));
    txn.commit().unwrap();
    assert!(matches!(lock(&mut other, b"x", exclusive, LockWait::NoWait), Ok(Some(false))));
}

#[test]
fn an_entry_says_how_its_locked_row_is_if_nothing_was_written_since_it_was_read() {
    let (db, table) = database();
    let mut one = db.begin();
    for (row, entry) in [(b"a", b"1a"), (b"b", b"1b"), (b"c", b"1c"), (b"d", b"1d")] {
        one.put(&table, 0, row, b"v", LockWait::NoWait).unwrap();
        one.put(&table, 1, entry, b"", LockWait::NoWait).unwrap();
    }
    one.commit().unwrap();
    let is_free = |row: &[u8]| {
        let outcome = db.begin().get_locked(&table, 0, row, LockMode::Exclusive, LockWait::NoWait);
        !matches!(outcome, Err(Error::WouldBlock))
    };
    let mut two = db.begin();
    let mode = ReadMode::Locked(LockMode::Shared, LockWait::NoWait);
    let mut cursor = two.cursor(&table, 1);
    cursor.seek_first(&mut two, mode).unwrap();
    assert_eq!(cursor.key(), b"1a");
    assert!(cursor.lock_row(&mut two, b"a").unwrap());
    assert!(two.just_locked() && !is_free(b"a"));

    // Another has moved the row since the entry was read: no lock is left behind.
    cursor.next(&mut two).unwrap();
    assert_eq!(cursor.key(), b"1b");
    one.put(&table, 0, b"b", b"w", LockWait::NoWait).unwrap();
    one.delete(&table, 1, b"1b", LockWait::NoWait).unwrap();
    one.put(&table, 1, b"2b", b"", LockWait::NoWait).unwrap();
    assert!(matches!(cursor.lock_row(&mut two, b"b"), Err(Error::WouldBlock)));
    one.commit().unwrap();
    assert!(!cursor.lock_row(&mut two, b"b").unwrap());
    assert!(is_free(b"b"));

    // The next step sees the newest state. A row that this transaction has written itself is read.
    cursor.next(&mut two).unwrap();
    assert!(cursor.key() == b"1c" && cursor.lock_row(&mut two, b"c").unwrap());
    two.put(&table, 0, b"d", b"mine", LockWait::NoWait).unwrap();
    cursor.next(&mut two).unwrap();
    assert!(cursor.key() == b"1d" && !cursor.lock_row(&mut two, b"d").unwrap());
    cursor.next(&mut two).unwrap();
    assert!(cursor.key() == b"2b" && cursor.lock_row(&mut two, b"b").unwrap());

    // Who keeps gaps keeps the row, too.
    one.set_takes_gaps(true);
    let mut cursor = one.cursor(&table, 1);
    cursor.seek(&mut one, b"1c", mode).unwrap();
    let mut other = db.begin();
    other.put(&table, 1, b"0", b"", LockWait::NoWait).unwrap();
    other.commit().unwrap();
    assert!(!cursor.lock_row(&mut one, b"c").unwrap());
    two.rollback();
    assert!(!is_free(b"c") && is_free(b"a"));
}

#[test]
fn a_cursor_that_peeks_gives_rows_of_others_as_they_were_last_committed() {
    let (db, table) = database();
    let mut one = db.begin();
    for key in [b"a", b"b", b"c", b"d"] {
        one.put(&table, 0, key, b"old", LockWait::NoWait).unwrap();
    }
    one.commit().unwrap();
    one.put(&table, 0, b"b", b"mine", LockWait::NoWait).unwrap();
    one.delete(&table, 0, b"c", LockWait::NoWait).unwrap();
    one.put(&table, 0, b"c2", b"mine", LockWait::NoWait).unwrap();
    let mut two = db.begin();
    let mode = ReadMode::Locked(LockMode::Exclusive, LockWait::Peek);
    let mut cursor = two.cursor(&table, 0);
    let mut met = Vec::new();
    cursor.seek_first(&mut two, mode).unwrap();
    while cursor.valid() {
        met.push((cursor.key().to_vec(), cursor.value().to_vec(), cursor.is_peek(), cursor.just_locked()));
        if met.len() == 1 {
            // Committed after the cursor's seek, and locked again.
            one.commit().unwrap();
            one.put(&table, 0, b"b", b"not this", LockWait::NoWait).unwrap();
            one.put(&table, 0, b"c", b"nor this", LockWait::NoWait).unwrap();
        }
        cursor.next(&mut two).unwrap();
    }
    let row = |key: &[u8], value: &[u8], peek: bool| (key.to_vec(), value.to_vec(), peek, !peek);
    let expected = [
        row(b"a", b"old", false),
        row(b"b", b"mine", true),
        row(b"c2", b"mine", false),
        row(b"d", b"old", false),
    ];
    assert_eq!(met, expected);
    one.rollback();
    let read = two.get_locked(&table, 0, b"b", LockMode::Exclusive, LockWait::NoWait);
    assert!(matches!(read, Ok(LockedRead::Row(_))), "{read:?}");
}

#[test]
fn who_waited_for_a_row_that_is_gone_does_not_meet_what_it_has_moved_on() {
    let (db, table) = database();
    let mut one = db.begin();
    for key in [b"a1", b"a2", b"a3", b"a4"] {
        one.put(&table, 0, key, b"v", LockWait::NoWait).unwrap();
    }
    one.commit().unwrap();
    one.delete(&table, 0, b"a3", LockWait::NoWait).unwrap();
    one.put(&table, 0, b"a5", b"new", LockWait::NoWait).unwrap();
    let mut two = db.begin();
    let mut cursor = two.cursor(&table, 0);
    cursor.seek_first(&mut two, ReadMode::Locked(LockMode::Exclusive, LockWait::Peek)).unwrap();
    for _ in 0..2 {
        // What an UPDATE of the key does.
        let key = cursor.key().to_vec();
        assert!(!cursor.is_peek());
        two.delete(&table, 0, &key, LockWait::NoWait).unwrap();
        two.put(&table, 0, &[b"b", &key[1..]].concat(), b"moved", LockWait::NoWait).unwrap();
        cursor.next(&mut two).unwrap();
    }
    assert_eq!((cursor.key(), cursor.is_peek()), (&b"a3"[..], true));
    one.commit().unwrap();
    cursor.wait_for_peeked(&mut two, LockWait::Default).unwrap();
    let mut met = Vec::new();
    while cursor.valid() {
        met.push((cursor.key().to_vec(), cursor.is_peek(), cursor.just_locked()));
        cursor.next(&mut two).unwrap();
    }
    assert_eq!(met, [(b"a4".to_vec(), false, true), (b"a5".to_vec(), false, true)]);
}

#[test]
fn a_cursor_that_met_an_error_is_at_no_row_until_it_seeks_again() {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    fill(&db, "./db/a", 0..3000).unwrap();
    db.run_jobs().unwrap();
    db.close().unwrap();
    drop(db);
    for forward in [true, false] {
        let db = open(&vfs).unwrap();
        let table = db.open_table("./db/a").unwrap();
        let mut txn = db.begin();
        let mut cursor = txn.cursor(&table, 0);
        let seek = |cursor: &mut Cursor, txn: &mut Txn| match forward {
            true => cursor.seek_first(txn, ReadMode::Snapshot),
            false => cursor.seek_last(txn, ReadMode::Snapshot),
        };
        seek(&mut cursor, &mut txn).unwrap();
        vfs.fail_io_after(1, FaultKind::Error);
        let error = loop {
            assert!(cursor.valid(), "the fault was not met");
            let moved = if forward { cursor.next(&mut txn) } else { cursor.prev(&mut txn) };
            if let Err(error) = moved {
                break error;
            }
        };
        assert!(matches!(error, Error::Engine(_)), "{error}");
        assert!(!cursor.valid());
        seek(&mut cursor, &mut txn).unwrap();
        let mut rows = 0;
        while cursor.valid() {
            rows += 1;
            if forward {
                cursor.next(&mut txn).unwrap()
            } else {
                cursor.prev(&mut txn).unwrap()
            }
        }
        assert_eq!(rows, 3000);
    }
}

#[test]
fn a_locking_scan_meets_a_row_that_was_moved_ahead_of_it() {
    for forward in [true, false] {
        let (db, table) = database();
        let mut txn = db.begin();
        let row = |n: u32| (n.to_be_bytes(), format!("row {n}").into_bytes());
        for n in 100..110 {
            let (key, value) = row(n);
            txn.insert_row(&table, &[entry(&key, &value, true), entry(&key, b"", false)]).unwrap();
        }
        txn.commit().unwrap();

        let mut scan = db.begin();
        let mode = ReadMode::Locked(LockMode::Exclusive, LockWait::NoWait);
        let mut cursor = scan.cursor(&table, 0);
        if forward {
            cursor.seek_first(&mut scan, mode).unwrap();
        } else {
            cursor.seek_last(&mut scan, mode).unwrap();
        }
        // Another moves a row from before the scan's eyes to behind the last one.
        let (from, to) = if forward { (105, 200) } else { (105, 50) };
        let ((old, value), (new, _)) = (row(from), row(to));
        let index = [entry(&old, &value, true), entry(&old, b"", false)];
        txn.update_row(&table, &index, &[entry(&new, &value, true), entry(&new, b"", false)]).unwrap();
        txn.commit().unwrap();

        let mut met = Vec::new();
        while cursor.valid() {
            met.push(String::from_utf8(cursor.value().to_vec()).unwrap());
            if forward {
                cursor.next(&mut scan).unwrap()
            } else {
                cursor.prev(&mut scan).unwrap()
            }
        }
        met.sort();
        let all: Vec<String> = (100..110).map(|n| format!("row {n}")).collect();
        assert_eq!(met, all, "forward: {forward}");
    }
}

#[test]
fn of_many_that_insert_the_same_unique_key_one_wins() {
    const THREADS: u32 = 32;
    const KEYS: u32 = 100;
    let vfs = disk(1);
    let mut options = options(&Lines::default());
    options.background_threads = 2;
    let db = Db::open_with_vfs(options, vfs.clone(), vfs).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    let table = db.open_table("./db/a").unwrap();
    let (start, inserted) = (Barrier::new(THREADS as usize), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, table, start, inserted) = (&db, &table, &start, &inserted);
            scope.spawn(move || {
                let mut txn = db.begin();
                start.wait();
                for n in 0..KEYS {
                    // Row keys differ, the unique key of the index is the same.
                    let (id, unique) = ((n * THREADS + thread).to_be_bytes(), n.to_be_bytes());
                    match txn.insert_row(table, &[entry(&id, b"v", true), entry(&unique, &id, true)]) {
                        Ok(()) => {
                            txn.commit().unwrap();
                            inserted.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(Error::Duplicate { index: 1, existing }) => {
                            assert_eq!(u32::from_be_bytes(existing.try_into().unwrap()) / THREADS, n);
                            txn.rollback();
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    assert_eq!(inserted.load(Ordering::Relaxed), KEYS);
    assert_eq!(count(&db, "./db/a").unwrap(), KEYS);
    db.abandon();
}

#[test]
fn the_time_of_the_last_change_is_that_of_a_commit_of_the_table() {
    let (db, table) = database();
    let changed = || table.info(false).unwrap().changed;
    assert_eq!(changed(), 0);
    let mut txn = db.begin();
    txn.put(&table, 0, b"k", b"v", LockWait::NoWait).unwrap();
    txn.rollback();
    assert_eq!(changed(), 0);
    fill(&db, "./db/a", 0..1).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!((now - 60..=now).contains(&changed()), "{}, now {now}", changed());
}

/// Another one has inserted a row since the snapshot. The transaction changes it, not its key in the index, and then
/// its reads by the index must meet it, as those by the rows do.
#[test]
fn a_row_newer_than_the_snapshot_is_found_by_the_index_once_the_transaction_has_changed_it() {
    let (db, table) = database();
    let row = |value: &'static [u8]| [entry(b"k", value, true), entry(b"i", b"", false)];
    let mut txn = db.begin();
    txn.open_snapshot();
    let mut other = db.begin();
    other.insert_row(&table, &row(b"theirs")).unwrap();
    assert!(!other.is_newer_than_snapshot(&table, b"k").unwrap(), "it has no snapshot");
    other.commit().unwrap();
    let found = |txn: &mut Txn, index: usize, key: &[u8]| {
        let mut cursor = txn.cursor(&table, index);
        cursor.seek_first(txn, ReadMode::Snapshot).unwrap();
        (cursor.valid(), txn.get(&table, index, key).unwrap().is_some())
    };
    assert_eq!(found(&mut txn, 0, b"k"), (false, false));
    assert_eq!(found(&mut txn, 1, b"i"), (false, false));
    txn.get_locked(&table, 0, b"k", LockMode::Exclusive, LockWait::NoWait).unwrap();
    assert!(txn.is_newer_than_snapshot(&table, b"k").unwrap());
    txn.update_newer_row(&table, &row(b"theirs"), &row(b"ours")).unwrap();
    assert!(!txn.is_newer_than_snapshot(&table, b"k").unwrap(), "it is its own now");
    assert!(txn.has_written(&table, 0, b"k").unwrap() && !txn.has_written(&table, 0, b"l").unwrap());
    assert_eq!(found(&mut txn, 0, b"k"), (true, true));
    assert_eq!(found(&mut txn, 1, b"i"), (true, true));
    txn.commit().unwrap();
    assert_eq!(count(&db, "./db/a").unwrap(), 1);
}

#[test]
fn a_row_in_the_way_of_an_insert_is_shared_unless_it_is_to_change() {
    let (db, table) = database();
    let row = |value: &'static [u8]| [entry(b"k", value, true), entry(b"u", value, false)];
    let mut first = db.begin();
    first.insert_row(&table, &row(b"first")).unwrap();
    first.commit().unwrap();
    let is_met =
        |result| matches!(result, Err(Error::Duplicate { index: 0, existing }) if existing == b"first");
    let get = |txn: &mut Txn, mode| txn.get_locked(&table, 0, b"k", mode, LockWait::NoWait);

    let [mut one, mut two] = [db.begin(), db.begin()];
    two.set_lock_wait(Duration::ZERO);
    assert!(is_met(one.insert_row(&table, &row(b"one"))) && is_met(two.insert_row(&table, &row(b"two"))));
    assert!(matches!(two.insert_row_or_lock(&table, &row(b"two")), Err(Error::LockTimeout)));
    assert!(matches!(get(&mut two, LockMode::Exclusive), Err(Error::WouldBlock)));
    one.rollback();
    assert!(is_met(two.insert_row_or_lock(&table, &row(b"two"))));
    assert!(matches!(get(&mut one, LockMode::Shared), Err(Error::WouldBlock)));
    two.rollback();

    // Its own row in the way stays locked as it is.
    one.delete_row(&table, &row(b"first")).unwrap();
    one.insert_row(&table, &row(b"one")).unwrap();
    assert!(matches!(one.insert_row(&table, &row(b"two")), Err(Error::Duplicate { .. })));
    assert!(matches!(get(&mut two, LockMode::Shared), Err(Error::WouldBlock)));
    one.commit().unwrap();
    assert_eq!(two.get(&table, 0, b"k").unwrap().as_deref(), Some(&b"one"[..]));
}

/// All wait for a row that then is not inserted: each has shared its key, and none may be in the others' way.
#[test]
fn when_an_insert_is_rolled_back_one_of_those_who_waited_inserts_and_the_others_meet_it() {
    const WAITERS: usize = 4;
    let (db, table) = database();
    let mut first = db.begin();
    first.insert_row(&table, &[entry(b"k", b"first", true), entry(b"k", b"", false)]).unwrap();
    let waits = db.metrics().row_lock_waits.get();
    std::thread::scope(|scope| {
        let inserts = [(); WAITERS].map(|()| {
            scope.spawn(|| {
                let mut txn = db.begin();
                let row = [entry(b"k", b"next", true), entry(b"k", b"", false)];
                let result = txn.insert_row(&table, &row);
                match result {
                    Ok(()) => txn.commit().unwrap(),
                    Err(Error::Duplicate { .. }) => txn.rollback(),
                    Err(error) => panic!("{error}"),
                }
                usize::from(result.is_ok())
            })
        });
        while db.metrics().row_lock_waits.get() < waits + WAITERS as u64 {
            std::thread::yield_now();
        }
        first.rollback();
        assert_eq!(inserts.into_iter().map(|insert| insert.join().unwrap()).sum::<usize>(), 1);
    });
    assert_eq!(count(&db, "./db/a").unwrap(), 1);
}

/// Only a tick can help: nobody commits to the table any more.
#[test]
fn what_was_deleted_is_not_stepped_over_for_ever_though_nobody_writes() {
    let vfs: Arc<dyn Vfs> = disk(1);
    let mut options = options(&Lines::default());
    options.tree.memtable_bytes = 16 << 20;
    let db = Db::open_with_vfs(options, vfs.clone(), vfs).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    let table = db.open_table("./db/a").unwrap();
    let mut txn = db.begin();
    let rows: Vec<[u8; 4]> = (0..3000u32).map(u32::to_be_bytes).collect();
    for id in &rows {
        txn.insert_row(&table, &[entry(id, b"v", true), entry(id, b"", false)]).unwrap();
    }
    txn.commit().unwrap();
    for id in &rows[..2900] {
        txn.delete_row(&table, &[entry(id, b"v", true), entry(id, b"", false)]).unwrap();
    }
    txn.commit().unwrap();
    let read_first = || {
        let mut txn = db.begin();
        let mut cursor = txn.cursor(&table, 0);
        cursor.seek_first(&mut txn, ReadMode::Snapshot).unwrap();
        assert_eq!(cursor.key(), rows[2900]);
    };
    let written = || {
        db.tick();
        db.run_jobs().unwrap();
        db.metrics().memtable_written_bytes.get()
    };
    read_first();
    assert_eq!(written(), 0, "one reader is no reason");
    (0..100).for_each(|_| read_first());
    assert!(written() > 0);
    read_first();
    assert_eq!(count(&db, "./db/a").unwrap(), 100);
}
