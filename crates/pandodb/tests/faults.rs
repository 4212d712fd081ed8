//! Damage and failures: a clear error, the other tables go on, nothing else is lost (I8).
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{count, disk, fill, open, open_logging, options, spec, Lines};
use pando_storage::vfs::FaultKind;
use pandodb::{Db, EngineError, Error, LogLevel, SimVfs, Vfs};

const ROWS: u32 = 2000;

/// Tables `db/a` and `db/b` of 2000 rows, checkpointed and closed.
fn two_tables() -> Arc<SimVfs> {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    for path in ["./db/a", "./db/b"] {
        db.create_table(&spec(path)).unwrap();
        fill(&db, path, 0..ROWS).unwrap();
    }
    db.run_jobs().unwrap();
    db.close().unwrap();
    vfs
}

fn rows_file_bytes(vfs: &Arc<SimVfs>) -> u64 {
    vfs.open(Path::new("/data/db/a.pando/main.pando"), pando_storage::vfs::OpenMode::Existing)
        .unwrap()
        .len()
        .unwrap()
}

/// A database whose log may take 64 MiB, in files of four.
fn open_with_large_log(vfs: &Arc<SimVfs>) -> Arc<Db> {
    let mut options = options(&Lines::default());
    options.log_file_bytes = 4 << 20;
    options.log_kept_bytes_max = 64 << 20;
    options.tree.memtable_bytes = 1 << 20;
    let files: Arc<dyn Vfs> = vfs.clone();
    Db::open_with_vfs(options, files.clone(), files).unwrap()
}

/// Writes a hundred rows at a time until that fails, then single ones. `write` gets how many, and the number of the step.
fn until_full(mut write: impl FnMut(u32, u32) -> bool) {
    for rows in [100, 1] {
        let full = (0..100_000).find(|step| !write(rows, *step));
        assert!(full.is_some(), "the disk never fills up");
    }
}

#[test]
fn a_flipped_bit_anywhere_in_a_table_is_an_error_or_harmless_and_other_tables_go_on() {
    let len = rows_file_bytes(&two_tables());
    let mut errors = 0;
    for place in (0..len).step_by((len / 97) as usize) {
        let vfs = two_tables();
        vfs.flip_bit(Path::new("/data/db/a.pando/main.pando"), place, 3);
        let db = open(&vfs).unwrap();
        match count(&db, "./db/a") {
            Ok(rows) => assert_eq!(rows, ROWS, "a wrong answer after a bit flipped at {place}"),
            Err(Error::Engine(error @ EngineError::Corruption { .. })) => {
                assert!(error.to_string().contains("/data/db/a.pando/main.pando"), "{error}");
                errors += 1;
            }
            Err(other) => panic!("a bit flipped at {place}: {other}"),
        }
        assert_eq!(count(&db, "./db/b").unwrap(), ROWS);
        fill(&db, "./db/b", ROWS..ROWS + 10).unwrap();
    }
    assert!(errors > 20, "only {errors} of the flips were noticed");
}

#[test]
fn a_truncated_file_is_an_error_for_its_table_only() {
    let vfs = two_tables();
    let path = Path::new("/data/db/a.pando/main.pando");
    let file = vfs.open(path, pando_storage::vfs::OpenMode::Existing).unwrap();
    file.set_len(file.len().unwrap() / 2).unwrap();
    let db = open(&vfs).unwrap();
    let error = db.open_table("./db/a").unwrap_err();
    assert!(error.to_string().contains("main.pando"), "{error}");
    assert_eq!(count(&db, "./db/b").unwrap(), ROWS);
}

