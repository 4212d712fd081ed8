//! The keys that a load has seen, for statements in which the server decides row by row what becomes of duplicates.
//!
//! Keys are kept as they are, so that the answer is exact. Those that come in ascending order go to a list (`key_list`), which takes little memory and
//! little time, unless it ends soon; the others lie one after another in pieces of memory, and a table of
//! hashes with open addressing finds them. The memory is a part of that for loads: when it is used up, the set
//! says so, and its owner has to do without.
//!
//! ```text
//! slot:  24 bits of the hash | 40 bits: place of the key, counted from 1; 0: nothing here
//! ```

use xxhash_rust::xxh3::xxh3_64;

use crate::key_list::KeyList;

/// Keys are kept in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;
const SLOTS_MIN: usize = 1 << 10;
/// Length of a key, before it.
const LENGTH_BYTES: usize = 4;
const PLACE_BITS: u32 = 40;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct KeySet {
    /// Without one, no order has been seen in the first keys.
    ascending: Option<KeyList>,
    pieces: Vec<Vec<u8>>,
    slots: Vec<u64>,
    len: usize,
}

impl KeySet {
    /// Without any key.
    pub(crate) fn new() -> KeySet {
        KeySet { ascending: Some(KeyList::default()), pieces: Vec::new(), slots: Vec::new(), len: 0 }
    }

    /// What it takes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let pieces: usize = self.pieces.iter().map(Vec::capacity).sum();
        let listed = self.ascending.as_ref().map_or(0, KeyList::memory_bytes);
        (listed + pieces + self.slots.len() * size_of::<u64>()) as u64
    }

    /// What it takes at most while one more key comes in: the table of hashes may grow, which takes both.
    pub(crate) fn memory_bytes_of_next(&self) -> u64 {
        let is_to_grow = !self.has_ascended() && self.is_full();
        let growth = if is_to_grow { self.slots.len().max(SLOTS_MIN) * 2 * size_of::<u64>() } else { 0 };
        self.memory_bytes() + (growth + KeyList::memory_bytes_of_next()) as u64
    }

    /// Whether each key came after all those before.
    pub(crate) fn has_ascended(&self) -> bool {
        self.len == 0
    }

    /// Is the key there?
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.ascending.as_ref().is_some_and(|list| list.contains(key))
            || (self.len > 0 && self.find(key, xxh3_64(key)).is_ok())
    }

    /// Puts a key in. Requires: it is not there.
    pub(crate) fn insert(&mut self, key: &[u8]) {
        debug_assert!(!self.contains(key), "a key is noted once");
        let Some(list) = &mut self.ascending else { return self.insert_hashed(key) };
        if list.push(key) {
            return;
        }
        if self.len == 0 && list.is_short() {
            let list = self.ascending.take().unwrap_or_default();
            list.for_each(|listed| self.insert_hashed(listed));
        }
        self.insert_hashed(key);
    }

    fn insert_hashed(&mut self, key: &[u8]) {
        if self.is_full() {
            self.grow();
        }
        let hash = xxh3_64(key);
        if let Err(slot) = self.find(key, hash) {
            let place = self.keep(key);
            self.slots[slot] = tag(hash) | (place + 1);
            self.len += 1;
        }
    }

    /// Slots are never more than three quarters full.
    fn is_full(&self) -> bool {
        (self.len + 1) * 4 > self.slots.len() * 3
    }

    /// The slot of the key, or else the free one where it would go. Requires: a slot is free, or there is none.
    fn find(&self, key: &[u8], hash: u64) -> Result<usize, usize> {
        if self.slots.is_empty() {
            return Err(0);
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                0 => return Err(at),
                slot if slot & !PLACE_MASK == tag(hash) && self.key_at((slot & PLACE_MASK) - 1) == key => {
                    return Ok(at);
                }
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn key_at(&self, place: u64) -> &[u8] {
        let (piece, at) = (place as usize / PIECE_BYTES, place as usize % PIECE_BYTES);
        let bytes = &self.pieces[piece][at..];
        let (length, rest) = bytes.split_at(LENGTH_BYTES);
        let length = u32::from_le_bytes(length.try_into().unwrap_or_default());
        &rest[..length as usize]
    }

    /// Copies a key and says where it is. A key that is longer than a piece has one of its own.
    fn keep(&mut self, key: &[u8]) -> u64 {
        let bytes = LENGTH_BYTES + key.len();
        if self.pieces.last().is_none_or(|piece| piece.len() + bytes > PIECE_BYTES) {
            self.pieces.push(Vec::with_capacity(bytes.max(PIECE_BYTES)));
        }
        let number = self.pieces.len() - 1;
        let piece = &mut self.pieces[number];
        let place = number * PIECE_BYTES + piece.len();
        assert!((place as u64) < PLACE_MASK, "keys below a terabyte");
        piece.extend_from_slice(&(key.len() as u32).to_le_bytes());
        piece.extend_from_slice(key);
        place as u64
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(SLOTS_MIN);
        let old = std::mem::replace(&mut self.slots, vec![0; slots]);
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            let hash = xxh3_64(self.key_at((slot & PLACE_MASK) - 1));
            let mut at = hash as usize & (slots - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = slot;
        }
    }
}

/// The bits of the hash that a slot keeps: not those that say where the slot is.
fn tag(hash: u64) -> u64 {
    hash & !PLACE_MASK
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn it_knows_what_it_was_given_and_nothing_else() {
        let (mut set, mut model) = (KeySet::new(), HashSet::new());
        assert!(!set.contains(b""));
        for n in 0..20_000u32 {
            // Of many lengths, some of which come again, and the empty one.
            let of = n % 13_000;
            let key = [vec![b'k'; of as usize % 40], of.to_be_bytes()[..of as usize % 5].to_vec()].concat();
            assert_eq!(set.contains(&key), model.contains(&key));
            if model.insert(key.clone()) {
                set.insert(&key);
            }
            assert!(set.contains(&key), "{key:?}");
        }
        assert!(!set.contains(b"never"));
    }

    #[test]
    fn keys_that_ascend_for_long_and_then_do_not_are_known_as_others_are() {
        let (mut set, mut model) = (KeySet::new(), HashSet::new());
        for n in 0..60_000u32 {
            // From some row on, each third falls behind by a little or much, and some have been there.
            let n = if n > 20_000 && n % 3 == 0 { n / 2 } else { n * 2 };
            assert_eq!(set.contains(&n.to_be_bytes()), model.contains(&n));
            if model.insert(n) {
                set.insert(&n.to_be_bytes());
            }
        }
        assert!(!set.has_ascended() && set.len < model.len() / 2);
    }

    #[test]
    fn keys_across_pieces_and_longer_ones_are_kept_whole() {
        let mut set = KeySet::new();
        let key = |n: usize| vec![n as u8; [PIECE_BYTES / 3, 2 * PIECE_BYTES, 5, PIECE_BYTES - 4][n % 4]];
        let keys: HashSet<Vec<u8>> = (0..40).map(key).collect();
        keys.iter().for_each(|key| set.insert(key));
        assert!(keys.iter().all(|key| set.contains(key)));
        assert!(!set.contains(&key(41)));
    }

    #[test]
    fn memory_is_what_it_says() {
        let mut set = KeySet::new();
        assert_eq!(set.memory_bytes(), 0);
        (0..100_000u32).for_each(|n| set.insert(&n.wrapping_mul(0x9E37_79B9).to_be_bytes()));
        let bytes = set.memory_bytes();
        assert!((100_000 * 8..100_000 * 32).contains(&bytes), "{bytes}");
        assert!(set.memory_bytes_of_next() >= bytes);
    }
}
