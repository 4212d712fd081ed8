//! The decoder of this crate, for `pando-fuzz`: of blocks that bulk loads have spilled.
//!
//! An input is a codec, 1 if there are ordinals or 0, and the payload.
#![allow(clippy::unwrap_used, reason = "seeds are made of what is valid")]

use std::path::Path;
use std::sync::Arc;

use pando_base::fuzz::Target;
use pando_base::DictId;
use pando_storage::vfs::{SimVfs, Vfs};
use pando_storage::TreeFile;

use crate::chunk::{block_from, pack, Chunk, ChunkCursor};
use crate::entries::Entries;

/// All of them.
pub fn targets() -> Vec<Target> {
    vec![Target {
        name: "spilled-entries",
        reads: "sorted entries of a bulk load that wait for their merge (load/src/chunk.rs)",
        seeds,
        accepts,
    }]
}

fn file() -> Arc<TreeFile> {
    let vfs: Arc<dyn Vfs> = SimVfs::new(1);
    vfs.create_dir_all(Path::new("/t")).unwrap();
    TreeFile::create(&vfs, Path::new("/t/main.pando"), DictId(7)).unwrap()
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (has_ordinals, rows) in [(false, 1), (false, 60), (true, 60)] {
        let mut entries = Entries::default();
        (0..rows).for_each(|n: u32| entries.push(format!("key {:04}", n * 7 % 50).as_bytes(), &[n as u8; 5]));
        let chunk = Chunk::sort(&file(), &[entries], 0, has_ordinals);
        let bytes = chunk.raw(0);
        let mut payload = Vec::new();
        let codec = pack(&bytes, &mut payload);
        seeds.push([&[codec, u8::from(has_ordinals)], &payload[..]].concat());
        let plain = [&[0, u8::from(has_ordinals)], &(bytes.len() as u32).to_le_bytes()[..], &bytes].concat();
        seeds.push(plain);
    }
    seeds
}

fn accepts(bytes: &[u8]) -> bool {
    let [codec, has_ordinals, payload @ ..] = bytes else { return false };
    // What a chunk knows of its block beside the block: as many bytes as it says, if they are few.
    let said = payload.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length));
    let Ok(block) = block_from(*codec, payload, u64::from(said.min(1 << 20))) else { return false };
    let chunk = Arc::new(Chunk::spilled(&file(), vec![block], Vec::new(), 5, *has_ordinals == 1));
    for (lo, hi) in [(None, None), (Some(&b"key 0020"[..]), Some(b"key 0030".to_vec()))] {
        let Ok(mut cursor) = ChunkCursor::new(chunk.clone(), lo, hi) else { return false };
        while cursor.valid() {
            let _ = (cursor.key().len(), cursor.value().len(), cursor.ordinal());
            if cursor.next().is_err() {
                return false;
            }
        }
    }
    true
}
