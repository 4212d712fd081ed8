//! Finds keys of a few words: open addressing, with a part of the hash (the tag) beside each entry's number.
//!
//! Keys lie one after the other in a vector of the caller's; the table has their numbers. A key's place is the highest bits of its tag: a table that
//! grows needs no keys, and is gone over in the order of both. A lookup of many keys goes in two
//! steps, so that the processor waits for several of them at once: the first reads a slot for each key, without a branch, the
//! second compares (Boncz et al., "MonetDB/X100", CIDR 2005; the tag is that of Kersten et al., VLDB 2018).

/// Runs an expression with the constant `$wide`: the number of words of a key, or 0 where it is not a common one.
macro_rules! with_width {
    ($width:expr, $wide:ident => $run:expr) => {
        match $width {
            1 => {
                const $wide: usize = 1;
                $run
            }
            2 => {
                const $wide: usize = 2;
                $run
            }
            3 => {
                const $wide: usize = 3;
                $run
            }
            4 => {
                const $wide: usize = 4;
                $run
            }
            5 => {
                const $wide: usize = 5;
                $run
            }
            _ => {
                const $wide: usize = 0;
                $run
            }
        }
    };
}
pub(crate) use with_width;

/// There is no entry.
pub(crate) const NO_ENTRY: u32 = u32::MAX;

/// Its tag is that of no hash that is looked up: bits are all set only where there is nothing.
const EMPTY: u64 = u64::MAX;

/// Keys that are looked up at once.
const AT_ONCE: usize = 1024;

/// See the head of this file.
#[derive(Clone, Debug)]
pub(crate) struct WordTable {
    /// Tag in the upper half, number in the lower.
    slots: Vec<u64>,
    /// A hash is shifted by so much for its place.
    shift: u32,
    len: usize,
}

/// The key with this number.
#[inline(always)]
pub(crate) fn key_at<const W: usize>(words: &[u64], width: usize, number: usize) -> &[u64] {
    let width = if W == 0 { width } else { W };
    &words[number * width..(number + 1) * width]
}

#[inline(always)]
pub(crate) fn is_same<const W: usize>(a: &[u64], b: &[u64]) -> bool {
    if W == 0 {
        return a == b;
    }
    (0..W).fold(0, |differs, at| differs | (a[at] ^ b[at])) == 0
}

/// Of the words of a key.
#[inline(always)]
pub(crate) fn hash_of<const W: usize>(words: &[u64]) -> u64 {
    let mut hash = 0x9e37_79b9_7f4a_7c15u64;
    let count = if W == 0 { words.len() } else { W };
    for word in &words[..count] {
        let mixed = u128::from(hash ^ word) * 0xd6e8_feb8_6659_fd93u128;
        hash = (mixed as u64) ^ (mixed >> 64) as u64;
    }
    hash ^ hash >> 32
}

#[inline(always)]
fn slot_of(hash: u64, number: u32) -> u64 {
    hash & !u64::from(u32::MAX) | u64::from(number)
}

#[inline(always)]
fn has_tag(slot: u64, hash: u64) -> bool {
    (slot ^ hash) >> 32 == 0
}

impl WordTable {
    /// With room for so many keys.
    pub(crate) fn new(keys: usize) -> WordTable {
        let size = (keys * 2).next_power_of_two().clamp(16, 1 << 32);
        WordTable { slots: vec![EMPTY; size], shift: 64 - size.trailing_zeros(), len: 0 }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * 8
    }

    #[inline(always)]
    fn place_of(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline(always)]
    fn behind(&self, place: usize) -> usize {
        (place + 1) & (self.slots.len() - 1)
    }

    /// The number of a key whose hash this is; the slot that `first` has read is looked at before others.
    #[inline(always)]
    fn find<const W: usize>(
        &self,
        (key, hash, first): (&[u64], u64, u64),
        (known, width): (&[u64], usize),
    ) -> u32 {
        let mut place = self.place_of(hash);
        let mut slot = first;
        loop {
            // An empty slot is found by its number: the tag may be that of a hash.
            let number = slot as u32;
            if number == NO_ENTRY {
                return NO_ENTRY;
            }
            if has_tag(slot, hash) && is_same::<W>(key_at::<W>(known, width, number as usize), key) {
                return number;
            }
            place = self.behind(place);
            slot = self.slots[place];
        }
    }

