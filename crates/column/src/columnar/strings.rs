//! Streams of strings: one after another as a stream of bytes, or each coded for itself where nothing repeats in them, so that one can be
//! read without the others.
//!
//! ```text
//! in the head:  a stream of bytes                                            (streams.rs); or
//!               u8 5; the code                                               (huffman.rs)
//!               integers: bytes of the codes of each string; in the data: the codes
//! ```
//! How many strings there are, and how long each is, is never stored here: whoever reads them knows.
#![deny(clippy::indexing_slicing)]

use std::borrow::Cow;

use super::huffman::Code;
use super::ints;
use super::streams::{Source, Writer};
use crate::wire::DecodeError;
use crate::Compression;

const CODED: u8 = 5;
/// Fewer bytes are a stream of bytes.
const CODED_BYTES_MIN: usize = 512;
/// Coded strings may take so many sixty-fourths more than what a compression takes.
const CODED_EXTRA: usize = 2;

/// Writes strings of these lengths; `text` is all of them.
pub(crate) fn put(to: &mut Writer<'_>, text: &[u8], lengths: &[u64]) {
    let mark = to.mark();
    to.bytes(text);
    let took = to.since(mark);
    // What does not shrink at all can be read in parts as it is.
    let is_open = !to.is_common && matches!(to.compression, Compression::Zstd(_)) && took < text.len();
    if !is_open || text.len() < CODED_BYTES_MIN {
        return;
    }
    let Some(code) = Code::of(text) else { return };
    let most = took + took * CODED_EXTRA / 64;
    if code.bits(text) / 8 > most {
        return;
    }
    let other = to.back_to_keeping(mark);
    put_coded(to, &code, text, lengths);
    if to.since(mark) > most {
        to.back_to(mark);
        to.put_back(other);
    }
}

fn put_coded(to: &mut Writer<'_>, code: &Code, text: &[u8], lengths: &[u64]) {
    to.head.push(CODED);
    code.put(&mut to.head);
    let (encoder, mut coded, mut rest) = (code.encoder(), Vec::with_capacity(text.len()), text);
    let each = lengths.iter().map(|length| {
        let (string, others) = rest.split_at_checked(*length as usize).unwrap_or_default();
        rest = others;
        let start = coded.len();
        encoder.put(string, &mut coded);
        (coded.len() - start) as u64
    });
    let sizes: Vec<u64> = each.collect();
    ints::put(to, &sizes);
    to.data.extend_from_slice(&coded);
}

/// Reads strings of these lengths. Requires: their sum is bounded by what the caller has checked.
pub(crate) fn take<'a>(from: &mut Source<'a>, lengths: &[u64]) -> Result<Cow<'a, [u8]>, DecodeError> {
    let total = sum(lengths);
    let Some((code, sizes)) = take_coded(from, lengths.len())? else { return from.bytes(total) };
    let (decoder, mut text) = (code.decoder(total), vec![0; total]);
    let mut rest = &mut text[..];
    let mut next = |(size, length): (&u64, &u64)| {
        let coded = from.data.bytes(*size as usize, "codes of a string")?;
        let (place, others) = std::mem::take(&mut rest).split_at_mut(*length as usize);
        rest = others;
        Ok((coded, place))
    };
    let mut strings = sizes.iter().zip(lengths);
    while let Some(first) = strings.next() {
        let (coded, place) = next(first)?;
        match strings.next() {
            Some(second) => decoder.take_two([(coded, place), next(second)?])?,
            None => decoder.take(coded, place)?,
        }
    }
    Ok(Cow::Owned(text))
}

/// Reads string `at` of those of these lengths; what comes after them cannot be read then. Requires: as [`take`].
pub(crate) fn get<'a>(
    from: &mut Source<'a>,
    lengths: &[u64],
    at: usize,
) -> Result<Cow<'a, [u8]>, DecodeError> {
    let length = lengths.get(at).map_or(0, |length| *length as usize);
    let Some((code, sizes)) = take_coded(from, lengths.len())? else {
        let start = sum(lengths.get(..at).unwrap_or_default());
        return from.part(sum(lengths), start..start + length);
    };
    from.data.bytes(sum(sizes.get(..at).unwrap_or_default()), "codes of strings")?;
    let size = sizes.get(at).map_or(0, |size| *size as usize);
    let mut text = vec![0; length];
    code.decoder(length).take(from.data.bytes(size, "codes of a string")?, &mut text)?;
    Ok(Cow::Owned(text))
}

