//! What is asked of rows.

use std::sync::Arc;

use pando_column::KeyPath;

/// What a block has of each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// The column at this position of the current layout, in its stored form.
    Stored(usize),
    /// How many bytes the value of the column at this position has, as a little-endian integer of 64 bits, or NULL: known without the
    /// value, which may lie apart. Of a column whose values are of different lengths.
    Length(usize),
    /// These bytes of the row's key, as they are.
    Key {
        /// Where they begin.
        offset: usize,
        /// How many; not 0.
        size: usize,
    },
    /// A column that the row's key holds behind texts, or as a text; as the column has it.
    KeyPart(Arc<KeyPath>),
    /// The row's whole key.
    WholeKey,
}

impl Want {
    /// What is read for it: a part is then taken from the whole key, so that what is kept in memory is of use to all wants.
    pub(super) fn as_read(&self) -> Want {
        match self {
            Want::KeyPart(_) => Want::WholeKey,
            Want::Length(position) => Want::Stored(*position),
            want => want.clone(),
        }
    }
}
