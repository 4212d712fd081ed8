//! Groups by place: where the values of the keys lie close together, a number made of them is the place of their group, and no
//! key is written down or hashed.
//!
//! Each part of a key is a digit: a text's number, or how far an integer is from the least one; 0 is NULL's. The places are
//! a cache of what the table of all groups says: they may be forgotten at any time, and are whenever a digit needs more room.

use std::sync::Arc;

use crate::column::{Column, Data};
use crate::eval::Result;
use crate::keys::{Budget, KeyPart, Keys};
use crate::word_table::NO_ENTRY;

/// With more places, lookups miss the processor's cache as those by hash do.
const PLACES_MAX: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Digit {
    /// The value of digit 1.
    least: i64,
    /// How many digits there are, with that of NULL.
    count: usize,
}

/// See the head of this file; of one thread.
#[derive(Clone, Debug)]
pub(crate) struct DirectGroups {
    digits: Vec<Digit>,
    /// The group of each place; [`NO_ENTRY`]: not known.
    groups: Vec<u32>,
    is_of_use: bool,
}

impl Digit {
    /// Makes room for values. `None`: there are too many between them.
    fn extend(&mut self, least: i64, most: i64) -> Option<bool> {
        if self.count <= 1 {
            *self = Digit { least, count: count_of(least, most)? };
            return Some(true);
        }
        let own_most = self.least + (self.count - 2) as i64;
        if least >= self.least && most <= own_most {
            return Some(false);
        }
        let (low, high) = (least.min(self.least), most.max(own_most));
        // With room to grow, on the side to which it has grown.
        let count = count_of(low, high)?.next_power_of_two();
        let low = if least < self.least { high.checked_sub(count as i64 - 2)? } else { low };
        *self = Digit { least: low, count };
        low.checked_add(count as i64).map(|_| true)
    }
}

fn count_of(least: i64, most: i64) -> Option<usize> {
    usize::try_from(most.checked_sub(least)?.checked_add(2)?).ok().filter(|count| *count <= PLACES_MAX)
}

impl DirectGroups {
    pub(crate) fn new(keys: &Keys) -> DirectGroups {
        let is_of_use = !keys.parts.iter().any(|part| matches!(part, KeyPart::Real));
        let digits = keys.parts.iter().map(|_| Digit { least: 0, count: 1 }).collect();
        DirectGroups { digits, groups: Vec::new(), is_of_use }
    }

    /// Of a part of all rows, by the hash of their keys: these do not lie close together.
    pub(crate) fn none() -> DirectGroups {
        DirectGroups { digits: Vec::new(), groups: Vec::new(), is_of_use: false }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.groups.len() * 4
    }

    /// The place of each row. `None`: these keys have none.
    ///
    /// # Errors
    /// Those of numbering texts.
    pub(crate) fn places(
        &mut self,
        keys: &Keys,
        columns: &[Arc<Column>],
        rows: usize,
        budget: &Budget,
    ) -> Result<Option<Vec<u32>>> {
        if !self.is_of_use || rows == 0 {
            return Ok(None);
        }
        let is_small = |column: &Arc<Column>| matches!(column.data, Data::Small(_) | Data::Text(..));
        if !columns.iter().all(is_small) {
            // Not these; perhaps others.
            return Ok(None);
        }
        let numbers = keys.parts.iter().zip(columns).map(|(part, column)| match part {
            KeyPart::Text(texts) => texts.numbers(column, true, budget).map(Some),
            _ => Ok(None),
        });
        let numbers = numbers.collect::<Result<Vec<_>>>()?;
        let mut has_changed = self.groups.is_empty();
        for ((digit, column), numbers) in self.digits.iter_mut().zip(columns).zip(&numbers) {
            let bounds = match (numbers, &column.data) {
                (Some(numbers), _) => Some((0, i64::from(numbers.iter().copied().max().unwrap_or(0)))),
                (None, Data::Small(values)) => bounds_of(values, column.nulls.as_deref()),
                _ => None,
            };
            let Some((least, most)) = bounds else { continue };
            match digit.extend(least, most) {
                Some(has_grown) => has_changed |= has_grown,
                None => self.is_of_use = false,
            }
        }
        let count = self.digits.iter().try_fold(1usize, |all, digit| all.checked_mul(digit.count));
        let Some(count) = count.filter(|count| self.is_of_use && *count <= PLACES_MAX) else {
            *self = DirectGroups { digits: Vec::new(), groups: Vec::new(), is_of_use: false };
            return Ok(None);
        };
        if has_changed {
            self.groups.clear();
            self.groups.resize(count, NO_ENTRY);
        }
        let mut places = vec![0u32; rows];
        for ((digit, column), numbers) in self.digits.iter().zip(columns).zip(&numbers) {
            let (all, nulls) = (digit.count as u32, column.nulls.as_deref());
            match (numbers, &column.data) {
                (Some(numbers), _) => {
                    add_digits(&mut places, all, nulls, numbers.iter().map(|number| number + 1))
                }
                (None, Data::Small(values)) => {
                    let digit_of = |value: &i64| (value.wrapping_sub(digit.least) + 1) as u32;
                    add_digits(&mut places, all, nulls, values.iter().map(digit_of));
                }
                _ => {}
            }
        }
        Ok(Some(places))
    }

