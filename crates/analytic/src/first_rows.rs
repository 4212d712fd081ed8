//! What the first rows of an order say of the rows that are still to come (`ORDER BY a LIMIT 10`): a row whose first key comes
//! behind that of as many rows as are wanted is dropped where it is read, so its other columns are not decoded, and segments
//! all of whose keys lie behind are not read at all.
//!
//! Rows that are equal to the last one wanted pass: the other keys, and which of equal texts is shown, are for the sort to say.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_query::{Failure, Why};

use crate::column::{Column, Data, Kind, UNSUPPORTED};
use crate::eval::Result;
use crate::expr::Texts;
use crate::keys::Budget;
use crate::sort::Sorter;

/// A first key. NULL comes before all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Null,
    Number(i128),
    /// The bits of a DOUBLE, ordered as it is.
    Real(u64),
    /// What orders a text.
    Text(Vec<u8>),
}

/// See the head of this file.
pub(crate) struct FirstRows {
    kind: Kind,
    descends: bool,
    /// How many rows are wanted.
    wanted: usize,
    budget: Arc<Budget>,
    /// The first keys of blocks that have few rows each: at most as many as are wanted. Its lock is taken before that of `last`.
    few: Mutex<BinaryHeap<Ranked>>,
    /// The key of the last of so many rows that are known to be there.
    last: Mutex<Option<Arc<Key>>>,
}

/// A key in its order, the last one being the greatest.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ranked {
    Ascending(Key),
    Descending(Reverse<Key>),
}

/// So many rows at most are kept by their keys.
const FEW_MAX: usize = 4096;

/// Rows of one block of which it is worth to find the first ones: so many times as many as are wanted.
const SHARE_WANTED: usize = 4;

/// The bits of a DOUBLE that are ordered as it is; zero has one form.
pub(crate) fn ordered_bits(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    }
}

impl FirstRows {
    /// Of an order by what is of this kind; true: descending.
    pub(crate) fn new(kind: Kind, descends: bool, wanted: usize, budget: Arc<Budget>) -> FirstRows {
        FirstRows { kind, descends, wanted, budget, few: Mutex::default(), last: Mutex::new(None) }
    }

    fn compare(&self, a: &Key, b: &Key) -> Ordering {
        if self.descends {
            b.cmp(a)
        } else {
            a.cmp(b)
        }
    }

    fn key(&self, column: &Column, row: usize, texts: &Texts) -> Result<Key> {
        Ok(match &column.data {
            _ if column.is_null(row) => Key::Null,
            Data::Text(codes, dict) => {
                let Kind::Text(collation) = self.kind else { return Err(UNSUPPORTED) };
                let of_text = texts.collations.get(collation as usize).ok_or(UNSUPPORTED)?;
                let mut key = Vec::new();
                of_text(dict.get(codes[row]), &mut key);
                Key::Text(key)
            }
            Data::Real(values) => Key::Real(ordered_bits(values[row])),
            _ => Key::Number(column.number(row)),
        })
    }

    /// There are as many rows as are wanted, none of which comes behind this one.
    pub(crate) fn note(&self, column: &Column, row: usize, texts: &Texts) -> Result<()> {
        self.note_key(self.key(column, row, texts)?);
        Ok(())
    }

    /// Whether all keys between two numbers come behind, and the NULLs, if there are any. `None` of bounds: there are only NULLs.
    pub(crate) fn is_behind(&self, bounds: Option<(i128, i128)>, has_null: bool) -> bool {
        let Some(last) = self.last.lock().clone() else { return false };
        let are_nulls_behind = self.compare(&Key::Null, &last).is_gt();
        let are_behind = bounds.is_none_or(|(least, most)| {
            let first = Key::Number(if self.descends { most } else { least });
            self.compare(&first, &last).is_gt()
        });
        are_behind && (are_nulls_behind || (bounds.is_some() && !has_null))
    }

