//! Records in order to a run.

use std::sync::Arc;

use pando_base::limits::{FILTER_PAGE_KEYS, SEGMENT_COLUMN_GROWTH, SEGMENT_COLUMN_ROWS, SEGMENT_RAW_BYTES};
use pando_base::{compare_versions, Kind, RecordRef, Result, RunId, Seqno};
use pando_column::{put_packed, Compression, SegmentBuilder, Shapes, RECORD_OVERHEAD_BYTES};
use pando_storage::{BlockKind, Place};

use crate::extent_writer::BlockOutput;
use crate::fuse_filter::{key_hash, FilterPage};
use crate::index::Index;
use crate::run::{Run, RunContext, COMMON_CODEC};
use crate::run_meta::RunMeta;

/// Largest segments (but for a single larger record): well within what a segment can hold.
const SEGMENT_RAW_BYTES_MAX: usize = 8 << 20;

/// How to write a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Compression of the segments.
    pub compression: Compression,
    /// Raw bytes of a segment; a larger record has a segment of its own.
    pub segment_raw_bytes: usize,
    /// Whether to write a filter.
    pub filter: bool,
}

impl RunOptions {
    /// Bytes of a column-wise segment as it is stored, about: what a lookup reads that finds nothing in the cache. Beyond that size, streams have
    /// little more to gain from what stands before.
    fn segment_stored_bytes(&self) -> usize {
        self.segment_raw_bytes / 2
    }
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { compression: Compression::Lz4, segment_raw_bytes: SEGMENT_RAW_BYTES, filter: true }
    }
}

/// How large column-wise segments are made. Large ones compress better, if their columns have anything in common; of
/// small ones a lookup that finds nothing in the cache has less to read and decode. The first segment of a run tells: it is encoded each time
/// that it has become four times as large.
#[derive(Debug)]
enum Grain {
    /// The first segment is being filled. The next trial is at so many raw bytes.
    Trying { trials: Vec<Trial>, next: usize },
    /// Segments have so many raw bytes, or as many as may be.
    Settled(Option<usize>),
}

/// The first segment as far as it was.
#[derive(Clone, Copy, Debug)]
struct Trial {
    raw_bytes: usize,
    /// Bytes stored for a raw byte.
    cost: f64,
}

/// About what the index has of a segment beside its zones, and its block's header.
const INDEX_BYTES: usize = 64;
/// The first segment is tried each time that it has grown so many times.
const TRIAL_GROWTH: usize = 4;
/// Segments are as small as they can be if they take at most this part more than large ones, what the index has of them included.
const SMALL_COSTS_MAX: f64 = 1.06;

/// Whether column-wise segments are compressed against what they have in common with the first large one.
enum Common {
    /// There was no such segment yet.
    Unknown,
    /// What they may have in common; the next one tells whether it pays.
    Found(Arc<[u8]>),
    /// They are, or it does not pay.
    Settled,
}

/// What segments have in common is used if the second one takes at most this part of what it takes for itself: it must be
/// held in memory to read any of them.
const COMMON_COSTS_MAX: f64 = 0.97;
/// And if so many segments that save as much pay for storing it.
const COMMON_SEGMENTS_MAX: usize = 8;

/// Writes a run. Dropped before [`RunWriter::finish`], it leaves nothing behind.
pub struct RunWriter {
    context: RunContext,
    id: RunId,
    options: RunOptions,
    filter_page_keys: usize,
    segment: SegmentBuilder,
    /// What values are, if segments are to be column-wise.
    shapes: Option<Arc<Shapes>>,
    /// A row of an older layout in the current one.
    scratch: Vec<u8>,
    grain: Grain,
    /// Raw bytes that take about [`RunOptions::segment_stored_bytes`], by the last segment; not known yet: no bound.
    stored_raw_bytes: usize,
    common: Common,
    output: BlockOutput,
    index: Index,
    /// Hashes of the keys since the last filter page.
    hashes: Vec<u64>,
    /// Encoded filter pages and the index, before they are sealed.
    payload: Vec<u8>,
    min_key: Vec<u8>,
    /// Key and seqno of the last record of the last closed segment.
    last_closed: Option<(Vec<u8>, Seqno)>,
    last_seqno: Seqno,
    min_seqno: Seqno,
    max_seqno: Seqno,
}

impl RunWriter {
    /// A writer of run `id`, which must never have been used in this file.
    pub fn new(ctx: &RunContext, id: RunId, options: RunOptions) -> RunWriter {
        let segment_raw_bytes = options.segment_raw_bytes.min(SEGMENT_RAW_BYTES_MAX);
        RunWriter {
            context: ctx.clone(),
            id,
            options: RunOptions { segment_raw_bytes, ..options },
            filter_page_keys: FILTER_PAGE_KEYS,
            segment: SegmentBuilder::new(),
            shapes: None,
            scratch: Vec::new(),
            grain: Grain::Trying { trials: Vec::new(), next: segment_raw_bytes / TRIAL_GROWTH },
            stored_raw_bytes: usize::MAX,
            common: Common::Unknown,
            output: BlockOutput::new(&ctx.file),
            index: Index::default(),
            hashes: Vec::new(),
            payload: Vec::new(),
            min_key: Vec::new(),
            last_closed: None,
            last_seqno: 0,
            min_seqno: Seqno::MAX,
            max_seqno: 0,
        }
    }

