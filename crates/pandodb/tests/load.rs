//! Bulk loads: what they write is a part of the transaction like any other write; what ends before leaves
//! nothing behind.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::{mpsc, Arc, Mutex};

use common::{count, disk, open, options, spec, Lines};
use pando_storage::vfs::FaultKind;
use pandodb::{
    Db, Entries, LoadEnd, LockMode, LockWait, LockedRead, ReadMode, RowEncoder, SimVfs, Table, Txn, Vfs,
};

const T: &str = "./db/t";

/// Rows are numbers; the same entry goes to both dictionaries, but those of `twins` have the key of another.
struct Numbers {
    twins: Vec<(u32, u32)>,
}

impl RowEncoder for Numbers {
    type Batch = Vec<u32>;

    fn encode(&self, batch: Vec<u32>, entries: &mut [Entries]) -> Result<(), i32> {
        for n in batch {
            if n == u32::MAX {
                return Err(77);
            }
            let value = format!("loaded {n}");
            let twin = self.twins.iter().find(|(twin, _)| *twin == n);
            entries[0].push(&key(n), value.as_bytes());
            entries[1].push(&key(twin.map_or(n, |(_, of)| *of)), value.as_bytes());
        }
        Ok(())
    }
}

fn key(n: u32) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

fn world() -> (Arc<SimVfs>, Arc<Db>, Arc<Table>) {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    db.create_table(&spec(T)).unwrap();
    db.checkpoint().unwrap();
    let table = db.open_table(T).unwrap();
    (vfs, db, table)
}

fn load(txn: &mut Txn, table: &Arc<Table>, rows: &[u32], twins: &[(u32, u32)]) -> pandodb::Result<LoadEnd> {
    let encoder = Numbers { twins: twins.to_vec() };
    let mut load = txn.begin_load(table, &[true, true], encoder)?.expect("the table is empty");
    for batch in rows.chunks(100) {
        load.submit(batch.to_vec(), batch.len() as u64, 1000);
    }
    txn.finish_load(load, &mut |_| true)
}

/// In an order that is not that of the keys.
fn shuffled(rows: u32) -> Vec<u32> {
    (0..rows).map(|n| (u64::from(n) * 7919 % u64::from(rows)) as u32).collect()
}

fn used(table: &Table) -> u64 {
    table.dicts().iter().map(|dict| dict.used_bytes()).sum()
}

fn seen(txn: &mut Txn, table: &Arc<Table>) -> usize {
    let mut cursor = txn.cursor(table, 1);
    cursor.seek_first(txn, ReadMode::Latest).unwrap();
    let mut rows = 0;
    while cursor.valid() {
        rows += 1;
        cursor.next(txn).unwrap();
    }
    rows
}

#[test]
fn what_was_loaded_is_read_by_its_own_and_after_the_commit_by_all() {
    for rows in [(0..5000).collect::<Vec<u32>>(), shuffled(5003)] {
        let (vfs, db, table) = world();
        let mut txn = db.begin();
        assert_eq!(load(&mut txn, &table, &rows, &[]).unwrap(), LoadEnd::Loaded);
        assert_eq!(txn.get(&table, 0, &key(4321)).unwrap().unwrap(), b"loaded 4321");
        assert_eq!(seen(&mut txn, &table), rows.len());
        assert_eq!(count(&db, T).unwrap(), 0, "others see nothing");
        txn.put(&table, 0, &key(9999), b"more", LockWait::NoWait).unwrap();
        txn.put(&table, 1, &key(9999), b"more", LockWait::NoWait).unwrap();
        txn.commit().unwrap();
        assert_eq!(count(&db, T).unwrap() as usize, rows.len() + 1);
        let loaded = db.metrics().flush_written_bytes.get();
        db.run_jobs().unwrap();
        assert_eq!(count(&db, T).unwrap() as usize, rows.len() + 1);
        assert!(db.metrics().flush_written_bytes.get() - loaded < 64 << 10, "runs become leaves as they are");
        // The log names the runs.
        db.abandon();
        drop((txn, table, db));
        let db = open(&vfs.crash()).unwrap();
        assert_eq!(count(&db, T).unwrap() as usize, rows.len() + 1);
    }
}

