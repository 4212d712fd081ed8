//! The order of entries by key: what is sorted are numbers, not keys.
//!
//! An entry is one number: eight bytes of its key above its place in the input. Sorting numbers needs no look at
//! keys, which lie all over the memory. The eight bytes begin where the keys of the group stop being equal, and
//! entries whose eight bytes are equal are a group again, unless they are in order already: keys that are equal in
//! their first columns usually go on with what the rows were read in order of.
//!
//! Often no group has to be looked at again: what the keys go on with after the eight bytes ascends over the whole
//! input, because rows were read in order of it.
//!
//! The method is multikey quicksort with caching (Bentley and Sedgewick 1997; Ng and Kakehi 2007), the quicksort of
//! a letter being the library's sort of numbers.
//!
//! Who merges compares [`Head`]s: sixteen bytes of keys, which of most keys is all of them.

use std::cmp::Ordering;

use pando_base::shared_prefix;

use crate::entries::Entries;

/// How many neighbours are looked at to guess what ascends.
const SAMPLE_PAIRS: usize = 64;

/// Smaller groups are compared key by key.
const GROUP_ROWS_MIN: usize = 16;

/// What of a key is in an item.
const HEAD_BYTES: usize = 8;

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub batch: usize,
    pub index: usize,
}

/// Eight bytes of a key, number of the batch, index in it: from the high bits to the low ones.
type Item = u128;

fn item(head: u64, batch: usize, index: usize) -> Item {
    (Item::from(head) << 64) | Item::from(((batch as u64) << 32) | index as u64)
}

#[inline]
fn head_of(item: Item) -> u64 {
    (item >> 64) as u64
}

#[inline]
fn place_of(item: Item) -> Place {
    Place { batch: (item >> 32) as u32 as usize, index: item as u32 as usize }
}

/// The eight bytes of `key` from `at` on as a number that sorts like them.
#[inline]
fn head(key: &[u8], at: usize) -> u64 {
    match key.get(at..at + HEAD_BYTES).and_then(|bytes| <[u8; HEAD_BYTES]>::try_from(bytes).ok()) {
        Some(bytes) => u64::from_be_bytes(bytes),
        None => {
            let mut bytes = [0; HEAD_BYTES];
            let rest = key.get(at..).unwrap_or_default();
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

/// The beginning of a key, which mostly tells how it compares without a look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The first sixteen bytes, zeros after the end.
    number: u128,
    len: usize,
}

impl Head {
    const BYTES: usize = size_of::<u128>();

    #[inline]
    pub(crate) fn new(key: &[u8]) -> Head {
        let number = match key.first_chunk::<{ Head::BYTES }>() {
            Some(bytes) => u128::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; Head::BYTES];
                bytes[..key.len()].copy_from_slice(key);
                u128::from_be_bytes(bytes)
            }
        };
        Head { number, len: key.len() }
    }

    /// How the key compares with another; `None`: the rest of both has to be looked at.
    #[inline]
    pub(crate) fn compare(&self, other: &Head) -> Option<Ordering> {
        match self.number.cmp(&other.number) {
            // Of two that differ in zeros at the end only, the shorter one is the beginning of the other.
            Ordering::Equal if self.len.min(other.len) <= Head::BYTES => Some(self.len.cmp(&other.len)),
            Ordering::Equal => None,
            order => Some(order),
        }
    }

    /// Length of the longest common prefix with another key, if it ends in the heads.
    #[inline]
    pub(crate) fn shared_prefix(&self, other: &Head) -> Option<usize> {
        let shared = ((self.number ^ other.number).leading_zeros() / u8::BITS) as usize;
        let shortest = self.len.min(other.len);
        (shared < Head::BYTES || shortest <= Head::BYTES).then(|| shared.min(shortest))
    }
}

/// The entries of the batches in key order, equal ones in the order they came.
pub(crate) fn sorted(batches: &[Entries]) -> impl Iterator<Item = Place> {
    let mut items = Vec::with_capacity(batches.iter().map(Entries::len).sum());
    for (number, batch) in batches.iter().enumerate() {
        items.extend((0..batch.len()).map(|index| item(0, number, index)));
    }
    Order { batches }.sort(&mut items);
    items.into_iter().map(place_of)
}

struct Order<'a> {
    batches: &'a [Entries],
}

