//! A sorted chunk: the entries of some batches in key order, in blocks, in memory or spilled.
//!
//! ```text
//! block:  shared key bytes  rest length  rest of key  value length  value  ordinal     for each entry
//! ```
//! Numbers are unsigned LEB128; the ordinal counts from the chunk's first and is there only if the dictionary
//! may have duplicates. The first key of a block shares nothing. Spilled, a block is a block of the tree's
//! file (`docs/format.md`): the payload is the length of the block (4 bytes, little-endian) and the block,
//! compressed with LZ4 if the codec is 1. Nothing refers to it on disk: a crash forgets it.

use std::sync::Arc;

use pando_base::{shared_prefix, Error, Result};
use pando_storage::{block, BlockKind, Extent, Place, TreeFile};

use crate::entries::Entries;
use crate::entry_order::{sorted, Head};
use crate::memory_budget::{Memory, Part};
use crate::narrow::reading_bytes_of;

/// A block is closed when it has so many bytes.
pub(crate) const BLOCK_BYTES: usize = 128 << 10;
/// How many entries are fetched at once.
const STRETCH: usize = 64;
const CODEC_PLAIN: u8 = 0;
const CODEC_LZ4: u8 = 1;

/// Where the bytes of a block are.
#[derive(Debug)]
enum Stored {
    Memory(Arc<Vec<u8>>),
    Spilled(Place),
}

#[derive(Debug)]
pub(crate) struct Block {
    pub first_key: Vec<u8>,
    pub raw_bytes: u64,
    stored: Stored,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Chunk {
    file: Arc<TreeFile>,
    pub blocks: Vec<Block>,
    /// Ordinal of the first entry that went in.
    pub first_ordinal: u64,
    pub has_ordinals: bool,
    /// The space of spilled blocks, given back on drop.
    _extents: Vec<Extent>,
    _memory: Option<Part>,
}

impl Chunk {
    /// Sorts batches that follow one another; the entries before them number `first_ordinal`.
    pub(crate) fn sort(
        file: &Arc<TreeFile>,
        batches: &[Entries],
        first_ordinal: u64,
        has_ordinals: bool,
    ) -> Chunk {
        let mut starts = Vec::with_capacity(batches.len());
        let mut rows = 0;
        for batch in batches {
            starts.push(rows);
            rows += batch.len() as u64;
        }
        let mut writer = BlockWriter::new(has_ordinals);
        // Entries lie anywhere: a stretch of them is fetched at once, so that the processor waits for many together.
        let mut order = sorted(batches);
        let mut stretch = Vec::with_capacity(STRETCH);
        loop {
            stretch.extend(order.by_ref().take(STRETCH).map(|at| {
                let (key, value) = batches[at.batch].entry(at.index);
                (key, value, starts[at.batch] + at.index as u64, Head::new(key))
            }));
            if stretch.is_empty() {
                break;
            }
            for (key, value, ordinal, head) in stretch.drain(..) {
                writer.add(key, head, value, ordinal);
            }
        }
        Chunk {
            file: file.clone(),
            blocks: writer.finish(),
            first_ordinal,
            has_ordinals,
            _extents: Vec::new(),
            _memory: None,
        }
    }

    /// One that is in the file already.
    pub(crate) fn spilled(
        file: &Arc<TreeFile>,
        blocks: Vec<Block>,
        extents: Vec<Extent>,
        first_ordinal: u64,
        has_ordinals: bool,
    ) -> Chunk {
        Chunk { file: file.clone(), blocks, first_ordinal, has_ordinals, _extents: extents, _memory: None }
    }

    /// Bytes of all blocks.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.raw_bytes).sum()
    }

    /// What reading it takes in memory: the largest block.
    pub(crate) fn reading_bytes(&self) -> u64 {
        let of = |block: &Block| match block.stored {
            Stored::Memory(_) => 0,
            Stored::Spilled(_) => reading_bytes_of(block.raw_bytes),
        };
        self.blocks.iter().map(of).max().unwrap_or(0)
    }

