//! Locking scans of transactions that take gaps: nobody inserts where they have been, and what others have
//! written and not committed is waited for.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{disk, open, spec};
use pandodb::{Cursor, Db, Entry, Error, LockKind, LockMode, LockWait, LockedRead, ReadMode, Table, Txn};

const SHARED: ReadMode = ReadMode::Locked(LockMode::Shared, LockWait::Default);

/// Rows with these ids; the index entry of row `id` is `id` as well, until it is moved.
fn database(ids: &[u32]) -> (Arc<Db>, Arc<Table>) {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    let table = db.open_table("./db/a").unwrap();
    let mut txn = db.begin();
    for id in ids {
        insert(&mut txn, &table, *id).unwrap();
    }
    txn.commit().unwrap();
    (db, table)
}

fn begin(db: &Arc<Db>) -> Txn {
    let mut txn = db.begin();
    txn.set_takes_gaps(true);
    txn
}

fn entries<'a>(id: &'a [u8], place: &'a [u8]) -> [Entry<'a>; 2] {
    [Entry { key: id, value: place, unique: true }, Entry { key: place, value: id, unique: false }]
}

fn insert(txn: &mut Txn, table: &Table, id: u32) -> pandodb::Result<()> {
    let id = id.to_be_bytes();
    txn.insert_row(table, &entries(&id, &id))
}

/// What the scan of a dictionary from `from` up to `stop` gives.
fn scan_up(
    txn: &mut Txn,
    table: &Arc<Table>,
    index: usize,
    from: u32,
    stop: Option<u32>,
) -> pandodb::Result<Vec<u32>> {
    let mut cursor = txn.cursor(table, index);
    cursor.set_stop(stop.map(u32::to_be_bytes).as_ref().map(<[u8; 4]>::as_slice));
    cursor.seek(txn, &from.to_be_bytes(), SHARED)?;
    rest(&mut cursor, txn, true)
}

fn rest(cursor: &mut Cursor, txn: &mut Txn, up: bool) -> pandodb::Result<Vec<u32>> {
    let mut keys = Vec::new();
    while cursor.valid() {
        keys.push(u32::from_be_bytes(cursor.key().try_into().unwrap()));
        if up {
            cursor.next(txn)?;
        } else {
            cursor.prev(txn)?;
        }
    }
    Ok(keys)
}

/// Whether an insert of `id` goes through at once. It is not committed.
fn is_free(db: &Arc<Db>, table: &Table, id: u32) -> bool {
    let mut txn = begin(db);
    txn.set_lock_wait(Duration::ZERO);
    match insert(&mut txn, table, id) {
        Ok(()) => true,
        Err(Error::LockTimeout) => false,
        other => panic!("{other:?}"),
    }
}

fn until_someone_waits(db: &Db) {
    while !db.locks().iter().any(|row| row.lock.waiting) {
        thread::yield_now();
    }
}

#[test]
fn a_scan_holds_the_gaps_up_to_its_stop_and_not_beyond() {
    for index in [0, 1] {
        let (db, table) = database(&[10, 20, 30, 40]);
        let mut txn = begin(&db);
        assert_eq!(scan_up(&mut txn, &table, index, 15, Some(35)).unwrap(), [20, 30]);
        for (id, free) in [(12, true), (15, false), (25, false), (34, false), (35, true), (41, true)] {
            assert_eq!(is_free(&db, &table, id), free, "{id} in dictionary {index}");
        }
        // Row 40 was not looked at: it is free too.
        let read =
            db.begin().get_locked(&table, 0, &40u32.to_be_bytes(), LockMode::Exclusive, LockWait::NoWait);
        assert!(matches!(read, Ok(LockedRead::Row(_))));
        txn.commit().unwrap();
        assert!(is_free(&db, &table, 25));
    }
}

#[test]
fn a_scan_holds_what_it_has_come_to_and_no_more() {
    let (db, table) = database(&[10, 20, 30]);
    let mut txn = begin(&db);
    let mut cursor = txn.cursor(&table, 0);
    cursor.seek(&mut txn, &5u32.to_be_bytes(), SHARED).unwrap();
    assert_eq!([4, 7, 15].map(|id| is_free(&db, &table, id)), [true, false, true]);
    cursor.next(&mut txn).unwrap();
    assert_eq!([15, 25].map(|id| is_free(&db, &table, id)), [false, true]);
    rest(&mut cursor, &mut txn, true).unwrap();
    assert_eq!([25, 31, u32::MAX].map(|id| is_free(&db, &table, id)), [false; 3]);
    assert_eq!(txn_ranges(&db), 1, "gaps that touch are one");
}

