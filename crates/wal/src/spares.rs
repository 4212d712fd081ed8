//! Spare log files: with their disk space taken, so that a full disk is found before a commit gets
//! its seqno and never by a write of the log (I8).

use std::path::PathBuf;
use std::sync::Arc;

use pando_base::limits::PAGE_BYTES;
use pando_base::locks::Mutex;
use pando_base::{Error, Result};
use pando_storage::vfs::{File, OpenMode, Vfs};

use crate::files;

/// Spares kept beside the current file.
pub(crate) const SPARES_KEPT_MAX: usize = 2;

/// Smallest log file: a few frames.
pub(crate) const FILE_BYTES_MIN: u64 = 16 << 10;

const ZEROS_BYTES: usize = 1 << 20;

/// A file ready to become a log file.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    /// Disk space that it has.
    bytes: u64,
}

/// The ready spares. How many of them are free to be planned for is counted by the appender.
#[derive(Debug)]
pub(crate) struct Spares {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    file_bytes: u64,
    ready: Mutex<Vec<Spare>>,
    next_name: Mutex<u64>,
}

impl Spares {
    /// Takes over the spares of an earlier life; more than are kept, or than the disk has room for,
    /// are removed.
    pub(crate) fn open(vfs: Arc<dyn Vfs>, dir: PathBuf, file_bytes: u64) -> Result<Spares> {
        let found = files::spare_files(&*vfs, &dir)?;
        let next_name = found.last().map_or(1, |(number, _)| number + 1);
        let (ready, next_name) = (Mutex::default(), Mutex::new(next_name));
        let spares = Spares { vfs, dir, file_bytes, ready, next_name };
        for (_, path) in found {
            if spares.len() < SPARES_KEPT_MAX {
                spares.take_over(path)?;
            } else {
                spares.vfs.remove_file(&path)?;
            }
        }
        Ok(spares)
    }

    /// How many are ready.
    pub(crate) fn len(&self) -> usize {
        self.ready.lock().len()
    }

    /// A name no spare has.
    pub(crate) fn new_path(&self) -> PathBuf {
        let mut next = self.next_name.lock();
        *next += 1;
        files::spare_path(&self.dir, *next - 1)
    }

    /// Makes a new one.
    pub(crate) fn create(&self) -> Result<()> {
        let path = self.new_path();
        let file = self.vfs.open(&path, OpenMode::Create)?;
        self.reserve(path, file, self.file_bytes)
    }

    /// Makes one to start the log with, unless one is ready, and says how long it is: on a disk without room
    /// for a whole one half as long, or a quarter, and so on. So a database opens on a nearly full disk.
    pub(crate) fn first_bytes(&self) -> Result<u64> {
        let mut bytes = self.file_bytes;
        loop {
            if let Some(spare) = self.ready.lock().last() {
                return Ok(spare.bytes);
            }
            let path = self.new_path();
            let file = self.vfs.open(&path, OpenMode::Create)?;
            match self.reserve(path, file, bytes) {
                Err(Error::DiskFull { .. }) if bytes / 2 >= FILE_BYTES_MIN => {
                    bytes = (bytes / 2).next_multiple_of(PAGE_BYTES);
                }
                made => made?,
            }
        }
    }

    /// Makes one of a file under a spare's name. `false` if the disk is too full for it: then it was
    /// removed.
    pub(crate) fn take_over(&self, path: PathBuf) -> Result<bool> {
        let file = self.vfs.open(&path, OpenMode::Existing)?;
        match self.reserve(path, file, self.file_bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.is_transient() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes the disk space; gives all of it back if there is not enough.
    fn reserve(&self, path: PathBuf, file: Arc<dyn File>, bytes: u64) -> Result<()> {
        let reserved = Self::take_space(&*file, bytes);
        if reserved.is_err() {
            // The error to tell is the first one; a spare left behind is found by the next open.
            let _ = self.vfs.remove_file(&path);
            return reserved;
        }
        self.ready.lock().push(Spare { path, file, bytes });
        Ok(())
    }

    fn take_space(file: &dyn File, bytes: u64) -> Result<()> {
        if file.len()? > bytes {
            file.set_len(bytes)?;
        }
        file.reserve(0, bytes)?;
        if file.allocated_bytes()? >= bytes {
            return Ok(());
        }
        // The file system cannot reserve: write the whole file.
        let zeros = vec![0; ZEROS_BYTES.min(bytes as usize)];
        let mut offset = 0;
        while offset < bytes {
            let n = (bytes - offset).min(zeros.len() as u64);
            file.write_at(&zeros[..n as usize], offset)?;
            offset += n;
        }
        file.sync()
    }

    /// Takes one that was planned for.
    pub(crate) fn take(&self) -> Option<Spare> {
        self.ready.lock().pop()
    }

    /// Removes one that nobody planned for.
    pub(crate) fn discard(&self) -> Result<()> {
        match self.take() {
            Some(spare) => self.vfs.remove_file(&spare.path),
            None => Ok(()),
        }
    }
}
