//! Sets of ranges of a space, of a file or of addresses: which are free, found by size ([`FreeMap`]), and which of those
//! take no disk space ([`Ranges`]).

use std::collections::{BTreeMap, BTreeSet};

/// A set of disjoint, coalesced, non-empty ranges: start to end.
#[derive(Debug, Default)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds `start..end`, which may overlap what is there.
    pub fn insert(&mut self, mut start: u64, mut end: u64) {
        assert!(start < end);
        // Everything that touches the new range becomes part of it.
        while let Some((&s, &e)) = self.0.range(..=end).next_back().filter(|(_, e)| **e >= start) {
            self.0.remove(&s);
            start = start.min(s);
            end = end.max(e);
        }
        self.0.insert(start, end);
    }

    /// Removes `start..end` and says which parts of it were there.
    pub fn remove(&mut self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut removed = Vec::new();
        while let Some((&s, &e)) = self.0.range(..end).next_back().filter(|(_, e)| **e > start) {
            self.0.remove(&s);
            if s < start {
                self.0.insert(s, start);
            }
            if e > end {
                self.0.insert(end, e);
            }
            removed.push((s.max(start), e.min(end)));
        }
        removed
    }

    /// The parts of `start..end` that are not in the set, ascending.
    pub fn gaps(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut at = start;
        let before = self.0.range(..start).next_back();
        for (&s, &e) in before.into_iter().chain(self.0.range(start..end)) {
            if s > at {
                gaps.push((at, s));
            }
            at = at.max(e);
        }
        if at < end {
            gaps.push((at, end));
        }
        gaps
    }
}

/// Free space, best fit: the smallest range that is large enough, the lowest of equals.
///
/// Freeing what is free already is a bug that would hand the same bytes to two owners, so it is
/// asserted against in release builds too.
#[derive(Debug, Default)]
pub struct FreeMap {
    /// Offset to length; neighbours never touch.
    by_offset: BTreeMap<u64, u64>,
    /// (length, offset) of the same ranges.
    by_len: BTreeSet<(u64, u64)>,
    total: u64,
}

impl FreeMap {
    /// None yet.
    pub const fn new() -> FreeMap {
        FreeMap { by_offset: BTreeMap::new(), by_len: BTreeSet::new(), total: 0 }
    }

