//! Keys as heads and tails: the last bytes of a key are a number that mostly grows by little while what is
//! before them stays; so are those of an index, which end with the row's key, and of counted rows.
//!
//! ```text
//! in the head:  u8 bytes of a tail (0 to 8); varint heads
//!               integers: records - 1 of each head, if there are fewer heads than records
//!               integers: bytes that each head shares with the one before
//!               integers: bytes of each head beyond those
//!               bytes:    these bytes
//!               with tails: integers: the first tail of each head, as big-endian numbers
//!                           integers: for each other record what its tail is more than the one before
//! ```
//! A key is its head and its tail. Without tails, all records of a head have the same key.
#![deny(clippy::indexing_slicing)]

use std::cmp::Ordering;
use std::ops::Range;

use pando_base::limits::KEY_BYTES_MAX;

use super::ints;
use super::streams::{Source, Writer};
use crate::wire::DecodeError;

/// Keys written out, one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) bytes: Vec<u8>,
    /// Where each begins, and where the last one ends.
    pub(crate) starts: Vec<u32>,
}

impl Keys {
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(start), Some(end)) => self.bytes.get(*start as usize..*end as usize).unwrap_or_default(),
            _ => &[],
        }
    }
}

/// What was read.
#[derive(Debug)]
pub(crate) struct TakenKeys {
    pub(crate) keys: Keys,
    /// The number of each record's head; empty if there are too many to number.
    pub(crate) heads: Vec<u16>,
    /// Records with the key of the one before.
    pub(crate) repeats: Vec<usize>,
}

/// Writes `rows` keys; `shared` of them says how many bytes a key shares with the one before. Gives the
/// number of each record's head, and how many there are, where that is worth anything.
pub(crate) fn put(to: &mut Writer<'_>, keys: &Keys, shared: &[u32]) -> Option<(Vec<u16>, usize)> {
    let tail = tail_bytes(keys, shared);
    let rows = shared.len();
    let mut heads: Vec<usize> = Vec::new();
    for row in 0..rows {
        let continues = row > 0 && {
            let (len, last) = (keys.get(row).len(), keys.get(row - 1).len());
            len == last && shared.get(row).is_some_and(|shared| *shared as usize + tail >= len)
        };
        if !continues {
            heads.push(row);
        }
    }
    to.head.push(tail as u8);
    to.varint(heads.len() as u64);
    let ends = heads.iter().skip(1).copied().chain([rows]);
    let lengths: Vec<u64> = heads.iter().zip(ends).map(|(start, end)| (end - start) as u64 - 1).collect();
    if heads.len() < rows {
        ints::put(to, &lengths);
    }
    put_heads(to, keys, tail, &heads);
    if tail > 0 {
        put_tails(to, keys, tail, &heads);
    }
    let useful = heads.len() <= usize::from(u16::MAX) && heads.len() * 2 <= rows;
    useful.then(|| (numbers(&lengths), heads.len()))
}

fn numbers(lengths: &[u64]) -> Vec<u16> {
    let mut numbers = Vec::new();
    for (number, length) in lengths.iter().enumerate() {
        numbers.resize(numbers.len() + *length as usize + 1, number as u16);
    }
    numbers
}

/// The fewest bytes with which nearly as few heads are left as with eight.
fn tail_bytes(keys: &Keys, shared: &[u32]) -> usize {
    let shortest = keys.starts.iter().zip(keys.starts.iter().skip(1)).map(|(a, b)| b - a).min().unwrap_or(0);
    let mut needed = [0usize; 9];
    for (row, shared) in shared.iter().enumerate().skip(1) {
        let (len, last) = (keys.get(row).len(), keys.get(row - 1).len());
        let bytes = if len == last { len - *shared as usize } else { usize::MAX };
        if let Some(count) = needed.get_mut(bytes) {
            *count += 1;
        }
    }
    let most = 8.min(shortest as usize);
    let all: usize = needed.iter().take(most + 1).sum();
    let spared = shared.len() / 64;
    let mut reached = 0;
    for (bytes, count) in needed.iter().enumerate().take(most + 1) {
        reached += count;
        if reached + spared >= all {
            return bytes;
        }
    }
    most
}