#[test]
fn the_log_of_a_damaged_table_is_kept_until_the_table_is_whole_again() {
    let vfs = two_tables();
    let db = open(&vfs).unwrap();
    fill(&db, "./db/a", ROWS..ROWS + 100).unwrap();
    drop(db);
    let vfs = vfs.crash();
    // The superblocks are unreadable for a while, as if the wrong disk were mounted.
    let path = Path::new("/data/db/a.pando/main.pando");
    for slot in [0, 4096] {
        vfs.flip_bit(path, slot + 10, 1);
    }
    let lines = Lines::default();
    let db = open_logging(&vfs, &lines).unwrap();
    assert!(lines.lock().unwrap().iter().any(|(l, t)| *l == LogLevel::Error && t.contains("main.pando")));
    assert!(db.open_table("./db/a").is_err());
    fill(&db, "./db/b", ROWS..ROWS + 5000).unwrap();
    db.run_jobs().unwrap();
    db.close().unwrap();
    drop(db);
    for slot in [0, 4096] {
        vfs.flip_bit(path, slot + 10, 1);
    }
    let db = open(&vfs).unwrap();
    assert_eq!(count(&db, "./db/a").unwrap(), ROWS + 100);
    assert_eq!(count(&db, "./db/b").unwrap(), ROWS + 5000);
}

#[test]
fn a_full_disk_refuses_writes_and_the_engine_goes_on_once_there_is_space() {
    let vfs = two_tables();
    let db = open(&vfs).unwrap();
    vfs.set_capacity(Some(vfs.used_bytes() + 200_000));
    let mut acknowledged = ROWS;
    let refused = loop {
        let rows = acknowledged..acknowledged + 100;
        if let Err(error) = fill(&db, "./db/a", rows) {
            break error;
        }
        acknowledged += 100;
        // A full disk fails jobs too; they are tried again.
        let _ = db.run_jobs();
        db.tick();
        assert!(acknowledged < 10_000_000, "the disk never fills up");
    };
    assert!(matches!(refused, Error::Engine(EngineError::DiskFull { .. })), "{refused}");
    assert_eq!(count(&db, "./db/b").unwrap(), ROWS, "reading goes on");
    assert_eq!(count(&db, "./db/a").unwrap(), acknowledged);
    vfs.set_capacity(None);
    // Who is far behind writes again when the work that has failed is done; a thread tries it each second.
    db.run_jobs().unwrap();
    fill(&db, "./db/a", acknowledged..acknowledged + 100).unwrap();
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    drop(db);
    let db = open(&vfs.crash()).unwrap();
    assert_eq!(count(&db, "./db/a").unwrap(), acknowledged + 100);
}

#[test]
fn on_a_full_disk_tables_can_be_dropped_emptied_and_renamed() {
    // Symptom: DROP of a partitioned table failed on a full disk when the server had removed its own file of it already,
    // and nothing could open or drop the table any more.
    for room in (100_000..100_000 + 20_000).step_by(1900) {
        let vfs = two_tables();
        let db = open(&vfs).unwrap();
        db.create_table(&spec("./db/c")).unwrap();
        fill(&db, "./db/c", 0..ROWS).unwrap();
        vfs.set_capacity(Some(vfs.used_bytes() + room));
        until_full(|rows, step| fill(&db, "./db/a", ROWS + step * rows..ROWS + (step + 1) * rows).is_ok());
        // As the server begins it where its files have both names for a while.
        db.expect_name("./db/d", "2").unwrap();
        db.rename_table("./db/b", "./db/d").unwrap();
        db.truncate_table("./db/c").unwrap();
        assert_eq!((count(&db, "./db/c").unwrap(), count(&db, "./db/d").unwrap()), (0, ROWS));
        db.drop_table("./db/d").unwrap();
        db.drop_table("./db/a").unwrap();
        // What they had serves the others.
        db.tick();
        fill(&db, "./db/c", 0..100).unwrap();
        drop(db);
        let db = open(&vfs.crash()).unwrap();
        assert_eq!(count(&db, "./db/c").unwrap(), 100);
        assert!(db.open_table("./db/a").is_err() && db.open_table("./db/d").is_err());
    }
}

#[test]
fn a_log_without_space_for_its_next_file_gives_back_the_old_ones() {
    // Symptom: with less room than a log file takes, commits failed until the age of the tables, minutes later,
    // brought checkpoints; what the log held would have been room enough.
    let vfs = two_tables();
    let db = open_with_large_log(&vfs);
    vfs.set_capacity(Some(vfs.used_bytes() + (12 << 20)));
    let mut commits = 0;
    // The same rows, so that the table stays small.
    while fill(&db, "./db/a", 0..100).is_ok() {
        commits += 1;
        assert!(commits < 100_000, "the disk never fills up");
    }
    assert!(db.metrics().log_kept_bytes.get() > 8 << 20, "the log takes most of it");
    vfs.set_capacity(Some(vfs.used_bytes() + (3 << 20)));
    db.tick();
    fill(&db, "./db/a", 0..100).unwrap();
    assert_eq!(count(&db, "./db/a").unwrap(), ROWS);
}

