//! A disk whose syncs, or writes, of the files of rows can be held up, so that a test can act in the middle
//! of a checkpoint or of a job.

use std::path::Path;
use std::sync::Arc;

use pando_base::locks::{Condvar, Mutex};
use pando_storage::vfs::{DirEntry, File, LockFile, OpenMode};
use pandodb::{EngineError, SimVfs, Vfs};

type Result<T> = std::result::Result<T, EngineError>;

/// What is held up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Held {
    #[default]
    Nothing,
    Syncs,
    Writes,
}

/// What is held up, and how many wait.
#[derive(Debug, Default)]
pub struct Barrier {
    state: Mutex<(Held, u32)>,
    changed: Condvar,
}

impl Barrier {
    /// What begins from now on waits.
    pub fn close(&self, held: Held) {
        self.state.lock().0 = held;
    }

    /// All go on.
    pub fn open(&self) {
        self.state.lock().0 = Held::Nothing;
        self.changed.notify_all();
    }

    /// Returns once one waits.
    pub fn wait_for_one(&self) {
        let mut state = self.state.lock();
        while state.1 == 0 {
            self.changed.wait(&mut state);
        }
    }

    fn pass(&self, path: &Path, what: Held) {
        if !path.ends_with("main.pando") {
            return;
        }
        let mut state = self.state.lock();
        if state.0 != what {
            return;
        }
        state.1 += 1;
        self.changed.notify_all();
        while state.0 == what {
            self.changed.wait(&mut state);
        }
        state.1 -= 1;
    }
}

/// The disk.
#[derive(Debug)]
pub struct SlowVfs {
    pub disk: Arc<SimVfs>,
    pub barrier: Arc<Barrier>,
}

#[derive(Debug)]
struct SlowFile {
    file: Arc<dyn File>,
    barrier: Arc<Barrier>,
}

impl Vfs for SlowVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let file = self.disk.open(path, mode)?;
        Ok(Arc::new(SlowFile { file, barrier: self.barrier.clone() }))
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

impl File for SlowFile {
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.barrier.pass(self.path(), Held::Writes);
        self.file.write_at(buf, offset)
    }
    fn sync(&self) -> Result<()> {
        self.barrier.pass(self.path(), Held::Syncs);
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
