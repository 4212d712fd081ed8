//! A decoded segment: random access to its records.
#![deny(clippy::indexing_slicing)]

use std::cmp::Ordering;

use pando_base::{Kind, RecordRef, Seqno};

/// Where a row's key and value start; those of the next row are where they end. The top bit of
/// `value` says that the row is a Delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowStart {
    pub(crate) key: u32,
    pub(crate) value: u32,
}

/// The Delete bit of [`RowStart::value`].
pub(crate) const DELETED: u32 = 1 << 31;

/// Seqnos of the rows, as small as they come.
#[derive(Debug)]
pub(crate) enum Seqnos {
    Same(Seqno),
    Near { base: Seqno, deltas: Box<[u32]> },
    Far(Box<[Seqno]>),
}

/// A decoded segment. Made by [`Segment::decode`] only, which verifies what the accessors rely on:
/// `starts` has one entry more than there are rows, `starts[i].key` and `starts[i].value` (without
/// the Delete bit) ascend and the last ones are at most the lengths of `keys` and `values`, and
/// `seqnos` has as many entries as there are rows; and `stride`. Nothing changes afterwards.
#[derive(Debug)]
pub struct Segment {
    pub(crate) keys: Box<[u8]>,
    pub(crate) values: Box<[u8]>,
    pub(crate) starts: Box<[RowStart]>,
    pub(crate) seqnos: Seqnos,
    /// `starts.len() - 1`, so that the row check needs no subtraction.
    pub(crate) rows: usize,
    /// Length of every key if that is the same, `keys.len() == rows * stride`; otherwise 0. Lets a
    /// search do without `starts`: half the memory touched.
    pub(crate) stride: usize,
}

impl Segment {
    /// Records.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    fn starts(&self, i: usize) -> (RowStart, RowStart) {
        assert!(i < self.rows, "row {i} of a segment of {}", self.rows);
        // SAFETY: `starts` has `rows + 1` entries and i < rows.
        unsafe { (*self.starts.get_unchecked(i), *self.starts.get_unchecked(i + 1)) }
    }

    #[inline(always)]
    fn key_between(&self, start: RowStart, end: RowStart) -> &[u8] {
        // SAFETY: both are neighbours in `starts`, whose keys ascend up to `keys.len()`.
        unsafe { self.keys.get_unchecked(start.key as usize..end.key as usize) }
    }

    #[inline(always)]
    fn value_between(&self, start: RowStart, end: RowStart) -> &[u8] {
        let (start, end) = ((start.value & !DELETED) as usize, (end.value & !DELETED) as usize);
        // SAFETY: both are neighbours in `starts`, whose values ascend up to `values.len()`.
        unsafe { self.values.get_unchecked(start..end) }
    }

    /// Record `i`. Panics if there are not so many, as all of these.
    #[inline]
    pub fn record(&self, i: usize) -> RecordRef<'_> {
        let (start, end) = self.starts(i);
        RecordRef {
            key: self.key_between(start, end),
            seqno: self.seqno(i),
            kind: kind_of(start),
            value: self.value_between(start, end),
        }
    }

    /// Key of record `i`.
    #[inline]
    pub fn key(&self, i: usize) -> &[u8] {
        let (start, end) = self.starts(i);
        self.key_between(start, end)
    }

    /// Value of record `i`; empty for a Delete.
    #[inline]
    pub fn value(&self, i: usize) -> &[u8] {
        let (start, end) = self.starts(i);
        self.value_between(start, end)
    }

    /// Kind of record `i`.
    #[inline]
    pub fn kind(&self, i: usize) -> Kind {
        kind_of(self.starts(i).0)
    }

    /// Seqno of record `i`.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "checked access to arrays of one entry per row")]
    pub fn seqno(&self, i: usize) -> Seqno {
        match &self.seqnos {
            Seqnos::Same(seqno) => *seqno,
            Seqnos::Near { base, deltas } => base + Seqno::from(deltas[i]),
            Seqnos::Far(seqnos) => seqnos[i],
        }
    }

    /// Gives every record the seqno `seqno`, if they were written without one (as 0).
    pub fn number(&mut self, seqno: Seqno) {
        if matches!(self.seqnos, Seqnos::Same(0)) {
            self.seqnos = Seqnos::Same(seqno);
        }
    }

    /// First row whose key is `key` or greater; `rows()` if there is none.
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        self.partition(|_, other| other < key)
    }

    /// First row not before version (`key`, `snapshot`): the newest version of `key` that `snapshot`
    /// sees if there is one, else what follows; `rows()` if nothing does.
    pub fn lower_bound_version(&self, key: &[u8], snapshot: Seqno) -> usize {
        self.partition(|row, other| match other.cmp(key) {
            Ordering::Less => true,
            Ordering::Equal => self.seqno(row) > snapshot,
            Ordering::Greater => false,
        })
    }

    /// Row of the newest version of exactly `key` with a seqno up to `snapshot`.
    pub fn find(&self, key: &[u8], snapshot: Seqno) -> Option<usize> {
        let row = self.lower_bound_version(key, snapshot);
        (row < self.rows && self.key(row) == key).then_some(row)
    }

    /// Memory beyond the struct itself, exactly.
    pub fn heap_bytes(&self) -> usize {
        let seqnos = match &self.seqnos {
            Seqnos::Same(_) => 0,
            Seqnos::Near { deltas, .. } => size_of_val(&**deltas),
            Seqnos::Far(seqnos) => size_of_val(&**seqnos),
        };
        self.keys.len() + self.values.len() + size_of_val(&*self.starts) + seqnos
    }

    /// First row for which `before` (of row and key) is false; it must not be true again after it.
    #[inline]
    fn partition(&self, before: impl Fn(usize, &[u8]) -> bool) -> usize {
        match self.stride {
            0 => first_false(self.rows, |row| before(row, self.key(row))),
            stride => first_false(self.rows, |row| {
                debug_assert!((row + 1) * stride <= self.keys.len());
                // SAFETY: row < rows, and `keys` has rows * stride bytes.
                before(row, unsafe { self.keys.get_unchecked(row * stride..(row + 1) * stride) })
            }),
        }
    }
}

/// First of `rows` for which `before` is false.
#[inline(always)]
fn first_false(rows: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, rows);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[inline(always)]
fn kind_of(start: RowStart) -> Kind {
    if start.value & DELETED == 0 {
        Kind::Put
    } else {
        Kind::Delete
    }
}