    /// The rows that do not come behind; `None`: all of them. `are_all_given`: each of them is one of those that are sorted, so of the rows of
    /// one block none is needed behind as many as are wanted.
    pub(crate) fn select(
        &self,
        column: &Arc<Column>,
        are_all_given: bool,
        texts: &Texts,
    ) -> Result<Option<Vec<u32>>> {
        let last = self.last.lock().clone();
        let kept = match &last {
            Some(last) => Some(self.not_behind(column, last, texts)?),
            None => None,
        };
        let rows = kept.as_ref().map_or(column.rows(), Vec::len);
        if !are_all_given || rows / SHARE_WANTED < self.wanted {
            if are_all_given {
                self.keep_few(column, kept.as_deref(), texts)?;
            }
            return Ok(kept);
        }
        let of_kept = kept.as_ref().map_or_else(|| column.clone(), |kept| Arc::new(column.gather(kept)));
        // What the texts of one block take is given back.
        let budget = Budget::part(&self.budget, usize::MAX);
        let first = match self.first_of(&of_kept, texts, &budget) {
            Err(Failure::GivenBack(Why::Memory)) => return Ok(kept),
            first => first?,
        };
        Ok(Some(match kept {
            None => first,
            Some(kept) => first.iter().map(|row| kept[*row as usize]).collect(),
        }))
    }

    /// Rows of a block, each of which is one of those that are sorted: with those of other blocks they may be as many as are wanted. Of
    /// numbers, which take no memory to speak of.
    fn keep_few(&self, column: &Column, kept: Option<&[u32]>, texts: &Texts) -> Result<()> {
        if self.kind.is_text() || self.wanted > FEW_MAX {
            return Ok(());
        }
        let mut few = self.few.lock();
        let mut add = |row: usize| {
            let key = self.key(column, row, texts)?;
            few.push(if self.descends { Ranked::Descending(Reverse(key)) } else { Ranked::Ascending(key) });
            if few.len() > self.wanted {
                few.pop();
            }
            Ok::<(), Failure>(())
        };
        match kept {
            Some(kept) => kept.iter().try_for_each(|row| add(*row as usize))?,
            None => (0..column.rows()).try_for_each(add)?,
        }
        if few.len() < self.wanted {
            return Ok(());
        }
        if let Some(Ranked::Ascending(key) | Ranked::Descending(Reverse(key))) = few.peek() {
            self.note_key(key.clone());
        }
        Ok(())
    }

    fn note_key(&self, key: Key) {
        let mut last = self.last.lock();
        if last.as_ref().is_none_or(|last| self.compare(&key, last).is_lt()) {
            *last = Some(Arc::new(key));
        }
    }

    fn not_behind(&self, column: &Column, last: &Key, texts: &Texts) -> Result<Vec<u32>> {
        let passes = |key: &Key| self.compare(key, last).is_le();
        let passes_null = passes(&Key::Null);
        let rows = 0..column.rows() as u32;
        if let (Data::Small(values), Key::Number(last)) = (&column.data, last) {
            let (least, most) = if self.descends { (*last, i128::MAX) } else { (i128::MIN, *last) };
            let of = |row: &u32| {
                let row = *row as usize;
                if column.is_null(row) {
                    passes_null
                } else {
                    (least..=most).contains(&i128::from(values[row]))
                }
            };
            return Ok(rows.filter(of).collect());
        }
        // Texts are looked at once each.
        let mut known = vec![None; if let Data::Text(_, dict) = &column.data { dict.len() } else { 0 }];
        let mut kept = Vec::new();
        for row in rows {
            let at = row as usize;
            let is_kept = match &column.data {
                _ if column.is_null(at) => passes_null,
                Data::Text(codes, _) => match known[codes[at] as usize] {
                    Some(is_kept) => is_kept,
                    None => *known[codes[at] as usize].insert(passes(&self.key(column, at, texts)?)),
                },
                _ => passes(&self.key(column, at, texts)?),
            };
            if is_kept {
                kept.push(row);
            }
        }
        Ok(kept)
    }

