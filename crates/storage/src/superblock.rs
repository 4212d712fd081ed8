//! The superblock: what a durable checkpoint of a dictionary says, and its bytes.
//!
//! Payload of a [`BlockKind::Superblock`] block, all u64 little-endian:
//!
//! ```text
//!  0 dict         8 epoch           16 durable_seqno   24 root offset   32 root length (0: no root)
//! 40 next_run    48 next_node       56 auto_increment  64 rows_hint     72 file_bytes
//! ```
//! Of an encrypted file the block has format version 2, and the payload goes on:
//!
//! ```text
//! 80 key id (u32)   84 salt of the file's keys (16 bytes)
//! ```
//! Where ranges of keys are deleted (`pando_base::deleted`) the block has format version 3, and the payload goes on:
//!
//! ```text
//! 80 number (u16), then for each: seqno, length of lo (u16), lo, length of hi + 1 or 0 for none (u16), hi
//! ```
//! Of a file that is being encrypted, or is encrypted and has deleted ranges, the block has format version 4, and the payload goes on:
//!
//! ```text
//! 80 key id (u32)   84 salt of the file's keys (16 bytes)   100 1: it is mixed, it may have plain blocks; 0: it has none (u8)
//! 101 deleted ranges as above, or nothing for none
//! ```
//! A payload may be longer: later versions append fields, which this one ignores.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use crate::block::{self, BlockKind, FORMAT_DELETED, FORMAT_ENCRYPTED, FORMAT_MIXED, FORMAT_PLAIN};
use crate::encryption::SALT_BYTES;
use crate::Place;
use pando_base::{DeletedRange, DictId, Error, Result, Seqno};
use std::path::Path;

/// What a durable checkpoint of a dictionary says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Superblock {
    /// The dictionary the file belongs to; [`crate::TreeFile::write_superblock`] fills it in.
    pub dict: DictId,
    /// Number of the checkpoint; [`crate::TreeFile::write_superblock`] fills it in.
    pub epoch: u64,
    /// The checkpoint holds all commits up to this one.
    pub durable_seqno: Seqno,
    /// Block of the root node; `None` for an empty tree.
    pub root: Option<Place>,
    /// First run id not yet used.
    pub next_run: u64,
    /// First node id not yet used.
    pub next_node: u64,
    /// Next auto-increment value.
    pub auto_increment: u64,
    /// Estimated number of rows.
    pub rows_hint: u64,
    /// What the file at least measures; [`crate::TreeFile::write_superblock`] fills it in.
    pub file_bytes: u64,
    /// Ranges of keys that are deleted; a file that is encrypted gets no new ones, as this page is not.
    pub deleted: Vec<DeletedRange>,
    /// With what the file's blocks are encrypted, if they are; [`crate::TreeFile::write_superblock`] fills it in.
    pub encryption: Option<FileEncryption>,
}

/// What is to be known to decrypt a file, besides the key. Once there, the same for all the file's life, but for `is_mixed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEncryption {
    /// Number of the key.
    pub key_id: u32,
    /// What the file's own keys are derived with.
    pub salt: [u8; SALT_BYTES],
    /// The file was there before its encryption began, and may have blocks that are not encrypted.
    pub is_mixed: bool,
}

/// Bytes of a superblock's payload in format version 1.
const PAYLOAD_BYTES: usize = 80;
/// Bytes of what follows in an encrypted file.
const ENCRYPTION_BYTES: usize = 4 + SALT_BYTES;

/// No file comes to so many checkpoints, commits, runs or nodes.
const COUNT_END: u64 = 1 << 62;

/// Bytes of a slot: one page, so that a slot is written whole and alone.
pub(crate) const SLOT_BYTES: usize = pando_base::limits::PAGE_BYTES as usize;

const _: () = assert!(
    block::HEADER_BYTES + PAYLOAD_BYTES + ENCRYPTION_BYTES + 1 + Superblock::DELETED_BYTES_MAX <= SLOT_BYTES
);

impl Superblock {
    /// What a file has in its two slots if this is its only checkpoint: offsets and pages.
    pub fn slots(&self) -> [(u64, Vec<u8>); 2] {
        crate::tree_file::SLOT_OFFSETS.map(|offset| (offset, self.to_page(offset)))
    }

