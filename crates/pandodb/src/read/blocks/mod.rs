//! Blocks: the rows of a view as whole columns of values, of the columns that are asked for only.
//!
//! Who computes on many rows takes [`Blocks`] of a part of a [`View`] instead of a cursor. What a block has of its rows is in
//! [`Vector`]s, whose values are as the table's **current** layout stores them, whichever layout the rows were written
//! in. The rows are those that a cursor of the same view gives, in its order.
//!
//! Where a segment's records are just the rows that the view sees (`pando_tree::Pieces` says so, and there is no own write among
//! them), its columns become vectors without its rows ([`columns`]). The rest is merged by a cursor and gathered row by
//! row ([`rows`]); but what one memtable alone has is gone over without a merge, and the vectors are kept for the next
//! one who asks (`pando_tree::Chunk`).
//!
//! Before a segment's columns are read, whoever asks can look between which values they lie ([`zones`]), and pass over it.
//!
//! Who wants rows, not columns, but few of them, takes [`FilteredRows`] instead ([`filtered`]).

mod columns;
mod filtered;
mod gather;
mod large;
mod late;
mod narrow;
mod rewrite;
mod rows;
mod want;
mod zones;

use std::ops::Bound;
use std::sync::Arc;

use pando_base::Error as EngineError;
use pando_column::layout::Layouts;
use pando_column::vector::Vector;
use pando_tree::{Piece, Pieces};

use crate::error::{Error, Result};
use crate::read::own_writes::OwnCursor;
use crate::read::view::{Sight, View, ViewCursor};
use crate::table::writes::Writes;

use columns::ColumnReader;
pub use filtered::{FilteredRows, RowCondition};
use large::LargeReader;
pub(crate) use large::{has_references, large_wants};
use late::Late;
use narrow::narrowed;
pub(crate) use rows::RowReader;
pub use want::Want;
pub use zones::{Verdict, Zone, Zones};

/// Rows of a block that is put together from rows.
const BLOCK_ROWS: usize = 1024;
/// Of so many rows of a span one may lie in a segment that could be passed over, which costs more than it saves: a segment that is passed over is not
/// read from disk either.
const SPAN_ROWS_OF_ONE_UNWANTED: usize = 8;

/// Some rows, as columns.
#[derive(Clone, Debug)]
pub struct Block {
    /// How many rows; some.
    pub rows: usize,
    /// For each want one, of so many rows.
    pub vectors: Vec<Arc<Vector>>,
    /// All of them are wanted, the verdict was.
    pub is_all_wanted: bool,
    /// Else some vectors have no rows yet: [`Blocks::complete`] reads them.
    pub is_complete: bool,
}

/// What an error says of it.
const KEY_WITHOUT_PART: &str = "a key without one of its columns";

/// What became of a piece.
enum Read {
    /// It waits to be given.
    Ready,
    /// None of its rows is wanted.
    Skipped,
    /// It is left to a cursor.
    RowByRow,
    /// It is a span, whose segments are read one by one.
    BySegment,
}

/// Gives the rows of a part of a view in blocks; of one thread.
#[derive(Debug)]
pub struct Blocks {
    sight: Sight,
    pieces: Pieces,
    /// Where the own writes are that the pieces know nothing of.
    own: Option<(Arc<Writes>, OwnCursor)>,
    reader: RowReader,
    columns: ColumnReader,
    /// Over pieces that have to be merged.
    cursor: Option<ViewCursor>,
    /// Of the segment after those pieces.
    waiting: Option<Block>,
    end: Option<Vec<u8>>,
    rows_skipped: u64,
    /// Else chunks are left to the cursor.
    takes_chunks: bool,
    large: LargeReader,
    late: Option<Late>,
}

