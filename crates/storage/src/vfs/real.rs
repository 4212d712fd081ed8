//! The operating system's file system. This file and its sibling `real_file` are the only ones that
//! may call `std::fs`.

use super::descriptors::Descriptors;
use super::real_file::RealFile;
use super::{DescriptorCounts, DirEntry, File, LockFile, OpenMode, Vfs};
use pando_base::locks::RwLock;
use pando_base::observer;
use pando_base::{Error, Result};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Directories are for the server's user only, as the server makes its own.
const DIR_MODE: u32 = 0o700;

/// The operating system's file system.
#[derive(Debug)]
pub struct RealVfs {
    direct_io: bool,
    start: Instant,
    /// See [`Vfs::keep_dir`].
    kept_dirs: RwLock<HashMap<PathBuf, fs::File>>,
    /// What files share that need not hold descriptors all the time.
    shared: Option<Arc<Descriptors>>,
}

impl RealVfs {
    /// With `direct_io`, files bypass the system's page cache (`O_DIRECT`) where the file system
    /// can: what is cached is then only what the engine's own cache accounts for.
    pub fn new(direct_io: bool) -> Arc<RealVfs> {
        Arc::new(RealVfs { direct_io, start: Instant::now(), kept_dirs: RwLock::default(), shared: None })
    }

    /// The same, with about `descriptors` file descriptors at most for all files that are open: `descriptors.rs` says how.
    pub fn with_limit(direct_io: bool, descriptors: usize) -> Arc<RealVfs> {
        let shared = Some(Descriptors::new(descriptors, direct_io));
        Arc::new(RealVfs { direct_io, start: Instant::now(), kept_dirs: RwLock::default(), shared })
    }
}

/// How many files this process may have open at once.
pub fn open_files_max() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Maps what the system says about a name: there, not there, or trouble.
pub(super) fn name_error(op: &'static str, path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::NotFound { what: path.display().to_string() },
        io::ErrorKind::AlreadyExists => Error::Exists { what: path.display().to_string() },
        _ => Error::io(op, path, 0, error),
    }
}

/// A file is about to lose its name, or a directory with the files in it.
fn tell_gone(path: &Path) {
    let Some(observer) = observer::get() else { return };
    if !path.is_dir() {
        return observer.file_gone(path);
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        observer.file_gone(&entry.path());
    }
}

/// Removes a directory; one that is a link to another goes together with that.
#[expect(clippy::disallowed_methods, reason = "this is the vfs")]
fn remove_tree(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_symlink() {
        return fs::remove_dir_all(path);
    }
    fs::remove_dir_all(fs::canonicalize(path)?)?;
    fs::remove_file(path)
}

