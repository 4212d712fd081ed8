//! Which rows join a load where the statement decides, row by row, what becomes of those whose key is there.
//!
//! Such a statement (IGNORE, REPLACE, ON DUPLICATE KEY UPDATE) wants to know of a row at once. Of what came through the load the keys
//! seen so far know the answer, for any number of unique keys; of what the table had before, the table.

use std::sync::Arc;

use crate::key_set::KeySet;
use crate::memory_budget::{Memory, Part};

/// Of the memory for loads, what the keys may take.
const SHARE: u64 = 4;

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It joins: none of its keys has been seen. They are noted.
    New,
    /// The key at this position has been seen. Nothing is noted.
    Seen(usize),
    /// There is no memory left to tell. Nothing is noted.
    Full,
}

/// Whether the keys of rows that join are to be noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// No: no two rows of the load have equal keys.
    None,
    /// As long as there is memory: keys have ascended so far, and the caller does without when it is [`Admission::Full`].
    WhileRoom,
    /// Yes.
    All,
}

/// The keys that a load has seen, by dictionary.
#[derive(Debug)]
pub struct Admissions {
    sets: Vec<KeySet>,
    memory: Arc<Memory>,
    parts: Vec<Part>,
    held: u64,
}

impl Admissions {
    /// For a load of so many dictionaries.
    pub fn new(dicts: usize, memory: &Arc<Memory>) -> Admissions {
        let sets = (0..dicts).map(|_| KeySet::new()).collect();
        Admissions { sets, memory: memory.clone(), parts: Vec::new(), held: 0 }
    }

    /// Whether the key of this dictionary has been noted.
    pub fn has_seen(&self, dict: usize, key: &[u8]) -> bool {
        self.sets[dict].contains(key)
    }

    /// Notes the keys of a row, none of which has been seen: [`Admission::New`], or [`Admission::Full`].
    pub fn note<'k>(&mut self, keys: impl Iterator<Item = (usize, &'k [u8])>) -> Admission {
        let needed: u64 = self.sets.iter().map(KeySet::memory_bytes_of_next).sum();
        if needed > self.held && !self.hold(needed) {
            return Admission::Full;
        }
        for (dict, key) in keys {
            self.sets[dict].insert(key);
        }
        Admission::New
    }

    /// Forgets all keys: their memory is free.
    pub fn forget(&mut self) {
        self.sets.fill_with(KeySet::new);
        self.parts.clear();
        self.held = 0;
    }

    /// Keys that ascend take steps, as they need little and can be done without; else all that a load may have is taken at once, so that chunks do
    /// not take it first.
    fn hold(&mut self, needed: u64) -> bool {
        let limit = self.memory.limit() / SHARE;
        if needed > limit {
            return false;
        }
        let wanted = if self.sets.iter().all(KeySet::has_ascended) { self.held * 2 } else { limit };
        [wanted.clamp(needed, limit), needed].into_iter().any(|bytes| {
            let more = bytes - self.held;
            let part = self.memory.take(more);
            self.held += if part.is_some() { more } else { 0 };
            self.parts.extend(part);
            self.held >= needed
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(admissions: &mut Admissions, keys: &[(usize, &[u8])]) -> Admission {
        match keys.iter().position(|(dict, key)| admissions.has_seen(*dict, key)) {
            Some(seen) => Admission::Seen(seen),
            None => admissions.note(keys.iter().copied()),
        }
    }

    #[test]
    fn a_row_joins_if_none_of_its_keys_has_been_seen_and_others_leave_no_trace() {
        let memory = Memory::new(64 << 20);
        let mut admissions = Admissions::new(2, &memory);
        assert_eq!(admit(&mut admissions, &[(0, b"a"), (1, b"x")]), Admission::New);
        assert_eq!(admit(&mut admissions, &[(0, b"b"), (1, b"x")]), Admission::Seen(1));
        // The row that was refused has not taken its other key.
        assert_eq!(admit(&mut admissions, &[(0, b"b"), (1, b"y")]), Admission::New);
        assert_eq!(admit(&mut admissions, &[(0, b"a"), (1, b"y")]), Admission::Seen(0));
        // A NULL is no key.
        assert_eq!(admit(&mut admissions, &[(0, b"c")]), Admission::New);
        assert_eq!(admit(&mut admissions, &[]), Admission::New);
    }

    #[test]
    fn without_memory_it_says_so_and_gives_all_back_in_the_end() {
        let memory = Memory::new(16 << 20);
        let mut admissions = Admissions::new(1, &memory);
        let full =
            (0..10_000_000u32).find(|n| admit(&mut admissions, &[(0, &n.to_be_bytes())]) == Admission::Full);
        let full = full.expect("four million bytes do not hold ten million keys");
        assert!(full > 50_000, "{full}");
        assert_eq!(admit(&mut admissions, &[(0, &7u32.to_be_bytes())]), Admission::Seen(0));
        assert!(memory.take(8 << 20).is_none());
        drop(admissions);
        assert!(memory.take(8 << 20).is_some());
    }
}
