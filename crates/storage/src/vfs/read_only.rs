//! The operating system's file system, for looking only: files are opened for reading, and whatever would change something is
//! an error. For tools that work on what must stay as it is, also where nothing can be written.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use pando_base::{Error, Result};

use super::real::name_error;
use super::{DirEntry, File, LockFile, OpenMode, RealVfs, Vfs};

/// See the head of this file.
#[derive(Debug)]
pub struct ReadOnlyVfs {
    real: Arc<RealVfs>,
    start: Instant,
}

#[derive(Debug)]
struct ReadOnlyFile {
    path: PathBuf,
    file: fs::File,
}

impl ReadOnlyVfs {
    /// The whole of it.
    pub fn new() -> Arc<ReadOnlyVfs> {
        Arc::new(ReadOnlyVfs { real: RealVfs::new(false), start: Instant::now() })
    }
}

fn refused(op: &'static str, path: &Path) -> Error {
    let error = io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "opened for reading only");
    Error::io(op, path, 0, error)
}

impl Vfs for ReadOnlyVfs {
    #[expect(clippy::disallowed_methods, reason = "this is the vfs")]
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        if mode == OpenMode::Create {
            return Err(refused("create", path));
        }
        let file = fs::File::open(path).map_err(|e| name_error("open", path, e))?;
        Ok(Arc::new(ReadOnlyFile { path: path.to_owned(), file }))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        Err(refused("remove", path))
    }

    fn rename(&self, from: &Path, _: &Path) -> Result<()> {
        Err(refused("rename", from))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        match self.exists(path)? {
            true => Ok(()),
            false => Err(refused("create directory", path)),
        }
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        Err(refused("remove directory", path))
    }

    fn sync_dir(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.real.read_dir(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.real.exists(path)
    }

    /// Of a lock file that is there. Where there is none, as in a copy, nobody can hold it, and none is made.
    #[expect(clippy::disallowed_methods, reason = "this is the vfs")]
    fn lock(&self, path: &Path) -> Result<LockFile> {
        let file = match fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockFile { _file: None }),
            Err(error) => return Err(name_error("open", path, error)),
        };
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(LockFile { _file: Some(file) }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Locked { path: path.to_owned() }),
            Err(errno) => Err(Error::io("lock", path, 0, errno.into())),
        }
    }

    fn now_micros(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }
}

impl ReadOnlyFile {
    fn error(&self, op: &'static str, offset: u64, error: io::Error) -> Error {
        Error::io(op, &self.path, offset, error)
    }
}

impl File for ReadOnlyFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error("read", offset, error)),
            }
        }
        Ok(done)
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<()> {
        Err(refused("write", &self.path))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|e| self.error("stat", 0, e))?.len())
    }

    fn set_len(&self, _: u64) -> Result<()> {
        Err(refused("truncate", &self.path))
    }

    fn reserve(&self, _: u64, _: u64) -> Result<()> {
        Err(refused("allocate", &self.path))
    }

    fn punch_hole(&self, _: u64, _: u64) -> Result<()> {
        Err(refused("punch hole", &self.path))
    }

    fn allocated_bytes(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|e| self.error("stat", 0, e))?.blocks() * 512)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_can_be_read_and_nothing_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, b"0123456789").unwrap();
        let vfs = ReadOnlyVfs::new();
        let file = vfs.open(&path, OpenMode::CreateOrOpen).unwrap();
        let mut bytes = [0; 8];
        assert_eq!(file.read_at(&mut bytes, 4).unwrap(), 6);
        assert_eq!(&bytes, b"456789\0\0");
        assert!(file.write_at(b"x", 0).is_err() && file.set_len(0).is_err());
        let other = dir.path().join("other");
        assert!(vfs.open(&other, OpenMode::CreateOrOpen).is_err());
        assert!(vfs.rename(&path, &other).is_err() && vfs.remove_file(&path).is_err());
        drop(vfs.lock(&other).unwrap());
        let held = vfs.lock(&path).unwrap();
        assert!(vfs.lock(&path).is_err());
        drop(held);
        assert_eq!(vfs.read_dir(dir.path()).unwrap().len(), 1);
    }
}
