//! Keys that come in ascending order, in little memory: of each the bytes that it does not share with the one before.
//!
//! ```text
//! piece:  key, key, ...      a few hundred; the first one whole
//! key:    varint bytes shared with the one before | varint bytes that follow | these
//! ```
//! What is asked for most, whether a key comes after all of them, is one comparison. To find one among them costs a binary search over the pieces
//! and a walk through one.

use std::cmp::Ordering;

use pando_column::wire::{put_bytes, put_varint, Reader};

/// A key longer than this has a piece of its own.
const PIECE_BYTES: usize = 1 << 10;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct KeyList {
    pieces: Vec<Vec<u8>>,
    last: Vec<u8>,
    bytes: usize,
}

impl KeyList {
    /// Puts the key at the end; false if it does not come after all that are there.
    pub(crate) fn push(&mut self, key: &[u8]) -> bool {
        if !self.is_beyond(key) {
            return false;
        }
        let shared = common_bytes(&self.last, key);
        let most = key.len() - shared + 2 * VARINT_MAX;
        match self.pieces.last_mut().filter(|piece| piece.len() + most <= PIECE_BYTES) {
            Some(piece) => put_key(piece, shared, &key[shared..]),
            None => {
                let mut piece = Vec::with_capacity(PIECE_BYTES.max(key.len() + 2 * VARINT_MAX));
                put_key(&mut piece, 0, key);
                self.bytes += piece.capacity() + size_of::<Vec<u8>>();
                self.pieces.push(piece);
            }
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        true
    }

    /// Whether the key is there.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        match self.pieces.is_empty() {
            true => false,
            false => match key.cmp(&self.last) {
                Ordering::Less => self.is_in_piece(key),
                order => order == Ordering::Equal,
            },
        }
    }

    /// Whether the key comes after all that are there.
    pub(crate) fn is_beyond(&self, key: &[u8]) -> bool {
        self.pieces.is_empty() || key > self.last.as_slice()
    }

    /// What it takes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// What one more key adds to it at most, if that is not a very long one.
    pub(crate) fn memory_bytes_of_next() -> usize {
        PIECE_BYTES + size_of::<Vec<u8>>()
    }

    /// Whether it has a few keys only.
    pub(crate) fn is_short(&self) -> bool {
        self.pieces.len() <= 1
    }

    /// Calls `each` with each key, as they came.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&[u8])) {
        let mut key = Vec::new();
        for piece in &self.pieces {
            let mut reader = Reader::new(piece);
            while let Some((shared, rest)) = next_key(&mut reader) {
                key.truncate(shared);
                key.extend_from_slice(rest);
                each(&key);
            }
        }
    }

    fn is_in_piece(&self, key: &[u8]) -> bool {
        let after = self.pieces.partition_point(|piece| first_of(piece).is_some_and(|first| first <= key));
        after
            .checked_sub(1)
            .and_then(|number| self.pieces.get(number))
            .is_some_and(|piece| has_key(piece, key))
    }
}

/// Whether the key is in this piece. Bytes are compared only where they say something new: `agreed` are those in which the key before, which is less,
/// agrees with the one that is looked for.
fn has_key(piece: &[u8], key: &[u8]) -> bool {
    let (mut reader, mut agreed) = (Reader::new(piece), 0);
    while let Some((shared, rest)) = next_key(&mut reader) {
        match shared.cmp(&agreed) {
            // It differs from the key in the same byte as the one before.
            Ordering::Greater => continue,
            // It is greater than the one before in a byte in which that agreed.
            Ordering::Less => return false,
            Ordering::Equal => {}
        }
        let wanted = &key[agreed..];
        let more = common_bytes(wanted, rest);
        match wanted[more..].cmp(&rest[more..]) {
            Ordering::Greater => agreed += more,
            order => return order == Ordering::Equal,
        }
    }
    false
}

fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A number of 64 bits takes no more.
const VARINT_MAX: usize = 10;
const WHAT: &str = "a key of a list";

fn put_key(piece: &mut Vec<u8>, shared: usize, rest: &[u8]) {
    put_varint(piece, shared as u64);
    put_bytes(piece, rest);
}

/// Of a piece that we wrote ourselves: `None` is its end.
fn next_key<'a>(reader: &mut Reader<'a>) -> Option<(usize, &'a [u8])> {
    let shared = reader.varint(WHAT).ok()?;
    let length = reader.varint(WHAT).ok()?;
    Some((shared as usize, reader.bytes(length as usize, WHAT).ok()?))
}

fn first_of(piece: &[u8]) -> Option<&[u8]> {
    next_key(&mut Reader::new(piece)).map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_takes_what_ascends_and_finds_each() {
        let (mut list, mut model) = (KeyList::default(), BTreeSet::new());
        assert!(!list.contains(b"") && list.is_beyond(b""));
        for n in 0..30_000u32 {
            // One in five falls behind; lengths from none to more than a piece.
            let number = if n % 5 == 4 { n / 2 } else { n };
            let tail = vec![b't'; if n % 997 == 3 { 3 * PIECE_BYTES } else { n as usize % 9 }];
            let key = if n == 0 { Vec::new() } else { [&number.to_be_bytes()[..], &tail].concat() };
            let ascends = model.last().is_none_or(|last| *last < key);
            assert_eq!(list.is_beyond(&key), ascends);
            assert_eq!(list.contains(&key), model.contains(&key));
            assert_eq!(list.push(&key), ascends);
            // Keys around it that are not there: shorter, longer, another byte.
            let near =
                |near: &[u8]| list.contains(near) == (model.contains(near) || (ascends && near == key));
            assert!(near(&key[..key.len().saturating_sub(1)]) && near(&[&key[..], b"x"].concat()));
            let mut other = key.clone();
            other.iter_mut().skip(n as usize % 4).take(1).for_each(|byte| *byte ^= 1);
            assert!(near(&other));
            if ascends {
                model.insert(key);
            }
        }
        assert!(model.iter().all(|key| list.contains(key)));
        let mut keys = Vec::new();
        list.for_each(|key| keys.push(key.to_vec()));
        assert!(keys.iter().eq(&model) && !list.is_short());
        let absent = |n: &u32| !model.contains(&n.to_be_bytes()[..]);
        assert!((0..30_000u32).filter(absent).all(|n| !list.contains(&n.to_be_bytes())));
    }

    #[test]
    fn numbers_that_ascend_take_a_few_bytes() {
        let mut list = KeyList::default();
        (0..100_000u64).for_each(|n| assert!(list.push(&n.to_be_bytes())));
        let bytes = list.memory_bytes();
        assert!((100_000 * 3..100_000 * 4).contains(&bytes), "{bytes}");
    }
}
