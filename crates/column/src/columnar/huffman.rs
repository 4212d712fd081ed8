//! Bytes coded by how often they occur (Huffman 1952), so that each string can be decoded without those before it: where nothing repeats in
//! texts, that is all that any compression gains.
//!
//! Codes are canonical (of the same length in the order of the bytes) and at most 11 bits long, so a table of 2,048 entries decodes a byte in one
//! step.
//!
//! ```text
//! in the head:  u8 bytes that occur, less one; these bytes, ascending; the length of the code of each, two in a byte, the lower half first
//! ```
//! A string's codes follow one another from the lowest bit of its first byte on, each with its first bit lowest.
#![deny(clippy::indexing_slicing)]

use crate::wire::{DecodeError, Reader};

/// Longest code.
const BITS_MAX: u32 = 11;
const ENTRIES: usize = 1 << BITS_MAX;

/// The length of the code of each byte; 0 for those that do not occur.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    lengths: [u8; 256],
}

impl Code {
    /// For the bytes of `text`; `None` if there are not two different ones, or if they occur so unevenly that no complete code was found.
    pub(crate) fn of(text: &[u8]) -> Option<Code> {
        let mut counts = [0u32; 256];
        for byte in text {
            if let Some(count) = counts.get_mut(usize::from(*byte)) {
                *count += 1;
            }
        }
        let mut symbols: Vec<(u32, u8)> =
            counts.iter().zip(0..=255).filter(|(n, _)| **n > 0).map(|(n, s)| (*n, s)).collect();
        if symbols.len() < 2 {
            return None;
        }
        symbols.sort_unstable();
        let depths = limited(depths(&symbols.iter().map(|(count, _)| u64::from(*count)).collect::<Vec<_>>()));
        if depths.iter().map(|depth| ENTRIES >> depth).sum::<usize>() != ENTRIES {
            return None;
        }
        let mut lengths = [0; 256];
        for ((_, symbol), depth) in symbols.iter().zip(depths) {
            if let Some(length) = lengths.get_mut(usize::from(*symbol)) {
                *length = depth as u8;
            }
        }
        Some(Code { lengths })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let symbols: Vec<(u8, u8)> = self.symbols().collect();
        out.push((symbols.len() - 1) as u8);
        out.extend(symbols.iter().map(|(symbol, _)| symbol));
        out.extend(
            symbols.chunks(2).map(|pair| pair.iter().rev().fold(0, |byte, (_, length)| byte << 4 | length)),
        );
    }

    pub(crate) fn take(from: &mut Reader<'_>) -> Result<Code, DecodeError> {
        let what = "code of strings";
        let count = usize::from(from.u8(what)?) + 1;
        let symbols = from.bytes(count, what)?;
        let packed = from.bytes(count.div_ceil(2), what)?;
        let mut lengths = [0; 256];
        let mut entries = 0;
        for (at, symbol) in symbols.iter().enumerate() {
            let byte = packed.get(at / 2).copied().unwrap_or(0);
            let length = byte >> (at % 2 * 4) & 15;
            if length == 0 || u32::from(length) > BITS_MAX {
                return Err(DecodeError::new(what, "1 to 11 bits", length));
            }
            entries += ENTRIES >> length;
            match lengths.get_mut(usize::from(*symbol)) {
                Some(slot) if *slot == 0 => *slot = length,
                _ => return Err(DecodeError::new(what, "each byte once", symbol)),
            }
        }
        // Then any bits are the beginning of a code.
        match entries == ENTRIES {
            true => Ok(Code { lengths }),
            false => Err(DecodeError::new(what, format_args!("{ENTRIES} entries"), entries)),
        }
    }

    /// Bits that `text` takes.
    pub(crate) fn bits(&self, text: &[u8]) -> usize {
        let length =
            |byte: &u8| self.lengths.get(usize::from(*byte)).map_or(0, |length| usize::from(*length));
        text.iter().map(length).sum()
    }

    /// Appends the codes of strings one after another; of bytes that [`Code::of`] has seen.
    pub(crate) fn encoder(&self) -> Encoder {
        let mut codes = [(0, 0); 256];
        for (symbol, length, bits) in self.canonical() {
            if let Some(code) = codes.get_mut(usize::from(symbol)) {
                *code = (bits, u32::from(length));
            }
        }
        Encoder { codes }
    }

