//! Sets of keys made of intervals, for range locks.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Disjoint intervals that do not touch, each from a first key up to, but without, a second one (`None`:
/// up to the end). As many as are needed, never more: what overlaps or touches is one.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    by_from: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

/// Whether an end is at or after `key`.
fn reaches(end: Option<&[u8]>, key: &[u8]) -> bool {
    end.is_none_or(|end| end >= key)
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
    pub(crate) fn len(&self) -> usize {
        self.by_from.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_from.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.by_from.iter().map(|(from, to)| (from.as_slice(), to.as_deref()))
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.end_around(key).is_some()
    }

    /// The end of the interval that `key` is in, if it is in one.
    pub(crate) fn end_around(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let mut before = self.by_from.range::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        let (_, end) = before.next_back()?;
        end.as_deref().is_none_or(|end| key < end).then_some(end.as_deref())
    }

    /// Whether any key from `from` up to, but without, `to` is in the set.
    pub(crate) fn overlaps(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        let below = to.map_or(Bound::Unbounded, Bound::Excluded);
        if to.is_some_and(|to| to <= from) {
            return false;
        }
        // They are disjoint: the last one that begins before the end reaches furthest.
        let last = self.by_from.range::<[u8], _>((Bound::Unbounded, below)).next_back();
        last.is_some_and(|(_, end)| end.as_deref().is_none_or(|end| end > from))
    }

    /// Adds the keys from `from` up to, but without, `to`. False if they all were in the set.
    pub(crate) fn add(&mut self, from: &[u8], to: Option<&[u8]>) -> bool {
        if to.is_some_and(|to| to <= from) {
            return false;
        }
        let before = self.by_from.range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(from)));
        let first = match before.into_iter().next_back().filter(|(_, end)| reaches(end.as_deref(), from)) {
            Some((_, end)) if ends_with_or_after(end.as_deref(), to) => return false,
            Some((first, end)) => {
                set_end(end, to);
                first.clone()
            }
            None => {
                self.by_from.insert(from.to_vec(), to.map(<[u8]>::to_vec));
                from.to_vec()
            }
        };
        self.absorb_after(&first);
        true
    }

    /// Makes one of the interval that begins with `first` and those after it that it has come to.
    fn absorb_after(&mut self, first: &[u8]) {
        loop {
            let mut from_here =
                self.by_from.range::<[u8], _>((Bound::Included(first), Bound::Unbounded)).take(2);
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

fn set_end(end: &mut Option<Vec<u8>>, to: Option<&[u8]>) {
    match (end.as_mut(), to) {
        (Some(bytes), Some(to)) => {
            bytes.clear();
            bytes.extend_from_slice(to);
        }
        _ => *end = to.map(<[u8]>::to_vec),
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
                let new = (from..to.unwrap_or(40)).any(|key| !model[usize::from(key)]);
                let end = to.map(|to| [to]);
                // A key at the very end of the model's world is as good as no end but for what is beyond.
                let added = intervals.add(&[from], end.as_ref().map(<[u8; 1]>::as_slice));
                assert!(added || !new);
                (from..to.unwrap_or(40)).for_each(|key| model[usize::from(key)] = true);
            }
            for (key, inside) in model.iter().enumerate() {
                assert_eq!(intervals.contains(&[key as u8]), *inside, "{key} in {intervals:?}");
            }
            let runs = model
                .iter()
                .zip(std::iter::once(&false).chain(&model))
                .filter(|(at, before)| **at && !**before);
            assert!(intervals.len() <= runs.count() + 1, "{intervals:?}");
            let list: Vec<_> = intervals.iter().collect();
            assert!(list.windows(2).all(|pair| pair[0].1.is_some_and(|end| end < pair[1].0)), "{list:?}");
        }
    }

    #[test]
    fn an_interval_grows_in_place_as_a_scan_goes_on() {
        let mut intervals = Intervals::default();
        assert!(intervals.add(b"b", Some(b"c\0")));
        assert!(intervals.add(b"c\0", Some(b"d\0")));
        assert!(!intervals.add(b"b", Some(b"d")));
        assert!(intervals.add(b"a", Some(b"b")));
        assert_eq!(intervals.iter().collect::<Vec<_>>(), [(&b"a"[..], Some(&b"d\0"[..]))]);
        assert!(intervals.add(b"d\0", None));
        assert!(intervals.contains(b"zz") && !intervals.contains(b"A"));
        assert_eq!(intervals.len(), 1);
    }
}
