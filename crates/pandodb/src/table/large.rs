//! The large values of a table: a dictionary from numbers to values, beside those of rows and indexes.
//!
//! Rows refer to its entries ([`pando_column::large`] has the form of a reference, and the reasons). What holds:
//!
//! * An entry belongs to one row. It is written by the transaction that makes the row refer to it, and deleted by the one that
//!   makes the row refer to it no more (`write/large.rs`). So who sees a version of the row sees the entry in the same snapshot.
//! * Entries are not locked: the lock of their row protects them.
//! * No number is given twice while anybody could still look for the first value: numbers ascend, and begin behind all that the
//!   newest state or a live snapshot has when the table is opened.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::{Error, Result, Seqno};

use crate::table::Dict;

/// See the head of this file. The same for all objects of a table.
#[derive(Debug)]
pub(crate) struct LargeValues {
    pub(crate) dict: Arc<Dict>,
    next: AtomicU64,
    /// There may be some.
    is_any: AtomicBool,
}

/// A large value that is written with its row.
#[derive(Clone, Copy, Debug)]
pub struct LargeValue<'a> {
    /// Its number: [`Table::next_large_value`](crate::Table::next_large_value).
    pub id: u64,
    /// The value.
    pub bytes: &'a [u8],
}

impl LargeValues {
    /// Of a dictionary that was just opened; `snapshots` are those that are alive. Errors: those of reading; a key that is no
    /// number.
    pub(crate) fn new(dict: Arc<Dict>, snapshots: &[Seqno]) -> Result<LargeValues> {
        let mut last = dict.prepared_hidden_key.load(Ordering::Acquire);
        for seqno in snapshots.iter().copied().chain([Seqno::MAX]) {
            let mut cursor = dict.tree.cursor(seqno);
            cursor.seek_last()?;
            if cursor.valid() {
                last = last.max(id_of(&dict, cursor.key())?);
            }
        }
        let is_any = last > 0 || dict.writers.is_any();
        Ok(LargeValues { dict, next: AtomicU64::new(last + 1), is_any: AtomicBool::new(is_any) })
    }

    /// A number for a value.
    pub(crate) fn take_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Somebody is about to write one.
    pub(crate) fn note_some(&self) {
        self.is_any.store(true, Ordering::Release);
    }

    /// False: no row of the table refers to one.
    pub(crate) fn may_be_some(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }
}

/// The number that a key of the dictionary is. Errors: it is none.
pub(crate) fn id_of(dict: &Dict, key: &[u8]) -> Result<u64> {
    let bytes = key
        .try_into()
        .map_err(|_| Error::corruption(&dict.file.path(), 0, "key of a large value", "8 bytes", key.len()))?;
    Ok(u64::from_be_bytes(bytes))
}
