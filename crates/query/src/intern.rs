//! Values and their numbers: each different value of a slot has one, from 0 on. What is done with groups is done with numbers.
//!
//! Values are told apart by their bytes, not by a collation.

use hashbrown::HashTable;
use pando_column::vector::Strings;
use xxhash_rust::xxh3::xxh3_64;

use crate::cells::{Cells, Codes, Entries};

/// Numbers in this range are found in a table, without a hash.
const DIRECT_LEAST: i64 = -1024;
const DIRECT_COUNT: usize = 1 << 16;
const NONE: u32 = u32::MAX;

/// A value that has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known<'a> {
    Null,
    Number(i128),
    Text(&'a [u8]),
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    /// By number; of NULL and of texts 0.
    numbers: Vec<i128>,
    /// By number, if these are texts; of NULL empty.
    texts: Strings,
    is_text: bool,
    null: Option<u32>,
    direct: Vec<u32>,
    small: HashTable<(i64, u32)>,
    large: HashTable<u32>,
    of_texts: HashTable<(u64, u32)>,
}

/// A good hash of a small number, quickly.
#[inline]
pub(crate) fn hash_of(value: u64) -> u64 {
    let product = u128::from(value ^ 0x9e37_79b9_7f4a_7c15) * 0xa5a3_5641_9d5c_3f6d;
    (product >> 64) as u64 ^ product as u64
}

fn hash_of_large(value: i128) -> u64 {
    hash_of(value as u64) ^ hash_of((value >> 64) as u64 ^ 0x55)
}

impl Interner {
    pub(crate) fn new(is_text: bool) -> Interner {
        Interner { is_text, ..Interner::default() }
    }

    /// How many different values there are.
    pub(crate) fn len(&self) -> usize {
        if self.is_text {
            self.texts.len()
        } else {
            self.numbers.len()
        }
    }

    /// About how much memory they take.
    pub(crate) fn bytes(&self) -> usize {
        self.len() * 40 + self.texts.total_bytes()
    }

    pub(crate) fn get(&self, id: u32) -> Known<'_> {
        if self.null == Some(id) {
            Known::Null
        } else if self.is_text {
            Known::Text(self.texts.get(id as usize))
        } else {
            Known::Number(self.numbers[id as usize])
        }
    }

    /// The texts, by number; NULL is an empty one.
    pub(crate) fn texts(&self) -> &Strings {
        &self.texts
    }

    pub(crate) fn into_texts(self) -> Strings {
        self.texts
    }

    pub(crate) fn null(&mut self) -> u32 {
        if let Some(id) = self.null {
            return id;
        }
        let id = self.add(0, b"");
        self.null = Some(id);
        id
    }

    pub(crate) fn null_id(&self) -> Option<u32> {
        self.null
    }

    fn add(&mut self, number: i128, text: &[u8]) -> u32 {
        let id = self.len() as u32;
        match self.is_text {
            true => self.texts.push(text),
            false => self.numbers.push(number),
        }
        id
    }

    pub(crate) fn number(&mut self, value: i128) -> u32 {
        if let Ok(value) = i64::try_from(value) {
            return self.small(value);
        }
        let hash = hash_of_large(value);
        let numbers = &self.numbers;
        if let Some(id) = self.large.find(hash, |id| numbers[*id as usize] == value) {
            return *id;
        }
        let id = self.add(value, b"");
        let numbers = &self.numbers;
        self.large.insert_unique(hash, id, |id| hash_of_large(numbers[*id as usize]));
        id
    }

    #[inline]
    pub(crate) fn small(&mut self, value: i64) -> u32 {
        let place = value.wrapping_sub(DIRECT_LEAST) as u64 as usize;
        if place < DIRECT_COUNT {
            if let Some(id) = self.direct.get(place).filter(|id| **id != NONE) {
                return *id;
            }
            let id = self.add(i128::from(value), b"");
            if self.direct.len() <= place {
                self.direct.resize((place + 1).next_power_of_two(), NONE);
            }
            self.direct[place] = id;
            return id;
        }
        let hash = hash_of(value as u64);
        if let Some((_, id)) = self.small.find(hash, |(of, _)| *of == value) {
            return *id;
        }
        let id = self.add(i128::from(value), b"");
        self.small.insert_unique(hash, (value, id), |(of, _)| hash_of(*of as u64));
        id
    }

    pub(crate) fn text(&mut self, text: &[u8]) -> u32 {
        let hash = xxh3_64(text);
        let texts = &self.texts;
        let is_it = |(of, id): &(u64, u32)| *of == hash && texts.get(*id as usize) == text;
        if let Some((_, id)) = self.of_texts.find(hash, is_it) {
            return *id;
        }
        let id = self.add(0, text);
        self.of_texts.insert_unique(hash, (hash, id), |(of, _)| *of);
        id
    }

    /// The number of a value of another interner.
    pub(crate) fn known(&mut self, value: Known<'_>) -> u32 {
        match value {
            Known::Null => self.null(),
            Known::Number(value) => self.number(value),
            Known::Text(text) => self.text(text),
        }
    }

    fn entry(&mut self, cells: &Cells<'_>, entry: usize) -> u32 {
        match &cells.entries {
            Entries::Small(values) => self.small(values[entry]),
            Entries::Large(values) => self.number(values[entry]),
            Entries::Texts(texts) => self.text(texts.get(entry)),
            Entries::Presence => unreachable!("checked before: values are asked for"),
        }
    }

    /// The number of each row's value.
    pub(crate) fn ids(&mut self, cells: &Cells<'_>, ids: &mut Vec<u32>) {
        ids.clear();
        let rows = cells.rows;
        if rows == 0 {
            return;
        }
        let has_nulls = cells.nulls.is_some();
        match &cells.codes {
            Codes::First if !has_nulls => {
                let id = self.entry(cells, 0);
                ids.resize(rows, id);
            }
            Codes::Of(codes) if cells.entries.len() <= 4 * rows => {
                let mut known = vec![NONE; cells.entries.len()];
                for (row, code) in codes.iter().enumerate() {
                    if has_nulls && cells.is_null(row) {
                        ids.push(self.null());
                        continue;
                    }
                    let mut id = known[*code as usize];
                    if id == NONE {
                        id = self.entry(cells, *code as usize);
                        known[*code as usize] = id;
                    }
                    ids.push(id);
                }
            }
            _ => self.ids_by_row(cells, ids),
        }
    }

    fn ids_by_row(&mut self, cells: &Cells<'_>, ids: &mut Vec<u32>) {
        let has_nulls = cells.nulls.is_some();
        if let (Entries::Small(values), Codes::Own, false) = (&cells.entries, &cells.codes, has_nulls) {
            ids.extend(values.iter().map(|value| self.small(*value)));
            return;
        }
        if let (Entries::Texts(texts), Codes::Own, false) = (&cells.entries, &cells.codes, has_nulls) {
            // Neighbours are often equal.
            let mut last: (&[u8], u32) = (b"", NONE);
            for row in 0..cells.rows {
                let text = texts.get(row);
                if last.1 == NONE || last.0 != text {
                    last = (text, self.text(text));
                }
                ids.push(last.1);
            }
            return;
        }
        for row in 0..cells.rows {
            let id = match has_nulls && cells.is_null(row) {
                true => self.null(),
                false => self.entry(cells, cells.code(row)),
            };
            ids.push(id);
        }
    }
}