    /// Gives the numbers of keys, one after the other, to `take`; [`NO_ENTRY`] where there is none.
    pub(crate) fn find_all<const W: usize>(
        &self,
        words: &[u64],
        (known, width): (&[u64], usize),
        mut take: impl FnMut(u32),
    ) {
        let (mut hashes, mut firsts) = ([0u64; AT_ONCE], [0u64; AT_ONCE]);
        let step = if W == 0 { width } else { W };
        for chunk in words.chunks(AT_ONCE * step) {
            let count = chunk.len() / step;
            for row in 0..count {
                let hash = hash_of::<W>(key_at::<W>(chunk, width, row));
                hashes[row] = hash;
                firsts[row] = self.slots[self.place_of(hash)];
            }
            for row in 0..count {
                let sought = (key_at::<W>(chunk, width, row), hashes[row], firsts[row]);
                take(self.find::<W>(sought, (known, width)));
            }
        }
    }

    /// Puts the number of a key that is not there where it is looked up.
    #[inline]
    fn add(&mut self, number: u32, hash: u64) {
        let mut place = self.place_of(hash);
        while self.slots[place] as u32 != NO_ENTRY {
            place = self.behind(place);
        }
        self.slots[place] = slot_of(hash, number);
        self.len += 1;
    }

    /// Gives the number of each key to `take`; those that are new are added to `known`, and get the next number.
    pub(crate) fn find_or_add<const W: usize>(
        &mut self,
        words: &[u64],
        (known, width): (&mut Vec<u64>, usize),
        mut take: impl FnMut(u32),
    ) {
        let (mut hashes, mut firsts) = ([0u64; AT_ONCE], [0u64; AT_ONCE]);
        let step = if W == 0 { width } else { W };
        for chunk in words.chunks(AT_ONCE * step) {
            let count = chunk.len() / step;
            self.reserve(count);
            for row in 0..count {
                let hash = hash_of::<W>(key_at::<W>(chunk, width, row));
                hashes[row] = hash;
                firsts[row] = self.slots[self.place_of(hash)];
            }
            let mut last = NO_ENTRY;
            for row in 0..count {
                let key = key_at::<W>(chunk, width, row);
                // Rows that belong together often follow each other.
                let is_last = row > 0 && is_same::<W>(key, key_at::<W>(chunk, width, row - 1));
                if !is_last {
                    // What was read before may be out of date only where it was empty: then it is looked up anew.
                    last = self.find::<W>((key, hashes[row], firsts[row]), (known, width));
                    if last == NO_ENTRY {
                        last = self.find_now::<W>(key, hashes[row], (known, width));
                    }
                    if last == NO_ENTRY {
                        last = self.len as u32;
                        known.extend_from_slice(key);
                        self.add(last, hashes[row]);
                    }
                }
                take(last);
            }
        }
    }

    #[inline(never)]
    fn find_now<const W: usize>(&self, key: &[u64], hash: u64, known: (&[u64], usize)) -> u32 {
        self.find::<W>((key, hash, self.slots[self.place_of(hash)]), known)
    }

    /// Makes room for so many keys more.
    fn reserve(&mut self, more: usize) {
        if (self.len + more) * 2 <= self.slots.len() {
            return;
        }
        let mut larger = WordTable::new((self.len + more) * 2);
        for slot in self.slots.iter().filter(|slot| **slot as u32 != NO_ENTRY) {
            // The rest of the hash has no say in the place.
            larger.add(*slot as u32, *slot);
        }
        *self = larger;
    }

    /// How many different keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const W: usize>(width: usize) {
        // Few different words, so that most keys come again, and many keys differ in one word only.
        let word = |at: usize| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        let words: Vec<u64> = (0..5000 * width).map(word).collect();
        let (mut table, mut known, mut found) = (WordTable::new(0), Vec::new(), Vec::new());
        table.find_or_add::<W>(&words, (&mut known, width), |number| found.push(number));
        let mut model: Vec<&[u64]> = Vec::new();
        let expected: Vec<u32> = words
            .chunks_exact(width)
            .map(|key| {
                let number = model.iter().position(|known| *known == key);
                number.unwrap_or_else(|| {
                    model.push(key);
                    model.len() - 1
                }) as u32
            })
            .collect();
        assert_eq!((found, table.len()), (expected.clone(), model.len()));
        let mut again = Vec::new();
        table.find_all::<W>(&words, (&known, width), |number| again.push(number));
        assert_eq!(again, expected);
        let mut none = Vec::new();
        table.find_all::<W>(&vec![99; width], (&known, width), |number| none.push(number));
        assert_eq!(none, [NO_ENTRY]);
    }

    #[test]
    fn keys_of_all_widths_get_one_number_each() {
        for width in 1..=7 {
            with_width!(width, W => check::<W>(width));
        }
    }
}
