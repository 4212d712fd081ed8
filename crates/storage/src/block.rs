//! The frame of every block on disk: a header that says what the block is and whose, and a checksum
//! that covers all of it and the place it was meant for.
//!
//! ```text
//!  0  magic          "PNDO"
//!  4  kind           u8    BlockKind
//!  5  format version u8    of this header and of the payloads of all kinds; 2: encrypted; 3: superblock with deleted ranges;
//!                          4: superblock of a file that is being encrypted
//!  6  codec          u8    free for the owner of the payload
//!  7  zero           u8
//!  8  owner          u64   dictionary
//! 16  payload length u64
//! 24  checksum       u64   xxh3-64 of the payload, seeded with xxh3-64 of bytes 0..24,
//!                          itself seeded with the offset of the block in its file
//! 32  payload
//! ```
//! All numbers little-endian. Because the seed is the file offset and the owner is in the header, a
//! block that a disk wrote to or read from the wrong place does not pass (I8).
//!
//! In a file that is encrypted all blocks have format version 2, but for those that were there before its encryption began, as long as its
//! superblock says that it is mixed. Superblocks say there with which key (`superblock`) and are
//! otherwise as ever. Of all others the payload is
//!
//! ```text
//!  0  key id         u32   of the user's key that the file's is derived from, and
//!  4  key version    u32   which version of it
//!  8  nonce          12 bytes
//! 20  clear length   u32
//! 24  clear bytes          what can be told without the key; only nodes have some
//!     encrypted bytes      as many as the payload would have
//!     tag            16 bytes
//! ```
//! AES-256-GCM, which also covers: bytes 0..24 of the header, the offset of the block in its file (u64), the first 8 bytes of the
//! payload, and the clear bytes. The checksum covers what is written, so it can be checked without the key; a block that
//! passes it and cannot be decrypted is not rot: the key is another one.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use crate::encryption::{Cipher, Sealed, KEY_AND_NONCE_BYTES, NONCE_BYTES, TAG_BYTES};
use pando_base::planted::{is_planted, Bug};
use pando_base::{DictId, Error, Result};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockKind {
    /// A superblock of a tree file.
    Superblock = 1,
    /// A segment of a run.
    Segment = 2,
    /// The index of a run's segments.
    RunIndex = 3,
    /// A page of a run's filter.
    Filter = 4,
    /// A tree node.
    Node = 5,
    /// Sorted entries of a bulk load that wait for their merge; nothing on disk refers to them.
    Spill = 6,
    /// What the segments of a run have in common.
    Common = 7,
}

impl BlockKind {
    fn from_byte(byte: u8) -> Option<BlockKind> {
        use BlockKind::{Common, Filter, Node, RunIndex, Segment, Spill, Superblock};
        let all = [Superblock, Segment, RunIndex, Filter, Node, Spill, Common];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }

    fn name_of(byte: u8) -> String {
        BlockKind::from_byte(byte).map_or_else(|| format!("kind {byte}"), |kind| format!("{kind:?}"))
    }
}

/// What the first bytes of a block that was not checked say that it is.
pub(crate) fn kind_of(bytes: &[u8]) -> Option<BlockKind> {
    BlockKind::from_byte(*bytes.get(4)?)
}

/// The first version of the format.
pub const FORMAT_PLAIN: u8 = 1;
/// The version of all blocks in encrypted files.
pub const FORMAT_ENCRYPTED: u8 = 2;
/// The version of a superblock with deleted ranges: a server that does not know them must not read such a file.
pub const FORMAT_DELETED: u8 = 3;
/// The version of a superblock of a file with encrypted blocks and plain ones, or with deleted ranges and encrypted blocks: a server that
/// does not know it must not read such a file.
pub const FORMAT_MIXED: u8 = 4;
/// The newest version of the format.
pub const FORMAT_VERSION: u8 = FORMAT_MIXED;

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 32;

pub(crate) const MAGIC: [u8; 4] = *b"PNDO";
/// The part of the header that the checksum covers: all but the checksum.
pub(crate) const COVERED_BYTES: usize = 24;
const _: () = assert!(COVERED_BYTES + 8 == HEADER_BYTES);

pub(crate) fn checksum(covered: &[u8; COVERED_BYTES], offset: u64, payload: &[u8]) -> u64 {
    xxh3_64_with_seed(payload, xxh3_64_with_seed(covered, offset))
}

/// Bytes that an encrypted block has beyond its clear bytes and its payload.
pub(crate) const SEALED_BYTES: usize = KEY_AND_NONCE_BYTES + 4 + TAG_BYTES;
/// Most bytes that a block without clear bytes has beyond its payload.
pub const OVERHEAD_BYTES_MAX: usize = HEADER_BYTES + SEALED_BYTES;

