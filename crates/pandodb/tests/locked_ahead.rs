//! Locking scans that lock many rows at once: what they hold, how much of it, and that nobody gets in between.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{disk, options, spec, Lines};
use pandodb::{Cursor, Db, Entry, Error, LockMode, LockWait, LockedRead, ReadMode, Table, Txn, Vfs};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const EXCLUSIVE: ReadMode = ReadMode::Locked(LockMode::Exclusive, LockWait::Default);
const START: i64 = 1000;

/// Rows 0, 10, 20 and so on, with so much money each.
fn database(rows: u32) -> (Arc<Db>, Arc<Table>) {
    database_with(rows, options(&Lines::default()).write_set_bytes)
}

/// The same; transactions spill what goes beyond so many bytes.
fn database_with(rows: u32, write_set_bytes: u64) -> (Arc<Db>, Arc<Table>) {
    let mut options = options(&Lines::default());
    options.write_set_bytes = write_set_bytes;
    let files: Arc<dyn Vfs> = disk(1);
    let db = Db::open_with_vfs(options, files.clone(), files).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    let table = db.open_table("./db/a").unwrap();
    let mut txn = db.begin();
    for row in 0..rows {
        insert(&mut txn, &table, row * 10, START).unwrap();
    }
    txn.commit().unwrap();
    (db, table)
}

fn begin(db: &Arc<Db>) -> Txn {
    let mut txn = db.begin();
    txn.set_takes_gaps(true);
    txn
}

fn entries<'a>(id: &'a [u8], money: &'a [u8]) -> [Entry<'a>; 2] {
    [Entry { key: id, value: money, unique: true }, Entry { key: id, value: b"", unique: false }]
}

fn insert(txn: &mut Txn, table: &Table, id: u32, money: i64) -> pandodb::Result<()> {
    txn.insert_row(table, &entries(&id.to_be_bytes(), &money.to_le_bytes()))
}

fn set(txn: &mut Txn, table: &Table, old: (u32, i64), new: (u32, i64)) -> pandodb::Result<()> {
    let (old_id, old_money) = (old.0.to_be_bytes(), old.1.to_le_bytes());
    let (new_id, new_money) = (new.0.to_be_bytes(), new.1.to_le_bytes());
    txn.update_row(table, &entries(&old_id, &old_money), &entries(&new_id, &new_money))
}

fn money_of(value: &[u8]) -> i64 {
    i64::from_le_bytes(value.try_into().unwrap())
}

/// What a scan that locks ahead gives, of so many rows at most.
fn scan(txn: &mut Txn, table: &Arc<Table>, most: usize) -> pandodb::Result<Vec<(u32, i64)>> {
    scan_with(txn, table, most, false)
}

fn scan_with(
    txn: &mut Txn,
    table: &Arc<Table>,
    most: usize,
    keeps_rows: bool,
) -> pandodb::Result<Vec<(u32, i64)>> {
    let mut cursor = txn.cursor(table, 0);
    cursor.allow_ahead(true, keeps_rows);
    cursor.seek_first(txn, EXCLUSIVE)?;
    let mut rows = Vec::new();
    while cursor.valid() {
        rows.push((u32::from_be_bytes(cursor.key().try_into().unwrap()), money_of(cursor.value())));
        if rows.len() == most {
            break;
        }
        cursor.next(txn)?;
    }
    Ok(rows)
}

/// Reads the rows of a range by a cursor that has been at others, of so many rows at most. Gives how many there were.
fn read_range(cursor: &mut Cursor, txn: &mut Txn, (from, to): (u32, u32), most: usize) -> usize {
    cursor.set_stop(Some(&to.to_be_bytes()));
    cursor.seek(txn, &from.to_be_bytes(), EXCLUSIVE).unwrap();
    let mut rows = 0;
    while cursor.valid() {
        assert_eq!(cursor.key(), (from + 10 * rows as u32).to_be_bytes());
        rows += 1;
        if rows == most {
            break;
        }
        cursor.next(txn).unwrap();
    }
    rows
}

/// Rows with these numbers.
fn dense_database(ids: impl Iterator<Item = u32>) -> (Arc<Db>, Arc<Table>) {
    let (db, table) = database(0);
    let mut txn = db.begin();
    ids.for_each(|id| insert(&mut txn, &table, id, START).unwrap());
    txn.commit().unwrap();
    (db, table)
}

