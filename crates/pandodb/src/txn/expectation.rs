//! Whether the next lookup of a dictionary will find something, as far as the last ones tell.
//!
//! Lookups come in series: all rows that a secondary key names, all partners of a join, the keys of rows to be inserted. Most series
//! find always or never. A lookup that expects its row does not ask the filter of the last run on its path
//! ([`pando_run::Lookup::expected`]): that is a quarter of its cost when all is in the cache. Where it finds none, it may have read a block in
//! vain, so it takes a series of finds to expect the next one.

use pando_base::DictId;

/// Finds one after another, from which on the next one is expected. At most one lookup in so many is wrong about it.
const SERIES: u8 = 8;

/// Dictionaries whose series are known at the same time. A join goes from one to another with each row.
const SLOTS: usize = 8;

/// The series of a transaction's lookups.
#[derive(Debug)]
pub(crate) struct Expectation {
    slots: [(DictId, u8); SLOTS],
}

impl Expectation {
    pub(crate) fn new() -> Self {
        Expectation { slots: [(DictId(0), 0); SLOTS] }
    }

    pub(crate) fn is_expected(&self, dict: DictId) -> bool {
        self.slots[slot(dict)] == (dict, SERIES)
    }

    /// A lookup of `dict` has found something, or not.
    pub(crate) fn note(&mut self, dict: DictId, found: bool) {
        let (owner, series) = &mut self.slots[slot(dict)];
        if *owner != dict {
            (*owner, *series) = (dict, 0);
        }
        *series = if found { SERIES.min(*series + 1) } else { 0 };
    }
}

fn slot(dict: DictId) -> usize {
    dict.0 as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_of_finds_is_expected_to_go_on_until_one_fails() {
        let (rows, key) = (DictId(3), DictId(4));
        let mut expectation = Expectation::new();
        for _ in 0..SERIES {
            assert!(!expectation.is_expected(rows));
            expectation.note(rows, true);
            expectation.note(key, false);
        }
        assert!(expectation.is_expected(rows) && !expectation.is_expected(key));
        expectation.note(rows, false);
        assert!(!expectation.is_expected(rows));
    }

    #[test]
    fn dictionaries_that_share_a_slot_do_not_share_a_series() {
        let (one, other) = (DictId(1), DictId(1 + SLOTS as u64));
        let mut expectation = Expectation::new();
        (0..SERIES).for_each(|_| expectation.note(one, true));
        assert!(!expectation.is_expected(other));
        expectation.note(other, true);
        assert!(!expectation.is_expected(one) && !expectation.is_expected(other));
    }
}