    /// The group of each place, and the rows whose group is not known.
    pub(crate) fn groups(&self, places: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let groups: Vec<u32> = places.iter().map(|place| self.groups[*place as usize]).collect();
        let is_unknown = |row: &u32| groups[*row as usize] == NO_ENTRY;
        let unknown = match groups.contains(&NO_ENTRY) {
            true => (0..groups.len() as u32).filter(is_unknown).collect(),
            false => Vec::new(),
        };
        (groups, unknown)
    }

    /// The group of a place is found.
    pub(crate) fn note(&mut self, place: u32, group: u32) {
        self.groups[place as usize] = group;
    }
}

/// Groups of one text: its number is the place, however many there are, and nothing is forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupsByNumber {
    /// The group of NULL, then that of each number; [`NO_ENTRY`]: there is none.
    groups: Vec<u32>,
}

impl GroupsByNumber {
    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.groups.capacity() * 4
    }

    /// Gives the group of each key: the number of a text, and a word that is not 0 where it is NULL. Those that are new are added to
    /// `known`, and get the next group.
    pub(crate) fn find_or_add(&mut self, words: &[u64], known: &mut Vec<u64>, groups: &mut Vec<u32>) {
        let places = words.chunks_exact(2).map(|key| if key[1] != 0 { 0 } else { key[0] as usize + 1 });
        let room = places.clone().max().map_or(0, |most| most + 1);
        if room > self.groups.len() {
            self.groups.resize(room, NO_ENTRY);
        }
        for (place, key) in places.zip(words.chunks_exact(2)) {
            let group = &mut self.groups[place];
            if *group == NO_ENTRY {
                *group = (known.len() / 2) as u32;
                known.extend_from_slice(key);
            }
            groups.push(*group);
        }
    }
}

/// The least and the greatest that is not NULL.
fn bounds_of(values: &[i64], nulls: Option<&[bool]>) -> Option<(i64, i64)> {
    let wider = |(least, most): (i64, i64), value: i64| (least.min(value), most.max(value));
    let nothing = (i64::MAX, i64::MIN);
    let (least, most) = match nulls {
        None => values.iter().copied().fold(nothing, wider),
        Some(nulls) => {
            let known = values.iter().zip(nulls).filter(|(_, is_null)| !**is_null);
            known.map(|(value, _)| *value).fold(nothing, wider)
        }
    };
    (least <= most).then_some((least, most))
}

