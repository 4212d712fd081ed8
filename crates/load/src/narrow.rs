//! Merging chunks into larger ones, so that the last merge has few enough to read at once.
//!
//! A merge holds a block of each chunk that it reads, for each thread: a hundred gigabytes in chunks of sixteen megabytes would
//! take several gigabytes. So before it, groups of chunks become one each, in passes, until the rest fits ([`fan_in`]). Only as many
//! are merged as must be: little more than twice as many chunks as fit cost one more writing of half of the data.

use std::collections::VecDeque;
use std::sync::Arc;

use pando_base::{shared_prefix, Result};
use pando_storage::{Extent, TreeFile};

use crate::chunk::{put_number, seal_blocks, Block, Chunk, Packed, BLOCK_BYTES};
use crate::merge::{Heap, Pace, Range, Source};

/// What reading a chunk takes in memory: a block as it is stored, unpacked, and its key.
const READ_BYTES: u64 = 3 * BLOCK_BYTES as u64 / 2;
/// The part of the memory for loads that may be read into.
const PART: u64 = 4;
/// Chunks that can be merged at once whatever the memory.
const FAN_IN_MIN: usize = 8;
/// And at most: beyond it a merge would do nothing but compare.
const FAN_IN_MAX: usize = 1024;
/// Blocks are written together.
const WRITTEN_BYTES: usize = 1 << 20;

/// How many chunks may be merged at once by each of so many threads within a budget.
pub(crate) fn fan_in(memory_bytes: u64, threads: usize) -> usize {
    let each = memory_bytes / PART / (READ_BYTES * threads.max(1) as u64);
    usize::try_from(each).unwrap_or(usize::MAX).clamp(FAN_IN_MIN, FAN_IN_MAX)
}

/// The chunks to be merged into one each, so that after it, or after more passes, at most `fan_in` are left; the smallest ones.
pub(crate) fn groups(chunks: &mut Vec<Arc<Chunk>>, fan_in: usize) -> Vec<Vec<Arc<Chunk>>> {
    let mut groups = Vec::new();
    chunks.sort_by_key(|chunk| std::cmp::Reverse(chunk.raw_bytes()));
    let mut left = chunks.len();
    while left > fan_in && chunks.len() >= 2 {
        // The last one as small as it can be.
        let size = fan_in.min(left - fan_in + 1).min(chunks.len());
        groups.push(chunks.split_off(chunks.len() - size));
        left -= size - 1;
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
    use super::*;

    #[test]
    fn the_fan_in_follows_memory_and_threads_within_bounds() {
        assert_eq!(fan_in(0, 1), FAN_IN_MIN);
        assert_eq!(fan_in(u64::MAX, 1), FAN_IN_MAX);
        assert!(fan_in(256 << 20, 2) > fan_in(256 << 20, 8));
        let (limit, threads) = (256 << 20, 4);
        assert!(fan_in(limit, threads) as u64 * READ_BYTES * threads as u64 <= limit / PART);
    }
}