    /// What decodes `bytes` bytes of text: the more there are, the larger a table is worth being made.
    pub(crate) fn decoder(&self, bytes: usize) -> Decoder {
        let longest = u32::from(self.lengths.iter().copied().max().unwrap_or(1));
        let bits = if bytes < PAIRS_BYTES_MIN {
            longest
        } else if bytes < LARGE_BYTES_MIN {
            longest.max(PAIRS_BITS)
        } else {
            BITS_MAX
        };
        let mut table = vec![0; 1 << bits];
        for (symbol, length, code) in self.canonical() {
            let entry = u32::from(symbol) | u32::from(length) << TOTAL_AT | u32::from(length) << FIRST_AT;
            table.iter_mut().skip(code as usize).step_by(1 << length).for_each(|slot| *slot = entry);
        }
        if bytes >= PAIRS_BYTES_MIN {
            for at in (0..table.len()).rev() {
                let Some(entry) = table.get(at).map(|entry| Entry(*entry)) else { continue };
                // A smaller place in the table, and so not a pair yet.
                let Some(next) = table.get(at >> entry.first()).map(|entry| Entry(*entry)) else { continue };
                if let (true, Some(slot)) = (entry.first() + next.first() <= bits, table.get_mut(at)) {
                    *slot = entry.and(next);
                }
            }
        }
        Decoder { table: table.into_boxed_slice() }
    }

    fn symbols(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        self.lengths
            .iter()
            .zip(0..=255)
            .filter(|(length, _)| **length > 0)
            .map(|(length, symbol)| (symbol, *length))
    }

    /// Byte, length, and code with its first bit lowest, of each byte that occurs.
    fn canonical(&self) -> Vec<(u8, u8, u32)> {
        let mut symbols: Vec<(u8, u8)> = self.symbols().collect();
        symbols.sort_by_key(|(symbol, length)| (*length, *symbol));
        let (mut next, mut last) = (0u32, 0u8);
        let code = |(symbol, length): (u8, u8)| {
            next <<= length - last;
            last = length;
            let bits = next.reverse_bits() >> (u32::BITS - u32::from(length));
            next += 1;
            (symbol, length, bits)
        };
        symbols.into_iter().map(code).collect()
    }
}

/// The depth of each of these counts, which ascend, in the tree of least weight: two queues, of leaves and of nodes, both ascending.
fn depths(counts: &[u64]) -> Vec<u32> {
    let leaves = counts.len();
    let mut weights = counts.to_vec();
    let mut parents = vec![0; 2 * leaves - 1];
    let (mut leaf, mut node) = (0, leaves);
    for parent in leaves..2 * leaves - 1 {
        let mut take = || {
            let (a, b) = (weights.get(leaf).filter(|_| leaf < leaves), weights.get(node));
            let from_leaves = b.is_none_or(|b| a.is_some_and(|a| a <= b));
            let at = if from_leaves { &mut leaf } else { &mut node };
            *at += 1;
            let child = *at - 1;
            if let Some(slot) = parents.get_mut(child) {
                *slot = parent;
            }
            weights.get(child).copied().unwrap_or(0)
        };
        let weight = take() + take();
        weights.push(weight);
    }
    let mut depths = vec![0u32; 2 * leaves - 1];
    for child in (0..2 * leaves - 2).rev() {
        let above = parents.get(child).and_then(|parent| depths.get(*parent)).copied().unwrap_or(0);
        if let Some(depth) = depths.get_mut(child) {
            *depth = above + 1;
        }
    }
    depths.truncate(leaves);
    depths
}

/// No code longer than allowed: the others make room, the longest and rarest first. Depths descend.
fn limited(mut depths: Vec<u32>) -> Vec<u32> {
    depths.iter_mut().for_each(|depth| *depth = (*depth).min(BITS_MAX));
    let entries = |depth: u32| ENTRIES >> depth;
    let mut used: usize = depths.iter().map(|depth| entries(*depth)).sum();
    while used > ENTRIES {
        // At most 256 bytes: there is always one that can be longer.
        let Some(depth) = depths.iter_mut().find(|depth| **depth < BITS_MAX) else { break };
        used -= entries(*depth) - entries(*depth + 1);
        *depth += 1;
    }
    // What is left over goes to the most frequent.
    for depth in depths.iter_mut().rev() {
        while *depth > 1 && used + entries(*depth) <= ENTRIES {
            used += entries(*depth);
            *depth -= 1;
        }
    }
    depths
}

/// Code and length of each byte.
pub(crate) struct Encoder {
    codes: [(u32, u32); 256],
}

impl Encoder {
    /// Appends the codes of a string, up to a whole byte.
    pub(crate) fn put(&self, string: &[u8], out: &mut Vec<u8>) {
        let (mut waiting, mut count) = (0u64, 0);
        for byte in string {
            let (code, length) = self.codes.get(usize::from(*byte)).copied().unwrap_or_default();
            waiting |= u64::from(code) << count;
            count += length;
            while count >= 8 {
                out.push(waiting as u8);
                waiting >>= 8;
                count -= 8;
            }
        }
        if count > 0 {
            out.push(waiting as u8);
        }
    }
}

