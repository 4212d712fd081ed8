//! Merging chunks into larger ones, so that the last merge has few enough to read at once.
//!
//! A merge holds a block of each chunk that it reads, for each thread: a hundred gigabytes in chunks of sixteen megabytes would
//! take several gigabytes. So before it, groups of chunks become one each, in passes, until the rest fits ([`groups`]). Only as many
//! are merged as must be: little more than twice as many chunks as fit cost one more writing of half of the data.
//!
//! What a chunk takes is that of its largest block ([`Chunk::reading_bytes`]). Mostly that is 128 KiB; but a value is never divided, and may
//! have megabytes.

use std::collections::VecDeque;
use std::sync::Arc;

use pando_base::{shared_prefix, Result};
use pando_storage::{Extent, TreeFile};

use crate::chunk::{put_number, seal_blocks, Block, Chunk, Packed, BLOCK_BYTES};
use crate::merge::{Heap, Pace, Range, Source};

/// What reading a chunk of many small entries takes in memory.
const READ_BYTES: u64 = reading_bytes_of(BLOCK_BYTES as u64);
/// Each thread may read so much whatever the memory.
const BYTES_MIN: u64 = 8 * READ_BYTES;
/// Chunks that are merged at once at most: beyond it a merge would do nothing but compare.
const FAN_IN_MAX: usize = 1024;
/// And in any case, however large their blocks are.
const FAN_IN_MIN: usize = 2;
/// Blocks are written together.
const WRITTEN_BYTES: usize = 1 << 20;

/// A block as it is stored, at most half of what it has unpacked, and that: what reading it takes.
pub(crate) const fn reading_bytes_of(raw_bytes: u64) -> u64 {
    raw_bytes.saturating_mul(3) / 2
}

/// What each of so many threads may read into.
pub(crate) fn bytes_of_one(bytes: u64, threads: usize) -> u64 {
    (bytes / threads.max(1) as u64).max(BYTES_MIN)
}

/// What merging some chunks takes.
#[derive(Clone, Copy, Default)]
struct Cost {
    chunks: usize,
    bytes: u64,
}

impl Cost {
    fn of(chunk: &Chunk) -> Cost {
        Cost { chunks: 1, bytes: chunk.reading_bytes() }
    }

    fn with(self, other: Cost) -> Cost {
        Cost { chunks: self.chunks + other.chunks, bytes: self.bytes.saturating_add(other.bytes) }
    }

    fn without(self, other: Cost) -> Cost {
        Cost { chunks: self.chunks - other.chunks, bytes: self.bytes - other.bytes }
    }

    fn fits(self, bytes: u64) -> bool {
        self.chunks <= FAN_IN_MIN || (self.chunks <= FAN_IN_MAX && self.bytes <= bytes)
    }
}

/// Takes out the chunks to be merged into one each, so that after it, or after more passes, the merge of those that are left takes no more
/// than `bytes`: the smallest ones. None: it does not.
pub(crate) fn groups(chunks: &mut Vec<Arc<Chunk>>, bytes: u64) -> Vec<Vec<Arc<Chunk>>> {
    let mut groups = Vec::new();
    chunks.sort_by_key(|chunk| std::cmp::Reverse(chunk.raw_bytes()));
    let mut left = chunks.iter().fold(Cost::default(), |sum, chunk| sum.with(Cost::of(chunk)));
    while !left.fits(bytes) && chunks.len() >= 2 {
        let (mut group, mut cost, mut raw) = (Vec::new(), Cost::default(), 0u64);
        let mut after = left;
        // As small as it can be.
        while !(after.fits(bytes) && group.len() >= 2) {
            if !chunks.last().is_some_and(|next| cost.with(Cost::of(next)).fits(bytes)) {
                break;
            }
            let Some(next) = chunks.pop() else { break };
            cost = cost.with(Cost::of(&next));
            raw += next.raw_bytes();
            group.push(next);
            let largest = group.iter().map(|chunk| chunk.reading_bytes()).max().unwrap_or(0);
            let merged = Cost { chunks: 1, bytes: largest.max(reading_bytes_of(raw).min(READ_BYTES)) };
            after = left.without(cost).with(merged);
        }
        left = after;
        groups.push(group);
    }
    groups
}

/// Merges chunks into one in the file. `None`: given up.
///
/// # Errors
/// Those of reading and writing; nothing is left then.
pub(crate) fn merge_chunks(
    file: &Arc<TreeFile>,
    group: &[Arc<Chunk>],
    cancelled: impl Fn() -> bool,
) -> Result<Option<Chunk>> {
    let sources: Vec<Source> = group.iter().cloned().map(Source::Chunk).collect();
    let Some(mut heap) = Heap::open(&sources, &Range::default(), &cancelled)? else { return Ok(None) };
    let mut pace = Pace::default();
    let first_ordinal = group.iter().map(|chunk| chunk.first_ordinal).min().unwrap_or(0);
    let has_ordinals = group.iter().any(|chunk| chunk.has_ordinals);
    let mut writer = Writer::new(file, has_ordinals);
    while let Some(top) = heap.inputs.first() {
        if pace.is_time(top) && cancelled() {
            return Ok(None);
        }
        writer.add(top.key(), top.value(), top.ordinal().saturating_sub(first_ordinal))?;
        heap.next()?;
    }
    let (blocks, extents) = writer.finish()?;
    Ok(Some(Chunk::spilled(file, blocks, extents, first_ordinal, has_ordinals)))
}

/// Writes entries in key order as blocks of a chunk.
struct Writer<'a> {
    file: &'a Arc<TreeFile>,
    has_ordinals: bool,
    bytes: Vec<u8>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    waiting: VecDeque<Packed>,
    waiting_bytes: usize,
    blocks: Vec<Block>,
    extents: Vec<Extent>,
}