/// So many of an encrypted block's first bytes tell the version of its key.
pub(crate) const VERSION_HEAD_BYTES: usize = HEADER_BYTES + 8;

/// The version of the key that the first bytes of an encrypted block tell; 0 of a plain one, as versions count from 1. Nothing is
/// checked: `None` only if they are of another block.
pub(crate) fn key_version_of(bytes: &[u8]) -> Option<u32> {
    if bytes.get(..4)? != MAGIC {
        return None;
    }
    match *bytes.get(5)? {
        FORMAT_PLAIN => Some(0),
        FORMAT_ENCRYPTED => {
            let version = bytes.get(HEADER_BYTES + 4..VERSION_HEAD_BYTES)?;
            version.try_into().ok().map(u32::from_le_bytes)
        }
        _ => None,
    }
}

/// What the checksum covers of the header.
fn covered(version: u8, kind: BlockKind, codec: u8, owner: DictId, len: usize) -> [u8; COVERED_BYTES] {
    let mut covered = [0; COVERED_BYTES];
    let (head, tail) = covered.split_at_mut(8);
    head.copy_from_slice(&[MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3], kind as u8, version, codec, 0]);
    let (owner_field, length_field) = tail.split_at_mut(8);
    owner_field.copy_from_slice(&owner.0.to_le_bytes());
    length_field.copy_from_slice(&(len as u64).to_le_bytes());
    covered
}

/// Appends header and payload of a block that will be written at `offset` of the file of `owner`.
pub fn seal(kind: BlockKind, codec: u8, owner: DictId, offset: u64, out: &mut Vec<u8>, payload: &[u8]) {
    seal_as(FORMAT_PLAIN, kind, codec, owner, offset, out, payload);
}

/// As [`seal`] in this version of the format, whose payload is given.
pub(crate) fn seal_as(
    version: u8,
    kind: BlockKind,
    codec: u8,
    owner: DictId,
    offset: u64,
    out: &mut Vec<u8>,
    payload: &[u8],
) {
    let covered = covered(version, kind, codec, owner, payload.len());
    out.reserve(HEADER_BYTES + payload.len());
    out.extend_from_slice(&covered);
    out.extend_from_slice(&checksum(&covered, offset, payload).to_le_bytes());
    out.extend_from_slice(payload);
}

/// What a block is, for [`seal_encrypted`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockName<'a> {
    pub(crate) path: &'a Path,
    pub(crate) kind: BlockKind,
    pub(crate) codec: u8,
    pub(crate) owner: DictId,
    pub(crate) offset: u64,
}

/// Appends an encrypted block. After an error `out` is as before.
pub(crate) fn seal_encrypted(
    cipher: &Cipher,
    block: BlockName<'_>,
    clear: &[u8],
    out: &mut Vec<u8>,
    payload: &[u8],
) -> Result<()> {
    let BlockName { path, kind, codec, owner, offset } = block;
    let len = SEALED_BYTES + clear.len() + payload.len();
    let covered = covered(FORMAT_ENCRYPTED, kind, codec, owner, len);
    let mut body = Vec::with_capacity(len);
    body.resize(KEY_AND_NONCE_BYTES, 0);
    body.extend_from_slice(&(clear.len() as u32).to_le_bytes());
    body.extend_from_slice(clear);
    let text_begin = body.len();
    body.extend_from_slice(payload);
    let text = body.split_at_mut(text_begin).1;
    let data = |version| data_of(&covered, offset, cipher.key_id(), version, clear);
    let sealed = cipher.seal(path, data, text)?;
    body.extend_from_slice(&sealed.tag);
    let mut fields =
        cipher.key_id().to_le_bytes().into_iter().chain(sealed.version.to_le_bytes()).chain(sealed.nonce);
    body.iter_mut().take(KEY_AND_NONCE_BYTES).for_each(|byte| *byte = fields.next().unwrap_or(0));

    out.reserve(HEADER_BYTES + len);
    out.extend_from_slice(&covered);
    out.extend_from_slice(&checksum(&covered, offset, &body).to_le_bytes());
    out.extend_from_slice(&body);
    Ok(())
}

/// What the tag of an encrypted block covers besides its encrypted bytes.
fn data_of(covered: &[u8; COVERED_BYTES], offset: u64, key_id: u32, version: u32, clear: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(COVERED_BYTES + 16 + clear.len());
    data.extend_from_slice(covered);
    data.extend_from_slice(&offset.to_le_bytes());
    data.extend_from_slice(&key_id.to_le_bytes());
    data.extend_from_slice(&version.to_le_bytes());
    data.extend_from_slice(clear);
    data
}