    /// The rows that are wanted if there were no others, and those that are equal to the last of them.
    fn first_of(&self, column: &Arc<Column>, texts: &Texts, budget: &Budget) -> Result<Vec<u32>> {
        let sorter = Sorter::new(&[(column.clone(), self.kind, self.descends)], texts, budget)?;
        let mut order: Vec<u32> = (0..column.rows() as u32).collect();
        let (_, last, _) = order.select_nth_unstable_by(self.wanted - 1, |a, b| sorter.compare(*a, *b));
        let last = *last;
        self.note(column, last as usize, texts)?;
        Ok((0..column.rows() as u32).filter(|row| sorter.compare(*row, last).is_le()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Dict;
    use pando_column::vector::Strings;

    fn random(seed: &mut u64, below: u64) -> u64 {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) % below
    }

    /// A column of few different values, some of them NULL, and their places in ascending order.
    fn column(form: u64, rows: u64, seed: &mut u64) -> (Arc<Column>, Kind, Vec<u64>) {
        let places: Vec<u64> = (0..rows).map(|_| random(seed, 9)).collect();
        let nulls = (form % 2 == 0).then(|| places.iter().map(|place| *place == 0).collect());
        let (data, kind) = match form / 2 {
            0 => (Data::Small(places.iter().map(|place| *place as i64 - 4).collect()), Kind::Signed),
            1 => {
                let values = places.iter().map(|place| (i128::from(*place) - 4) << 80);
                (Data::Large(values.collect()), Kind::Decimal(2))
            }
            2 => (Data::Real(places.iter().map(|place| *place as f64 - 4.5).collect()), Kind::Real),
            _ => {
                let mut strings = Strings::new();
                (0..9).for_each(|place| {
                    strings.push(if place % 2 == 0 { b"ABCDE" } else { b"abcde" }[place / 2..].as_ref())
                });
                (
                    Data::Text(
                        places.iter().map(|place| *place as u32).collect(),
                        Dict::Strings(Arc::new(strings)),
                    ),
                    Kind::Text(0),
                )
            }
        };
        let places = if form / 2 == 3 {
            places.iter().map(|place| if *place == 0 && form % 2 == 0 { 0 } else { 1 + place / 2 }).collect()
        } else {
            places
        };
        (Arc::new(Column { data, nulls }), kind, places)
    }

    #[test]
    fn rows_that_may_be_among_the_first_pass() {
        let mut texts = Texts::default();
        texts.collations.push(Arc::new(|text, key| key.extend(text.to_ascii_lowercase())));
        let mut dropped = 0;
        for round in 0..4000u64 {
            let seed = &mut (round + 1);
            let (form, descends, wanted) = (round % 8, round / 8 % 2 == 1, 1 + random(seed, 4) as usize);
            let are_all_given = round / 16 % 2 == 1;
            let mut first = None;
            // The places of all rows that have been read, as the order has them.
            let mut met: Vec<i64> = Vec::new();
            let mut passed: Vec<i64> = Vec::new();
            for _ in 0..3 {
                let rows = random(seed, 40);
                let (column, kind, places) = column(form, rows, seed);
                let first = first.get_or_insert_with(|| {
                    FirstRows::new(kind, descends, wanted, Arc::new(Budget::new(1 << 20)))
                });
                let ordered = |row: usize| if descends { -(places[row] as i64) } else { places[row] as i64 };
                let kept = first.select(&column, are_all_given, &texts).unwrap();
                let kept = kept.unwrap_or_else(|| (0..rows as u32).collect());
                dropped += rows as usize - kept.len();
                met.extend((0..rows as usize).map(ordered));
                passed.extend(kept.iter().map(|row| ordered(*row as usize)));
                met.sort_unstable();
                passed.sort_unstable();
                let end = wanted.min(met.len());
                assert_eq!(passed[..end], met[..end], "round {round}");
                if let (false, Some(last)) = (are_all_given, met.get(wanted - 1)) {
                    if let Some(row) = (0..rows as usize).find(|row| ordered(*row) == *last) {
                        first.note(&column, row, &texts).unwrap();
                    }
                }
            }
        }
        assert!(dropped > 50_000, "{dropped}");
    }

    #[test]
    fn segments_behind_the_last_row_wanted_are_not_read() {
        let texts = Texts::default();
        let numbers = Arc::new(Column { data: Data::Small(vec![10, 0]), nulls: Some(vec![false, true]) });
        let noted = |descends, row: usize| {
            let first = FirstRows::new(Kind::Signed, descends, 5, Arc::new(Budget::new(1 << 20)));
            assert!(!first.is_behind(Some((100, 200)), false), "nothing is known");
            first.note(&numbers, row, &texts).unwrap();
            first
        };
        let ascending = noted(false, 0);
        assert!(ascending.is_behind(Some((11, 20)), false));
        assert!(!ascending.is_behind(Some((10, 20)), false), "some are equal to it");
        assert!(!ascending.is_behind(Some((11, 20)), true), "NULL comes first");
        assert!(!ascending.is_behind(None, true));
        let descending = noted(true, 0);
        assert!(descending.is_behind(Some((1, 9)), true), "NULL comes last");
        assert!(descending.is_behind(None, true));
        assert!(!descending.is_behind(Some((1, 10)), true));
        let nulls = noted(false, 1);
        assert!(nulls.is_behind(Some((-5, 9)), false));
        assert!(!nulls.is_behind(Some((-5, 9)), true) && !nulls.is_behind(None, true));
        assert!(!noted(true, 1).is_behind(Some((-5, 9)), true), "all come before NULL");
    }
}