#[test]
fn old_log_is_given_back_where_only_the_reserve_is_left_of_the_log() {
    // Symptom: before log is given up, the catalog notes how old the files are. Where commits had filled the log up to the
    // reserve, there was no space for that, and nothing could be committed until the disk had room for a whole log file.
    for room in (12 << 20..(12 << 20) + 200_000).step_by(37_000) {
        let vfs = two_tables();
        let db = open_with_large_log(&vfs);
        vfs.set_capacity(Some(vfs.used_bytes() + room));
        until_full(|rows, _| fill(&db, "./db/a", 0..rows).is_ok());
        vfs.set_capacity(Some(vfs.used_bytes() + (3 << 20)));
        db.tick();
        fill(&db, "./db/a", 0..100).unwrap();
        assert_eq!(count(&db, "./db/a").unwrap(), ROWS);
    }
}

#[test]
fn a_failed_log_write_latches_the_engine_read_only_and_says_so() {
    let vfs = two_tables();
    let db = open(&vfs).unwrap();
    fill(&db, "./db/a", ROWS..ROWS + 10).unwrap();
    vfs.fail_io_after(1, FaultKind::Sticky);
    let failed = fill(&db, "./db/a", ROWS + 10..ROWS + 20).unwrap_err();
    assert!(matches!(failed, Error::InDoubt { .. }), "{failed}");
    vfs.clear_faults();
    assert_eq!(count(&db, "./db/a").unwrap(), ROWS + 20, "it can be read");
    let latched = fill(&db, "./db/b", ROWS..ROWS + 1).unwrap_err();
    assert!(matches!(latched, Error::Engine(EngineError::ReadOnly { .. })), "{latched}");
    assert_eq!(count(&db, "./db/b").unwrap(), ROWS, "reading goes on");
    assert!(db.status_text().contains("read_only_latched"));
    drop(db);
    let db = open(&vfs.crash()).unwrap();
    let rows = count(&db, "./db/a").unwrap();
    assert!(rows == ROWS + 10 || rows == ROWS + 20, "{rows}");
}

/// Every I/O of a busy stretch fails once, in turn; whatever was acknowledged is there.
#[test]
fn any_single_failing_io_loses_nothing_acknowledged() {
    for n in 1.. {
        let vfs = disk(n);
        let db = open(&vfs).unwrap();
        db.create_table(&spec("./db/a")).unwrap();
        vfs.fail_io_after(n, FaultKind::Error);
        let before = vfs.io_count();
        let (acknowledged, attempted) = busy_stretch(&db);
        let met = vfs.io_count() - before >= n;
        drop(db);
        let db = open(&vfs.crash()).unwrap_or_else(|e| panic!("reopen after a fault at I/O {n}: {e}"));
        let rows = count(&db, "./db/a").unwrap_or_else(|e| panic!("fault at I/O {n}: {e}"));
        assert!(rows >= acknowledged && rows <= attempted, "{rows} of {acknowledged}..={attempted}, I/O {n}");
        if !met {
            return;
        }
        assert!(n < 20_000, "a busy stretch with endless I/O");
    }
}

fn busy_stretch(db: &Arc<Db>) -> (u32, u32) {
    let (mut acknowledged, mut attempted) = (0, 0);
    for batch in 0..12 {
        let rows = batch * 40..(batch + 1) * 40;
        let end = rows.end;
        attempted = end;
        match fill(db, "./db/a", rows) {
            Ok(()) => acknowledged = end,
            // Refused or in doubt: nothing more is tried, so that the count tells.
            Err(_) => break,
        }
        let _ = db.run_jobs();
        if batch % 4 == 3 {
            let _ = db.checkpoint();
        }
    }
    (acknowledged, attempted)
}
