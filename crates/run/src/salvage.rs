//! Segments of a run one by one, for whoever wants what is left of a damaged one.

use std::sync::Arc;

use pando_base::Result;
use pando_column::Segment;

use crate::index::Index;
use crate::run::Run;

/// The segments of a run whose index can be read.
#[derive(Clone, Debug)]
pub struct Pieces {
    run: Arc<Run>,
    index: Arc<Index>,
}

impl Run {
    /// What the run consists of.
    ///
    /// # Errors
    /// Those of reading its index.
    pub fn salvage_pieces(self: &Arc<Self>) -> Result<Pieces> {
        Ok(Pieces { run: self.clone(), index: self.index()? })
    }
}

impl Pieces {
    /// How many segments there are.
    pub fn count(&self) -> usize {
        self.index.len()
    }

    /// The first segment that may have a record with this key or a greater one.
    pub fn first_for(&self, key: &[u8]) -> usize {
        self.index.segment_for(key)
    }

    /// First key of a segment.
    pub fn first_key(&self, number: usize) -> &[u8] {
        self.index.first_key(number)
    }

    /// Whether a segment's first key is also the last one of the segment before.
    pub fn continues(&self, number: usize) -> bool {
        self.index.entry(number).continues()
    }

    /// Where a segment is in the file.
    pub fn offset(&self, number: usize) -> u64 {
        self.index.entry(number).place.offset
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is damaged or cannot be read.
    pub fn read(&self, number: usize) -> Result<Segment> {
        self.run.read_segment(&self.index, number)
    }
}
