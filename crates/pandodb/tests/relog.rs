//! A prepared transaction that nobody resolves does not keep the log growing: it is logged anew.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{count, disk, options, spec, Lines};
use pando_storage::vfs::FaultKind;
use pandodb::{Db, LockMode, LockWait, Options, SimVfs, Table, Txn, Vfs};

const T: &str = "./db/t";
const OTHER: &str = "./db/other";
/// Rows of the transaction that is prepared first; most of them are spilled.
const ROWS: u32 = 20;

/// A small log, and write sets that are spilled early.
fn settings() -> Options {
    let mut settings = options(&Lines::default());
    settings.log_file_bytes = 16 << 10;
    settings.log_kept_bytes_max = 160 << 10;
    settings.write_set_bytes = 1500;
    settings
}

fn open(vfs: &Arc<SimVfs>) -> pandodb::Result<Arc<Db>> {
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(settings(), files.clone(), files)
}

fn start(seed: u64) -> Arc<SimVfs> {
    let vfs = disk(seed);
    let db = open(&vfs).unwrap();
    db.create_table(&spec(T)).unwrap();
    db.create_table(&spec(OTHER)).unwrap();
    db.close().unwrap();
    vfs
}

fn put(txn: &mut Txn, table: &Table, key: &str) -> pandodb::Result<()> {
    for dict in 0..2 {
        txn.put(table, dict, key.as_bytes(), &[7; 100], LockWait::NoWait)?;
    }
    Ok(())
}

/// Prepares "large", partly spilled, and "small", and leaves both alone.
fn forget_two(db: &Arc<Db>) -> pandodb::Result<()> {
    let table = db.open_table(T)?;
    let mut txn = db.begin();
    for n in 0..ROWS {
        put(&mut txn, &table, &format!("large-{n:03}"))?;
    }
    txn.prepare(b"large")?;
    txn.detach();
    put(&mut txn, &table, "small")?;
    txn.prepare(b"small")?;
    txn.detach();
    Ok(())
}

/// Writes 4 KB of log for each round.
fn work_elsewhere(db: &Arc<Db>, rounds: u32) -> pandodb::Result<()> {
    let table = db.open_table(OTHER)?;
    for n in 0..rounds {
        let mut txn = db.begin();
        txn.put(&table, 0, &n.to_be_bytes(), &[9; 4000], LockWait::NoWait)?;
        txn.commit()?;
        if n % 4 == 3 {
            db.run_jobs()?;
            db.tick();
        }
    }
    Ok(())
}

fn rows(db: &Arc<Db>) -> u32 {
    count(db, T).unwrap()
}

#[test]
fn the_log_behind_forgotten_prepares_is_bounded_and_they_can_still_be_resolved() {
    let vfs = start(1);
    let db = open(&vfs).unwrap();
    forget_two(&db).unwrap();
    let most = settings().log_kept_bytes_max + 2 * settings().log_file_bytes;
    for round in 0..10 {
        work_elsewhere(&db, 60).unwrap();
        let metrics = db.metrics();
        assert!(metrics.log_kept_bytes.get() <= most, "round {round}: {}", metrics.log_kept_bytes.get());
        assert!(metrics.log_held_bytes.get() <= metrics.log_kept_bytes.get());
    }
    let (renewed, written) =
        (db.metrics().log_prepares_renewed.get(), db.metrics().log_written_bytes.get() / (16 << 10));
    assert!((20..2 * written).contains(&renewed), "{renewed} in {written} files");
    assert!(db.commit_by_xid(b"large").unwrap());
    assert_eq!(rows(&db), ROWS);
    drop(db);
    // Through a restart, another round, and one more restart.
    let vfs = vfs.crash();
    let db = open(&vfs).unwrap();
    assert_eq!(db.report_prepared(9), [b"small"]);
    work_elsewhere(&db, 60).unwrap();
    assert!(db.metrics().log_prepares_renewed.get() > 0);
    drop(db);
    let vfs = vfs.crash();
    let db = open(&vfs).unwrap();
    assert_eq!((rows(&db), db.report_prepared(9)), (ROWS, vec![b"small".to_vec()]));
    let table = db.open_table(T).unwrap();
    let locked = db.begin().get_locked(&table, 0, b"small", LockMode::Shared, LockWait::NoWait);
    assert!(matches!(locked, Err(pandodb::Error::WouldBlock)), "{locked:?}");
    assert!(db.rollback_by_xid(b"small").unwrap());
    drop((table, db));
    let db = open(&vfs.crash()).unwrap();
    assert_eq!(rows(&db), ROWS);
    assert!(db.report_prepared(9).is_empty());
}

