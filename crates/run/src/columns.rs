//! Whole columns of a run's segments, without its rows.
//!
//! A column of a segment is a block of the cache of its own, by the column's id, so that a query that comes again finds what
//! it wants decoded, and nothing else takes memory. When one of the wanted columns is missing, the segment's block
//! is read and the missing ones are decoded.
//!
//! Who goes over many segments takes them by **spans**: some that follow each other, whose columns are one block of the cache. What a
//! block costs, to be found and to be computed on, is then paid once for thousands of rows, however few rows a segment has.

use std::ops::Range;
use std::sync::Arc;

use pando_base::{Result, RunId, Seqno};
use pando_column::layout::Layouts;
use pando_column::vector::Vector;
use pando_column::{pick, Pick, Segment, Zones};

use crate::cache::{Block, BlockKey, Part};
use crate::index::Index;
use crate::read_ahead::ReadAhead;
use crate::run::Run;

/// A span has about so many rows, which is enough that what a block costs does not count,
const SPAN_ROWS: u64 = 4096;
/// or so many raw bytes: what is decoded at once, and weighs as one in the cache.
const SPAN_RAW_BYTES: u64 = 4 << 20;
/// Where rows are looked at in one of so many segments or less, only these segments are read.
const SPAN_SEGMENTS_OF_ONE_LOOKED_AT: usize = 2;

/// For whom a segment is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// For itself: the cache keeps its columns.
    Itself,
    /// For the span that ends before this segment: the cache keeps that one's columns.
    SpanUntil(usize),
}

/// What a segment or a span has of the wanted columns.
#[derive(Debug)]
pub struct Columns {
    /// The layout that all its rows were written in; `None` if nothing was wanted.
    pub version: Option<u32>,
    /// For each pick; `None` if the layout does not have the column.
    pub vectors: Vec<Option<Arc<Vector>>>,
}

/// Goes over the segments of a run; of one thread.
#[derive(Debug)]
pub struct RunColumns {
    run: Arc<Run>,
    index: Arc<Index>,
    read_ahead: ReadAhead,
    /// Picks that the run knows of.
    noted: Vec<u64>,
}

impl RunColumns {
    /// Of a run.
    ///
    /// # Errors
    /// Those of reading its index.
    pub fn new(run: &Arc<Run>) -> Result<RunColumns> {
        let index = run.index()?;
        Ok(RunColumns { run: run.clone(), index, read_ahead: ReadAhead::new(), noted: Vec::new() })
    }

    /// The run that it is of.
    pub fn run_id(&self) -> RunId {
        self.run.meta().id
    }

    /// Segments that have records in `[lo, hi)`, or may have.
    pub fn segments(&self, lo: &[u8], hi: Option<&[u8]>) -> Range<usize> {
        let end = hi.map_or(self.index.len(), |hi| self.index.segments_below(hi));
        self.index.segment_for(lo).min(end)..end
    }

    /// First key of segment `number`. Panics if there is none, as all of these.
    pub fn first_key(&self, number: usize) -> &[u8] {
        self.index.first_key(number)
    }

    /// The first key behind segment `number`, or the last one in it, which is then `true`.
    pub fn end(&self, number: usize) -> (&[u8], bool) {
        let next = number + 1;
        match next < self.index.len() {
            true => (self.first_key(next), false),
            false => (&self.run.meta().max_key, true),
        }
    }

    /// Records of segment `number`.
    pub fn rows(&self, number: usize) -> usize {
        self.index.entry(number).rows()
    }

    /// Whether all records of these segments, of which there are some, are rows that `snapshot` sees, each key has one, and all keys are
    /// in `[lo, hi)`.
    pub fn are_plain(&self, segments: Range<usize>, snapshot: Seqno, lo: &[u8], hi: Option<&[u8]>) -> bool {
        let ends_before = |hi: &[u8]| match self.end(segments.end - 1) {
            (last, true) => last < hi,
            (end, false) => end <= hi,
        };
        let is_plain = |number| {
            let entry = self.index.entry(number);
            entry.single_version()
                && !entry.continues()
                && entry.max_seqno <= snapshot
                && self.index.of_segment(number).tombstones == 0
        };
        let next = segments.end;
        lo <= self.first_key(segments.start)
            && hi.is_none_or(ends_before)
            && (next == self.index.len() || !self.index.entry(next).continues())
            && segments.into_iter().all(is_plain)
    }

