//! The compressions a segment's body may have.
#![deny(clippy::indexing_slicing)]

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use pando_base::locks::Mutex;
use zstd::zstd_safe;

use crate::format::{CODEC_ROWS_LZ4, CODEC_ROWS_PLAIN, CODEC_ROWS_ZSTD};
use crate::wire::{put_bytes, put_varint, DecodeError, Reader};

/// Level of zstd where none is asked for: the library's own default.
pub const ZSTD_LEVEL_DEFAULT: i32 = 3;

/// How the body of a segment is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4: cheap, for runs that will soon be merged again.
    Lz4,
    /// zstd at this level: small, for runs that stay.
    Zstd(i32),
}

impl Default for Compression {
    fn default() -> Compression {
        Compression::Zstd(ZSTD_LEVEL_DEFAULT)
    }
}

/// A name that is no compression's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown compression {0:?}: expected ZSTD, LZ4 or NONE")]
pub struct UnknownCompression(String);

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::None => "NONE",
            Compression::Lz4 => "LZ4",
            Compression::Zstd(_) => "ZSTD",
        })
    }
}

/// By the name of a table option, in any case; zstd at its default level.
impl FromStr for Compression {
    type Err = UnknownCompression;

    fn from_str(name: &str) -> Result<Compression, UnknownCompression> {
        let known = [Compression::None, Compression::Lz4, Compression::Zstd(ZSTD_LEVEL_DEFAULT)];
        let found = known.into_iter().find(|c| name.eq_ignore_ascii_case(&c.to_string()));
        found.ok_or_else(|| UnknownCompression(name.to_owned()))
    }
}

/// Of so many bytes is seen whether anything repeats in them.
const SAMPLE_BYTES: usize = 16 << 10;
/// Where the fastest level takes at least this part of what an entropy coder alone would take, next to nothing repeats.
const LITERAL_SHARE: f32 = 0.95;
/// So many products are known to [`weighted_log`].
const WEIGHTED_LOGS: u32 = 1024;
/// The fastest level of zstd that still has an entropy coder.
const ZSTD_LEVEL_FASTEST: i32 = 1;

/// Compresses bodies; keeps zstd's working memory between segments.
#[derive(Default)]
pub(crate) struct Compressor {
    zstd: Option<(i32, zstd::bulk::Compressor<'static>)>,
    fastest: Option<zstd::bulk::Compressor<'static>>,
    common: Option<Common>,
}

/// Bytes that bodies are compressed against, made ready.
struct Common {
    context: zstd_safe::CCtx<'static>,
    prepared: zstd::dict::EncoderDictionary<'static>,
    /// Held for debug builds, which decode all that they encode.
    bytes: Arc<[u8]>,
}

/// What zstd would take for a dictionary of its own making, not for plain bytes.
const ZSTD_DICTIONARY_MAGIC: [u8; 4] = zstd_safe::zstd_sys::ZSTD_MAGIC_DICTIONARY.to_le_bytes();

impl Compressor {
    /// Appends `body` to `out`, compressed where that gains at least a sixteenth; gives the codec.
    pub(crate) fn append(&mut self, compression: Compression, body: &[u8], out: &mut Vec<u8>) -> u8 {
        let start = out.len();
        let done = match compression {
            Compression::None => None,
            Compression::Lz4 => lz4(body, out).map(|()| CODEC_ROWS_LZ4),
            Compression::Zstd(level) => self.zstd(level, body, out).map(|()| CODEC_ROWS_ZSTD),
        };
        keep_if_smaller(done, body, start, out)
    }

    /// As [`Compressor::append`], for bytes of some kind. Where next to nothing repeats (random digits), zstd's higher levels
    /// find many short repetitions that gain nothing and take twice the time to decompress: there its fastest level
    /// is taken. Few such bytes are their own sample, and not compressed again.
    pub(crate) fn append_stream(&mut self, compression: Compression, bytes: &[u8], out: &mut Vec<u8>) -> u8 {
        match compression {
            Compression::Zstd(level) if level > ZSTD_LEVEL_FASTEST => {}
            other => return self.append(other, bytes, out),
        }
        let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
        let start = out.len();
        let done = self.zstd(ZSTD_LEVEL_FASTEST, sample, out);
        let least = entropy(sample) / 8.0 * sample.len() as f32 * LITERAL_SHARE;
        let has_literals_only = done.is_some() && (out.len() - start) as f32 >= least;
        if has_literals_only && sample.len() == bytes.len() {
            return keep_if_smaller(done.map(|()| CODEC_ROWS_ZSTD), bytes, start, out);
        }
        out.truncate(start);
        self.append(
            if has_literals_only { Compression::Zstd(ZSTD_LEVEL_FASTEST) } else { compression },
            bytes,
            out,
        )
    }

