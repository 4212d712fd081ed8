//! A disk whose syncs take a while, so that others come meanwhile, also where one thread runs at a time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pando_base::Result;
use pando_storage::vfs::{DirEntry, File, LockFile, OpenMode, Vfs};

const SYNC: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub struct SlowSyncs(pub Arc<dyn Vfs>);

#[derive(Debug)]
struct SlowFile(Arc<dyn File>);

impl Vfs for SlowSyncs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        Ok(Arc::new(SlowFile(self.0.open(path, mode)?)))
    }
    fn remove_file(&self, path: &Path) -> Result<()> {
        self.0.remove_file(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.rename(from, to)
    }
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.0.create_dir_all(path)
    }
    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.0.remove_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.0.sync_dir(path)
    }
    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.0.read_dir(path)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.0.exists(path)
    }
    fn lock(&self, path: &Path) -> Result<LockFile> {
        self.0.lock(path)
    }
    fn now_micros(&self) -> u64 {
        self.0.now_micros()
    }
}

impl File for SlowFile {
    fn path(&self) -> &Path {
        self.0.path()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.0.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.0.write_at(buf, offset)
    }
    fn sync(&self) -> Result<()> {
        std::thread::sleep(SYNC);
        self.0.sync()
    }
    fn len(&self) -> Result<u64> {
        self.0.len()
    }
    fn set_len(&self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }
    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.0.reserve(offset, len)
    }
    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.0.punch_hole(offset, len)
    }
    fn allocated_bytes(&self) -> Result<u64> {
        self.0.allocated_bytes()
    }
}