impl<'a> Writer<'a> {
    fn new(file: &'a Arc<TreeFile>, has_ordinals: bool) -> Writer<'a> {
        Writer {
            file,
            has_ordinals,
            bytes: Vec::with_capacity(BLOCK_BYTES + BLOCK_BYTES / 8),
            first_key: Vec::new(),
            last_key: Vec::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            blocks: Vec::new(),
            extents: Vec::new(),
        }
    }

    fn add(&mut self, key: &[u8], value: &[u8], ordinal: u64) -> Result<()> {
        if self.bytes.len() >= BLOCK_BYTES {
            self.cut()?;
        }
        let shared = match self.bytes.is_empty() {
            true => {
                self.first_key = key.to_vec();
                0
            }
            false => shared_prefix(&self.last_key, key),
        };
        let rest = &key[shared..];
        put_number(&mut self.bytes, shared as u64);
        put_number(&mut self.bytes, rest.len() as u64);
        self.bytes.extend_from_slice(rest);
        put_number(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(value);
        if self.has_ordinals {
            put_number(&mut self.bytes, ordinal);
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(rest);
        Ok(())
    }

    fn cut(&mut self) -> Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let packed = Packed::new(std::mem::take(&mut self.first_key), &self.bytes);
        self.waiting_bytes += packed.bytes();
        self.waiting.push_back(packed);
        self.bytes.clear();
        if self.waiting_bytes >= WRITTEN_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let (extent, blocks) = seal_blocks(self.file, self.waiting.drain(..))?;
        self.extents.push(extent);
        self.blocks.extend(blocks);
        self.waiting_bytes = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<(Vec<Block>, Vec<Extent>)> {
        self.cut()?;
        self.write()?;
        Ok((self.blocks, self.extents))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pando_base::DictId;
    use pando_storage::vfs::{SimVfs, Vfs};

    use super::*;
    use crate::entries::Entries;
    use crate::memory_budget::Memory;

    /// In the file, of one entry with so many bytes, or of as many of 100 bytes.
    fn chunk(file: &Arc<TreeFile>, bytes: usize, is_one: bool) -> Arc<Chunk> {
        let mut entries = Entries::new();
        let each = if is_one { bytes } else { 100 };
        let value = vec![7; each];
        (0..bytes / each).for_each(|n| entries.push(&n.to_be_bytes(), &value));
        let mut chunk = Chunk::sort(file, &[entries], 0, false);
        chunk.settle(&Memory::new(0)).unwrap();
        Arc::new(chunk)
    }

    fn file() -> Arc<TreeFile> {
        let vfs: Arc<dyn Vfs> = SimVfs::new(1);
        vfs.create_dir_all(Path::new("/t")).unwrap();
        TreeFile::create(&vfs, Path::new("/t/main.pando"), DictId(7)).unwrap()
    }

    #[test]
    fn each_thread_reads_within_its_part_and_a_little_in_any_case() {
        assert_eq!(bytes_of_one(0, 1), BYTES_MIN);
        assert_eq!(bytes_of_one(256 << 20, 4), 64 << 20);
        assert_eq!(bytes_of_one(256 << 20, 0), 256 << 20);
    }

    #[test]
    fn the_smallest_chunks_are_merged_and_no_more_than_must_be() {
        let file = file();
        let sizes = [300 << 10, 600 << 10, 200 << 10, 500 << 10, 400 << 10];
        let chunks = || -> Vec<Arc<Chunk>> { sizes.iter().map(|size| chunk(&file, *size, false)).collect() };
        let mut all = chunks();
        assert!(groups(&mut all, 8 * READ_BYTES).is_empty() && all.len() == 5);
        let each = all[0].reading_bytes();
        assert!((READ_BYTES..READ_BYTES + 1024).contains(&each), "{each}");
        let found = groups(&mut all, 4 * each);
        let raw =
            |chunks: &[Arc<Chunk>]| -> Vec<u64> { chunks.iter().map(|c| c.raw_bytes() >> 10).collect() };
        assert_eq!((found.len(), raw(&found[0]).len(), raw(&all).len()), (1, 2, 3));
        assert!(raw(&found[0]).iter().all(|group| raw(&all).iter().all(|left| group < left)));
        // Several passes.
        let mut all: Vec<Arc<Chunk>> = (0..40).map(|_| chunk(&file, 200 << 10, false)).collect();
        let found = groups(&mut all, 4 * each);
        assert!(found.iter().all(|group| (2..=4).contains(&group.len())), "{found:?}");
        assert!(found.len() + all.len() < 40 / 3, "{} and {}", found.len(), all.len());
    }

    #[test]
    fn large_values_are_merged_by_twos_where_more_do_not_fit() {
        let file = file();
        let mut all: Vec<Arc<Chunk>> = (0..5).map(|_| chunk(&file, 4 << 20, true)).collect();
        assert!(all[0].reading_bytes() >= 6 << 20);
        let found = groups(&mut all, BYTES_MIN);
        assert!(found.iter().all(|group| group.len() == 2) && found.len() == 2 && all.len() == 1);
        // Two are merged, however large they are.
        let mut all: Vec<Arc<Chunk>> = (0..2).map(|_| chunk(&file, 4 << 20, true)).collect();
        assert!(groups(&mut all, BYTES_MIN).is_empty());
        let mut all: Vec<Arc<Chunk>> = (0..5).map(|_| chunk(&file, 4 << 20, true)).collect();
        assert!(groups(&mut all, 64 << 20).is_empty());
    }
}
