//! Files that were removed, and whose space is not given back yet.
//!
//! To remove the name of a file takes no time; to give back its space does (half a millisecond for a megabyte
//! on ext4), and a file system does that when the last handle of a file without a name is closed. Whoever drops a
//! table or an index holds locks that others wait for. So larger files are opened once more before they are removed, and
//! a ticker closes them (`background`), after everybody who still had them open.
//!
//! Nothing depends on it: a file that could not be opened again, or came when there were too many, gives back its space
//! at once, and so do all when the process ends.

use std::path::Path;
use std::sync::{Arc, Weak};

use pando_base::locks::Mutex;
use pando_storage::vfs::{File, OpenMode, Vfs};
use pando_storage::TreeFile;

/// Files below this are not worth it: they are gone in well under a millisecond.
const FILE_BYTES_MIN: u64 = 1 << 20;
/// No more of them at a time: each takes a file descriptor.
const FILES_MAX: usize = 256;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    files: Mutex<Vec<Held>>,
}

#[derive(Debug)]
struct Held {
    file: Arc<dyn File>,
    /// Who had it open when it was removed.
    user: Option<Weak<TreeFile>>,
}

impl Removed {
    /// Keeps a file's space until [`Removed::close_unused`]; to be called before it is removed.
    pub(crate) fn keep(&self, vfs: &dyn Vfs, path: &Path, user: Option<&Arc<TreeFile>>) {
        let Ok(file) = vfs.open(path, OpenMode::Existing) else { return };
        let is_large = file.allocated_bytes().is_ok_and(|bytes| bytes >= FILE_BYTES_MIN);
        let mut files = self.files.lock();
        if is_large && files.len() < FILES_MAX {
            files.push(Held { file, user: user.map(Arc::downgrade) });
        }
    }

    /// Gives back the space of the files that nobody else has open.
    pub(crate) fn close_unused(&self) {
        let is_used = |held: &Held| held.user.as_ref().is_some_and(|user| user.strong_count() > 0);
        let unused: Vec<Held> = {
            let mut files = self.files.lock();
            let (used, unused) = std::mem::take(&mut *files).into_iter().partition(is_used);
            *files = used;
            unused
        };
        // Without the mutex: this is what takes time.
        for held in unused {
            drop(held.file);
        }
    }

    /// How many files are kept.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.files.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::DictId;
    use pando_storage::vfs::SimVfs;

    fn file(vfs: &Arc<dyn Vfs>, name: &str, bytes: u64) -> Arc<TreeFile> {
        let path = Path::new("/").join(name);
        let file = TreeFile::create(vfs, &path, DictId(7)).expect("a new file");
        let raw = vfs.open(&path, OpenMode::Existing).expect("the same file");
        raw.reserve(0, bytes).expect("space");
        file
    }

    #[test]
    fn a_large_file_is_kept_until_nobody_has_it_open() {
        let vfs: Arc<dyn Vfs> = SimVfs::new(1);
        let removed = Removed::default();
        let large = file(&vfs, "large", 2 * FILE_BYTES_MIN);
        let small = file(&vfs, "small", 0);
        removed.keep(&*vfs, &large.path(), Some(&large));
        removed.keep(&*vfs, &small.path(), Some(&small));
        assert_eq!(removed.count(), 1, "the large one");
        removed.close_unused();
        assert_eq!(removed.count(), 1, "it is in use");
        drop(large);
        removed.close_unused();
        assert_eq!(removed.count(), 0);
    }

    #[test]
    fn a_file_that_is_not_there_is_no_trouble() {
        let vfs: Arc<dyn Vfs> = SimVfs::new(1);
        let removed = Removed::default();
        removed.keep(&*vfs, Path::new("/nowhere"), None);
        assert_eq!(removed.count(), 0);
    }
}