    /// The segments of the span that begins with segment `number`; that segment alone, if none does.
    pub fn span_at(&self, number: usize) -> Range<usize> {
        // Where spans begin does not depend on where a scan does, so that all scans have the same.
        let span = |number: usize| {
            let before = self.index.entry(number).before;
            (before.rows / SPAN_ROWS, before.raw_bytes / SPAN_RAW_BYTES)
        };
        let of = span(number);
        let begins = number == 0 || span(number - 1) != of;
        let goes_on = |next: &usize| begins && *next < self.index.len() && span(*next) == of;
        number..(number + 1..).find(|next| !goes_on(next)).unwrap_or(number + 1)
    }

    /// Between which values its columns lie in segment `number`; `None`: nothing is known.
    pub fn zones<'a>(&'a self, number: usize, layouts: &'a Layouts) -> Option<Zones<'a>> {
        Zones::of(self.index.zones(number), layouts)
    }

    /// Counts that nobody wants the records of segment `number`.
    pub fn skip(&self, number: usize) {
        self.run.context().metrics.rows_skipped.add(self.rows(number) as u64);
    }

    /// A key that no record of segment `number` is below, and one that none is above.
    pub fn key_bounds(&self, number: usize) -> (&[u8], &[u8]) {
        (self.first_key(number), self.end(number).0)
    }