    /// From now on [`Compressor::append_on_common`] compresses against `bytes`. False: it does not; only zstd can.
    pub(crate) fn set_common(&mut self, compression: Compression, bytes: Option<Arc<[u8]>>) -> bool {
        self.common = match (compression, bytes) {
            (Compression::Zstd(level), Some(bytes)) if !bytes.starts_with(&ZSTD_DICTIONARY_MAGIC) => {
                let prepared = zstd::dict::EncoderDictionary::copy(&bytes, level);
                zstd_safe::CCtx::try_create().map(|context| Common { context, prepared, bytes })
            }
            _ => None,
        };
        self.common.is_some()
    }

    /// What [`Compressor::append_on_common`] compresses against.
    pub(crate) fn common(&self) -> Option<&Arc<[u8]>> {
        self.common.as_ref().map(|common| &common.bytes)
    }

    /// Appends `body` to `out`, compressed against the bytes in common, where that gains at least a sixteenth.
    pub(crate) fn append_on_common(&mut self, body: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(Common { context, prepared, .. }) = &mut self.common else { return false };
        let start = out.len();
        out.resize(start + zstd_safe::compress_bound(body.len()), 0);
        let place = out.get_mut(start..).unwrap_or_default();
        let most = body.len() - body.len() / 16;
        match context.compress_using_cdict(place, body, prepared.as_cdict()) {
            Ok(written) if written <= most => {
                out.truncate(start + written);
                true
            }
            _ => {
                out.truncate(start);
                false
            }
        }
    }

    /// `None` if the library refuses (it has no reason to but lack of memory): the body stays plain.
    fn zstd(&mut self, level: i32, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let compressor = if level == ZSTD_LEVEL_FASTEST {
            match &mut self.fastest {
                Some(compressor) => compressor,
                none => none.insert(zstd::bulk::Compressor::new(level).ok()?),
            }
        } else {
            if self.zstd.as_ref().is_none_or(|(have, _)| *have != level) {
                self.zstd = Some((level, zstd::bulk::Compressor::new(level).ok()?));
            }
            &mut self.zstd.as_mut()?.1
        };
        let start = out.len();
        out.resize(start + zstd::zstd_safe::compress_bound(body.len()), 0);
        let written = compressor.compress_to_buffer(body, out.get_mut(start..)?).ok()?;
        out.truncate(start + written);
        Some(())
    }
}

/// Leaves what was appended from `start` on if it gains at least a sixteenth, else puts the body itself there; gives the codec.
fn keep_if_smaller(done: Option<u8>, body: &[u8], start: usize, out: &mut Vec<u8>) -> u8 {
    match done {
        Some(codec) if out.len() - start <= body.len() - body.len() / 16 => codec,
        _ => {
            out.truncate(start);
            out.extend_from_slice(body);
            CODEC_ROWS_PLAIN
        }
    }
}

fn lz4(body: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(body.len()), 0);
    let written = lz4_flex::block::compress_into(body, out.get_mut(start..)?).ok()?;
    out.truncate(start + written);
    Some(())
}