    /// Keeps the blocks in memory if the budget allows, else writes them into the file. Gives the bytes written.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn settle(&mut self, memory: &Arc<Memory>) -> Result<u64> {
        let held = |block: &Block| match &block.stored {
            Stored::Memory(bytes) => {
                (bytes.capacity() + block.first_key.capacity() + size_of::<Block>()) as u64
            }
            Stored::Spilled(_) => 0,
        };
        if let Some(part) = memory.take(self.blocks.iter().map(held).sum()) {
            self._memory = Some(part);
            return Ok(0);
        }
        self.spill()
    }

    fn spill(&mut self) -> Result<u64> {
        let raw: u64 = self.blocks.iter().map(|block| block.raw_bytes + ROOM_BYTES as u64).sum();
        let mut extent = self.file.allocate(raw.max(1))?;
        let begin = extent.place().offset;
        let mut out = Vec::new();
        let mut payload = Vec::new();
        let mut places = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let Stored::Memory(bytes) = &block.stored else { unreachable!("spilled once") };
            let codec = pack(bytes, &mut payload);
            let offset = begin + out.len() as u64;
            self.file.seal(BlockKind::Spill, codec, offset, &mut out, &payload)?;
            places.push(Place { offset, len: begin + out.len() as u64 - offset });
        }
        let page = pando_base::limits::PAGE_BYTES as usize;
        out.resize(out.len().next_multiple_of(page), 0);
        extent.shrink_to(out.len() as u64);
        self.file.write(begin, &out)?;
        for (block, place) in self.blocks.iter_mut().zip(places) {
            block.stored = Stored::Spilled(place);
        }
        self._extents.push(extent);
        Ok(out.len() as u64)
    }

    /// The bytes of a block.
    ///
    /// # Errors
    /// Those of reading.
    fn bytes(&self, number: usize) -> Result<Arc<Vec<u8>>> {
        match &self.blocks[number].stored {
            Stored::Memory(bytes) => Ok(bytes.clone()),
            Stored::Spilled(place) => {
                let bytes = self.file.read(*place)?;
                let path = self.file.path();
                let (codec, payload) = self.file.open_block(BlockKind::Spill, place.offset, &bytes)?;
                let unpacked = unpack(codec, &payload, self.blocks[number].raw_bytes);
                let wrong = |found| {
                    Error::corruption(&path, place.offset, "spilled block", "what was written", found)
                };
                unpacked.map(Arc::new).map_err(wrong)
            }
        }
    }

    /// The bytes of a block that is in memory.
    #[cfg(feature = "fuzz")]
    pub(crate) fn raw(&self, number: usize) -> Arc<Vec<u8>> {
        self.bytes(number).expect("a block in memory")
    }

    /// Number of the block in which the first key at or above `key` may be.
    fn block_of(&self, key: &[u8]) -> usize {
        self.blocks.partition_point(|block| block.first_key.as_slice() <= key).saturating_sub(1)
    }
}

/// What a block may take beyond its entries: what frames it, the length, and what entries may grow by that cannot be compressed.
const ROOM_BYTES: usize = block::OVERHEAD_BYTES_MAX + 24;

/// A block that is packed and not written.
pub(crate) struct Packed {
    first_key: Vec<u8>,
    raw_bytes: u64,
    codec: u8,
    payload: Vec<u8>,
}

impl Packed {
    pub(crate) fn new(first_key: Vec<u8>, bytes: &[u8]) -> Packed {
        let mut payload = Vec::new();
        let codec = pack(bytes, &mut payload);
        Packed { first_key, raw_bytes: bytes.len() as u64, codec, payload }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.payload.len()
    }
}

/// Writes blocks one behind the other into an extent of their own.
///
/// # Errors
/// Those of writing.
pub(crate) fn seal_blocks(
    file: &Arc<TreeFile>,
    packed: impl Iterator<Item = Packed>,
) -> Result<(Extent, Vec<Block>)> {
    let packed: Vec<Packed> = packed.collect();
    let bytes: usize = packed.iter().map(|block| block.bytes() + ROOM_BYTES).sum();
    let mut extent = file.allocate(bytes.max(1) as u64)?;
    let begin = extent.place().offset;
    let mut out = Vec::with_capacity(bytes);
    let mut blocks = Vec::with_capacity(packed.len());
    for Packed { first_key, raw_bytes, codec, payload } in packed {
        let offset = begin + out.len() as u64;
        file.seal(BlockKind::Spill, codec, offset, &mut out, &payload)?;
        let place = Place { offset, len: begin + out.len() as u64 - offset };
        blocks.push(Block { first_key, raw_bytes, stored: Stored::Spilled(place) });
    }
    out.resize(out.len().next_multiple_of(pando_base::limits::PAGE_BYTES as usize), 0);
    extent.shrink_to(out.len() as u64);
    file.write(begin, &out)?;
    Ok((extent, blocks))
}

