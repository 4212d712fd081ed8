//! Sets of keys made of intervals, for range locks.

use std::collections::BTreeMap;
use std::ops::{Bound, Deref};

use smallvec::SmallVec;

/// A bound, in the order of its bytes. A search of many intervals compares numbers, and finds the bytes of most keys in the nodes
/// of the tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The first eight bytes, with zeros behind a shorter key.
    head: u64,
    bytes: SmallVec<[u8; 24]>,
}

impl Key {
    fn new(bytes: &[u8]) -> Key {
        let mut head = [0; 8];
        let len = bytes.len().min(8);
        head[..len].copy_from_slice(&bytes[..len]);
        Key { head: u64::from_be_bytes(head), bytes: SmallVec::from_slice(bytes) }
    }
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Intervals, each from a first key up to, but without, a second one (`None`: up to the end).
///
/// A scan adds one interval after the other, each where the last one ended. So the interval that was added last stays out of the
/// tree while it grows: `growing`. Those in the tree are disjoint and do not touch; the growing one may have to do with them.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    by_from: BTreeMap<Key, Option<Key>>,
    growing: Option<(Key, Option<Key>)>,
}

/// Whether an end is at or after `key`.
fn reaches(end: Option<&[u8]>, key: &[u8]) -> bool {
    end.is_none_or(|end| end >= key)
}

/// Whether an end is after `key`: the interval, which begins at or before it, has the key.
fn is_beyond(end: Option<&[u8]>, key: &[u8]) -> bool {
    end.is_none_or(|end| end > key)
}

/// Whether end `a` is at or after end `b`.
fn ends_with_or_after(a: Option<&[u8]>, b: Option<&[u8]>) -> bool {
    match (a, b) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(a), Some(b)) => a >= b,
    }
}

impl Intervals {
    /// How many there are; more than needed where the growing one has come to others.
    pub(crate) fn len(&self) -> usize {
        self.by_from.len() + usize::from(self.growing.is_some())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_from.is_empty() && self.growing.is_none()
    }