/// Goes past `count` strings of `total` bytes.
pub(crate) fn skip(from: &mut Source<'_>, count: usize, total: usize) -> Result<(), DecodeError> {
    match take_coded(from, count)? {
        None => from.skip_bytes(total),
        Some((_, sizes)) => from.data.bytes(sum(&sizes), "codes of strings").map(|_| ()),
    }
}

/// The code and the bytes of each string, if they are coded.
fn take_coded(from: &mut Source<'_>, count: usize) -> Result<Option<(Code, Vec<u64>)>, DecodeError> {
    let mut ahead = *from;
    if ahead.head.u8("place of strings")? != CODED {
        return Ok(None);
    }
    let code = Code::take(&mut ahead.head)?;
    let sizes = ints::take(&mut ahead, count)?;
    *from = ahead;
    Ok(Some((code, sizes)))
}

fn sum(lengths: &[u64]) -> usize {
    let total = lengths.iter().fold(0u64, |sum, length| sum.saturating_add(*length));
    usize::try_from(total).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]

    use super::*;
    use crate::compression::Compressor;

    /// Strings of these lengths, of bytes that nothing says.
    fn random(lengths: &[u64], symbols: u64) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'0' + ((state >> 33) % symbols) as u8
        };
        (0..sum(lengths)).map(|_| next()).collect()
    }

    /// Writes and reads; how many bytes they take, and whether they are coded.
    fn survive(text: &[u8], lengths: &[u64], compression: Compression) -> (usize, bool) {
        let mut compressor = Compressor::default();
        let mut to = Writer::new(compression, &mut compressor);
        put(&mut to, text, lengths);
        let source = || Source::new(&to.head, &to.data);
        let mut from = source();
        assert_eq!(take(&mut from, lengths).unwrap(), text);
        from.end().unwrap();
        let mut from = source();
        skip(&mut from, lengths.len(), text.len()).unwrap();
        from.end().unwrap();
        let mut start = 0;
        for (at, length) in lengths.iter().enumerate() {
            let end = start + *length as usize;
            assert_eq!(get(&mut source(), lengths, at).unwrap(), &text[start..end], "{at}");
            start = end;
        }
        (to.head.len() + to.data.len(), to.head.first() == Some(&CODED))
    }

    #[test]
    fn strings_in_which_nothing_repeats_are_coded_each_for_itself() {
        let zstd = Compression::Zstd(3);
        for (lengths, symbols) in [(vec![119; 80], 11), (vec![59; 300], 62), ((0..150).collect(), 26)] {
            let text = random(&lengths, symbols);
            let (took, is_coded) = survive(&text, &lengths, zstd);
            let bits = (symbols as f32).log2() + 0.25;
            assert!(
                is_coded && took as f32 <= text.len() as f32 * bits / 8.0 + 100.0,
                "{took} of {}",
                text.len()
            );
            assert!(!survive(&text, &lengths, Compression::Lz4).1);
            assert!(!survive(&text, &lengths, Compression::None).1);
        }
    }

    #[test]
    fn others_are_not() {
        let zstd = Compression::Zstd(3);
        let lengths = vec![100; 50];
        // What repeats, what does not shrink, what is only one byte, and what is short.
        let repeated = random(&[100], 50).repeat(50);
        let noise: Vec<u8> =
            (0..5000u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        for text in [&repeated[..], &noise, &[7; 5000]] {
            assert!(!survive(text, &lengths, zstd).1);
        }
        assert!(!survive(&random(&[200], 4), &[200], zstd).1);
        assert!(!survive(&[], &[], zstd).1);
        assert!(!survive(&[], &[0, 0], zstd).1);
    }

    #[test]
    fn damaged_ones_are_errors() {
        let lengths = vec![100; 50];
        let text = random(&lengths, 11);
        let mut compressor = Compressor::default();
        let mut to = Writer::new(Compression::Zstd(3), &mut compressor);
        put(&mut to, &text, &lengths);
        let short = to.data.len() - 1;
        assert!(take(&mut Source::new(&to.head, &to.data[..short]), &lengths).is_err());
        assert!(skip(&mut Source::new(&to.head, &to.data[..short]), 50, 5000).is_err());
        assert!(get(&mut Source::new(&to.head, &to.data[..short]), &lengths, 49).is_err());
        assert!(get(&mut Source::new(&to.head, &to.data), &[&lengths[..49], &[1000]].concat(), 49).is_err());
        for at in 0..to.head.len() {
            let mut head = to.head.clone();
            head[at] ^= 0x5a;
            let _ = take(&mut Source::new(&head, &to.data), &lengths);
            let _ = get(&mut Source::new(&head, &to.data), &lengths, 7);
        }
    }
}