impl Vfs for RealVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        if let Some(shared) = &self.shared {
            return shared.open(path, mode);
        }
        let file = RealFile::open(path, mode, self.direct_io).map_err(|e| name_error("open", path, e))?;
        Ok(Arc::new(file))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the vfs")]
    fn remove_file(&self, path: &Path) -> Result<()> {
        tell_gone(path);
        let remove = || fs::remove_file(path);
        let removed = self.shared.as_ref().map_or_else(remove, |shared| shared.remove(path, remove));
        removed.map_err(|e| name_error("remove", path, e))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the vfs")]
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        tell_gone(from);
        let rename = || fs::rename(from, to);
        let renamed = self.shared.as_ref().map_or_else(rename, |shared| shared.rename(from, to, rename));
        renamed.map_err(|e| name_error("rename", from, e))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let created = fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(path);
        created.map_err(|e| name_error("create directory", path, e))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        tell_gone(path);
        let remove = || remove_tree(path);
        let removed = self.shared.as_ref().map_or_else(remove, |shared| shared.remove(path, remove));
        removed.map_err(|e| name_error("remove directory", path, e))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the vfs")]
    fn sync_dir(&self, path: &Path) -> Result<()> {
        let kept = self.kept_dirs.read();
        let synced = match kept.get(path) {
            Some(dir) => dir.sync_all(),
            None => fs::File::open(path).and_then(|dir| dir.sync_all()),
        };
        synced.map_err(|e| name_error("sync directory", path, e))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the vfs")]
    fn keep_dir(&self, path: &Path) -> Result<()> {
        let dir = fs::File::open(path).map_err(|e| name_error("open directory", path, e))?;
        self.kept_dirs.write().insert(path.to_owned(), dir);
        Ok(())
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let read = || -> io::Result<Vec<DirEntry>> {
            let mut entries = Vec::new();
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                let kind = entry.file_type()?;
                // A link to a directory is one; one that leads nowhere is nothing.
                let is_dir = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
                // A name that is not UTF-8 is not one of ours.
                if let Ok(name) = entry.file_name().into_string() {
                    entries.push(DirEntry { name, is_dir });
                }
            }
            entries.sort();
            Ok(entries)
        };
        read().map_err(|e| name_error("read directory", path, e))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists().map_err(|e| Error::io("look up", path, 0, e))
    }

    fn lock(&self, path: &Path) -> Result<LockFile> {
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| name_error("open", path, e))?;
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(LockFile { _file: Some(file) }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Locked { path: path.to_owned() }),
            Err(errno) => Err(Error::io("lock", path, 0, errno.into())),
        }
    }

    fn descriptors(&self) -> Option<DescriptorCounts> {
        self.shared.as_ref().map(|shared| shared.counts())
    }

    fn now_micros(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_is_had_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let vfs = RealVfs::new(false);
        let path = dir.path().join("lock");
        let held = vfs.lock(&path).unwrap();
        let refused = vfs.lock(&path).unwrap_err();
        assert!(refused.to_string().starts_with("the database is in use"), "{refused}");
        drop(held);
        vfs.lock(&path).unwrap();
    }

    #[test]
    fn a_link_to_a_directory_is_one_and_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let vfs = RealVfs::new(false);
        let (elsewhere, data) = (dir.path().join("elsewhere"), dir.path().join("data"));
        vfs.create_dir_all(&elsewhere.join("t.pando")).unwrap();
        vfs.create_dir_all(&data).unwrap();
        let link = data.join("t.pando");
        std::os::unix::fs::symlink(elsewhere.join("t.pando"), &link).unwrap();
        std::os::unix::fs::symlink("nowhere", data.join("lost.pando")).unwrap();
        vfs.open(&link.join("main.pando"), OpenMode::Create).unwrap();
        let kinds: Vec<bool> = vfs.read_dir(&data).unwrap().iter().map(|entry| entry.is_dir).collect();
        assert_eq!(kinds, [false, true]);
        vfs.remove_dir_all(&link).unwrap();
        assert!(!link.is_symlink() && vfs.read_dir(&elsewhere).unwrap().is_empty());
    }

    #[test]
    fn names_can_be_created_renamed_listed_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let vfs = RealVfs::new(false);
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        assert!(matches!(vfs.open(&a, OpenMode::Existing), Err(Error::NotFound { .. })));
        let file = vfs.open(&a, OpenMode::Create).unwrap();
        assert!(matches!(vfs.open(&a, OpenMode::Create), Err(Error::Exists { .. })));
        file.write_at(b"kept through rename", 0).unwrap();
        vfs.rename(&a, &b).unwrap();
        vfs.create_dir_all(&dir.path().join("d/e")).unwrap();
        vfs.create_dir_all(&dir.path().join("d/e")).unwrap();
        vfs.sync_dir(dir.path()).unwrap();
        let entries = vfs.read_dir(dir.path()).unwrap();
        assert_eq!(
            entries,
            [DirEntry { name: "b".into(), is_dir: false }, DirEntry { name: "d".into(), is_dir: true }]
        );
        assert!(!vfs.exists(&a).unwrap());
        assert!(vfs.exists(&b).unwrap());
        vfs.remove_dir_all(&dir.path().join("d")).unwrap();
        vfs.remove_file(&b).unwrap();
        for gone in [vfs.remove_file(&b), vfs.rename(&a, &b), vfs.remove_dir_all(&b), vfs.sync_dir(&b)] {
            assert!(matches!(gone, Err(Error::NotFound { .. })));
        }
        let mut text = [0; 4];
        file.read_exact_at(&mut text, 0).unwrap();
        assert_eq!(&text, b"kept");
        assert_eq!(vfs.read_dir(dir.path()).unwrap(), []);
    }

    #[test]
    fn the_clock_does_not_run_backwards() {
        let vfs = RealVfs::new(false);
        let before = vfs.now_micros();
        assert!(vfs.now_micros() >= before);
    }
}