/// Another digit behind those that the places are made of.
fn add_digits(places: &mut [u32], count: u32, nulls: Option<&[bool]>, digits: impl Iterator<Item = u32>) {
    match nulls {
        None => places.iter_mut().zip(digits).for_each(|(place, digit)| *place = *place * count + digit),
        Some(nulls) => places.iter_mut().zip(digits).zip(nulls).for_each(|((place, digit), is_null)| {
            *place = *place * count + if *is_null { 0 } else { digit };
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(values: Vec<i64>, nulls: Option<Vec<bool>>) -> Arc<Column> {
        Arc::new(Column { data: Data::Small(values), nulls })
    }

    /// Places are the same for the same keys, and others for others, also after digits have grown on either side.
    #[test]
    fn a_key_has_one_place() {
        let keys = Keys::of_groups(vec![KeyPart::Word, KeyPart::Wide]);
        let budget = Budget::new(1 << 20);
        let mut direct = DirectGroups::new(&keys);
        for (first, nulls) in [(10, false), (10, true), (3, true), (40, false), (-50, false), (-50, true)] {
            let rows = 60;
            let a: Vec<i64> = (0..rows).map(|row| first + row % 7).collect();
            let b: Vec<i64> = (0..rows).map(|row| row * row % 11 - 5).collect();
            let nulls = nulls.then(|| (0..rows).map(|row| row % 9 == 1).collect::<Vec<bool>>());
            let key = |row: usize| (nulls.as_ref().is_none_or(|nulls| !nulls[row]).then_some(a[row]), b[row]);
            let columns = [small(a.clone(), nulls.clone()), small(b.clone(), None)];
            let places = direct.places(&keys, &columns, rows as usize, &budget).unwrap().expect("few places");
            for (one, other) in (0..rows as usize).flat_map(|one| (0..one).map(move |other| (one, other))) {
                assert_eq!(
                    places[one] == places[other],
                    key(one) == key(other),
                    "{:?} {:?}",
                    key(one),
                    key(other)
                );
            }
            let (groups, unknown) = direct.groups(&places);
            let known = groups.iter().filter(|group| **group != NO_ENTRY).count();
            assert_eq!(known + unknown.len(), rows as usize);
            unknown.iter().for_each(|row| direct.note(places[*row as usize], 7));
            assert_eq!(direct.groups(&places), (vec![7; rows as usize], vec![]));
        }
    }

    #[test]
    fn texts_have_groups_by_their_numbers() {
        let (mut by_number, mut known, mut groups) = (GroupsByNumber::default(), Vec::new(), Vec::new());
        by_number.find_or_add(&[7, 0, 0, 1, 7, 0, 0, 0], &mut known, &mut groups);
        by_number.find_or_add(&[200_000, 0, 0, 0, 0, 1], &mut known, &mut groups);
        assert_eq!(groups, [0, 1, 0, 2, 3, 2, 1]);
        assert_eq!(known, [7, 0, 0, 1, 0, 0, 200_000, 0]);
        by_number.find_or_add(&[], &mut known, &mut groups);
        assert!(by_number.bytes() >= 800_000);
    }

    #[test]
    fn keys_that_lie_far_apart_have_no_place() {
        let keys = Keys::of_groups(vec![KeyPart::Word]);
        let budget = Budget::new(1 << 20);
        for values in [vec![0, PLACES_MAX as i64], vec![i64::MIN, i64::MAX], vec![-1, i64::MAX]] {
            let mut direct = DirectGroups::new(&keys);
            assert!(direct.places(&keys, &[small(vec![5], None)], 1, &budget).unwrap().is_some());
            assert!(direct.places(&keys, &[small(values, None)], 2, &budget).unwrap().is_none());
            assert!(direct.places(&keys, &[small(vec![5], None)], 1, &budget).unwrap().is_none(), "for good");
        }
        // The ends of what there is.
        for end in [i64::MIN, i64::MAX] {
            let mut direct = DirectGroups::new(&keys);
            let inner = if end < 0 { end + 3 } else { end - 3 };
            direct.places(&keys, &[small(vec![inner], None)], 1, &budget).unwrap();
            if let Some(places) = direct.places(&keys, &[small(vec![end, inner], None)], 2, &budget).unwrap()
            {
                assert_ne!(places[0], places[1]);
            }
        }
    }
}