/// In READ COMMITTED: inserts wait for no gaps, and ask for none.
fn is_free_to_insert_without_gaps(db: &Arc<Db>, table: &Table, id: u32) -> bool {
    let mut txn = db.begin();
    txn.set_lock_wait(Duration::ZERO);
    insert(&mut txn, table, id, 0).is_ok()
}

fn is_lockable(db: &Arc<Db>, table: &Table, id: u32) -> bool {
    let read = db.begin().get_locked(table, 0, &id.to_be_bytes(), LockMode::Shared, LockWait::NoWait);
    match read {
        Ok(_) => true,
        Err(Error::WouldBlock) => false,
        other => panic!("{other:?}"),
    }
}

fn is_free_to_insert(db: &Arc<Db>, table: &Table, id: u32) -> bool {
    let mut txn = begin(db);
    txn.set_lock_wait(Duration::ZERO);
    match insert(&mut txn, table, id, 0) {
        Ok(()) => true,
        Err(Error::LockTimeout | Error::WouldBlock) => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_scan_of_many_rows_holds_few_locks_and_excludes_others_from_all_of_it() {
    let (db, table) = database(3000);
    let mut txn = begin(&db);
    assert_eq!(scan(&mut txn, &table, usize::MAX).unwrap().len(), 3000);
    let metrics = db.metrics();
    assert!(metrics.rows_locked_ahead.get() > 2800, "{}", metrics.rows_locked_ahead.get());
    assert!(metrics.row_locks.get() < 200, "{}", metrics.row_locks.get());
    for id in [0, 630, 640, 650, 12_340, 29_990] {
        assert!(!is_lockable(&db, &table, id), "{id}");
        assert!(!is_free_to_insert(&db, &table, id + 5), "{id}");
    }
    txn.commit().unwrap();
    assert_eq!(db.metrics().row_locks.get(), 0);
    assert!(is_lockable(&db, &table, 12_340) && is_free_to_insert(&db, &table, 12_345));
}

#[test]
fn a_scan_that_ends_early_has_locked_about_as_much_as_it_read() {
    for (read, locked) in [(1, 1), (60, 60), (100, 140), (1000, 2100)] {
        let (db, table) = database(5000);
        let mut txn = begin(&db);
        assert_eq!(scan(&mut txn, &table, read).unwrap().len(), read);
        let held = (0..5000).filter(|row| !is_lockable(&db, &table, row * 10)).count();
        assert!((read..=locked).contains(&held), "{held} for {read}");
        assert!(is_free_to_insert(&db, &table, 10 * locked as u32 + 5));
    }
}

/// As the lookups of a join: the second range is locked as far as the first one went, and not beyond its end.
#[test]
fn who_went_to_the_end_of_a_range_locks_the_next_one_ahead() {
    let (db, table) = database(5000);
    let mut txn = begin(&db);
    let mut cursor = txn.cursor(&table, 0);
    cursor.allow_ahead(true, false);
    assert_eq!(read_range(&mut cursor, &mut txn, (0, 500), usize::MAX), 50);
    let ahead = || db.metrics().rows_locked_ahead.get();
    assert_eq!(ahead(), 0);
    assert_eq!(read_range(&mut cursor, &mut txn, (10_000, 10_500), usize::MAX), 50);
    assert_eq!(ahead(), 49);
    assert!(!is_lockable(&db, &table, 10_490) && is_lockable(&db, &table, 10_500));
    assert!(!is_free_to_insert(&db, &table, 10_495) && is_free_to_insert(&db, &table, 10_505));
    // A longer one: as many rows as the one before had.
    assert_eq!(read_range(&mut cursor, &mut txn, (20_000, 30_000), 3), 3);
    assert_eq!(ahead(), 99);
    assert!(!is_lockable(&db, &table, 20_500) && is_lockable(&db, &table, 20_510));
    // It was left before its end: of the next one nothing is expected.
    assert_eq!(read_range(&mut cursor, &mut txn, (40_000, 41_000), 3), 3);
    assert!(!is_lockable(&db, &table, 40_020) && is_lockable(&db, &table, 40_030));
    assert_eq!(ahead(), 99);
}

#[test]
fn without_gaps_rows_that_follow_one_another_are_locked_together_and_nothing_else_is() {
    // 1000 rows, a place for one, 1000 rows, and then only every second one.
    let ids = (0..1000).chain(1001..2001).chain((3000..4000).step_by(2));
    let (db, table) = dense_database(ids);
    let mut txn = db.begin();
    assert_eq!(scan_with(&mut txn, &table, usize::MAX, true).unwrap().len(), 2500);
    let metrics = db.metrics();
    assert!((1700..=2000).contains(&metrics.rows_locked_ahead.get()), "{}", metrics.rows_locked_ahead.get());
    assert!(metrics.row_locks.get() < 800, "{}", metrics.row_locks.get());
    for id in [0, 63, 64, 999, 1001, 1500, 2000, 3000, 3998] {
        assert!(!is_lockable(&db, &table, id), "{id}");
    }
    for id in [1000, 2001, 2999, 3001, 3997, 4000] {
        assert!(is_free_to_insert_without_gaps(&db, &table, id), "{id}");
    }
    txn.commit().unwrap();
    assert_eq!(db.metrics().row_locks.get(), 0);
    assert!(is_lockable(&db, &table, 500));
}

#[test]
fn without_gaps_who_may_give_rows_back_locks_them_one_by_one() {
    let (db, table) = dense_database(0..1000);
    let mut txn = db.begin();
    assert_eq!(scan(&mut txn, &table, usize::MAX).unwrap().len(), 1000);
    assert_eq!(db.metrics().rows_locked_ahead.get(), 0);
    assert_eq!(db.metrics().row_locks.get(), 1000);
}

#[test]
fn without_gaps_what_others_hold_or_have_written_is_waited_for() {
    let (db, table) = dense_database(0..1000);
    let mut other = db.begin();
    other.get_locked(&table, 0, &700u32.to_be_bytes(), LockMode::Shared, LockWait::Default).unwrap();
    let mut txn = db.begin();
    txn.set_lock_wait(Duration::ZERO);
    assert!(matches!(scan_with(&mut txn, &table, usize::MAX, true), Err(Error::LockTimeout)));
    txn.rollback();
    set(&mut other, &table, (700, START), (700, 1)).unwrap();
    assert!(matches!(scan_with(&mut txn, &table, usize::MAX, true), Err(Error::LockTimeout)));
    txn.rollback();
    other.commit().unwrap();
    let rows = scan_with(&mut txn, &table, usize::MAX, true).unwrap();
    assert_eq!((rows.len(), rows[700]), (1000, (700, 1)));
    assert!(!is_lockable(&db, &table, 700));
}

#[test]
fn what_others_hold_is_waited_for_when_the_scan_comes_to_it() {
    let (db, table) = database(2000);
    let mut other = begin(&db);
    other.get_locked(&table, 0, &12_000u32.to_be_bytes(), LockMode::Shared, LockWait::Default).unwrap();
    let mut txn = begin(&db);
    txn.set_lock_wait(Duration::ZERO);
    assert!(matches!(scan(&mut txn, &table, usize::MAX), Err(Error::LockTimeout)));
    assert!(!is_lockable(&db, &table, 11_990) && is_lockable(&db, &table, 12_010), "nothing behind it");
    other.commit().unwrap();
    // An insert that is not committed has no row that could be seen.
    let mut other = begin(&db);
    assert!(is_free_to_insert(&db, &table, 15_005));
    insert(&mut other, &table, 15_005, 7).unwrap();
    assert!(matches!(scan(&mut txn, &table, usize::MAX), Err(Error::LockTimeout)));
    other.commit().unwrap();
    let rows = scan(&mut txn, &table, usize::MAX).unwrap();
    assert_eq!((rows.len(), rows.contains(&(15_005, 7))), (2001, true));
}

#[test]
fn own_writes_made_before_and_on_the_way_count() {
    let (db, table) = database(1000);
    check_own_writes(&db, &table);
    assert_eq!(db.metrics().spills.get(), 0);
}

#[test]
fn own_writes_made_before_and_on_the_way_count_when_they_are_spilled() {
    let (db, table) = database_with(1000, 6000);
    check_own_writes(&db, &table);
    assert!(db.metrics().spills.get() > 10, "{} spills", db.metrics().spills.get());
}

fn check_own_writes(db: &Arc<Db>, table: &Arc<Table>) {
    let mut txn = begin(db);
    set(&mut txn, table, (5000, START), (5000, 1)).unwrap();
    set(&mut txn, table, (6000, START), (6001, 2)).unwrap();
    let mut cursor = txn.cursor(table, 0);
    cursor.allow_ahead(true, false);
    cursor.seek_first(&mut txn, EXCLUSIVE).unwrap();
    let mut met = Vec::new();
    while cursor.valid() {
        let id = u32::from_be_bytes(cursor.key().try_into().unwrap());
        let money = money_of(cursor.value());
        met.push((id, money));
        set(&mut txn, table, (id, money), (id, money + 1)).unwrap();
        if id == 3000 {
            // Ahead of the scan: one is changed, one goes, and one comes that the statement does not see.
            set(&mut txn, table, (3050, START), (3050, 3)).unwrap();
            set(&mut txn, table, (3060, START), (3065, 4)).unwrap();
        }
        cursor.next(&mut txn).unwrap();
    }
    assert_eq!(met.len(), 999);
    assert!([(5000, 1), (6001, 2), (3050, 3)].iter().all(|row| met.contains(row)));
    assert!(!met.iter().any(|(id, _)| [6000, 3060, 3065].contains(id)));
    assert!(met.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

/// Adds one to the money of all rows, each of which has so much. Gives how many blocks were asked for meanwhile.
fn add_to_all(db: &Arc<Db>, txn: &mut Txn, table: &Arc<Table>, money: i64) -> u64 {
    let asked = || db.metrics().cache_hits.get() + db.metrics().cache_misses.get();
    let before = asked();
    let mut cursor = txn.cursor(table, 0);
    cursor.allow_ahead(true, true);
    cursor.seek_first(txn, EXCLUSIVE).unwrap();
    while cursor.valid() {
        let id = u32::from_be_bytes(cursor.key().try_into().unwrap());
        assert_eq!(money_of(cursor.value()), money, "of row {id}");
        set(txn, table, (id, money), (id, money + 1)).unwrap();
        cursor.next(txn).unwrap();
    }
    asked() - before
}

/// Symptom: an UPDATE of all rows took more than twenty times as long as the same UPDATE before it in the transaction, which had been
/// spilled: for each row it searched in all that was spilled.
#[test]
fn a_scan_does_not_search_what_was_spilled_before_it_for_each_row() {
    const ROWS: u32 = 4000;
    for takes_gaps in [true, false] {
        let (db, table) = database_with(ROWS, 30_000);
        let mut txn = begin(&db);
        txn.set_takes_gaps(takes_gaps);
        let first = add_to_all(&db, &mut txn, &table, START);
        assert!(db.metrics().spills.get() > 10, "{} spills", db.metrics().spills.get());
        let second = add_to_all(&db, &mut txn, &table, START + 1);
        assert!(second < 2 * first + u64::from(ROWS) / 4, "{second} blocks asked for after {first}");
        let third = scan(&mut txn, &table, usize::MAX).unwrap();
        assert!(third.len() == ROWS as usize && third.iter().all(|row| row.1 == START + 2));
    }
}

/// A scan looks at the locks of the rows that it has read. Where there is no row, another may have the key all the same.
#[test]
fn a_key_without_a_row_that_another_holds_does_not_come_with_the_rows_around_it() {
    let (db, table) = database(1000);
    let mut other = begin(&db);
    let absent = other.get_locked(&table, 0, &6405u32.to_be_bytes(), LockMode::Exclusive, LockWait::Default);
    assert_eq!(absent.unwrap(), LockedRead::Absent);
    let mut txn = begin(&db);
    txn.set_lock_wait(Duration::ZERO);
    assert_eq!(scan(&mut txn, &table, usize::MAX).unwrap().len(), 1000);
    assert!(db.metrics().rows_locked_ahead.get() > 800);
    assert!(matches!(insert(&mut txn, &table, 6405, 1), Err(Error::LockTimeout | Error::WouldBlock)));
    let moved = set(&mut txn, &table, (6400, START), (6405, START));
    assert!(matches!(moved, Err(Error::LockTimeout | Error::WouldBlock)));
    let put = txn.put(&table, 0, &6405u32.to_be_bytes(), b"1", LockWait::Default);
    assert!(matches!(put, Err(Error::LockTimeout)));
    other.rollback();
    insert(&mut txn, &table, 6405, 1).unwrap();
}

/// Between two numbers that follow one another is no key of their length; others may be there.
#[test]
fn without_gaps_a_longer_key_between_rows_locked_together_is_not_locked_with_them() {
    let (db, table) = dense_database(0..1000);
    let longer = [&700u32.to_be_bytes()[..], &[0]].concat();
    let mut other = begin(&db);
    let absent = other.get_locked(&table, 0, &longer, LockMode::Exclusive, LockWait::Default);
    assert_eq!(absent.unwrap(), LockedRead::Absent);
    let mut txn = db.begin();
    txn.set_lock_wait(Duration::ZERO);
    assert_eq!(scan_with(&mut txn, &table, usize::MAX, true).unwrap().len(), 1000);
    assert!(db.metrics().rows_locked_ahead.get() > 800);
    let read = txn.get_locked(&table, 0, &longer, LockMode::Exclusive, LockWait::Default);
    assert!(matches!(read, Err(Error::LockTimeout)), "{read:?}");
}

/// Who inserts holds the key before it waits for a gap in the index; one who inserts the same key after that
/// would be overwritten.
#[test]
fn of_two_who_insert_the_same_key_between_rows_locked_ahead_one_is_refused() {
    let (db, table) = database(1000);
    let mut txn = begin(&db);
    let mut entries_seen = txn.cursor(&table, 1);
    entries_seen.seek_first(&mut txn, EXCLUSIVE).unwrap();
    while entries_seen.valid() {
        entries_seen.next(&mut txn).unwrap();
    }
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut other = begin(&db);
            other.set_takes_gaps(false);
            let inserted = insert(&mut other, &table, 6405, 1);
            inserted.and_then(|()| other.commit())
        });
        while db.metrics().row_lock_waits.get() == 0 {
            thread::yield_now();
        }
        assert_eq!(scan(&mut txn, &table, usize::MAX).unwrap().len(), 1000);
        let mine = insert(&mut txn, &table, 6405, 2).and_then(|()| txn.commit());
        if mine.is_err() {
            txn.rollback();
        }
        let other = other.join().unwrap();
        assert_ne!(mine.is_ok(), other.is_ok(), "{mine:?}, {other:?}");
    });
}

