//! A file that is not there, or that nobody may read: what stands in its place.

use std::path::{Path, PathBuf};

use pando_base::{Error, Result};

use super::File;

/// Reads and writes are errors that name the file; what asks for its size is told that it has none.
#[derive(Debug)]
pub(crate) struct LostFile {
    path: PathBuf,
}

impl LostFile {
    pub(crate) fn new(path: &Path) -> LostFile {
        LostFile { path: path.to_owned() }
    }

    fn lost<T>(&self, offset: u64) -> Result<T> {
        Err(Error::corruption(&self.path, offset, "file", "one that can be used", "a damaged or missing one"))
    }
}

impl File for LostFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, _: &mut [u8], offset: u64) -> Result<usize> {
        self.lost(offset)
    }

    fn write_at(&self, _: &[u8], offset: u64) -> Result<()> {
        self.lost(offset)
    }

    fn sync(&self) -> Result<()> {
        self.lost(0)
    }

    fn len(&self) -> Result<u64> {
        Ok(0)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.lost(len)
    }

    fn reserve(&self, offset: u64, _: u64) -> Result<()> {
        self.lost(offset)
    }

    fn punch_hole(&self, offset: u64, _: u64) -> Result<()> {
        self.lost(offset)
    }

    fn allocated_bytes(&self) -> Result<u64> {
        Ok(0)
    }
}
