//! How many different values the beginnings of a dictionary's keys have: what an optimizer wants to know of an index.
//!
//! Where the parts of a key end, only who made it can say. Keys are sampled (`tree/src/sample.rs`): of a small dictionary
//! all are counted; of a large one whole stretches of neighbours, in which every so many keys a new value begins, and that
//! rate is taken for all rows. Where a value has more rows than a stretch, no beginning may be met: then there are at
//! least as many values as were seen. Few values are counted exactly, by a lookup of the next one from each
//! (`reports/distinct_keys.rs`).
//!
//! Figures are kept in memory. They are made when somebody first asks, and again when the number of rows has changed by a
//! quarter, or on demand; meanwhile others get the figures there were.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use pando_base::locks::Mutex;

/// So many rows more or less make no other figures.
const CHANGED_ROWS_MIN: u64 = 16;
/// Values in a stretch that are told apart from those in others.
const VALUES_OF_STRETCH_MAX: u64 = 64;

/// Says where the parts of a key end, as many as there is room for; false: it is not a key.
pub type KeyEnds<'a> = dyn FnMut(&[u8], &mut [u32]) -> bool + 'a;

/// How many different keys there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distinct {
    /// Rows of the table when they were counted.
    pub rows: u64,
    /// Different values of the first part, of the first two together, and so on.
    pub values: Vec<u64>,
}

impl Distinct {
    pub(crate) fn is_of(&self, rows: u64, parts: usize) -> bool {
        self.values.len() == parts && self.rows.abs_diff(rows) <= CHANGED_ROWS_MIN + self.rows / 4
    }
}

/// Those of one dictionary.
#[derive(Debug, Default)]
pub(crate) struct KeyStatistics {
    pub(crate) known: Mutex<Option<Arc<Distinct>>>,
    /// Somebody is about to renew them.
    pub(crate) is_counting: AtomicBool,
}

/// What was met in the keys so far.
pub(crate) struct Counts {
    keys: u64,
    stretches: u64,
    parts: Vec<Part>,
    last: Vec<u8>,
    last_ends: Vec<u32>,
    ends: Vec<u32>,
}

/// Of the first so many parts of keys.
#[derive(Clone, Default)]
struct Part {
    /// Keys that differ from their neighbours before them.
    begun: u64,
    begun_in_stretch: u64,
    /// Hashes of values.
    values: HashSet<u64>,
}

impl Counts {
    pub(crate) fn new(parts: usize) -> Counts {
        let (last, last_ends) = (Vec::new(), vec![0; parts]);
        Counts {
            keys: 0,
            stretches: 0,
            parts: vec![Part::default(); parts],
            last,
            last_ends,
            ends: vec![0; parts],
        }
    }

    pub(crate) fn add(&mut self, begins: bool, key: &[u8], ends: &mut KeyEnds<'_>) {
        if !ends(key, &mut self.ends) {
            return;
        }
        self.keys += 1;
        self.stretches += u64::from(begins);
        let same = key.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        for (number, part) in self.parts.iter_mut().enumerate() {
            let end = self.ends[number] as usize;
            let is_new = same < end || self.last_ends[number] as usize != end;
            if begins {
                part.begun_in_stretch = 0;
            } else if is_new {
                part.begun += 1;
                part.begun_in_stretch += 1;
            }
            if (begins || is_new) && part.begun_in_stretch <= VALUES_OF_STRETCH_MAX {
                part.values.insert(pando_run::key_hash(&key[..end.min(key.len())]));
            }
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        std::mem::swap(&mut self.last_ends, &mut self.ends);
    }

    /// If these were all keys.
    pub(crate) fn all(&self) -> Vec<u64> {
        self.parts.iter().map(|part| part.begun + self.stretches).collect()
    }

    /// If there are `rows` like them.
    pub(crate) fn scaled(&self, rows: u64) -> Vec<u64> {
        // Between two neighbours a value may begin: one chance less than there are keys in a stretch.
        let chances = self.keys.saturating_sub(self.stretches).max(1);
        let scaled = |part: &Part| (u128::from(part.begun) * u128::from(rows) / u128::from(chances)) as u64;
        self.parts.iter().map(|part| scaled(part).max(part.values.len() as u64).min(rows.max(1))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two parts of one byte each.
    fn ends(_: &[u8], ends: &mut [u32]) -> bool {
        ends.copy_from_slice(&[1, 2]);
        true
    }

    fn counts(stretches: &[&[[u8; 2]]]) -> Counts {
        let mut counts = Counts::new(2);
        for stretch in stretches {
            stretch.iter().enumerate().for_each(|(at, key)| counts.add(at == 0, key, &mut ends));
        }
        counts
    }

    #[test]
    fn of_all_keys_the_values_are_counted() {
        assert_eq!(counts(&[&[[1, 1], [1, 2], [2, 2], [3, 2], [3, 2]]]).all(), [3, 4]);
        assert_eq!(counts(&[]).all(), [0, 0]);
    }

    #[test]
    fn of_stretches_the_rate_at_which_values_begin_counts() {
        let stretch: Vec<[u8; 2]> = (0..101).map(|n| [n / 10, n]).collect();
        assert_eq!(counts(&[&stretch]).scaled(10_000), [1_000, 10_000]);
    }

    #[test]
    fn values_larger_than_stretches_are_at_least_those_seen() {
        let stretches: Vec<Vec<[u8; 2]>> = (0..7).map(|value| vec![[value / 2, 0]; 50]).collect();
        let stretches: Vec<&[[u8; 2]]> = stretches.iter().map(Vec::as_slice).collect();
        assert_eq!(counts(&stretches).scaled(1_000_000), [4, 4]);
    }
}
