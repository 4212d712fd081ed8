//! The head of a log file, in its first page.
//!
//! ```text
//!  0  magic "PandoLog"
//!  8  format version  u32
//! 12  flags           u32  1: the file begins within a batch that the file before it began
//! 16  file number     u64  one more than the file before; never used twice
//! 24  salt            u64  of this use of the file
//! 32  start lsn       u64  of the first frame. What is before was synced when this was written
//! 40  first seqno     u64  of the first frame; of the next commit if there is none
//! 48  checksum        u64  xxh3 of bytes 0..48
//! 56  zeros
//! 512 magic "PandoNxt", number u64 and start lsn u64 of the next file, xxh3 of these; zeros until there is one
//! 544 zeros up to 4096
//! ```
//!
//! The successor is noted when it is durable under its name, before its first frame is written. So a log whose last file was
//! read up to the place where a next one begins has lost that one, and says so, instead of ending there without a word. A copy
//! of the log up to some place (a backup) may end just there and lack nothing: whoever copies leaves the note out
//! ([`NOTE_OF_NEXT_FILE`]). It lies in a sector of its own, and what is damaged there is as if it were not there.
//!
//! It is written and synced while the file is still called a spare, so a file under a log file's
//! name has a valid head: anything else is corruption, never "not begun yet".
//!
//! | version | since |
//! | --- | --- |
//! | 1 | the first one |
#![deny(clippy::indexing_slicing)]

use std::ops::Range;
use std::path::Path;

use pando_base::{Error, Result, Seqno};
use pando_storage::vfs::File;
use xxhash_rust::xxh3::xxh3_64;

/// Where the first frame of a file begins.
pub(crate) const FILE_HEAD_BYTES: u64 = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"PandoLog");
const VERSION: u32 = 1;
const FLAG_CONTINUES: u32 = 1;
pub(crate) const COVERED_BYTES: usize = 48;
pub(crate) const USED_BYTES: usize = COVERED_BYTES + 8;
/// No log comes to so many bytes or batches: whoever goes on from what a head says counts without an overflow.
const COUNT_END: u64 = 1 << 62;
const SUCCESSOR_MAGIC: u64 = u64::from_le_bytes(*b"PandoNxt");
const SUCCESSOR_AT: u64 = 512;
const SUCCESSOR_BYTES: usize = 32;
/// Where a log file has its note of the next one: in a copy of the log that ends where it was asked to, these bytes are zeros.
pub const NOTE_OF_NEXT_FILE: Range<u64> = SUCCESSOR_AT..SUCCESSOR_AT + SUCCESSOR_BYTES as u64;
const _: () = assert!(USED_BYTES as u64 <= FILE_HEAD_BYTES);

/// What the head of a log file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFileHead {
    /// Number of the file.
    pub number: u64,
    /// Seed of its frames' checksums.
    pub(crate) salt: u64,
    /// Position in the endless log of its first frame.
    pub start_lsn: u64,
    /// Seqno of its first frame.
    pub first_seqno: Seqno,
    /// Whether its first frames belong to a batch that the file before it began.
    pub continues: bool,
}

impl LogFileHead {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let flags = if self.continues { FLAG_CONTINUES } else { 0 };
        let mut bytes = Vec::with_capacity(FILE_HEAD_BYTES as usize);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&flags.to_le_bytes());
        for field in [self.number, self.salt, self.start_lsn, self.first_seqno] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        let checksum = xxh3_64(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.resize(FILE_HEAD_BYTES as usize, 0);
        bytes
    }

    pub(crate) fn decode(path: &Path, bytes: &[u8; USED_BYTES]) -> Result<LogFileHead> {
        let mut fields = [0u64; USED_BYTES / 8];
        for (field, from) in fields.iter_mut().zip(bytes.chunks_exact(8)) {
            *field = from.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
        }
        let [magic, version_and_flags, number, salt, start_lsn, first_seqno, checksum] = fields;
        let (covered, _) = bytes.split_at(COVERED_BYTES);
        let version = version_and_flags as u32;
        let flags = (version_and_flags >> 32) as u32;
        if magic == MAGIC && xxh3_64(covered) == checksum && version > VERSION {
            let (path, what) = (path.to_owned(), "head".into());
            return Err(Error::NewerFormat { path, offset: 0, what, version, known: VERSION });
        }
        let checks: [(&str, u64, u64); 4] = [
            ("magic of the log file", MAGIC, magic),
            ("checksum of the log file's head", xxh3_64(covered), checksum),
            ("format version of the log file", u64::from(VERSION), u64::from(version)),
            ("flags of the log file", u64::from(flags & FLAG_CONTINUES), u64::from(flags)),
        ];
        for (what, expected, found) in checks {
            if expected != found {
                return Err(Error::corruption(
                    path,
                    0,
                    what,
                    format!("{expected:#x}"),
                    format!("{found:#x}"),
                ));
            }
        }
        let counts = [("number", number), ("start lsn", start_lsn), ("first seqno", first_seqno)];
        if let Some((what, found)) = counts.into_iter().find(|(_, found)| *found >= COUNT_END) {
            let what = format!("{what} of the log file");
            return Err(Error::corruption(path, 0, what, format!("below {COUNT_END}"), found));
        }
        let continues = flags & FLAG_CONTINUES != 0;
        Ok(LogFileHead { number, salt, start_lsn, first_seqno, continues })
    }

    /// Reads the head of an open file.
    pub(crate) fn read(path: &Path, file: &dyn File) -> Result<LogFileHead> {
        let mut bytes = [0; USED_BYTES];
        file.read_exact_at(&mut bytes, 0)?;
        LogFileHead::decode(path, &bytes)
    }

    /// Where in the file the frame at `lsn` is. `lsn` must not be before the file's start.
    pub(crate) fn offset_of(&self, lsn: u64) -> u64 {
        debug_assert!(lsn >= self.start_lsn);
        FILE_HEAD_BYTES + (lsn - self.start_lsn)
    }

    /// The lsn of what is at `offset`, which must be behind the head.
    pub(crate) fn lsn_at(&self, offset: u64) -> u64 {
        debug_assert!(offset >= FILE_HEAD_BYTES);
        self.start_lsn.wrapping_add(offset - FILE_HEAD_BYTES)
    }
}

