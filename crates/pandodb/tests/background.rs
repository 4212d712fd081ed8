//! Background threads at work beside trouble: a table that fails costs the others nothing, nor does one
//! whose disk is slow; and tables go away or change their names under a checkpoint.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::slow::{Barrier, Held, SlowVfs};
use common::{count, disk, fill, open, options, spec, Lines};
use pandodb::{Db, EngineError, Error, FlushMode, LockWait, LogLevel, SimVfs, Table, Vfs};

/// Opens the database with background threads.
fn open_with_threads(vfs: &Arc<SimVfs>, lines: &Lines) -> Arc<Db> {
    let mut options = options(lines);
    options.background_threads = 2;
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(options, files.clone(), files).unwrap()
}

fn sealed_bytes(table: &Table) -> u64 {
    table.dicts().iter().map(|dict| dict.tree().debt().sealed_bytes).sum()
}

/// Waits until the table's memtables are written.
fn caught_up(table: &Table) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if sealed_bytes(table) == 0 {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn a_damaged_table_costs_the_others_neither_their_writes_nor_their_background_work() {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    for path in ["./db/a", "./db/b"] {
        db.create_table(&spec(path)).unwrap();
        fill(&db, path, 0..500).unwrap();
    }
    db.run_jobs().unwrap();
    db.close().unwrap();
    drop(db);
    // The first block behind the superblocks: a segment of the first run.
    vfs.flip_bit(Path::new("/data/db/a.pando/main.pando"), 16384, 3);

    let lines = Lines::default();
    let db = open_with_threads(&vfs, &lines);
    let refused = (0..1000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(1));
        fill(&db, "./db/a", 0..500).err()
    });
    // Its own writers are told before memory fills up.
    assert!(matches!(refused, Some(Error::Engine(EngineError::Corruption { .. }))), "{refused:?}");
    let b = db.open_table("./db/b").unwrap();
    for commit in 0..300 {
        fill(&db, "./db/b", 0..100).unwrap_or_else(|e| panic!("commit {commit} to a sound table: {e}"));
    }
    assert!(caught_up(&b), "{} bytes in sealed memtables of a sound table", sealed_bytes(&b));
    assert_eq!(count(&db, "./db/b").unwrap(), 500);
    let told = lines.lock().unwrap().iter().filter(|(level, _)| *level == LogLevel::Error).count();
    assert!((1..10).contains(&told), "one failure is told {told} times: {lines:?}");
    db.abandon();
}

/// A database whose tables' files can be held up at their next sync; the log's cannot.
fn slow(vfs: &Arc<SimVfs>, threads: usize) -> (Arc<Db>, Arc<Barrier>) {
    let barrier = Arc::new(Barrier::default());
    let files = Arc::new(SlowVfs { disk: vfs.clone(), barrier: barrier.clone() });
    let mut options = options(&Lines::default());
    options.background_threads = threads;
    options.checkpoint_period_s = 0;
    (Db::open_with_vfs(options, files, vfs.clone()).unwrap(), barrier)
}

#[test]
fn a_lazy_commit_is_durable_after_about_a_second_however_long_a_checkpoint_takes() {
    let vfs = disk(1);
    let (db, barrier) = slow(&vfs, 1);
    db.create_table(&spec("./db/a")).unwrap();
    db.set_flush_mode(FlushMode::Lazy);
    barrier.close(Held::Syncs);
    fill(&db, "./db/a", 0..100).unwrap();
    barrier.wait_for_one();
    fill(&db, "./db/a", 100..200).unwrap();
    let syncs = db.metrics().log_syncs.get();
    let begun = Instant::now();
    while db.metrics().log_syncs.get() < syncs + 2 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let cut_off = vfs.crash();
    barrier.open();
    db.abandon();
    assert_eq!(count(&open(&cut_off).unwrap(), "./db/a").unwrap(), 200);
}

