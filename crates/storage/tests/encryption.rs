//! Blocks of encrypted tree files: nothing to be read in them, nothing that can be changed or moved, and which error says what.
#![allow(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

use std::path::Path;
use std::sync::Arc;

use pando_base::{DictId, Error};
use pando_storage::encryption::{KeyList, KeyRing, SecretKey};
use pando_storage::vfs::{SimVfs, Vfs};
use pando_storage::{block, BlockKind, Superblock, TreeFile};

const DICT: DictId = DictId(20);
const SECRET: &[u8] = b"a row that nobody may read without the key";

fn keys(bytes: &[(u32, u32, u8, usize)]) -> KeyRing {
    let list = bytes.iter().fold(KeyList::new(), |list, (id, version, byte, len)| {
        list.with(*id, *version, SecretKey::new(vec![*byte; *len]))
    });
    KeyRing::new(Arc::new(list))
}

fn vfs() -> Arc<dyn Vfs> {
    let vfs: Arc<dyn Vfs> = SimVfs::new(1);
    vfs.create_dir_all(Path::new("/d")).unwrap();
    vfs
}

fn create(vfs: &Arc<dyn Vfs>, name: &str, keys: &KeyRing) -> Arc<TreeFile> {
    TreeFile::create_encrypted(vfs, &Path::new("/d").join(name), DICT, keys, 7).unwrap()
}

