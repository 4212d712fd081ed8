//! Sums of integers by groups, and counts of rows.
//!
//! Where there are few groups, a sum is added to again before the last addition to it is stored, and each addition waits for
//! the one before. So rows take turns with four sums of 64 bits for each group, which come together at the end of a batch. The
//! numbers of the batch are looked at first: none may be so large that such a sum overflows.

use crate::column::{Column, Data, OVERFLOW};
use crate::eval::Result;

/// Sums that take turns.
const TURNS: usize = 4;
/// More groups than this are not few: their sums are added to rarely enough.
const FEW: usize = 64;

/// Counts the rows of each group.
pub(crate) fn count_rows(groups: &[u32], counts: &mut [i64]) {
    if counts.len() > FEW {
        groups.iter().for_each(|group| counts[*group as usize] += 1);
        return;
    }
    let mut turns = [[0u32; TURNS]; FEW];
    for groups in groups.chunks(TURNS) {
        groups.iter().zip(0..TURNS).for_each(|(group, turn)| turns[*group as usize % FEW][turn] += 1);
    }
    for (count, turns) in counts.iter_mut().zip(turns) {
        *count += turns.iter().map(|turn| i64::from(*turn)).sum::<i64>();
    }
}

/// A sum for each group.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    values: Vec<i128>,
    /// Which have had a value. As long as no row was NULL, all groups that were met have, and nobody notes it row by row.
    seen: Vec<bool>,
    is_noted: bool,
    /// Groups that there were after the last batch.
    settled: usize,
}

impl Sums {
    /// Without groups. `is_one`: the group is there without a row.
    pub(crate) fn new(is_one: bool) -> Sums {
        Sums { values: Vec::new(), seen: Vec::new(), is_noted: is_one, settled: 0 }
    }

    /// Makes room for new groups, which the next rows are of.
    pub(crate) fn grow(&mut self, count: usize) {
        self.values.resize(count, 0);
        self.seen.resize(count, !self.is_noted);
    }

    /// From now on it is noted which groups have had a value: of the new ones, none yet.
    fn note(&mut self) {
        if !self.is_noted {
            self.seen[self.settled..].fill(false);
            self.is_noted = true;
        }
    }

    /// Adds a column; `groups` are those of its rows.
    pub(crate) fn add(&mut self, groups: &[u32], column: &Column) -> Result<()> {
        match (&column.data, &column.nulls) {
            (Data::Small(values), None) => {
                if self.values.len() > FEW || !self.add_in_turns(groups, values) {
                    for (group, value) in groups.iter().zip(values) {
                        let sum = &mut self.values[*group as usize];
                        // So many rows of 64 bits there are not.
                        *sum = sum.wrapping_add(i128::from(*value));
                    }
                }
                if self.is_noted {
                    groups.iter().for_each(|group| self.seen[*group as usize] = true);
                }
            }
            _ => {
                self.note();
                for (row, group) in groups.iter().enumerate().filter(|(row, _)| !column.is_null(*row)) {
                    let group = *group as usize;
                    self.values[group] =
                        self.values[group].checked_add(column.number(row)).ok_or(OVERFLOW)?;
                    self.seen[group] = true;
                }
            }
        }
        self.settled = self.values.len();
        Ok(())
    }

    /// False, and nothing has changed: a number is so large that a sum of 64 bits might overflow.
    fn add_in_turns(&mut self, groups: &[u32], values: &[i64]) -> bool {
        // The bits that differ from the sign; times the rows they must leave the sign alone.
        let bits = values.iter().fold(0, |all, value| all | (value ^ value >> 63));
        let rows = (values.len() as u64).next_power_of_two();
        if (bits as u64).leading_zeros() <= rows.trailing_zeros() + 1 {
            return false;
        }
        let mut sums = [[0i64; TURNS]; FEW];
        let (groups_of_turns, values_of_turns) = (groups.chunks_exact(TURNS), values.chunks_exact(TURNS));
        let rest = groups_of_turns.remainder().iter().zip(values_of_turns.remainder());
        for (groups, values) in groups_of_turns.zip(values_of_turns.clone()) {
            for turn in 0..TURNS {
                sums[groups[turn] as usize % FEW][turn] += values[turn];
            }
        }
        rest.for_each(|(group, value)| sums[*group as usize % FEW][0] += value);
        for (sum, turns) in self.values.iter_mut().zip(sums) {
            let all = turns.iter().map(|turn| i128::from(*turn)).sum();
            *sum = sum.wrapping_add(all);
        }
        true
    }