#[test]
fn one_that_has_left_and_was_logged_anew_is_taken_back_by_its_connection() {
    for commits in [true, false] {
        let vfs = start(2);
        let db = open(&vfs).unwrap();
        let table = db.open_table(T).unwrap();
        let mut txn = db.begin();
        put(&mut txn, &table, "a").unwrap();
        txn.prepare(b"x").unwrap();
        txn.leave();
        work_elsewhere(&db, 60).unwrap();
        assert!(db.metrics().log_prepares_renewed.get() > 0);
        if commits {
            // Nobody else remembers: it is durable when it is acknowledged.
            txn.commit().unwrap();
        } else {
            txn.rollback();
        }
        drop((txn, table, db));
        let db = open(&vfs.crash()).unwrap();
        assert_eq!(rows(&db), u32::from(commits));
        assert!(db.report_prepared(9).is_empty());
    }
}

/// A table whose file cannot be opened costs its prepared transaction nothing: what the log has is kept.
#[test]
fn what_a_start_could_not_restore_is_logged_anew_whole() {
    let vfs = start(3);
    let db = open(&vfs).unwrap();
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    put(&mut txn, &table, "a").unwrap();
    txn.prepare(b"x").unwrap();
    txn.detach();
    // Nothing of the table is in the log but this.
    db.checkpoint().unwrap();
    drop((txn, table, db));
    let vfs = vfs.crash();
    let (file, away) = (Path::new("/data/db/t.pando/main.pando"), Path::new("/data/db/t.pando/away"));
    vfs.rename(file, away).unwrap();
    let db = open(&vfs).unwrap();
    assert!(db.commit_by_xid(b"x").is_err(), "its table is not there");
    work_elsewhere(&db, 120).unwrap();
    assert!(db.metrics().log_prepares_renewed.get() > 0);
    db.flush_logs().unwrap();
    drop(db);
    vfs.rename(away, file).unwrap();
    let db = open(&vfs).unwrap();
    assert!(db.commit_by_xid(b"x").unwrap());
    assert_eq!(rows(&db), 1);
}

/// What was logged anew stands in a log whose begin was trimmed: that is not missed. A file of what is left is.
#[test]
fn behind_what_was_logged_anew_a_lost_file_of_the_log_is_missed() {
    let vfs = start(4);
    let db = open(&vfs).unwrap();
    forget_two(&db).unwrap();
    work_elsewhere(&db, 120).unwrap();
    assert!(db.metrics().log_prepares_renewed.get() > 2);
    db.flush_logs().unwrap();
    drop(db);
    let logs = |vfs: &Arc<SimVfs>| {
        let entries = vfs.read_dir(Path::new("/data/.pando")).unwrap().into_iter();
        let mut names: Vec<String> =
            entries.map(|entry| entry.name).filter(|name| name.starts_with("pando-0")).collect();
        names.sort();
        names
    };
    let vfs = vfs.crash();
    let names = logs(&vfs);
    assert!(names.len() > 2 && *names[0] > *"pando-000009.log", "{names:?}");
    for name in &names[1..] {
        let vfs = vfs.copy_after_clean_stop();
        vfs.remove_file(&Path::new("/data/.pando").join(name)).unwrap();
        let error = open(&vfs).expect_err(name).to_string();
        assert!(error.contains(".log"), "{error}");
    }
    let db = open(&vfs).unwrap();
    assert_eq!(db.report_prepared(9).len(), 2);
    assert!(db.commit_by_xid(b"large").unwrap() && db.rollback_by_xid(b"small").unwrap());
    assert_eq!(rows(&db), ROWS);
}

/// Whichever I/O the power fails at, each forgotten transaction comes back once and whole.
#[test]
fn a_crash_at_every_io_while_prepares_are_logged_anew_leaves_each_once() {
    let trace = |vfs: &Arc<SimVfs>| -> pandodb::Result<u64> {
        let db = open(vfs)?;
        work_elsewhere(&db, 28)?;
        let renewed = db.metrics().log_prepares_renewed.get();
        db.close()?;
        Ok(renewed)
    };
    let begin = |seed| {
        let vfs = start(seed);
        let db = open(&vfs).unwrap();
        forget_two(&db).unwrap();
        drop(db);
        vfs.crash()
    };
    let mut ios = 0;
    for at in 1.. {
        let vfs = begin(at);
        vfs.fail_io_after(at, FaultKind::Sticky);
        let finished = trace(&vfs);
        let vfs = vfs.crash();
        let db = open(&vfs).unwrap();
        let mut told = db.report_prepared(9);
        told.sort();
        assert_eq!(told, [b"large".to_vec(), b"small".to_vec()], "crash at {at}");
        assert!(db.commit_by_xid(b"large").unwrap());
        assert!(db.rollback_by_xid(b"small").unwrap());
        assert_eq!(rows(&db), ROWS, "crash at {at}");
        drop(db);
        let db = open(&vfs.crash()).unwrap();
        assert_eq!(rows(&db), ROWS, "crash at {at}");
        assert!(db.report_prepared(9).is_empty());
        if let Ok(renewed) = finished {
            assert!(renewed >= 2, "{renewed}");
            break;
        }
        ios = at;
    }
    assert!(ios > 30, "{ios}");
}
