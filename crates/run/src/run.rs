//! A run as readers see it.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use pando_base::locks::Mutex;
use pando_base::{Accesses, Error, Metrics, Result, Seqno};
use pando_column::format::CODEC_COLUMNS;
use pando_column::wire::Reader;
use pando_column::{take_packed, DecodeError, Packed, Segment, COMMON_BYTES_MAX};
use pando_storage::{BlockKind, Extent, Place, TreeFile};

use crate::cache::{Block, BlockCache, BlockKey, PackedBlock};
use crate::cursor::RunCursor;
use crate::filter_pages::Pages;
use crate::fuse_filter::FilterPage;
use crate::index::Index;
use crate::run_meta::RunMeta;

/// What runs of one file need.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// The file they live in.
    pub file: Arc<TreeFile>,
    /// The engine's cache.
    pub cache: Arc<BlockCache>,
    /// The engine's counters.
    pub metrics: Arc<Metrics>,
}

/// About how much a key range holds, all versions and tombstones counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Records.
    pub rows: u64,
    /// Raw bytes.
    pub bytes: u64,
    /// Records that are Deletes.
    pub tombstones: u64,
}

/// How the segments of a run are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunForm {
    /// Each column of the values apart.
    pub is_by_columns: bool,
    /// Compressed against what they have in common.
    pub has_common: bool,
}

/// An immutable sorted run. Dropping the last `Arc` (of it, and of the run it was before its adoption)
/// frees its space at once.
///
/// A **private run** belongs to a transaction that has not committed: its records have no seqno yet and
/// are written with 0, and so says its meta. At commit it is *adopted* ([`Run::adopted`]): the same
/// bytes under a meta that says the commit's seqno, which readers give to every record.
#[derive(Debug)]
pub struct Run {
    context: RunContext,
    meta: RunMeta,
    /// The space, given back on drop; after that of the cache's blocks.
    extents: Arc<Vec<Extent>>,
    /// Once the index was read.
    pages: OnceLock<Pages>,
    /// Parts of segments that may be in the cache.
    parts: Mutex<Vec<u64>>,
}

/// The part that says in names of cached blocks: what segments have in common. No column's (`columns.rs`).
const COMMON_PART: u64 = 2;

/// Codec byte of the block of what segments have in common.
pub(crate) const COMMON_CODEC: u8 = 1;

/// The payload of that block, which may be any bytes.
fn decode_common(codec: u8, payload: &[u8]) -> std::result::Result<Arc<[u8]>, DecodeError> {
    let what = "what segments have in common";
    if codec != COMMON_CODEC {
        return Err(DecodeError::new("codec of what segments have in common", COMMON_CODEC, codec));
    }
    let mut reader = Reader::new(payload);
    let common = take_packed(&mut reader, COMMON_BYTES_MAX, what)?;
    reader.end(what)?;
    Ok(common.into())
}

/// Bit of the run number in names of cached blocks: the blocks of a private run are other ones after
/// its adoption.
pub(crate) const PRIVATE: u64 = 1 << 63;

impl Run {
    pub(crate) fn new(context: RunContext, meta: RunMeta, extents: Vec<Extent>) -> Arc<Run> {
        Arc::new(Run {
            context,
            meta,
            extents: Arc::new(extents),
            pages: OnceLock::new(),
            parts: Mutex::default(),
        })
    }

    /// The private run as committed at `seqno`.
    pub fn adopted(&self, seqno: Seqno) -> Arc<Run> {
        assert!(self.is_private() && seqno > 0, "run {} is adopted at {seqno}", self.meta.id);
        let meta = RunMeta { min_seqno: seqno, max_seqno: seqno, ..self.meta.clone() };
        let (context, extents) = (self.context.clone(), self.extents.clone());
        Arc::new(Run { context, meta, extents, pages: OnceLock::new(), parts: Mutex::default() })
    }

    /// Whether it belongs to a transaction that has not committed.
    pub fn is_private(&self) -> bool {
        self.meta.max_seqno == 0
    }

