//! Blocks: the rows of a view as whole columns of values, of the columns that are asked for only.
//!
//! Who computes on many rows takes [`Blocks`] of a part of a [`View`] instead of a cursor. What a block has of its rows is in
//! [`Vector`]s, whose values are as the table's **current** layout stores them, whichever layout the rows were written
//! in. The rows are those that a cursor of the same view gives, in its order.

mod gather;
mod rows;

use std::sync::Arc;

use pando_base::Error as EngineError;
use pando_column::layout::Layouts;
use pando_column::vector::Vector;

use crate::error::Result;
use crate::scan::{View, ViewCursor};

use rows::RowReader;

/// Rows of a block that is put together from rows.
const BLOCK_ROWS: usize = 1024;

/// What a block has of each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The column at this position of the current layout, in its stored form.
    Stored(usize),
    /// These bytes of the row's key, as they are.
    Key {
        /// Where they begin.
        offset: usize,
        /// How many; not 0.
        size: usize,
    },
}

/// Some rows, as columns.
#[derive(Clone, Debug)]
pub struct Block {
    /// How many rows; some.
    pub rows: usize,
    /// For each want one, of so many rows.
    pub vectors: Vec<Arc<Vector>>,
}

/// Gives the rows of a part of a view in blocks; of one thread.
#[derive(Debug)]
pub struct Blocks {
    cursor: ViewCursor,
    reader: RowReader,
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
        let is_there = |want: &Want| match *want {
            Want::Stored(position) => position < columns,
            Want::Key { size, .. } => size > 0,
        };
        if !wants.iter().all(is_there) {
            let what = format!("a block of {wants:?} of {columns} columns");
            return Err(EngineError::Unsupported { what }.into());
        }
        Ok(Blocks { cursor: self.cursor(begin, end)?, reader: RowReader::new(layouts, wants) })
    }
}

impl Blocks {
    /// The next rows; `None` after the last.
    ///
    /// # Errors
    /// Those of reading files, and a row that is none of the table's layouts; the blocks are of no use then.
    #[expect(clippy::should_implement_trait, reason = "a step that may fail")]
    pub fn next(&mut self) -> Result<Option<Block>> {
        let mut rows = 0;
        while rows < BLOCK_ROWS {
            let Some((key, row)) = self.cursor.next()? else { break };
            if self.reader.read(key, row).is_none() {
                let key = format!("{key:02x?}");
                let path = self.cursor.path();
                return Err(EngineError::corruption(&path, 0, "row", "columns of a layout", key).into());
            }
            rows += 1;
        }
        Ok((rows > 0).then(|| Block { rows, vectors: self.reader.take() }))
    }
}
