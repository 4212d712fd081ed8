//! Byte streams: the ends of all encodings. Short ones stand in the segment's head, long ones in its
//! data, compressed where that gains.
//!
//! ```text
//! in the head:   u8 place   0: the bytes follow here
//!                           1: in the data, as they are
//!                           2: in the data, LZ4;  3: in the data, zstd; varint stored bytes
//!                           4: in the data, zstd against the bytes in common; varint stored bytes
//!                           (5: strings that are coded each for itself, see strings.rs)
//! ```
//! How long a stream is before compression is never stored: whoever reads it knows.
#![deny(clippy::indexing_slicing)]

use std::borrow::Cow;
use std::ops::Range;

use super::codes::COMMON_BYTES_MAX;
use crate::compression::{decompress_on, decompress_part, entropy, Compression, Compressor};
use crate::format::{CODEC_HEAD_ON_COMMON, CODEC_ROWS_LZ4, CODEC_ROWS_ZSTD};
use crate::wire::{put_varint, DecodeError, Reader};

const IN_HEAD: u8 = 0;
const PLAIN: u8 = 1;
const LZ4: u8 = 2;
const ZSTD: u8 = 3;
const ZSTD_ON_COMMON: u8 = 4;

/// Streams up to this stay in the head, which is compressed as a whole: a frame of their own costs more.
const IN_HEAD_BYTES_MAX: usize = 160;
/// Bits of entropy per byte from which on compression is not tried.
const ENTROPY_TRIED_MAX: f32 = 7.4;

/// Collects head and data of a segment.
pub(crate) struct Writer<'a> {
    pub(crate) head: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) compression: Compression,
    compressor: &'a mut Compressor,
    /// Entries of dictionaries are being written, which the segments of a run have in common.
    pub(crate) is_common: bool,
    /// Those of them that do not stand in the head; for the run's other segments to be compressed against.
    pub(crate) common: Vec<u8>,
}

/// A place in a [`Writer`] to go back to.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    head: usize,
    data: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(compression: Compression, compressor: &'a mut Compressor) -> Writer<'a> {
        let (head, data, common) = (Vec::new(), Vec::new(), Vec::new());
        Writer { head, data, compression, compressor, is_common: false, common }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { head: self.head.len(), data: self.data.len() }
    }

    /// Bytes written since `mark`.
    pub(crate) fn since(&self, mark: Mark) -> usize {
        self.head.len() - mark.head + self.data.len() - mark.data
    }

    /// Forgets what was written since `mark`.
    pub(crate) fn back_to(&mut self, mark: Mark) {
        self.head.truncate(mark.head);
        self.data.truncate(mark.data);
    }

    /// The same, and gives it, for [`Self::put_back`].
    pub(crate) fn back_to_keeping(&mut self, mark: Mark) -> (Vec<u8>, Vec<u8>) {
        (self.head.split_off(mark.head), self.data.split_off(mark.data))
    }

    /// Writes again what was forgotten.
    pub(crate) fn put_back(&mut self, (head, data): (Vec<u8>, Vec<u8>)) {
        self.head.extend_from_slice(&head);
        self.data.extend_from_slice(&data);
    }

    pub(crate) fn varint(&mut self, n: u64) {
        put_varint(&mut self.head, n);
    }

    /// Writes a stream, compressed where that seems to gain.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let tried = bytes.len() < 512 || entropy(bytes) < ENTROPY_TRIED_MAX;
        self.place(bytes, tried);
    }

    /// Writes a stream of which is known that compression gains nothing.
    pub(crate) fn dense_bytes(&mut self, bytes: &[u8]) {
        self.place(bytes, false);
    }

    fn place(&mut self, bytes: &[u8], tried: bool) {
        if bytes.len() <= IN_HEAD_BYTES_MAX {
            self.head.push(IN_HEAD);
            self.head.extend_from_slice(bytes);
            return;
        }
        let start = self.data.len();
        if self.is_common {
            if self.compressor.append_on_common(bytes, &mut self.data) {
                self.head.push(ZSTD_ON_COMMON);
                put_varint(&mut self.head, (self.data.len() - start) as u64);
                return;
            }
            let is_first = self.compressor.common().is_none();
            if is_first && self.common.len() + bytes.len() <= COMMON_BYTES_MAX / 2 {
                self.common.extend_from_slice(bytes);
            }
        }
        let compression = if tried { self.compression } else { Compression::None };
        let place = match self.compressor.append_stream(compression, bytes, &mut self.data) {
            CODEC_ROWS_LZ4 => LZ4,
            CODEC_ROWS_ZSTD => ZSTD,
            _ => PLAIN,
        };
        self.head.push(place);
        if place != PLAIN {
            put_varint(&mut self.head, (self.data.len() - start) as u64);
        }
    }

    /// The head, compressed where that gains, and its codec.
    pub(crate) fn finish_head(&mut self, out: &mut Vec<u8>) -> u8 {
        match self.compressor.append_on_common(&self.head, out) {
            true => CODEC_HEAD_ON_COMMON,
            false => self.compressor.append(self.compression, &self.head, out),
        }
    }

    /// What the segments of the run have in common, going by this one; nothing if it was written against that.
    pub(crate) fn into_common(mut self) -> Vec<u8> {
        if !self.common.is_empty() {
            let room = COMMON_BYTES_MAX - self.common.len();
            self.common.extend_from_slice(self.head.get(..room).unwrap_or(&self.head));
        }
        self.common
    }
}