    /// The seqno of all its records, which they were written without; `None` if it was written with theirs,
    /// which may be one and the same by chance.
    fn seqno_of_all(&self) -> Option<Seqno> {
        (self.meta.min_seqno == self.meta.max_seqno).then_some(self.meta.max_seqno)
    }

    /// Whether there may be plain blocks in it, in a file that is being encrypted.
    pub fn may_be_plain(&self) -> bool {
        self.extents.iter().any(Extent::may_be_plain)
    }

    /// A run that a node of a file being opened refers to: takes its extents, reads nothing.
    ///
    /// # Errors
    /// [`Error::Corruption`] if the extents overlap others or leave the file.
    pub fn open(ctx: &RunContext, meta: RunMeta) -> Result<Arc<Run>> {
        let extents: Result<Vec<_>> = meta.extents.iter().map(|place| ctx.file.adopt(*place)).collect();
        Ok(Run::new(ctx.clone(), meta, extents?))
    }

    /// What a node stores of it.
    pub fn meta(&self) -> &RunMeta {
        &self.meta
    }

    /// How much it holds.
    pub fn whole(&self) -> Estimate {
        let meta = &self.meta;
        Estimate { rows: meta.rows, bytes: meta.raw_bytes, tombstones: meta.tombstones }
    }

    /// About how much is in `[lo, hi)`: whole segments, those at an open end counted half.
    ///
    /// # Errors
    /// Those of reading the index.
    pub fn estimate(&self, lo: Option<&[u8]>, hi: Option<&[u8]>) -> Result<Estimate> {
        if !self.overlaps(lo, hi) {
            return Ok(Estimate::default());
        }
        let index = self.index()?;
        let first = lo.map_or(0, |key| index.segment_for(key));
        let end = hi.map_or(index.len(), |key| index.segments_below(key));
        let cut_low = lo.is_some_and(|key| index.first_key(first) < key);
        let cut_high = hi.is_some_and(|key| match index.len() == end {
            true => key <= &self.meta.max_key[..],
            false => index.first_key(end) != key,
        });
        // Twice the totals, less those of a segment for each end that cuts through one.
        let all = index.of_range(first, end.max(first + 1));
        let low = if cut_low { index.of_segment(first) } else { Default::default() };
        let high = if cut_high { index.of_segment(end.max(first + 1) - 1) } else { Default::default() };
        let half = |all: u64, low: u64, high: u64| (2 * all).saturating_sub(low + high) / 2;
        let estimate = Estimate {
            rows: half(all.rows, low.rows, high.rows),
            bytes: half(all.raw_bytes, low.raw_bytes, high.raw_bytes),
            tombstones: half(all.tombstones, low.tombstones, high.tombstones),
        };
        if first + 1 < end || !(cut_low && cut_high) {
            return Ok(Estimate { rows: estimate.rows.max(1), ..estimate });
        }
        // Both ends in one segment: a quarter of it.
        Ok(Estimate { rows: (all.rows / 4).max(1), bytes: all.raw_bytes / 4, tombstones: all.tombstones / 4 })
    }

