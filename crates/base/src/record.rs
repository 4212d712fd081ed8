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

/// Length of the longest common prefix, eight bytes at a time.
#[inline]
pub fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut shared = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let word = |c: &[u8]| c.try_into().map_or(0, u64::from_le_bytes);
        let differ = word(x) ^ word(y);
        if differ != 0 {
            return shared + (differ.trailing_zeros() / 8) as usize;
        }
        shared += 8;
    }
    shared + a[shared..].iter().zip(&b[shared..]).take_while(|(x, y)| x == y).count()
}

/// The first eight bytes as a number that compares as they do (short keys padded with zeros).
#[inline]
pub fn key_head(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(head)
        }
    }
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

    #[test]
    fn shared_prefixes_are_the_longest_ones() {
        let a: Vec<u8> = (0..40).collect();
        for len in 0..40 {
            for cut in 0..=len {
                let mut b = a[..len].to_vec();
                if let Some(byte) = b.get_mut(cut) {
                    *byte ^= 0x80;
                }
                assert_eq!(shared_prefix(&a, &b), cut.min(len));
                assert_eq!(shared_prefix(&b, &a), cut.min(len));
            }
        }
    }
}
