//! Files that are encrypted in place: blocks of both kinds while they are mixed, only encrypted ones after, whatever the crash.
#![expect(clippy::disallowed_methods, reason = "threads of users")]
#![allow(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

use std::path::Path;
use std::sync::Arc;

use pando_base::{DeletedRange, DictId, Error};
use pando_storage::encryption::{KeyList, KeyRing, SecretKey};
use pando_storage::vfs::{FaultKind, OpenMode, SimVfs, Vfs};
use pando_storage::{BlockKind, BlockWithoutKey, Extent, Superblock, TreeFile};

const DICT: DictId = DictId(20);
const PATH: &str = "/d/t";

fn keys() -> KeyRing {
    KeyRing::new(Arc::new(KeyList::new().with(7, 1, SecretKey::new(vec![3; 32]))))
}

fn new_vfs() -> Arc<SimVfs> {
    let vfs = SimVfs::new(1);
    vfs.create_dir_all(Path::new("/d")).unwrap();
    vfs.sync_dir(Path::new("/d")).unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    vfs
}

fn put(file: &Arc<TreeFile>, payload: &[u8]) -> Extent {
    let extent = file.allocate(4096).unwrap();
    let mut out = Vec::new();
    file.seal(BlockKind::Node, 5, extent.place().offset, &mut out, payload).unwrap();
    file.write(extent.place().offset, &out).unwrap();
    extent
}

fn get(file: &Arc<TreeFile>, extent: &Extent) -> pando_base::Result<Vec<u8>> {
    let bytes = file.read(extent.place())?;
    Ok(file.open_block(BlockKind::Node, extent.place().offset, &bytes)?.1.into_owned())
}

fn naming(extent: &Extent) -> Superblock {
    Superblock { root: Some(extent.place()), ..Superblock::default() }
}

#[test]
fn a_mixed_file_has_both_kinds_of_blocks_and_is_whole_when_no_plain_extent_is_left() {
    let vfs = new_vfs();
    let files: Arc<dyn Vfs> = vfs.clone();
    let file = TreeFile::create(&files, Path::new(PATH), DICT).unwrap();
    let plain = put(&file, b"from before");
    file.write_superblock(&naming(&plain)).unwrap();
    assert!(file.begin_encryption(&keys(), 8).unwrap_err().to_string().contains("no such key"));
    assert_eq!((file.key_id(), file.is_mixed(), file.plain_extents()), (None, false, 1));
    file.begin_encryption(&keys(), 7).unwrap();
    file.begin_encryption(&keys(), 7).unwrap();
    let new = put(&file, b"from after");
    assert_eq!((file.key_id(), file.is_mixed(), file.plain_extents()), (Some(7), true, 1));
    assert_eq!(
        (get(&file, &plain).unwrap(), get(&file, &new).unwrap()),
        (b"from before".to_vec(), b"from after".to_vec())
    );
    let versions = [&plain, &new].map(|extent| file.key_version_at(extent.place()).unwrap());
    assert_eq!(versions, [0, 1]);
    let bytes = file.read(plain.place()).unwrap();
    let seen = file.look_at(BlockKind::Node, plain.place().offset, &bytes).unwrap();
    assert!(matches!(seen, BlockWithoutKey::Plain { codec: 5, payload: b"from before" }));
    file.open_without_key(BlockKind::Node, plain.place().offset, &bytes).unwrap_err();
    file.write_superblock(&naming(&new)).unwrap();
    assert!(!file.finish_encryption(&mut |_| true).unwrap(), "somebody still reads a plain block");
    // A range that is deleted stands in the superblock.
    drop(plain);
    let deleted = vec![DeletedRange { lo: b"a".to_vec(), hi: None, seqno: 71 }];
    file.write_superblock(&Superblock { deleted: deleted.clone(), ..naming(&new) }).unwrap();
    assert!(!file.finish_encryption(&mut |_| true).unwrap() && file.is_mixed());
    file.write_superblock(&naming(&new)).unwrap();
    assert!(
        file.finish_encryption(&mut |_| true).unwrap()
            && file.finish_encryption(&mut |_| true).unwrap()
            && !file.is_mixed()
    );
    let mut forged = bytes.clone();
    forged.truncate(4096);
    let offset = file.allocate(4096).unwrap();
    let mut out = Vec::new();
    pando_storage::block::seal(BlockKind::Node, 5, DICT, offset.place().offset, &mut out, b"forged");
    let error = file.open_block(BlockKind::Node, offset.place().offset, &out).unwrap_err().to_string();
    assert!(error.contains("format version in an encrypted file: expected 2, found 1"), "{error}");
    drop((offset, new, file));
    let raw = files.open(Path::new(PATH), OpenMode::Existing).unwrap();
    let mut all = vec![0; raw.len().unwrap() as usize];
    raw.read_exact_at(&mut all, 0).unwrap();
    assert!(!all.windows(11).any(|part| part == b"from before"), "free space was overwritten");
    let (file, sb) = TreeFile::open_with(&files, Path::new(PATH), DICT, &keys()).unwrap();
    assert!(!file.is_mixed() && sb.encryption.is_some_and(|its| !its.is_mixed));
    let extent = file.adopt(sb.root.unwrap()).unwrap();
    assert_eq!((get(&file, &extent).unwrap(), file.plain_extents()), (b"from after".to_vec(), 0));
}