/// The file that follows another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Successor {
    pub(crate) number: u64,
    pub(crate) start_lsn: u64,
}

impl Successor {
    fn encode(self) -> [u8; SUCCESSOR_BYTES] {
        let mut bytes = Vec::with_capacity(SUCCESSOR_BYTES);
        for field in [SUCCESSOR_MAGIC, self.number, self.start_lsn] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        let mut all = [0; SUCCESSOR_BYTES];
        all.copy_from_slice(&bytes);
        all
    }

    /// Notes it in the file before, durably.
    pub(crate) fn note(self, file: &dyn File) -> Result<()> {
        file.write_at(&self.encode(), SUCCESSOR_AT)?;
        file.sync()
    }

    /// What a file says of the next one; `None`: nothing.
    pub(crate) fn read(file: &dyn File) -> Result<Option<Successor>> {
        if file.len()? < FILE_HEAD_BYTES {
            return Ok(None);
        }
        let mut bytes = [0; SUCCESSOR_BYTES];
        file.read_exact_at(&mut bytes, SUCCESSOR_AT)?;
        let mut fields = [0u64; SUCCESSOR_BYTES / 8];
        for (field, from) in fields.iter_mut().zip(bytes.chunks_exact(8)) {
            *field = from.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
        }
        let [_, number, start_lsn, _] = fields;
        let successor = Successor { number, start_lsn };
        Ok((bytes == successor.encode()).then_some(successor))
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "tests may panic")]
mod tests {
    use super::*;

    const HEAD: LogFileHead =
        LogFileHead { number: 3, salt: 1 << 63, start_lsn: 8000, first_seqno: 42, continues: true };

    #[test]
    fn a_head_comes_back_and_every_flipped_bit_is_found() {
        let encoded = HEAD.encode();
        assert_eq!(encoded.len() as u64, FILE_HEAD_BYTES);
        let good: [u8; USED_BYTES] = *encoded.first_chunk().unwrap();
        let path = Path::new("/log/pando-000003.log");
        assert_eq!(LogFileHead::decode(path, &good).unwrap(), HEAD);
        for bit in 0..USED_BYTES * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let error = LogFileHead::decode(path, &bytes).unwrap_err();
            assert!(matches!(error, Error::Corruption { offset: 0, .. }), "bit {bit}: {error}");
        }
    }

    #[test]
    fn a_head_of_a_later_version_is_no_damage() {
        let mut bytes: [u8; USED_BYTES] = *HEAD.encode().first_chunk().unwrap();
        bytes[8] = VERSION as u8 + 1;
        let checksum = xxh3_64(&bytes[..COVERED_BYTES]);
        bytes[COVERED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        let error = LogFileHead::decode(Path::new("/log/pando-000003.log"), &bytes).unwrap_err();
        assert!(matches!(error, Error::NewerFormat { version: 2, known: 1, .. }), "{error}");
    }

    #[test]
    fn a_head_with_numbers_that_no_log_comes_to_is_refused() {
        let heads = [
            LogFileHead { number: COUNT_END, ..HEAD },
            LogFileHead { start_lsn: u64::MAX - 100, ..HEAD },
            LogFileHead { first_seqno: u64::MAX, ..HEAD },
        ];
        for head in heads {
            let bytes: [u8; USED_BYTES] = *head.encode().first_chunk().unwrap();
            let error = LogFileHead::decode(Path::new("/log/pando-000003.log"), &bytes).unwrap_err();
            assert!(matches!(error, Error::Corruption { offset: 0, .. }), "{error}");
        }
        let most = LogFileHead { number: COUNT_END - 1, start_lsn: COUNT_END - 1, ..HEAD };
        let bytes: [u8; USED_BYTES] = *most.encode().first_chunk().unwrap();
        assert_eq!(LogFileHead::decode(Path::new("/log/x"), &bytes).unwrap(), most);
    }

    #[test]
    fn lsn_and_offset_are_each_others_inverse() {
        assert_eq!(HEAD.offset_of(8000), FILE_HEAD_BYTES);
        assert_eq!(HEAD.lsn_at(HEAD.offset_of(9048)), 9048);
    }
}
