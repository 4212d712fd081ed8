//! Reading many rows: cursors, views for many threads, columns.

pub(crate) mod blocks;
pub(crate) mod cursor;
pub(crate) mod large;
pub(crate) mod own_writes;
pub(crate) mod view;
pub(crate) mod whole;
