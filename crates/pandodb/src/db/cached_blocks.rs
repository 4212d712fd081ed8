//! The list of what the cache held, as a file of the engine's directory: where it is, and whether it is kept.
//!
//! The file is nobody's data. One that is old, damaged or lost costs what it was made for, a quick start, and nothing else.
//!
//! ```text
//! zstd frame with a checksum of: "PANDOCB1", then for each dictionary
//!   id u64 | blocks u64 | blocks times: run u64, offset u64, form u64      little-endian
//! ```

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pando_base::DictId;
use pando_run::{CachedBlock, CachedForm};

const MAGIC: &[u8; 8] = b"PANDOCB1";
const BLOCK_BYTES: usize = 24;
const LEVEL: i32 = 1;
/// A file that says it is larger is none of ours.
const BYTES_MAX: u64 = 4 << 30;
/// Numbers of forms. Columns have their own, which are odd, or 2 to the power of 63 and more.
const FILTER: u64 = 0;
const PACKED: u64 = 2;
const SEGMENT: u64 = 4;

/// Blocks of each dictionary, in order.
pub(crate) type Blocks = BTreeMap<DictId, Vec<CachedBlock>>;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct CacheList {
    pub path: PathBuf,
    pub new_path: PathBuf,
    /// Whether it is written at the end, and now and then.
    pub is_kept: AtomicBool,
    /// What it names is being read: the cache does not have it yet.
    pub is_loading: AtomicBool,
}

impl CacheList {
    pub(crate) fn new(engine_dir: &Path, is_kept: bool, is_loading: bool) -> CacheList {
        CacheList {
            path: engine_dir.join("cached_blocks"),
            new_path: engine_dir.join("cached_blocks.new"),
            is_kept: is_kept.into(),
            is_loading: is_loading.into(),
        }
    }
}

/// The file's bytes.
pub(crate) fn encode(blocks: &Blocks) -> std::io::Result<Vec<u8>> {
    let mut frame = zstd::stream::Encoder::new(Vec::new(), LEVEL)?;
    frame.include_checksum(true)?;
    frame.write_all(MAGIC)?;
    for (id, blocks) in blocks {
        frame.write_all(&id.0.to_le_bytes())?;
        frame.write_all(&(blocks.len() as u64).to_le_bytes())?;
        for block in blocks {
            let words = [block.run, block.offset, number_of(block.form)];
            words.iter().try_for_each(|word| frame.write_all(&word.to_le_bytes()))?;
        }
    }
    frame.finish()
}

/// `None`: these are not the bytes of such a file.
pub(crate) fn decode(bytes: &[u8]) -> Option<Blocks> {
    let mut text = Vec::new();
    zstd::stream::Decoder::new(bytes).ok()?.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    let mut rest = text.strip_prefix(&MAGIC[..])?;
    let mut blocks = Blocks::new();
    while !rest.is_empty() {
        let (id, count) = (take_word(&mut rest)?, take_word(&mut rest)?);
        let (own, others) = rest.split_at_checked(usize::try_from(count).ok()?.checked_mul(BLOCK_BYTES)?)?;
        rest = others;
        blocks.insert(DictId(id), own.chunks_exact(BLOCK_BYTES).filter_map(block_of).collect());
    }
    Some(blocks)
}

fn block_of(mut bytes: &[u8]) -> Option<CachedBlock> {
    let (run, offset, form) = (take_word(&mut bytes)?, take_word(&mut bytes)?, take_word(&mut bytes)?);
    Some(CachedBlock { run, offset, form: form_of(form) })
}

fn take_word(bytes: &mut &[u8]) -> Option<u64> {
    let (word, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*word))
}

fn number_of(form: CachedForm) -> u64 {
    match form {
        CachedForm::Filter => FILTER,
        CachedForm::Packed => PACKED,
        CachedForm::Segment => SEGMENT,
        CachedForm::Column(part) => part,
    }
}

fn form_of(number: u64) -> CachedForm {
    match number {
        FILTER => CachedForm::Filter,
        PACKED => CachedForm::Packed,
        SEGMENT => CachedForm::Segment,
        part => CachedForm::Column(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_comes_back_and_damaged_ones_are_refused() {
        let block = |run, offset, form| CachedBlock { run, offset, form };
        let forms =
            [CachedForm::Filter, CachedForm::Packed, CachedForm::Segment, CachedForm::Column(7 << 1 | 1)];
        let some: Vec<_> = (0..1000).map(|n| block(n / 100, n * 512, forms[(n % 4) as usize])).collect();
        let blocks = Blocks::from([(DictId(3), some), (DictId(1 << 40), Vec::new())]);
        let bytes = encode(&blocks).unwrap();
        assert_eq!(decode(&bytes), Some(blocks));
        assert_eq!(decode(&encode(&Blocks::new()).unwrap()), Some(Blocks::new()));
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(b"what is this?"), None);
        assert_eq!(decode(&zstd::bulk::compress(b"PANDOCB1garbage", 1).unwrap()), None);
        for at in 0..bytes.len() {
            assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 16;
            // The frame's own header may be read in several ways that say the same.
            assert!(decode(&damaged).is_none_or(|found| decode(&bytes) == Some(found)), "damaged at {at}");
        }
    }
}
