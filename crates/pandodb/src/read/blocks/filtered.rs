//! Rows that a condition on whole columns leaves: for scans that give rows to somebody who looks at the condition again.
//!
//! What is given is in the order of keys and **never too little**: every row of the view for which the condition is true. It
//! may be too much: what has to be merged by a cursor (own writes, several versions, new rows among others) is given
//! unfiltered. Of a segment whose records are just the rows of the view:
//!
//! 1. The bounds of its columns may say that no row is wanted: it is passed over unread.
//! 2. Else the condition's columns are read and it is evaluated; unless bounds say that all rows are wanted, or the
//!    segments before were nearly all wanted: looking would be for nothing, and is done for one in 16 then ([`Leniency`]).
//!    Segments that follow each other are looked at together, as a span, which says what is left of each ([`OfSpan`]).
//! 3. If rows are left, these are taken from the decoded segment if the cache has it. Else, of a table of which less than
//!    half of the columns is needed, these are read alone and the rows put together from them ([`rewrite`](super::rewrite)): a
//!    decoded segment has all columns of all rows. Otherwise the segment is decoded, and stays in the cache for the next one.

use std::sync::Arc;

use pando_base::{Metrics, RunId};
use pando_column::layout::Layouts;
use pando_column::vector::Vector;
use pando_column::Segment;

use super::columns::ColumnReader;
use super::rewrite::RowWriter;
use super::want::Want;
use super::zones::{Verdict, Zones};
use super::{Block, Blocks, Read};
use crate::error::Result;
use crate::table::Table;
use crate::txn::transaction::Txn;

/// Rows looked at in vain after which a visit ends, so that whoever waits can be asked to stop.
const VAIN_ROWS_MAX: usize = 1 << 18;

/// Says which rows are wanted.
pub trait RowCondition {
    /// Of how many of a segment's rows the condition is true.
    fn verdict(&self, zones: &Zones<'_>) -> Verdict;

    /// The rows of a block for which it is, or may be, true, ascending; `None`: all.
    fn select(&self, block: &Block) -> Option<Vec<u32>>;
}

/// See the head of this file.
#[derive(Debug)]
pub struct FilteredRows {
    blocks: Blocks,
    /// Key first, then the needed columns; `None`: rows are taken from segments.
    needed: Option<ColumnReader>,
    writer: RowWriter,
    found: Option<Found>,
    of_span: OfSpan,
    leniency: Leniency,
    metrics: Arc<Metrics>,
}

/// Which rows are left of the segments of the span that was looked at last.
#[derive(Debug, Default)]
struct OfSpan {
    /// Its run and its first segment.
    first: Option<(RunId, usize)>,
    segments: Vec<Vec<u32>>,
}

impl OfSpan {
    /// The rows that are left of this segment; `None`: it was not looked at.
    fn take(&mut self, place: Option<(RunId, usize)>) -> Option<Vec<u32>> {
        let ((run, first), (of, number)) = (self.first?, place?);
        let nth = number.checked_sub(first).filter(|_| run == of)?;
        self.segments.get_mut(nth).map(std::mem::take)
    }
}

/// Rows of a segment that are to be given.
#[derive(Debug)]
struct Found {
    source: Source,
    /// `None`: all.
    selected: Option<Vec<u32>>,
    rows: usize,
    next: usize,
}

#[derive(Debug)]
enum Source {
    Segment(Arc<Segment>),
    Columns(Vec<Arc<Vector>>),
}

impl Found {
    fn next(&mut self) -> Option<usize> {
        let at = self.next;
        self.next += 1;
        match &self.selected {
            Some(selected) => selected.get(at).map(|row| *row as usize),
            None => (at < self.rows).then_some(at),
        }
    }
}

/// Whether it is worth while to look at rows.
#[derive(Debug, Default)]
struct Leniency {
    looked_at: usize,
    left: usize,
    /// Segments to be given as they are.
    free: u32,
}

impl Leniency {
    const ROWS_MIN: usize = 4096;
    const SEGMENTS: u32 = 15;

    fn is_free(&mut self) -> bool {
        let is_free = self.free > 0;
        self.free -= u32::from(is_free);
        is_free
    }

