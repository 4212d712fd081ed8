//! Pieces of a scan: where the rows of a range are exactly the records of segments, and where they have to be merged.
//!
//! The range is gone through leaf by leaf, along the segments of all runs that may have records there: a piece ends where
//! the first of them does. A **plain** segment has one version of each key, no deletes, and nothing that the snapshot does
//! not see; if nothing else, memtable or run, has a record between the end of the piece before and its own end, then its
//! records are the rows there, and its columns can be read as they are: those of a leaf's own run, and as well those of
//! new rows that still wait above it. All other pieces are for a [`Cursor`](crate::Cursor) of the same snapshot. It may
//! look at a later version of the tree: what a snapshot sees of a range is the same in all of them.
//!
//! Where a deleted range may hide records, no piece is plain; runs that it hides as a whole are left out.
//!
//! Who asks for it gets some plain segments that follow each other as one piece: a **span** of the run ([`RunColumns::span_at`]).
//!
//! What memtables have behind the last segment of a leaf comes in pieces between their marks. Those in which one memtable
//! alone has records are **chunks**: their columns may be known from a query before ([`Chunk`]).

use std::ops::Range;
use std::sync::Arc;

use pando_base::{DeletedRanges, Result, RunId, Seqno};
use pando_column::layout::Layouts;
use pando_column::{Pick, Segment};
use pando_run::{Columns, Run, RunColumns, RunContext, Zones};

use crate::column_cache::Chunk;
use crate::deleted::hides_run;
use crate::memtable::Memtable;
use crate::source::{LeafView, Source, Target};
use crate::tree::Tree;
use crate::version::TreeVersion;

/// A part of the range: from the end of the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first key that may be in it.
    pub begin: Vec<u8>,
    /// The first key that is not; `None`: it goes on to the end.
    pub end: Option<Vec<u8>>,
    /// How many rows are in it, which are the records of segments; 0: there are none at all. `None`: they have to be merged.
    pub plain_rows: Option<usize>,
    /// How many segments these are; one, unless spans are asked for.
    pub segments: usize,
    /// Its rows are those of one memtable: see [`Pieces::chunk`].
    pub is_chunk: bool,
}

/// Goes over the pieces of a range; of one thread.
#[derive(Debug)]
pub struct Pieces {
    version: Arc<TreeVersion>,
    snapshot: Seqno,
    context: RunContext,
    /// Where the next piece begins; `None` after the last.
    begin: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    leaf: Option<Leaf>,
    /// Part and segments of the piece given last.
    at: (usize, Range<usize>),
    /// Whether spans are asked for.
    by_spans: bool,
    /// Where the piece given last begins, if it is a span.
    at_begin: Option<Vec<u8>>,
    chunk: Option<Chunk>,
}

/// What is left of a leaf.
#[derive(Debug)]
struct Leaf {
    hi: Option<Vec<u8>>,
    /// Those that the snapshot sees in it.
    deleted: DeletedRanges,
    runs: Vec<Part>,
    memtables: Vec<Other>,
    /// Those of the memtables behind the last segment, ascending; `None` until they are asked for.
    marks: Option<Vec<Box<[u8]>>>,
}

/// A run's part in a leaf.
#[derive(Debug)]
struct Part {
    columns: RunColumns,
    /// Those that may have records in what is left.
    segments: Range<usize>,
    /// None of its records is older.
    min_seqno: Seqno,
    /// Where its records are, for when a segment begins before what is left.
    records: Other,
}

/// Tells of records in stretches that ascend.
#[derive(Debug)]
struct Other {
    source: Source,
    is_placed: bool,
}

impl Tree {
    /// The pieces of `[begin, end)`, or to the end of all, as `snapshot` sees them.
    pub fn pieces(&self, snapshot: Seqno, begin: &[u8], end: Option<&[u8]>) -> Pieces {
        Pieces {
            version: self.version.load_full(),
            snapshot,
            context: self.ctx.clone(),
            begin: end.is_none_or(|end| begin < end).then(|| begin.to_vec()),
            end: end.map(<[u8]>::to_vec),
            leaf: None,
            at: (0, 0..0),
            by_spans: false,
            at_begin: None,
            chunk: None,
        }
    }
}

impl Pieces {
    /// Gives spans from now on, where they are plain.
    pub fn by_spans(&mut self) {
        self.by_spans = true;
    }

