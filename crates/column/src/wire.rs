//! Reading and writing the small pieces encodings are made of: little-endian integers, varints,
//! byte strings; and the error of whoever reads them.
#![deny(clippy::indexing_slicing)]

use std::path::Path;

use pando_base::Error;

/// Bytes that no writer wrote. The caller adds file and offset with [`DecodeError::at`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: expected {expected}, found {found}")]
pub struct DecodeError {
    /// Which field.
    pub what: &'static str,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl DecodeError {
    /// An error about field `what`.
    pub fn new(what: &'static str, expected: impl ToString, found: impl ToString) -> DecodeError {
        DecodeError { what, expected: expected.to_string(), found: found.to_string() }
    }

    /// The operating error: this in the block at `offset` of the file `path`.
    pub fn at(self, path: &Path, offset: u64) -> Error {
        Error::corruption(path, offset, self.what, self.expected, self.found)
    }
}

/// Appends `n` in 7-bit groups, lowest first, the high bit saying that more follow.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a varint length and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads forward through bytes that may be anything.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads `len` bytes.
    #[inline]
    pub fn bytes(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(len) {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => Err(short(what, len, self.rest.len())),
        }
    }

    /// Reads a byte.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    /// Reads a little-endian integer.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    /// Reads a little-endian integer.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// Reads what [`put_varint`] wrote.
    #[inline]
    pub fn varint(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        match self.rest.split_first() {
            Some((&byte, tail)) if byte < 0x80 => {
                self.rest = tail;
                Ok(u64::from(byte))
            }
            _ => self.varint_long(what),
        }
    }

    /// Reads what [`put_bytes`] wrote, at most `limit` bytes.
    pub fn counted_bytes(&mut self, limit: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let len = self.varint(what)?;
        match usize::try_from(len) {
            Ok(len) if len <= limit => self.bytes(len, what),
            _ => Err(DecodeError::new(what, format_args!("at most {limit} bytes"), len)),
        }
    }

    /// Fails unless everything was read.
    pub fn end(&self, what: &'static str) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(DecodeError::new(what, "end of data", format_args!("{} more bytes", self.rest.len())))
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(*head)
            }
            None => Err(short(what, N, self.rest.len())),
        }
    }

    #[inline(never)]
    fn varint_long(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        let mut n = 0u64;
        let mut shift = 0;
        loop {
            let byte = self.u8(what)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 || shift > 63 {
                return Err(DecodeError::new(what, "a varint of 64 bits", "a longer one"));
            }
            n |= bits << shift;
            if byte < 0x80 {
                return Ok(n);
            }
            shift += 7;
        }
    }
}

#[cold]
fn short(what: &'static str, wanted: usize, have: usize) -> DecodeError {
    DecodeError::new(what, format_args!("{wanted} bytes"), format_args!("{have} left"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_of_every_length_survive() {
        let numbers: Vec<u64> =
            (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1]).chain([u64::MAX]).collect();
        let mut out = Vec::new();
        for &n in &numbers {
            put_varint(&mut out, n);
        }
        let mut reader = Reader::new(&out);
        for &n in &numbers {
            assert_eq!(reader.varint("n"), Ok(n));
        }
        assert_eq!(reader.end("n"), Ok(()));
    }

    #[test]
    fn a_varint_beyond_64_bits_or_cut_short_is_an_error() {
        let over = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert!(Reader::new(&over).varint("n").is_err());
        assert!(Reader::new(&[0x80; 20]).varint("n").is_err());
        assert!(Reader::new(&[0x80]).varint("n").is_err());
        assert!(Reader::new(&[]).varint("n").is_err());
    }

    #[test]
    fn counted_bytes_respect_their_limit() {
        let mut out = Vec::new();
        put_bytes(&mut out, b"abc");
        assert_eq!(Reader::new(&out).counted_bytes(3, "s"), Ok(&b"abc"[..]));
        assert!(Reader::new(&out).counted_bytes(2, "s").is_err());
        let error = Reader::new(out.get(..2).unwrap()).counted_bytes(3, "s").unwrap_err();
        assert_eq!(error.to_string(), "s: expected 3 bytes, found 1 left");
    }
}
