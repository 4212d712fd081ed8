//! Deleted ranges: one mark in place of a tombstone for each key.
//!
//! A commit may say of all keys of a range that they are gone. Nothing is rewritten for that: the mark stands beside the tree, and whoever
//! looks at a version compares. A version is **hidden** from a snapshot if a range that has its key was deleted by a commit
//! which is newer than the version and which the snapshot sees. So the comparison is that of seqnos again (I1); as for it, records in
//! such a range must keep theirs (`SETTLED_SEQNO` is older than every range).

use std::sync::Arc;

use crate::ids::Seqno;

/// Keys from `lo` up to, but without, `hi` are gone as of commit `seqno`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedRange {
    /// The first key.
    pub lo: Vec<u8>,
    /// The first key behind it; `None`: all behind `lo`.
    pub hi: Option<Vec<u8>>,
    /// The commit.
    pub seqno: Seqno,
}

impl DeletedRange {
    /// Bytes that it takes in a superblock beside its keys: the seqno, and two lengths.
    pub const STORED_BYTES: usize = 12;

    /// Whether the key lies in it.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.lo <= *key && self.hi.as_deref().is_none_or(|hi| key < hi)
    }

    /// Whether it has a key of `[lo, hi)`.
    pub fn overlaps(&self, lo: &[u8], hi: Option<&[u8]>) -> bool {
        hi.is_none_or(|hi| *self.lo < *hi) && self.hi.as_deref().is_none_or(|own| lo < own)
    }
}

/// Deleted ranges, in no order; nearly always none. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeletedRanges(Option<Arc<[DeletedRange]>>);

impl DeletedRanges {
    /// These ones.
    pub fn new(ranges: Vec<DeletedRange>) -> DeletedRanges {
        DeletedRanges((!ranges.is_empty()).then(|| ranges.into()))
    }

    /// The ranges.
    pub fn as_slice(&self) -> &[DeletedRange] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Those of commits up to `snapshot` that have a key of `[lo, hi)`.
    pub fn seen_within(&self, snapshot: Seqno, lo: &[u8], hi: Option<&[u8]>) -> DeletedRanges {
        if self.is_empty() {
            return DeletedRanges::default();
        }
        let found = self.as_slice().iter().filter(|range| range.seqno <= snapshot && range.overlaps(lo, hi));
        DeletedRanges::new(found.cloned().collect())
    }

    /// The newest commit up to `snapshot` that has deleted a version of the key which commit `written` wrote.
    #[inline]
    pub fn hiding(&self, key: &[u8], written: Seqno, snapshot: Seqno) -> Option<Seqno> {
        let hides =
            |range: &&DeletedRange| written < range.seqno && range.seqno <= snapshot && range.contains(key);
        self.as_slice().iter().filter(hides).map(|range| range.seqno).max()
    }

    /// Whether a version of the key is hidden from who sees all ranges.
    #[inline]
    pub fn hides(&self, key: &[u8], written: Seqno) -> bool {
        !self.is_empty() && self.hiding(key, written, Seqno::MAX).is_some()
    }

    /// Whether a version of the key is newer than a range that has it: then its seqno is to be kept.
    #[inline]
    pub fn needs_seqno(&self, key: &[u8], written: Seqno) -> bool {
        self.as_slice().iter().any(|range| range.seqno < written && range.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(lo: &str, hi: Option<&str>, seqno: Seqno) -> DeletedRange {
        DeletedRange { lo: lo.into(), hi: hi.map(Into::into), seqno }
    }

    #[test]
    fn older_versions_are_hidden_from_who_sees_the_commit() {
        let ranges = DeletedRanges::new(vec![range("b", Some("d"), 10), range("c", None, 20)]);
        assert_eq!(ranges.hiding(b"b", 9, 10), Some(10));
        assert_eq!(ranges.hiding(b"b", 10, 30), None);
        assert_eq!(ranges.hiding(b"b", 9, 9), None);
        assert_eq!(ranges.hiding(b"c", 9, 30), Some(20));
        assert_eq!(ranges.hiding(b"d", 9, 15), None);
        assert_eq!(ranges.hiding(b"z", 19, 20), Some(20));
        assert_eq!(ranges.hiding(b"a", 1, 30), None);
        assert!(
            ranges.needs_seqno(b"c", 11) && !ranges.needs_seqno(b"c", 10) && !ranges.needs_seqno(b"a", 99)
        );
    }

    #[test]
    fn ranges_are_chosen_by_keys_and_snapshot() {
        let ranges = DeletedRanges::new(vec![range("b", Some("d"), 10), range("f", None, 20)]);
        let seen = |snapshot, lo: &str, hi: Option<&str>| {
            ranges.seen_within(snapshot, lo.as_bytes(), hi.map(str::as_bytes)).as_slice().len()
        };
        assert_eq!((seen(30, "", None), seen(19, "", None), seen(9, "", None)), (2, 1, 0));
        assert_eq!((seen(30, "d", Some("f")), seen(30, "c", Some("d")), seen(30, "", Some("b"))), (0, 1, 0));
    }
}