fn txn_ranges(db: &Db) -> usize {
    db.locks().iter().filter(|row| row.lock.kind == LockKind::Gap).count()
}

#[test]
fn a_scan_downwards_holds_its_gaps_too() {
    for index in [0, 1] {
        let (db, table) = database(&[10, 20, 30, 40]);
        let mut txn = begin(&db);
        let mut cursor = txn.cursor(&table, index);
        cursor.set_stop(Some(&15u32.to_be_bytes()));
        cursor.seek_before(&mut txn, &35u32.to_be_bytes(), SHARED).unwrap();
        assert_eq!([25, 32, 37].map(|id| is_free(&db, &table, id)), [true, false, true]);
        assert_eq!(rest(&mut cursor, &mut txn, false).unwrap(), [30, 20]);
        let free = [12, 14, 15, 25, 32, 35].map(|id| is_free(&db, &table, id));
        assert_eq!(free, [true, true, false, false, false, true], "dictionary {index}");
        cursor.set_stop(None);
        cursor.seek_last(&mut txn, SHARED).unwrap();
        assert_eq!(rest(&mut cursor, &mut txn, false).unwrap(), [40, 30, 20, 10]);
        assert_eq!([0, 12, 50].map(|id| is_free(&db, &table, id)), [false; 3]);
    }
}

#[test]
fn without_gaps_others_insert_freely() {
    let (db, table) = database(&[10, 20]);
    let mut txn = db.begin();
    assert_eq!(scan_up(&mut txn, &table, 0, 0, None).unwrap(), [10, 20]);
    assert!(is_free(&db, &table, 15) && is_free(&db, &table, 25));
    assert_eq!(txn_ranges(&db), 0);
}

#[test]
fn a_scan_waits_for_what_others_have_inserted_and_sees_it_if_they_commit() {
    for (index, commits) in [(0, true), (0, false), (1, true), (1, false)] {
        let (db, table) = database(&[10, 30]);
        let mut writer = begin(&db);
        insert(&mut writer, &table, 20).unwrap();
        let seen = thread::scope(|scope| {
            let scan = scope.spawn(|| scan_up(&mut begin(&db), &table, index, 0, None).unwrap());
            until_someone_waits(&db);
            if commits {
                writer.commit().unwrap();
            } else {
                writer.rollback();
            }
            scan.join().unwrap()
        });
        assert_eq!(seen, if commits { vec![10, 20, 30] } else { vec![10, 30] });
        let mut skipping = begin(&db);
        insert(&mut writer, &table, 25).unwrap();
        let mut cursor = skipping.cursor(&table, index);
        let skip = |wait| ReadMode::Locked(LockMode::Shared, wait);
        cursor.seek(&mut skipping, &21u32.to_be_bytes(), skip(LockWait::SkipLocked)).unwrap();
        assert_eq!(rest(&mut cursor, &mut skipping, true).unwrap(), [30]);
        let refused = cursor.seek(&mut skipping, &21u32.to_be_bytes(), skip(LockWait::NoWait));
        assert!(matches!(refused, Err(Error::WouldBlock)), "{refused:?}");
        assert!(!cursor.valid());
    }
}