    /// The next one.
    ///
    /// # Errors
    /// Those of reading blocks, here and below.
    #[expect(clippy::should_implement_trait, reason = "a step that may fail")]
    pub fn next(&mut self) -> Result<Option<Piece>> {
        let Some(begin) = self.begin.take() else { return Ok(None) };
        self.leaf.take_if(|leaf| leaf.hi.as_ref().is_some_and(|hi| *hi <= begin));
        let mut leaf = match self.leaf.take() {
            Some(leaf) => leaf,
            None => self.enter(&begin)?,
        };
        self.chunk = None;
        let Some((at, end)) = leaf.nearest(&begin) else {
            return self.behind_segments(leaf, begin).map(Some);
        };
        let number = leaf.runs[at].segments.start;
        if self.by_spans {
            let span = leaf.runs[at].columns.span_at(number);
            if span.len() > 1 && leaf.are_plain((at, span.clone()), self.snapshot, &begin)? {
                return Ok(Some(self.give_plain(leaf, (at, span), begin)));
            }
        }
        if leaf.are_plain((at, number..number + 1), self.snapshot, &begin)? {
            return Ok(Some(self.give_plain(leaf, (at, number..number + 1), begin)));
        }
        let end = leaf.hi.iter().cloned().chain([end]).min();
        self.leaf = Some(leaf);
        Ok(Some(self.give(begin, end, None)))
    }

    /// Gives the first segment of the piece given last, which is a span, as a piece instead. The others come after it.
    pub fn first_of_span(&mut self) -> Option<Piece> {
        let leaf = self.leaf.take()?;
        let (at, span) = self.at.clone();
        let begin = self.at_begin.take()?;
        Some(self.give_plain(leaf, (at, span.start..span.start + 1), begin))
    }

    fn give_plain(&mut self, leaf: Leaf, at: (usize, Range<usize>), begin: Vec<u8>) -> Piece {
        let columns = &leaf.runs[at.0].columns;
        let end = leaf.hi.iter().cloned().chain([leaf.end_of(&at)]).min();
        let rows = at.1.clone().map(|number| columns.rows(number)).sum();
        let segments = at.1.len();
        self.at_begin = (segments > 1).then(|| begin.clone());
        (self.at, self.leaf) = (at, Some(leaf));
        Piece { segments, ..self.give(begin, end, Some(rows)) }
    }

    /// A piece of what memtables have behind the last segment of the leaf.
    fn behind_segments(&mut self, mut leaf: Leaf, begin: Vec<u8>) -> Result<Piece> {
        let hi = leaf.hi.clone();
        if !leaf.has_others(None, &begin, hi.as_deref())? {
            return Ok(self.give(begin, hi, Some(0)));
        }
        let (begins_at_mark, mark) = leaf.marks(&self.version, &begin);
        let end = mark.or(hi);
        let is_hidden = leaf.may_hide(0, &begin, end.as_deref());
        if let (true, false, Some(end)) = (begins_at_mark, is_hidden, &end) {
            if let Some(memtable) = leaf.only_memtable(&begin, end)? {
                let (lo, hi) = (begin.clone(), end.clone());
                self.chunk = Some(Chunk::new(memtable, self.snapshot, lo, hi, self.context.clone()));
            }
        }
        self.leaf = Some(leaf);
        Ok(self.give(begin, end, None))
    }

    /// The piece given last, which is a chunk.
    pub fn chunk(&mut self) -> Option<&mut Chunk> {
        self.chunk.as_mut()
    }