fn sealed(file: &TreeFile, offset: u64) -> Vec<u8> {
    let mut out = vec![9; 3];
    let sealing = file.sealing();
    sealing.seal(BlockKind::Node, 5, offset, b"places", &mut out, SECRET).unwrap();
    assert_eq!(out.len() as u64 - 3, sealing.block_bytes(6, SECRET.len()));
    out.split_off(3)
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// With a right checksum, as somebody would write it who wants it to be believed.
fn with_checksum(bytes: &mut [u8], offset: u64) {
    use xxhash_rust::xxh3::xxh3_64_with_seed;
    let sum = xxh3_64_with_seed(&bytes[32..], xxh3_64_with_seed(&bytes[..24], offset));
    bytes[24..32].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn a_block_gives_back_its_payload_and_shows_only_its_clear_bytes() {
    for len in [16, 24, 32] {
        let file = create(&vfs(), "t", &keys(&[(7, 1, 3, len)]));
        let mut bytes = sealed(&file, 16384);
        assert!(!has(&bytes, &SECRET[..6]) && has(&bytes, b"places"));
        assert_ne!(bytes, sealed(&file, 16384), "no nonce comes twice");
        bytes.extend_from_slice(&[1; 50]);
        let (codec, payload) = file.open_block(BlockKind::Node, 16384, &bytes).unwrap();
        assert_eq!((codec, &payload[..]), (5, SECRET));
        let block = file.open_without_key(BlockKind::Node, 16384, &bytes).unwrap();
        assert_eq!((block.key_id, block.key_version, block.clear), (7, 1, &b"places"[..]));
    }
}

#[test]
fn rot_is_corruption_and_a_change_with_a_right_checksum_is_refused_too() {
    let file = create(&vfs(), "t", &keys(&[(7, 1, 3, 32)]));
    let whole = sealed(&file, 16384);
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = file.open_block(BlockKind::Node, 16384, &bytes).unwrap_err();
        assert!(matches!(error, Error::Corruption { .. }), "bit {bit}: {error}");
        with_checksum(&mut bytes, 16384);
        if bytes != whole {
            file.open_block(BlockKind::Node, 16384, &bytes).unwrap_err();
        }
    }
    for len in 0..whole.len() {
        file.open_block(BlockKind::Node, 16384, &whole[..len]).unwrap_err();
    }
}

#[test]
fn blocks_that_were_moved_within_a_file_or_from_another_are_noticed() {
    let (vfs, keys) = (vfs(), keys(&[(7, 1, 3, 32)]));
    let (one, two) = (create(&vfs, "one", &keys), create(&vfs, "two", &keys));
    let mut bytes = sealed(&one, 16384);
    with_checksum(&mut bytes, 20480);
    let error = one.open_block(BlockKind::Node, 20480, &bytes).unwrap_err();
    assert!(matches!(error, Error::Key { key_id: 7, version: 1, .. }), "{error}");
    // The same place of the same dictionary, as in a copy of the database that went another way.
    let bytes = sealed(&one, 16384);
    let error = two.open_block(BlockKind::Node, 16384, &bytes).unwrap_err();
    assert!(matches!(error, Error::Key { .. }), "{error}");
}

#[test]
fn a_plain_block_in_an_encrypted_file_is_not_believed_nor_the_other_way_round() {
    let (vfs, keys) = (vfs(), keys(&[(7, 1, 3, 32)]));
    let encrypted = create(&vfs, "one", &keys);
    let plain = TreeFile::create(&vfs, Path::new("/d/two"), DICT).unwrap();
    let mut bytes = Vec::new();
    block::seal(BlockKind::Node, 5, DICT, 16384, &mut bytes, SECRET);
    let text = encrypted.open_block(BlockKind::Node, 16384, &bytes).unwrap_err().to_string();
    assert!(text.contains("format version in an encrypted file: expected 2, found 1"), "{text}");
    plain.open_block(BlockKind::Node, 16384, &sealed(&encrypted, 16384)).unwrap_err();
    let mut again = Vec::new();
    plain.sealing().seal(BlockKind::Node, 5, 16384, b"places", &mut again, SECRET).unwrap();
    assert_eq!(again, bytes, "files that are not encrypted are as the first version wrote them");
}

#[test]
fn a_missing_or_wrong_key_is_named_and_is_no_damage() {
    let (vfs, right) = (vfs(), keys(&[(7, 1, 3, 32)]));
    let path = Path::new("/d/t");
    let file = create(&vfs, "t", &right);
    let bytes = sealed(&file, 16384);
    drop(file);
    for (ring, reason) in [
        (KeyRing::empty(), "no keys are given"),
        (keys(&[(8, 1, 3, 32)]), "no such key"),
        (keys(&[(7, 2, 3, 32)]), "no such key"),
        (keys(&[(7, 1, 4, 32)]), "another key"),
        (keys(&[(7, 1, 3, 8)]), "at least 16"),
    ] {
        let (file, superblock) = TreeFile::open_with(&vfs, path, DICT, &ring).unwrap();
        assert_eq!((file.key_id(), superblock.encryption.map(|its| its.key_id)), (Some(7), Some(7)));
        let error = file.open_block(BlockKind::Node, 16384, &bytes).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("/d/t needs encryption key 7, version 1: ") && text.contains(reason),
            "{text}"
        );
        assert!(!error.is_damage());
        file.open_without_key(BlockKind::Node, 16384, &bytes).unwrap();
    }
    let error = TreeFile::create_encrypted(&vfs, Path::new("/d/new"), DICT, &right, 9).unwrap_err();
    assert!(error.to_string().contains("needs encryption key 9: there is no such key"), "{error}");
    assert!(!vfs.exists(Path::new("/d/new")).unwrap());
}

#[test]
fn new_blocks_get_the_newest_version_of_the_key_and_old_ones_stay_readable() {
    let vfs = vfs();
    let file = create(&vfs, "t", &keys(&[(7, 1, 3, 32)]));
    let old = sealed(&file, 16384);
    file.write_superblock(&Superblock::default()).unwrap();
    drop(file);
    let rotated = keys(&[(7, 1, 3, 32), (7, 4, 8, 24)]);
    let (file, superblock) = TreeFile::open_with(&vfs, Path::new("/d/t"), DICT, &rotated).unwrap();
    assert!(superblock.epoch == 2 && superblock.encryption.is_some(), "a checkpoint keeps it");
    let new = sealed(&file, 20480);
    assert_eq!(file.open_without_key(BlockKind::Node, 20480, &new).unwrap().key_version, 4);
    assert_eq!(file.open_block(BlockKind::Node, 20480, &new).unwrap().1, SECRET);
    assert_eq!(file.open_block(BlockKind::Node, 16384, &old).unwrap().1, SECRET);
}
