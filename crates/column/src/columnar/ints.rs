//! Streams of unsigned integers: the cheapest of constant, runs, differences, bits, bytes.
//!
//! ```text
//! in the head:  u8 form, then
//!   0 constant     varint value
//!   1 bits         varint least, u8 bits (1 to 32); bytes: value - least of each, lowest bit first
//!   2 bytes        varint least; bytes: value - least of each, one byte each
//!   3 split        varint least; bytes: lowest byte of value - least of each; integers: the rest of it
//!   4 differences  varint first; integers: zigzag difference of each to the one before, one fewer
//!   5 runs         varint runs; integers: value of each; integers: length - 1 of each
//! ```
//! How many there are is never stored: whoever reads them knows.
#![deny(clippy::indexing_slicing)]

use super::streams::{Source, Writer};
use crate::compression::bits_of;
use crate::wire::DecodeError;

const CONSTANT: u8 = 0;
const BITS: u8 = 1;
const BYTES: u8 = 2;
const SPLIT: u8 = 3;
const DIFFERENCES: u8 = 4;
const RUNS: u8 = 5;

/// Wider values are split first.
const PACKED_BITS_MAX: u32 = 32;
/// Splits of eight bytes, below differences of runs.
const DEPTH_MAX: u32 = 12;
/// Runs must be this long on average to be written as such.
const RUN_ROWS_MIN: usize = 6;

/// What may still be tried in a nested stream.
#[derive(Clone, Copy)]
struct Tried {
    differences: bool,
    runs: bool,
}

/// Writes `values`.
pub(crate) fn put(to: &mut Writer<'_>, values: &[u64]) {
    put_form(to, values, Tried { differences: true, runs: true });
}

fn put_form(to: &mut Writer<'_>, values: &[u64], tried: Tried) {
    if values.is_empty() {
        return put_constant(to, 0);
    }
    let bounds = |(least, most): (u64, u64), value: &u64| (least.min(*value), most.max(*value));
    let (least, most) = values.iter().fold((u64::MAX, 0), bounds);
    let bits = width(most - least);
    if bits == 0 {
        return put_constant(to, least);
    }
    if tried.runs && put_runs(to, values, tried) {
        return;
    }
    if tried.differences && put_differences(to, values, bits) {
        return;
    }
    put_packed(to, values, least, bits);
}

/// Writes the same value so many times as there are.
pub(crate) fn put_constant(to: &mut Writer<'_>, value: u64) {
    to.head.push(CONSTANT);
    to.varint(value);
}