#[test]
fn a_mark_before_a_load_undoes_it_and_a_rollback_too() {
    let (_vfs, db, table) = world();
    let before = used(&table);
    let mut txn = db.begin();
    let mark = txn.mark();
    assert_eq!(load(&mut txn, &table, &shuffled(3001), &[]).unwrap(), LoadEnd::Loaded);
    txn.rollback_to(mark).unwrap();
    assert_eq!(seen(&mut txn, &table), 0);
    assert_eq!(used(&table), before, "the space is given back");
    assert_eq!(load(&mut txn, &table, &shuffled(3001), &[]).unwrap(), LoadEnd::Loaded);
    txn.rollback();
    assert_eq!(used(&table), before);
    assert_eq!(load(&mut txn, &table, &(0..50).collect::<Vec<_>>(), &[]).unwrap(), LoadEnd::Loaded);
    txn.commit().unwrap();
    assert_eq!(count(&db, T).unwrap(), 50);
}

#[test]
fn the_first_duplicate_is_told_and_nothing_is_written() {
    let (_vfs, db, table) = world();
    let before = used(&table);
    let mut txn = db.begin();
    let mut rows = shuffled(3001);
    let mark = txn.mark();
    // The row 700 has the index entry of another that came before it; later a row comes again.
    let twin = rows[700];
    rows.push(rows[5]);
    let end = load(&mut txn, &table, &rows, &[(twin, rows[3])]).unwrap();
    let LoadEnd::Duplicate { index: 1, key: found, value, existing } = end else { panic!("{end:?}") };
    assert_eq!((found, value), (key(rows[3]), format!("loaded {twin}").into_bytes()));
    assert_eq!(existing, format!("loaded {}", rows[3]).into_bytes());
    assert!(!txn.has_writes());
    txn.rollback_to(mark).unwrap();
    assert_eq!(used(&table), before);
    let end = load(&mut txn, &table, &rows, &[]).unwrap();
    assert!(matches!(end, LoadEnd::Duplicate { index: 0, .. }), "{end:?}");
    assert_eq!(load(&mut txn, &table, &rows[..3001], &[]).unwrap(), LoadEnd::Loaded);
    txn.commit().unwrap();
    assert_eq!(count(&db, T).unwrap(), 3001);
}

#[test]
fn a_refused_row_and_a_cancellation_leave_nothing() {
    let (_vfs, db, table) = world();
    let before = used(&table);
    let mut txn = db.begin();
    let mut rows = shuffled(3001);
    rows[2000] = u32::MAX;
    assert_eq!(load(&mut txn, &table, &rows, &[]).unwrap(), LoadEnd::Refused(77));
    assert_eq!(used(&table), before);
    let encoder = Numbers { twins: Vec::new() };
    let mut load = txn.begin_load(&table, &[true, true], encoder).unwrap().unwrap();
    load.submit(shuffled(3001), 3001, 1000);
    assert_eq!(txn.finish_load(load, &mut |_| false).unwrap(), LoadEnd::Cancelled);
    let encoder = Numbers { twins: Vec::new() };
    let mut load = txn.begin_load(&table, &[true, true], encoder).unwrap().unwrap();
    load.submit(shuffled(3001), 3001, 1000);
    drop(load);
    assert_eq!(used(&table), before);
    assert!(!txn.has_writes());
}

/// Encodes when it is told to: until then it keeps the thread that came with a batch.
struct Slow {
    begun: mpsc::Sender<()>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

impl RowEncoder for Slow {
    type Batch = Vec<u32>;

