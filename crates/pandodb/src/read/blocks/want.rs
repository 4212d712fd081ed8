//! What is asked of rows.

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
    /// The row's whole key.
    WholeKey,
}