/// Bits that a value takes.
fn width(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

fn zigzag(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

fn unzigzag(from: u64, code: u64) -> u64 {
    from.wrapping_add((code >> 1) ^ (code & 1).wrapping_neg())
}

fn put_runs(to: &mut Writer<'_>, values: &[u64], tried: Tried) -> bool {
    let changes = values.iter().zip(values.iter().skip(1)).filter(|(a, b)| a != b).count();
    if (changes + 1) * RUN_ROWS_MIN > values.len() {
        return false;
    }
    let (mut firsts, mut lengths) = (Vec::with_capacity(changes + 1), Vec::with_capacity(changes + 1));
    for run in values.chunk_by(|a, b| a == b) {
        firsts.extend(run.first());
        lengths.push(run.len() as u64 - 1);
    }
    to.head.push(RUNS);
    to.varint(firsts.len() as u64);
    put_form(to, &firsts, Tried { runs: false, ..tried });
    put_form(to, &lengths, Tried { runs: false, differences: false });
    true
}

/// Where differences take fewer bits than the values.
fn put_differences(to: &mut Writer<'_>, values: &[u64], bits: u32) -> bool {
    let Some((first, rest)) = values.split_first().filter(|(_, rest)| !rest.is_empty()) else { return false };
    let mut last = *first;
    let mut differences = Vec::with_capacity(rest.len());
    let (mut least, mut most) = (u64::MAX, 0);
    for (at, value) in rest.iter().enumerate() {
        let difference = zigzag(last, *value);
        (least, most) = (least.min(difference), most.max(difference));
        // A look at the first ones is mostly enough to see that there is nothing to gain.
        if at == 64 && width(most - least) >= bits {
            return false;
        }
        differences.push(difference);
        last = *value;
    }
    if width(most - least) + 1 >= bits {
        return false;
    }
    to.head.push(DIFFERENCES);
    to.varint(*first);
    put_form(to, &differences, Tried { differences: false, runs: true });
    true
}

fn put_packed(to: &mut Writer<'_>, values: &[u64], least: u64, bits: u32) {
    let packed_bytes = (values.len() * bits as usize).div_ceil(8);
    if bits > 8 {
        let mark = to.mark();
        put_split(to, values, least);
        if bits <= PACKED_BITS_MAX && to.since(mark) >= packed_bytes + 4 {
            to.back_to(mark);
            put_bits(to, values, least, bits);
        }
        return;
    }
    let bytes: Vec<u8> = values.iter().map(|value| (value - least) as u8).collect();
    if to.compression == crate::Compression::None || !is_uneven(&bytes, bits) {
        return put_bits(to, values, least, bits);
    }
    let mark = to.mark();
    to.head.push(BYTES);
    to.varint(least);
    to.bytes(&bytes);
    if to.since(mark) >= packed_bytes {
        to.back_to(mark);
        put_bits(to, values, least, bits);
    }
}

/// Whether values of `bits` bits may take clearly less than that: some are frequent, or repeat.
fn is_uneven(bytes: &[u8], bits: u32) -> bool {
    let mut counts = [0u32; 256];
    let mut last = None;
    let mut repeats = 0;
    for byte in bytes {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
        repeats += usize::from(last == Some(byte));
        last = Some(byte);
    }
    repeats * 3 > bytes.len()
        || bits_of(counts.iter().copied(), bytes.len()) + 300.0 < (bits as usize * bytes.len()) as f32 * 0.96
}

fn put_split(to: &mut Writer<'_>, values: &[u64], least: u64) {
    to.head.push(SPLIT);
    to.varint(least);
    let low: Vec<u8> = values.iter().map(|value| (value - least) as u8).collect();
    to.bytes(&low);
    let rest: Vec<u64> = values.iter().map(|value| (value - least) >> 8).collect();
    put_form(to, &rest, Tried { differences: false, runs: true });
}

fn put_bits(to: &mut Writer<'_>, values: &[u64], least: u64, bits: u32) {
    to.head.push(BITS);
    to.varint(least);
    to.head.push(bits as u8);
    let mut out = Vec::with_capacity((values.len() * bits as usize).div_ceil(8));
    let (mut waiting, mut count) = (0u64, 0);
    for value in values {
        waiting |= (value - least) << count;
        count += bits;
        while count >= 8 {
            out.push(waiting as u8);
            waiting >>= 8;
            count -= 8;
        }
    }
    if count > 0 {
        out.push(waiting as u8);
    }
    to.dense_bytes(&out);
}

/// Reads `count` integers. Requires: `count` is bounded by what the caller has checked.
pub(crate) fn take(from: &mut Source<'_>, count: usize) -> Result<Vec<u64>, DecodeError> {
    take_form(from, count, 0)
}

fn take_form(from: &mut Source<'_>, count: usize, depth: u32) -> Result<Vec<u64>, DecodeError> {
    let what = "integers";
    if depth > DEPTH_MAX {
        return Err(DecodeError::new(what, "fewer forms in forms", depth));
    }
    match from.head.u8(what)? {
        CONSTANT => Ok(vec![from.head.varint(what)?; count]),
        BITS => {
            let least = from.head.varint(what)?;
            let bits = u32::from(from.head.u8(what)?);
            if bits == 0 || bits > PACKED_BITS_MAX {
                return Err(DecodeError::new("bits of an integer", "1 to 32", bits));
            }
            let bytes = from.bytes((count * bits as usize).div_ceil(8))?;
            Ok(unpack(&bytes, bits, least, count))
        }
        BYTES => {
            let least = from.head.varint(what)?;
            let bytes = from.bytes(count)?;
            Ok(bytes.iter().map(|byte| least.wrapping_add(u64::from(*byte))).collect())
        }
        SPLIT => {
            let least = from.head.varint(what)?;
            let low = from.bytes(count)?;
            let mut values = take_form(from, count, depth + 1)?;
            for (value, low) in values.iter_mut().zip(low.iter()) {
                *value = least.wrapping_add(*value << 8 | u64::from(*low));
            }
            Ok(values)
        }
        DIFFERENCES => {
            let Some(rest) = count.checked_sub(1) else {
                return Err(DecodeError::new(what, "values", "differences of none"));
            };
            let mut last = from.head.varint(what)?;
            let mut values = Vec::with_capacity(count);
            values.push(last);
            for code in take_form(from, rest, depth + 1)? {
                last = unzigzag(last, code);
                values.push(last);
            }
            Ok(values)
        }
        RUNS => take_runs(from, count, depth),
        other => Err(DecodeError::new("form of integers", "0 to 5", other)),
    }
}

/// Number `at` of the `count` that [`take`] would read; what comes after them cannot be read then. A stream that is compressed is decompressed.
pub(crate) fn get(from: &mut Source<'_>, count: usize, at: usize) -> Result<u64, DecodeError> {
    get_form(from, count, at, 0)
}

fn get_form(from: &mut Source<'_>, count: usize, at: usize, depth: u32) -> Result<u64, DecodeError> {
    let what = "integers";
    let missing = || DecodeError::new(what, format_args!("more than {at}"), count);
    if at >= count || depth > DEPTH_MAX {
        return Err(missing());
    }
    let mut ahead = *from;
    match ahead.head.u8(what)? {
        CONSTANT => ahead.head.varint(what),
        BITS => {
            let least = ahead.head.varint(what)?;
            let bits = u32::from(ahead.head.u8(what)?);
            if bits == 0 || bits > PACKED_BITS_MAX {
                return Err(DecodeError::new("bits of an integer", "1 to 32", bits));
            }
            let total = (count * bits as usize).div_ceil(8);
            let start = at * bits as usize / 8;
            let bytes = ahead.part(total, start..total.min(start + 8))?;
            Ok(unpack_one(&bytes, bits, least, at * bits as usize % 8))
        }
        BYTES => {
            let least = ahead.head.varint(what)?;
            let byte = ahead.part(count, at..at + 1)?.first().copied();
            Ok(least.wrapping_add(u64::from(byte.ok_or_else(missing)?)))
        }
        SPLIT => {
            let least = ahead.head.varint(what)?;
            let low = ahead.part(count, at..at + 1)?.first().copied().ok_or_else(missing)?;
            let rest = get_form(&mut ahead, count, at, depth + 1)?;
            Ok(least.wrapping_add(rest << 8 | u64::from(low)))
        }
        // Those before it say what it is.
        _ => take_form(from, count, depth)?.get(at).copied().ok_or_else(missing),
    }
}

/// Goes past what [`take`] would read, without decompressing it.
pub(crate) fn skip(from: &mut Source<'_>, count: usize) -> Result<(), DecodeError> {
    skip_form(from, count, 0)
}

fn skip_form(from: &mut Source<'_>, count: usize, depth: u32) -> Result<(), DecodeError> {
    let what = "integers";
    if depth > DEPTH_MAX {
        return Err(DecodeError::new(what, "fewer forms in forms", depth));
    }
    let form = from.head.u8(what)?;
    if form != RUNS {
        from.head.varint(what)?;
    }
    match form {
        CONSTANT => Ok(()),
        BITS => {
            let bits = usize::from(from.head.u8(what)?);
            from.skip_bytes((count * bits).div_ceil(8))
        }
        BYTES => from.skip_bytes(count),
        SPLIT => {
            from.skip_bytes(count)?;
            skip_form(from, count, depth + 1)
        }
        DIFFERENCES => skip_form(from, count.saturating_sub(1), depth + 1),
        RUNS => {
            let runs = from.count(count, "runs")?;
            skip_form(from, runs, depth + 1)?;
            skip_form(from, runs, depth + 1)
        }
        other => Err(DecodeError::new("form of integers", "0 to 5", other)),
    }
}

fn take_runs(from: &mut Source<'_>, count: usize, depth: u32) -> Result<Vec<u64>, DecodeError> {
    let runs = from.count(count, "runs")?;
    let firsts = take_form(from, runs, depth + 1)?;
    let lengths = take_form(from, runs, depth + 1)?;
    let mut values = Vec::with_capacity(count);
    for (value, length) in firsts.iter().zip(&lengths) {
        let left = count - values.len();
        if *length >= left as u64 {
            return Err(DecodeError::new("length of a run", format_args!("below {left}"), length));
        }
        values.resize(values.len() + *length as usize + 1, *value);
    }
    match values.len() == count {
        true => Ok(values),
        false => Err(DecodeError::new("length of runs", count, values.len())),
    }
}

fn unpack(bytes: &[u8], bits: u32, least: u64, count: usize) -> Vec<u64> {
    let mask = u64::MAX >> (u64::BITS - bits);
    let mut values = Vec::with_capacity(count);
    // All values that lie within eight bytes of the input, then the few at its end.
    let whole = count.min((bytes.len().saturating_sub(7) * 8) / bits as usize);
    for at in 0..whole {
        let bit = at * bits as usize;
        let word = bytes.get(bit / 8..bit / 8 + 8).and_then(|word| word.try_into().ok());
        let word = word.map_or(0, u64::from_le_bytes);
        values.push(least.wrapping_add(word >> (bit % 8) & mask));
    }
    values.extend((whole..count).map(|at| unpack_one(bytes, bits, least, at * bits as usize)));
    values
}

/// The value that begins with bit `at`.
fn unpack_one(bytes: &[u8], bits: u32, least: u64, at: usize) -> u64 {
    let mask = u64::MAX >> (u64::BITS - bits);
    let tail = bytes.get(at / 8..).unwrap_or_default().iter().take(8);
    let word = tail.rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    least.wrapping_add(word >> (at % 8) & mask)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]

    use super::*;
    use crate::compression::Compressor;
    use crate::Compression;
    use proptest::prelude::*;

    fn survive(values: &[u64], compression: Compression) -> usize {
        let mut compressor = Compressor::default();
        let mut to = Writer::new(compression, &mut compressor);
        put(&mut to, values);
        let mut from = Source::new(&to.head, &to.data);
        assert_eq!(take(&mut from, values.len()).unwrap(), values);
        from.end().unwrap();
        let mut from = Source::new(&to.head, &to.data);
        skip(&mut from, values.len()).unwrap();
        from.end().unwrap();
        for at in (0..values.len()).step_by(1 + values.len() / 50) {
            assert_eq!(
                get(&mut Source::new(&to.head, &to.data), values.len(), at).unwrap(),
                values[at],
                "{at}"
            );
        }
        assert!(get(&mut Source::new(&to.head, &to.data), values.len(), values.len()).is_err());
        to.head.len() + to.data.len()
    }

    #[test]
    fn each_kind_of_values_takes_about_the_space_it_should() {
        let zstd = Compression::Zstd(3);
        assert!(survive(&[77; 5000], zstd) <= 2);
        assert!(survive(&(0..5000).map(|i| 1_000_000 + i * 8).collect::<Vec<_>>(), zstd) <= 8);
        assert!(survive(&(0..5000).map(|i| i / 1000).collect::<Vec<_>>(), zstd) <= 20);
        let noise =
            |bits: u32| (0..5000u64).map(move |i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits));
        for bits in [1, 3, 8, 11, 17, 31, 32, 33, 63, 64] {
            let values: Vec<u64> = noise(bits).collect();
            assert!(
                survive(&values, Compression::None) <= 5000 * bits as usize / 8 + 5000 / 3,
                "{bits} bits"
            );
            survive(&values, zstd);
        }
        let rare: Vec<u64> = noise(16).map(|n| u64::from(n < 2000) * (n & 0xff)).collect();
        assert!(survive(&rare, zstd) < 1000);
    }

    #[test]
    fn no_values_and_extreme_ones_survive() {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd(1)] {
            survive(&[], compression);
            survive(&[u64::MAX], compression);
            survive(&[0, u64::MAX, 0, 1 << 63, u64::MAX - 1], compression);
        }
    }

    proptest! {
        #[test]
        fn values_survive(
            values in proptest::collection::vec(prop_oneof![0u64..3, 0u64..300, any::<u64>()], 0..700),
            bits in 0u32..64, stretch in 1usize..20,
        ) {
            for compression in [Compression::None, Compression::Lz4, Compression::Zstd(1)] {
                let values: Vec<u64> = values.iter().map(|v| v >> bits).collect();
                survive(&values, compression);
                survive(&values.iter().flat_map(|v| vec![*v; stretch]).collect::<Vec<_>>(), compression);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(head in proptest::collection::vec(prop_oneof![0u8..6, any::<u8>()], 0..60), count in 0usize..2000) {
            let _ = take(&mut Source::new(&head, &[1, 2, 3]), count);
            let _ = skip(&mut Source::new(&head, &[1, 2, 3]), count);
            let _ = get(&mut Source::new(&head, &[1, 2, 3]), count, count / 2);
        }
    }
}