impl View<'_> {
    /// The rows in [`begin`, `end`), or from the first and to the last of all, in blocks; `layouts` are those of the
    /// view's dictionary.
    ///
    /// # Errors
    /// Those of reading files; a want of a column or of bytes that there are not.
    pub fn blocks(
        &self,
        layouts: &Layouts,
        wants: &[Want],
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<Blocks> {
        let columns = layouts.current().columns.len();
        let is_there = |want: &Want| match want {
            Want::Stored(position) | Want::Length(position) => *position < columns,
            Want::Key { size, .. } => *size > 0,
            Want::KeyPart(_) | Want::WholeKey => true,
        };
        if !wants.iter().all(is_there) {
            let what = format!("a block of {wants:?} of {columns} columns");
            return Err(EngineError::Unsupported { what }.into());
        }
        let sight = self.sight.clone();
        let own = sight.writes.clone().map(|writes| {
            let cursor = OwnCursor::new(&writes, sight.dict.id);
            (writes, cursor)
        });
        let mut blocks = Blocks {
            pieces: sight.dict.tree.pieces(sight.seqno, begin.unwrap_or(b""), end),
            own,
            reader: RowReader::new(layouts, &wants.iter().map(Want::as_read).collect::<Vec<_>>()),
            columns: ColumnReader::new(layouts, wants, sight.large.is_some()),
            large: LargeReader::new(sight.large.clone(), layouts, wants),
            sight,
            cursor: None,
            waiting: None,
            end: end.map(<[u8]>::to_vec),
            rows_skipped: 0,
            takes_chunks: true,
            late: None,
        };
        blocks.place_own(begin.unwrap_or(b""))?;
        Ok(blocks)
    }
}

impl Blocks {
    /// The next rows; `None` after the last.
    ///
    /// # Errors
    /// Those of reading files, and a row that is none of the table's layouts; the blocks are of no use then.
    #[expect(clippy::should_implement_trait, reason = "a step that may fail")]
    pub fn next(&mut self) -> Result<Option<Block>> {
        self.next_where(&|_| Verdict::Some)
    }

    /// Gives the rows of some segments that follow each other as one block from now on: for who goes over many.
    pub fn by_spans(&mut self) {
        self.pieces.by_spans();
    }