pub(crate) fn pack(bytes: &[u8], payload: &mut Vec<u8>) -> u8 {
    payload.clear();
    payload.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    let start = payload.len();
    payload.resize(start + lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
    match lz4_flex::block::compress_into(bytes, &mut payload[start..]) {
        Ok(len) if len < bytes.len() => {
            payload.truncate(start + len);
            CODEC_LZ4
        }
        _ => {
            payload.truncate(start);
            payload.extend_from_slice(bytes);
            CODEC_PLAIN
        }
    }
}

/// The `raw_bytes` bytes that were packed.
fn unpack(codec: u8, payload: &[u8], raw_bytes: u64) -> std::result::Result<Vec<u8>, String> {
    let (length, rest) = payload.split_first_chunk::<4>().ok_or("no length")?;
    let length = u32::from_le_bytes(*length) as usize;
    // Checked before anything is reserved for them.
    if length as u64 != raw_bytes {
        return Err(format!("{length} bytes, not {raw_bytes}"));
    }
    match codec {
        CODEC_PLAIN if rest.len() == length => Ok(rest.to_vec()),
        CODEC_LZ4 => match lz4_flex::block::decompress(rest, length) {
            Ok(bytes) if bytes.len() == length => Ok(bytes),
            Ok(bytes) => Err(format!("{} bytes, not {length}", bytes.len())),
            Err(error) => Err(error.to_string()),
        },
        _ => Err(format!("codec {codec}, {} bytes for {length}", rest.len())),
    }
}

/// A block as one that was read.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn block_from(codec: u8, payload: &[u8], raw_bytes: u64) -> std::result::Result<Block, String> {
    let bytes = unpack(codec, payload, raw_bytes)?;
    Ok(Block { first_key: Vec::new(), raw_bytes, stored: Stored::Memory(Arc::new(bytes)) })
}

/// Pours entries in key order into blocks.
struct BlockWriter<'a> {
    has_ordinals: bool,
    blocks: Vec<Block>,
    bytes: Vec<u8>,
    first_key: Vec<u8>,
    last_key: &'a [u8],
    last_head: Head,
}

impl<'a> BlockWriter<'a> {
    fn new(has_ordinals: bool) -> BlockWriter<'a> {
        let (bytes, first_key) = (Vec::with_capacity(BLOCK_BYTES + BLOCK_BYTES / 8), Vec::new());
        let last_head = Head::default();
        BlockWriter { has_ordinals, blocks: Vec::new(), bytes, first_key, last_key: &[], last_head }
    }

    fn add(&mut self, key: &'a [u8], head: Head, value: &[u8], ordinal: u64) {
        if self.bytes.len() >= BLOCK_BYTES {
            self.cut();
        }
        let mut shared = 0;
        if self.bytes.is_empty() {
            self.first_key = key.to_vec();
        } else {
            let in_heads = self.last_head.shared_prefix(&head);
            shared = in_heads.unwrap_or_else(|| shared_prefix(self.last_key, key));
        }
        let rest = &key[shared..];
        put_number(&mut self.bytes, shared as u64);
        put_number(&mut self.bytes, rest.len() as u64);
        self.bytes.extend_from_slice(rest);
        put_number(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(value);
        if self.has_ordinals {
            put_number(&mut self.bytes, ordinal);
        }
        self.last_key = key;
        self.last_head = head;
    }

    fn cut(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let bytes = self.bytes.as_slice().to_vec();
        self.bytes.clear();
        self.bytes.shrink_to(2 * BLOCK_BYTES);
        self.blocks.push(Block {
            first_key: std::mem::take(&mut self.first_key),
            raw_bytes: bytes.len() as u64,
            stored: Stored::Memory(Arc::new(bytes)),
        });
    }

    fn finish(mut self) -> Vec<Block> {
        self.cut();
        self.blocks
    }
}