impl<'a> Order<'a> {
    #[inline]
    fn key(&self, item: Item) -> &'a [u8] {
        let place = place_of(item);
        self.batches[place.batch].key(place.index)
    }

    /// Requires: the items are in the order of their places.
    fn sort(&self, items: &mut [Item]) {
        let Some(first) = items.first().map(|first| self.key(*first)) else { return };
        let mut skip = first.len();
        let mut shortest = first.len();
        let (mut before, mut is_sorted) = (first, true);
        for item in &items[1..] {
            let key = self.key(*item);
            shortest = shortest.min(key.len());
            skip = skip.min(shared_prefix(&first[..skip], key));
            is_sorted = is_sorted && before <= key;
            before = key;
        }
        if is_sorted {
            return;
        }
        if items.len() < GROUP_ROWS_MIN || shortest == skip {
            // A key that ends where the others go on has no eight bytes that would tell it from them.
            items.sort_unstable_by(|a, b| self.key(*a).cmp(self.key(*b)).then(a.cmp(b)));
            return;
        }
        let rest_at = self.rest_that_ascends(items, skip, shortest);
        let mut rests_ascend = rest_at.is_some();
        let mut rest_before: &[u8] = &[];
        for item in items.iter_mut() {
            let place = place_of(*item);
            let key = self.key(*item);
            *item = self::item(head(key, skip), place.batch, place.index);
            if let (Some(at), true) = (rest_at, rests_ascend) {
                let rest = &key[at..];
                rests_ascend = rest_before <= rest;
                rest_before = rest;
            }
        }
        items.sort_unstable();
        if rests_ascend {
            // Of keys with equal heads, what follows the heads ascends, too.
            return;
        }
        items.chunk_by_mut(|a, b| head_of(*a) == head_of(*b)).filter(|group| group.len() > 1).for_each(
            |group| {
                self.sort(group);
            },
        );
    }

    /// From which byte on, at most that after the heads, keys may ascend over all items: as some of them do. The
    /// first such place is that of the column that rows come in order of, whichever part of it is in the heads.
    fn rest_that_ascends(&self, items: &[Item], skip: usize, shortest: usize) -> Option<usize> {
        let last = skip + HEAD_BYTES;
        if shortest < last {
            return None;
        }
        let stride = (items.len() / SAMPLE_PAIRS).max(1);
        let ascends = |at: &usize| {
            let mut pairs = items.windows(2).step_by(stride);
            pairs.all(|pair| self.key(pair[0])[*at..] <= self.key(pair[1])[*at..])
        };
        (skip + 1..=last).find(ascends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches_of(keys: &[Vec<u8>], each: usize) -> Vec<Entries> {
        let batch = |keys: &[Vec<u8>]| {
            let mut batch = Entries::new();
            keys.iter().for_each(|key| batch.push(key, b"value"));
            batch
        };
        keys.chunks(each).map(batch).collect()
    }

    fn check(keys: &[Vec<u8>], each: usize) {
        let batches = batches_of(keys, each);
        let found: Vec<usize> = sorted(&batches).map(|at| at.batch * each + at.index).collect();
        let mut expected: Vec<usize> = (0..keys.len()).collect();
        expected.sort_by_key(|number| &keys[*number]);
        assert_eq!(found, expected, "keys {keys:?}");
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }

        /// Few letters and few stems, so that much is equal, begins alike, or is the beginning of another.
        fn key(&mut self) -> Vec<u8> {
            let stem = self.below(4) as usize * 7;
            let mut key = vec![0x41; stem];
            let rest = self.below(14);
            key.extend((0..rest).map(|_| [0, 1, 0xff][self.below(3) as usize]));
            key
        }
    }

    #[test]
    fn keys_of_any_lengths_are_sorted_and_equal_ones_stay_in_their_order() {
        let mut random = Random(1);
        for rows in (0..40).chain([200, 3000]) {
            let keys: Vec<Vec<u8>> = (0..rows).map(|_| random.key()).collect();
            check(&keys, 7);
            check(&keys, 1000);
        }
    }

    #[test]
    fn keys_of_one_length_with_few_first_columns_are_sorted() {
        let mut random = Random(2);
        let keys: Vec<Vec<u8>> = (0..5000u32)
            .map(|row| {
                let mut key = format!("{:>20}{:>4}", random.below(5), random.below(3)).into_bytes();
                key.extend((5000 - row / 2).to_be_bytes());
                key
            })
            .collect();
        check(&keys, 64);
    }

    #[test]
    fn keys_that_go_on_with_what_they_came_in_order_of_are_sorted() {
        let mut random = Random(3);
        let key = |stem: u64, rest: &[u8]| [&stem.to_be_bytes()[..], rest].concat();
        let mut keys: Vec<Vec<u8>> =
            (0..3000u32).map(|row| key(random.below(50), &row.to_be_bytes())).collect();
        check(&keys, 100);
        // The part that ascends is partly among the eight bytes, and overflows behind them.
        let split = |row: u32| key(random.below(300), &(0x0100_0000 + row * 37).to_be_bytes());
        check(&(0..4000).map(split).collect::<Vec<_>>(), 100);
        // One that does not, and some that end before.
        keys[2000] = key(7, &1u32.to_be_bytes());
        check(&keys, 100);
        keys[2000] = key(7, &[]);
        keys[1000] = vec![0; 7];
        keys.insert(900, vec![0; 8]);
        check(&keys, 100);
    }

    #[test]
    fn heads_compare_as_their_keys_or_not_at_all() {
        let mut random = Random(4);
        for _ in 0..20_000 {
            let (a, b) = (random.key(), random.key());
            let found = Head::new(&a).compare(&Head::new(&b));
            match found {
                Some(order) => assert_eq!(order, a.cmp(&b), "{a:?} {b:?}"),
                None => assert!(a.len() > 16 && b.len() > 16 && a[..16] == b[..16], "{a:?} {b:?}"),
            }
            match Head::new(&a).shared_prefix(&Head::new(&b)) {
                Some(shared) => assert_eq!(shared, shared_prefix(&a, &b), "{a:?} {b:?}"),
                None => assert!(shared_prefix(&a, &b) >= 16, "{a:?} {b:?}"),
            }
        }
    }

    #[test]
    fn ends_of_keys_and_zeros_are_not_confused() {
        let mut keys: Vec<Vec<u8>> = (0..40).rev().map(|zeros| vec![0; zeros]).collect();
        check(&keys, 6);
        keys.extend((0..40).map(|zeros| [vec![0; zeros], vec![1]].concat()));
        check(&keys, 6);
    }
}
