//! DDL that fails: every I/O of every operation fails once, or finds the disk full, and the engine goes on.
//! What the caller was told is what the table is, at once and after a restart.

mod common;

use std::sync::Arc;

use common::{count, directories, disk, fill, open, spec};
use pando_storage::vfs::FaultKind;
use pandodb::{Db, EngineError, Error, SimVfs};

const ROWS: u32 = 300;

fn with_table(seed: u64) -> (Arc<SimVfs>, Arc<Db>) {
    let vfs = disk(seed);
    let db = open(&vfs).unwrap();
    db.create_table(&spec("./db/a")).unwrap();
    fill(&db, "./db/a", 0..ROWS / 2).unwrap();
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    fill(&db, "./db/a", ROWS / 2..ROWS).unwrap();
    (vfs, db)
}

/// Whether the log has failed: then whatever was being done is in doubt until the next start.
fn is_latched(db: &Db) -> bool {
    db.metrics().read_only_latched.get() > 0
}

type Operation = fn(&Arc<Db>) -> pandodb::Result<()>;
type Check = fn(&Arc<SimVfs>, &Arc<Db>, bool);

/// Runs `operation` with its n-th I/O failing once, for n = 1, 2, ... until it does not meet the fault.
/// `check` gets the database, and whether the operation was done: at once, and after a clean stop or a
/// power cut and a restart.
fn at_every_io(operation: Operation, check: Check) {
    for kind in [FaultKind::Error, FaultKind::DiskFull] {
        for n in 1.. {
            // Of what a failed sync left behind, the disk keeps something else each time.
            let met = (0..6).any(|seed| at_io(n, kind, 6 * n + seed, operation, check));
            if !met {
                break;
            }
            assert!(n < 2000, "an operation with endless I/O");
        }
    }
}

/// False: the operation did not get to its n-th I/O.
fn at_io(n: u64, kind: FaultKind, seed: u64, operation: Operation, check: Check) -> bool {
    let (mut vfs, db) = with_table(seed);
    vfs.fail_io_after(n, kind);
    let before = vfs.io_count();
    let done = operation(&db).is_ok();
    let met = vfs.io_count() - before >= n;
    assert!(met || done, "the operation failed without a fault");
    vfs.clear_faults();
    let in_doubt = is_latched(&db);
    if !in_doubt {
        check(&vfs, &db, done);
    }
    let is_clean = seed % 2 == 0 && !in_doubt && db.close().is_ok();
    drop(db);
    if !is_clean {
        vfs = vfs.crash();
    }
    let db = open(&vfs).unwrap_or_else(|e| panic!("open after {kind:?} at I/O {n}: {e}"));
    if in_doubt {
        // Either is right, half is not.
        let is_right =
            |done| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&vfs, &db, done))).is_ok();
        assert!(is_right(true) || is_right(false), "{kind:?} at I/O {n} left half of the operation");
    } else {
        check(&vfs, &db, done);
    }
    met
}

fn exists(db: &Arc<Db>, path: &str, rows: u32) {
    assert!(db.table_exists(path), "{path} is gone");
    assert_eq!(count(db, path).unwrap(), rows);
}

fn is_gone(db: &Arc<Db>, path: &str) {
    assert!(!db.table_exists(path), "{path} is there");
    let error = db.open_table(path).unwrap_err();
    assert!(matches!(error, EngineError::NotFound { .. }), "{error}");
}

#[test]
fn a_create_is_done_or_not_as_its_caller_was_told() {
    at_every_io(
        |db| Ok(db.create_table(&spec("./db/b"))?),
        |vfs, db, done| {
            exists(db, "./db/a", ROWS);
            if done {
                exists(db, "./db/b", 0);
            } else {
                is_gone(db, "./db/b");
                assert_eq!(directories(vfs), ["a.pando"]);
            }
        },
    );
}

#[test]
fn a_drop_is_done_or_not_as_its_caller_was_told() {
    at_every_io(
        |db| Ok(db.drop_table("./db/a")?),
        |_, db, done| if done { is_gone(db, "./db/a") } else { exists(db, "./db/a", ROWS) },
    );
}

#[test]
fn a_rename_is_done_or_not_as_its_caller_was_told() {
    at_every_io(
        |db| Ok(db.rename_table("./db/a", "./db/b")?),
        |vfs, db, done| {
            let (name, other) = if done { ("./db/b", "./db/a") } else { ("./db/a", "./db/b") };
            is_gone(db, other);
            exists(db, name, ROWS);
            assert_eq!(directories(vfs), [format!("{}.pando", &name[5..])]);
        },
    );
}

#[test]
fn a_truncate_is_done_or_not_as_its_caller_was_told() {
    at_every_io(
        |db| Ok(db.truncate_table("./db/a")?),
        |_, db, done| exists(db, "./db/a", if done { 0 } else { ROWS }),
    );
}

/// After an operation that failed or left work to be done later, a table of that name lives for ever.
#[test]
fn what_a_failed_operation_left_to_do_never_touches_a_later_table_of_the_same_name() {
    let operations: [Operation; 3] = [
        |db| Ok(db.create_table(&spec("./db/b"))?),
        |db| {
            db.create_table(&spec("./db/b"))?;
            Ok(db.drop_table("./db/b")?)
        },
        |db| {
            db.create_table(&spec("./db/b"))?;
            Ok(db.rename_table("./db/b", "./db/c")?)
        },
    ];
    for (number, operation) in operations.iter().enumerate() {
        for (n, m) in (1..60).flat_map(|n| [(n, 1), (n, 2), (n, 3), (n, 5), (n, 8)]) {
            let (vfs, db) = with_table(n);
            for n in [n, n + m] {
                vfs.fail_io_after(n, FaultKind::DiskFull);
            }
            let _ = operation(&db);
            vfs.clear_faults();
            if is_latched(&db) {
                // The disk took space for the log's files beforehand; this can't be.
                continue;
            }
            for path in ["./db/b", "./db/c"] {
                if !db.table_exists(path) {
                    match db.create_table(&spec(path)) {
                        Ok(()) => {}
                        Err(error) => panic!("operation {number}, full at {n} and {m} later: {path}: {error}"),
                    }
                }
                fill(&db, path, 0..20).unwrap();
            }
            db.close().unwrap();
            drop(db);
            let db = open(&vfs).unwrap();
            for path in ["./db/b", "./db/c"] {
                match count(&db, path) {
                    Ok(rows) => assert_eq!(rows, 20),
                    Err(Error::Engine(error)) => {
                        panic!("operation {number}, full at {n} and {m} later: {path}: {error}")
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
}