    /// The picked columns of segment `number`, whose records are all rows. `None`: it has to be read row by row.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn columns(&mut self, number: usize, layouts: &Layouts, picks: &[Pick]) -> Result<Option<Columns>> {
        let columns = self.read(number, layouts, picks, For::Itself)?;
        if columns.is_some() {
            self.run.context().metrics.rows_aggregated_in_columns.add(self.rows(number) as u64);
        }
        Ok(columns)
    }

    /// The picked columns of a span, whose records are all rows. If only some of its rows are looked at (ascending; `None`: all), others may
    /// be NULL. `None`: it has to be read segment by segment.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn span_columns(
        &mut self,
        span: Range<usize>,
        layouts: &Layouts,
        picks: &[Pick],
        rows: Option<&[u32]>,
    ) -> Result<Option<Columns>> {
        let Some((mut columns, missing)) = self.cached(span.start, picks, span_part_of) else {
            return Ok(None);
        };
        if !missing.is_empty() {
            let wanted: Vec<Pick> = missing.iter().map(|at| picks[*at]).collect();
            let looked_at = rows.and_then(|rows| self.looked_at(span.clone(), rows));
            let Some(read) = self.read_span(span.clone(), layouts, &wanted, looked_at.as_deref())? else {
                self.keep_span(span.start, &wanted, |_| Part::Rows);
                return Ok(None);
            };
            if let (Some(version), None) = (read.version, &looked_at) {
                let values = |at: usize| Part::Values { version, vector: read.vectors[at].clone() };
                self.keep_span(span.start, &wanted, values);
            }
            columns.version = read.version;
            missing.iter().zip(read.vectors).for_each(|(at, vector)| columns.vectors[*at] = vector);
        }
        let rows: usize = span.map(|number| self.rows(number)).sum();
        self.run.context().metrics.rows_aggregated_in_columns.add(rows as u64);
        Ok(Some(columns))
    }

    /// What the cache has of the picked columns, under the names that `part` gives them at segment `number`, and which it does not have.
    /// `None`: it knows that they cannot be read so.
    fn cached(
        &self,
        number: usize,
        picks: &[Pick],
        part: impl Fn(&Pick) -> u64,
    ) -> Option<(Columns, Vec<usize>)> {
        let mut columns = Columns { version: None, vectors: vec![None; picks.len()] };
        let mut missing = Vec::new();
        let cache = &self.run.context().cache;
        for (at, of) in picks.iter().enumerate() {
            match cache.find(&self.key_of(number, part(of))) {
                Some(Block::Column(Part::Rows)) => {
                    cache.count_found(at + 1 - missing.len());
                    return None;
                }
                Some(Block::Column(Part::Values { version, vector })) => {
                    columns.version = Some(version);
                    columns.vectors[at] = vector;
                }
                Some(other) => unreachable!("a column is cached as {other:?}"),
                None => missing.push(at),
            }
        }
        cache.count_found(picks.len() - missing.len());
        Some((columns, missing))
    }

    /// Which segments of a span have some of these rows; `None`: so many that it is read whole.
    fn looked_at(&self, span: Range<usize>, rows: &[u32]) -> Option<Vec<bool>> {
        let (mut end, mut rest) = (0, rows);
        let segments = span.len();
        let has_some = |number| {
            end += self.rows(number);
            let here = rest.partition_point(|row| (*row as usize) < end);
            rest = &rest[here..];
            here > 0
        };
        let looked_at: Vec<bool> = span.map(has_some).collect();
        let count = looked_at.iter().filter(|is_looked_at| **is_looked_at).count();
        (count * SPAN_SEGMENTS_OF_ONE_LOOKED_AT <= segments).then_some(looked_at)
    }

    /// The columns of a span's segments, or of those that are looked at, one after the other. `None`: as in `span_columns`.
    fn read_span(
        &mut self,
        span: Range<usize>,
        layouts: &Layouts,
        picks: &[Pick],
        looked_at: Option<&[bool]>,
    ) -> Result<Option<Columns>> {
        let mut version = None;
        let whom = if looked_at.is_some() { For::Itself } else { For::SpanUntil(span.end) };
        // For each pick, of each segment.
        let mut parts: Vec<Vec<Option<Arc<Vector>>>> = vec![Vec::with_capacity(span.len()); picks.len()];
        for (at, number) in span.enumerate() {
            if looked_at.is_some_and(|looked_at| !looked_at[at]) {
                let nothing = Arc::new(Vector::all_null(self.rows(number)));
                parts.iter_mut().for_each(|of_pick| of_pick.push(Some(nothing.clone())));
                continue;
            }
            let Some(columns) = self.read(number, layouts, picks, whom)? else { return Ok(None) };
            if version.is_some() && version != columns.version {
                return Ok(None);
            }
            version = columns.version;
            parts.iter_mut().zip(columns.vectors).for_each(|(of_pick, vector)| of_pick.push(vector));
        }
        // What the layout does not have is missing in each that was read.
        let whole = |of_pick: Vec<Option<Arc<Vector>>>| {
            let of_pick: Option<Vec<_>> = of_pick.into_iter().collect();
            of_pick.map(|of_pick| Arc::new(Vector::concat(&of_pick)))
        };
        Ok(Some(Columns { version, vectors: parts.into_iter().map(whole).collect() }))
    }

    /// Keeps the columns of the span that begins with segment `number`.
    fn keep_span(&mut self, number: usize, picks: &[Pick], part: impl Fn(usize) -> Part) {
        self.note(picks.iter().map(span_part_of));
        for (at, pick) in picks.iter().enumerate() {
            let key = self.key_of(number, span_part_of(pick));
            self.run.context().cache.insert(key, Block::Column(part(at)));
        }
    }

    /// As `columns`.
    fn read(
        &mut self,
        number: usize,
        layouts: &Layouts,
        picks: &[Pick],
        whom: For,
    ) -> Result<Option<Columns>> {
        let Some((mut columns, missing)) = self.cached(number, picks, part_of) else { return Ok(None) };
        if missing.is_empty() {
            return Ok(Some(columns));
        }
        let (cache, rows) = (self.run.context().cache.clone(), self.rows(number));
        let wanted: Vec<Pick> = missing.iter().map(|at| picks[*at]).collect();
        self.note(wanted.iter().map(part_of));
        let (run, index) = (&self.run, &self.index);
        let place = index.entry(number).place;
        let bytes = match whom {
            For::Itself => self.read_ahead.block(run, index, number)?,
            For::SpanUntil(end) => self.read_ahead.block_of_span(run, index, number, end)?,
        };
        let (codec, payload) = run.open_segment(index, number, bytes)?;
        let at_place = |e: pando_column::DecodeError| e.at(&run.context().file.path(), place.offset);
        let common = run.common(index)?;
        let picked = pick(codec, &payload, &common, layouts, &wanted).map_err(at_place)?;
        let Some(picked) = picked else {
            // Whoever reads it row by row finds it: it is not read twice.
            self.segment(number)?;
            for of in &wanted {
                cache.insert(self.key_of(number, part_of(of)), Block::Column(Part::Rows));
            }
            return Ok(None);
        };
        if picked.rows != rows {
            return Err(at_place(pando_column::DecodeError::new("rows of a segment", rows, picked.rows)));
        }
        columns.version = Some(picked.version);
        for (at, vector) in missing.into_iter().zip(picked.vectors) {
            let vector = vector.map(Arc::new);
            if whom == For::Itself {
                let part = Part::Values { version: picked.version, vector: vector.clone() };
                cache.insert(self.key_of(number, part_of(&picks[at])), Block::Column(part));
            }
            columns.vectors[at] = vector;
        }
        Ok(Some(columns))
    }

    /// Segment `number`, if it is in the cache, decoded.
    pub fn cached_segment(&self, number: usize) -> Option<Arc<Segment>> {
        match self.cached_block(number)? {
            Block::Segment(segment) => Some(segment),
            _ => None,
        }
    }

    fn cached_block(&self, number: usize) -> Option<Block> {
        self.run.context().cache.get(&self.run.key_of(self.index.entry(number).place))
    }

    /// Segment `number`, through the cache.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn segment(&mut self, number: usize) -> Result<Arc<Segment>> {
        let cached = self.cached_block(number);
        let (run, index) = (&self.run, &self.index);
        if let Some(block) = cached {
            return run.decoded(index, number, block);
        }
        let bytes = self.read_ahead.block(run, index, number)?;
        let block = run.block_of_segment(index, number, bytes)?;
        run.context().cache.insert(run.key_of(index.entry(number).place), block.clone());
        run.decoded(index, number, block)
    }

    fn key_of(&self, number: usize, part: u64) -> BlockKey {
        BlockKey { part, ..self.run.key_of(self.index.entry(number).place) }
    }

    /// So that the run takes its columns out of the cache when it goes.
    fn note(&mut self, parts: impl Iterator<Item = u64>) {
        for part in parts {
            if !self.noted.contains(&part) {
                self.noted.push(part);
                self.run.note_part(part);
            }
        }
    }
}