    /// Columns of the records of the piece given last, which is plain. If only some of its rows are looked at (ascending; `None`: all),
    /// others may be NULL. `None`: a segment has to be read row by row, a span segment by segment.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn columns(
        &mut self,
        layouts: &Layouts,
        picks: &[Pick],
        rows: Option<&[u32]>,
    ) -> Result<Option<Columns>> {
        let (at, segments) = &self.at;
        let Some(leaf) = &mut self.leaf else { return Ok(None) };
        let columns = &mut leaf.runs[*at].columns;
        match segments.len() {
            1 => columns.columns(segments.start, layouts, picks),
            _ => columns.span_columns(segments.clone(), layouts, picks, rows),
        }
    }

    /// The segment of the piece given last, which is plain and no span; if it is not wanted enough to be read, only when it is in the
    /// cache.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn segment(&mut self, is_to_read: bool) -> Result<Option<Arc<Segment>>> {
        let (at, segments) = &self.at;
        let Some(leaf) = &mut self.leaf else { return Ok(None) };
        let columns = &mut leaf.runs[*at].columns;
        match is_to_read {
            true => columns.segment(segments.start).map(Some),
            false => Ok(columns.cached_segment(segments.start)),
        }
    }

    /// Counts that nobody wants the records of the piece given last, which is plain.
    pub fn skip(&self) {
        let Some(leaf) = &self.leaf else { return };
        self.at.1.clone().for_each(|number| leaf.runs[self.at.0].columns.skip(number));
    }

    /// The run of the piece given last, which is plain, and its first segment's number.
    pub fn place(&self) -> Option<(RunId, usize)> {
        let leaf = self.leaf.as_ref()?;
        Some((leaf.runs[self.at.0].columns.run_id(), self.at.1.start))
    }

    /// How many segments the piece given last has, which is plain.
    pub fn segments(&self) -> usize {
        self.at.1.len()
    }

    /// How many rows segment `nth` of the piece given last has, which is plain.
    pub fn rows(&self, nth: usize) -> usize {
        self.leaf.as_ref().map_or(0, |leaf| leaf.runs[self.at.0].columns.rows(self.at.1.start + nth))
    }

    /// Between which values columns lie in segment `nth` of the piece given last, which is plain; `None`: nothing is known.
    pub fn zones<'a>(&'a self, nth: usize, layouts: &'a Layouts) -> Option<Zones<'a>> {
        self.leaf.as_ref()?.runs[self.at.0].columns.zones(self.at.1.start + nth, layouts)
    }

    /// A key that no row of segment `nth` of the piece given last is below, and one that none is above. It is plain.
    pub fn key_bounds(&self, nth: usize) -> Option<(&[u8], &[u8])> {
        Some(self.leaf.as_ref()?.runs[self.at.0].columns.key_bounds(self.at.1.start + nth))
    }

    /// The smaller end.
    fn upper(&self, of_leaf: Option<&[u8]>) -> Option<Vec<u8>> {
        let nearer = match (of_leaf, self.end.as_deref()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        nearer.map(<[u8]>::to_vec)
    }

    fn enter(&self, begin: &[u8]) -> Result<Leaf> {
        let view = LeafView::find(&self.version, Target::Holding(begin));
        let hi = self.upper(view.range.hi());
        // A run adopted by a later commit is of no interest.
        let deleted = self.version.deleted.seen_within(self.snapshot, view.range.low(), view.range.hi());
        let is_of_interest =
            |run: &&Arc<Run>| run.meta().min_seqno <= self.snapshot && !hides_run(&deleted, run, &view.range);
        let runs = view.runs.iter().filter(is_of_interest);
        let part = |run: &Arc<Run>| {
            let columns = RunColumns::new(run)?;
            let segments = columns.segments(begin, hi.as_deref());
            let min_seqno = run.meta().min_seqno;
            Ok(Part { columns, segments, min_seqno, records: Other::new(Source::run(run)) })
        };
        let runs = runs.map(part).collect::<Result<Vec<Part>>>()?;
        // What is empty now can only get records the snapshot does not see.
        let memtables = self.version.memtables().filter(|memtable| !memtable.is_empty());
        let memtables =
            memtables.map(|memtable| Other::new(Source::memtable(memtable.clone(), self.snapshot))).collect();
        Ok(Leaf { hi, deleted, runs, memtables, marks: None })
    }

    fn give(&mut self, begin: Vec<u8>, end: Option<Vec<u8>>, plain_rows: Option<usize>) -> Piece {
        let is_done = match (&end, &self.end) {
            (None, _) => true,
            (Some(end), Some(last)) => end >= last,
            (Some(_), None) => false,
        };
        self.begin = if is_done { None } else { end.clone() };
        Piece { begin, end, plain_rows, segments: 1, is_chunk: self.chunk.is_some() }
    }
}

impl Leaf {
    /// Whether a record of `[begin, end)` that is not older than `min_seqno` may be hidden.
    fn may_hide(&self, min_seqno: Seqno, begin: &[u8], end: Option<&[u8]>) -> bool {
        self.deleted.as_slice().iter().any(|range| min_seqno < range.seqno && range.overlaps(begin, end))
    }

    /// The run whose segment ends first of those that have not ended before `begin`, and the first key behind it.
    fn nearest(&mut self, begin: &[u8]) -> Option<(usize, Vec<u8>)> {
        self.runs.iter_mut().for_each(|part| part.advance(begin));
        let parts = self.runs.iter().enumerate();
        let left = parts.filter(|(_, part)| !part.segments.is_empty());
        let (at, part) = left.min_by_key(|(_, part)| part.columns.end(part.segments.start))?;
        let number = part.segments.start;
        Some((at, self.end_of(&(at, number..number + 1))))
    }