fn put_heads(to: &mut Writer<'_>, keys: &Keys, tail: usize, heads: &[usize]) {
    let head_of = |row: usize| {
        let key = keys.get(row);
        key.get(..key.len() - tail).unwrap_or_default()
    };
    let (mut shared, mut lengths, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut last: &[u8] = &[];
    for row in heads {
        let head = head_of(*row);
        let common = last.iter().zip(head).take_while(|(a, b)| a == b).count();
        shared.push(common as u64);
        lengths.push((head.len() - common) as u64);
        bytes.extend_from_slice(head.get(common..).unwrap_or_default());
        last = head;
    }
    ints::put(to, &shared);
    ints::put(to, &lengths);
    to.bytes(&bytes);
}

fn put_tails(to: &mut Writer<'_>, keys: &Keys, tail: usize, heads: &[usize]) {
    let tail_of = |row: usize| {
        let key = keys.get(row);
        number(key.get(key.len() - tail..).unwrap_or_default())
    };
    let firsts: Vec<u64> = heads.iter().map(|row| tail_of(*row)).collect();
    let rows = keys.starts.len().saturating_sub(1);
    let mut steps = Vec::with_capacity(rows - heads.len());
    let mut heads = heads.iter().copied().peekable();
    let mut last = 0;
    for row in 0..rows {
        let own = tail_of(row);
        if heads.next_if_eq(&row).is_none() {
            steps.push(own - last);
        }
        last = own;
    }
    ints::put(to, &firsts);
    ints::put(to, &steps);
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// Keys as they are stored: heads, and numbers behind them.
struct Parts {
    /// Bytes of a number.
    tail: usize,
    heads: Keys,
    /// Records of each head, less one.
    lengths: Vec<u64>,
    /// The first number of each head.
    firsts: Vec<u64>,
    /// What each other number is more than the one before.
    steps: Vec<u64>,
}

impl Parts {
    fn take(from: &mut Source<'_>, rows: usize, key_bytes: usize) -> Result<Parts, DecodeError> {
        let tail = usize::from(from.head.u8("bytes of tails")?);
        let count = from.count(rows, "heads of keys")?;
        if tail > 8 || count == 0 {
            return Err(DecodeError::new(
                "keys",
                "heads, and tails of at most 8 bytes",
                format_args!("{count}, {tail}"),
            ));
        }
        let lengths = if count < rows { ints::take(from, count)? } else { vec![0; count] };
        let total = lengths.iter().try_fold(0u64, |sum, len| sum.checked_add(*len)?.checked_add(1));
        if total != Some(rows as u64) {
            return Err(DecodeError::new("records of heads", rows, format_args!("{total:?}")));
        }
        let heads = take_heads(from, count, key_bytes)?;
        let (mut firsts, mut steps) = (Vec::new(), Vec::new());
        if tail > 0 {
            firsts = ints::take(from, count)?;
            steps = ints::take(from, rows - count)?;
        }
        Ok(Parts { tail, heads, lengths, firsts, steps })
    }

    /// Whether mapped columns may follow from heads.
    fn are_heads_numbered(&self, rows: usize) -> bool {
        self.lengths.len() <= usize::from(u16::MAX) && self.lengths.len() * 2 <= rows
    }

    fn first(&self, head: usize) -> u64 {
        self.firsts.get(head).copied().unwrap_or(0)
    }

    /// How the key of `number` behind `head` compares with `key`.
    fn compare(&self, head: usize, number: u64, key: &[u8]) -> Ordering {
        let head = self.heads.get(head);
        let (start, rest) = key.split_at_checked(head.len()).unwrap_or((key, &[]));
        let tail = number.to_be_bytes();
        head.cmp(start).then_with(|| tail.get(8 - self.tail..).unwrap_or_default().cmp(rest))
    }
}

/// Where a key is among those of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sought {
    /// The records that have it; empty: where they would be.
    pub(crate) rows: Range<usize>,
    /// The number of its head, and how many there are, if they are numbered.
    pub(crate) head: Option<(usize, usize)>,
}

/// Looks for `key` without writing out the others; their order is not verified. An error also if `first_key` is not the first one.
pub(crate) fn seek(
    from: &mut Source<'_>,
    rows: usize,
    key_bytes: usize,
    key: &[u8],
    first_key: &[u8],
) -> Result<Sought, DecodeError> {
    let parts = Parts::take(from, rows, key_bytes)?;
    if parts.compare(0, parts.first(0), first_key) != Ordering::Equal {
        return Err(DecodeError::new("first key of a segment", format_args!("{first_key:?}"), "another"));
    }
    // The last head that does not begin behind the key. Versions of one key have one head.
    let (mut low, mut high) = (0, parts.lengths.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match parts.compare(middle, parts.first(middle), key) {
            Ordering::Greater => high = middle,
            _ => low = middle + 1,
        }
    }
    let Some(head) = low.checked_sub(1) else { return Ok(Sought { rows: 0..0, head: None }) };
    let lengths = parts.lengths.get(..head).unwrap_or_default();
    let before = lengths.iter().fold(0, |sum, length| sum + *length as usize);
    let length = parts.lengths.get(head).map_or(0, |length| *length as usize);
    let (mut number, mut start, mut found) = (parts.first(head), before + head, 0);
    let mut steps = parts.steps.get(before..before + length).unwrap_or_default().iter();
    for _ in 0..=length {
        match parts.compare(head, number, key) {
            Ordering::Less => start += 1,
            Ordering::Equal => found += 1,
            Ordering::Greater => break,
        }
        number = number.saturating_add(steps.next().copied().unwrap_or(0));
    }
    let head = parts.are_heads_numbered(rows).then_some((head, parts.lengths.len()));
    Ok(Sought { rows: start..start + found, head })
}

/// Reads `rows` keys of `key_bytes` bytes in all, and verifies their order but for that of versions.
pub(crate) fn take(from: &mut Source<'_>, rows: usize, key_bytes: usize) -> Result<TakenKeys, DecodeError> {
    let parts = Parts::take(from, rows, key_bytes)?;
    let is_numbered = parts.are_heads_numbered(rows);
    let Parts { tail, heads, lengths, firsts, steps } = parts;
    let mut builder = Builder { keys: Keys::default(), key_bytes, tail, repeats: Vec::new() };
    builder.keys.bytes.reserve_exact(key_bytes);
    builder.keys.starts.reserve_exact(rows + 1);
    let mut steps = steps.into_iter();
    for (at, length) in lengths.iter().enumerate() {
        let head = heads.get(at);
        let mut number = firsts.get(at).copied().unwrap_or(0);
        builder.push(head, number, at > 0)?;
        for _ in 0..*length {
            let step = if tail > 0 { steps.next().unwrap_or(0) } else { 0 };
            let next = number.checked_add(step);
            number = next.ok_or_else(|| DecodeError::new("tail of a key", "64 bits", "more"))?;
            if step == 0 {
                builder.repeats.push(builder.keys.starts.len());
            }
            builder.push(head, number, false)?;
        }
    }
    if builder.keys.bytes.len() != key_bytes {
        return Err(DecodeError::new("segment key bytes", key_bytes, builder.keys.bytes.len()));
    }
    builder.keys.starts.push(key_bytes as u32);
    let heads = if is_numbered { numbers(&lengths) } else { Vec::new() };
    Ok(TakenKeys { keys: builder.keys, heads, repeats: builder.repeats })
}

/// Goes past what [`take`] would read.
pub(crate) fn skip(from: &mut Source<'_>, rows: usize, key_bytes: usize) -> Result<(), DecodeError> {
    let tail = from.head.u8("bytes of tails")?;
    let count = from.count(rows, "heads of keys")?;
    if count < rows {
        ints::skip(from, count)?;
    }
    ints::skip(from, count)?;
    let lengths = ints::take(from, count)?;
    let total = lengths.iter().try_fold(0u64, |sum, len| sum.checked_add(*len));
    let total = total.filter(|total| *total <= key_bytes as u64);
    let total = total.ok_or_else(|| DecodeError::new("bytes of heads", key_bytes, "more"))?;
    from.skip_bytes(total as usize)?;
    if tail > 0 {
        ints::skip(from, count)?;
        ints::skip(from, rows - count)?;
    }
    Ok(())
}

fn take_heads(from: &mut Source<'_>, count: usize, key_bytes: usize) -> Result<Keys, DecodeError> {
    let shared = ints::take(from, count)?;
    let lengths = ints::take(from, count)?;
    let total = lengths.iter().try_fold(0u64, |sum, len| sum.checked_add(*len));
    let total = total.filter(|total| *total <= key_bytes as u64);
    let total = total.ok_or_else(|| DecodeError::new("bytes of heads", key_bytes, "more"))?;
    let suffixes = from.bytes(total as usize)?;
    let mut heads = Keys::default();
    let (mut last, mut at) = (0, 0);
    for (shared, length) in shared.iter().zip(&lengths) {
        let (shared, length) = (*shared, *length as usize);
        let end = heads.bytes.len();
        if shared > (end - last) as u64 {
            return Err(DecodeError::new("bytes shared with a head", end - last, shared));
        }
        let bytes = shared as usize + length;
        if bytes > KEY_BYTES_MAX || bytes > key_bytes - end {
            return Err(DecodeError::new("bytes of a head", key_bytes - end, bytes));
        }
        heads.starts.push(end as u32);
        heads.bytes.extend_from_within(last..last + shared as usize);
        heads.bytes.extend_from_slice(suffixes.get(at..at + length).unwrap_or_default());
        at += length;
        last = end;
    }
    heads.starts.push(heads.bytes.len() as u32);
    Ok(heads)
}

struct Builder {
    keys: Keys,
    key_bytes: usize,
    tail: usize,
    repeats: Vec<usize>,
}

impl Builder {
    /// Adds a key; with `is_new`, one that has another head than the one before.
    #[inline]
    fn push(&mut self, head: &[u8], number: u64, is_new: bool) -> Result<(), DecodeError> {
        let start = self.keys.bytes.len();
        let len = head.len() + self.tail;
        if len > KEY_BYTES_MAX || len > self.key_bytes - start {
            return Err(DecodeError::new("key length", self.key_bytes - start, len));
        }
        if self.tail < 8 && number >> (8 * self.tail) != 0 {
            return Err(DecodeError::new("tail of a key", format_args!("{} bytes", self.tail), number));
        }
        let last = self.keys.starts.last().map_or(0, |last| *last as usize);
        self.keys.starts.push(start as u32);
        self.keys.bytes.extend_from_slice(head);
        let tail = number.to_be_bytes();
        self.keys.bytes.extend_from_slice(tail.get(8 - self.tail..).unwrap_or_default());
        let (before, own) = self.keys.bytes.split_at(start);
        if is_new && before.get(last..).is_none_or(|before| before >= own) {
            let row = self.keys.starts.len() - 1;
            return Err(DecodeError::new("order of keys", "a greater key", format_args!("row {row}")));
        }
        Ok(())
    }
}