/// No column has a number as great as this.
const SPAN_OF_COLUMN: u64 = 1 << 62;

/// The number of a pick in names of cached blocks; not 0. Keys are not longer than 2 to the power of 31.
pub(crate) fn part_of(pick: &Pick) -> u64 {
    match *pick {
        Pick::Column(id) => u64::from(id) << 1 | 1,
        Pick::Key { offset, size } => 1 << 63 | (offset as u64) << 32 | (size as u64) << 1,
        // As no bytes of it would be.
        Pick::WholeKey => 1 << 63,
    }
}

/// The number of a pick in names of cached blocks that are of spans: no pick has it as its own.
pub(crate) fn span_part_of(pick: &Pick) -> u64 {
    match pick {
        Pick::Column(_) => part_of(pick) | SPAN_OF_COLUMN,
        Pick::Key { .. } | Pick::WholeKey => part_of(pick) | 1,
    }
}

/// The pick of which a span's columns have this number ([`span_part_of`]).
pub(crate) fn span_pick_of(part: u64) -> Option<Pick> {
    let of = if part >> 63 == 0 { part & !SPAN_OF_COLUMN } else { part & !1 };
    pick_of(of).filter(|pick| span_part_of(pick) == part)
}

/// The pick that has this number ([`part_of`]).
pub(crate) fn pick_of(part: u64) -> Option<Pick> {
    let low = |bits: u64| (part & ((1 << bits) - 1)) as usize;
    match (part >> 63, part & 1) {
        (0, 1) => u32::try_from(part >> 1).ok().map(Pick::Column),
        (1, 0) if part == 1 << 63 => Some(Pick::WholeKey),
        (1, 0) => Some(Pick::Key { offset: low(63) >> 32, size: low(32) >> 1 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pick_comes_back_of_its_number() {
        let key = |offset, size| Pick::Key { offset, size };
        for pick in [
            Pick::Column(0),
            Pick::Column(u32::MAX),
            Pick::WholeKey,
            key(0, 1),
            key(7, 4),
            key((1 << 31) - 1, (1 << 31) - 1),
        ] {
            assert_eq!(pick_of(part_of(&pick)), Some(pick));
            assert_eq!((span_pick_of(span_part_of(&pick)), span_pick_of(part_of(&pick))), (Some(pick), None));
            assert_eq!(pick_of(span_part_of(&pick)), None);
        }
        assert_eq!((pick_of(0), pick_of(2), pick_of(1 << 63 | 1)), (None, None, None));
    }
}