/// An encrypted block whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub struct EncryptedBlock<'a> {
    covered: &'a [u8; COVERED_BYTES],
    offset: u64,
    /// Number of the key.
    pub key_id: u32,
    /// Version of the key.
    pub key_version: u32,
    nonce: [u8; NONCE_BYTES],
    /// What can be told without the key.
    pub clear: &'a [u8],
    text: &'a [u8],
    tag: [u8; TAG_BYTES],
}

impl<'a> EncryptedBlock<'a> {
    /// `None`: the payload is too short.
    fn parse(covered: &'a [u8; COVERED_BYTES], offset: u64, payload: &'a [u8]) -> Option<EncryptedBlock<'a>> {
        let (key_id, rest) = payload.split_first_chunk::<4>()?;
        let (key_version, rest) = rest.split_first_chunk::<4>()?;
        let (nonce, rest) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let (clear_len, rest) = rest.split_first_chunk::<4>()?;
        let (clear, rest) = rest.split_at_checked(u32::from_le_bytes(*clear_len) as usize)?;
        let (text, tag) = rest.split_last_chunk::<TAG_BYTES>()?;
        let (key_id, key_version) = (u32::from_le_bytes(*key_id), u32::from_le_bytes(*key_version));
        Some(EncryptedBlock { covered, offset, key_id, key_version, nonce: *nonce, clear, text, tag: *tag })
    }

    /// Bytes that it takes in the file.
    pub(crate) fn bytes(&self) -> usize {
        OVERHEAD_BYTES_MAX + self.clear.len() + self.text.len()
    }

    /// The payload.
    pub(crate) fn decrypt(&self, cipher: &Cipher, path: &Path) -> Result<Vec<u8>> {
        if self.key_id != cipher.key_id() {
            let (expected, found) = (cipher.key_id(), self.key_id);
            return Err(Error::corruption(path, self.offset, "key of an encrypted block", expected, found));
        }
        let sealed = Sealed { version: self.key_version, nonce: self.nonce, tag: self.tag };
        let data = data_of(self.covered, self.offset, self.key_id, self.key_version, self.clear);
        let mut bytes = self.text.to_vec();
        cipher.open(path, &sealed, &data, &mut bytes)?;
        Ok(bytes)
    }
}

/// A block whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'a> {
    pub(crate) version: u8,
    pub(crate) codec: u8,
    pub(crate) payload: &'a [u8],
    covered: &'a [u8; COVERED_BYTES],
    offset: u64,
}

impl<'a> Checked<'a> {
    /// Its parts, if it is no superblock and has format version 2.
    pub(crate) fn encrypted(&self, path: &Path) -> Result<EncryptedBlock<'a>> {
        EncryptedBlock::parse(self.covered, self.offset, self.payload).ok_or_else(|| {
            let found = format!("{} bytes", self.payload.len());
            Error::corruption(path, self.offset, "payload of an encrypted block", "all its parts", found)
        })
    }
}

/// Checks a block read from `offset` and gives its codec byte and payload. Bytes after the block
/// are ignored. Never panics, whatever the bytes.
///
/// # Errors
/// [`Error::Corruption`] naming what is wrong, expected and found; [`Error::NewerFormat`].
pub fn open<'a>(
    path: &Path,
    kind: BlockKind,
    owner: DictId,
    offset: u64,
    bytes: &'a [u8],
) -> Result<(u8, &'a [u8])> {
    let block = check(path, kind, owner, offset, bytes)?;
    match block.version {
        FORMAT_PLAIN => Ok((block.codec, block.payload)),
        version => Err(Error::corruption(path, offset, "format version", FORMAT_PLAIN, version)),
    }
}

