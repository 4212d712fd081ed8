//! The seam to the operating system: files, directories and time. Everything above reaches them
//! only through [`Vfs`] and [`File`], so that a simulated disk ([`SimVfs`]) can lose power, tear
//! writes, fail the n-th I/O or fill up, reproducibly, where [`RealVfs`] talks to the kernel.
//!
//! What both promise, and no more:
//!
//! - A write is durable after a `sync` of its file that began after the write returned. Before that
//!   any subset of the 512-byte sectors written may be on the disk after a power loss.
//! - Creating, removing and renaming is durable after a `sync_dir` of the directory. Before that
//!   each such operation may or may not have happened after a power loss.
//! - A failed sync leaves all unsynced writes of the file in doubt for ever: a later sync that
//!   succeeds says nothing about them.
//! - A file stays readable through its handle after it was renamed or removed.

mod descriptors;
mod lost;
mod read_only;
mod real;
mod real_file;
mod shadow;
mod sim;

pub(crate) use lost::LostFile;
pub use read_only::ReadOnlyVfs;
pub use real::{open_files_max, RealVfs};
pub use shadow::ShadowVfs;
pub use sim::{stop_before_writes, DiskEvents, FaultKind, SimVfs, WriteStop};

use pando_base::{Error, Result};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// How [`Vfs::open`] treats a file that is, or is not, there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It must exist, otherwise [`Error::NotFound`].
    Existing,
    /// It must not exist, otherwise [`Error::Exists`].
    Create,
    /// Opened if it exists, created empty if not.
    CreateOrOpen,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// Its last path component.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// What files that share a number of descriptors come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorCounts {
    /// Descriptors held now.
    pub open: u64,
    /// How often a file got its descriptors again.
    pub reopened: u64,
}

/// A file system with a clock.
pub trait Vfs: Send + Sync + Debug + 'static {
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>>;
    /// Removes a file; [`Error::NotFound`] if there is none.
    fn remove_file(&self, path: &Path) -> Result<()>;
    /// Renames a file or directory; an existing file at `to` is replaced.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Creates a directory and its missing parents; nothing to do if it exists.
    fn create_dir_all(&self, path: &Path) -> Result<()>;
    /// Removes a directory with all it holds; [`Error::NotFound`] if there is none.
    fn remove_dir_all(&self, path: &Path) -> Result<()>;
    /// Makes the names created, removed and renamed in this directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;
    /// From now on [`Vfs::sync_dir`] of this directory needs nothing that the system may lack, such as a free file
    /// descriptor. The directory is neither renamed nor removed.
    fn keep_dir(&self, _path: &Path) -> Result<()> {
        Ok(())
    }
    /// What a directory holds, sorted by name.
    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>>;
    /// Whether there is a file or directory of that name.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Takes the lock file at `path` (created if missing) until the answer is dropped. Errors:
    /// [`Error::Exists`](pando_base::Error::Exists) while another, in this process or another, has it.
    fn lock(&self, path: &Path) -> Result<LockFile>;
    /// How many descriptors of the system its files hold, if they share a number of them.
    fn descriptors(&self) -> Option<DescriptorCounts> {
        None
    }
    /// A monotonic clock in microseconds, from an arbitrary start.
    fn now_micros(&self) -> u64;
}

/// Holds a lock file taken by [`Vfs::lock`].
#[derive(Debug)]
pub struct LockFile {
    /// Closed by dropping it, which gives up the lock.
    _file: Option<std::fs::File>,
}

/// An open file. All calls may be made from several threads at once.
pub trait File: Send + Sync + Debug {
    /// The path it was opened by (a rename does not change it).
    fn path(&self) -> &Path;

    /// Reads into `buf` from `offset`; fewer bytes than asked for only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;

    /// Fills `buf` from `offset`; [`Error::Corruption`] naming both lengths if the file ends before.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let found = self.read_at(buf, offset)?;
        if found < buf.len() {
            let expected = format!("{} bytes", buf.len());
            let found = format!("{found} bytes before the end of the file");
            return Err(Error::corruption(self.path(), offset, "length of the file", expected, found));
        }
        Ok(())
    }

    /// Writes all of `buf` at `offset`, extending the file if needed. After an error any part may
    /// have been written.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()>;

    /// Makes all writes that returned before durable, with the length needed to read them back.
    fn sync(&self) -> Result<()>;

    /// Length of the file in bytes.
    fn len(&self) -> Result<u64>;

    /// Whether the file is empty.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file, or extends it with a hole that reads as zeros.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Takes disk space for the range now, extending the file if it ends before the end of the
    /// range, so that a later write there does not find the disk full. Bytes that are there stay;
    /// new ones read as zeros. Where the file system cannot, only the length is seen to.
    fn reserve(&self, offset: u64, len: u64) -> Result<()>;

    /// Makes the file at least `len` bytes long with disk space for the part it grows by.
    fn preallocate(&self, len: u64) -> Result<()> {
        let have = self.len()?;
        if len > have {
            self.reserve(have, len - have)?;
        }
        Ok(())
    }

    /// Gives the disk space of a range back; it reads as zeros. The length stays. Where the file
    /// system cannot, nothing happens and the content is undefined.
    fn punch_hole(&self, offset: u64, len: u64) -> Result<()>;

    /// Bytes of disk space the file takes.
    fn allocated_bytes(&self) -> Result<u64>;
}
