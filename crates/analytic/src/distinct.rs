//! The different values of each group: keys of the group's number and the value's words.

use crate::word_table::{with_width, WordTable};

/// See the head of this file.
#[derive(Clone, Debug)]
pub(crate) struct Distinct {
    table: WordTable,
    /// Key after key: the group, then the words of the value.
    words: Vec<u64>,
    width: usize,
}

impl Distinct {
    /// Of values with so many words.
    pub(crate) fn new(words: usize) -> Distinct {
        Distinct { table: WordTable::new(0), words: Vec::new(), width: words + 1 }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes() + self.words.len() * 8
    }

    /// Adds the value of each row that counts: `words` has `stride` for each row, of which the first are the value's.
    pub(crate) fn add(
        &mut self,
        groups: &[u32],
        words: &[u64],
        stride: usize,
        counts: impl Fn(usize) -> bool,
    ) {
        let mut keys = Vec::with_capacity(groups.len() * self.width);
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| counts(*row)) {
            keys.push(u64::from(*group));
            keys.extend_from_slice(&words[row * stride..][..self.width - 1]);
        }
        self.add_keys(&keys);
    }

    fn add_keys(&mut self, keys: &[u64]) {
        let known = (&mut self.words, self.width);
        with_width!(self.width, W => self.table.find_or_add::<W>(keys, known, |_| {}));
    }

    /// Adds another thread's; `groups` are what its groups are here.
    pub(crate) fn merge(&mut self, other: Distinct, groups: &[u32]) {
        let mut keys = other.words;
        for key in keys.chunks_exact_mut(self.width) {
            key[0] = u64::from(groups[key[0] as usize]);
        }
        self.add_keys(&keys);
    }

    /// Each group and value: the number, then the words.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u64]> {
        self.words.chunks_exact(self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_value_of_a_group_is_there_once() {
        for width in [1, 2, 5] {
            let (mut first, mut second) = (Distinct::new(width), Distinct::new(width));
            let words: Vec<u64> = (0..900 * (width as u64 + 1)).map(|at| at * 7 % 5).collect();
            let groups: Vec<u32> = (0..900).map(|row| row * row % 3).collect();
            first.add(&groups, &words, width + 1, |row| row % 2 == 0);
            second.add(&groups, &words, width + 1, |row| row % 2 == 1);
            // Group 2 is the last one here.
            first.merge(second, &[0, 1, 2]);
            let expected: BTreeSet<Vec<u64>> = (0..900)
                .map(|row| {
                    let value = &words[row * (width + 1)..][..width];
                    [&[u64::from(groups[row])], value].concat()
                })
                .collect();
            assert_eq!(first.keys().count(), expected.len(), "each once");
            assert_eq!(first.keys().map(<[u64]>::to_vec).collect::<BTreeSet<_>>(), expected);
        }
    }
}