    fn note(&mut self, looked_at: usize, left: usize) {
        self.looked_at += looked_at;
        self.left += left;
        if self.looked_at >= Leniency::ROWS_MIN {
            let is_idle = self.left * 8 > self.looked_at * 7;
            *self = Leniency { free: if is_idle { Leniency::SEGMENTS } else { 0 }, ..Leniency::default() };
        }
    }
}

impl Txn {
    /// The rows of a table in [`begin`, `end`), or from the first and to the last of all, as consistent reads see them now,
    /// for a condition on `wants`. Of each row, only the columns at the positions `needed` of the current layout count.
    /// `None`: the table has no columns that the engine knows of.
    ///
    /// # Errors
    /// Those of [`View::blocks`](crate::View::blocks).
    pub fn filtered_rows(
        &mut self,
        table: &Table,
        wants: &[Want],
        needed: &[usize],
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<Option<FilteredRows>> {
        let Some(layouts) = table.layouts().cloned() else { return Ok(None) };
        let blocks = self.view(table, 0)?.blocks(&layouts, wants, begin, end)?;
        Ok(Some(FilteredRows::new(blocks, &layouts, needed, self.db.metrics.clone())))
    }
}

impl FilteredRows {
    fn new(blocks: Blocks, layouts: &Layouts, needed: &[usize], metrics: Arc<Metrics>) -> FilteredRows {
        let columns = layouts.current().columns.len();
        let stored = needed.iter().filter(|at| **at < columns).map(|at| Want::Stored(*at));
        let wants: Vec<Want> = [Want::WholeKey].into_iter().chain(stored).collect();
        let writer = RowWriter::new(layouts, &wants);
        let mut blocks = Blocks { takes_chunks: false, ..blocks };
        blocks.by_spans();
        let is_little = 2 * (wants.len() - 1) <= columns;
        let needed = is_little.then(|| ColumnReader::new(layouts, &wants, blocks.sight.large.is_some()));
        let (of_span, leniency) = (OfSpan::default(), Leniency::default());
        FilteredRows { blocks, needed, writer, found: None, of_span, leniency, metrics }
    }