/// Pairs of numbers and their numbers, from 0 on.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pairs: Vec<(u32, u32)>,
    /// Numbers are below these, which are powers of two.
    firsts: usize,
    seconds: usize,
    /// Bits of the second number in a place of `direct`.
    shift: u32,
    direct: Vec<u32>,
    table: HashTable<(u64, u32)>,
}

/// Most places of a table that pairs are found in without a hash.
const DIRECT_PAIRS_MAX: usize = 1 << 18;

impl Pairs {
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.pairs.len() * 32 + self.direct.len() * 4
    }

    pub(crate) fn get(&self, id: u32) -> (u32, u32) {
        self.pairs[id as usize]
    }

    /// Makes room for pairs of numbers below these, and those said before.
    pub(crate) fn expect(&mut self, firsts: usize, seconds: usize) {
        if firsts <= self.firsts && seconds <= self.seconds {
            return;
        }
        self.firsts = self.firsts.max(firsts.next_power_of_two());
        self.seconds = self.seconds.max(seconds.next_power_of_two());
        self.shift = self.seconds.trailing_zeros();
        let places = self.firsts.saturating_mul(self.seconds);
        if places > DIRECT_PAIRS_MAX {
            // There are pairs in one of both at most.
            if !self.direct.is_empty() {
                self.direct = Vec::new();
                for (id, pair) in (0u32..).zip(&self.pairs) {
                    let key = key_of(pair.0, pair.1);
                    self.table.insert_unique(hash_of(key), (key, id), |(key, _)| hash_of(*key));
                }
            }
            return;
        }
        self.direct = vec![NONE; places];
        for (id, (first, second)) in (0u32..).zip(&self.pairs) {
            self.direct[(*first as usize) << self.shift | *second as usize] = id;
        }
    }

    /// The number of a pair, which `expect` knows of.
    #[inline]
    pub(crate) fn find(&mut self, first: u32, second: u32) -> u32 {
        if !self.direct.is_empty() {
            let place = (first as usize) << self.shift | second as usize;
            let mut id = self.direct[place];
            if id == NONE {
                id = self.pairs.len() as u32;
                self.pairs.push((first, second));
                self.direct[place] = id;
            }
            return id;
        }
        let key = key_of(first, second);
        let hash = hash_of(key);
        if let Some((_, id)) = self.table.find(hash, |(of, _)| *of == key) {
            return *id;
        }
        let id = self.pairs.len() as u32;
        self.pairs.push((first, second));
        self.table.insert_unique(hash, (key, id), |(of, _)| hash_of(*of));
        id
    }
}

#[inline]
fn key_of(first: u32, second: u32) -> u64 {
    u64::from(first) << 32 | u64::from(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_numbers() {
        let mut interner = Interner::new(false);
        let values = [5, -1025, 5, 1 << 40, i128::from(u64::MAX), -1, 1 << 40, i128::from(u64::MAX), 70_000];
        let ids: Vec<u32> = values.iter().map(|value| interner.number(*value)).collect();
        assert_eq!(ids, [0, 1, 0, 2, 3, 4, 2, 3, 5]);
        assert_eq!(interner.null(), 6);
        assert_eq!((interner.get(3), interner.get(6)), (Known::Number(u64::MAX.into()), Known::Null));
        assert_eq!(interner.len(), 7);
    }

    #[test]
    fn pairs_keep_their_numbers_when_there_are_more_of_them() {
        let mut pairs = Pairs::default();
        let mut all = Vec::new();
        for (firsts, seconds) in [(3, 2), (3, 40), (90, 41), (800, 800), (4000, 4000)] {
            pairs.expect(firsts, seconds);
            for step in 0..500 {
                let pair = ((step * 7 % firsts) as u32, (step * 13 % seconds) as u32);
                let id = pairs.find(pair.0, pair.1);
                assert_eq!(pairs.get(id), pair);
                all.push((pair, id));
            }
            all.iter().for_each(|(pair, id)| assert_eq!(pairs.find(pair.0, pair.1), *id));
        }
    }
}