/// Moves money between two rows, or a row to another key; true: it was done.
/// A scan that has waited at a gap comes to what was inserted there: the gap's end is known, and far ahead of it.
#[test]
fn what_was_inserted_in_a_gap_that_was_waited_for_is_met_row_after_row() {
    for gaps in [true, false] {
        let (db, table) = dense_database([3000].into_iter());
        let mut writer = begin(&db);
        (1..=500).for_each(|id| insert(&mut writer, &table, id, START).unwrap());
        let waiting = |count| {
            while db.locks().iter().filter(|row| row.lock.waiting).count() < count {
                thread::yield_now();
            }
        };
        let rows = thread::scope(|scope| {
            let scanner = scope.spawn(|| {
                let mut txn = db.begin();
                txn.set_takes_gaps(gaps);
                scan(&mut txn, &table, usize::MAX).unwrap()
            });
            waiting(1);
            // It has too few rows before it for the scan to go ahead when it comes to go ahead.
            let other = scope.spawn(|| {
                let mut txn = db.begin();
                let key = 70u32.to_be_bytes();
                txn.get_locked(&table, 0, &key, LockMode::Exclusive, LockWait::Default).unwrap();
                thread::sleep(Duration::from_millis(300));
            });
            waiting(2);
            writer.commit().unwrap();
            other.join().unwrap();
            scanner.join().unwrap()
        });
        let ids: Vec<u32> = rows.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, (1..=500).chain([3000]).collect::<Vec<u32>>(), "with gaps: {gaps}");
    }
}