    /// The first key behind segments of a run, of which there are some.
    fn end_of(&self, (at, segments): &(usize, Range<usize>)) -> Vec<u8> {
        let (end, is_inclusive) = self.runs[*at].columns.end(segments.end - 1);
        if is_inclusive {
            [end, &[0]].concat()
        } else {
            end.to_vec()
        }
    }

    /// Whether the records of segments of a run are the rows from `begin` to their end. Requires: what is asked for ascends.
    fn are_plain(&mut self, at: (usize, Range<usize>), snapshot: Seqno, begin: &[u8]) -> Result<bool> {
        let part = &self.runs[at.0];
        if !part.columns.are_plain(at.1.clone(), snapshot, begin, self.hi.as_deref()) {
            return Ok(false);
        }
        let (min_seqno, end) = (part.min_seqno, self.end_of(&at));
        Ok(!self.may_hide(min_seqno, begin, Some(&end)) && !self.has_others(Some(at.0), begin, Some(&end))?)
    }

    /// Whether a mark is at `begin`, which is behind the last segment, and the next one behind it in the leaf.
    fn marks(&mut self, version: &TreeVersion, begin: &[u8]) -> (bool, Option<Vec<u8>>) {
        let marks = self.marks.get_or_insert_with(|| {
            let mut marks: Vec<_> = version.memtables().flat_map(|memtable| memtable.marks()).collect();
            marks.retain(|mark| &**mark >= begin && self.hi.as_deref().is_none_or(|hi| &**mark <= hi));
            marks.sort_unstable();
            marks.dedup();
            marks
        });
        let at = marks.partition_point(|mark| &**mark < begin);
        let is_there = marks.get(at).is_some_and(|mark| &**mark == begin);
        (is_there, marks.get(at + usize::from(is_there)).map(|mark| mark.to_vec()))
    }

    /// The memtable that alone has records in `[begin, end)`, which is behind the last segment.
    fn only_memtable(&mut self, begin: &[u8], end: &[u8]) -> Result<Option<Arc<Memtable>>> {
        let mut found = None;
        for other in &mut self.memtables {
            if other.has_records(begin, Some(end))? {
                let Source::Memtable(cursor) = &other.source else { return Ok(None) };
                if found.replace(cursor.memtable().clone()).is_some() {
                    return Ok(None);
                }
            }
        }
        Ok(found)
    }

    /// Whether anything but the run has a record in `[begin, end)`. Requires: what is asked for ascends.
    fn has_others(&mut self, but: Option<usize>, begin: &[u8], end: Option<&[u8]>) -> Result<bool> {
        for (at, part) in self.runs.iter_mut().enumerate() {
            if Some(at) != but && part.has_records(begin, end)? {
                return Ok(true);
            }
        }
        let mut at = 0;
        while let Some(memtable) = self.memtables.get_mut(at) {
            if memtable.has_records(begin, end)? {
                return Ok(true);
            }
            match memtable.source.valid() {
                true => at += 1,
                false => _ = self.memtables.swap_remove(at),
            }
        }
        Ok(false)
    }
}

impl Part {
    /// Passes by segments that end before `begin`.
    fn advance(&mut self, begin: &[u8]) {
        while !self.segments.is_empty() {
            let is_over = match self.columns.end(self.segments.start) {
                (last, true) => last < begin,
                (end, false) => end <= begin,
            };
            if !is_over {
                break;
            }
            self.segments.start += 1;
        }
    }

    fn has_records(&mut self, begin: &[u8], end: Option<&[u8]>) -> Result<bool> {
        self.advance(begin);
        if self.segments.is_empty() {
            return Ok(false);
        }
        let first = self.columns.first_key(self.segments.start);
        match first >= begin {
            true => Ok(end.is_none_or(|end| first < end)),
            false => self.records.has_records(begin, end),
        }
    }
}

impl Other {
    fn new(source: Source) -> Other {
        Other { source, is_placed: false }
    }

    fn has_records(&mut self, begin: &[u8], end: Option<&[u8]>) -> Result<bool> {
        if !self.is_placed || (self.source.valid() && self.source.key() < begin) {
            self.source.seek(begin)?;
            self.is_placed = true;
        }
        Ok(self.source.valid() && end.is_none_or(|end| self.source.key() < end))
    }
}