    /// Sum of all ranges.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// All ranges, ascending: offset and length.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_offset.iter().map(|(offset, len)| (*offset, *len))
    }

    /// Makes a range free and joins it with its neighbours.
    pub fn insert(&mut self, offset: u64, len: u64) {
        assert!(len > 0, "freeing nothing at {offset}");
        let (mut start, mut end) = (offset, offset + len);
        if let Some((&before, &before_len)) = self.by_offset.range(..=offset).next_back() {
            assert!(
                before + before_len <= offset,
                "freed twice: {offset}+{len}, {before}+{before_len} is free"
            );
            if before + before_len == offset {
                self.unlink(before, before_len);
                start = before;
            }
        }
        if let Some((&after, &after_len)) = self.by_offset.range(offset..).next() {
            assert!(after >= end, "freed twice: {offset}+{len}, {after}+{after_len} is free");
            if after == end {
                self.unlink(after, after_len);
                end += after_len;
            }
        }
        self.link(start, end - start);
    }

    /// Takes `len` bytes from the best fitting range; its offset.
    pub fn take_best(&mut self, len: u64) -> Option<u64> {
        let &(found, offset) = self.by_len.range((len, 0)..).next()?;
        self.unlink(offset, found);
        if found > len {
            self.link(offset + len, found - len);
        }
        Some(offset)
    }

    /// Takes exactly this range; false, and nothing taken, unless all of it is free.
    pub fn take_exact(&mut self, offset: u64, len: u64) -> bool {
        let Some(end) = offset.checked_add(len) else { return false };
        let Some((&start, &found)) = self.by_offset.range(..=offset).next_back() else { return false };
        if start + found < end {
            return false;
        }
        self.unlink(start, found);
        if start < offset {
            self.link(start, offset - start);
        }
        if end < start + found {
            self.link(end, start + found - end);
        }
        true
    }

    /// The longest range, the highest of equals: (offset, length).
    pub fn longest(&self) -> Option<(u64, u64)> {
        self.by_len.last().map(|(len, offset)| (*offset, *len))
    }

    /// The free range that ends at `end`, if any: (offset, length).
    pub fn tail(&self, end: u64) -> Option<(u64, u64)> {
        let (&offset, &len) = self.by_offset.last_key_value()?;
        (offset + len == end).then_some((offset, len))
    }

    /// The first range at or after `from` that is at least `len_min` long: (offset, length).
    pub fn next_of_len(&self, from: u64, len_min: u64) -> Option<(u64, u64)> {
        self.by_offset.range(from..).map(|(o, l)| (*o, *l)).find(|(_, len)| *len >= len_min)
    }

    /// What is free from `from` on: the rest of a range that it is within, or else the next range.
    pub fn next_from(&self, from: u64) -> Option<(u64, u64)> {
        let within = self.by_offset.range(..from).next_back().map(|(start, len)| start + len);
        match within.filter(|end| *end > from) {
            Some(end) => Some((from, end - from)),
            None => self.by_offset.range(from..).next().map(|(start, len)| (*start, *len)),
        }
    }

    fn link(&mut self, offset: u64, len: u64) {
        self.by_offset.insert(offset, len);
        self.by_len.insert((len, offset));
        self.total += len;
    }

    fn unlink(&mut self, offset: u64, len: u64) {
        let removed = self.by_offset.remove(&offset);
        assert_eq!(removed, Some(len), "free map out of step at {offset}");
        assert!(self.by_len.remove(&(len, offset)), "free map out of step at {offset}");
        self.total -= len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_smallest_hole_that_fits_is_taken_and_the_lowest_of_equals() {
        let mut free = FreeMap::default();
        for (offset, len) in [(0, 10), (20, 4), (30, 6), (40, 6)] {
            free.insert(offset, len);
        }
        assert_eq!(free.take_best(5), Some(30));
        assert_eq!(free.take_best(6), Some(40));
        assert_eq!(free.longest(), Some((0, 10)));
        assert_eq!(free.take_best(1), Some(35));
        assert_eq!(free.take_best(11), None);
        assert_eq!(free.total(), 14);
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn freeing_a_part_of_a_free_range_panics() {
        let mut free = FreeMap::default();
        free.insert(10, 10);
        free.insert(15, 1);
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn freeing_a_range_around_a_free_one_panics() {
        let mut free = FreeMap::default();
        free.insert(10, 10);
        free.insert(5, 30);
    }

    const SPACE: u64 = 64;

    fn bits_of(free: &FreeMap) -> Vec<bool> {
        let mut bits = vec![false; SPACE as usize];
        for (&offset, &len) in &free.by_offset {
            bits[offset as usize..(offset + len) as usize].fill(true);
        }
        bits
    }

    proptest! {
        #[test]
        fn the_free_map_agrees_with_a_bitmap(ops in proptest::collection::vec((0..3u8, 0..SPACE, 1..12u64), 1..200)) {
            let mut free = FreeMap::default();
            let mut model = vec![false; SPACE as usize];
            for (op, offset, len) in ops {
                let end = (offset + len).min(SPACE);
                let (len, range) = (end - offset, offset as usize..end as usize);
                match op {
                    0 if model[range.clone()].iter().all(|free| !free) => {
                        free.insert(offset, len);
                        model[range].fill(true);
                    }
                    1 => {
                        let all_free = model[range.clone()].iter().all(|free| *free);
                        prop_assert_eq!(free.take_exact(offset, len), all_free);
                        if all_free {
                            model[range].fill(false);
                        }
                    }
                    _ => {
                        // Best fit by brute force: maximal free stretches by (length, offset).
                        let mut stretches = Vec::new();
                        let mut at = 0;
                        while at < model.len() {
                            let run = model[at..].iter().take_while(|free| **free).count();
                            if run > 0 {
                                stretches.push((run as u64, at as u64));
                            }
                            at += run.max(1);
                        }
                        let best = stretches.into_iter().filter(|(run, _)| *run >= len).min().map(|(_, at)| at);
                        prop_assert_eq!(free.take_best(len), best);
                        if let Some(at) = best {
                            model[at as usize..(at + len) as usize].fill(false);
                        }
                    }
                }
                prop_assert_eq!(bits_of(&free), model.clone());
                prop_assert_eq!(free.total(), model.iter().filter(|free| **free).count() as u64);
                prop_assert_eq!(free.by_len.len(), free.by_offset.len());
                // Coalesced: no range begins where another ends.
                prop_assert!(free.by_offset.iter().all(|(o, l)| !free.by_offset.contains_key(&(o + l))));
            }
        }

        #[test]
        fn a_set_of_ranges_agrees_with_a_bitmap(ops in proptest::collection::vec((any::<bool>(), 0..SPACE, 1..12u64), 1..200)) {
            let mut ranges = Ranges::default();
            let mut model = vec![false; SPACE as usize];
            for (add, start, len) in ops {
                let end = (start + len).min(SPACE);
                let gap_bytes: u64 = ranges.gaps(start, end).iter().map(|(s, e)| e - s).sum();
                let there = model[start as usize..end as usize].iter().filter(|x| **x).count() as u64;
                prop_assert_eq!(gap_bytes, end - start - there);
                for (s, e) in ranges.gaps(start, end) {
                    prop_assert!(model[s as usize..e as usize].iter().all(|x| !x));
                }
                if add {
                    ranges.insert(start, end);
                } else {
                    let removed: u64 = ranges.remove(start, end).iter().map(|(s, e)| e - s).sum();
                    prop_assert_eq!(removed, there);
                }
                model[start as usize..end as usize].fill(add);
                let mut bits = vec![false; SPACE as usize];
                for (&s, &e) in &ranges.0 {
                    bits[s as usize..e as usize].fill(true);
                }
                prop_assert_eq!(bits, model.clone());
            }
        }
    }
}