fn transfer(txn: &mut Txn, table: &Table, rng: &mut ChaCha8Rng) -> pandodb::Result<bool> {
    let mut pick = || rng.random_range(0..4000u32);
    let (from, to) = (pick(), pick());
    let read = |txn: &mut Txn, id: u32| {
        let read = txn.get_locked(table, 0, &id.to_be_bytes(), LockMode::Exclusive, LockWait::Default)?;
        Ok::<_, Error>(match read {
            LockedRead::Row(value) => Some(money_of(&value)),
            _ => None,
        })
    };
    let (Some(a), true) = (read(txn, from)?, from != to) else { return Ok(false) };
    match read(txn, to)? {
        Some(b) => {
            let amount = rng.random_range(1..50);
            set(txn, table, (from, a), (from, a - amount))?;
            set(txn, table, (to, b), (to, b + amount))?;
        }
        None => set(txn, table, (from, a), (to, a))?,
    }
    Ok(true)
}

/// Those who only change rows that there are, as scans without gaps may miss a row that moves.
/// From one of so many rows, which lie so far from each other, to another one.
fn pay(
    txn: &mut Txn,
    table: &Arc<Table>,
    rng: &mut ChaCha8Rng,
    (rows, step): (u32, u32),
) -> pandodb::Result<()> {
    let (from, to) = (rng.random_range(0..rows) * step, rng.random_range(0..rows) * step);
    if from == to {
        return Ok(());
    }
    for (id, change) in [(from, -1), (to, 1)] {
        let read = txn.get_locked(table, 0, &id.to_be_bytes(), LockMode::Exclusive, LockWait::Default)?;
        let LockedRead::Row(value) = read else { panic!("row {id} is gone") };
        set(txn, table, (id, money_of(&value)), (id, money_of(&value) + change))?;
    }
    Ok(())
}

