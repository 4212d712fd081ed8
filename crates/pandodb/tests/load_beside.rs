//! Bulk loads into tables that have rows, or in which others are at work.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use common::{count, disk, open, options, spec, Lines};
use pando_storage::vfs::FaultKind;
use pandodb::{
    Db, Entries, Error, LoadEnd, LockMode, LockWait, LockedRead, RowEncoder, SimVfs, Table, Txn, Vfs,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const T: &str = "./db/t";

/// Rows are numbers; the same entry goes to both dictionaries, but in the second one keys may be moved by so much.
struct Numbers {
    moved: u32,
}

impl RowEncoder for Numbers {
    type Batch = Vec<u32>;

    fn encode(&self, batch: Vec<u32>, entries: &mut [Entries]) -> Result<(), i32> {
        for n in batch {
            let value = format!("loaded {n}");
            entries[0].push(&key(n), value.as_bytes());
            entries[1].push(&key(n + self.moved), value.as_bytes());
        }
        Ok(())
    }
}

fn key(n: u32) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

/// A table with the even numbers below `2 * rows`; some of them in the tree, some in a memtable.
fn world(rows: u32) -> (Arc<SimVfs>, Arc<Db>, Arc<Table>) {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    db.create_table(&spec(T)).unwrap();
    fill_even(&db, 0..rows / 2);
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    fill_even(&db, rows / 2..rows);
    let table = db.open_table(T).unwrap();
    (vfs, db, table)
}

fn fill_even(db: &Arc<Db>, numbers: std::ops::Range<u32>) {
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    numbers.for_each(|n| put(&mut txn, &table, 2 * n, b"old").unwrap());
    txn.commit().unwrap();
}

fn put(txn: &mut Txn, table: &Table, n: u32, value: &[u8]) -> pandodb::Result<()> {
    (0..2).try_for_each(|dict| txn.put(table, dict, &key(n), value, LockWait::NoWait))
}

fn delete(txn: &mut Txn, table: &Table, n: u32) {
    (0..2).for_each(|dict| txn.delete(table, dict, &key(n), LockWait::NoWait).unwrap());
}

fn begin(db: &Arc<Db>) -> Txn {
    let mut txn = db.begin();
    txn.set_lock_wait(Duration::from_millis(50));
    txn
}

fn load_moved(txn: &mut Txn, table: &Arc<Table>, rows: &[u32], moved: u32) -> pandodb::Result<LoadEnd> {
    let mut load =
        txn.begin_load_beside(table, &[true, true], Numbers { moved }).unwrap().expect("nothing is written");
    for batch in rows.chunks(100) {
        load.submit(batch.to_vec(), batch.len() as u64, 1000);
    }
    txn.finish_load(load, &mut |_| true)
}

fn load(txn: &mut Txn, table: &Arc<Table>, rows: &[u32]) -> pandodb::Result<LoadEnd> {
    load_moved(txn, table, rows, 0)
}

fn odd(numbers: std::ops::Range<u32>) -> Vec<u32> {
    numbers.map(|n| 2 * n + 1).collect()
}

fn used(table: &Table) -> u64 {
    table.dicts().iter().map(|dict| dict.used_bytes()).sum()
}

#[test]
fn what_was_loaded_joins_the_rows_and_survives_a_crash() {
    // Between them, behind them, before and behind.
    for rows in [odd(0..3000), odd(3000..9000), odd(2500..3500)] {
        let (vfs, db, table) = world(3000);
        let mut txn = begin(&db);
        assert_eq!(load(&mut txn, &table, &rows).unwrap(), LoadEnd::Loaded);
        let read = txn.get(&table, 1, &key(rows[500])).unwrap().unwrap();
        assert_eq!(read, format!("loaded {}", rows[500]).into_bytes());
        assert_eq!(txn.get(&table, 0, &key(10)).unwrap().unwrap(), b"old");
        assert_eq!(count(&db, T).unwrap(), 3000, "others see nothing");
        put(&mut txn, &table, 1_000_001, b"more").unwrap();
        txn.commit().unwrap();
        let all = 3001 + rows.len();
        assert_eq!(count(&db, T).unwrap() as usize, all);
        db.run_jobs().unwrap();
        assert_eq!(count(&db, T).unwrap() as usize, all);
        db.abandon();
        drop((txn, table, db));
        let db = open(&vfs.crash()).unwrap();
        assert_eq!(count(&db, T).unwrap() as usize, all);
    }
}

#[test]
fn a_rollback_and_a_mark_undo_it_alone() {
    let (_vfs, db, table) = world(1000);
    db.run_jobs().unwrap();
    let before = used(&table);
    let mut txn = begin(&db);
    let mark = txn.mark();
    assert_eq!(load(&mut txn, &table, &odd(0..1000)).unwrap(), LoadEnd::Loaded);
    txn.rollback_to(mark).unwrap();
    assert_eq!(used(&table), before, "the space is given back");
    assert_eq!(load(&mut txn, &table, &odd(500..900)).unwrap(), LoadEnd::Loaded);
    txn.rollback();
    assert_eq!((used(&table), count(&db, T).unwrap()), (before, 1000));
    assert!(put(&mut begin(&db), &table, 1001, b"").is_ok(), "no lock is left");
}

#[test]
fn a_key_that_is_there_is_told_and_nothing_is_written() {
    let (_vfs, db, table) = world(1000);
    let before = used(&table);
    let mut txn = begin(&db);
    let mut rows = odd(0..2000);
    rows.push(1998);
    rows.push(1234);
    let (found, value) = (key(1234), b"loaded 1234".to_vec());
    let twice = LoadEnd::Duplicate { index: 0, key: found, value, existing: b"old".to_vec() };
    assert_eq!(load(&mut txn, &table, &rows).unwrap(), twice);
    assert!(!txn.has_writes());
    assert_eq!(used(&table), before);
    // In the second dictionary alone.
    let end = load_moved(&mut txn, &table, &odd(900..950), 1).unwrap();
    assert!(
        matches!(&end, LoadEnd::Duplicate { index: 1, key: found, .. } if *found == key(1802)),
        "{end:?}"
    );
    // Twice among those that are loaded.
    let end = load(&mut txn, &table, &[3001, 3003, 3001]).unwrap();
    assert!(
        matches!(&end, LoadEnd::Duplicate { index: 0, key: found, .. } if *found == key(3001)),
        "{end:?}"
    );
    txn.rollback();
    // What was deleted is not there.
    let mut other = begin(&db);
    delete(&mut other, &table, 1234);
    delete(&mut other, &table, 1998);
    other.commit().unwrap();
    assert_eq!(load(&mut txn, &table, &rows).unwrap(), LoadEnd::Loaded);
    txn.commit().unwrap();
    assert_eq!(count(&db, T).unwrap(), 3000);
}

#[test]
fn it_begins_only_where_the_transaction_has_written_nothing() {
    let (_vfs, db, table) = world(10);
    let mut txn = begin(&db);
    put(&mut txn, &table, 1, b"own").unwrap();
    assert!(txn.begin_load_beside(&table, &[true, true], Numbers { moved: 0 }).unwrap().is_none());
    txn.rollback();
    assert!(txn.begin_load_beside(&table, &[true, true], Numbers { moved: 0 }).unwrap().is_some());
    assert!(txn.begin_load(&table, &[true, true], Numbers { moved: 0 }).unwrap().is_none());
    assert!(put(&mut begin(&db), &table, 1, b"").is_ok(), "a table with rows is not locked for nothing");
}

#[test]
fn keys_of_others_are_waited_for_and_looked_at_then() {
    for (commits, deletes) in [(false, false), (true, false), (false, true), (true, true)] {
        let (_vfs, db, table) = world(1000);
        let rows = [odd(0..600), vec![if deletes { 500 } else { 1401 }]].concat();
        let mut other = begin(&db);
        if deletes {
            delete(&mut other, &table, 500);
        } else {
            put(&mut other, &table, 1401, b"theirs").unwrap();
        }
        let mut txn = begin(&db);
        assert!(matches!(load(&mut txn, &table, &rows), Err(Error::LockTimeout)));
        assert!(!txn.has_writes());
        txn.rollback();
        let end = std::thread::scope(|scope| {
            let loading = scope.spawn(|| {
                let mut txn = db.begin();
                let end = load(&mut txn, &table, &rows).unwrap();
                txn.commit().unwrap();
                end
            });
            while db.metrics().row_lock_waits.get() < 2 {
                std::thread::sleep(Duration::from_millis(1));
            }
            if commits {
                other.commit().unwrap()
            } else {
                other.rollback()
            };
            loading.join().unwrap()
        });
        let is_there = commits != deletes;
        assert_eq!(matches!(end, LoadEnd::Duplicate { index: 0, .. }), is_there, "{end:?}");
        assert_eq!(
            count(&db, T).unwrap(),
            if is_there { 1000 + u32::from(!deletes) } else { 1600 + u32::from(!deletes) }
        );
    }
}

#[test]
fn until_the_commit_nobody_else_takes_a_key() {
    let (_vfs, db, table) = world(1000);
    let mut txn = begin(&db);
    let loading = txn.begin_load_beside(&table, &[true, true], Numbers { moved: 0 });
    let mut loading = loading.unwrap().unwrap();
    loading.submit(odd(0..500), 500, 1000);
    // Before its end nothing is locked.
    let mut other = begin(&db);
    put(&mut other, &table, 5, b"theirs").unwrap();
    put(&mut other, &table, 4, b"theirs").unwrap();
    other.rollback();
    assert_eq!(txn.finish_load(loading, &mut |_| true).unwrap(), LoadEnd::Loaded);
    for n in [1, 501, 999, 4] {
        assert!(put(&mut other, &table, n, b"theirs").is_err(), "{n}");
        other.rollback();
    }
    put(&mut other, &table, 1001, b"theirs").unwrap();
    other.commit().unwrap();
    let mut reader = begin(&db);
    reader.set_takes_gaps(true);
    let locked = reader.get_locked(&table, 0, &key(7), LockMode::Shared, LockWait::NoWait);
    assert!(locked.is_err(), "{locked:?}");
    txn.commit().unwrap();
    let locked = reader.get_locked(&table, 0, &key(7), LockMode::Shared, LockWait::NoWait).unwrap();
    assert!(matches!(locked, LockedRead::Row(_)), "{locked:?}");
    assert_eq!(count(&db, T).unwrap(), 1501);
}

#[test]
fn gaps_of_others_keep_out_what_lies_in_them_alone() {
    let (_vfs, db, table) = world(1000);
    let mut other = begin(&db);
    other.set_takes_gaps(true);
    let found = other.get_locked(&table, 0, &key(701), LockMode::Shared, LockWait::NoWait).unwrap();
    assert_eq!(found, LockedRead::Absent);
    let mut txn = begin(&db);
    assert!(matches!(load(&mut txn, &table, &odd(300..400)), Err(Error::LockTimeout)));
    txn.rollback();
    let apart = [odd(0..350), odd(351..600)].concat();
    assert_eq!(load(&mut txn, &table, &apart).unwrap(), LoadEnd::Loaded);
    other.rollback();
    txn.commit().unwrap();
    assert_eq!(count(&db, T).unwrap(), 1599);
}

#[test]
fn a_stretch_of_others_is_waited_for() {
    let (_vfs, db, table) = world(1000);
    let mut other = begin(&db);
    other.set_takes_gaps(true);
    assert!(other.lock_all_rows(&table, LockMode::Shared).unwrap());
    let mut txn = begin(&db);
    assert!(matches!(load(&mut txn, &table, &odd(0..6000)), Err(Error::LockTimeout)));
    txn.rollback();
    // Two loads, one in the middle of the other, but without a common key.
    other.rollback();
    assert_eq!(load(&mut other, &table, &odd(400..500)).unwrap(), LoadEnd::Loaded);
    let around = [odd(0..400), odd(500..600)].concat();
    assert_eq!(load(&mut txn, &table, &around).unwrap(), LoadEnd::Loaded);
    txn.rollback();
    other.commit().unwrap();
    let end = load(&mut txn, &table, &odd(300..600)).unwrap();
    assert!(matches!(end, LoadEnd::Duplicate { index: 0, .. }), "{end:?}");
    assert_eq!(load(&mut txn, &table, &odd(500..6000)).unwrap(), LoadEnd::Loaded);
    txn.commit().unwrap();
    assert_eq!(count(&db, T).unwrap(), 6600);
}

#[test]
fn many_at_once_agree_with_what_they_were_told() {
    let (vfs, db, table) = world(200);
    let committed: Vec<BTreeSet<u32>> = std::thread::scope(|scope| {
        let work = |seed: u64| {
            let (db, table) = (&db, &table);
            move || {
                let mut rng = StdRng::seed_from_u64(seed);
                let mut mine = BTreeSet::new();
                for _ in 0..60 {
                    let mut txn = db.begin();
                    txn.set_lock_wait(Duration::from_millis(20));
                    let from = rng.random_range(0..2000u32);
                    let rows: BTreeSet<u32> = match rng.random_range(0..3) {
                        0 => (0..rng.random_range(1..60)).map(|n| 2 * (from + n) + 1).collect(),
                        1 => (0..40).map(|_| 2 * rng.random_range(0..4000u32) + 1).collect(),
                        _ => BTreeSet::from([2 * from + 1]),
                    };
                    let done = if rows.len() == 1 {
                        let n = rows.first().copied().unwrap_or(0);
                        let there = txn.get_locked(table, 0, &key(n), LockMode::Exclusive, LockWait::NoWait);
                        matches!(there, Ok(LockedRead::Absent)) && put(&mut txn, table, n, b"single").is_ok()
                    } else {
                        let rows: Vec<u32> = rows.iter().copied().collect();
                        matches!(load(&mut txn, table, &rows), Ok(LoadEnd::Loaded))
                    };
                    if done && rng.random_ratio(4, 5) {
                        txn.commit().unwrap();
                        for n in &rows {
                            assert!(mine.insert(*n), "{n} was there twice");
                        }
                    }
                }
                mine
            }
        };
        let threads: Vec<_> = (0..6).map(|seed| scope.spawn(work(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let all: usize = committed.iter().map(BTreeSet::len).sum();
    let each: BTreeSet<u32> = committed.into_iter().flatten().collect();
    assert_eq!(each.len(), all, "two have inserted the same key");
    assert_eq!(count(&db, T).unwrap() as usize, 200 + all);
    db.run_jobs().unwrap();
    db.abandon();
    drop((table, db));
    let db = open(&vfs.crash()).unwrap();
    assert_eq!(count(&db, T).unwrap() as usize, 200 + all);
}

#[test]
fn a_failure_at_any_moment_leaves_all_or_nothing() {
    let rows = odd(50..400);
    let mut ends = [0, 0];
    for n in 0.. {
        let vfs = disk(n);
        let mut small = options(&Lines::default());
        small.load_memory_bytes = 4 << 10;
        let files: Arc<dyn Vfs> = vfs.clone();
        let db = Db::open_with_vfs(small, files.clone(), files).unwrap();
        db.create_table(&spec(T)).unwrap();
        fill_even(&db, 0..100);
        db.checkpoint().unwrap();
        fill_even(&db, 100..200);
        let table = db.open_table(T).unwrap();
        vfs.fail_io_after(n, if n % 2 == 0 { FaultKind::Sticky } else { FaultKind::Error });
        let mut txn = begin(&db);
        let ended = load(&mut txn, &table, &rows);
        let committed = ended.is_ok() && txn.commit().is_ok();
        ends[usize::from(committed)] += 1;
        vfs.clear_faults();
        drop(txn);
        db.abandon();
        drop((table, db));
        let db = open(&vfs.crash()).unwrap();
        let found = count(&db, T).unwrap() as usize;
        assert!(found == 200 + rows.len() || (found == 200 && !committed), "operation {n}: {found} rows");
        if committed && ends[1] > 3 {
            break;
        }
    }
    assert!(ends[0] > 10, "{ends:?}");
}