    /// As `next`, but without the rows of segments of which none is wanted.
    ///
    /// # Errors
    /// As `next`.
    pub fn next_where(&mut self, judge: &dyn Fn(&Zones<'_>) -> Verdict) -> Result<Option<Block>> {
        if let Some(block) = self.large.next()? {
            return Ok(Some(block));
        }
        loop {
            if let Some(block) = self.merged()? {
                return self.large.give(block).map(Some);
            }
            if let Some(block) = self.waiting.take() {
                return self.large.give(block).map(Some);
            }
            if !self.advance(&mut |blocks, rows| blocks.columns_of(rows, judge))? {
                return Ok(None);
            }
        }
    }

    /// Has the wants that are late read by [`complete`](Blocks::complete). A segment of which the other wants have values that lie apart is
    /// read whole.
    pub fn read_late(&mut self, layouts: &Layouts, wants: &[Want], is_late: &[bool]) {
        let is_of_use = is_late.contains(&true) && is_late.contains(&false);
        self.late = is_of_use.then(|| Late::new(layouts, wants, is_late, self.sight.large.is_some()));
    }

    /// Reads what is still missing of the block that was given last, of these rows (ascending; `None`: all), and says of how many of them; of
    /// others, whose values lie apart, another call reads it. `None`: it cannot be read by columns.
    ///
    /// # Errors
    /// Those of reading files.
    pub fn complete(&mut self, block: &mut Block, rows: Option<&[u32]>) -> Result<Option<usize>> {
        let count = rows.map_or(block.rows, <[u32]>::len);
        let Some(late) = self.late.as_ref().filter(|_| !block.is_complete) else { return Ok(Some(count)) };
        let Some(vectors) = late.read(block.rows, rows, &mut self.pieces)? else { return Ok(None) };
        late.place(vectors, &mut block.vectors);
        block.is_complete = true;
        match self.large.has_any(&block.vectors) {
            true => self.large.put_in_place(block, rows).map(Some),
            false => Ok(Some(count)),
        }
    }

    /// How many rows were in the segments that were passed over so far.
    pub fn rows_skipped(&self) -> u64 {
        self.rows_skipped
    }

    /// Rows of the pieces that have to be merged, if there are any left.
    fn merged(&mut self) -> Result<Option<Block>> {
        let Some(cursor) = &mut self.cursor else { return Ok(None) };
        let (reader, mut rows, mut damaged) = (&mut self.reader, 0, None);
        let goes_on = cursor.visit(|key, row| {
            if reader.read(key, row).is_none() {
                damaged = Some(format!("{key:02x?}"));
                return false;
            }
            rows += 1;
            rows < BLOCK_ROWS
        })?;
        if let Some(key) = damaged {
            return Err(self.no_row(key));
        }
        if !goes_on {
            self.cursor = None;
        }
        let vectors = self.reader.take();
        let vectors = self.columns.parts(vectors).ok_or_else(|| self.no_row(KEY_WITHOUT_PART.into()))?;
        Ok((rows > 0).then_some(Block { rows, vectors, is_all_wanted: false, is_complete: true }))
    }

    /// Columns of the piece given last, which is a chunk.
    fn chunk(&mut self) -> Result<Read> {
        let Some(chunk) = self.pieces.chunk() else { return Ok(Read::RowByRow) };
        let (layouts, picks) = self.columns.wanted();
        let version = layouts.current().version;
        let (rows, vectors) = match chunk.columns(version, picks) {
            Some(known) => known,
            None => {
                let (reader, mut rows, mut damaged) = (&mut self.reader, 0, None);
                chunk.read(|key, row| {
                    let is_row = reader.read(key, row).is_some();
                    rows += usize::from(is_row);
                    if !is_row {
                        damaged = Some(format!("{key:02x?}"));
                    }
                    is_row
                });
                if let Some(key) = damaged {
                    return Err(self.no_row(key));
                }
                let vectors: Vec<_> = reader.take().iter().map(narrowed).collect();
                chunk.keep(version, picks, &vectors);
                (rows, vectors)
            }
        };
        if rows == 0 {
            return Ok(Read::Skipped);
        }
        let vectors = self.columns.parts(vectors).ok_or_else(|| self.no_row(KEY_WITHOUT_PART.into()))?;
        self.waiting = Some(Block { rows, vectors, is_all_wanted: false, is_complete: true });
        Ok(Read::Ready)
    }

    fn no_row(&self, key: String) -> Error {
        let path = self.sight.dict.file.path();
        EngineError::corruption(&path, 0, "row", "columns of a layout", key).into()
    }

    /// Goes on to the next segment whose columns can be read; what lies before it is left to a cursor. Says whether
    /// there is anything of both.
    fn advance(&mut self, read: &mut dyn FnMut(&mut Blocks, usize) -> Result<Read>) -> Result<bool> {
        let mut begin: Option<Vec<u8>> = None;
        while let Some(mut piece) = self.pieces.next()? {
            let mut outcome = self.of_piece(&piece, read)?;
            if matches!(outcome, Read::BySegment) {
                piece = self.pieces.first_of_span().unwrap_or(piece);
                outcome = self.of_piece(&piece, read)?;
            }
            if matches!(outcome, Read::RowByRow) {
                begin.get_or_insert(piece.begin);
                continue;
            }
            if let Some(begin) = begin.take() {
                self.cursor = Some(self.between(&begin, Some(&piece.begin))?);
            }
            if matches!(outcome, Read::Ready) || self.cursor.is_some() {
                return Ok(true);
            }
        }
        let Some(begin) = begin else { return Ok(false) };
        self.cursor = Some(self.between(&begin, self.end.as_deref())?);
        Ok(true)
    }

    /// Reads the piece given last.
    fn of_piece(
        &mut self,
        piece: &Piece,
        read: &mut dyn FnMut(&mut Blocks, usize) -> Result<Read>,
    ) -> Result<Read> {
        match piece.plain_rows {
            Some(_) if self.has_own(piece)? => {
                Ok(if piece.segments > 1 { Read::BySegment } else { Read::RowByRow })
            }
            Some(0) => Ok(Read::Skipped),
            Some(rows) => read(self, rows),
            None if piece.is_chunk && self.takes_chunks && !self.has_own(piece)? => self.chunk(),
            None => Ok(Read::RowByRow),
        }
    }

    fn between(&self, begin: &[u8], end: Option<&[u8]>) -> Result<ViewCursor> {
        self.sight.cursor(Some(begin), end, self.own.as_ref().map(|(_, own)| own))
    }

    /// Reads the columns of the piece given last, which has so many rows.
    fn columns_of(&mut self, rows: usize, judge: &dyn Fn(&Zones<'_>) -> Verdict) -> Result<Read> {
        let Some(verdict) = self.verdict(rows, judge) else { return Ok(Read::BySegment) };
        if verdict == Verdict::None {
            self.pieces.skip();
            self.rows_skipped += rows as u64;
            return Ok(Read::Skipped);
        }
        let is_all_wanted = verdict == Verdict::All;
        let late = self.late.as_ref();
        let reader = late.map_or(&self.columns, |late| &late.early);
        let (layouts, picks) = reader.wanted();
        let columns = self.pieces.columns(layouts, picks, None)?;
        let Some(vectors) = columns.and_then(|columns| reader.vectors(rows, columns)) else {
            return Ok(if self.pieces.segments() > 1 { Read::BySegment } else { Read::RowByRow });
        };
        let mut block = Block { rows, vectors, is_all_wanted, is_complete: true };
        if let Some(late) = late {
            block.vectors = late.placed(block.vectors);
            block.is_complete = false;
            if self.large.has_any(&block.vectors) {
                // It is given in parts, with all that is wanted.
                let Some(vectors) = late.read(rows, None, &mut self.pieces)? else {
                    return Ok(Read::RowByRow);
                };
                late.place(vectors, &mut block.vectors);
                block.is_complete = true;
            }
        }
        self.waiting = Some(block);
        Ok(Read::Ready)
    }

    /// How many of the rows of the piece given last are wanted. `None`: of a span, so many segments are passed over that each is judged alone.
    fn verdict(&self, rows: usize, judge: &dyn Fn(&Zones<'_>) -> Verdict) -> Option<Verdict> {
        let of_segment = |nth| judge(&self.columns.zones(&self.pieces, nth));
        if self.pieces.segments() == 1 {
            return Some(of_segment(0));
        }
        let (mut wanted, mut verdict) = (0, Verdict::All);
        for nth in 0..self.pieces.segments() {
            match of_segment(nth) {
                Verdict::All => wanted += self.pieces.rows(nth),
                Verdict::Some => (wanted, verdict) = (wanted + self.pieces.rows(nth), Verdict::Some),
                Verdict::None => verdict = Verdict::Some,
            }
        }
        match wanted {
            0 => Some(Verdict::None),
            _ => (rows - wanted <= rows / SPAN_ROWS_OF_ONE_UNWANTED).then_some(verdict),
        }
    }

    /// Whether there are own writes in the piece, which comes after those asked for before.
    fn has_own(&mut self, piece: &Piece) -> Result<bool> {
        let is_before = |own: &OwnCursor| own.entry().is_some_and(|(key, _)| *key < piece.begin);
        if self.own.as_ref().is_some_and(|(_, own)| is_before(own)) {
            self.place_own(&piece.begin)?;
        }
        let entry = self.own.as_ref().and_then(|(_, own)| own.entry());
        Ok(entry.is_some_and(|(key, _)| piece.end.as_ref().is_none_or(|end| key < end)))
    }

    fn place_own(&mut self, key: &[u8]) -> Result<()> {
        if let Some((writes, own)) = &mut self.own {
            own.seek_forward(writes, Bound::Included(key))?;
        }
        Ok(())
    }
}
