//! A decoded segment: random access to its records.
//!
//! All of it is one piece of memory, because segments are what the cache is full of: many small pieces would scatter the
//! process's memory and cost as many headers.
//!
//! ```text
//! starts: rows + 1 times    u32 where the key starts, u32 where the value starts (top bit: a Delete)
//! seqnos: rows times        nothing, u32 or u64
//! keys, values
//! ```
#![deny(clippy::indexing_slicing)]

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::atomic::AtomicU32;

use pando_base::{key_head, shared_prefix, Kind, RecordRef, Seqno};

/// Where a row's key and value start; those of the next row are where they end. The top bit of
/// `value` says that the row is a Delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowStart {
    pub(crate) key: u32,
    pub(crate) value: u32,
}

/// The Delete bit of [`RowStart::value`].
pub(crate) const DELETED: u32 = 1 << 31;

const START_BYTES: usize = 8;

/// Seqnos of the rows, as small as they come.
#[derive(Debug)]
pub(crate) enum Seqnos {
    Same(Seqno),
    Near { base: Seqno, deltas: Vec<u32> },
    Far(Vec<Seqno>),
}

/// How the memory has them.
#[derive(Clone, Copy, Debug)]
enum SeqnoForm {
    Same(Seqno),
    Near { base: Seqno },
    Far,
}

/// A decoded segment. Made by [`Segment::decode`] only, which verifies what the accessors rely on:
/// there is one start more than there are rows, their keys and values (without the Delete bit) ascend from 0 and the last ones
/// are at most the lengths of keys and values, and there are as many seqnos as rows; and `stride`. Nothing changes
/// afterwards.
#[derive(Debug)]
pub struct Segment {
    /// See the head of this file.
    memory: Box<[u8]>,
    keys_at: usize,
    values_at: usize,
    seqnos: SeqnoForm,
    rows: usize,
    /// Length of every key if that is the same, keys have `rows * stride` bytes; otherwise 0. Lets a
    /// search do without starts: half the memory touched.
    stride: usize,
    ends: Ends,
    has_deletes: bool,
    /// See [`Segment::mark`].
    mark: AtomicU32,
}

/// Between which numbers the keys lie, for a guess where one is: the eight bytes behind what the first and the last have in common. Kept here, so
/// that a guess waits for no memory of keys. Both 0: there are few rows, or keys of several lengths.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    shared: usize,
    low: u64,
    high: u64,
}

impl Ends {
    fn of(keys: &[u8], stride: usize, rows: usize) -> Ends {
        if stride == 0 || rows < GUESSED_ROWS_MIN {
            return Ends::default();
        }
        let (first, last) = (keys.get(..stride), keys.get(keys.len() - stride..));
        let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
        let shared = shared_prefix(first, last);
        let head = |key: &[u8]| key_head(key.get(shared..).unwrap_or_default());
        Ends { shared, low: head(first), high: head(last) }
    }

    /// Which of the rows has `key`, if what the keys do not have in common grows evenly: numbers that count, or random ones. Halving would
    /// wait for another cache line at nearly each step; a good guess is two or three of them away. A bad one costs a few steps.
    #[inline]
    fn guess(&self, key: &[u8], rows: usize) -> Option<usize> {
        let wanted = key_head(key.get(self.shared..)?);
        if wanted <= self.low || wanted >= self.high {
            return None;
        }
        let share = (wanted - self.low) as f64 / (self.high - self.low) as f64;
        Some((share * (rows - 1) as f64) as usize).filter(|guess| *guess < rows)
    }
}

/// What a segment is made of. Requires what [`Segment`] says.
pub(crate) struct Parts<'a> {
    pub(crate) starts: &'a [RowStart],
    pub(crate) seqnos: Seqnos,
    pub(crate) keys: &'a [u8],
    pub(crate) value_bytes: usize,
    pub(crate) stride: usize,
}

