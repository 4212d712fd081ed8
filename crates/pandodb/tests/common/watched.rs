//! A file system that notes in which files a text was ever written.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use pando_base::Result;
use pando_storage::vfs::{DirEntry, File, LockFile, OpenMode};
use pandodb::{SimVfs, Vfs};

/// Wraps a simulated disk.
#[derive(Debug)]
pub struct WatchedVfs {
    disk: Arc<SimVfs>,
    text: &'static [u8],
    seen: Arc<Mutex<BTreeSet<String>>>,
}

impl WatchedVfs {
    pub fn new(disk: Arc<SimVfs>, text: &'static [u8]) -> Arc<WatchedVfs> {
        Arc::new(WatchedVfs { disk, text, seen: Arc::default() })
    }

    /// Names of the files in which the text was written since the last call.
    pub fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn File>,
    text: &'static [u8],
    seen: Arc<Mutex<BTreeSet<String>>>,
}

impl File for WatchedFile {
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        if buf.windows(self.text.len()).any(|window| window == self.text) {
            let name = self.file.path().file_name().unwrap().to_string_lossy().into_owned();
            self.seen.lock().unwrap().insert(name);
        }
        self.file.write_at(buf, offset)
    }
    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }
    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.file.reserve(offset, len)
    }
    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.file.punch_hole(offset, len)
    }
    fn allocated_bytes(&self) -> Result<u64> {
        self.file.allocated_bytes()
    }
}

impl Vfs for WatchedVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let file = self.disk.open(path, mode)?;
        Ok(Arc::new(WatchedFile { file, text: self.text, seen: self.seen.clone() }))
    }
    fn remove_file(&self, path: &Path) -> Result<()> {
        self.disk.remove_file(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.disk.rename(from, to)
    }
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.disk.create_dir_all(path)
    }
    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.disk.remove_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.disk.sync_dir(path)
    }
    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.disk.read_dir(path)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.disk.exists(path)
    }
    fn lock(&self, path: &Path) -> Result<LockFile> {
        self.disk.lock(path)
    }
    fn now_micros(&self) -> u64 {
        self.disk.now_micros()
    }
}
