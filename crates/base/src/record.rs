//! The record: what runs, memtables and cursors carry.

use std::cmp::Ordering;

use crate::ids::Seqno;

/// What a record says about its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The key has this value.
    Put = 1,
    /// The key is gone (a tombstone); the value is empty.
    Delete = 2,
}

impl Kind {
    /// Decodes the on-disk byte; `None` for a byte no version of the format wrote.
    pub fn from_byte(byte: u8) -> Option<Kind> {
        match byte {
            1 => Some(Kind::Put),
            2 => Some(Kind::Delete),
            _ => None,
        }
    }
}

/// One version of one key, borrowed from wherever it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Key bytes, compared as unsigned bytes (memcmp).
    pub key: &'a [u8],
    /// Commit number of the transaction that wrote it.
    pub seqno: Seqno,
    /// Put or Delete.
    pub kind: Kind,
    /// Value bytes; empty for a Delete.
    pub value: &'a [u8],
}

/// Order of records everywhere: key ascending, then seqno descending (newest first).
pub fn compare_versions(a: (&[u8], Seqno), b: (&[u8], Seqno)) -> Ordering {
    a.0.cmp(b.0).then_with(|| b.1.cmp(&a.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_versions_of_a_key_sort_first() {
        assert_eq!(compare_versions((b"a", 2), (b"a", 1)), Ordering::Less);
        assert_eq!(compare_versions((b"a", 1), (b"b", 9)), Ordering::Less);
        assert_eq!(compare_versions((b"ab", 1), (b"a", 1)), Ordering::Greater);
    }

    #[test]
    fn kinds_survive_their_byte() {
        for kind in [Kind::Put, Kind::Delete] {
            assert_eq!(Kind::from_byte(kind as u8), Some(kind));
        }
        assert_eq!(Kind::from_byte(0), None);
    }
}
