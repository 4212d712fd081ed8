//! The decoders of this crate, for `pando-fuzz`: of blocks, superblocks and encrypted blocks.
//!
//! Checksums would keep nearly every mutant out, and let in only what the seeds are. So [`reseal`] makes them right again, and the
//! decoders see what only a bug, or somebody with a purpose, can have written.
#![allow(clippy::unwrap_used, reason = "seeds are made of what is valid")]

use std::path::Path;
use std::sync::Arc;

use pando_base::fuzz::Target;
use pando_base::{DeletedRange, DictId};

use crate::block::{self, BlockKind, BlockName, COVERED_BYTES, HEADER_BYTES, MAGIC};
use crate::encryption::{Cipher, KeyList, KeyRing, Purpose, SecretKey, SALT_BYTES};
use crate::superblock::{FileEncryption, SLOT_BYTES};
use crate::{Place, Superblock};

const OWNER: DictId = DictId(7);
const OFFSET: u64 = 4096;

/// All of them.
pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "block",
            reads: "the frame of every block (storage/src/block.rs)",
            seeds: block_seeds,
            accepts: accepts_block,
        },
        Target {
            name: "encrypted-block",
            reads: "blocks of encrypted files, with their key (storage/src/block.rs)",
            seeds: encrypted_seeds,
            accepts: accepts_encrypted,
        },
        Target {
            name: "superblock",
            reads: "superblocks in all their versions (storage/src/superblock.rs)",
            seeds: superblock_seeds,
            accepts: accepts_superblock,
        },
    ]
}

/// Makes right the checksums of all blocks in `file`, whose first byte is at `offset` of the tree file: of whatever begins as a block does
/// and is as long as it says.
pub fn reseal(offset: u64, file: &mut [u8]) {
    let mut at = 0;
    while let Some(rest) = file.get_mut(at..).filter(|rest| rest.len() >= HEADER_BYTES) {
        at += if rest.starts_with(&MAGIC) { reseal_block(offset + at as u64, rest) } else { 4 };
    }
}

/// How many bytes the block has.
fn reseal_block(offset: u64, bytes: &mut [u8]) -> usize {
    let Some((header, rest)) = bytes.split_first_chunk_mut::<HEADER_BYTES>() else { return HEADER_BYTES };
    let (covered, sum) = header.split_first_chunk_mut::<COVERED_BYTES>().unwrap();
    let length = u64::from_le_bytes(*covered.last_chunk::<8>().unwrap());
    let Some(payload) = usize::try_from(length).ok().and_then(|length| rest.get(..length)) else { return 4 };
    sum.copy_from_slice(&block::checksum(covered, offset, payload).to_le_bytes());
    HEADER_BYTES + payload.len()
}

fn resealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= HEADER_BYTES {
        reseal_block(OFFSET, &mut bytes);
    }
    bytes
}

fn block_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for payload in [&b""[..], b"x", &[7; 100]] {
        let mut bytes = Vec::new();
        block::seal(BlockKind::Node, 3, OWNER, OFFSET, &mut bytes, payload);
        seeds.push(bytes);
    }
    seeds
}

fn accepts_block(bytes: &[u8]) -> bool {
    let kinds = [BlockKind::Segment, BlockKind::RunIndex, BlockKind::Spill];
    for kind in kinds {
        let _ = block::open(Path::new("f"), kind, OWNER, OFFSET, bytes);
    }
    block::open(Path::new("f"), BlockKind::Node, OWNER, OFFSET, &resealed(bytes)).is_ok()
}

fn cipher() -> Cipher {
    let keys = KeyList::new().with(5, 1, SecretKey::new(vec![9; 32]));
    Cipher::new(KeyRing::new(Arc::new(keys)), Purpose::TreeFile, 5, [3; SALT_BYTES])
}

fn encrypted_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (clear, payload) in [(&b""[..], &b"a payload"[..]), (&[1; 40], &[2; 100]), (b"clear", b"")] {
        let block =
            BlockName { path: Path::new("f"), kind: BlockKind::Node, codec: 0, owner: OWNER, offset: OFFSET };
        let mut bytes = Vec::new();
        block::seal_encrypted(&cipher(), block, clear, &mut bytes, payload).unwrap();
        seeds.push(bytes);
    }
    seeds
}

fn accepts_encrypted(bytes: &[u8]) -> bool {
    let (path, bytes) = (Path::new("f"), resealed(bytes));
    let Ok(block) = block::check(path, BlockKind::Node, OWNER, OFFSET, &bytes) else { return false };
    let Ok(block) = block.encrypted(path) else { return false };
    assert!(block.bytes() <= bytes.len());
    block.decrypt(&cipher(), path).is_ok()
}

fn superblock_seeds() -> Vec<Vec<u8>> {
    let range = |lo: &[u8], hi: Option<&[u8]>| DeletedRange {
        lo: lo.to_vec(),
        hi: hi.map(<[u8]>::to_vec),
        seqno: 71,
    };
    let root = Some(Place { offset: 20480, len: 333 });
    let plain = Superblock { dict: OWNER, epoch: 4, durable_seqno: 77, next_run: 5, ..Superblock::default() };
    let deleted = vec![range(b"", None), range(b"a", Some(b"")), range(b"b", Some(b"cc"))];
    let encryption = Some(FileEncryption { key_id: 70_000, salt: [7; SALT_BYTES], is_mixed: false });
    let mixed = Some(FileEncryption { key_id: 5, salt: [8; SALT_BYTES], is_mixed: true });
    let all = [
        plain.clone(),
        Superblock { root, ..plain.clone() },
        Superblock { root, deleted: deleted.clone(), ..plain.clone() },
        Superblock { root, encryption: mixed, ..plain.clone() },
        Superblock { root, deleted, encryption: mixed, ..plain.clone() },
        Superblock { encryption, ..plain },
    ];
    // Without the zeros behind it: there is nothing to be found in them.
    let without_zeros = |mut page: Vec<u8>| {
        let used = page.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        page.truncate((used + 16).min(page.len()));
        page
    };
    all.map(|superblock| without_zeros(superblock.to_page(OFFSET))).to_vec()
}

fn accepts_superblock(bytes: &[u8]) -> bool {
    let mut page = resealed(bytes);
    page.resize(SLOT_BYTES, 0);
    let Ok(superblock) = Superblock::from_page(Path::new("f"), OWNER, OFFSET, &page) else { return false };
    // What was read can be written again, unless it has more ranges than anybody writes.
    if Superblock::has_room_for(&superblock.deleted) {
        superblock.to_page(OFFSET);
    }
    true
}