#[test]
fn without_gaps_a_scan_that_keeps_all_rows_loses_no_change() {
    no_change_is_lost_without_gaps(true, 1, usize::MAX);
}

#[test]
fn without_gaps_a_scan_beyond_its_lock_budget_loses_no_change() {
    no_change_is_lost_without_gaps(true, 10, 50);
}

#[test]
fn without_gaps_a_scan_that_may_give_rows_back_loses_no_change() {
    no_change_is_lost_without_gaps(false, 1, usize::MAX);
}

fn no_change_is_lost_without_gaps(keeps_rows: bool, step: u32, budget: usize) {
    const ROWS: u32 = 600;
    let (db, table) = dense_database((0..ROWS).map(|row| row * step));
    db.set_lock_budget(budget);
    let (is_over, given) = (AtomicBool::new(false), AtomicI64::new(0));
    thread::scope(|scope| {
        for writer in 0..3 {
            let (db, table, is_over) = (&db, &table, &is_over);
            scope.spawn(move || {
                let mut rng = ChaCha8Rng::seed_from_u64(writer);
                while !is_over.load(Ordering::Relaxed) {
                    let mut txn = db.begin();
                    match pay(&mut txn, table, &mut rng, (ROWS, step)) {
                        Ok(()) => txn.commit().unwrap(),
                        Err(Error::Deadlock | Error::LockTimeout) => txn.rollback(),
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
        // Each gives one to every row: what is changed from a state that is not the newest is lost.
        let (mut done, begun) = (0, std::time::Instant::now());
        while done == 0 || done < 100 && begun.elapsed() < Duration::from_secs(20) {
            let mut txn = db.begin();
            let result = scan_with(&mut txn, &table, usize::MAX, keeps_rows).and_then(|rows| {
                assert_eq!(rows.len() as u32, ROWS);
                rows.iter().try_for_each(|row| set(&mut txn, &table, *row, (row.0, row.1 + 1)))
            });
            match result {
                Ok(()) => {
                    txn.commit().unwrap();
                    done += 1;
                }
                Err(Error::Deadlock | Error::LockTimeout) => txn.rollback(),
                Err(error) => panic!("{error:?}"),
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(done > 0);
        given.store(done, Ordering::Relaxed);
    });
    let rows = scan(&mut db.begin(), &table, usize::MAX).unwrap();
    let sum: i64 = rows.iter().map(|(_, money)| money).sum();
    assert_eq!(sum, i64::from(ROWS) * (START + given.load(Ordering::Relaxed)));
    assert_eq!(keeps_rows, db.metrics().rows_locked_ahead.get() > 0);
    assert_eq!(db.metrics().row_locks.get(), 0, "nothing is left");
}

/// What was read ahead ends where another has written; what is behind is read from a newer state. A row that somebody
/// changed between the two has to be read again under its lock.
#[test]
fn without_gaps_a_row_read_ahead_of_what_another_has_written_is_not_old() {
    const ROWS: u32 = 400;
    const WRITTEN: u32 = 350;
    let (db, table) = dense_database(0..ROWS + 1);
    let (is_over, paid) = (AtomicBool::new(false), AtomicI64::new(0));
    let mut given = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let mut txn = db.begin();
                let id = WRITTEN.to_be_bytes();
                let read = txn.get_locked(&table, 0, &id, LockMode::Exclusive, LockWait::Default).unwrap();
                let LockedRead::Row(value) = read else { panic!("it is there") };
                set(&mut txn, &table, (WRITTEN, money_of(&value)), (WRITTEN, money_of(&value) + 1)).unwrap();
                thread::sleep(Duration::from_millis(1));
                txn.commit().unwrap();
                paid.fetch_add(1, Ordering::Relaxed);
            }
        });
        for writer in 0..2 {
            let (db, table, is_over, paid) = (&db, &table, &is_over, &paid);
            scope.spawn(move || {
                let mut rng = ChaCha8Rng::seed_from_u64(writer);
                while !is_over.load(Ordering::Relaxed) {
                    let (mut txn, id) = (db.begin(), rng.random_range(64..WRITTEN));
                    let key = id.to_be_bytes();
                    let read = txn.get_locked(table, 0, &key, LockMode::Exclusive, LockWait::Default);
                    let LockedRead::Row(value) = read.unwrap() else { panic!("it is there") };
                    set(&mut txn, table, (id, money_of(&value)), (id, money_of(&value) + 1)).unwrap();
                    txn.commit().unwrap();
                    paid.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let begun = std::time::Instant::now();
        while given < 200 && begun.elapsed() < Duration::from_secs(5) {
            let mut txn = db.begin();
            let rows = scan_with(&mut txn, &table, ROWS as usize, given % 2 == 0).unwrap();
            assert_eq!(rows.len() as u32, ROWS);
            rows.iter().try_for_each(|row| set(&mut txn, &table, *row, (row.0, row.1 + 1))).unwrap();
            txn.commit().unwrap();
            given += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let rows = scan(&mut db.begin(), &table, ROWS as usize).unwrap();
    let sum: i64 = rows.iter().map(|(_, money)| money).sum();
    assert_eq!(sum, i64::from(ROWS) * (START + given) + paid.into_inner());
}

#[test]
fn scans_of_all_rows_see_all_the_money_while_others_move_it() {
    all_the_money_is_seen(|txn, table| scan(txn, table, usize::MAX));
}

#[test]
fn ranges_one_after_the_other_see_all_the_money_while_others_move_it() {
    all_the_money_is_seen(|txn, table| {
        let mut cursor = txn.cursor(table, 0);
        cursor.allow_ahead(true, false);
        let mut rows = Vec::new();
        for range in 0..8u32 {
            cursor.set_stop(Some(&(500 * (range + 1)).to_be_bytes()));
            cursor.seek(txn, &(500 * range).to_be_bytes(), EXCLUSIVE)?;
            while cursor.valid() {
                rows.push((u32::from_be_bytes(cursor.key().try_into().unwrap()), money_of(cursor.value())));
                cursor.next(txn)?;
            }
        }
        Ok(rows)
    });
}

fn all_the_money_is_seen(read: impl Fn(&mut Txn, &Arc<Table>) -> pandodb::Result<Vec<(u32, i64)>>) {
    const ROWS: u32 = 400;
    let (db, table) = database(ROWS);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..3 {
            let (db, table, is_over) = (&db, &table, &is_over);
            scope.spawn(move || {
                let mut rng = ChaCha8Rng::seed_from_u64(writer);
                while !is_over.load(Ordering::Relaxed) {
                    let mut txn = db.begin();
                    txn.set_takes_gaps(rng.random());
                    for _ in 0..rng.random_range(1..4) {
                        match transfer(&mut txn, table, &mut rng) {
                            Ok(_) => {}
                            // Without gaps a free key may be another's by the time it is written.
                            Err(Error::Deadlock | Error::LockTimeout | Error::Duplicate { .. }) => {
                                txn.rollback();
                                break;
                            }
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                    txn.commit().unwrap();
                }
            });
        }
        let mut done = 0;
        let begun = std::time::Instant::now();
        while done == 0 || done < 150 && begun.elapsed() < Duration::from_secs(20) {
            let mut txn = begin(&db);
            let rows = match read(&mut txn, &table) {
                Ok(rows) => rows,
                Err(Error::Deadlock) => {
                    txn.rollback();
                    continue;
                }
                Err(error) => panic!("{error:?}"),
            };
            assert_eq!(rows.len() as u32, ROWS, "no row is lost or met twice");
            assert_eq!(rows.iter().map(|(_, money)| money).sum::<i64>(), i64::from(ROWS) * START);
            for row in &rows {
                set(&mut txn, &table, *row, (row.0, row.1)).unwrap();
            }
            txn.commit().unwrap();
            done += 1;
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(done > 0);
    });
    assert!(db.metrics().rows_locked_ahead.get() > 0);
    assert_eq!(db.metrics().row_locks.get(), 0, "nothing is left");
}
