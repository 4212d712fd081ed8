//! Transactions and locks with the names of the tables they are in, for the server's information
//! schema. Reports look on without stopping anybody: their parts may be of different moments.

use std::collections::HashMap;

use pando_base::DictId;
use pando_txn::{LockRow, TxnRow};

use crate::db::Db;

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

impl Db {
    /// The transactions that have taken a lock or a snapshot, oldest first.
    pub fn transactions(&self) -> Vec<TxnRow> {
        self.locks.transactions()
    }

    /// All locks held and waited for.
    pub fn locks(&self) -> Vec<PlacedLock> {
        let places = self.dict_places();
        let placed = |lock: LockRow| {
            let (table, index) = places.get(&lock.dict).cloned().unwrap_or_default();
            PlacedLock { lock, table, index }
        };
        self.locks.rows().into_iter().map(placed).collect()
    }

    /// The table and the position in it of a dictionary of an open table.
    pub fn dict_place(&self, dict: DictId) -> Option<(String, usize)> {
        self.dict_places().remove(&dict)
    }

    fn dict_places(&self) -> HashMap<DictId, (String, usize)> {
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
