//! The block cache: blocks of all runs, by (file, run, offset), within a limit in bytes.
//!
//! While there is room, segments are kept decoded. When it is full ([`BlockCache::is_full`]), what is read is kept as it is stored
//! ([`Packed`]): several times as many rows fit, and a lookup takes its one row out of it. Time is counted in
//! generations, in each of which single reads bring in a sixteenth of the cache. A stored block that is used again and again while little of the cache is replaced is decoded after all, and a
//! decoded one that nobody has used while much of it was is not kept any longer, so that it comes back as stored.
//!
//! Weights are what the block's allocations take (`pando_memory::footprint`), plus its cache entry, and the limit holds at
//! all times: a block that does not fit its shard is handed to whoever asked for it and not kept. Offsets
//! are used again after a run is freed, run ids never: so a stale block cannot be mistaken for a
//! live one. Who misses a block that someone is reading waits for that read instead of repeating it.

use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering};
use std::sync::Arc;

use pando_base::{Accesses, Metrics, Result};
use pando_column::vector::Vector;
use pando_column::{Packed, Segment};
use pando_memory::footprint;
use quick_cache::sync::{Cache, DefaultLifecycle, GuardResult};
use quick_cache::{OptionsBuilder, Weighter};

use crate::fuse_filter::FilterPage;
use crate::index::Index;

/// A shard is not made smaller than this, so that blocks much larger than usual still fit.
const SHARD_BYTES_MIN: u64 = 8 << 20;
/// So many shards of this size there are first, and then more of a larger one: threads that look up at the same time seldom meet.
const SMALL_SHARDS_MAX: u64 = 16;
const LARGE_SHARD_BYTES: u64 = 32 << 20;
/// Most shards.
const SHARDS_MAX: u64 = 128;
/// A typical block, for sizing the cache's memory of what it evicted lately: between small segments as they are stored and large ones decoded.
const BLOCK_BYTES_TYPICAL: u64 = 16 << 10;
/// Room of a shard for blocks that are new, at least: for some of the largest usual ones, decoded. One that does not fit there leaves
/// at once, and is read again for each row.
const SHARD_NEW_BYTES_MIN: u64 = 2 << 20;
/// The least part of a shard that is for new blocks, and the largest.
const NEW_PART_MIN: f64 = 0.03;
const NEW_PART_MAX: f64 = 0.25;
/// What an entry costs beyond its block: key, value, links and hash slot.
const ENTRY_BYTES: u64 = 120;
/// The counts of an `Arc`.
const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// Name of a block in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockKey {
    /// The open file.
    pub(crate) instance: u64,
    /// The run, unique in its file.
    pub(crate) run: u64,
    /// Where the block is in the file.
    pub(crate) offset: u64,
    /// Which part of a segment; 0: all of the block.
    pub(crate) part: u64,
}

impl Hash for BlockKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.instance);
        state.write_u64(self.run);
        state.write_u64(self.offset);
        state.write_u64(self.part);
    }
}

/// Hashes block keys the same in every process, so that a simulation evicts reproducibly.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn finish(&self) -> u64 {
        let folded = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        folded ^ (folded >> 32)
    }
}

/// Generations in which the whole cache is replaced once.
const GENERATIONS: u64 = 16;
/// Rows looked up in a packed segment until it is decoded, with no pause of more than so many generations.
const USES_UNTIL_DECODED: u8 = 8;
const BUSY_GENERATIONS: u32 = 4;
/// A decoded segment leaves a full cache after such a pause. More than above, or segments would go back and forth.
const IDLE_GENERATIONS: u32 = 8;

/// A segment as it is stored.
#[derive(Debug)]
pub(crate) struct PackedBlock {
    pub(crate) packed: Packed,
    /// Of its last use.
    generation: AtomicU32,
    /// Without a pause.
    uses: AtomicU8,
}

impl PackedBlock {
    pub(crate) fn new(packed: Packed) -> PackedBlock {
        PackedBlock { packed, generation: AtomicU32::new(0), uses: AtomicU8::new(0) }
    }
}

/// A block.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Segment(Arc<Segment>),
    Packed(Arc<PackedBlock>),
    Index(Arc<Index>),
    Filter(Arc<FilterPage>),
    Column(Part),
    /// What the segments of a run have in common.
    Common(Arc<[u8]>),
}