/// A place in head and data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spot {
    head: u32,
    data: u32,
}

/// Reads head and data of a segment, which may be any bytes.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) head: Reader<'a>,
    pub(crate) data: Reader<'a>,
    common: &'a [u8],
}

impl<'a> Source<'a> {
    pub(crate) fn new(head: &'a [u8], data: &'a [u8]) -> Source<'a> {
        Source { head: Reader::new(head), data: Reader::new(data), common: &[] }
    }

    /// Streams may be compressed against `common`.
    pub(crate) fn on(self, common: &'a [u8]) -> Source<'a> {
        Source { common, ..self }
    }

    /// How far `other`, which began as this, has been read.
    pub(crate) fn distance_to(&self, other: &Source<'_>) -> Spot {
        let of = |from: &Reader<'_>, to: &Reader<'_>| (from.rest().len() - to.rest().len()) as u32;
        Spot { head: of(&self.head, &other.head), data: of(&self.data, &other.data) }
    }

    /// This, read so far.
    pub(crate) fn at(self, spot: Spot) -> Source<'a> {
        let of = |from: Reader<'a>, by: u32| Reader::new(from.rest().get(by as usize..).unwrap_or_default());
        Source { head: of(self.head, spot.head), data: of(self.data, spot.data), ..self }
    }

    /// Reads a stream of `len` bytes. Requires: `len` is bounded by what the caller has checked.
    pub(crate) fn bytes(&mut self, len: usize) -> Result<Cow<'a, [u8]>, DecodeError> {
        let what = "column bytes";
        let place = self.head.u8(what)?;
        let codec = match place {
            IN_HEAD => return Ok(Cow::Borrowed(self.head.bytes(len, what)?)),
            PLAIN => return Ok(Cow::Borrowed(self.data.bytes(len, what)?)),
            LZ4 => CODEC_ROWS_LZ4,
            ZSTD | ZSTD_ON_COMMON => CODEC_ROWS_ZSTD,
            other => return Err(DecodeError::new("place of column bytes", "0 to 4", other)),
        };
        let stored = self.length("stored column bytes")?;
        let common = if place == ZSTD_ON_COMMON { self.common } else { &[] };
        Ok(Cow::Owned(decompress_on(common, codec, self.data.bytes(stored, what)?, len)?))
    }

    /// Those bytes of a stream of `len` that are in `part`, which is within it. The stream is gone past.
    pub(crate) fn part(&mut self, len: usize, part: Range<usize>) -> Result<Cow<'a, [u8]>, DecodeError> {
        let mut ahead = *self;
        let place = ahead.head.u8("column bytes")?;
        if !matches!(place, LZ4 | ZSTD | ZSTD_ON_COMMON) {
            return Ok(match self.bytes(len)? {
                Cow::Borrowed(all) => Cow::Borrowed(all.get(part).unwrap_or_default()),
                Cow::Owned(all) => Cow::Owned(all.get(part).unwrap_or_default().to_vec()),
            });
        }
        let stored = ahead.length("stored column bytes")?;
        let bytes = ahead.data.bytes(stored, "column bytes")?;
        *self = ahead;
        let common = if place == ZSTD_ON_COMMON { self.common } else { &[] };
        let codec = if place == LZ4 { CODEC_ROWS_LZ4 } else { CODEC_ROWS_ZSTD };
        Ok(Cow::Owned(decompress_part(common, codec, bytes, len, part)?))
    }

    /// Goes past a stream of `len` bytes.
    pub(crate) fn skip_bytes(&mut self, len: usize) -> Result<(), DecodeError> {
        let what = "column bytes";
        match self.head.u8(what)? {
            IN_HEAD => _ = self.head.bytes(len, what)?,
            PLAIN => _ = self.data.bytes(len, what)?,
            LZ4 | ZSTD | ZSTD_ON_COMMON => {
                let stored = self.length("stored column bytes")?;
                self.data.bytes(stored, what)?;
            }
            other => return Err(DecodeError::new("place of column bytes", "0 to 4", other)),
        }
        Ok(())
    }

    /// A varint that counts something.
    pub(crate) fn length(&mut self, what: &'static str) -> Result<usize, DecodeError> {
        let n = self.head.varint(what)?;
        usize::try_from(n).map_err(|_| DecodeError::new(what, "a length", n))
    }

    /// A varint of at most `most`.
    pub(crate) fn count(&mut self, most: usize, what: &'static str) -> Result<usize, DecodeError> {
        let n = self.head.varint(what)?;
        match usize::try_from(n) {
            Ok(n) if n <= most => Ok(n),
            _ => Err(DecodeError::new(what, format_args!("at most {most}"), n)),
        }
    }

    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        self.head.end("segment head")?;
        self.data.end("segment data")
    }
}
