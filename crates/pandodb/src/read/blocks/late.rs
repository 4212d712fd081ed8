//! Columns that are read of a segment only if rows of it are wanted: those that no condition looks at.
//!
//! Whoever has conditions says which wants are late. A block of a segment then has the others; if rows of it are left, the rest is read,
//! before the next block. What is merged, and what memtables have, is whole at once.

use std::sync::Arc;

use pando_column::layout::Layouts;
use pando_column::vector::Vector;

use super::columns::ColumnReader;
use super::want::Want;
use super::{Block, Blocks};
use crate::error::Result;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) early: ColumnReader,
    early_at: Vec<usize>,
    rest: ColumnReader,
    rest_at: Vec<usize>,
    /// Stands for what has not been read.
    nothing: Arc<Vector>,
}

impl Late {
    fn new(layouts: &Layouts, wants: &[Want], is_late: &[bool]) -> Late {
        let (rest_at, early_at): (Vec<usize>, Vec<usize>) = (0..wants.len()).partition(|at| is_late[*at]);
        let of = |at: &[usize]| {
            let wants: Vec<Want> = at.iter().map(|at| wants[*at].clone()).collect();
            ColumnReader::new(layouts, &wants, false)
        };
        let (early, rest) = (of(&early_at), of(&rest_at));
        Late { early, early_at, rest, rest_at, nothing: Arc::new(Vector::all_null(0)) }
    }

    /// The vectors that were read, each at its place.
    pub(super) fn placed(&self, vectors: Vec<Arc<Vector>>) -> Vec<Arc<Vector>> {
        let mut all = vec![self.nothing.clone(); self.early_at.len() + self.rest_at.len()];
        self.early_at.iter().zip(vectors).for_each(|(at, vector)| all[*at] = vector);
        all
    }
}

impl Blocks {
    /// Has the wants that are late read by [`complete`](Blocks::complete). Values that lie apart are never late.
    pub fn read_late(&mut self, layouts: &Layouts, wants: &[Want], is_late: &[bool]) {
        let is_of_use = self.large.is_idle() && is_late.contains(&true) && is_late.contains(&false);
        self.late = is_of_use.then(|| Late::new(layouts, wants, is_late));
    }

    /// Reads what is still missing of the block that was given last. False: it cannot be read by columns.
    ///
    /// # Errors
    /// Those of reading files.
    pub fn complete(&mut self, block: &mut Block) -> Result<bool> {
        let Some(late) = self.late.as_ref().filter(|_| !block.is_complete) else { return Ok(true) };
        let (layouts, picks) = late.rest.wanted();
        let Some(columns) = self.pieces.columns(layouts, picks)? else { return Ok(false) };
        let Some(vectors) = late.rest.vectors(block.rows, columns) else { return Ok(false) };
        late.rest_at.iter().zip(vectors).for_each(|(at, vector)| block.vectors[*at] = vector);
        block.is_complete = true;
        Ok(true)
    }
}