/// As [`open`] for a block of any version.
pub(crate) fn check<'a>(
    path: &Path,
    kind: BlockKind,
    owner: DictId,
    offset: u64,
    bytes: &'a [u8],
) -> Result<Checked<'a>> {
    let wrong = |what: &str, expected: String, found: String| {
        Err(Error::corruption(path, offset, format!("{kind:?} block: {what}"), expected, found))
    };
    let too_short = || wrong("header", format!("{HEADER_BYTES} bytes"), format!("{} bytes", bytes.len()));
    let Some((covered, rest)) = bytes.split_first_chunk::<COVERED_BYTES>() else { return too_short() };
    let Some((stored_sum, rest)) = rest.split_first_chunk::<8>() else { return too_short() };

    let [m0, m1, m2, m3, found_kind, version, codec, _, numbers @ ..] = *covered;
    let [o0, o1, o2, o3, o4, o5, o6, o7, length @ ..] = numbers;
    let found_owner = u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
    let length = u64::from_le_bytes(length);

    let magic = [m0, m1, m2, m3];
    if magic != MAGIC {
        return wrong("magic", format!("{MAGIC:02x?}"), format!("{magic:02x?}"));
    }
    if version == 0 {
        return wrong("format version", format!("1 to {FORMAT_VERSION}"), version.to_string());
    }
    let Some(payload) = usize::try_from(length).ok().and_then(|length| rest.get(..length)) else {
        return wrong("payload length", format!("at most {}", rest.len()), length.to_string());
    };
    let computed = checksum(covered, offset, payload);
    let stored = u64::from_le_bytes(*stored_sum);
    if computed != stored && !is_planted(Bug::BlockChecksumIgnored) {
        return wrong("checksum", format!("{stored:016x}"), format!("{computed:016x}"));
    }
    // The checksum is right: from here on it is a block that was written here, but not ours.
    if version > FORMAT_VERSION {
        let (what, known) = (format!("{kind:?}").to_lowercase(), FORMAT_VERSION.into());
        return Err(Error::NewerFormat {
            path: path.to_owned(),
            offset,
            what,
            version: version.into(),
            known,
        });
    }
    if found_kind != kind as u8 {
        return wrong("kind", format!("{kind:?}"), BlockKind::name_of(found_kind));
    }
    if found_owner != owner.0 {
        return wrong("owner", owner.to_string(), found_owner.to_string());
    }
    Ok(Checked { version, codec, payload, covered, offset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OWNER: DictId = DictId(7);

    fn sealed(offset: u64, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        seal(BlockKind::Segment, 3, OWNER, offset, &mut out, payload);
        out
    }

    fn error_of(kind: BlockKind, owner: DictId, offset: u64, bytes: &[u8]) -> String {
        open(Path::new("/t/main.pando"), kind, owner, offset, bytes).unwrap_err().to_string()
    }

    #[test]
    fn a_block_gives_back_its_payload_and_ignores_what_follows() {
        let mut bytes = sealed(4096, b"hello");
        assert_eq!(bytes.len(), HEADER_BYTES + 5);
        bytes.extend_from_slice(&[0; 100]);
        let opened = open(Path::new("/t"), BlockKind::Segment, OWNER, 4096, &bytes).unwrap();
        assert_eq!(opened, (3, b"hello".as_slice()));
    }

    #[test]
    fn blocks_are_appended_to_what_is_in_the_buffer() {
        let mut out = vec![9; 10];
        seal(BlockKind::Node, 0, OWNER, 8192, &mut out, b"");
        assert_eq!(open(Path::new("/t"), BlockKind::Node, OWNER, 8192, &out[10..]).unwrap().1, b"");
    }

    #[test]
    fn a_block_at_the_wrong_offset_of_the_wrong_kind_or_owner_is_refused_by_name() {
        let bytes = sealed(4096, b"hello");
        assert!(error_of(BlockKind::Segment, OWNER, 8192, &bytes).contains("checksum"));
        let text = error_of(BlockKind::Node, OWNER, 4096, &bytes);
        assert!(text.contains("kind: expected Node, found Segment"), "{text}");
        let text = error_of(BlockKind::Segment, DictId(8), 4096, &bytes);
        assert!(text.contains("owner: expected 8, found 7"), "{text}");
        assert!(text.contains("/t/main.pando at offset 4096"), "{text}");
    }

    #[test]
    fn a_newer_format_is_told_from_rot() {
        let mut newer = Vec::new();
        seal_as(FORMAT_VERSION + 1, BlockKind::Segment, 3, OWNER, 0, &mut newer, b"hello");
        let error = check(Path::new("/t"), BlockKind::Segment, OWNER, 0, &newer).unwrap_err();
        assert!(matches!(error, Error::NewerFormat { .. }), "{error}");
        let mut rotten = sealed(0, b"hello");
        rotten[5] = FORMAT_VERSION + 1;
        assert!(error_of(BlockKind::Segment, OWNER, 0, &rotten).contains("checksum"));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let whole = sealed(4096, b"some payload");
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            open(Path::new("/t"), BlockKind::Segment, OWNER, 4096, &bytes).unwrap_err();
        }
        for len in 0..whole.len() {
            open(Path::new("/t"), BlockKind::Segment, OWNER, 4096, &whole[..len]).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_an_error_never_a_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
            head in any::<bool>(),
        ) {
            if head && bytes.len() >= 6 {
                bytes[..4].copy_from_slice(&MAGIC);
                bytes[5] = FORMAT_VERSION;
            }
            prop_assert!(open(Path::new("/t"), BlockKind::Node, OWNER, 0, &bytes).is_err());
        }
    }
}