/// A scan missed a row: it had come to one that was deleted meanwhile, and took the key for looked at, where
/// another transaction had already written a new row and not committed.
#[test]
fn a_scan_waits_for_a_row_that_takes_the_place_of_one_deleted_under_it() {
    for (index, up) in [(0, true), (0, false), (1, true), (1, false)] {
        let (db, table) = database(&[10, 20, 30]);
        let mut txn = begin(&db);
        txn.set_lock_wait(Duration::ZERO);
        let mut cursor = txn.cursor(&table, index);
        if up {
            cursor.seek(&mut txn, &5u32.to_be_bytes(), SHARED).unwrap();
        } else {
            cursor.seek_before(&mut txn, &35u32.to_be_bytes(), SHARED).unwrap();
        }
        let key = 20u32.to_be_bytes();
        let mut deleter = begin(&db);
        let read = deleter.get_locked(&table, 0, &key, LockMode::Exclusive, LockWait::Default);
        assert!(matches!(read, Ok(LockedRead::Row(_))));
        deleter.delete_row(&table, &entries(&key, &key)).unwrap();
        deleter.commit().unwrap();
        let mut inserter = begin(&db);
        insert(&mut inserter, &table, 20).unwrap();
        // The cursor's view still has the old row.
        let moved = if up { cursor.next(&mut txn) } else { cursor.prev(&mut txn) };
        assert!(matches!(moved, Err(Error::LockTimeout)), "dictionary {index}: {moved:?}");
        inserter.commit().unwrap();
        let seen = scan_up(&mut txn, &table, index, 5, None).unwrap();
        assert_eq!(seen, [10, 20, 30]);
    }
}

#[test]
fn without_gaps_a_scan_waits_all_the_same_and_keeps_nothing_that_it_waited_for() {
    for (index, up) in [(0, true), (0, false), (1, true), (1, false)] {
        let (db, table) = database(&[10, 30]);
        let mut writer = db.begin();
        insert(&mut writer, &table, 20).unwrap();
        let mut scanner = db.begin();
        let mut cursor = scanner.cursor(&table, index);
        let seen = thread::scope(|scope| {
            let scan = scope.spawn(|| {
                match up {
                    true => cursor.seek_first(&mut scanner, SHARED).unwrap(),
                    false => cursor.seek_last(&mut scanner, SHARED).unwrap(),
                }
                rest(&mut cursor, &mut scanner, up).unwrap()
            });
            until_someone_waits(&db);
            writer.commit().unwrap();
            scan.join().unwrap()
        });
        assert_eq!(seen, if up { [10, 20, 30] } else { [30, 20, 10] }, "dictionary {index}");
        assert_eq!(txn_ranges(&db), 0);
        // Rows are locked, entries are not.
        assert_eq!(db.locks().len(), if index == 0 { 3 } else { 0 });
    }
}

/// A scan of a unique key passed over a row: while it waited for the row that the key named, another one got the key.
#[test]
fn a_unique_key_that_went_to_another_row_is_met_when_it_is_read_again() {
    for (takes_gaps, up) in [(true, true), (true, false), (false, true), (false, false)] {
        let (db, table) = database(&[]);
        let insert = |txn: &mut Txn, id: u32, place: u32| {
            let (id, place) = (id.to_be_bytes(), place.to_be_bytes());
            txn.insert_row(&table, &entries(&id, &place).map(|entry| Entry { unique: true, ..entry }))
        };
        let mut txn = db.begin();
        for (id, place) in [(10, 1), (20, 2), (30, 3)] {
            insert(&mut txn, id, place).unwrap();
        }
        txn.commit().unwrap();
        let mut scanner = db.begin();
        scanner.set_takes_gaps(takes_gaps);
        let mut cursor = scanner.cursor(&table, 1);
        match up {
            true => cursor.seek(&mut scanner, &2u32.to_be_bytes(), SHARED).unwrap(),
            false => cursor.seek_before(&mut scanner, &3u32.to_be_bytes(), SHARED).unwrap(),
        }
        let at = |cursor: &Cursor| (cursor.key().to_vec(), cursor.value().to_vec());
        let entry = |place: u32, id: u32| (place.to_be_bytes().to_vec(), id.to_be_bytes().to_vec());
        assert_eq!(at(&cursor), entry(2, 20));
        cursor.read_again(&mut scanner).unwrap();
        assert_eq!(at(&cursor), entry(2, 20), "nothing has changed");
        for (id, new) in [(20u32, Some(100)), (100, Some(5)), (5, None)] {
            let mut mover = db.begin();
            mover.delete_row(&table, &entries(&id.to_be_bytes(), &2u32.to_be_bytes())).unwrap();
            if let Some(new) = new {
                insert(&mut mover, new, 2).unwrap();
            }
            mover.commit().unwrap();
            cursor.read_again(&mut scanner).unwrap();
            let next = if up { entry(3, 30) } else { entry(1, 10) };
            assert_eq!(at(&cursor), new.map_or(next, |new| entry(2, new)));
        }
    }
}