    /// Most bytes of what deleted ranges take.
    pub const DELETED_BYTES_MAX: usize = 3072;

    /// Whether so many deleted ranges fit.
    pub fn has_room_for(deleted: &[DeletedRange]) -> bool {
        let ends = |range: &DeletedRange| range.lo.len() + range.hi.as_ref().map_or(0, Vec::len);
        let lens = deleted.iter().map(|range| DeletedRange::STORED_BYTES + ends(range));
        2 + lens.sum::<usize>() <= Superblock::DELETED_BYTES_MAX
    }

    /// The page to write at `offset`: a sealed block and zeros.
    pub(crate) fn to_page(&self, offset: u64) -> Vec<u8> {
        let root = self.root.unwrap_or(Place { offset: 0, len: 0 });
        let mut payload = Vec::with_capacity(PAYLOAD_BYTES);
        for number in [self.dict.0, self.epoch, self.durable_seqno] {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        root.encode(&mut payload);
        for number in [self.next_run, self.next_node, self.auto_increment, self.rows_hint, self.file_bytes] {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        assert_eq!(payload.len(), PAYLOAD_BYTES);
        let version = match &self.encryption {
            None => {
                encode_deleted(&self.deleted, &mut payload);
                if self.deleted.is_empty() {
                    FORMAT_PLAIN
                } else {
                    FORMAT_DELETED
                }
            }
            Some(FileEncryption { key_id, salt, is_mixed }) => {
                payload.extend_from_slice(&key_id.to_le_bytes());
                payload.extend_from_slice(salt);
                if *is_mixed || !self.deleted.is_empty() {
                    payload.push(u8::from(*is_mixed));
                    encode_deleted(&self.deleted, &mut payload);
                    FORMAT_MIXED
                } else {
                    FORMAT_ENCRYPTED
                }
            }
        };
        let mut page = Vec::with_capacity(SLOT_BYTES);
        block::seal_as(version, BlockKind::Superblock, 0, self.dict, offset, &mut page, &payload);
        page.resize(SLOT_BYTES, 0);
        page
    }

    /// Reads the superblock of `dict` from the page at `offset`.
    pub(crate) fn from_page(path: &Path, dict: DictId, offset: u64, page: &[u8]) -> Result<Superblock> {
        let block = block::check(path, BlockKind::Superblock, dict, offset, page)?;
        let mut rest = block.payload;
        let too_short = |bytes: usize| {
            let (expected, found) = (format!("{bytes} bytes"), format!("{} bytes", block.payload.len()));
            Error::corruption(path, offset, "superblock payload", expected, found)
        };
        let mut sb = Self::decode(&mut rest).ok_or_else(|| too_short(PAYLOAD_BYTES))?;
        let wrong = || Error::corruption(path, offset, "superblock payload", "deleted ranges", "other bytes");
        match block.version {
            FORMAT_ENCRYPTED => {
                let encryption = FileEncryption::decode(&mut rest);
                sb.encryption = Some(encryption.ok_or_else(|| too_short(PAYLOAD_BYTES + ENCRYPTION_BYTES))?);
            }
            FORMAT_DELETED => sb.deleted = decode_deleted(rest).ok_or_else(wrong)?,
            FORMAT_MIXED => {
                let encryption = FileEncryption::decode_mixed(&mut rest);
                let expected = PAYLOAD_BYTES + ENCRYPTION_BYTES + 1;
                sb.encryption = Some(encryption.ok_or_else(|| too_short(expected))?);
                if !rest.is_empty() {
                    sb.deleted = decode_deleted(rest).ok_or_else(wrong)?;
                }
            }
            _ => {}
        }
        // Whoever goes on from them counts without an overflow.
        let counts = [
            ("epoch", sb.epoch),
            ("durable seqno", sb.durable_seqno),
            ("next run", sb.next_run),
            ("next node", sb.next_node),
        ];
        if let Some((what, found)) = counts.into_iter().find(|(_, found)| *found >= COUNT_END) {
            let what = format!("superblock {what}");
            return Err(Error::corruption(path, offset, what, format!("below {COUNT_END}"), found));
        }
        if sb.dict != dict {
            return Err(Error::corruption(path, offset, "superblock dictionary", dict, sb.dict));
        }
        Ok(sb)
    }

    fn decode(rest: &mut &[u8]) -> Option<Superblock> {
        let number = |rest: &mut &[u8]| {
            let (head, tail) = rest.split_first_chunk::<8>()?;
            *rest = tail;
            Some(u64::from_le_bytes(*head))
        };
        Some(Superblock {
            dict: DictId(number(rest)?),
            epoch: number(rest)?,
            durable_seqno: number(rest)?,
            root: Some(Place::decode(rest)?).filter(|root| root.len > 0),
            next_run: number(rest)?,
            next_node: number(rest)?,
            auto_increment: number(rest)?,
            rows_hint: number(rest)?,
            file_bytes: number(rest)?,
            deleted: Vec::new(),
            encryption: None,
        })
    }
}

/// Nothing for no ranges: as before there were any.
fn encode_deleted(deleted: &[DeletedRange], out: &mut Vec<u8>) {
    assert!(Superblock::has_room_for(deleted), "{} deleted ranges are too many", deleted.len());
    if deleted.is_empty() {
        return;
    }
    let short = |n: usize| (n as u16).to_le_bytes();
    out.extend_from_slice(&short(deleted.len()));
    for range in deleted {
        out.extend_from_slice(&range.seqno.to_le_bytes());
        out.extend_from_slice(&short(range.lo.len()));
        out.extend_from_slice(&range.lo);
        out.extend_from_slice(&short(range.hi.as_ref().map_or(0, |hi| hi.len() + 1)));
        out.extend_from_slice(range.hi.as_deref().unwrap_or_default());
    }
}

fn decode_deleted(mut rest: &[u8]) -> Option<Vec<DeletedRange>> {
    fn take<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
        let (head, tail) = rest.split_at_checked(n)?;
        *rest = tail;
        Some(head)
    }
    let short = |rest: &mut &[u8]| take(rest, 2)?.try_into().ok().map(u16::from_le_bytes).map(usize::from);
    let number = short(&mut rest)?;
    let mut deleted = Vec::new();
    for _ in 0..number {
        let seqno = Seqno::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?);
        let len = short(&mut rest)?;
        let lo = take(&mut rest, len)?.to_vec();
        let hi = match short(&mut rest)? {
            0 => None,
            len => Some(take(&mut rest, len - 1)?.to_vec()),
        };
        deleted.push(DeletedRange { lo, hi, seqno });
    }
    Some(deleted)
}

