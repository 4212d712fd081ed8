//! Entries of rows, and how long they may be.

use pando_base::limits;

use crate::error::{Error, Result};

/// What one row is in one dictionary.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// No other row may have this key: it is locked and looked up first.
    pub unique: bool,
}

/// Refuses what no dictionary takes.
pub(crate) fn check_lengths(key: &[u8], value: &[u8]) -> Result<()> {
    check_length("key", key.len(), limits::KEY_BYTES_MAX)?;
    check_length("row", value.len(), limits::VALUE_BYTES_MAX)
}

fn check_length(what: &'static str, size: usize, limit: usize) -> Result<()> {
    if size > limit {
        return Err(Error::Engine(pando_base::Error::TooLong {
            what,
            size: size as u64,
            limit: limit as u64,
        }));
    }
    Ok(())
}
