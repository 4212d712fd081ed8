//! Log that is kept for somebody: the operator is told for whom.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use common::{count, disk, fill, options, spec, Lines};
use pando_storage::vfs::FaultKind;
use pandodb::{Db, EngineError, Error, LockWait, Vfs};

const T: &str = "./db/t";

#[test]
fn who_holds_more_log_than_there_should_be_is_told_at_once_and_every_hour() {
    let vfs = disk(1);
    let lines = Lines::default();
    let mut settings = options(&lines);
    settings.log_kept_bytes_max = 4 * settings.log_file_bytes;
    let files: Arc<dyn Vfs> = vfs.clone();
    let db = Db::open_with_vfs(settings, files.clone(), files).unwrap();
    db.create_table(&spec(T)).unwrap();
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    txn.put(&table, 0, b"a", b"1", LockWait::NoWait).unwrap();
    // One that its connection still has; without one it would be logged anew.
    txn.prepare(b"stuck").unwrap();
    let told = || {
        lines
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, line)| line.contains("prepared transaction; XA COMMIT"))
            .count()
    };
    db.tick();
    assert_eq!(told(), 0);
    let large = vec![7; 4000];
    for n in 0..2000u32 {
        let mut other = db.begin();
        other.put(&table, 0, &n.to_be_bytes(), &large, LockWait::NoWait).unwrap();
        other.commit().unwrap();
    }
    for _ in 0..3 {
        db.tick();
    }
    assert_eq!(told(), 1, "{:?}", lines.lock().unwrap());
    vfs.advance_micros(3_700_000_000);
    db.tick();
    assert_eq!(told(), 2);
    let (held, holder) = db.log_held().unwrap();
    assert!(held > 7 << 20 && held == db.metrics().log_held_bytes.get(), "{held}");
    assert!(holder.contains("prepared transaction"), "{holder}");
    txn.rollback();
    vfs.advance_micros(3_700_000_000);
    for _ in 0..3 {
        db.tick();
    }
    assert_eq!(told(), 2);
    assert_eq!((db.log_held(), db.metrics().log_held_bytes.get()), (None, 0));
}

#[test]
fn a_table_that_cannot_be_checkpointed_takes_no_writes_while_too_much_log_is_kept() {
    let other = "./db/other";
    let vfs = disk(2);
    let lines = Lines::default();
    let mut settings = options(&lines);
    settings.log_kept_bytes_max = 4 * settings.log_file_bytes;
    let files: Arc<dyn Vfs> = vfs.clone();
    let db = Db::open_with_vfs(settings, files.clone(), files).unwrap();
    for path in [T, other] {
        db.create_table(&spec(path)).unwrap();
        fill(&db, path, 0..10).unwrap();
    }
    db.checkpoint().unwrap();
    // A sync of one of its files fails, after which the file takes no more.
    for n in 1.. {
        fill(&db, T, 0..10).unwrap();
        vfs.fail_io_after(n, FaultKind::Error);
        let failed = db.checkpoint().is_err();
        vfs.clear_faults();
        if failed && db.checkpoint().is_err() {
            break;
        }
        assert!(n < 100, "no sync fails");
    }
    assert_eq!(db.metrics().read_only_latched.get(), 0, "the log is well");
    let large = vec![7; 4000];
    let write = |path: &str, n: u32| {
        let table = db.open_table(path)?;
        let mut txn = db.begin();
        for dict in 0..2 {
            txn.put(&table, dict, &n.to_be_bytes(), &large, LockWait::NoWait)?;
        }
        txn.commit()
    };
    let mut written = 0;
    let refused = loop {
        if let Err(error) = write(T, written) {
            break error;
        }
        written += 1;
        let _ = db.run_jobs();
        db.tick();
        assert!(written < 2000, "the log grows without a bound");
    };
    assert!(matches!(refused, Error::Engine(EngineError::ReadOnly { .. })), "{refused}");
    assert!(written > 10, "within the limit it goes on: {written} rows");
    write(other, 1).unwrap();
    assert!(db.status_text().contains("cannot be checkpointed"), "{}", db.status_text());
    drop(db);
    // Opened anew, it is as it was, and takes writes.
    let vfs = vfs.crash();
    let db = common::open(&vfs).unwrap();
    assert_eq!(count(&db, T).unwrap(), 10 + written);
    fill(&db, T, 0..20).unwrap();
    db.checkpoint().unwrap();
}