    /// Gives rows until `take` says that it has enough, or so many have been looked at in vain that it is time to ask
    /// whether to go on; then it says `true`. `false`: there are no more. The condition has to be the same each time.
    ///
    /// # Errors
    /// Those of reading files; it is of no use then.
    pub fn visit(
        &mut self,
        condition: &dyn RowCondition,
        mut take: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<bool> {
        let mut vain_rows = 0;
        loop {
            if let Some(cursor) = &mut self.blocks.cursor {
                if cursor.visit(&mut take)? {
                    return Ok(true);
                }
                self.blocks.cursor = None;
            }
            if !self.give_found(&mut take) || vain_rows >= VAIN_ROWS_MAX {
                return Ok(true);
            }
            if !self.advance(condition, &mut vain_rows)? {
                return Ok(false);
            }
        }
    }

    /// False: it is enough.
    fn give_found(&mut self, take: &mut impl FnMut(&[u8], &[u8]) -> bool) -> bool {
        let Some(found) = &mut self.found else { return true };
        while let Some(row) = found.next() {
            let goes_on = match &found.source {
                Source::Segment(segment) => take(segment.key(row), segment.value(row)),
                Source::Columns(vectors) => {
                    let key = vectors[0].get(row).unwrap_or_default();
                    take(key, self.writer.write(vectors, row))
                }
            };
            if !goes_on {
                return false;
            }
        }
        self.found = None;
        true
    }

    /// Goes on to rows that are wanted, or until it has been long enough. False: there are none.
    fn advance(&mut self, condition: &dyn RowCondition, vain_rows: &mut usize) -> Result<bool> {
        let FilteredRows { blocks, needed, found, of_span, leniency, metrics, .. } = self;
        let mut looker = Looker { condition, of_span, leniency, metrics, vain_rows };
        blocks.advance(&mut |blocks, rows| {
            let selected = match looker.look(blocks, rows)? {
                Look::Left(selected) => selected,
                Look::Else(read) => return Ok(read),
            };
            let Some(source) = source(blocks, needed.as_ref(), rows)? else { return Ok(Read::RowByRow) };
            *found = Some(Found { source, selected, rows, next: 0 });
            Ok(Read::Ready)
        })
    }
}

/// What is left of a piece.
enum Look {
    /// These rows of a segment; `None`: all.
    Left(Option<Vec<u32>>),
    /// Nothing to be given, for now.
    Else(Read),
}

/// Looks at the condition.
struct Looker<'a> {
    condition: &'a dyn RowCondition,
    of_span: &'a mut OfSpan,
    leniency: &'a mut Leniency,
    metrics: &'a Metrics,
    vain_rows: &'a mut usize,
}

impl Looker<'_> {
    fn look(&mut self, blocks: &mut Blocks, rows: usize) -> Result<Look> {
        let is_span = blocks.pieces.segments() > 1;
        if let (false, Some(left)) = (is_span, self.of_span.take(blocks.pieces.place())) {
            return Ok(if left.is_empty() { Look::Else(Read::Skipped) } else { Look::Left(Some(left)) });
        }
        let verdict = match blocks.verdict(rows, &|zones| self.condition.verdict(zones)) {
            // Segments of which all is wanted are not looked at, and those of a span one by one.
            None | Some(Verdict::All) if is_span => return Ok(Look::Else(Read::BySegment)),
            Some(Verdict::Some) if is_span && self.leniency.free > 0 => {
                return Ok(Look::Else(Read::BySegment))
            }
            Some(Verdict::Some) if self.leniency.is_free() => Verdict::All,
            verdict => verdict.unwrap_or(Verdict::Some),
        };
        match verdict {
            Verdict::None => {
                blocks.pieces.skip();
                return Ok(Look::Else(Read::Skipped));
            }
            Verdict::All => return Ok(Look::Left(None)),
            Verdict::Some => {}
        }
        let Some(vectors) = read(blocks, None, rows)? else {
            return Ok(Look::Else(if is_span { Read::BySegment } else { Read::RowByRow }));
        };
        // Whoever looks at the condition again reads the values.
        let has_values = !blocks.large.has_any(&vectors);
        let block = Block { rows, vectors, is_all_wanted: false, is_complete: true };
        let selected = has_values.then(|| self.condition.select(&block)).flatten();
        let left = selected.as_ref().map_or(rows, Vec::len);
        self.leniency.note(rows, left);
        self.metrics.rows_filtered.add((rows - left) as u64);
        if left == 0 {
            *self.vain_rows += rows;
            let is_long = *self.vain_rows >= VAIN_ROWS_MAX;
            return Ok(Look::Else(if is_long { Read::Ready } else { Read::Skipped }));
        }
        if !is_span {
            return Ok(Look::Left(selected));
        }
        *self.of_span = OfSpan::default();
        if let Some(selected) = selected {
            let segments = 0..blocks.pieces.segments();
            let (mut begin, mut rest) = (0, selected.as_slice());
            let of_segment = |nth| {
                let end = begin + blocks.pieces.rows(nth) as u32;
                let here;
                (here, rest) = rest.split_at(rest.partition_point(|row| *row < end));
                let rows = here.iter().map(|row| row - begin).collect();
                begin = end;
                rows
            };
            let segments = segments.map(of_segment).collect();
            *self.of_span = OfSpan { first: blocks.pieces.place(), segments };
        }
        Ok(Look::Else(Read::BySegment))
    }
}

/// Columns of the piece given last: `of`, or those of the condition. `None`: it has to be read row by row.
fn read(blocks: &mut Blocks, of: Option<&ColumnReader>, rows: usize) -> Result<Option<Vec<Arc<Vector>>>> {
    let reader = of.unwrap_or(&blocks.columns);
    let (layouts, picks) = reader.wanted();
    Ok(blocks.pieces.columns(layouts, picks, None)?.and_then(|columns| reader.vectors(rows, columns)))
}

/// Where rows of the piece given last are taken from.
fn source(blocks: &mut Blocks, needed: Option<&ColumnReader>, rows: usize) -> Result<Option<Source>> {
    if let Some(segment) = blocks.pieces.segment(needed.is_none())? {
        return Ok((segment.rows() == rows).then_some(Source::Segment(segment)));
    }
    let Some(needed) = needed else { return Ok(None) };
    Ok(read(blocks, Some(needed), rows)?.map(Source::Columns))
}
