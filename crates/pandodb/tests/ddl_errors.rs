//! DDL that fails: every I/O of every operation fails once, or finds the disk full, and the engine goes on.
//! What the caller was told is what the table is, at once and after a restart.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;

use common::{count, directories, fill, open, spec, with_table};
use pando_storage::vfs::FaultKind;
use pandodb::{Db, EngineError, Error, LockWait, SimVfs};

const ROWS: u32 = 300;

/// Whether the log has failed: then whatever was being done is in doubt until the next start.
fn is_latched(db: &Db) -> bool {
    db.metrics().read_only_latched.get() > 0
}

type Operation = fn(&Arc<Db>) -> pandodb::Result<()>;
/// What is wrong with the database after the operation was done, or was not.
type Check = fn(&Arc<SimVfs>, &Arc<Db>, bool) -> Result<(), String>;

/// Runs `operation` with its n-th I/O failing once, for n = 1, 2, ... until it does not meet the fault.
/// `check` gets the database, and whether the operation was done: at once, and after a clean stop or a
/// power cut and a restart.
fn at_every_io(operation: Operation, check: Check) {
    for kind in [FaultKind::Error, FaultKind::DiskFull] {
        for n in 1.. {
            // Of what a failed sync left behind, the disk keeps something else each time.
            let met = (0..6).filter(|seed| at_io(n, kind, 6 * n + seed, operation, check)).count();
            if met == 0 {
                break;
            }
            assert!(n < 2000, "an operation with endless I/O");
        }
    }
}

/// False: the operation did not get to its n-th I/O.
fn at_io(n: u64, kind: FaultKind, seed: u64, operation: Operation, check: Check) -> bool {
    let (mut vfs, db) = with_table(seed, ROWS);
    vfs.fail_io_after(n, kind);
    let before = vfs.io_count();
    let done = operation(&db).is_ok();
    let met = vfs.io_count() - before >= n;
    assert!(met || done, "the operation failed without a fault");
    vfs.clear_faults();
    let in_doubt = is_latched(&db);
    let context = format!("{kind:?} at I/O {n}, {}", if done { "done" } else { "not done" });
    if !in_doubt {
        check(&vfs, &db, done).unwrap_or_else(|e| panic!("{context}: {e}"));
    }
    let is_clean = seed % 2 == 0 && !in_doubt && db.close().is_ok();
    drop(db);
    if !is_clean {
        vfs = vfs.crash();
    }
    let db = open(&vfs).unwrap_or_else(|e| panic!("open after {kind:?} at I/O {n}: {e}"));
    if in_doubt {
        // Either is right, half is not.
        if let (Err(a), Err(b)) = (check(&vfs, &db, true), check(&vfs, &db, false)) {
            panic!("{context}, in doubt: half of it is left: {a}; {b}");
        }
    } else {
        check(&vfs, &db, done).unwrap_or_else(|e| panic!("{context}, after a restart: {e}"));
    }
    met
}

fn exists(db: &Arc<Db>, path: &str, rows: u32) -> Result<(), String> {
    if !db.table_exists(path) {
        return Err(format!("{path} is gone"));
    }
    match count(db, path) {
        Ok(found) if found == rows => Ok(()),
        other => Err(format!("{path}: {other:?} instead of {rows} rows")),
    }
}

fn is_gone(db: &Arc<Db>, path: &str) -> Result<(), String> {
    match db.open_table(path) {
        Err(EngineError::NotFound { .. }) if !db.table_exists(path) => Ok(()),
        other => Err(format!("{path} is there: {:?}", other.err())),
    }
}

fn are_directories(vfs: &Arc<SimVfs>, expected: &[&str]) -> Result<(), String> {
    let found = directories(vfs);
    if found == expected {
        Ok(())
    } else {
        Err(format!("directories {found:?}"))
    }
}

#[test]
fn a_create_is_done_or_not_as_its_caller_was_told() {
    at_every_io(
        |db| Ok(db.create_table(&spec("./db/b"))?),
        |vfs, db, done| {
            exists(db, "./db/a", ROWS)?;
            if done {
                return exists(db, "./db/b", 0);
            }
            is_gone(db, "./db/b")?;
            are_directories(vfs, &["a.pando"])
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
            let (name, other) = if done { ("b", "a") } else { ("a", "b") };
            is_gone(db, &format!("./db/{other}"))?;
            exists(db, &format!("./db/{name}"), ROWS)?;
            are_directories(vfs, &[&format!("{name}.pando")])
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

/// Commits that take `bytes` of the log each, until it has no place for more: the disk is full.
fn fill_log(db: &Arc<Db>, bytes: usize, commits_max: u32) -> u32 {
    let table = db.open_table("./db/a").unwrap();
    for commit in 0..commits_max {
        let mut txn = db.begin();
        txn.put(&table, 0, b"00000000", &vec![b'x'; bytes], LockWait::NoWait).unwrap();
        match txn.commit() {
            Ok(()) => {}
            Err(Error::Engine(EngineError::DiskFull { .. })) => return commit,
            Err(other) => panic!("{other}"),
        }
    }
    commits_max
}

/// A disk without room for another log file, and a log with room for some `short` commits; how many.
fn full(short_max: u32) -> (Arc<SimVfs>, Arc<Db>, u32) {
    let (vfs, db) = with_table(1, ROWS);
    vfs.set_capacity(Some(vfs.used_bytes() + 10_000));
    fill_log(&db, 1500, u32::MAX);
    let short = fill_log(&db, 5, short_max);
    (vfs, db, short)
}

/// The work on files that an operation left for later, or could not say that it has done, is of the
/// table it was about, not of one that has the name now.
#[test]
fn what_an_operation_on_a_full_disk_left_to_do_never_touches_a_later_table_of_the_same_name() {
    let operations: [Operation; 3] = [
        |db| Ok(db.create_table(&spec("./db/b"))?),
        |db| Ok(db.drop_table("./db/a")?),
        |db| Ok(db.rename_table("./db/a", "./db/b")?),
    ];
    let (_, _, most) = full(u32::MAX);
    for (operation, room) in
        operations.iter().flat_map(|operation| (0..10).map(move |room| (operation, room)))
    {
        let (vfs, db, _) = full(most - room);
        let _ = operation(&db);
        vfs.set_capacity(None);
        for path in ["./db/a", "./db/b"] {
            if db.table_exists(path) {
                db.truncate_table(path).unwrap();
            } else {
                db.create_table(&spec(path)).unwrap_or_else(|e| panic!("with room for {room} commits: {e}"));
            }
            fill(&db, path, 0..20).unwrap();
        }
        db.close().unwrap();
        drop(db);
        let db = open(&vfs).unwrap();
        for path in ["./db/a", "./db/b"] {
            let rows =
                count(&db, path).unwrap_or_else(|e| panic!("with room for {room} commits: {path}: {e}"));
            assert_eq!(rows, 20);
        }
        assert_eq!(directories(&vfs), ["a.pando", "b.pando"], "with room for {room} commits");
    }
}
