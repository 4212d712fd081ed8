//! Columns that are read of a segment only if rows of it are wanted: those that no condition looks at.
//!
//! Whoever has conditions says which wants are late. A block of a segment then has the others; if rows of it are left, the rest is read,
//! before the next block, and of values that lie apart only those of these rows. What is merged, and what memtables have, is whole at once.

use std::sync::Arc;

use pando_column::layout::Layouts;
use pando_column::vector::Vector;
use pando_tree::Pieces;

use super::columns::ColumnReader;
use super::want::Want;
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
    pub(super) fn new(layouts: &Layouts, wants: &[Want], is_late: &[bool], has_references: bool) -> Late {
        let (rest_at, early_at): (Vec<usize>, Vec<usize>) = (0..wants.len()).partition(|at| is_late[*at]);
        let of = |at: &[usize]| {
            let wants: Vec<Want> = at.iter().map(|at| wants[*at].clone()).collect();
            ColumnReader::new(layouts, &wants, has_references)
        };
        let (early, rest) = (of(&early_at), of(&rest_at));
        Late { early, early_at, rest, rest_at, nothing: Arc::new(Vector::all_null(0)) }
    }

    /// The late vectors of the segments that the pieces gave last, which have so many rows, of which these are looked at (`None`: all).
    /// `None`: they cannot be read by columns.
    pub(super) fn read(
        &self,
        count: usize,
        rows: Option<&[u32]>,
        pieces: &mut Pieces,
    ) -> Result<Option<Vec<Arc<Vector>>>> {
        let (layouts, picks) = self.rest.wanted();
        let columns = pieces.columns(layouts, picks, rows)?;
        Ok(columns.and_then(|columns| self.rest.vectors(count, columns)))
    }

    /// The vectors that were read, each at its place.
    pub(super) fn placed(&self, vectors: Vec<Arc<Vector>>) -> Vec<Arc<Vector>> {
        let mut all = vec![self.nothing.clone(); self.early_at.len() + self.rest_at.len()];
        self.early_at.iter().zip(vectors).for_each(|(at, vector)| all[*at] = vector);
        all
    }

    /// Puts what was read later where it belongs.
    pub(super) fn place(&self, rest: Vec<Arc<Vector>>, vectors: &mut [Arc<Vector>]) {
        self.rest_at.iter().zip(rest).for_each(|(at, vector)| vectors[*at] = vector);
    }
}