/// What a segment has of a column.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Nothing is known of its columns: it has to be read row by row.
    Rows,
    /// The values, in the form of this layout; none if the layout does not have the column.
    Values { version: u32, vector: Option<Arc<Vector>> },
}

#[derive(Clone, Debug)]
struct ExactBytes;

impl Weighter<BlockKey, Block> for ExactBytes {
    fn weight(&self, _: &BlockKey, block: &Block) -> u64 {
        let shared = |bytes: usize| footprint(COUNTS_BYTES + bytes);
        let bytes = match block {
            Block::Segment(segment) => shared(size_of::<Segment>()) + footprint(segment.heap_bytes()),
            Block::Packed(block) => {
                let heap: usize = block.packed.heap_bytes().into_iter().map(footprint).sum();
                shared(size_of::<PackedBlock>()) + heap
            }
            Block::Index(index) => shared(size_of::<Index>()) + index.heap_bytes(),
            Block::Filter(page) => shared(size_of::<FilterPage>()) + footprint(page.heap_bytes()),
            Block::Column(Part::Values { vector: Some(vector), .. }) => {
                shared(size_of::<Vector>()) + vector.heap_bytes()
            }
            Block::Column(_) => 0,
            Block::Common(bytes) => shared(bytes.len()),
        };
        bytes as u64 + ENTRY_BYTES
    }
}

type Blocks =
    Cache<BlockKey, Block, ExactBytes, BuildHasherDefault<KeyHasher>, DefaultLifecycle<BlockKey, Block>>;

/// Blocks of all runs of the engine. Shared by all files; scan-resistant, concurrent.
#[derive(Debug)]
pub struct BlockCache {
    blocks: Blocks,
    limit: AtomicU64,
    /// How often a sixteenth of the limit has come in, and the bytes since then.
    generation: AtomicU32,
    came_in: AtomicU64,
    metrics: Arc<Metrics>,
}

impl BlockCache {
    /// A cache that holds up to `limit_bytes`.
    pub fn new(limit_bytes: u64, metrics: Arc<Metrics>) -> Arc<BlockCache> {
        let small = (limit_bytes / SHARD_BYTES_MIN).clamp(1, SMALL_SHARDS_MAX);
        let shards = (limit_bytes / LARGE_SHARD_BYTES).clamp(small, SHARDS_MAX);
        // Rounded down to a power of two, as the library would round up.
        let shards = 1usize << shards.ilog2();
        let items = (limit_bytes / BLOCK_BYTES_TYPICAL).max(32 * shards as u64);
        let shard_bytes = limit_bytes / shards as u64;
        let new_part = SHARD_NEW_BYTES_MIN as f64 / shard_bytes.max(1) as f64;
        let options = OptionsBuilder::new()
            .shards(shards)
            .hot_allocation(1.0 - new_part.clamp(NEW_PART_MIN, NEW_PART_MAX))
            .estimated_items_capacity(items as usize)
            .weight_capacity(shard_bytes * shards as u64)
            .build()
            .unwrap_or_else(|e| unreachable!("both capacities are given: {e:?}"));
        let blocks = Blocks::with_options(
            options,
            ExactBytes,
            BuildHasherDefault::default(),
            DefaultLifecycle::default(),
        );
        metrics.cache_bytes_limit.set(limit_bytes);
        let (limit, generation, came_in) =
            (AtomicU64::new(limit_bytes), AtomicU32::new(0), AtomicU64::new(0));
        Arc::new(BlockCache { blocks, limit, generation, came_in, metrics })
    }