/// Bits per byte that an entropy coder would need, from the frequencies alone.
pub(crate) fn entropy(bytes: &[u8]) -> f32 {
    let mut counts = [0u32; 256];
    for byte in bytes {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    bits_of(counts.iter().copied(), bytes.len()) / bytes.len().max(1) as f32
}

/// Bits that an entropy coder would need for symbols of these frequencies among `total`.
pub(crate) fn bits_of(counts: impl Iterator<Item = u32>, total: usize) -> f32 {
    let (mut symbols, mut known) = (0u32, 0.0);
    for count in counts {
        symbols += count;
        known += weighted_log(count);
    }
    symbols as f32 * (total.max(1) as f32).log2() - known
}

/// `n` times its logarithm; what is asked for hundreds of times for each segment is known.
fn weighted_log(n: u32) -> f32 {
    static SMALL: LazyLock<Vec<f32>> = LazyLock::new(|| (0..WEIGHTED_LOGS).map(computed).collect());
    fn computed(n: u32) -> f32 {
        n as f32 * (n.max(1) as f32).log2()
    }
    SMALL.get(n as usize).copied().unwrap_or_else(|| computed(n))
}

/// Decompresses to exactly `body_bytes` bytes. Before allocating, checks that so many can come out
/// of so few: LZ4 gives at most 255 for one, zstd at most a block of 128 KiB for three.
pub(crate) fn decompress(codec: u8, bytes: &[u8], body_bytes: usize) -> Result<Vec<u8>, DecodeError> {
    decompress_on(&[], codec, bytes, body_bytes)
}

/// As [`decompress`], of what zstd compressed against `common`.
pub(crate) fn decompress_on(
    common: &[u8],
    codec: u8,
    bytes: &[u8],
    body_bytes: usize,
) -> Result<Vec<u8>, DecodeError> {
    check_ratio(codec, bytes, body_bytes)?;
    let result = match codec {
        CODEC_ROWS_LZ4 => unlz4(bytes, vec![0; body_bytes]),
        _ => unzstd(common, bytes, body_bytes),
    };
    check_length(result.as_ref().map(Vec::len), body_bytes)?;
    result.map_err(no_bytes)
}

/// Those bytes of what [`decompress_on`] would give that are in `part`; as many as there are. What is around them is written to memory that is used
/// again and again.
pub(crate) fn decompress_part(
    common: &[u8],
    codec: u8,
    bytes: &[u8],
    body_bytes: usize,
    part: Range<usize>,
) -> Result<Vec<u8>, DecodeError> {
    check_ratio(codec, bytes, body_bytes)?;
    let result = at_bench(|bench| {
        let mut body = std::mem::take(&mut bench.buffer);
        if codec == CODEC_ROWS_LZ4 {
            body.resize(body_bytes, 0);
            body = unlz4(bytes, body)?;
        } else {
            body.reserve_exact(body_bytes);
            bench.unzstd(common, bytes, &mut body)?;
        }
        let wanted = body.get(part).unwrap_or_default().to_vec();
        let length = body.len();
        bench.buffer = body;
        Ok((length, wanted))
    });
    check_length(result.as_ref().map(|(length, _)| *length), body_bytes)?;
    result.map(|(_, wanted)| wanted).map_err(no_bytes)
}

fn check_ratio(codec: u8, bytes: &[u8], body_bytes: usize) -> Result<(), DecodeError> {
    let bound = match codec {
        CODEC_ROWS_LZ4 => bytes.len().saturating_mul(255),
        _ => (bytes.len() / 3 + 1).saturating_mul(128 << 10),
    };
    match body_bytes > bound {
        true => Err(DecodeError::new("segment body length", format_args!("at most {bound}"), body_bytes)),
        false => Ok(()),
    }
}

fn check_length(found: Result<usize, &String>, body_bytes: usize) -> Result<(), DecodeError> {
    match found {
        Ok(length) if length != body_bytes => {
            Err(DecodeError::new("segment body length", body_bytes, length))
        }
        _ => Ok(()),
    }
}

fn no_bytes(error: String) -> DecodeError {
    DecodeError::new("segment body", "compressed bytes", error)
}

fn unlz4(bytes: &[u8], mut body: Vec<u8>) -> Result<Vec<u8>, String> {
    let length = lz4_flex::block::decompress_into(bytes, &mut body).map_err(|e| e.to_string())?;
    body.truncate(length);
    Ok(body)
}

/// Appends bytes, compressed by zstd where that gains: u8 codec, varint how many they are, counted what is stored.
pub fn put_packed(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut stored = Vec::new();
    let codec = Compressor::default().append(Compression::Zstd(ZSTD_LEVEL_DEFAULT), bytes, &mut stored);
    out.push(codec);
    put_varint(out, bytes.len() as u64);
    put_bytes(out, &stored);
}

/// What [`put_packed`] appended, of at most `most` bytes.
///
/// # Errors
/// [`DecodeError`] if it is anything else.
pub fn take_packed(reader: &mut Reader<'_>, most: usize, what: &'static str) -> Result<Vec<u8>, DecodeError> {
    let codec = reader.u8(what)?;
    let bytes = usize::try_from(reader.varint(what)?).unwrap_or(usize::MAX);
    if bytes > most {
        return Err(DecodeError::new(what, format_args!("at most {most} bytes"), bytes));
    }
    let stored = reader.counted_bytes(usize::MAX, what)?;
    match codec {
        CODEC_ROWS_PLAIN if stored.len() == bytes => Ok(stored.to_vec()),
        CODEC_ROWS_ZSTD => decompress(codec, stored, bytes),
        _ => Err(DecodeError::new(what, format_args!("{bytes} bytes, plain or of zstd"), codec)),
    }
}

/// What a thread decompresses with: the library's tables, 160 KiB, and a buffer.
struct Bench {
    context: zstd_safe::DCtx<'static>,
    buffer: Vec<u8>,
}

/// Those that nobody is at. The one that was used last is taken first: it is in the processor's caches, where one for each of many threads would not be.
static BENCHES: Mutex<Vec<Bench>> = Mutex::new(Vec::new());
/// Most that are kept, and the largest buffer: about what decompresses at the same time on a large machine.
const BENCHES_KEPT: usize = 64;
const BENCH_BUFFER_KEPT: usize = 256 << 10;

fn at_bench<T>(work: impl FnOnce(&mut Bench) -> Result<T, String>) -> Result<T, String> {
    let idle = BENCHES.lock().pop();
    let mut bench = match idle {
        Some(bench) => bench,
        None => {
            let context = zstd_safe::DCtx::try_create().ok_or("no memory for zstd")?;
            Bench { context, buffer: Vec::new() }
        }
    };
    let result = work(&mut bench);
    bench.buffer.clear();
    bench.buffer.shrink_to(BENCH_BUFFER_KEPT);
    let mut benches = BENCHES.lock();
    if benches.len() < BENCHES_KEPT {
        benches.push(bench);
    }
    result
}

impl Bench {
    fn unzstd(&mut self, common: &[u8], bytes: &[u8], body: &mut Vec<u8>) -> Result<(), String> {
        let done = self.context.decompress_using_dict(body, bytes, common);
        done.map(|_| ()).map_err(|code| zstd_safe::get_error_name(code).to_owned())
    }
}

fn unzstd(common: &[u8], bytes: &[u8], body_bytes: usize) -> Result<Vec<u8>, String> {
    at_bench(|bench| {
        let mut body = Vec::with_capacity(body_bytes);
        bench.unzstd(common, bytes, &mut body)?;
        Ok(body)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_compressions_survive_in_any_case() {
        for name in ["NONE", "LZ4", "ZSTD"] {
            assert_eq!(name.parse::<Compression>().unwrap().to_string(), name);
            assert_eq!(name.to_lowercase().parse::<Compression>().unwrap().to_string(), name);
        }
        assert!("SNAPPY".parse::<Compression>().unwrap_err().to_string().contains("SNAPPY"));
    }

    #[test]
    fn a_body_that_does_not_shrink_stays_plain() {
        let mut out = Vec::new();
        let noise: Vec<u8> = (0..5000u64)
            .flat_map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i << 7)).to_le_bytes())
            .collect();
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd(1)] {
            let zeros = Compressor::default().append(compression, &[0; 5000], &mut out);
            assert_eq!(zeros == CODEC_ROWS_PLAIN, compression == Compression::None);
        }
        out.clear();
        assert_eq!(Compressor::default().append(Compression::Lz4, &noise, &mut out), CODEC_ROWS_PLAIN);
        assert_eq!(out, noise);
        assert_eq!(
            Compressor::default().append(Compression::Zstd(1), b"", &mut Vec::new()),
            CODEC_ROWS_PLAIN
        );
    }

    #[test]
    fn bytes_in_which_nothing_repeats_are_compressed_by_the_fastest_level() {
        let mut state = 1u64;
        let mut digit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'0' + (state >> 33) as u8 % 10
        };
        let digits: Vec<u8> = (0..60_000).map(|_| digit()).collect();
        let words: Vec<u8> = digits.iter().flat_map(|digit| [*digit; 5]).collect();
        let mut compressor = Compressor::default();
        let mut of = |level: i32, bytes: &[u8], is_stream: bool| {
            let mut out = Vec::new();
            let codec = match is_stream {
                true => compressor.append_stream(Compression::Zstd(level), bytes, &mut out),
                false => compressor.append(Compression::Zstd(level), bytes, &mut out),
            };
            match codec {
                CODEC_ROWS_PLAIN => assert_eq!(out, bytes),
                _ => assert_eq!(decompress(codec, &out, bytes.len()).unwrap(), bytes),
            }
            out
        };
        assert_eq!(of(3, &digits, true), of(1, &digits, false));
        assert!(of(3, &digits, true).len() < of(3, &digits, false).len());
        assert_eq!(of(3, &words, true), of(3, &words, false));
        // So are few, which are their own sample; of very few it is not worth telling.
        for length in [0, 1, 15, 100, 10_000, SAMPLE_BYTES, SAMPLE_BYTES + 1] {
            let (digits, words) = (digits.get(..length).unwrap(), words.get(..length).unwrap());
            let (of_digits, of_words) = (of(3, digits, true), of(3, words, true));
            if length >= 10_000 {
                assert_eq!(of_digits, of(1, digits, false), "{length}");
                assert_eq!(of_words, of(3, words, false), "{length}");
            }
        }
    }

    #[test]
    fn an_impossible_length_is_refused_before_memory_is_taken() {
        for codec in [CODEC_ROWS_LZ4, CODEC_ROWS_ZSTD] {
            let error = decompress(codec, &[0; 10], u32::MAX as usize).unwrap_err();
            assert!(error.expected.starts_with("at most"), "{error}");
        }
    }
}