#[test]
fn a_moved_entry_waits_for_the_gap_it_would_come_into() {
    let (db, table) = database(&[10, 20, 90]);
    let mut scanner = begin(&db);
    assert_eq!(scan_up(&mut scanner, &table, 1, 5, Some(30)).unwrap(), [10, 20]);
    let mut mover = begin(&db);
    mover.set_lock_wait(Duration::ZERO);
    let id = 90u32.to_be_bytes();
    let (into, beyond) = (15u32.to_be_bytes(), 35u32.to_be_bytes());
    let refused = mover.update_row(&table, &entries(&id, &id), &entries(&id, &into));
    assert!(matches!(refused, Err(Error::LockTimeout)), "{refused:?}");
    assert!(!mover.has_writes());
    mover.update_row(&table, &entries(&id, &id), &entries(&id, &beyond)).unwrap();
}

#[test]
fn an_entry_is_protected_by_the_lock_of_its_row() {
    let (db, table) = database(&[10, 20]);
    let (id, to) = (10u32.to_be_bytes(), 99u32.to_be_bytes());
    let move_row = |txn: &mut Txn| txn.update_row(&table, &entries(&id, &id), &entries(&id, &to));
    // A scan of the index, which locks the row of each entry.
    let mut scanner = begin(&db);
    assert_eq!(scan_up(&mut scanner, &table, 1, 5, Some(15)).unwrap(), [10]);
    scanner.get_locked(&table, 0, &id, LockMode::Shared, LockWait::NoWait).unwrap();
    let mut mover = begin(&db);
    mover.set_lock_wait(Duration::ZERO);
    assert!(matches!(move_row(&mut mover), Err(Error::LockTimeout)));
    scanner.rollback();
    // The other way round: the entry is still there for the scan, its row is not to be had.
    move_row(&mut mover).unwrap();
    scanner.set_takes_gaps(true);
    assert_eq!(scan_up(&mut scanner, &table, 1, 5, Some(15)).unwrap(), [10]);
    let refused = scanner.get_locked(&table, 0, &id, LockMode::Shared, LockWait::NoWait);
    assert!(matches!(refused, Err(Error::WouldBlock)), "{refused:?}");
    // Where it has moved to, the scan waits.
    scanner.set_lock_wait(Duration::ZERO);
    assert!(matches!(scan_up(&mut scanner, &table, 1, 50, None), Err(Error::LockTimeout)));
}

#[test]
fn own_gaps_do_not_keep_one_from_inserting_and_rows_in_gaps_can_be_changed() {
    let (db, table) = database(&[10, 20]);
    let mut txn = begin(&db);
    scan_up(&mut txn, &table, 0, 12, Some(18)).unwrap();
    insert(&mut txn, &table, 15).unwrap();
    // A row of another that was there before the gap: changed, deleted, inserted again.
    let mut other = begin(&db);
    other.set_lock_wait(Duration::ZERO);
    let (key, value) = (20u32.to_be_bytes(), 20u32.to_be_bytes());
    let mut third = begin(&db);
    other.delete_row(&table, &entries(&key, &value)).unwrap();
    // The gap covers the key, and its holder would wait for the row.
    let mut cursor = third.cursor(&table, 0);
    third.set_lock_wait(Duration::ZERO);
    let refused = cursor.seek(&mut third, &19u32.to_be_bytes(), SHARED);
    assert!(matches!(refused, Err(Error::LockTimeout)), "{refused:?}");
    insert(&mut other, &table, 20).unwrap();
    other.put(&table, 0, &key, b"changed", LockWait::Default).unwrap();
}

#[test]
fn a_put_of_a_row_that_is_there_does_not_wait_for_gaps() {
    let (db, table) = database(&[10, 20]);
    let mut txn = begin(&db);
    let mut cursor = txn.cursor(&table, 0);
    // Passes the locked row by, but holds the gaps around it.
    let mut other = begin(&db);
    other.get_locked(&table, 0, &20u32.to_be_bytes(), LockMode::Exclusive, LockWait::NoWait).unwrap();
    let skip = ReadMode::Locked(LockMode::Shared, LockWait::SkipLocked);
    cursor.seek_first(&mut txn, skip).unwrap();
    assert_eq!(rest(&mut cursor, &mut txn, true).unwrap(), [10]);
    other.put(&table, 0, &20u32.to_be_bytes(), b"changed", LockWait::NoWait).unwrap();
    let refused = other.put(&table, 0, &21u32.to_be_bytes(), b"new", LockWait::NoWait);
    assert!(matches!(refused, Err(Error::WouldBlock)), "{refused:?}");
    other.commit().unwrap();
}

