//! Recovery meets trouble of its own: a failing I/O, another power cut in the middle, damaged blocks, a log
//! that does not belong to the files. Nothing acknowledged is lost without an error that says so.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{count, disk, fill, open, spec};
use pando_storage::vfs::{FaultKind, OpenMode};
use pandodb::{Db, EngineError, ReadMode, SimVfs, Vfs};

const ROWS: u32 = 600;

/// Tables `db/a` and `db/b` of 600 rows after a power cut: a third in the files, all in the log,
/// enough of it to fill memtables, and a drop, a rename and a creation just done.
fn cut_off(seed: u64) -> Arc<SimVfs> {
    let vfs = disk(seed);
    let db = open(&vfs).unwrap();
    for path in ["./db/a", "./db/x", "./db/gone"] {
        db.create_table(&spec(path)).unwrap();
        fill(&db, path, 0..ROWS / 3).unwrap();
    }
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    for path in ["./db/a", "./db/x", "./db/gone"] {
        fill(&db, path, 0..ROWS).unwrap();
    }
    db.drop_table("./db/gone").unwrap();
    db.rename_table("./db/x", "./db/b").unwrap();
    db.create_table(&spec("./db/empty")).unwrap();
    drop(db);
    vfs.crash()
}

/// A table that opens has everything in each of its dictionaries.
fn check(db: &Arc<Db>, path: &str, rows: u32, trouble: &str) {
    let Ok(table) = db.open_table(path) else { return };
    for dict in 0..2 {
        let mut txn = db.begin();
        let mut cursor = txn.cursor(&table, dict);
        let mut found = 0;
        cursor.seek_first(&mut txn, ReadMode::Snapshot).unwrap();
        while cursor.valid() {
            found += 1;
            cursor.next(&mut txn).unwrap();
        }
        assert_eq!(found, rows, "dictionary {dict} of {path} after {trouble}");
    }
}

#[test]
fn an_io_error_during_recovery_never_loses_rows_silently() {
    for kind in [FaultKind::Error, FaultKind::DiskFull, FaultKind::ShortRead, FaultKind::FlippedRead] {
        for n in 1.. {
            let trouble = format!("{kind:?} at I/O {n} of recovery");
            let mut vfs = cut_off(n);
            vfs.fail_io_after(n, kind);
            let before = vfs.io_count();
            if let Ok(db) = open(&vfs) {
                vfs.clear_faults();
                let met = vfs.io_count() - before >= n;
                for path in ["./db/a", "./db/b"] {
                    check(&db, path, ROWS, &trouble);
                }
                check(&db, "./db/empty", 0, &trouble);
                // What could not be read this time is not forgotten, also if power fails again.
                let _ = fill(&db, "./db/empty", 0..500);
                db.tick();
                let is_clean = n % 2 == 0 && db.close().is_ok();
                drop(db);
                if !is_clean {
                    vfs = vfs.crash();
                }
                if !met {
                    break;
                }
            }
            vfs.clear_faults();
            let db = open(&vfs).unwrap_or_else(|e| panic!("open after {trouble}: {e}"));
            for path in ["./db/a", "./db/b"] {
                assert_eq!(count(&db, path).unwrap(), ROWS, "{path} after {trouble} and a restart");
            }
            assert!(!db.table_exists("./db/gone") && !db.table_exists("./db/x"));
            assert!(n < 5000, "a recovery with endless I/O");
        }
    }
}

#[test]
fn a_damaged_block_that_recovery_meets_does_not_keep_the_other_tables_from_their_users() {
    let path = Path::new("/data/db/a.pando/main.pando");
    let len = cut_off(1).open(path, OpenMode::Existing).unwrap().len().unwrap();
    for place in (16384..len).step_by(512) {
        let vfs = cut_off(1);
        vfs.flip_bit(path, place, 3);
        let db = open(&vfs).unwrap_or_else(|e| panic!("a bit flipped at {place}: {e}"));
        assert_eq!(count(&db, "./db/b").unwrap(), ROWS);
        if let Ok(rows) = count(&db, "./db/a") {
            assert_eq!(rows, ROWS, "a bit flipped at {place}");
        }
        fill(&db, "./db/b", ROWS..ROWS + 500).unwrap();
        db.tick();
        drop(db);
        let vfs = vfs.crash();
        vfs.flip_bit(path, place, 3);
        let db = open(&vfs).unwrap_or_else(|e| panic!("a bit flipped at {place} and back: {e}"));
        assert_eq!(count(&db, "./db/a").unwrap(), ROWS, "a bit flipped at {place} and back");
        assert_eq!(count(&db, "./db/b").unwrap(), ROWS + 500);
    }
}

/// Removes the files of the engine's directory whose names begin with `prefix`.
fn remove(vfs: &Arc<SimVfs>, prefix: &str) {
    let dir = Path::new("/data/.pando");
    for entry in vfs.read_dir(dir).unwrap() {
        if entry.name.starts_with(prefix) {
            vfs.remove_file(&dir.join(entry.name)).unwrap();
        }
    }
}

#[test]
fn a_lost_log_is_an_error_and_not_a_new_beginning() {
    let vfs = cut_off(1);
    let db = open(&vfs).unwrap();
    db.close().unwrap();
    drop(db);
    remove(&vfs, "pando-");
    let error = open(&vfs).unwrap_err().to_string();
    assert!(error.contains("/data/.pando") && error.contains("log"), "{error}");
}

#[test]
fn a_lost_catalog_is_an_error_and_not_an_empty_database() {
    let vfs = cut_off(1);
    remove(&vfs, "catalog.pando");
    let error = open(&vfs).unwrap_err().to_string();
    assert!(error.contains("/data/.pando/catalog.pando"), "{error}");
}
