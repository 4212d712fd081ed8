//! What the side of a join that is in memory says of the keys of the other: most rows that have no partner are dropped
//! where they are read, and segments whose keys all lie outside are not read at all.
//!
//! Such a filter may let a row pass that has no partner, never the reverse. It has a bit for each number where these lie
//! close together, else a Bloom filter of one word for each key (Putze et al., "Cache-, Hash- and Space-Efficient Bloom
//! Filters", 2009). One that drops little is not asked any more.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::column::{Column, Data};
use crate::eval::Result;
use crate::keys::Budget;

#[derive(Debug)]
enum Set {
    /// A bit for each number from the least on.
    Bits(Vec<u64>),
    /// Some bits of one of the words; their count is a power of two.
    Bloom(Vec<u64>),
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct KeyFilter {
    least: i64,
    most: i64,
    set: Set,
    seen: AtomicUsize,
    passed: AtomicUsize,
}

/// Numbers between the least and the most of which each has a bit: so many for each key, and these at any rate.
const BITS_PER_KEY: u64 = 64;
const BITS_MIN: u64 = 1 << 16;
const BITS_MAX: u64 = 1 << 27;

/// Keys beyond which a filter is larger than what it saves.
const KEYS_MAX: usize = 1 << 23;

/// Rows after which a filter is judged.
const ROWS_JUDGED: usize = 1 << 15;

#[inline(always)]
fn hash(value: i64) -> u64 {
    let mixed = u128::from(value as u64 ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93u128;
    (mixed as u64) ^ (mixed >> 64) as u64
}

/// Three bits of a word.
#[inline(always)]
fn bits(hash: u64) -> u64 {
    1 << (hash >> 58) | 1 << (hash >> 52 & 63) | 1 << (hash >> 46 & 63)
}

impl KeyFilter {
    /// Of the values of a column, of integers or what is stored as such. `None`: there is none, or it would be too large.
    pub(crate) fn of(column: &Column, budget: &Budget) -> Result<Option<KeyFilter>> {
        let Data::Small(values) = &column.data else { return Ok(None) };
        let some =
            || values.iter().enumerate().filter(|(row, _)| !column.is_null(*row)).map(|(_, value)| *value);
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        some().for_each(|value| (least, most) = (least.min(value), most.max(value)));
        let range = if least > most { 0 } else { most.abs_diff(least).saturating_add(1) };
        let set = if range <= (values.len() as u64 * BITS_PER_KEY).clamp(BITS_MIN, BITS_MAX) {
            let count = range.div_ceil(64) as usize;
            budget.take(count * 8)?;
            let mut bits = vec![0u64; count];
            some().for_each(|value| {
                let at = value.abs_diff(least);
                bits[(at / 64) as usize] |= 1 << (at % 64);
            });
            Set::Bits(bits)
        } else if values.len() <= KEYS_MAX {
            let count = (values.len() / 4).next_power_of_two();
            budget.take(count * 8)?;
            let mut words = vec![0u64; count];
            some().for_each(|value| {
                let hash = hash(value);
                words[hash as usize & (count - 1)] |= bits(hash);
            });
            Set::Bloom(words)
        } else {
            return Ok(None);
        };
        let (seen, passed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Some(KeyFilter { least, most, set, seen, passed }))
    }

    /// The least and the most of the keys; the least is larger where there are none.
    pub(crate) fn bounds(&self) -> (i64, i64) {
        (self.least, self.most)
    }

    /// Whether it has dropped enough so far.
    pub(crate) fn is_of_use(&self) -> bool {
        let (seen, passed) = (self.seen.load(Ordering::Relaxed), self.passed.load(Ordering::Relaxed));
        seen <= ROWS_JUDGED || passed <= seen / 8 * 7
    }

    /// Of 1,024 rows, how many have passed so far.
    pub(crate) fn share_passed(&self) -> usize {
        self.passed.load(Ordering::Relaxed) * 1024 / self.seen.load(Ordering::Relaxed).max(1)
    }

    /// The rows whose key may have a partner; `None`: all of them.
    pub(crate) fn select(&self, column: &Column) -> Option<Vec<u32>> {
        let kept = self.passing(column);
        self.note(column.rows(), kept.as_ref().map_or(column.rows(), Vec::len));
        kept
    }

    fn passing(&self, column: &Column) -> Option<Vec<u32>> {
        let span = self.most.wrapping_sub(self.least) as u64;
        if self.least > self.most {
            return selected(column, |_| false);
        }
        // Without a branch: what is out of range looks at the last place, for nothing.
        let place = |value: i64| value.wrapping_sub(self.least) as u64;
        match &self.set {
            Set::Bits(bits) => selected(column, |value| {
                let (at, last) = (place(value), place(value).min(span));
                (at <= span) & (bits[(last / 64) as usize] >> (last % 64) & 1 != 0)
            }),
            Set::Bloom(words) => selected(column, |value| {
                let hash = hash(value);
                let bits = bits(hash);
                (place(value) <= span) & (words[hash as usize & (words.len() - 1)] & bits == bits)
            }),
        }
    }

    /// Which of some different keys, none of them NULL, may have a partner: 1 or 0 for each.
    pub(crate) fn of_entries(&self, entries: &Column) -> Vec<u8> {
        let mut may_have = vec![0; entries.rows()];
        match self.passing(entries) {
            None => may_have.fill(1),
            Some(rows) => rows.iter().for_each(|row| may_have[*row as usize] = 1),
        }
        may_have
    }

    /// Counts that of so many rows so many have passed.
    pub(crate) fn note(&self, seen: usize, passed: usize) {
        self.seen.fetch_add(seen, Ordering::Relaxed);
        self.passed.fetch_add(passed, Ordering::Relaxed);
    }
}

#[inline]
fn selected(column: &Column, may_have: impl Fn(i64) -> bool) -> Option<Vec<u32>> {
    let rows = column.rows();
    let mut kept = vec![0u32; rows];
    let mut count = 0;
    let mut push = |row: usize, is_kept: bool| {
        kept[count] = row as u32;
        count += usize::from(is_kept);
    };
    match (&column.data, &column.nulls) {
        (Data::Small(values), None) => {
            values.iter().enumerate().for_each(|(row, value)| push(row, may_have(*value)));
        }
        _ => (0..rows).for_each(|row| {
            let value = i64::try_from(column.number(row));
            push(row, !column.is_null(row) && value.is_ok_and(&may_have));
        }),
    }
    kept.truncate(count);
    (count < rows).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: Vec<i64>, nulls: Option<Vec<bool>>) -> Column {
        Column { data: Data::Small(values), nulls }
    }

    /// Every key passes, few others do, NULL never; whatever numbers lie between the keys.
    #[test]
    fn what_has_a_partner_passes() {
        let budget = Budget::new(1 << 30);
        for (step, most) in [(1, 0), (7, 0), (1 << 40, 50), (-(1i64 << 42), 50)] {
            let keys: Vec<i64> = (-1000..1000).map(|at: i64| at * step).collect();
            let filter = KeyFilter::of(&column(keys.clone(), None), &budget).unwrap().unwrap();
            assert_eq!(filter.select(&column(keys.clone(), None)), None);
            let others: Vec<i64> = keys.iter().map(|key| key.wrapping_add(step / 2 + 5000 * step)).collect();
            let passed = filter.select(&column(others, None)).unwrap().len();
            assert!(passed <= most, "{passed} of 2000 passed a filter of keys {step} apart");
            let nulls = keys.iter().map(|key| *key == 0).collect();
            let rows: Vec<u32> = (0..2000).filter(|row| *row != 1000).collect();
            assert_eq!(filter.select(&column(keys.clone(), Some(nulls))), Some(rows));
        }
        let none = KeyFilter::of(&column(vec![5], Some(vec![true])), &budget).unwrap().unwrap();
        assert_eq!(none.select(&column(vec![5, 0, i64::MIN, i64::MAX], None)), Some(vec![]));
    }

    #[test]
    fn the_ends_of_what_there_is_pass() {
        let budget = Budget::new(1 << 30);
        let keys = vec![i64::MIN, 0, i64::MAX];
        let filter = KeyFilter::of(&column(keys.clone(), None), &budget).unwrap().unwrap();
        assert_eq!(filter.bounds(), (i64::MIN, i64::MAX));
        assert_eq!(filter.select(&column(keys, None)), None);
    }
}
