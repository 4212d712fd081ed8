//! Transactions and locks with the names of the tables they are in, for the server's information
//! schema. Reports look on without stopping anybody: their parts may be of different moments.

use std::collections::HashMap;

use pando_base::{DictId, TxnId};
use pando_txn::{DeadlockWait, LockRow, TxnRow};

use crate::db::Db;

type Places = HashMap<DictId, (String, usize)>;

/// A lock held or waited for, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedLock {
    /// The lock.
    pub lock: LockRow,
    /// `database/table`; empty if the table is not open any more.
    pub table: String,
    /// Position among the table's dictionaries: 0 is the rows, the others are its indexes.
    pub index: usize,
}

/// The last deadlock, and where its locks were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedDeadlock {
    /// Each waited for the next, the last for the first.
    pub waits: Vec<(DeadlockWait, PlacedLock)>,
    /// The one whose wait failed.
    pub victim: TxnId,
}

impl Db {
    /// The transactions that have taken a lock or a snapshot, oldest first.
    pub fn transactions(&self) -> Vec<TxnRow> {
        self.locks.transactions()
    }

    /// All locks held and waited for.
    pub fn locks(&self) -> Vec<PlacedLock> {
        let places = self.dict_places();
        self.locks.rows().into_iter().map(|lock| placed(&places, lock)).collect()
    }

    /// The last deadlock that was found, if its tables are still open with their places.
    pub fn last_deadlock(&self) -> Option<PlacedDeadlock> {
        let deadlock = self.locks.last_deadlock()?;
        let places = self.dict_places();
        let with_place = |wait: DeadlockWait| {
            let lock = placed(&places, wait.lock.clone());
            (wait, lock)
        };
        let waits = deadlock.waits.into_iter().map(with_place).collect();
        Some(PlacedDeadlock { waits, victim: deadlock.victim })
    }

    /// The table and the position in it of a dictionary of an open table.
    pub fn dict_place(&self, dict: DictId) -> Option<(String, usize)> {
        self.dict_places().remove(&dict)
    }

    fn dict_places(&self) -> Places {
        let mut places = HashMap::new();
        for table in self.tables.read().values() {
            let path = table.path();
            for (index, dict) in table.dicts.iter().enumerate() {
                places.insert(dict.id, (path.clone(), index));
            }
        }
        places
    }
}

fn placed(places: &Places, lock: LockRow) -> PlacedLock {
    let (table, index) = places.get(&lock.dict).cloned().unwrap_or_default();
    PlacedLock { lock, table, index }
}