    fn encode(&self, batch: Vec<u32>, entries: &mut [Entries]) -> Result<(), i32> {
        self.begun.send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        Numbers { twins: Vec::new() }.encode(batch, entries)
    }
}

#[test]
fn a_load_that_is_given_up_waits_for_no_task_of_others() {
    let vfs = disk(1);
    let mut threads = options(&Lines::default());
    (threads.background_threads, threads.load_threads) = (1, 1);
    threads.load_memory_bytes = 64 << 10;
    let files: Arc<dyn Vfs> = vfs.clone();
    let db = Db::open_with_vfs(threads, files.clone(), files).unwrap();
    let other = "./db/other";
    [T, other].iter().for_each(|name| db.create_table(&spec(name)).unwrap());
    let (table, slow) = (db.open_table(T).unwrap(), db.open_table(other).unwrap());
    let before = used(&table);
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let encoder = Slow { begun, go_on: Mutex::new(may_go_on) };
    let mut theirs = db.begin();
    let mut their_load = theirs.begin_load(&slow, &[true, true], encoder).unwrap().unwrap();
    their_load.submit(shuffled(100), 100, 1000);
    has_begun.recv().unwrap();
    // The only thread is busy. One load is dropped, one is killed at its end, one while it waits for room.
    let mut txn = db.begin();
    let begin = |txn: &mut Txn| {
        txn.begin_load(&table, &[true, true], Numbers { twins: Vec::new() })
            .unwrap()
            .expect("nobody is at work")
    };
    let mut load = begin(&mut txn);
    assert!(load.submit(shuffled(500), 500, 1000));
    drop(load);
    let mut load = begin(&mut txn);
    assert!(load.submit(shuffled(500), 500, 1000));
    assert_eq!(txn.finish_load(load, &mut |_| false).unwrap(), LoadEnd::Cancelled);
    let mut load = begin(&mut txn);
    let mut asked = false;
    let mut goes_on = || !std::mem::replace(&mut asked, true);
    let submitted =
        (0..1000).take_while(|_| load.submit_while(shuffled(500), 500, 10_000, &mut goes_on)).count();
    assert!((1..1000).contains(&submitted), "{submitted} batches");
    assert_eq!(txn.finish_load(load, &mut |_| true).unwrap(), LoadEnd::Cancelled);
    assert_eq!(used(&table), before);
    txn.rollback();
    // The other one has all of its rows.
    go_on.send(()).unwrap();
    assert_eq!(theirs.finish_load(their_load, &mut |_| true).unwrap(), LoadEnd::Loaded);
    theirs.commit().unwrap();
    assert_eq!(count(&db, other).unwrap(), 100);
    assert_eq!(db.load_memory().used(), 0);
}

#[test]
fn there_is_no_load_where_something_is_or_others_are() {
    let (_vfs, db, table) = world();
    let try_load = |txn: &mut Txn| {
        let begun = txn.begin_load(&table, &[true, true], Numbers { twins: Vec::new() }).unwrap();
        begun.is_some()
    };
    let (mut one, mut other) = (db.begin(), db.begin());
    // Another's lock on a key that is not there, then its write.
    other.set_takes_gaps(true);
    let found = other.get_locked(&table, 0, &key(5), LockMode::Shared, LockWait::NoWait).unwrap();
    assert_eq!(found, LockedRead::Absent);
    assert!(!try_load(&mut one));
    other.rollback();
    other.put(&table, 1, b"x", b"y", LockWait::NoWait).unwrap();
    assert!(!try_load(&mut one));
    other.rollback();
    // What the transaction has written itself, and what is committed.
    one.put(&table, 1, b"x", b"y", LockWait::NoWait).unwrap();
    assert!(!try_load(&mut one));
    one.rollback();
    assert!(try_load(&mut one), "given up at once");
    // While it has the table, nobody else gets a key.
    assert!(other.put(&table, 0, b"x", b"y", LockWait::NoWait).is_err());
    assert!(!try_load(&mut other));
    one.rollback();
    common::fill(&db, T, 0..1).unwrap();
    assert!(!try_load(&mut one));
}

#[test]
fn a_crash_or_failure_at_any_moment_leaves_all_or_nothing() {
    let rows = shuffled(701);
    let mut ends = [0, 0];
    for n in 0.. {
        let vfs = disk(n);
        let mut small = options(&Lines::default());
        small.load_memory_bytes = 4 << 10;
        let files: Arc<dyn Vfs> = vfs.clone();
        let db = Db::open_with_vfs(small, files.clone(), files).unwrap();
        db.create_table(&spec(T)).unwrap();
        let table = db.open_table(T).unwrap();
        vfs.fail_io_after(n, if n % 2 == 0 { FaultKind::Sticky } else { FaultKind::Error });
        let mut txn = db.begin();
        let ended = load(&mut txn, &table, &rows, &[]);
        let committed = ended.is_ok() && txn.commit().is_ok();
        let done = committed && n > 1000;
        ends[usize::from(committed)] += 1;
        vfs.clear_faults();
        drop(txn);
        if !committed && ended.is_err() {
            assert_eq!(used(&table), 0, "after the failure of operation {n}");
        }
        db.abandon();
        drop((table, db));
        let db = open(&vfs.crash()).unwrap();
        let found = count(&db, T).unwrap() as usize;
        assert!(found == rows.len() || (found == 0 && !committed), "operation {n}: {found} rows");
        if done || (committed && ends[1] > 3) {
            break;
        }
    }
    assert!(ends[0] > 10, "{ends:?}");
}

#[test]
fn a_prepared_load_survives_a_crash_and_commits() {
    let (vfs, db, table) = world();
    let mut txn = db.begin();
    assert_eq!(load(&mut txn, &table, &shuffled(1009), &[]).unwrap(), LoadEnd::Loaded);
    txn.prepare(b"xid").unwrap();
    std::mem::forget(txn);
    db.abandon();
    drop((table, db));
    let db = open(&vfs.crash()).unwrap();
    assert_eq!(count(&db, T).unwrap(), 0);
    assert!(db.commit_by_xid(b"xid").unwrap());
    assert_eq!(count(&db, T).unwrap(), 1009);
}

/// As many leaves as a hundred nodes have children: inner nodes come with them, in one flush, and no run is
/// written again.
#[test]
fn a_load_of_many_leaves_gets_levels_of_inner_nodes() {
    let (vfs, db, table) = world();
    for rows in [(0..30_000).collect::<Vec<u32>>(), shuffled(30_011)] {
        let written = db.metrics().flush_written_bytes.get();
        let mut txn = db.begin();
        assert_eq!(load(&mut txn, &table, &rows, &[]).unwrap(), LoadEnd::Loaded);
        txn.commit().unwrap();
        db.run_jobs().unwrap();
        assert!(db.metrics().flush_written_bytes.get() - written < 64 << 10, "leaves are not rewritten");
        for dict in table.dicts() {
            let stats = dict.tree().stats();
            assert!(stats.leaves > 64, "{stats:?}");
            assert!(stats.height >= 3 && stats.nodes > stats.leaves / 4, "{stats:?}");
            assert_eq!(stats.buffered_bytes, 0, "{stats:?}");
            // A node that is split keeps at least half of what it may have.
            assert!(stats.nodes < stats.leaves, "{stats:?}");
        }
        db.check_table(&table, &mut |_| true).unwrap();
        assert_eq!(count(&db, T).unwrap() as usize, rows.len());
        let mut txn = db.begin();
        for n in (0..30_000).step_by(611) {
            assert_eq!(txn.get(&table, 0, &key(n)).unwrap().unwrap(), format!("loaded {n}").into_bytes());
        }
        drop(txn);
        db.checkpoint().unwrap();
        if rows.len() == 30_000 {
            db.truncate_table(T).unwrap();
        }
    }
    drop(table);
    let db = open(&vfs.crash()).unwrap();
    assert_eq!(count(&db, T).unwrap(), 30_011);
}