#[test]
fn who_waits_to_insert_does_not_hold_the_key_meanwhile() {
    // The holder of the gap inserts the same key: no deadlock, the other finds a duplicate.
    let (db, table) = database(&[10, 30]);
    let mut holder = begin(&db);
    scan_up(&mut holder, &table, 0, 12, Some(28)).unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(|| insert(&mut begin(&db), &table, 20));
        until_someone_waits(&db);
        insert(&mut holder, &table, 20).unwrap();
        holder.commit().unwrap();
        assert!(matches!(other.join().unwrap(), Err(Error::Duplicate { index: 0, .. })));
    });
}

#[test]
fn two_scanners_that_both_insert_are_a_deadlock() {
    let (db, table) = database(&[10, 30]);
    let (mut one, mut two) = (begin(&db), begin(&db));
    scan_up(&mut one, &table, 0, 12, Some(28)).unwrap();
    scan_up(&mut two, &table, 0, 12, Some(28)).unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(|| insert(&mut one, &table, 20));
        until_someone_waits(&db);
        let refused = insert(&mut two, &table, 21);
        assert!(matches!(refused, Err(Error::Deadlock)), "{refused:?}");
        two.rollback();
        first.join().unwrap().unwrap();
    });
    let deadlock = db.last_deadlock().unwrap();
    assert_eq!(deadlock.waits[0].1.table, "./db/a".trim_start_matches("./"));
    assert!(deadlock.waits.iter().all(|(_, lock)| lock.lock.kind == LockKind::Insert));
}

#[test]
fn a_key_without_a_row_is_locked_only_by_those_who_take_gaps() {
    let (db, table) = database(&[10]);
    for takes_gaps in [true, false] {
        let mut txn = db.begin();
        txn.set_takes_gaps(takes_gaps);
        let read = txn.get_locked(&table, 0, &11u32.to_be_bytes(), LockMode::Shared, LockWait::Default);
        assert_eq!(read.unwrap(), LockedRead::Absent);
        assert_eq!(is_free(&db, &table, 11), !takes_gaps);
        assert!(is_free(&db, &table, 12), "only the key, no gap");
    }
}

#[test]
fn what_a_statement_has_deleted_stays_deleted_when_its_scan_looks_again() {
    // The look at the newest state begins where the gap began: before own deletes that were passed already.
    let (db, table) = database(&[10, 20, 40]);
    let mut txn = begin(&db);
    let twenty = 20u32.to_be_bytes();
    txn.delete_row(&table, &entries(&twenty, &twenty)).unwrap();
    for index in [0, 1] {
        for up in [true, false] {
            let mut cursor = txn.cursor(&table, index);
            if up {
                cursor.seek(&mut txn, &15u32.to_be_bytes(), SHARED).unwrap();
            } else {
                cursor.seek_before(&mut txn, &45u32.to_be_bytes(), SHARED).unwrap();
            }
            // Others commit to the dictionary, far away.
            let mut other = db.begin();
            insert(&mut other, &table, 1000 + u32::from(up) + 2 * index as u32).unwrap();
            other.commit().unwrap_or_else(|error| panic!("{error:?}"));
            let seen = rest(&mut cursor, &mut txn, up).unwrap();
            assert!(!seen.contains(&20), "{seen:?}");
            assert!(seen.contains(&40), "{seen:?}");
            txn.unlock(&table, 0, &1u32.to_be_bytes());
            if up {
                return_gaps(&mut txn, &table);
            }
        }
    }
}

/// Ends the transaction and begins one that has deleted row 20 again.
fn return_gaps(txn: &mut Txn, table: &Table) {
    txn.rollback();
    txn.set_takes_gaps(true);
    let twenty = 20u32.to_be_bytes();
    txn.delete_row(table, &entries(&twenty, &twenty)).unwrap();
}