    /// Segments are column-wise from now on, and rows of older layouts are written in the current one. Of values of many bytes they are larger, so that columns have
    /// something to compress: see [`SEGMENT_COLUMN_ROWS`].
    pub fn with_columns(mut self, shapes: Arc<Shapes>) -> RunWriter {
        self.shapes = Some(shapes);
        self
    }

    /// Smaller filter pages, so that tests have many of them.
    #[cfg(test)]
    pub(crate) fn with_filter_page_keys(mut self, keys: usize) -> RunWriter {
        self.filter_page_keys = keys;
        self
    }

    /// Appends a record. Panics unless it follows the one before by `compare_versions`.
    ///
    /// # Errors
    /// Those of writing to the file; the writer can only be dropped then.
    pub fn add(&mut self, r: RecordRef<'_>) -> Result<()> {
        let Some(shapes) = self.shapes.as_ref().filter(|_| r.kind == Kind::Put) else {
            return self.append(r);
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        let value = shapes.upgrade(r.value, &mut scratch).unwrap_or(r.value);
        let result = self.append(RecordRef { value, ..r });
        self.scratch = scratch;
        result
    }

    fn append(&mut self, r: RecordRef<'_>) -> Result<()> {
        let bytes = r.key.len() + r.value.len() + RECORD_OVERHEAD_BYTES;
        if self.is_full(bytes) {
            self.close_segment()?;
        }
        if self.segment.is_empty() {
            match &self.last_closed {
                None => self.min_key = r.key.to_vec(),
                Some((key, seqno)) => {
                    let ordered = compare_versions((key, *seqno), (r.key, r.seqno)).is_lt();
                    assert!(ordered, "records out of order at seqno {}: key {:?}", r.seqno, r.key);
                }
            }
        }
        if self.options.filter && (self.segment.is_empty() || self.segment.last_key() != r.key) {
            self.hashes.push(key_hash(r.key));
        }
        self.segment.push(r);
        self.last_seqno = r.seqno;
        if matches!(self.grain, Grain::Trying { next, .. } if self.segment.raw_bytes() >= next) {
            self.try_grain();
        }
        Ok(())
    }

    fn small_bytes(&self) -> usize {
        self.options.segment_raw_bytes / TRIAL_GROWTH
    }

    /// Sees what the segment as it is would take. Entries of indexes are not looked up by whole keys, and are left large.
    fn try_grain(&mut self) {
        let (raw_bytes, compression) = (self.segment.raw_bytes(), self.options.compression);
        let Grain::Trying { trials, next } = &mut self.grain else { return };
        let has_jumped = raw_bytes / TRIAL_GROWTH > *next;
        *next = raw_bytes * TRIAL_GROWTH;
        if has_jumped {
            // By a large value: this segment is what it is either way.
            return;
        }
        let has_values = self.segment.key_bytes() * 2 < raw_bytes;
        let shapes = self.shapes.clone().filter(|_| has_values);
        let bytes = shapes.and_then(|shapes| self.segment.bytes_in_columns(compression, &shapes));
        let Some(bytes) = bytes else {
            self.grain = Grain::Settled(None);
            return;
        };
        trials.push(Trial { raw_bytes, cost: (bytes + INDEX_BYTES) as f64 / raw_bytes as f64 });
        self.note_stored(bytes, raw_bytes);
    }

    /// The first segment is closed, and takes so much of a raw byte.
    fn settle_grain(&mut self, cost: f64) {
        let Grain::Trying { trials, .. } = &self.grain else { return };
        if !trials.is_empty() {
            let least = trials.iter().find(|trial| trial.cost <= cost * SMALL_COSTS_MAX);
            self.grain = Grain::Settled(least.map(|trial| trial.raw_bytes));
        }
    }

    /// So many bytes stored are so many raw bytes: the next segment is to be read and decoded as cheaply as its size on disk allows.
    fn note_stored(&mut self, bytes: usize, raw_bytes: usize) {
        let raw = raw_bytes as f64 / bytes.max(1) as f64 * self.options.segment_stored_bytes() as f64;
        self.stored_raw_bytes = raw as usize;
    }

    /// Whether a record of so many bytes begins another segment.
    #[inline]
    fn is_full(&self, bytes: usize) -> bool {
        let raw_bytes = self.segment.raw_bytes() + bytes;
        if self.segment.is_empty() || raw_bytes <= self.small_bytes() {
            return false;
        }
        if matches!(self.grain, Grain::Settled(Some(most)) if raw_bytes > most)
            || raw_bytes > self.stored_raw_bytes
        {
            return true;
        }
        if raw_bytes <= self.options.segment_raw_bytes {
            return false;
        }
        let may_grow = self.shapes.is_some() && self.segment.rows() < SEGMENT_COLUMN_ROWS;
        let most = self.options.segment_raw_bytes * SEGMENT_COLUMN_GROWTH;
        !may_grow || raw_bytes > most.min(SEGMENT_RAW_BYTES_MAX)
    }

    /// Raw bytes so far.
    pub fn raw_bytes(&self) -> u64 {
        self.index.totals().raw_bytes + self.segment.raw_bytes() as u64
    }

    /// Records so far.
    pub fn rows(&self) -> u64 {
        self.index.totals().rows + self.segment.rows() as u64
    }

    /// Writes what is left and gives the run, not synced yet; `None` if there was no record.
    ///
    /// # Errors
    /// Those of writing to the file; all space is given back.
    pub fn finish(mut self) -> Result<Option<Arc<Run>>> {
        if !self.segment.is_empty() {
            self.close_segment()?;
        }
        let Some((max_key, _)) = self.last_closed.take() else { return Ok(None) };
        self.close_filter_page()?;
        self.payload.clear();
        let codec = self.index.encode(&mut self.payload);
        let index = self.output.append(BlockKind::RunIndex, codec, &self.payload)?;

        let extents = self.output.finish()?;
        let places: Vec<Place> = extents.iter().map(|extent| extent.place()).collect();
        let totals = self.index.totals();
        let meta = RunMeta {
            id: self.id,
            rows: totals.rows,
            tombstones: totals.tombstones,
            raw_bytes: totals.raw_bytes,
            disk_bytes: places.iter().map(|place| place.len).sum(),
            min_key: self.min_key,
            max_key,
            min_seqno: self.min_seqno,
            max_seqno: self.max_seqno,
            index,
            extents: places,
        };
        Ok(Some(Run::new(self.context, meta, extents)))
    }

    fn close_segment(&mut self) -> Result<()> {
        let compression = self.options.compression;
        self.settle_common()?;
        let mut encoded = match &self.shapes {
            Some(shapes) => self.segment.finish_columns(compression, shapes),
            None => self.segment.finish(compression),
        };
        if self.shapes.is_some() {
            self.note_stored(encoded.bytes.len(), encoded.raw_bytes as usize);
        }
        let bytes = encoded.bytes.len() + encoded.zones.len() + INDEX_BYTES;
        self.settle_grain(bytes as f64 / encoded.raw_bytes as f64);
        if let (Grain::Settled(None), Common::Unknown, false) =
            (&self.grain, &self.common, encoded.common.is_empty())
        {
            self.common = Common::Found(std::mem::take(&mut encoded.common).into());
        }
        let place = self.output.append(BlockKind::Segment, encoded.codec, &encoded.bytes)?;
        let continues = self.last_closed.as_ref().is_some_and(|(key, _)| *key == encoded.first_key);
        let page = self.options.filter.then(|| self.index.next_filter());
        self.index.push(&encoded, place, continues, page);
        self.min_seqno = self.min_seqno.min(encoded.min_seqno);
        self.max_seqno = self.max_seqno.max(encoded.max_seqno);
        self.last_closed = Some((encoded.last_key, self.last_seqno));
        if self.hashes.len() >= self.filter_page_keys {
            self.close_filter_page()?;
        }
        Ok(())
    }

    /// Sees what the second large segment takes for itself, and against what it has in common with the first.
    fn settle_common(&mut self) -> Result<()> {
        let (Common::Found(common), Some(shapes)) = (&self.common, self.shapes.clone()) else {
            return Ok(());
        };
        let (common, compression) = (common.clone(), self.options.compression);
        self.common = Common::Settled;
        let alone = self.segment.bytes_in_columns(compression, &shapes);
        if !self.segment.set_common(compression, Some(common.clone())) {
            return Ok(());
        }
        let against = self.segment.bytes_in_columns(compression, &shapes);
        let mut packed = Vec::new();
        put_packed(&mut packed, &common);
        let pays = alone.zip(against).is_some_and(|(alone, against)| {
            against as f64 <= alone as f64 * COMMON_COSTS_MAX
                && (alone - against) * COMMON_SEGMENTS_MAX > packed.len()
        });
        if pays {
            let place = self.output.append(BlockKind::Common, COMMON_CODEC, &packed)?;
            self.index.set_common(place);
        } else {
            self.segment.set_common(compression, None);
        }
        Ok(())
    }

    fn close_filter_page(&mut self) -> Result<()> {
        if self.hashes.is_empty() {
            return Ok(());
        }
        let page = FilterPage::build(&mut self.hashes);
        self.hashes.clear();
        self.payload.clear();
        let codec = page.encode(&mut self.payload);
        let place = self.output.append(BlockKind::Filter, codec, &self.payload)?;
        self.index.push_filter(place);
        Ok(())
    }
}
