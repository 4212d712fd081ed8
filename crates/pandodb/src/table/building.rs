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

use crate::table::clustering::Clustering;
use crate::table::dict::Dict;
use pando_base::limits;

/// Bytes of the length at the end of a journal's keys.
const LENGTH_BYTES: usize = 4;

const _: () = assert!(limits::KEY_BYTES_MAX < u32::MAX as usize);

/// An index that is being built.
#[derive(Debug)]
pub struct Building {
    pub(crate) dict: Arc<Dict>,
    /// Of a unique index.
    pub(crate) journal: Option<Arc<Dict>>,
    pub(crate) clustering: Clustering,
    recipe: Vec<u8>,
    is_over: AtomicBool,
}

impl Building {
    pub(crate) fn new(
        dict: Arc<Dict>,
        journal: Option<Arc<Dict>>,
        clustering: Clustering,
        recipe: Vec<u8>,
    ) -> Arc<Building> {
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