/// Of so many bytes two are decoded in one step where their codes are short, by tables of at least so many bits; of even more, by the largest.
const PAIRS_BYTES_MIN: usize = 1024;
const PAIRS_BITS: u32 = 8;
const LARGE_BYTES_MIN: usize = 32 << 10;

/// What bits mean: the byte that they begin with, the one after it if all of its code is there, how many bits both take, and how many the first.
#[derive(Clone, Copy)]
struct Entry(u32);

const TOTAL_AT: u32 = 16;
const FIRST_AT: u32 = 24;

impl Entry {
    #[inline(always)]
    fn bytes(self) -> [u8; 2] {
        (self.0 as u16).to_le_bytes()
    }

    #[inline(always)]
    fn total(self) -> u32 {
        self.0 >> TOTAL_AT & 0xff
    }

    #[inline(always)]
    fn first(self) -> u32 {
        self.0 >> FIRST_AT
    }

    /// Of how many bytes.
    #[inline(always)]
    fn count(self) -> usize {
        1 + usize::from(self.total() != self.first())
    }

    fn and(self, next: Entry) -> u32 {
        let total = self.first() + next.first();
        self.0 & !(0xff << TOTAL_AT) | (next.0 & 0xff) << 8 | total << TOTAL_AT
    }
}

/// What the next bits mean, for as many bits as the table has entries for.
pub(crate) struct Decoder {
    table: Box<[u32]>,
}

/// So many entries lie in the 57 bits that are there after any bit of eight bytes.
const AT_ONCE: usize = 5;

/// A string that is being decoded.
struct Lane<'c, 'o> {
    coded: &'c [u8],
    /// Bits that were read, and bytes written.
    bit: usize,
    at: usize,
    out: &'o mut [u8],
}

impl Lane<'_, '_> {
    /// Whether as many bytes are still to be written as can be decoded at once.
    #[inline(always)]
    fn is_long(&self) -> bool {
        self.out.len() - self.at >= 2 * AT_ONCE
    }

    #[inline(always)]
    fn put(&mut self, entry: Entry) {
        if let Some(place) = self.out.get_mut(self.at..self.at + 2) {
            place.copy_from_slice(&entry.bytes());
        }
        self.at += entry.count();
        self.bit += entry.total() as usize;
    }

    /// At least 57 of the next bits, zeros behind the end.
    #[inline(always)]
    fn word(&self) -> u64 {
        let rest = self.coded.get(self.bit / 8..).unwrap_or_default();
        let bytes = match rest.first_chunk() {
            Some(bytes) => *bytes,
            None => {
                let mut bytes = [0; 8];
                bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                bytes
            }
        };
        u64::from_le_bytes(bytes) >> (self.bit % 8)
    }
}

impl Decoder {
    /// Decodes a string to all of `out`, from all of its codes.
    pub(crate) fn take(&self, coded: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
        self.finish(Lane { coded, bit: 0, at: 0, out })
    }

    /// The same of two strings. Each code begins where the one before it ends, so that of one string alone the processor would wait at every step.
    pub(crate) fn take_two(&self, strings: [(&[u8], &mut [u8]); 2]) -> Result<(), DecodeError> {
        let [mut a, mut b] = strings.map(|(coded, out)| Lane { coded, bit: 0, at: 0, out });
        while a.is_long() && b.is_long() {
            let (mut word_a, mut word_b) = (a.word(), b.word());
            for _ in 0..AT_ONCE {
                let (entry_a, entry_b) = (self.entry(word_a), self.entry(word_b));
                a.put(entry_a);
                b.put(entry_b);
                word_a >>= entry_a.total();
                word_b >>= entry_b.total();
            }
        }
        self.finish(a)?;
        self.finish(b)
    }

    fn finish(&self, mut lane: Lane<'_, '_>) -> Result<(), DecodeError> {
        while lane.is_long() {
            let mut word = lane.word();
            for _ in 0..AT_ONCE {
                let entry = self.entry(word);
                lane.put(entry);
                word >>= entry.total();
            }
        }
        let Lane { coded, at, out, .. } = &mut lane;
        let (coded, rest) = (coded.len(), std::mem::take(out).get_mut(*at..).unwrap_or_default());
        for places in rest.chunks_mut(AT_ONCE) {
            let mut word = lane.word();
            for place in places {
                let entry = self.entry(word);
                [*place, _] = entry.bytes();
                word >>= entry.first();
                lane.bit += entry.first() as usize;
            }
        }
        match lane.bit.div_ceil(8) == coded {
            true => Ok(()),
            false => Err(DecodeError::new(
                "codes of a string",
                format_args!("{coded} bytes"),
                lane.bit.div_ceil(8),
            )),
        }
    }

