//! A table with an index, and what tests of prepared transactions do with it.

use std::sync::Arc;

use pandodb::{Db, Error, LockMode, LockWait, LockedRead, SimVfs, Table, Txn};

use super::{disk, open, spec};

/// The table.
pub const T: &str = "./db/t";

pub fn world() -> (Arc<SimVfs>, Arc<Db>, Arc<Table>) {
    let vfs = disk(1);
    let db = open(&vfs).unwrap();
    db.create_table(&spec(T)).unwrap();
    let table = db.open_table(T).unwrap();
    (vfs, db, table)
}

pub fn put(txn: &mut Txn, table: &Table, key: &str, value: &str) {
    for dict in 0..2 {
        txn.put(table, dict, key.as_bytes(), value.as_bytes(), LockWait::NoWait).unwrap();
    }
}

pub fn read(db: &Arc<Db>, key: &str) -> Option<String> {
    let table = db.open_table(T).unwrap();
    let value = db.begin().get(&table, 0, key.as_bytes()).unwrap();
    value.map(|value| String::from_utf8(value).unwrap())
}

/// What a locking read without waiting meets.
pub fn is_locked(db: &Arc<Db>, dict: usize, key: &str) -> bool {
    let table = db.open_table(T).unwrap();
    let got = db.begin().get_locked(&table, dict, key.as_bytes(), LockMode::Shared, LockWait::NoWait);
    match got {
        Ok(LockedRead::Row(_) | LockedRead::Absent) => false,
        Err(Error::WouldBlock) => true,
        other => panic!("{other:?}"),
    }
}
