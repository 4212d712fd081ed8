//! What the cache holds, in names that outlive the process, and how it comes back after a start.
//!
//! Only what a file has is named: columns of memtables' rows, and private runs, go with the process. Indexes of runs come back with the
//! first block of theirs.

use std::sync::Arc;

use pando_base::Result;
use pando_column::layout::Layouts;
use pando_column::Pick;

use crate::cache::{Block, BlockCache, Part};
use crate::columns::{part_of, pick_of, span_pick_of, RunColumns};
use crate::index::Index;
use crate::loose_columns::LOOSE;
use crate::read_ahead::ReadAhead;
use crate::run::{Run, PRIVATE};

/// Parts of the room that are left free: what is used meanwhile stays.
const FREE_PARTS: u64 = 16;

/// What is kept of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CachedForm {
    /// A page of a filter.
    Filter,
    /// A segment as it is stored.
    Packed,
    /// A segment, decoded.
    Segment,
    /// A column of a segment, or of the span that begins with it, by its number in names of blocks.
    Column(u64),
}

/// A block of a run that the cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CachedBlock {
    /// The run, unique in its file.
    pub run: u64,
    /// Where the block is in the file.
    pub offset: u64,
    /// What is kept of it.
    pub form: CachedForm,
}

impl BlockCache {
    /// What is in the cache now, and in which open file (`TreeFile::instance`); in no order.
    pub fn contents(&self) -> Vec<(u64, CachedBlock)> {
        let mut found = Vec::new();
        for (key, block) in self.blocks() {
            let form = match block {
                Block::Filter(_) => CachedForm::Filter,
                Block::Packed(_) => CachedForm::Packed,
                Block::Segment(_) => CachedForm::Segment,
                Block::Column(Part::Values { .. }) => CachedForm::Column(key.part),
                Block::Column(Part::Rows) | Block::Index(_) | Block::Common(_) => continue,
            };
            if key.run & (PRIVATE | LOOSE) == 0 {
                found.push((key.instance, CachedBlock { run: key.run, offset: key.offset, form }));
            }
        }
        found
    }

    /// Whether there is room for what nobody has asked for.
    pub fn has_room(&self) -> bool {
        let limit = self.limit();
        self.bytes() < limit - limit / FREE_PARTS
    }
}

impl Run {
    /// Brings these blocks into the cache, which are of this run and in order. What the run does not have, or cannot be read as these
    /// layouts, is passed over. `go_on` is asked before each block. Returns how many there are now.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub fn warm(
        self: &Arc<Run>,
        blocks: &[CachedBlock],
        layouts: Option<&Layouts>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<u64> {
        let index = self.index()?;
        let mut by_offset: Vec<(u64, usize)> =
            index.entries().iter().enumerate().map(|(number, entry)| (entry.place.offset, number)).collect();
        by_offset.sort_unstable();
        let mut warming = Warming {
            run: self,
            columns: RunColumns::new(self)?,
            index,
            read_ahead: ReadAhead::new(),
            layouts,
            done: 0,
        };
        for of_one in blocks.chunk_by(|a, b| a.offset == b.offset) {
            let Some(first) = of_one.first().filter(|_| go_on()) else { break };
            if first.form == CachedForm::Filter {
                warming.filter(first.offset)?;
            } else if let Ok(at) = by_offset.binary_search_by_key(&first.offset, |(offset, _)| *offset) {
                if let Some((_, number)) = by_offset.get(at) {
                    warming.segment(*number, of_one)?;
                }
            }
        }
        Ok(warming.done)
    }
}

struct Warming<'a> {
    run: &'a Arc<Run>,
    columns: RunColumns,
    index: Arc<Index>,
    read_ahead: ReadAhead,
    layouts: Option<&'a Layouts>,
    done: u64,
}

impl Warming<'_> {
    fn filter(&mut self, offset: u64) -> Result<()> {
        if let Some(place) = self.index.filters().iter().find(|place| place.offset == offset) {
            self.run.filter_page(*place)?;
            self.done += 1;
        }
        Ok(())
    }

    fn segment(&mut self, number: usize, forms: &[CachedBlock]) -> Result<()> {
        let (mut picks, mut of_span) = (Vec::<Pick>::new(), Vec::<Pick>::new());
        for block in forms {
            match block.form {
                CachedForm::Packed | CachedForm::Segment => self.rows(number, block.form)?,
                CachedForm::Column(part) => {
                    picks.extend(pick_of(part).filter(|pick| part_of(pick) == part));
                    of_span.extend(span_pick_of(part));
                }
                CachedForm::Filter => {}
            }
        }
        let Some(layouts) = self.layouts else { return Ok(()) };
        if !picks.is_empty() && self.columns.columns(number, layouts, &picks)?.is_some() {
            self.done += picks.len() as u64;
        }
        let span = self.columns.span_at(number);
        if !of_span.is_empty() && self.columns.span_columns(span, layouts, &of_span, None)?.is_some() {
            self.done += of_span.len() as u64;
        }
        Ok(())
    }

    /// Requires: no form that cannot be a segment's.
    fn rows(&mut self, number: usize, form: CachedForm) -> Result<()> {
        let (run, index) = (self.run, &self.index);
        let key = run.key_of(index.entry(number).place);
        let cache = &run.context().cache;
        if cache.peek(&key).is_none() {
            let bytes = self.read_ahead.block(run, index, number)?;
            let block = run.block_in_form(index, number, bytes, form == CachedForm::Packed)?;
            cache.insert(key, block);
        }
        self.done += 1;
        Ok(())
    }
}