    /// Changes the limit; evicts down to it at once.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
        let shards = self.blocks.num_shards() as u64;
        self.blocks.set_capacity(bytes / shards * shards);
        self.metrics.cache_bytes_limit.set(bytes);
        self.metrics.cache_bytes.set(self.bytes());
    }

    /// Bytes held now.
    pub fn bytes(&self) -> u64 {
        self.blocks.weight()
    }

    /// Most bytes it holds.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Whether there is so little room that segments are kept as they are stored.
    pub(crate) fn is_full(&self) -> bool {
        let limit = self.limit();
        // Shards leave room that large blocks do not fit in.
        self.metrics.cache_bytes.get() >= limit - limit / 8
    }

    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Counts that `rows` rows of the block are wanted. Whether it is worth decoding for those who come later.
    pub(crate) fn is_worth_decoding(&self, block: &PackedBlock, rows: u8) -> bool {
        self.metrics.cache_packed_uses.add(1);
        if !self.is_full() {
            return true;
        }
        let now = self.generation();
        let pause = now.wrapping_sub(block.generation.load(Ordering::Relaxed));
        let before = if pause > BUSY_GENERATIONS { 0 } else { block.uses.load(Ordering::Relaxed) };
        let uses = before.saturating_add(rows);
        block.generation.store(now, Ordering::Relaxed);
        block.uses.store(uses, Ordering::Relaxed);
        uses >= USES_UNTIL_DECODED
    }

    /// Counts a use of a decoded segment that is in the cache, or comes there; one that was not used for long gives way to others.
    pub(crate) fn use_decoded(&self, key: &BlockKey, segment: &Segment) {
        if !self.is_full() {
            return;
        }
        let (now, mark) = (self.generation(), segment.mark());
        let last = mark.load(Ordering::Relaxed);
        if last == now {
            return;
        }
        mark.store(now, Ordering::Relaxed);
        if now.wrapping_sub(last) > IDLE_GENERATIONS {
            self.remove(key);
            self.removed();
        }
    }

    /// The block if it is here; counts and ages it as a use.
    pub(crate) fn get(&self, key: &BlockKey) -> Option<Block> {
        let found = self.find(key);
        self.count_found(usize::from(found.is_some()));
        found
    }

    /// The same for one of several blocks; whoever finds them [counts](Self::count_found) them together, as all threads share the counter.
    pub(crate) fn find(&self, key: &BlockKey) -> Option<Block> {
        Accesses::LOOKUP.count();
        self.blocks.get(key)
    }

    /// So many blocks were found.
    pub(crate) fn count_found(&self, blocks: usize) {
        if blocks > 0 {
            self.metrics.cache_hits.add(blocks as u64);
        }
    }

    /// The block if it is here, without making it look used.
    pub(crate) fn peek(&self, key: &BlockKey) -> Option<Block> {
        self.blocks.peek(key)
    }

    /// Keeps a block that was read without asking here first.
    pub(crate) fn insert(&self, key: BlockKey, block: Block) {
        self.mark(&block);
        self.blocks.insert(key, block);
        self.metrics.cache_bytes.set(self.bytes());
    }

    /// Counts what single reads bring in. Long scans are not counted: they do not push out what is used.
    fn note(&self, key: &BlockKey, block: &Block) {
        let (bytes, step) = (ExactBytes.weight(key, block), (self.limit() / GENERATIONS).max(1));
        let sum = self.came_in.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // If another has added something, that one finds the line crossed, wherever a smaller limit has put it.
        let is_crossed = sum >= step
            && self.came_in.compare_exchange(sum, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_crossed {
            self.generation.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A decoded segment that comes in is as if it had just been used.
    fn mark(&self, block: &Block) {
        if let Block::Segment(segment) = block {
            segment.mark().store(self.generation(), Ordering::Relaxed);
        }
    }

    /// The block, read by `load` if it is not here. Only one thread reads; others wait for it, and one
    /// of them tries again if it fails.
    pub(crate) fn get_or_load(&self, key: &BlockKey, load: impl FnOnce() -> Result<Block>) -> Result<Block> {
        Accesses::LOOKUP.count();
        match self.blocks.get_value_or_guard(key, None) {
            GuardResult::Value(block) => {
                self.metrics.cache_hits.add(1);
                Ok(block)
            }
            GuardResult::Guard(guard) => {
                let block = load()?;
                self.note(key, &block);
                self.mark(&block);
                // Refused only if the key was removed meanwhile.
                let _ = guard.insert(block.clone());
                // Room is made among those that are new, and after a smaller limit there may be no other. Then an old one makes room.
                if self.blocks.peek(key).is_none() {
                    self.blocks.insert(*key, block.clone());
                }
                self.metrics.cache_bytes.set(self.bytes());
                Ok(block)
            }
            GuardResult::Timeout => unreachable!("no timeout was given"),
        }
    }

    /// What is here now, in no order. What comes and goes meanwhile may be missing.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (BlockKey, Block)> + '_ {
        self.blocks.iter()
    }

    /// Forgets a block that nobody can ask for any more.
    pub(crate) fn remove(&self, key: &BlockKey) {
        self.blocks.remove(key);
    }

    /// After a row of [`Self::remove`].
    pub(crate) fn removed(&self) {
        self.metrics.cache_bytes.set(self.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::{Kind, RecordRef};
    use pando_column::{Compression, SegmentBuilder};

    fn block(bytes: usize) -> Block {
        let mut builder = SegmentBuilder::new();
        builder.push(RecordRef { key: b"k", seqno: 1, kind: Kind::Put, value: &vec![7; bytes] });
        let encoded = builder.finish(Compression::None);
        Block::Segment(Arc::new(Segment::decode(encoded.codec, &encoded.bytes).unwrap()))
    }

    fn key(offset: u64) -> BlockKey {
        BlockKey { instance: 1, run: 2, offset, part: 0 }
    }

    #[test]
    fn the_limit_holds_at_every_moment_and_after_a_resize() {
        for limit in [0, 1000, 100_000, 20 << 20] {
            let cache = BlockCache::new(limit, Arc::default());
            for i in 0..3000 {
                cache.insert(key(i * 4096), block(i as usize % 5000 * 10));
                assert!(cache.bytes() <= limit, "{} of {limit}", cache.bytes());
            }
            assert!(limit < 1000 || cache.bytes() > limit / 2, "{} of {limit}", cache.bytes());
            cache.set_limit(limit / 3);
            assert!(cache.bytes() <= limit / 3);
            assert_eq!(cache.limit(), limit / 3);
        }
    }

    #[test]
    fn a_block_larger_than_the_cache_is_given_but_not_kept() {
        let cache = BlockCache::new(10_000, Arc::default());
        let Ok(Block::Segment(segment)) = cache.get_or_load(&key(0), || Ok(block(20_000))) else { panic!() };
        assert_eq!(segment.value(0).len(), 20_000);
        assert!(cache.get(&key(0)).is_none());
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn a_block_is_loaded_once_and_a_failed_load_leaves_nothing() {
        let cache = BlockCache::new(1 << 20, Arc::default());
        let failed = cache.get_or_load(&key(0), || Err(pando_base::Error::NotFound { what: "x".into() }));
        assert!(failed.is_err());
        let loads = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let load = || {
                        loads.fetch_add(1, Ordering::Relaxed);
                        Ok(block(100))
                    };
                    assert!(cache.get_or_load(&key(0), load).is_ok());
                });
            }
        });
        assert_eq!(loads.into_inner(), 1);
        assert_eq!(cache.metrics.cache_hits.get(), 7);
    }

    #[test]
    fn a_block_that_is_used_again_at_once_is_read_once_though_the_cache_is_full() {
        let cache = BlockCache::new(20 << 20, Arc::default());
        let others = || {
            for offset in (0..5000).chain(0..5000) {
                cache.get_or_load(&key(offset), || Ok(block(10_000))).unwrap();
            }
        };
        let loads_of = |first: u64, bytes: usize| {
            let mut loads = 0;
            for offset in (first..first + 40).flat_map(|offset| [offset; 10]) {
                let load = || {
                    loads += 1;
                    Ok(block(bytes))
                };
                cache.get_or_load(&key(1 << 40 | offset), load).unwrap();
                cache.get_or_load(&key(1 << 50 | offset), || Ok(block(1000))).unwrap();
            }
            loads
        };
        others();
        assert_eq!(loads_of(0, 600 << 10), 40, "larger than a small part of a shard");
        others();
        cache.set_limit(12 << 20);
        let loads = loads_of(1000, 10_000);
        assert!(loads < 60, "nothing new was left by the smaller limit: {loads}");
        assert!(cache.bytes() <= 12 << 20);
    }

    #[test]
    fn weights_are_the_bytes_held() {
        let cache = BlockCache::new(1 << 20, Arc::default());
        cache.insert(key(0), block(1000));
        let heap = footprint(1 + 1000 + 2 * 8) + footprint(COUNTS_BYTES + size_of::<Segment>());
        assert_eq!(cache.bytes(), heap as u64 + ENTRY_BYTES);
        cache.remove(&key(0));
        assert_eq!(cache.bytes(), 0);
    }
}