    /// In no order; two may have keys in common.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let growing = self.growing.iter().map(|(from, to)| (from, to));
        self.by_from.iter().chain(growing).map(|(from, to)| (&from[..], to.as_deref()))
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.end_around(key).is_some()
    }

    /// The end of an interval that `key` is in, if it is in one.
    pub(crate) fn end_around(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        if let Some((from, end)) = &self.growing {
            if **from <= *key && is_beyond(end.as_deref(), key) {
                return Some(end.as_deref());
            }
        }
        let mut before = self.by_from.range(..=Key::new(key));
        let (_, end) = before.next_back()?;
        is_beyond(end.as_deref(), key).then_some(end.as_deref())
    }

    /// Whether any key from `from` up to, but without, `to` is in the set.
    pub(crate) fn overlaps(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        if to.is_some_and(|to| to <= from) {
            return false;
        }
        if let Some((begin, end)) = &self.growing {
            if to.is_none_or(|to| **begin < *to) && is_beyond(end.as_deref(), from) {
                return true;
            }
        }
        // They are disjoint: the last one that begins before the end reaches furthest.
        let below = to.map_or(Bound::Unbounded, |to| Bound::Excluded(Key::new(to)));
        let last = self.by_from.range((Bound::Unbounded, below)).next_back();
        last.is_some_and(|(_, end)| is_beyond(end.as_deref(), from))
    }

    /// Adds the keys from `from` up to, but without, `to`.
    pub(crate) fn add(&mut self, from: &[u8], to: Option<&[u8]>) {
        if to.is_some_and(|to| to <= from) {
            return;
        }
        if let Some((begin, end)) = &mut self.growing {
            if reaches(end.as_deref(), from) && reaches(to, begin) {
                if *from < **begin {
                    *begin = Key::new(from);
                }
                if !ends_with_or_after(end.as_deref(), to) {
                    *end = to.map(Key::new);
                }
                return;
            }
        }
        if let Some((from, to)) = self.growing.replace((Key::new(from), to.map(Key::new))) {
            self.put(from, to);
        }
    }

    /// Puts an interval into the tree.
    fn put(&mut self, from: Key, to: Option<Key>) {
        let before = self.by_from.range_mut(..=&from);
        let first = match before.into_iter().next_back().filter(|(_, end)| reaches(end.as_deref(), &from)) {
            Some((_, end)) if ends_with_or_after(end.as_deref(), to.as_deref()) => return,
            Some((first, end)) => {
                *end = to;
                first.clone()
            }
            None => {
                self.by_from.insert(from.clone(), to);
                from
            }
        };
        self.absorb_after(&first);
    }

    /// Makes one of the interval that begins with `first` and those after it that it has come to.
    fn absorb_after(&mut self, first: &Key) {
        loop {
            let mut from_here = self.by_from.range(first..).take(2);
            let (Some((_, end)), Some((next, next_end))) = (from_here.next(), from_here.next()) else {
                return;
            };
            if !reaches(end.as_deref(), next) {
                return;
            }
            let further = !ends_with_or_after(end.as_deref(), next_end.as_deref());
            let next = next.clone();
            let next_end = self.by_from.remove(&next).expect("it was just seen");
            if further {
                *self.by_from.get_mut(first).expect("it was just seen") = next_end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_what_was_added_and_nothing_else() {
        // Against a set of single keys, which are bytes here.
        let mut seed = 7u32;
        let mut dice = move |n: u32| {
            seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
            (seed >> 8) % n
        };
        for _ in 0..2_000 {
            let mut intervals = Intervals::default();
            let mut model = [false; 40];
            for _ in 0..dice(12) {
                let from = dice(40) as u8;
                let to = (dice(10) > 0).then(|| dice(41) as u8);
                let end = to.map(|to| [to]);
                intervals.add(&[from], end.as_ref().map(<[u8; 1]>::as_slice));
                (from..to.unwrap_or(40)).for_each(|key| model[usize::from(key)] = true);
                assert_eq!(intervals.is_empty(), !model.contains(&true));
            }
            for (key, inside) in model.iter().enumerate() {
                assert_eq!(intervals.contains(&[key as u8]), *inside, "{key} in {intervals:?}");
                let to = key + 1 + dice(5) as usize;
                let any = model[key..to.min(40)].contains(&true);
                assert_eq!(
                    intervals.overlaps(&[key as u8], Some(&[to as u8])),
                    any,
                    "{key}..{to} in {intervals:?}"
                );
                assert_eq!(intervals.overlaps(&[key as u8], None), model[key..].contains(&true));
            }
            let runs = model
                .iter()
                .zip(std::iter::once(&false).chain(&model))
                .filter(|(at, before)| **at && !**before);
            if let Some((from, to)) = intervals.growing.take() {
                intervals.put(from, to);
            }
            // One more for the key at the very end of the model's world.
            assert!(intervals.len() <= runs.count() + 1, "{intervals:?}");
            let tree: Vec<_> = intervals.by_from.iter().collect();
            assert!(
                tree.windows(2).all(|pair| pair[0].1.as_ref().is_some_and(|end| end < pair[1].0)),
                "{tree:?}"
            );
        }
    }

    #[test]
    fn an_interval_grows_in_place_as_a_scan_goes_on() {
        let mut intervals = Intervals::default();
        intervals.add(b"b", Some(b"c\0"));
        intervals.add(b"c\0", Some(b"d\0"));
        intervals.add(b"b", Some(b"d"));
        intervals.add(b"a", Some(b"b"));
        assert!(intervals.by_from.is_empty());
        assert_eq!(intervals.iter().collect::<Vec<_>>(), [(&b"a"[..], Some(&b"d\0"[..]))]);
        intervals.add(b"d\0", None);
        assert!(intervals.contains(b"zz") && !intervals.contains(b"A"));
        assert_eq!(intervals.len(), 1);
    }

    #[test]
    fn what_grew_is_joined_with_its_neighbours() {
        let mut intervals = Intervals::default();
        let apart = [b"a", b"c", b"e"];
        apart.iter().for_each(|key| intervals.add(*key, Some(&[key[0] + 1])));
        assert_eq!(intervals.len(), 3);
        intervals.add(b"b", Some(b"c"));
        intervals.add(b"d", Some(b"e"));
        intervals.add(b"x", Some(b"y"));
        let all = [(&b"a"[..], Some(&b"f"[..])), (&b"x"[..], Some(&b"y"[..]))];
        assert_eq!(intervals.iter().collect::<Vec<_>>(), all);
    }
}