    #[inline(always)]
    fn entry(&self, word: u64) -> Entry {
        // As many entries as a power of two.
        let mask = self.table.len().wrapping_sub(1);
        Entry(self.table.get(word as usize & mask).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]

    use super::*;
    use proptest::prelude::*;

    fn survive(strings: &[&[u8]]) -> usize {
        let text = strings.concat();
        let Some(code) = Code::of(&text) else { return 0 };
        let mut head = Vec::new();
        code.put(&mut head);
        let mut reader = Reader::new(&head);
        let read = Code::take(&mut reader).unwrap();
        reader.end("code").unwrap();
        assert_eq!(read, code);
        let (encoder, total_bytes) = (code.encoder(), strings.iter().map(|string| string.len()).sum());
        for bytes in [total_bytes, 1, PAIRS_BYTES_MIN, LARGE_BYTES_MIN] {
            check_decoder(strings, &encoder, &code, &read.decoder(bytes));
        }
        head.len() + strings.iter().map(|string| code.bits(string).div_ceil(8)).sum::<usize>()
    }

    fn check_decoder(strings: &[&[u8]], encoder: &Encoder, code: &Code, decoder: &Decoder) {
        let code_of = |string: &&[u8]| {
            let mut coded = Vec::new();
            encoder.put(string, &mut coded);
            assert_eq!(coded.len(), code.bits(string).div_ceil(8));
            coded
        };
        let coded: Vec<Vec<u8>> = strings.iter().map(code_of).collect();
        let mut back: Vec<Vec<u8>> = strings.iter().map(|string| vec![0; string.len()]).collect();
        for (string, coded) in strings.iter().zip(&coded) {
            let mut back = vec![0; string.len()];
            decoder.take(coded, &mut back).unwrap();
            assert_eq!(&back, string);
            assert!(decoder.take(&[&coded[..], &[0]].concat(), &mut back).is_err(), "a byte too many");
        }
        for (coded, back) in coded.chunks(2).zip(back.chunks_mut(2)) {
            if let ([a, b], [x, y]) = (coded, back) {
                decoder.take_two([(a, &mut x[..]), (b, &mut y[..])]).unwrap();
            }
        }
        let whole = strings.len() / 2 * 2;
        assert!(back.iter().zip(strings).take(whole).all(|(back, string)| back == string));
    }

    #[test]
    fn digits_take_about_what_they_say() {
        let mut state = 7u64;
        let mut digit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'0' + (state >> 33) as u8 % 10
        };
        let text: Vec<u8> = (0..10_000).map(|_| digit()).collect();
        let strings: Vec<&[u8]> = text.chunks(100).collect();
        let total = survive(&strings);
        assert!(total < 10_000 * 45 / 100, "{total}");
    }

    #[test]
    fn codes_of_very_uneven_frequencies_are_not_longer_than_allowed() {
        let mut text = Vec::new();
        for symbol in 0..20u8 {
            text.resize(text.len() + (1 << symbol), symbol);
        }
        survive(&[&text]);
        let all: Vec<u8> = (0..=255).collect();
        survive(&[&all, b"", &[0; 5000], &all]);
    }

    #[test]
    fn a_code_that_none_would_make_is_refused() {
        assert!(Code::of(b"").is_none() && Code::of(b"aaaa").is_none());
        for head in [
            &[0u8][..],
            &[1, b'a', b'b', 0x10],
            &[1, b'a', b'b', 0x1c],
            &[1, b'a', b'a', 0x11],
            &[2, 1, 2, 3, 0x11, 1],
            &[1, b'a', b'b', 0x22],
        ] {
            assert!(Code::take(&mut Reader::new(head)).is_err(), "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn strings_survive(strings in proptest::collection::vec(proptest::collection::vec(prop_oneof![4 => 0u8..5, 1 => any::<u8>()], 0..60), 1..30)) {
            survive(&strings.iter().map(|string| &string[..]).collect::<Vec<_>>());
        }

        #[test]
        fn arbitrary_bytes_never_panic(head in proptest::collection::vec(0u8..40, 0..60), coded in proptest::collection::vec(any::<u8>(), 0..60), len in 0usize..500) {
            if let Ok(code) = Code::take(&mut Reader::new(&head)) {
                let _ = code.decoder(len * 50).take(&coded, &mut vec![0; len]);
                let _ = code.decoder(len).take_two([(&coded, &mut vec![0; len][..]), (&coded[..coded.len() / 2], &mut vec![0; len][..])]);
            }
        }
    }
}