impl Segment {
    /// Puts its memory together; `write_values` gets that of the values, zeroed.
    pub(crate) fn assemble(parts: Parts<'_>, write_values: impl FnOnce(&mut [u8])) -> Segment {
        let Parts { starts, seqnos, keys, value_bytes, stride } = parts;
        let rows = starts.len() - 1;
        assert!(stride == 0 || keys.len() == rows * stride, "{rows} keys of {stride} bytes");
        let (seqno_bytes, form) = match &seqnos {
            Seqnos::Same(seqno) => (0, SeqnoForm::Same(*seqno)),
            Seqnos::Near { base, deltas } => (size_of_val(&deltas[..]), SeqnoForm::Near { base: *base }),
            Seqnos::Far(seqnos) => (size_of_val(&seqnos[..]), SeqnoForm::Far),
        };
        let keys_at = starts.len() * START_BYTES + seqno_bytes;
        let values_at = keys_at + keys.len();
        let mut memory = Vec::with_capacity(values_at + value_bytes);
        for RowStart { key, value } in starts {
            let both = u64::from(*key) | u64::from(*value) << 32;
            memory.extend_from_slice(&both.to_ne_bytes());
        }
        match &seqnos {
            Seqnos::Same(_) => {}
            Seqnos::Near { deltas, .. } => {
                deltas.iter().for_each(|n| memory.extend_from_slice(&n.to_ne_bytes()))
            }
            Seqnos::Far(seqnos) => seqnos.iter().for_each(|n| memory.extend_from_slice(&n.to_ne_bytes())),
        }
        memory.extend_from_slice(keys);
        assert_eq!(memory.len(), values_at, "parts of a segment");
        memory.resize(values_at + value_bytes, 0);
        write_values(memory.get_mut(values_at..).unwrap_or_default());
        let has_deletes = starts.iter().any(|start| kind_of(*start) == Kind::Delete);
        let ends = Ends::of(keys, stride, rows);
        Segment {
            memory: memory.into_boxed_slice(),
            keys_at,
            values_at,
            seqnos: form,
            rows,
            stride,
            ends,
            has_deletes,
            mark: AtomicU32::new(0),
        }
    }

    /// A number that means nothing here: the cache that holds the segment notes in it when it was used, which is then no place in memory of its own
    /// to be waited for.
    pub fn mark(&self) -> &AtomicU32 {
        &self.mark
    }

