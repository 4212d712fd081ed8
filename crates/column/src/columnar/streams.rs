//! Byte streams: the ends of all encodings. Short ones stand in the segment's head, long ones in its
//! data, compressed where that gains.
//!
//! ```text
//! in the head:   u8 place   0: the bytes follow here
//!                           1: in the data, as they are
//!                           2: in the data, LZ4;  3: in the data, zstd; varint stored bytes
//! ```
//! How long a stream is before compression is never stored: whoever reads it knows.
#![deny(clippy::indexing_slicing)]

use std::borrow::Cow;

use crate::compression::{decompress, entropy, Compression, Compressor};
use crate::format::{CODEC_ROWS_LZ4, CODEC_ROWS_ZSTD};
use crate::wire::{put_varint, DecodeError, Reader};

const IN_HEAD: u8 = 0;
const PLAIN: u8 = 1;
const LZ4: u8 = 2;
const ZSTD: u8 = 3;

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
}

/// A place in a [`Writer`] to go back to.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    head: usize,
    data: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(compression: Compression, compressor: &'a mut Compressor) -> Writer<'a> {
        Writer { head: Vec::new(), data: Vec::new(), compression, compressor }
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
        let compression = if tried { self.compression } else { Compression::None };
        let start = self.data.len();
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
        self.compressor.append(self.compression, &self.head, out)
    }
}

/// Reads head and data of a segment, which may be any bytes.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) head: Reader<'a>,
    data: Reader<'a>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(head: &'a [u8], data: &'a [u8]) -> Source<'a> {
        Source { head: Reader::new(head), data: Reader::new(data) }
    }

    /// Reads a stream of `len` bytes. Requires: `len` is bounded by what the caller has checked.
    pub(crate) fn bytes(&mut self, len: usize) -> Result<Cow<'a, [u8]>, DecodeError> {
        let what = "column bytes";
        let codec = match self.head.u8(what)? {
            IN_HEAD => return Ok(Cow::Borrowed(self.head.bytes(len, what)?)),
            PLAIN => return Ok(Cow::Borrowed(self.data.bytes(len, what)?)),
            LZ4 => CODEC_ROWS_LZ4,
            ZSTD => CODEC_ROWS_ZSTD,
            other => return Err(DecodeError::new("place of column bytes", "0 to 3", other)),
        };
        let stored = self.length("stored column bytes")?;
        Ok(Cow::Owned(decompress(codec, self.data.bytes(stored, what)?, len)?))
    }

    /// Goes past a stream of `len` bytes.
    pub(crate) fn skip_bytes(&mut self, len: usize) -> Result<(), DecodeError> {
        let what = "column bytes";
        match self.head.u8(what)? {
            IN_HEAD => _ = self.head.bytes(len, what)?,
            PLAIN => _ = self.data.bytes(len, what)?,
            LZ4 | ZSTD => {
                let stored = self.length("stored column bytes")?;
                self.data.bytes(stored, what)?;
            }
            other => return Err(DecodeError::new("place of column bytes", "0 to 3", other)),
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
