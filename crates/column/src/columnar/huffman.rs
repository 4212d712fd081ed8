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
    /// For the bytes of `text`; `None` if there are not two different ones.
    pub(crate) fn of(text: &[u8]) -> Option<Code> {
        let mut counts = [0u32; 256];
        for byte in text {
            if let Some(count) = counts.get_mut(usize::from(*byte)) {
                *count += 1;
            }
        }
        let mut symbols: Vec<(u32, u8)> = counts.iter().zip(0..=255).filter(|(n, _)| **n > 0).map(|(n, s)| (*n, s)).collect();
        if symbols.len() < 2 {
            return None;
        }
        symbols.sort_unstable();
        let depths = depths(&symbols.iter().map(|(count, _)| u64::from(*count)).collect::<Vec<_>>());
        let mut lengths = [0; 256];
        for ((_, symbol), depth) in symbols.iter().zip(limited(depths)) {
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
        out.extend(symbols.chunks(2).map(|pair| pair.iter().rev().fold(0, |byte, (_, length)| byte << 4 | length)));
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
        match entries <= ENTRIES {
            true => Ok(Code { lengths }),
            false => Err(DecodeError::new(what, format_args!("at most {ENTRIES} entries"), entries)),
        }
    }

    /// Bits that `text` takes.
    pub(crate) fn bits(&self, text: &[u8]) -> usize {
        let length = |byte: &u8| self.lengths.get(usize::from(*byte)).map_or(0, |length| usize::from(*length));
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

    pub(crate) fn decoder(&self) -> Decoder {
        let mut table = Box::new([Entry::default(); ENTRIES]);
        for (symbol, length, bits) in self.canonical() {
            let entries = table.iter_mut().skip(bits as usize).step_by(1 << length);
            entries.for_each(|entry| *entry = Entry { symbol, length });
        }
        Decoder { table }
    }

    fn symbols(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        self.lengths.iter().zip(0..=255).filter(|(length, _)| **length > 0).map(|(length, symbol)| (symbol, *length))
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

/// A length of 0: no code begins so.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    symbol: u8,
    length: u8,
}

/// What the next bits mean.
pub(crate) struct Decoder {
    table: Box<[Entry; ENTRIES]>,
}

/// So many codes lie in the 57 bits that are there after any bit of eight bytes.
const AT_ONCE: usize = 5;

impl Decoder {
    /// Appends the string of `len` bytes whose codes are `coded`, all of it.
    pub(crate) fn take(&self, coded: &[u8], len: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let wrong = || DecodeError::new("codes of a string", format_args!("{len} bytes"), format_args!("{} coded", coded.len()));
        // The shortest code has a bit: this bounds memory.
        if len > coded.len().saturating_mul(8) {
            return Err(wrong());
        }
        let mut bit = 0;
        let mut left = len;
        out.reserve(len);
        while left >= AT_ONCE {
            let Some(word) = coded.get(bit / 8..).and_then(|rest| rest.first_chunk()) else { break };
            let mut word = u64::from_le_bytes(*word) >> (bit % 8);
            let mut symbols = [0; AT_ONCE];
            let mut is_valid = true;
            for symbol in &mut symbols {
                let entry = self.entry(word);
                *symbol = entry.symbol;
                is_valid &= entry.length > 0;
                word >>= entry.length;
                bit += usize::from(entry.length);
            }
            if !is_valid {
                return Err(wrong());
            }
            out.extend_from_slice(&symbols);
            left -= AT_ONCE;
        }
        for _ in 0..left {
            let rest = coded.get(bit / 8..).unwrap_or_default().iter().take(8);
            let word = rest.rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
            let entry = self.entry(word >> (bit % 8));
            if entry.length == 0 {
                return Err(wrong());
            }
            out.push(entry.symbol);
            bit += usize::from(entry.length);
        }
        match bit.div_ceil(8) == coded.len() {
            true => Ok(()),
            false => Err(wrong()),
        }
    }

    #[inline(always)]
    fn entry(&self, word: u64) -> Entry {
        self.table.get(word as usize % ENTRIES).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
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
        let (encoder, decoder) = (code.encoder(), read.decoder());
        let mut total = head.len();
        for string in strings {
            let (mut coded, mut back) = (Vec::new(), b"before".to_vec());
            encoder.put(string, &mut coded);
            assert_eq!(coded.len(), code.bits(string).div_ceil(8));
            decoder.take(&coded, string.len(), &mut back).unwrap();
            assert_eq!(&back[6..], *string);
            if !string.is_empty() {
                coded.push(0);
                assert!(decoder.take(&coded, string.len(), &mut back).is_err(), "a byte too many");
            }
            total += coded.len();
        }
        total
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
        for head in [&[0u8][..], &[1, b'a', b'b', 0x10], &[1, b'a', b'b', 0x1c], &[1, b'a', b'a', 0x11], &[2, 1, 2, 3, 0x11, 1]] {
            assert!(Code::take(&mut Reader::new(head)).is_err(), "{head:?}");
        }
        // One that leaves bits without a meaning is taken; these bits are not.
        let code = Code::take(&mut Reader::new(&[1, b'a', b'b', 0x22])).unwrap();
        assert!(code.decoder().take(&[0xff], 1, &mut Vec::new()).is_err());
        assert!(code.decoder().take(&[0xff; 50], 100, &mut Vec::new()).is_err());
    }

    proptest! {
        #[test]
        fn strings_survive(strings in proptest::collection::vec(proptest::collection::vec(prop_oneof![4 => 0u8..5, 1 => any::<u8>()], 0..60), 1..30)) {
            survive(&strings.iter().map(|string| &string[..]).collect::<Vec<_>>());
        }

        #[test]
        fn arbitrary_bytes_never_panic(head in proptest::collection::vec(0u8..40, 0..60), coded in proptest::collection::vec(any::<u8>(), 0..60), len in 0usize..500) {
            if let Ok(code) = Code::take(&mut Reader::new(&head)) {
                let _ = code.decoder().take(&coded, len, &mut Vec::new());
            }
        }
    }
}