    /// Records.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    fn starts(&self, i: usize) -> (RowStart, RowStart) {
        assert!(i < self.rows, "row {i} of a segment of {}", self.rows);
        // SAFETY: the memory begins with `rows + 1` starts and i < rows.
        unsafe { (self.start(i), self.start(i + 1)) }
    }

    /// # Safety
    /// There are `rows + 1` of them.
    #[inline(always)]
    unsafe fn start(&self, i: usize) -> RowStart {
        // SAFETY: the memory begins with them, and they may lie anywhere.
        let both = unsafe { self.memory.as_ptr().add(i * START_BYTES).cast::<u64>().read_unaligned() };
        RowStart { key: both as u32, value: (both >> 32) as u32 }
    }

    #[inline(always)]
    fn key_between(&self, start: RowStart, end: RowStart) -> &[u8] {
        let range = self.keys_at + start.key as usize..self.keys_at + end.key as usize;
        // SAFETY: both are neighbouring starts, whose keys ascend up to the length of keys.
        unsafe { self.memory.get_unchecked(range) }
    }

    #[inline(always)]
    fn value_between(&self, start: RowStart, end: RowStart) -> &[u8] {
        let (start, end) = ((start.value & !DELETED) as usize, (end.value & !DELETED) as usize);
        // SAFETY: both are neighbouring starts, whose values ascend up to the length of values.
        unsafe { self.memory.get_unchecked(self.values_at + start..self.values_at + end) }
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
        if self.stride > 0 {
            assert!(i < self.rows, "row {i} of a segment of {}", self.rows);
            // SAFETY: i < rows.
            return unsafe { self.key_by_stride(i) };
        }
        let (start, end) = self.starts(i);
        self.key_between(start, end)
    }

    /// # Safety
    /// There is a stride, and such a row.
    #[inline(always)]
    unsafe fn key_by_stride(&self, i: usize) -> &[u8] {
        let start = self.keys_at + i * self.stride;
        debug_assert!(i < self.rows && start + self.stride <= self.values_at);
        // SAFETY: keys have rows * stride bytes.
        unsafe { self.memory.get_unchecked(start..start + self.stride) }
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
        if !self.has_deletes {
            assert!(i < self.rows, "row {i} of a segment of {}", self.rows);
            return Kind::Put;
        }
        kind_of(self.starts(i).0)
    }

    /// Seqno of record `i`.
    #[inline]
    pub fn seqno(&self, i: usize) -> Seqno {
        assert!(i < self.rows, "row {i} of a segment of {}", self.rows);
        // SAFETY: behind `rows + 1` starts there are as many seqnos as rows, of 4 or 8 bytes, and i < rows. They
        // may lie anywhere.
        let at =
            |bytes: usize| unsafe { self.memory.as_ptr().add((self.rows + 1) * START_BYTES + i * bytes) };
        match self.seqnos {
            SeqnoForm::Same(seqno) => seqno,
            // SAFETY: as above.
            SeqnoForm::Near { base } => base + Seqno::from(unsafe { at(4).cast::<u32>().read_unaligned() }),
            // SAFETY: as above.
            SeqnoForm::Far => unsafe { at(8).cast::<u64>().read_unaligned() },
        }
    }

    /// Gives every record the seqno `seqno`, if they were written without one (as 0).
    pub fn number(&mut self, seqno: Seqno) {
        if matches!(self.seqnos, SeqnoForm::Same(0)) {
            self.seqnos = SeqnoForm::Same(seqno);
        }
    }

    /// First row whose key is `key` or greater; `rows()` if there is none.
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        self.partition(key, |_, other| other < key)
    }

    /// First row not before version (`key`, `snapshot`): the newest version of `key` that `snapshot`
    /// sees if there is one, else what follows; `rows()` if nothing does.
    pub fn lower_bound_version(&self, key: &[u8], snapshot: Seqno) -> usize {
        self.partition(key, |row, other| match other.cmp(key) {
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

    /// Bytes of the one allocation that it has beyond the struct itself, exactly.
    pub fn heap_bytes(&self) -> usize {
        self.memory.len()
    }

    /// First row for which `before` (of row and key) is false, a row at `key` or near it; it must not be true again after it.
    #[inline]
    fn partition(&self, key: &[u8], before: impl Fn(usize, &[u8]) -> bool) -> usize {
        if self.stride == 0 {
            return first_false(0..self.rows, |row| before(row, self.key(row)));
        }
        // SAFETY: only rows that there are, are asked for.
        let at = |row: usize| unsafe { self.key_by_stride(row) };
        let before = |row: usize| before(row, at(row));
        let guess = self.ends.guess(key, self.rows);
        first_false(guess.map_or(0..self.rows, |guess| narrowed(self.rows, guess, before)), before)
    }
}

/// In fewer rows all keys lie in a few cache lines.
const GUESSED_ROWS_MIN: usize = 64;

/// So far from a guess the search looks, before it halves what is left.
const REACHES: [usize; 3] = [8, 64, 512];

/// Where the first row is for which `before` is false, or the end of these rows: around the guess, if it was good.
#[inline(always)]
fn narrowed(rows: usize, guess: usize, before: impl Fn(usize) -> bool) -> Range<usize> {
    let is_above = before(guess);
    let (mut low, mut high) = if is_above { (guess + 1, rows) } else { (0, guess) };
    for reach in REACHES {
        let next = if is_above { guess.checked_add(reach) } else { guess.checked_sub(reach) };
        let Some(next) = next.filter(|next| *next < rows) else { break };
        let is_before = before(next);
        if is_before {
            low = next + 1;
        } else {
            high = next;
        }
        if is_before != is_above {
            break;
        }
    }
    low..high
}

/// First of `rows` for which `before` is false.
#[inline(always)]
fn first_false(rows: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (rows.start, rows.end);
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