    /// Adds another thread's; `groups` are what its groups are here.
    pub(crate) fn merge(&mut self, other: Sums, groups: &[u32]) -> Result<()> {
        self.note();
        for ((group, value), is_seen) in groups.iter().zip(other.values).zip(other.seen) {
            let group = *group as usize;
            self.values[group] = self.values[group].checked_add(value).ok_or(OVERFLOW)?;
            self.seen[group] |= is_seen;
        }
        self.settled = self.values.len();
        Ok(())
    }

    /// The sums as a column: NULL where there was no value.
    pub(crate) fn into_column(self) -> Column {
        let has_nulls = self.seen.contains(&false);
        let nulls = has_nulls.then(|| self.seen.iter().map(|is_seen| !is_seen).collect());
        Column::of_large(self.values, nulls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[i64], nulls: Option<Vec<bool>>) -> Column {
        Column { data: Data::Small(values.to_vec()), nulls }
    }

    /// Batches of few and of many groups, of small and of the largest numbers, with NULLs and without, in two threads: as a
    /// model has it.
    #[test]
    fn sums_are_those_of_a_model() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for (groups_max, is_one, null_share) in
            [(1, true, 0), (3, false, 0), (3, false, 2), (64, false, 9), (200, false, 0)]
        {
            let mut model: Vec<Option<i128>> = if is_one { vec![None] } else { Vec::new() };
            let mut threads = [Sums::new(is_one), Sums::new(is_one)];
            threads.iter_mut().for_each(|sums| sums.grow(model.len()));
            for batch in 0..12 {
                let rows = [0, 1, 7, 1000][random(4) as usize];
                // New groups come in order, as those who number them do it.
                let mut groups = Vec::new();
                for _ in 0..rows {
                    let group = random(groups_max) as usize;
                    let group = group.min(model.len());
                    if group == model.len() {
                        model.push(None);
                    }
                    groups.push(group as u32);
                }
                let large = batch % 3 == 2;
                let number = |value: u64| match (large, value % 4) {
                    (true, 0) => i64::MAX,
                    (true, 1) => i64::MIN,
                    _ => value as i64 - 500_000,
                };
                let values: Vec<i64> = (0..rows).map(|_| number(random(1_000_000))).collect();
                let has_nulls = null_share > 0 && batch % 2 == 1;
                let nulls =
                    has_nulls.then(|| (0..rows).map(|_| random(null_share) == 0).collect::<Vec<bool>>());
                let column = column(&values, nulls);
                // The groups that one thread has not met are not there; here both have all, and only one is given the rows.
                let sums = &mut threads[0];
                sums.grow(model.len());
                sums.add(&groups, &column).unwrap();
                for (row, group) in groups.iter().enumerate().filter(|(row, _)| !column.is_null(*row)) {
                    let sum = &mut model[*group as usize];
                    *sum = Some(sum.unwrap_or(0) + i128::from(values[row]));
                }
            }
            let [mut first, second] = threads;
            let merged: Vec<u32> = (0..second.values.len() as u32).collect();
            first.merge(second, &merged).unwrap();
            let found = first.into_column();
            let found: Vec<Option<i128>> =
                (0..model.len()).map(|row| (!found.is_null(row)).then(|| found.number(row))).collect();
            assert_eq!(found, model, "{groups_max} groups, NULLs 1 of {null_share}");
        }
    }

    #[test]
    fn rows_are_counted() {
        for groups_max in [1, 5, 64, 65] {
            let groups: Vec<u32> = (0..1003).map(|row| row * 7919 % groups_max).collect();
            let mut counts = vec![1; groups_max as usize];
            count_rows(&groups, &mut counts);
            let of = |group: u32| 1 + groups.iter().filter(|of| **of == group).count() as i64;
            assert_eq!(counts, (0..groups_max).map(of).collect::<Vec<i64>>());
        }
    }

    #[test]
    fn a_group_of_another_thread_may_have_no_value() {
        let (mut first, mut second) = (Sums::new(false), Sums::new(false));
        first.grow(2);
        first.add(&[0, 1], &column(&[5, 6], None)).unwrap();
        second.grow(2);
        second.add(&[0, 1], &column(&[7, 0], Some(vec![false, true]))).unwrap();
        // The second's groups are the first's second one, and a new one.
        first.grow(3);
        first.merge(second, &[1, 2]).unwrap();
        let sums = first.into_column();
        assert_eq!((sums.number(0), sums.number(1)), (5, 13));
        assert_eq!(sums.nulls, Some(vec![false, false, true]));
    }
}