#[test]
fn what_is_adopted_from_a_mixed_file_may_be_plain() {
    let vfs = new_vfs();
    let files: Arc<dyn Vfs> = vfs.clone();
    let file = TreeFile::create(&files, Path::new(PATH), DICT).unwrap();
    file.begin_encryption(&keys(), 7).unwrap();
    let new = put(&file, b"from after");
    file.write_superblock(&naming(&new)).unwrap();
    drop((new, file));
    let (file, sb) = TreeFile::open_with(&files, Path::new(PATH), DICT, &keys()).unwrap();
    let extent = file.adopt(sb.root.unwrap()).unwrap();
    file.finish_open();
    assert_eq!((file.plain_extents(), file.is_mixed()), (1, true));
    assert!(!file.finish_encryption(&mut |_| true).unwrap());
    drop(extent);
    assert!(file.finish_encryption(&mut |_| true).unwrap());
}

/// The format version of the superblocks, as releases read it that know none of them.
#[test]
fn older_releases_see_a_newer_format_in_both_slots() {
    let vfs = new_vfs();
    let files: Arc<dyn Vfs> = vfs.clone();
    let file = TreeFile::create(&files, Path::new(PATH), DICT).unwrap();
    file.begin_encryption(&keys(), 7).unwrap();
    let raw = files.open(Path::new(PATH), OpenMode::Existing).unwrap();
    for offset in [0, 4096] {
        let mut head = [0; 32];
        raw.read_exact_at(&mut head, offset).unwrap();
        assert_eq!(head[5], 4, "the releases before know 3 at most");
    }
}

#[test]
fn a_crash_at_any_io_leaves_a_file_that_can_be_read_and_encrypted() {
    for at in 1.. {
        let vfs = new_vfs();
        let files: Arc<dyn Vfs> = vfs.clone();
        let file = TreeFile::create(&files, Path::new(PATH), DICT).unwrap();
        let plain = put(&file, b"a payload");
        file.sync().unwrap();
        file.write_superblock(&naming(&plain)).unwrap();
        vfs.sync_dir(Path::new("/d")).unwrap();
        vfs.fail_io_after(at, FaultKind::Sticky);
        let convert = || -> pando_base::Result<()> {
            file.begin_encryption(&keys(), 7)?;
            let new = put_or(&file)?;
            file.sync()?;
            file.write_superblock(&naming(&new))?;
            drop(plain);
            assert!(file.finish_encryption(&mut |_| true)?);
            Ok(())
        };
        let result = convert();
        drop(file);
        let is_through = result.is_ok();
        let files: Arc<dyn Vfs> = vfs.crash();
        let (file, sb) = TreeFile::open_with(&files, Path::new(PATH), DICT, &keys()).unwrap();
        let extent = file.adopt(sb.root.unwrap()).unwrap();
        file.finish_open();
        assert_eq!(get(&file, &extent).unwrap(), b"a payload", "crash at {at}");
        file.begin_encryption(&keys(), 7).unwrap();
        let new = put(&file, b"a payload");
        assert_eq!(file.key_version_at(new.place()).unwrap(), 1);
        if is_through {
            break;
        }
    }
}

fn put_or(file: &Arc<TreeFile>) -> pando_base::Result<Extent> {
    let extent = file.allocate(4096)?;
    let mut out = Vec::new();
    file.seal(BlockKind::Node, 5, extent.place().offset, &mut out, b"a payload")?;
    file.write(extent.place().offset, &out)?;
    Ok(extent)
}

#[test]
fn blocks_that_are_sealed_while_the_encryption_begins_take_the_space_they_were_given() {
    let vfs = new_vfs();
    let files: Arc<dyn Vfs> = vfs.clone();
    let file = TreeFile::create(&files, Path::new(PATH), DICT).unwrap();
    let sealers: Vec<_> = (0..3)
        .map(|_| {
            let file = file.clone();
            std::thread::spawn(move || {
                let mut kept = Vec::new();
                for _ in 0..300 {
                    let sealing = file.sealing();
                    let len = sealing.block_bytes(0, 100);
                    let extent = file.allocate(len).unwrap();
                    let is_encrypted = sealing.is_encrypted();
                    let mut out = Vec::new();
                    sealing
                        .seal(BlockKind::Node, 5, extent.place().offset, &[], &mut out, &[1; 100])
                        .unwrap();
                    drop(sealing);
                    assert_eq!(out.len() as u64, len);
                    file.write(extent.place().offset, &out).unwrap();
                    kept.push((extent, is_encrypted));
                }
                kept
            })
        })
        .collect();
    file.begin_encryption(&keys(), 7).unwrap();
    let kept: Vec<_> = sealers.into_iter().flat_map(|sealer| sealer.join().unwrap()).collect();
    let plain = kept.iter().filter(|(_, is_encrypted)| !is_encrypted).count() as u64;
    // None that is plain is missing; one may have been allocated just before.
    assert!(file.plain_extents() >= plain && file.plain_extents() <= plain + 3);
    for (extent, is_encrypted) in &kept {
        assert_eq!(file.key_version_at(extent.place()).unwrap() > 0, *is_encrypted);
        assert_eq!(get(&file, extent).unwrap(), [1; 100]);
    }
    assert!(matches!(TreeFile::create(&files, Path::new(PATH), DICT), Err(Error::Exists { .. })));
}
