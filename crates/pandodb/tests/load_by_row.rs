//! Bulk loads beside others that are asked for each row before it joins.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use common::{count, disk, fill, open, options, spec, Lines};
use pando_storage::vfs::FaultKind;
use pandodb::{
    Admission, BulkLoad, Db, Entries, Error, LoadEnd, LockMode, LockWait, LockedRead, Notes, RowEncoder,
    SimVfs, Table, Txn, Vfs,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const T: &str = "./db/t";

/// Rows are numbers; the same key goes to both dictionaries.
struct Numbers;

impl RowEncoder for Numbers {
    type Batch = Vec<u32>;

    fn encode(&self, batch: Vec<u32>, entries: &mut [Entries]) -> Result<(), i32> {
        for n in batch {
            entries.iter_mut().take(2).for_each(|entries| entries.push(&key(n), b"loaded"));
        }
        Ok(())
    }
}

fn key(n: u32) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

/// A table with the numbers below `rows`; some of them in the tree, some in a memtable.
fn world(rows: u32) -> (Arc<SimVfs>, Arc<Db>, Arc<Table>) {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    db.create_table(&spec(T)).unwrap();
    fill(&db, T, 0..rows / 2).unwrap();
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    fill(&db, T, rows / 2..rows).unwrap();
    let table = db.open_table(T).unwrap();
    (vfs, db, table)
}

fn begin(db: &Arc<Db>) -> Txn {
    let mut txn = db.begin();
    txn.set_lock_wait(Duration::from_millis(50));
    txn
}

fn begin_load(txn: &mut Txn, table: &Arc<Table>) -> BulkLoad<Numbers> {
    txn.begin_load_by_row(table, &[true, true], Numbers).unwrap().expect("nothing is written")
}

fn ask(txn: &mut Txn, load: &mut BulkLoad<Numbers>, n: u32) -> pandodb::Result<Admission> {
    let key = key(n);
    txn.admit_to_load(load, (0..2).map(|dict| (dict, key.as_slice())), Notes::All)
}

fn submit(load: &mut BulkLoad<Numbers>, rows: &[u32]) {
    rows.chunks(100).for_each(|batch| _ = load.submit(batch.to_vec(), batch.len() as u64, 1000));
}

/// A load of those that may join; how it ended, and which did.
fn load(txn: &mut Txn, table: &Arc<Table>, rows: &[u32]) -> pandodb::Result<(LoadEnd, Vec<u32>)> {
    let mut load = begin_load(txn, table);
    let mut joined = Vec::new();
    for n in rows {
        match ask(txn, &mut load, *n)? {
            Admission::New => joined.push(*n),
            Admission::Seen(_) => {}
            // Each load takes a quarter of the memory.
            Admission::Full => return Ok((LoadEnd::Cancelled, joined)),
        }
    }
    submit(&mut load, &joined);
    Ok((txn.finish_load(load, &mut |_| true)?, joined))
}

#[test]
fn rows_whose_keys_are_there_are_told_at_once_and_the_others_join_the_table() {
    let (vfs, db, table) = world(1000);
    let mut txn = begin(&db);
    let (end, joined) = load(&mut txn, &table, &[500, 1001, 7, 1002, 1001, 999, 1003, 1002]).unwrap();
    assert_eq!((end, joined), (LoadEnd::Loaded, vec![1001, 1002, 1003]));
    assert_eq!(txn.get(&table, 1, &key(1002)).unwrap().unwrap(), b"loaded");
    assert_eq!(count(&db, T).unwrap(), 1000, "others see nothing");
    // Only what was asked for is locked.
    let mut other = begin(&db);
    other.put(&table, 0, &key(1004), b"theirs", LockWait::NoWait).unwrap();
    other.rollback();
    let read = other.get_locked(&table, 0, &key(500), LockMode::Shared, LockWait::NoWait).unwrap();
    assert!(matches!(read, LockedRead::Row(_)), "a row in the way can be read: {read:?}");
    other.put(&table, 0, &key(500), b"theirs", LockWait::NoWait).unwrap_err();
    other.rollback();
    txn.commit().unwrap();
    assert_eq!(count(&db, T).unwrap(), 1003);
    db.run_jobs().unwrap();
    db.abandon();
    drop((txn, other, table, db));
    assert_eq!(count(&open(&vfs.crash()).unwrap(), T).unwrap(), 1003);
}

#[test]
fn which_key_is_there_is_told_in_the_order_of_keys() {
    let (_vfs, db, table) = world(10);
    let mut txn = begin(&db);
    let mut loading = begin_load(&mut txn, &table);
    let mut ask = |first: u32, second: u32| {
        let keys = [key(first), key(second)];
        let keys = keys.iter().enumerate().map(|(dict, key)| (dict, key.as_slice()));
        txn.admit_to_load(&mut loading, keys, Notes::All).unwrap()
    };
    assert_eq!(ask(20, 20), Admission::New);
    assert_eq!(ask(5, 20), Admission::Seen(0));
    assert_eq!(ask(20, 5), Admission::Seen(0));
    assert_eq!(ask(21, 20), Admission::Seen(1));
    assert_eq!(ask(21, 5), Admission::Seen(1));
    assert_eq!(ask(21, 21), Admission::New);
}

#[test]
fn what_others_hold_is_waited_for_row_by_row_and_gaps_at_the_end_too() {
    let (_vfs, db, table) = world(100);
    let (mut txn, mut other) = (begin(&db), begin(&db));
    other.put(&table, 0, &key(200), b"theirs", LockWait::NoWait).unwrap();
    let mut loading = begin_load(&mut txn, &table);
    assert!(matches!(ask(&mut txn, &mut loading, 200), Err(Error::LockTimeout)));
    assert_eq!(ask(&mut txn, &mut loading, 201).unwrap(), Admission::New);
    assert!(other.put(&table, 0, &key(201), b"theirs", LockWait::NoWait).is_err());
    other.rollback();
    assert_eq!(ask(&mut txn, &mut loading, 200).unwrap(), Admission::New);
    submit(&mut loading, &[201, 200]);
    // A locking scan finds nothing yet; what it has looked at stays as it is until it is over.
    other.set_takes_gaps(true);
    let absent = other.get_locked(&table, 0, &key(300), LockMode::Shared, LockWait::NoWait).unwrap();
    assert_eq!(absent, LockedRead::Absent);
    assert!(matches!(ask(&mut txn, &mut loading, 300), Err(Error::LockTimeout)));
    other.rollback();
    other.set_takes_gaps(true);
    let mut cursor = other.cursor(&table, 1);
    cursor
        .seek(&mut other, &key(150), pandodb::ReadMode::Locked(LockMode::Shared, LockWait::NoWait))
        .unwrap();
    assert!(!cursor.valid());
    drop(cursor);
    assert!(matches!(txn.finish_load(loading, &mut |_| true), Err(Error::LockTimeout)));
    assert!(!txn.has_writes());
    other.rollback();
    let (end, joined) = load(&mut txn, &table, &[200, 201]).unwrap();
    assert_eq!((end, joined.len()), (LoadEnd::Loaded, 2));
    txn.rollback();
    assert_eq!(count(&db, T).unwrap(), 100);
}

#[test]
fn a_key_that_another_commits_while_it_is_waited_for_is_there() {
    let (_vfs, db, table) = world(100);
    let mut other = begin(&db);
    (0..2).for_each(|dict| other.put(&table, dict, &key(200), b"theirs", LockWait::NoWait).unwrap());
    let joined = std::thread::scope(|scope| {
        let loading = scope.spawn(|| {
            let mut txn = db.begin();
            let (_, joined) = load(&mut txn, &table, &[199, 200, 201]).unwrap();
            txn.commit().unwrap();
            joined
        });
        while db.metrics().row_lock_waits.get() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        other.commit().unwrap();
        loading.join().unwrap()
    });
    assert_eq!(joined, [199, 201]);
    assert_eq!(count(&db, T).unwrap(), 103);
}

#[test]
fn without_memory_for_keys_it_says_so() {
    let vfs = disk(1);
    let mut small = options(&Lines::default());
    small.load_memory_bytes = 64 << 10;
    let files: Arc<dyn Vfs> = vfs.clone();
    let db = Db::open_with_vfs(small, files.clone(), files).unwrap();
    db.create_table(&spec(T)).unwrap();
    fill(&db, T, 0..10).unwrap();
    let table = db.open_table(T).unwrap();
    let mut txn = begin(&db);
    let mut loading = begin_load(&mut txn, &table);
    let full = (100..).find(|n| ask(&mut txn, &mut loading, *n).unwrap() == Admission::Full).unwrap();
    assert_eq!(ask(&mut txn, &mut loading, 5).unwrap(), Admission::Seen(0), "what the table has can be told");
    // Who knows that keys of the load differ needs none.
    for n in full..full + 100_000 {
        let key = key(n);
        let keys = (0..2).map(|dict| (dict, key.as_slice()));
        assert_eq!(txn.admit_to_load(&mut loading, keys, Notes::None).unwrap(), Admission::New);
    }
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
                    let rows: Vec<u32> = match rng.random_range(0..2) {
                        0 => (from..from + 60).collect(),
                        _ => (0..40).map(|_| rng.random_range(0..4000)).collect(),
                    };
                    let Ok((LoadEnd::Loaded, joined)) = load(&mut txn, table, &rows) else { continue };
                    if rng.random_ratio(4, 5) {
                        txn.commit().unwrap();
                        for n in &joined {
                            assert!(mine.insert(*n), "{n} was there");
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
    assert!(each.first().is_some_and(|first| *first >= 200), "a key of the table joined");
    assert_eq!(count(&db, T).unwrap() as usize, 200 + all);
    db.run_jobs().unwrap();
    db.abandon();
    drop((table, db));
    assert_eq!(count(&open(&vfs.crash()).unwrap(), T).unwrap() as usize, 200 + all);
}

#[test]
fn a_failure_at_any_moment_leaves_all_or_nothing() {
    let rows: Vec<u32> = (100..500).collect();
    let mut ends = [0, 0];
    for n in 0.. {
        let vfs = disk(n);
        let mut small = options(&Lines::default());
        small.load_memory_bytes = 16 << 20;
        let files: Arc<dyn Vfs> = vfs.clone();
        let db = Db::open_with_vfs(small, files.clone(), files).unwrap();
        db.create_table(&spec(T)).unwrap();
        fill(&db, T, 0..100).unwrap();
        db.run_jobs().unwrap();
        db.checkpoint().unwrap();
        fill(&db, T, 100..200).unwrap();
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
        let found = count(&open(&vfs.crash()).unwrap(), T).unwrap() as usize;
        assert!(found == 500 || (found == 200 && !committed), "operation {n}: {found} rows");
        if committed && ends[1] > 3 {
            break;
        }
    }
    assert!(ends[0] > 5, "{ends:?}");
}
