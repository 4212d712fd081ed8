//! Log that is kept for somebody: the operator is told for whom.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use common::{disk, options, spec, Lines};
use pandodb::{Db, LockWait, Vfs};

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
    txn.prepare(b"forgotten").unwrap();
    txn.detach();
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
        let mut txn = db.begin();
        txn.put(&table, 0, &n.to_be_bytes(), &large, LockWait::NoWait).unwrap();
        txn.commit().unwrap();
    }
    for _ in 0..3 {
        db.tick();
    }
    assert_eq!(told(), 1, "{:?}", lines.lock().unwrap());
    vfs.advance_micros(3_700_000_000);
    db.tick();
    assert_eq!(told(), 2);
    assert!(db.rollback_by_xid(b"forgotten").unwrap());
    vfs.advance_micros(3_700_000_000);
    for _ in 0..3 {
        db.tick();
    }
    assert_eq!(told(), 2);
}
