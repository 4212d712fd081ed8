//! What an index that is being built gets while it is: the changes of all rows, from the moment on at which
//! the table got a new object that knows it (`indexes`).
//!
//! An entry that need not be alone with its key goes into the index's own dictionary. For an entry that must
//! be (of a unique index, without a NULL) that would not do: nobody checks, or locks, its key before the
//! index is public, so that of two rows with the same key, perhaps only for a moment, the later write would
//! hide the other, or a delete of the one take away the entry of the other. Those go into a
//! second dictionary, the **journal**, where both have their place:
//!
//! ```text
//! journal   key: key of the entry, value of the entry, length of the entry's key (4 bytes, big-endian)
//!           value: none
//!
//!           of a clustering index:
//!           key: key of the entry, its tail (`clustering`), length of the entry's key
//!           value: value of the entry
//! ```
//!
//! An entry names its row, so (key, value), or (key, tail), is written by one row only, under its lock. From the journal and
//! the base the unique index's entries are worked out (`validate`), exactly, and a duplicate is the trouble of
//! who builds the index, not of who writes.
//!
//! Rollbacks, savepoints, spilled write sets, prepared transactions and commits are those of any write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use pando_base::limits;
use pando_txn::WriteSet;

use crate::clustering::Clustering;
use crate::error::Result;
use crate::indexes::NewIndex;
use crate::rows::Entry;
use crate::table::{Dict, Table};
use crate::transaction::{check_lengths, Txn};

/// Bytes of the length at the end of a journal's keys.
const LENGTH_BYTES: usize = 4;

const _: () = assert!(limits::KEY_BYTES_MAX < u32::MAX as usize);

/// An index that is being built.
#[derive(Debug)]
pub struct Building {
    pub(crate) dict: Arc<Dict>,
    /// Of a unique index.
    pub(crate) journal: Option<Arc<Dict>>,
    clustering: Clustering,
    recipe: Vec<u8>,
    is_over: AtomicBool,
}

impl Building {
    pub(crate) fn new(dict: Arc<Dict>, journal: Option<Arc<Dict>>, index: &NewIndex) -> Arc<Building> {
        let (clustering, recipe) = (index.clustering, index.recipe.clone());
        Arc::new(Building { dict, journal, clustering, recipe, is_over: AtomicBool::new(false) })
    }

    /// How entries are made of rows, in the words of who builds the index.
    pub fn recipe(&self) -> &[u8] {
        &self.recipe
    }

    /// The index will not become public: what is written to it is of no use any more.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// A journal's key; `name` is what of the entry's value names its row.
pub(crate) fn journal_key(key: &[u8], name: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(key.len() + name.len() + LENGTH_BYTES);
    whole.extend_from_slice(key);
    whole.extend_from_slice(name);
    whole.extend_from_slice(&(key.len() as u32).to_be_bytes());
    whole
}

/// Key of the entry that a journal's key is of, and what names its row; `None` if it is none.
pub(crate) fn entry_of(whole: &[u8]) -> Option<(&[u8], &[u8])> {
    let (entry, length) = whole.split_last_chunk::<LENGTH_BYTES>()?;
    entry.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// A write to an index that is being built: `None` is a delete.
struct Op<'a> {
    dict: &'a Arc<Dict>,
    key: Vec<u8>,
    value: Option<&'a [u8]>,
}

impl<'a> Op<'a> {
    fn new(building: &'a Building, entry: &Entry<'a>, is_put: bool) -> Op<'a> {
        match &building.journal {
            Some(journal) if entry.unique => {
                let value = if building.clustering.is_none() { &[] } else { entry.value };
                let key = journal_key(entry.key, building.clustering.name_of(entry.value));
                Op { dict: journal, key, value: is_put.then_some(value) }
            }
            _ => Op { dict: &building.dict, key: entry.key.to_vec(), value: is_put.then_some(entry.value) },
        }
    }
}

/// What a change of a row comes to in the indexes that are being built.
#[derive(Default)]
pub(crate) struct BuildingOps<'a> {
    ops: Vec<Op<'a>>,
}

impl<'a> BuildingOps<'a> {
    /// `old` and `new`: the row's entries, those of the table's dictionaries included.
    /// Errors: an entry is too long.
    pub(crate) fn new(table: &'a Table, old: &[Entry<'a>], new: &[Entry<'a>]) -> Result<BuildingOps<'a>> {
        let mut ops = Vec::new();
        for (position, building) in table.building.iter().enumerate() {
            if building.is_over() {
                continue;
            }
            let place = table.dicts.len() + position;
            let (before, after) = (old.get(place), new.get(place));
            if let (Some(before), Some(after)) = (before, after) {
                if before.key == after.key && before.value == after.value {
                    continue;
                }
            }
            ops.extend(before.map(|entry| Op::new(building, entry, false)));
            ops.extend(after.map(|entry| Op::new(building, entry, true)));
        }
        ops.iter().try_for_each(|op| check_lengths(&op.key, op.value.unwrap_or_default()))?;
        Ok(BuildingOps { ops })
    }

    /// Before the ops are written.
    pub(crate) fn touch(&self, txn: &mut Txn) {
        self.ops.iter().for_each(|op| txn.touch(op.dict));
    }

    pub(crate) fn write(&self, writes: &mut WriteSet) {
        for op in &self.ops {
            match op.value {
                Some(value) => writes.put(op.dict.id, &op.key, value),
                None => writes.delete(op.dict.id, &op.key),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journals_key_gives_its_entry_back_and_other_bytes_do_not() {
        for (key, value) in [(&b"k"[..], &b"value"[..]), (b"", b""), (b"key", b"")] {
            assert_eq!(entry_of(&journal_key(key, value)), Some((key, value)));
        }
        assert_eq!(entry_of(b"abc"), None);
        assert_eq!(entry_of(&[0, 0, 0, 9]), None);
    }
}
