//! A cursor over the records of a run, all versions, in both directions.

use std::sync::Arc;

use pando_base::{RecordRef, Result};
use pando_column::Segment;

use crate::index::Index;
use crate::read_ahead::{Direction, ReadAhead};
use crate::run::Run;

/// A position in a run: on a record, or nowhere. It holds the run and the segment it is in, so neither
/// a merge nor an eviction disturbs it. After an error it is nowhere.
#[derive(Debug)]
pub struct RunCursor {
    run: Arc<Run>,
    index: Option<Arc<Index>>,
    /// The segment it is in; `None` if it is nowhere.
    segment: Option<Arc<Segment>>,
    number: usize,
    row: usize,
    /// Rows of the segment, or fewer where the upper bound cuts it.
    end_row: usize,
    read_ahead: ReadAhead,
    /// Records from this key on do not exist for it.
    upper: Option<Vec<u8>>,
}

impl RunCursor {
    pub(crate) fn new(run: Arc<Run>) -> RunCursor {
        RunCursor {
            run,
            index: None,
            segment: None,
            number: 0,
            row: 0,
            end_row: 0,
            read_ahead: ReadAhead::new(),
            upper: None,
        }
    }

    /// For merges: reads in large requests from the start and without filling the cache, but uses
    /// what is in it.
    pub fn bypass_cache(mut self) -> RunCursor {
        self.read_ahead.bypass_cache();
        self
    }

    /// From now on ends before `upper`; only for going forward.
    pub(crate) fn clip(&mut self, upper: Option<Vec<u8>>) -> Result<()> {
        if let Some(key) = &upper {
            let end = self.index()?.segments_below(key);
            self.read_ahead.limit(end);
        }
        self.upper = upper;
        self.leave();
        Ok(())
    }

    /// Whether it is on a record.
    #[inline]
    pub fn valid(&self) -> bool {
        self.segment.is_some()
    }

    /// The record it is on. Panics if it is nowhere.
    #[inline]
    pub fn record(&self) -> RecordRef<'_> {
        match &self.segment {
            Some(segment) => segment.record(self.row),
            None => panic!("the cursor is on no record"),
        }
    }

    /// The key it is on. Panics if it is nowhere.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match &self.segment {
            Some(segment) => segment.key(self.row),
            None => panic!("the cursor is on no record"),
        }
    }

    /// No key of the run is larger.
    pub(crate) fn largest_key(&self) -> &[u8] {
        &self.run.meta().max_key
    }

    /// The record it is on and those after it in its segment. Panics if it is nowhere.
    #[inline]
    pub fn ahead(&self) -> impl Iterator<Item = RecordRef<'_>> {
        match &self.segment {
            Some(segment) => (self.row..self.end_row).map(|row| segment.record(row)),
            None => panic!("the cursor is on no record"),
        }
    }

    /// Goes on by `records`, fewer than are [`RunCursor::ahead`].
    #[inline]
    pub fn skip(&mut self, records: usize) {
        assert!(records < self.end_row - self.row, "skipping beyond the segment");
        self.row += records;
    }

    /// Goes to the first record with `key` or a greater one.
    ///
    /// # Errors
    /// Those of reading blocks, here and below.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        let index = self.index()?;
        self.load(&index, index.segment_for(key), Direction::Unknown)?;
        let row = self.segment.as_ref().map_or(0, |segment| segment.lower_bound(key));
        self.place_forward(&index, row)
    }

    /// Goes to the last record with a key below `key`.
    ///
    /// # Errors
    /// As `seek`.
    pub fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        let index = self.index()?;
        let Some(number) = index.segments_below(key).checked_sub(1) else {
            self.leave();
            return Ok(());
        };
        self.load(&index, number, Direction::Unknown)?;
        let below = self.segment.as_ref().map_or(0, |segment| segment.lower_bound(key));
        assert!(below > 0, "the first key of segment {number} is not below the key");
        self.row = below - 1;
        Ok(())
    }

    /// Goes to the first record.
    ///
    /// # Errors
    /// As `seek`.
    pub fn seek_first(&mut self) -> Result<()> {
        let index = self.index()?;
        self.load(&index, 0, Direction::Unknown)?;
        self.place_forward(&index, 0)
    }

    /// Goes to the last record.
    ///
    /// # Errors
    /// As `seek`.
    pub fn seek_last(&mut self) -> Result<()> {
        let index = self.index()?;
        self.load(&index, index.len() - 1, Direction::Unknown)?;
        self.row = self.end_row - 1;
        Ok(())
    }

    /// Goes to the next record; nowhere after the last. Panics if it is nowhere.
    ///
    /// # Errors
    /// As `seek`.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a cursor step, which may fail and gives no item")]
    pub fn next(&mut self) -> Result<()> {
        let row = self.row + 1;
        if row < self.end_row {
            self.row = row;
            return Ok(());
        }
        self.next_segment()
    }

    /// Goes to the record before; nowhere before the first. Panics if it is nowhere.
    ///
    /// # Errors
    /// As `seek`.
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        if self.row > 0 {
            self.row -= 1;
            return Ok(());
        }
        self.previous_segment()
    }

    fn next_segment(&mut self) -> Result<()> {
        assert!(self.valid(), "next on a cursor that is on no record");
        let index = self.index()?;
        self.place_forward(&index, self.end_row)
    }

    fn previous_segment(&mut self) -> Result<()> {
        assert!(self.valid(), "prev on a cursor that is on no record");
        let index = self.index()?;
        let Some(number) = self.number.checked_sub(1) else {
            self.leave();
            return Ok(());
        };
        self.load(&index, number, Direction::Backward)?;
        self.row = self.end_row - 1;
        Ok(())
    }

    /// Goes to `row`, or if that is past the end of the segment, to the start of the next one.
    fn place_forward(&mut self, index: &Index, row: usize) -> Result<()> {
        if row < self.end_row {
            self.row = row;
            return Ok(());
        }
        let cut = self.segment.as_ref().is_none_or(|segment| self.end_row < segment.rows());
        if cut || self.number + 1 >= index.len() {
            self.leave();
            return Ok(());
        }
        self.load(index, self.number + 1, Direction::Forward)?;
        self.row = 0;
        if self.end_row == 0 {
            self.leave();
        }
        Ok(())
    }

    /// Goes nowhere. Without rows, `next` and `prev` find out by their usual checks.
    fn leave(&mut self) {
        self.segment = None;
        self.end_row = 0;
        self.row = 0;
    }

    /// Makes segment `number` the current one.
    fn load(&mut self, index: &Index, number: usize, direction: Direction) -> Result<()> {
        if self.segment.is_none() || self.number != number {
            self.leave();
            let segment = self.read_ahead.segment(&self.run, index, number, direction)?;
            self.end_row = match &self.upper {
                Some(upper) if number + 1 >= index.len() || index.first_key(number + 1) >= &upper[..] => {
                    segment.lower_bound(upper)
                }
                _ => segment.rows(),
            };
            self.number = number;
            self.segment = Some(segment);
        }
        Ok(())
    }

    fn index(&mut self) -> Result<Arc<Index>> {
        if let Some(index) = &self.index {
            return Ok(index.clone());
        }
        Ok(self.index.insert(self.run.index()?).clone())
    }
}