#[test]
fn who_is_killed_does_not_wait_for_memory_any_more_and_a_drop_never_does() {
    let vfs = disk(1);
    let barrier = Arc::new(Barrier::default());
    let files = Arc::new(SlowVfs { disk: vfs.clone(), barrier: barrier.clone() });
    let mut options = options(&Lines::default());
    (options.background_threads, options.memory_bytes) = (1, 64 << 20);
    options.tree.memtable_bytes = 64 << 20;
    let db = Db::open_with_vfs(options, files, vfs.clone()).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    db.create_table(&spec("./db/b")).unwrap();
    barrier.close(Held::Writes);
    let (a, b) = (db.open_table("./db/a").unwrap(), db.open_table("./db/b").unwrap());
    let value = vec![b'x'; 128 << 10];
    // The worker is stuck, and all that memtables may have is taken.
    for n in (0u32..).take_while(|_| db.metrics().memtable_unwritten_bytes.get() <= 14 << 20) {
        let mut txn = db.begin();
        txn.put(&a, 0, &n.to_be_bytes(), &value, LockWait::NoWait).unwrap();
        txn.commit().unwrap();
    }
    let waits = db.metrics().memory_waits.get();
    let mut txn = db.begin();
    let id = txn.id();
    std::thread::scope(|scope| {
        // On the simulated clock nobody's time is ever over.
        scope.spawn(|| {
            txn.put(&b, 0, b"1", &value, LockWait::NoWait).unwrap_err();
            txn.rollback();
        });
        while db.metrics().memory_waits.get() == waits {
            std::thread::sleep(Duration::from_millis(1));
        }
        db.kill(id);
    });
    drop((txn, b));
    db.drop_table("./db/b").unwrap();
    barrier.open();
    db.abandon();
}

#[test]
fn a_long_transaction_pays_for_background_work_as_it_goes() {
    let vfs = disk(1);
    let (db, barrier) = slow(&vfs, 1);
    db.create_table(&spec("./db/a")).unwrap();
    let table = db.open_table("./db/a").unwrap();
    barrier.close(Held::Writes);
    // A worker is stuck, and memtables pile up.
    for commit in 0..10 {
        fill(&db, "./db/a", commit * 100..(commit + 1) * 100).unwrap();
    }
    assert!(sealed_bytes(&table) > 0);
    let waits = || db.metrics().backpressure_waits.get();
    let (before, mut txn, value) = (waits(), db.begin(), vec![b'x'; 1000]);
    for n in 0..300u32 {
        txn.put(&table, 0, &n.to_be_bytes(), &value, LockWait::NoWait).unwrap();
    }
    assert!(waits() - before >= 4, "{} waits for 300 KB", waits() - before);
    txn.rollback();
    barrier.open();
    assert!(caught_up(&table));
    db.abandon();
}

/// Runs `act` while a checkpoint of `db/a` waits for the disk, lets the checkpoint go on, and gives the
/// database to `check`: at once, and after a power cut.
fn during_a_checkpoint(act: fn(&Arc<Db>), check: fn(&Arc<Db>)) {
    for seed in 0..8 {
        let vfs = disk(seed);
        let (db, barrier) = slow(&vfs, 0);
        db.create_table(&spec("./db/a")).unwrap();
        fill(&db, "./db/a", 0..300).unwrap();
        let is_cut = seed % 2 == 0;
        std::thread::scope(|scope| {
            barrier.close(Held::Syncs);
            let checkpoint = scope.spawn(|| db.checkpoint());
            barrier.wait_for_one();
            let acting = scope.spawn(|| act(&db));
            if !is_cut {
                std::thread::sleep(Duration::from_millis(2));
                barrier.open();
            }
            // What needs the file's sync itself is let go by now; the rest must not wait for it.
            while !acting.is_finished() && is_cut {
                std::thread::sleep(Duration::from_millis(2));
            }
            if is_cut {
                let cut_off = vfs.crash();
                barrier.open();
                let _ = checkpoint.join().unwrap();
                check(&open(&cut_off).unwrap());
            } else {
                acting.join().unwrap();
                checkpoint.join().unwrap().unwrap();
                check(&db);
                db.run_jobs().unwrap();
                db.tick();
                check(&db);
                check(&open(&vfs.crash()).unwrap());
            }
        });
    }
}

#[test]
fn a_table_can_be_dropped_during_its_checkpoint_and_its_name_used_again() {
    during_a_checkpoint(
        |db| {
            db.drop_table("./db/a").unwrap();
            assert!(!db.table_exists("./db/a"));
        },
        |db| {
            assert!(!db.table_exists("./db/a"));
            db.create_table(&spec("./db/a")).unwrap();
            fill(db, "./db/a", 0..20).unwrap();
            assert_eq!(count(db, "./db/a").unwrap(), 20);
            db.drop_table("./db/a").unwrap();
        },
    );
}

#[test]
fn a_table_can_be_renamed_during_its_checkpoint() {
    during_a_checkpoint(
        |db| {
            db.rename_table("./db/a", "./db/b").unwrap();
            fill(db, "./db/b", 300..400).unwrap();
        },
        |db| {
            assert!(!db.table_exists("./db/a"));
            assert_eq!(count(db, "./db/b").unwrap(), 400);
        },
    );
}
