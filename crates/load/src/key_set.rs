//! The keys that a load has seen, for statements in which the server decides row by row what becomes of duplicates.
//!
//! Keys are kept as they are, one after another in pieces of memory, so that the answer is exact; a table of
//! hashes with open addressing finds them. Its memory is a part of that for loads: when it is used up, the set
//! says so, and its owner has to do without.
//!
//! ```text
//! slot:  24 bits of the hash | 40 bits: place of the key, counted from 1; 0: nothing here
//! ```

use xxhash_rust::xxh3::xxh3_64;

/// Keys are kept in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;
const SLOTS_MIN: usize = 1 << 10;
/// Length of a key, before it.
const LENGTH_BYTES: usize = 4;
const PLACE_BITS: u32 = 40;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct KeySet {
    pieces: Vec<Vec<u8>>,
    slots: Vec<u64>,
    len: usize,
}

impl KeySet {
    /// Without any key.
    pub(crate) fn new() -> KeySet {
        KeySet::default()
    }

    /// What it takes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let pieces: usize = self.pieces.iter().map(Vec::capacity).sum();
        (pieces + self.slots.len() * size_of::<u64>()) as u64
    }

    /// What it takes at most while one more key comes in: the table of hashes may grow, which takes both.
    pub(crate) fn memory_bytes_of_next(&self) -> u64 {
        let growth = if self.is_full() { self.slots.len().max(SLOTS_MIN) * 2 * size_of::<u64>() } else { 0 };
        self.memory_bytes() + growth as u64
    }

    /// Is the key there?
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.find(key, xxh3_64(key)).is_ok()
    }

    /// Puts a key in; false if it is there already.
    pub(crate) fn insert(&mut self, key: &[u8]) -> bool {
        if self.is_full() {
            self.grow();
        }
        let hash = xxh3_64(key);
        let Err(slot) = self.find(key, hash) else { return false };
        let place = self.keep(key);
        self.slots[slot] = tag(hash) | (place + 1);
        self.len += 1;
        true
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
            assert_eq!(set.insert(&key), model.insert(key.clone()), "{key:?}");
            assert!(set.contains(&key));
        }
        assert_eq!(set.len, model.len());
        assert!(!set.contains(b"never"));
    }

    #[test]
    fn keys_across_pieces_and_longer_ones_are_kept_whole() {
        let mut set = KeySet::new();
        let key = |n: usize| vec![n as u8; [PIECE_BYTES / 3, 2 * PIECE_BYTES, 5, PIECE_BYTES - 4][n % 4]];
        assert!((0..40).all(|n| set.insert(&key(n))));
        assert!((0..40).all(|n| set.contains(&key(n)) && !set.insert(&key(n))));
        assert!(!set.contains(&key(41)));
    }

    #[test]
    fn memory_is_what_it_says() {
        let mut set = KeySet::new();
        assert_eq!(set.memory_bytes(), 0);
        (0..100_000u32).for_each(|n| assert!(set.insert(&n.to_be_bytes())));
        let bytes = set.memory_bytes();
        assert!((100_000 * 8..100_000 * 32).contains(&bytes), "{bytes}");
        assert!(set.memory_bytes_of_next() >= bytes);
    }
}