#[inline]
pub(crate) fn put_number(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// A place in a chunk, going forward.
#[derive(Debug)]
pub(crate) struct ChunkCursor {
    chunk: Arc<Chunk>,
    block: usize,
    bytes: Arc<Vec<u8>>,
    at: usize,
    key: Vec<u8>,
    value: std::ops::Range<usize>,
    ordinal: u64,
    /// Ends before this key.
    hi: Option<Vec<u8>>,
    /// Blocks before this one have only keys below that.
    hi_block: usize,
    valid: bool,
}

impl ChunkCursor {
    /// At the first entry from `lo` on; ends before `hi`.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn new(chunk: Arc<Chunk>, lo: Option<&[u8]>, hi: Option<Vec<u8>>) -> Result<ChunkCursor> {
        // Equal keys may straddle blocks: the first of them is in or behind the block before.
        let block = lo.map_or(0, |lo| {
            let mut block = chunk.block_of(lo);
            while block > 0 && chunk.blocks[block].first_key == lo {
                block -= 1;
            }
            block
        });
        let hi_block = hi.as_ref().map_or(usize::MAX, |hi| {
            chunk.blocks.partition_point(|block| block.first_key < *hi).saturating_sub(1)
        });
        let mut cursor = ChunkCursor {
            block,
            bytes: Arc::default(),
            at: 0,
            key: Vec::new(),
            value: 0..0,
            ordinal: 0,
            hi,
            hi_block,
            valid: true,
            chunk,
        };
        if cursor.block < cursor.chunk.blocks.len() {
            cursor.bytes = cursor.chunk.bytes(cursor.block)?;
        }
        cursor.next()?;
        while lo.is_some_and(|lo| cursor.valid && cursor.key.as_slice() < lo) {
            cursor.next()?;
        }
        Ok(cursor)
    }

    pub(crate) fn valid(&self) -> bool {
        self.valid
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.bytes[self.value.clone()]
    }

    /// Of the entry, among all of its dictionary; 0 where they are not kept.
    pub(crate) fn ordinal(&self) -> u64 {
        self.ordinal
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        if self.at >= self.bytes.len() {
            if !self.bytes.is_empty() {
                self.block += 1;
            }
            if self.block >= self.chunk.blocks.len() {
                self.valid = false;
                return Ok(());
            }
            if self.at > 0 {
                self.bytes = self.chunk.bytes(self.block)?;
            }
            self.at = 0;
        }
        if self.read().is_none() {
            let path = self.chunk.file.path();
            return Err(Error::corruption(&path, 0, "sorted block", "an entry", format!("byte {}", self.at)));
        }
        if self.block >= self.hi_block && self.hi.as_ref().is_some_and(|hi| self.key >= *hi) {
            self.valid = false;
        }
        Ok(())
    }

    #[inline]
    fn read(&mut self) -> Option<()> {
        let shared = self.number()? as usize;
        let rest_len = self.number()? as usize;
        let rest = self.bytes.get(self.at..self.at.checked_add(rest_len)?)?;
        if shared > self.key.len() {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(rest);
        self.at += rest_len;
        let value_len = self.number()? as usize;
        self.value = self.at..self.at.checked_add(value_len).filter(|end| *end <= self.bytes.len())?;
        self.at = self.value.end;
        if self.chunk.has_ordinals {
            self.ordinal = self.chunk.first_ordinal.checked_add(self.number()?)?;
        }
        Some(())
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(n);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pando_base::DictId;
    use pando_storage::vfs::{SimVfs, Vfs};

    use super::*;

    fn file() -> Arc<TreeFile> {
        let vfs: Arc<dyn Vfs> = SimVfs::new(1);
        vfs.create_dir_all(Path::new("/t")).unwrap();
        TreeFile::create(&vfs, Path::new("/t/main.pando"), DictId(7)).unwrap()
    }

    #[test]
    fn a_block_is_unpacked_only_if_it_is_as_long_as_is_known() {
        let bytes = b"some bytes, some bytes, some bytes, some bytes".repeat(9);
        let mut payload = Vec::new();
        assert_eq!(pack(&bytes, &mut payload), CODEC_LZ4);
        assert_eq!(unpack(CODEC_LZ4, &payload, bytes.len() as u64), Ok(bytes.clone()));
        assert!(unpack(CODEC_LZ4, &payload, bytes.len() as u64 - 1).is_err());
        for said in [0, 1, bytes.len() as u32 - 1, bytes.len() as u32 + 1, u32::MAX] {
            payload[..4].copy_from_slice(&said.to_le_bytes());
            assert!(unpack(CODEC_LZ4, &payload, bytes.len() as u64).is_err());
            let found = unpack(CODEC_LZ4, &payload, 9000);
            assert!(found.is_err(), "{found:?}");
        }
    }

    #[test]
    fn an_ordinal_beyond_64_bits_is_damage() {
        let entry = |ordinal| {
            let mut bytes = vec![0, 1, b'k', 1, b'v'];
            put_number(&mut bytes, ordinal);
            [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
        };
        let first = |ordinal| {
            let payload = entry(ordinal);
            let block = block_from(CODEC_PLAIN, &payload, payload.len() as u64 - 4).unwrap();
            let chunk = Chunk::spilled(&file(), vec![block], Vec::new(), 5, true);
            ChunkCursor::new(Arc::new(chunk), None, None).map(|cursor| cursor.ordinal())
        };
        assert_eq!(first(u64::MAX - 5).unwrap(), u64::MAX);
        assert!(first(u64::MAX - 4).unwrap_err().is_damage());
    }
}
