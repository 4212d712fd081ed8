//! Recovery meets trouble of its own: a failing I/O, another power cut in the middle, damaged blocks, a log
//! that does not belong to the files. Nothing acknowledged is lost without an error that says so.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{count, directories, disk, fill, open, options, spec, Lines};
use pando_storage::vfs::{FaultKind, OpenMode};
use pandodb::{Db, ReadMode, SimVfs, Vfs};

const ROWS: u32 = 240;

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
        for part in 0..5 {
            fill(&db, path, part * ROWS / 5..(part + 1) * ROWS / 5).unwrap();
        }
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
    for place in (16384..len).step_by(1024) {
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

/// What each of the tables is: its rows, or nothing.
fn state(db: &Arc<Db>) -> Vec<Option<u32>> {
    let rows =
        |name| db.table_exists(name).then(|| count(db, name).unwrap_or_else(|e| panic!("{name}: {e}")));
    ["./db/a", "./db/b", "./db/c", "./db/d"].map(rows).to_vec()
}

/// Work of all kinds that is killed at its n-th I/O. True: it was not, n is behind its end.
fn killed(n: u64, seed: u64) -> (Arc<SimVfs>, bool) {
    let vfs = disk(seed);
    let db = open(&vfs).unwrap();
    for path in ["./db/a", "./db/b"] {
        db.create_table(&spec(path)).unwrap();
        fill(&db, path, 0..40).unwrap();
    }
    vfs.fail_io_after(n, FaultKind::Sticky);
    let work = || -> pandodb::Result<()> {
        fill(&db, "./db/a", 40..80)?;
        db.checkpoint()?;
        db.rename_table("./db/a", "./db/c")?;
        db.drop_table("./db/b")?;
        db.create_table(&spec("./db/d"))?;
        fill(&db, "./db/d", 0..40)?;
        db.checkpoint()
    };
    let done = work().is_ok();
    vfs.clear_faults();
    (vfs, done)
}

/// The process is started again; then power fails. What the system showed to the second process it need
/// not have written: a superblock, a name.
fn killed_and_cut_off(n: u64, seed: u64) -> bool {
    let (vfs, done) = killed(n, seed);
    let db = open(&vfs).unwrap();
    let seen = state(&db);
    // Gives up the log that the files are thought to cover, and syncs what says that work on files is done.
    db.tick();
    drop(db);
    let db = open(&vfs.crash()).unwrap_or_else(|e| panic!("killed at I/O {n}: {e}"));
    assert_eq!(state(&db), seen, "killed at I/O {n}");
    // No name is blocked by a directory that came back.
    for (name, rows) in ["./db/a", "./db/b", "./db/c", "./db/d"].iter().zip(seen) {
        if rows.is_none() {
            db.create_table(&spec(name)).unwrap_or_else(|e| panic!("killed at I/O {n}: {e}"));
        }
    }
    done
}

#[test]
fn what_a_restarted_process_has_seen_survives_the_power_cut_after_it() {
    let end = (1..5000).find(|n| (0..5).all(|seed| killed_and_cut_off(*n, 5 * n + seed)));
    assert!(end.is_some_and(|n| n > 50), "{end:?}");
}

/// The second process comes as far as its m-th I/O, then power fails: what it did to files because of the
/// log must not outlive that part of the log.
#[test]
fn a_start_that_is_cut_off_leaves_each_table_whole_under_one_name() {
    for (n, m) in (1..110).flat_map(|n| (1..40).step_by(3).map(move |m| (n, m + n % 3))) {
        let (vfs, _) = killed(n, 40 * n + m);
        vfs.fail_io_after(m, FaultKind::Sticky);
        drop(open(&vfs));
        let vfs = vfs.crash();
        let db = open(&vfs).unwrap();
        let state = state(&db);
        let is_right = matches!(
            state[..],
            [Some(40 | 80), Some(40), None, None]
                | [None, Some(40), Some(80), None]
                | [None, None, Some(80), None | Some(0 | 40)]
        );
        assert!(is_right, "killed at I/O {n}, and then at {m} of the start: {state:?}");
        let names = ["a", "b", "c", "d"].iter().zip(&state).filter(|(_, rows)| rows.is_some());
        let expected: Vec<String> = names.map(|(name, _)| format!("{name}.pando")).collect();
        assert_eq!(directories(&vfs), expected, "killed at I/O {n}, and then at {m} of the start");
    }
}

#[test]
fn tables_without_their_catalog_are_not_given_a_new_one() {
    let vfs = cut_off(1);
    drop(open(&vfs).unwrap());
    let engine_dir = options(&Lines::default()).engine_dir;
    let saved = Path::new("/saved");
    vfs.rename(&engine_dir, saved).unwrap();
    let error = open(&vfs).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("catalog.pando") && error.contains("db/a.pando"), "{error}");
    vfs.remove_dir_all(&engine_dir).unwrap();
    vfs.rename(saved, &engine_dir).unwrap();
    let db = open(&vfs).unwrap();
    check(&db, "./db/a", ROWS, "the catalog is back");
    assert!(db.open_table("./db/a").is_ok());
}