    /// As [`Self::estimate`]; where the range lies in at most `segments_max` segments, those at its ends are looked into,
    /// and records are counted exactly.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn count(&self, lo: Option<&[u8]>, hi: Option<&[u8]>, segments_max: usize) -> Result<Estimate> {
        if !self.overlaps(lo, hi) {
            return Ok(Estimate::default());
        }
        let index = self.index()?;
        let first = lo.map_or(0, |key| index.segment_for(key));
        let end = hi.map_or(index.len(), |key| index.segments_below(key)).max(first + 1);
        if end - first > segments_max {
            return self.estimate(lo, hi);
        }
        let all = index.of_range(first, end);
        let (lo, hi) =
            (lo.filter(|key| index.first_key(first) < *key), hi.filter(|key| *key <= &self.meta.max_key[..]));
        let mut rows = all.rows;
        if end - first == 1 {
            if lo.is_some() || hi.is_some() {
                let [below, last] = self.lower_bounds(&index, first, [lo, hi])?;
                rows = last.unwrap_or(rows as usize).saturating_sub(below.unwrap_or(0)) as u64;
            }
        } else {
            if let Some(key) = lo {
                rows -= self.lower_bound(&index, first, key)? as u64;
            }
            if let Some(key) = hi {
                let last = end - 1;
                let above = index.entry(last).rows() - self.lower_bound(&index, last, key)?;
                rows = rows.saturating_sub(above as u64);
            }
        }
        let share = |of: u64| (u128::from(of) * u128::from(rows) / u128::from(all.rows.max(1))) as u64;
        Ok(Estimate { rows, bytes: share(all.raw_bytes), tombstones: share(all.tombstones) })
    }

    /// The first key of the segment that has record `record` of the run.
    ///
    /// # Errors
    /// Those of reading the index.
    pub fn key_near(&self, record: u64) -> Result<Vec<u8>> {
        let index = self.index()?;
        let number = index.entries().partition_point(|entry| entry.before.rows <= record).max(1) - 1;
        Ok(index.first_key(number).to_vec())
    }

    /// Keys that cut `[lo, hi)` into parts of about `raw_bytes_each`; each the first of a segment.
    ///
    /// # Errors
    /// Those of reading the index.
    pub fn split_keys(
        &self,
        lo: Option<&[u8]>,
        hi: Option<&[u8]>,
        raw_bytes_each: u64,
    ) -> Result<Vec<Vec<u8>>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        if !self.overlaps(lo, hi) {
            return Ok(keys);
        }
        let index = self.index()?;
        let first = lo.map_or(0, |key| index.segment_for(key));
        let end = hi.map_or(index.len(), |key| index.segments_below(key));
        let mut part = 0;
        for number in first..end {
            let key = index.first_key(number);
            let inside = lo.is_none_or(|lo| key > lo) && keys.last().is_none_or(|last| key > &last[..]);
            if part >= raw_bytes_each && part > 0 && inside {
                keys.push(key.to_vec());
                part = 0;
            }
            part += index.of_segment(number).raw_bytes;
        }
        Ok(keys)
    }

    /// Where to cut the run before `key` so that both parts are whole segments: the first key of the one that has `key`, or
    /// would have it; no version of it is in a segment before.
    ///
    /// # Errors
    /// Those of reading the index.
    pub fn cut_at(&self, key: &[u8]) -> Result<Vec<u8>> {
        let index = self.index()?;
        let mut number = index.segment_for(key);
        while number > 0 && index.entry(number).continues() {
            number -= 1;
        }
        Ok(index.first_key(number).to_vec())
    }

    /// The first record of segment `number` whose key is `key` or greater.
    fn lower_bound(&self, index: &Index, number: usize, key: &[u8]) -> Result<usize> {
        let [row] = self.lower_bounds(index, number, [Some(key)])?;
        Ok(row.unwrap_or(0))
    }

    /// The same of several keys, for which the block is looked up once. `None`: of no key.
    fn lower_bounds<const N: usize>(
        &self,
        index: &Index,
        number: usize,
        keys: [Option<&[u8]>; N],
    ) -> Result<[Option<usize>; N]> {
        let mut rows = [None; N];
        let of_keys = rows.iter_mut().zip(keys).filter_map(|(row, key)| Some((row, key?)));
        match self.segment_block(index, number)? {
            Block::Packed(block) if !self.context.cache.is_worth_decoding(&block, 1) => {
                for (row, key) in of_keys {
                    let found = block.packed.lower_bound(key, index.first_key(number));
                    *row = Some(found.map_err(|e| self.damaged(index.entry(number).place.offset, e))?);
                }
            }
            block => {
                let segment = self.decoded(index, number, block)?;
                of_keys.for_each(|(row, key)| *row = Some(segment.lower_bound(key)));
            }
        }
        Ok(rows)
    }

    /// A cursor over all its records, not positioned yet.
    pub fn cursor(self: &Arc<Self>) -> RunCursor {
        RunCursor::new(self.clone())
    }

    /// Whether a key of the run may be in `[lo, hi)`.
    fn overlaps(&self, lo: Option<&[u8]>, hi: Option<&[u8]>) -> bool {
        let backwards = matches!((lo, hi), (Some(lo), Some(hi)) if lo >= hi);
        let below = hi.is_some_and(|hi| hi <= &self.meta.min_key[..]);
        let above = lo.is_some_and(|lo| lo > &self.meta.max_key[..]);
        !backwards && !below && !above
    }

    pub(crate) fn context(&self) -> &RunContext {
        &self.context
    }

    pub(crate) fn key_of(&self, place: Place) -> BlockKey {
        let run = if self.is_private() { self.meta.id.0 | PRIVATE } else { self.meta.id.0 };
        BlockKey { instance: self.context.file.instance(), run, offset: place.offset, part: 0 }
    }

    /// From now on parts with this number may be in the cache.
    pub(crate) fn note_part(&self, part: u64) {
        let mut parts = self.parts.lock();
        if !parts.contains(&part) {
            parts.push(part);
        }
    }

    /// The index, through the cache.
    pub(crate) fn index(&self) -> Result<Arc<Index>> {
        let load = || Ok(Block::Index(Arc::new(self.read_index()?)));
        match self.context.cache.get_or_load(&self.key_of(self.meta.index), load)? {
            Block::Index(index) => Ok(index),
            other => unreachable!("an index block is cached as {other:?}"),
        }
    }

    /// Where the pages of the filter are.
    pub(crate) fn pages(&self) -> Result<&Pages> {
        if let Some(pages) = self.pages.get() {
            return Ok(pages);
        }
        let index = self.index()?;
        Ok(self.pages.get_or_init(|| Pages::of(&index)))
    }

    /// The same, unless the index would have to be read.
    pub(crate) fn cached_pages(&self) -> Option<&Pages> {
        self.pages.get()
    }

    /// A page of the filter, if it is in the cache.
    pub(crate) fn cached_filter_page(&self, place: Place) -> Option<Arc<FilterPage>> {
        match self.context.cache.get(&self.key_of(place))? {
            Block::Filter(page) => Some(page),
            other => unreachable!("a filter block is cached as {other:?}"),
        }
    }

    /// A page of the filter, through the cache.
    pub(crate) fn filter_page(&self, place: Place) -> Result<Arc<FilterPage>> {
        let load = || Ok(Block::Filter(Arc::new(self.read_filter_page(place)?)));
        match self.context.cache.get_or_load(&self.key_of(place), load)? {
            Block::Filter(page) => Ok(page),
            other => unreachable!("a filter block is cached as {other:?}"),
        }
    }

    /// Segment `number` decoded, through the cache.
    pub(crate) fn segment(&self, index: &Index, number: usize) -> Result<Arc<Segment>> {
        let block = self.segment_block(index, number)?;
        self.decoded(index, number, block)
    }

    /// Segment `number` as the cache has it, or is to have it.
    pub(crate) fn segment_block(&self, index: &Index, number: usize) -> Result<Block> {
        let load = || {
            let bytes = self.read(index.entry(number).place)?;
            self.block_of_segment(index, number, &bytes)
        };
        self.context.cache.get_or_load(&self.key_of(index.entry(number).place), load)
    }

    /// What the cache is to have of segment `number`, from the bytes of its block.
    pub(crate) fn block_of_segment(&self, index: &Index, number: usize, bytes: &[u8]) -> Result<Block> {
        self.block_in_form(index, number, bytes, self.context.cache.is_full())
    }

    /// The same; `is_packed`: as it is stored, if it can be.
    pub(crate) fn block_in_form(
        &self,
        index: &Index,
        number: usize,
        bytes: &[u8],
        is_packed: bool,
    ) -> Result<Block> {
        if is_packed {
            if let Some(packed) = self.pack_segment(index, number, bytes)? {
                return Ok(Block::Packed(Arc::new(PackedBlock::new(packed))));
            }
        }
        Ok(Block::Segment(Arc::new(self.decode_segment(index, number, bytes)?)))
    }

    /// The segment that `block` has, which is that of segment `number`. One that is asked for often is kept decoded.
    pub(crate) fn decoded(&self, index: &Index, number: usize, block: Block) -> Result<Arc<Segment>> {
        let cache = &self.context.cache;
        if let Block::Segment(segment) = &block {
            cache.use_decoded(&self.key_of(index.entry(number).place), segment);
        }
        // Decoding all of it costs about as much as two rows.
        let is_kept = matches!(&block, Block::Packed(packed) if cache.is_worth_decoding(packed, 2));
        let segment = self.decode_block(index, number, block)?;
        if is_kept {
            cache.insert(self.key_of(index.entry(number).place), Block::Segment(segment.clone()));
        }
        Ok(segment)
    }

    /// The same, with the cache left as it is.
    pub(crate) fn decode_block(&self, index: &Index, number: usize, block: Block) -> Result<Arc<Segment>> {
        match block {
            Block::Segment(segment) => Ok(segment),
            Block::Packed(block) => {
                let offset = index.entry(number).place.offset;
                let segment = block.packed.decode().map_err(|e| self.damaged(offset, e))?;
                self.check_promised(index, number, segment.rows(), segment.key(0))?;
                Ok(Arc::new(segment))
            }
            other => unreachable!("a segment block is cached as {other:?}"),
        }
    }

    pub(crate) fn read_index(&self) -> Result<Index> {
        let place = self.meta.index;
        let bytes = self.read(place)?;
        let path = self.context.file.path();
        let (codec, payload) = self.context.file.open_block(BlockKind::RunIndex, place.offset, &bytes)?;
        let mut index =
            Index::decode(codec, &payload, &self.meta.extents).map_err(|e| e.at(&path, place.offset))?;
        if let Some(seqno) = self.seqno_of_all() {
            index.number(seqno);
        }
        let rows = index.totals().rows;
        if rows != self.meta.rows || index.first_key(0) != self.meta.min_key {
            let (expected, found) = (self.meta.rows, rows);
            return Err(Error::corruption(
                &path,
                place.offset,
                "rows or first key of a run",
                expected,
                found,
            ));
        }
        Ok(index)
    }

    pub(crate) fn read_filter_page(&self, place: Place) -> Result<FilterPage> {
        let bytes = self.read(place)?;
        let path = self.context.file.path();
        let (codec, payload) = self.context.file.open_block(BlockKind::Filter, place.offset, &bytes)?;
        FilterPage::decode(codec, &payload).map_err(|e| e.at(&path, place.offset))
    }

    pub(crate) fn read_segment(&self, index: &Index, number: usize) -> Result<Segment> {
        let bytes = self.read(index.entry(number).place)?;
        self.decode_segment(index, number, &bytes)
    }

    /// What the segments have in common, which they may be compressed against; nothing in most runs.
    pub(crate) fn common(&self, index: &Index) -> Result<Arc<[u8]>> {
        let Some(place) = index.common() else { return Ok(Arc::default()) };
        let load = || Ok(Block::Common(self.read_common(place)?));
        match self.context.cache.get_or_load(&self.key_of_common(place), load)? {
            Block::Common(bytes) => Ok(bytes),
            other => unreachable!("what segments have in common is cached as {other:?}"),
        }
    }

    /// A name that no other block has, wherever a damaged index says that it is.
    fn key_of_common(&self, place: Place) -> BlockKey {
        BlockKey { part: COMMON_PART, ..self.key_of(place) }
    }

    pub(crate) fn read_common(&self, place: Place) -> Result<Arc<[u8]>> {
        let bytes = self.read(place)?;
        let path = self.context.file.path();
        let (codec, payload) = self.context.file.open_block(BlockKind::Common, place.offset, &bytes)?;
        decode_common(codec, &payload).map_err(|e| e.at(&path, place.offset))
    }

    /// How its segments are stored, going by the first.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn form(&self) -> Result<RunForm> {
        let index = self.index()?;
        let bytes = self.read(index.entry(0).place)?;
        let (codec, _) = self.open_segment(&index, 0, &bytes)?;
        Ok(RunForm { is_by_columns: codec == CODEC_COLUMNS, has_common: index.common().is_some() })
    }

    /// Codec and payload of segment `number`, from the bytes of its block.
    pub(crate) fn open_segment<'a>(
        &self,
        index: &Index,
        number: usize,
        bytes: &'a [u8],
    ) -> Result<(u8, Cow<'a, [u8]>)> {
        let offset = index.entry(number).place.offset;
        self.context.file.open_block(BlockKind::Segment, offset, bytes)
    }

    /// Segment `number` as it is stored, from the bytes of its block, once it is known to be the one promised; `None` if rows cannot be taken
    /// out of it one by one.
    fn pack_segment(&self, index: &Index, number: usize, bytes: &[u8]) -> Result<Option<Packed>> {
        let entry = index.entry(number);
        let (codec, payload) = self.open_segment(index, number, bytes)?;
        let common = self.common(index)?;
        let at_place = |e: DecodeError| self.damaged(entry.place.offset, e);
        let Some(mut packed) = Packed::open(codec, &payload, &common).map_err(at_place)? else {
            return Ok(None);
        };
        if let Some(seqno) = self.seqno_of_all() {
            packed.number(seqno);
        }
        // Whoever looks for a key in it compares the first one.
        self.check_promised(index, number, packed.rows(), index.first_key(number))?;
        Ok(Some(packed))
    }

    /// Decodes segment `number` from the bytes of its block, and checks that it is the one promised.
    pub(crate) fn decode_segment(&self, index: &Index, number: usize, bytes: &[u8]) -> Result<Segment> {
        let entry = index.entry(number);
        let offset = entry.place.offset;
        let path = self.context.file.path();
        let (codec, payload) = self.open_segment(index, number, bytes)?;
        let common = self.common(index)?;
        let mut segment = Segment::decode_on(&common, codec, &payload).map_err(|e| e.at(&path, offset))?;
        if let Some(seqno) = self.seqno_of_all() {
            segment.number(seqno);
        }
        self.check_promised(index, number, segment.rows(), segment.key(0))?;
        Ok(segment)
    }

    /// The error of a block at `offset` that no builder wrote.
    pub(crate) fn damaged(&self, offset: u64, error: DecodeError) -> Error {
        error.at(&self.context.file.path(), offset)
    }

    fn check_promised(&self, index: &Index, number: usize, rows: usize, first_key: &[u8]) -> Result<()> {
        let entry = index.entry(number);
        let wrong = |what, expected: String, found: String| {
            Err(Error::corruption(&self.context.file.path(), entry.place.offset, what, expected, found))
        };
        if rows != entry.rows() {
            return wrong("rows of a segment", entry.rows().to_string(), rows.to_string());
        }
        let promised = index.first_key(number);
        if first_key != promised {
            return wrong("first key of a segment", format!("{promised:?}"), format!("{first_key:?}"));
        }
        Ok(())
    }

    /// Reads the block at `place`.
    pub(crate) fn read(&self, place: Place) -> Result<Vec<u8>> {
        self.read_blocks(place, 1)
    }

    /// Reads `blocks` blocks that lie side by side in the file; counted as a miss of the cache.
    pub(crate) fn read_blocks(&self, place: Place, blocks: u64) -> Result<Vec<u8>> {
        let RunContext { file, metrics, .. } = &self.context;
        let started = file.now_micros();
        let bytes = file.read(place);
        let read_time = file.now_micros().saturating_sub(started);
        Accesses { blocks: 0, reads: 1, blocks_ahead: blocks - 1, read_time }.count();
        metrics.cache_misses.add(1);
        metrics.cache_read_bytes.add(place.len);
        metrics.cache_read_time.add(read_time);
        bytes
    }
}

impl Drop for Run {
    /// Nobody can ask for the blocks any more: makes room in the cache. If the index was evicted, they
    /// are old too and leave by themselves.
    fn drop(&mut self) {
        let cache = &self.context.cache;
        let Some(Block::Index(index)) = cache.peek(&self.key_of(self.meta.index)) else { return };
        let segments = index.entries().iter().map(|entry| entry.place);
        let places = segments.chain(index.filters().iter().copied()).chain([self.meta.index]);
        places.for_each(|place| cache.remove(&self.key_of(place)));
        if let Some(place) = index.common() {
            cache.remove(&self.key_of_common(place));
        }
        for part in std::mem::take(self.parts.get_mut()) {
            for entry in index.entries() {
                cache.remove(&BlockKey { part, ..self.key_of(entry.place) });
            }
        }
        cache.removed();
    }
}