impl FileEncryption {
    /// Of a file of which every block is encrypted.
    pub fn whole(key_id: u32, salt: [u8; SALT_BYTES]) -> FileEncryption {
        FileEncryption { key_id, salt, is_mixed: false }
    }

    fn decode(rest: &mut &[u8]) -> Option<FileEncryption> {
        let (key_id, tail) = rest.split_first_chunk::<4>()?;
        let (salt, tail) = tail.split_first_chunk::<SALT_BYTES>()?;
        *rest = tail;
        Some(FileEncryption { key_id: u32::from_le_bytes(*key_id), salt: *salt, is_mixed: false })
    }

    fn decode_mixed(rest: &mut &[u8]) -> Option<FileEncryption> {
        let encryption = FileEncryption::decode(rest)?;
        let (flag, tail) = rest.split_first()?;
        *rest = tail;
        Some(FileEncryption { is_mixed: *flag != 0, ..encryption })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Superblock {
        Superblock {
            dict: DictId(9),
            epoch: 4,
            durable_seqno: 77,
            root: Some(Place { offset: 20480, len: 333 }),
            next_run: 5,
            next_node: 6,
            auto_increment: 7,
            rows_hint: 8,
            file_bytes: 24576,
            deleted: Vec::new(),
            encryption: None,
        }
    }

    #[test]
    fn a_superblock_keeps_deleted_ranges() {
        let range = |lo: &[u8], hi: Option<&[u8]>| DeletedRange {
            lo: lo.to_vec(),
            hi: hi.map(<[u8]>::to_vec),
            seqno: 71,
        };
        let deleted = vec![range(b"", None), range(b"a", Some(b"")), range(&[7; 1000], Some(&[8; 1500]))];
        let sb = Superblock { deleted, ..sample() };
        let page = sb.to_page(4096);
        assert_eq!(page.len(), SLOT_BYTES);
        assert_eq!(Superblock::from_page(Path::new("t"), DictId(9), 4096, &page).unwrap(), sb);
        assert!(!Superblock::has_room_for(&[range(&[1; 3000], Some(&[2; 3000]))]));
    }

    #[test]
    fn a_superblock_survives_its_page_with_and_without_a_root() {
        for root in [sample().root, None] {
            let sb = Superblock { root, ..sample() };
            let page = sb.to_page(4096);
            assert_eq!(page.len(), SLOT_BYTES);
            assert_eq!(Superblock::from_page(Path::new("/t"), DictId(9), 4096, &page).unwrap(), sb);
            assert_eq!(page[5], 1, "what is not encrypted is as the first version wrote it");
        }
    }

    #[test]
    fn a_superblock_says_how_its_file_is_encrypted_in_a_version_of_its_own() {
        let encryption = Some(FileEncryption { key_id: 70_000, salt: [7; SALT_BYTES], is_mixed: false });
        let sb = Superblock { encryption, ..sample() };
        let page = sb.to_page(4096);
        assert_eq!(page[5], 2, "releases that know nothing of it must not write to the file");
        assert_eq!(Superblock::from_page(Path::new("/t"), DictId(9), 4096, &page).unwrap(), sb);
    }

    #[test]
    fn a_mixed_file_says_so_in_a_version_of_its_own_with_all_its_deleted_ranges() {
        let ranges = [
            vec![],
            vec![DeletedRange { lo: b"a".to_vec(), hi: None, seqno: 71 }],
            // As many bytes as there may be.
            vec![DeletedRange { lo: vec![1; 1500], hi: Some(vec![2; 1500]), seqno: 72 }],
        ];
        for deleted in ranges {
            for is_mixed in [true, false] {
                let encryption = Some(FileEncryption { key_id: 70_000, salt: [7; SALT_BYTES], is_mixed });
                let sb = Superblock { encryption, deleted: deleted.clone(), ..sample() };
                let page = sb.to_page(4096);
                assert_eq!(page[5], if is_mixed || !deleted.is_empty() { 4 } else { 2 });
                assert_eq!(Superblock::from_page(Path::new("/t"), DictId(9), 4096, &page).unwrap(), sb);
            }
        }
        let mut short = Vec::new();
        block::seal_as(FORMAT_MIXED, BlockKind::Superblock, 0, DictId(9), 0, &mut short, &[0; 100]);
        let text = Superblock::from_page(Path::new("/t"), DictId(9), 0, &short).unwrap_err().to_string();
        assert!(text.contains("expected 101 bytes, found 100 bytes"), "{text}");
    }

    #[test]
    fn a_superblock_with_numbers_that_no_file_comes_to_is_refused() {
        let too_large = [
            Superblock { epoch: u64::MAX, ..sample() },
            Superblock { durable_seqno: u64::MAX, ..sample() },
            Superblock { next_run: COUNT_END, ..sample() },
            Superblock { next_node: u64::MAX, ..sample() },
        ];
        for sb in too_large {
            let error = Superblock::from_page(Path::new("/t"), DictId(9), 0, &sb.to_page(0)).unwrap_err();
            assert!(error.is_damage() && error.to_string().contains("expected below"), "{error}");
        }
        // An auto-increment value may be the largest there is.
        let sb = Superblock { auto_increment: u64::MAX, next_run: COUNT_END - 1, ..sample() };
        assert_eq!(Superblock::from_page(Path::new("/t"), DictId(9), 0, &sb.to_page(0)).unwrap(), sb);
    }

    #[test]
    fn a_superblock_of_another_dictionary_slot_or_size_is_refused() {
        let page = sample().to_page(0);
        Superblock::from_page(Path::new("/t"), DictId(8), 0, &page).unwrap_err();
        Superblock::from_page(Path::new("/t"), DictId(9), 4096, &page).unwrap_err();
        let mut short = Vec::new();
        block::seal(BlockKind::Superblock, 0, DictId(9), 0, &mut short, &[0; PAYLOAD_BYTES - 1]);
        let text = Superblock::from_page(Path::new("/t"), DictId(9), 0, &short).unwrap_err().to_string();
        assert!(text.contains("expected 80 bytes, found 79 bytes"), "{text}");
    }
}
