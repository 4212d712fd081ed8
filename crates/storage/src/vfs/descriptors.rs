//! More open files than file descriptors: those not used lately give theirs up, and get one again when somebody asks for them.
//!
//! A [`ParkedFile`] is open for its users as long as it lives. It holds descriptors of the system (a [`RealFile`]) only while it
//! needs them:
//!
//! * **Who is closed.** Whoever opens one when the limit is reached closes others, those first that were not used since they were looked
//!   at last (a ring with a second chance). Files that somebody reads or writes at the moment are passed by. If nobody can be closed,
//!   there are more than the limit: a limit that is too small costs time, not statements.
//! * **Nothing is lost by closing.** Only a file is closed of which every write is synced. One that is not is synced then; if that
//!   fails, it stays open, and the next [`File::sync`] gives the failure: a later sync, of another handle, might say nothing of it.
//! * **It is the same file again.** A file is opened again by its name, and must then be the one that it was (device and inode).
//!   Renaming and removing go through here: a rename tells the files below the name, and what is removed, or replaced by a rename, is
//!   kept open from then on, because it has no name any more.
//!
//! Lock order: `names`, then a file's `handles`. Closing takes the latter only if nobody has it, and the ring for a moment.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use pando_base::locks::{Mutex, RwLock};
use pando_base::{Error, Result};

use super::real::name_error;
use super::real_file::RealFile;
use super::{DescriptorCounts, File, OpenMode};

/// Descriptors of a file: see [`RealFile::descriptors`].
const DESCRIPTORS_OF_FILE_MAX: usize = 2;
/// So many files are closed at least when the system has no descriptor left for one more.
const CLOSED_IN_NEED: usize = 16;
/// Names of files that are gone are forgotten when there are so many more than files.
const NAMES_SLACK: usize = 64;

/// The files of one file system that share a number of descriptors. See the head of this file.
#[derive(Debug)]
pub(super) struct Descriptors {
    limit: usize,
    direct_io: bool,
    open: AtomicUsize,
    reopened: AtomicU64,
    live: AtomicUsize,
    /// Files that have descriptors, but for those that are kept open.
    ring: Mutex<VecDeque<Weak<ParkedFile>>>,
    /// Files that live, by where they are now.
    names: RwLock<Names>,
}

type Names = BTreeMap<PathBuf, Vec<Weak<ParkedFile>>>;

/// A file that need not hold descriptors. See the head of this file.
#[derive(Debug)]
pub(super) struct ParkedFile {
    opened_as: PathBuf,
    /// Changed by renames, which have `names` for writing.
    place: Mutex<PathBuf>,
    identity: (u64, u64),
    descriptors: Arc<Descriptors>,
    handles: RwLock<Option<RealFile>>,
    /// Since the ring has come by.
    is_used: AtomicBool,
    /// It has no name any more, or a sync has failed: it keeps its descriptors.
    is_kept: AtomicBool,
    /// Writes that were begun, ended, and covered by a sync; the first is what another process may have written.
    begun: AtomicU64,
    ended: AtomicU64,
    synced: AtomicU64,
    /// The failure of a sync of which no caller knows.
    untold: Mutex<Option<Error>>,
}

impl Descriptors {
    pub(super) fn new(limit: usize, direct_io: bool) -> Arc<Descriptors> {
        Arc::new(Descriptors {
            limit,
            direct_io,
            open: AtomicUsize::new(0),
            reopened: AtomicU64::new(0),
            live: AtomicUsize::new(0),
            ring: Mutex::default(),
            names: RwLock::default(),
        })
    }

    pub(super) fn counts(&self) -> DescriptorCounts {
        DescriptorCounts {
            open: self.open.load(Ordering::Relaxed) as u64,
            reopened: self.reopened.load(Ordering::Relaxed),
        }
    }

    /// As [`super::Vfs::open`].
    pub(super) fn open(self: &Arc<Self>, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        self.make_room();
        let mut names = self.names.write();
        let real = self.open_real(path, mode).map_err(|e| name_error("open", path, e))?;
        let identity = real.identity().map_err(|e| Error::io("stat", path, 0, e))?;
        self.open.fetch_add(real.descriptors(), Ordering::Relaxed);
        self.live.fetch_add(1, Ordering::Relaxed);
        let file = Arc::new(ParkedFile {
            opened_as: path.to_owned(),
            place: Mutex::new(path.to_owned()),
            identity,
            descriptors: self.clone(),
            handles: RwLock::new(Some(real)),
            is_used: AtomicBool::new(true),
            is_kept: AtomicBool::new(false),
            begun: AtomicU64::new(1),
            ended: AtomicU64::new(1),
            synced: AtomicU64::new(0),
            untold: Mutex::default(),
        });
        if names.len() > 2 * self.live.load(Ordering::Relaxed) + NAMES_SLACK {
            names.retain(|_, files| files.iter().any(|file| file.strong_count() > 0));
        }
        let its = names.entry(path.to_owned()).or_default();
        its.retain(|file| file.strong_count() > 0);
        its.push(Arc::downgrade(&file));
        drop(names);
        self.enter_ring(&file);
        Ok(file)
    }

    /// Opens a file of the system. If that has no descriptor left, some of ours are closed.
    fn open_real(&self, path: &Path, mode: OpenMode) -> io::Result<RealFile> {
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        match RealFile::open(path, mode, self.direct_io) {
            Err(error) if matches!(error.raw_os_error(), Some(ENFILE | EMFILE)) => {
                self.close_while(CLOSED_IN_NEED, || true);
                RealFile::open(path, mode, self.direct_io)
            }
            result => result,
        }
    }

    fn enter_ring(&self, file: &Arc<ParkedFile>) {
        let mut ring = self.ring.lock();
        if ring.len() > 2 * self.live.load(Ordering::Relaxed) + NAMES_SLACK {
            ring.retain(|file| file.strong_count() > 0);
        }
        ring.push_back(Arc::downgrade(file));
    }

    /// Closes files until one more is within the limit, if it can be done.
    fn make_room(&self) {
        let is_over = || self.open.load(Ordering::Relaxed) + DESCRIPTORS_OF_FILE_MAX > self.limit;
        if is_over() {
            self.close_while(usize::MAX, is_over);
        }
    }

    /// Closes at most `files` files, as long as `wanted` says so.
    fn close_while(&self, files: usize, wanted: impl Fn() -> bool) {
        let mut closed = 0;
        // Twice round: each may have been used since the last time.
        let looks = 2 * self.ring.lock().len();
        for _ in 0..looks {
            if closed >= files || !wanted() {
                return;
            }
            let Some(next) = self.ring.lock().pop_front() else { return };
            let Some(file) = next.upgrade() else { continue };
            if file.is_kept.load(Ordering::Acquire) {
                continue;
            }
            if !file.is_used.swap(false, Ordering::Relaxed) && file.close() {
                closed += 1;
            } else if !file.is_kept.load(Ordering::Acquire) {
                self.ring.lock().push_back(next);
            }
        }
    }

    /// As [`super::Vfs::rename`], by `rename`.
    pub(super) fn rename(
        &self,
        from: &Path,
        to: &Path,
        rename: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut names = self.names.write();
        keep_below(&names, to);
        rename()?;
        forget_below(&mut names, to);
        for old in below(&names, from) {
            let Some(files) = names.remove(&old) else { continue };
            let new = match old.strip_prefix(from) {
                Ok(rest) if rest.as_os_str().is_empty() => to.to_owned(),
                Ok(rest) => to.join(rest),
                Err(_) => continue,
            };
            for file in files.iter().filter_map(Weak::upgrade) {
                new.clone_into(&mut file.place.lock());
            }
            names.insert(new, files);
        }
        Ok(())
    }

    /// Removes a file, or a directory with all files in it, by `remove`.
    pub(super) fn remove(&self, path: &Path, remove: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut names = self.names.write();
        keep_below(&names, path);
        remove()?;
        forget_below(&mut names, path);
        Ok(())
    }
}

/// The names of files at a path or below it.
fn below(names: &Names, path: &Path) -> Vec<PathBuf> {
    let from = names.range(path.to_owned()..).map(|(name, _)| name);
    from.take_while(|name| name.starts_with(path)).cloned().collect()
}

/// Files there keep descriptors from now on. One that cannot get any is of no more use to those who have it.
fn keep_below(names: &Names, path: &Path) {
    for name in below(names, path) {
        for file in names.get(&name).into_iter().flatten().filter_map(Weak::upgrade) {
            file.is_kept.store(true, Ordering::Release);
            let _ = file.open_again();
        }
    }
}

fn forget_below(names: &mut Names, path: &Path) {
    for name in below(names, path) {
        names.remove(&name);
    }
}

impl ParkedFile {
    /// Does something with the open file.
    fn with<T>(&self, io: impl FnOnce(&RealFile) -> Result<T>) -> Result<T> {
        loop {
            let handles = self.handles.read();
            if let Some(file) = &*handles {
                if !self.is_used.load(Ordering::Relaxed) {
                    self.is_used.store(true, Ordering::Relaxed);
                }
                return io(file);
            }
            drop(handles);
            self.unpark()?;
        }
    }

    /// The same with what changes the file.
    fn change<T>(&self, io: impl FnOnce(&RealFile) -> Result<T>) -> Result<T> {
        self.begun.fetch_add(1, Ordering::AcqRel);
        let result = self.with(io);
        self.ended.fetch_add(1, Ordering::AcqRel);
        result
    }

    /// Gets descriptors again.
    fn unpark(&self) -> Result<()> {
        self.descriptors.make_room();
        // Nobody renames it meanwhile.
        let names = self.descriptors.names.read();
        let is_new = self.open_again()?;
        let place = self.place.lock().clone();
        let me = names.get(&place).into_iter().flatten().filter_map(Weak::upgrade);
        let me = me.into_iter().find(|file| std::ptr::eq(&**file, self));
        drop(names);
        if let Some(me) = me.filter(|_| is_new) {
            self.descriptors.enter_ring(&me);
        }
        Ok(())
    }

    /// Opens the file by the name that it has, unless it is open. Requires: `names`.
    fn open_again(&self) -> Result<bool> {
        let mut handles = self.handles.write();
        if handles.is_some() {
            return Ok(false);
        }
        let place = self.place.lock().clone();
        let failed = |error| Error::io("open", &place, 0, error);
        let real = self.descriptors.open_real(&place, OpenMode::Existing).map_err(failed)?;
        if real.identity().map_err(failed)? != self.identity {
            return Err(failed(io::Error::other("another file has been put in its place")));
        }
        self.descriptors.open.fetch_add(real.descriptors(), Ordering::Relaxed);
        self.descriptors.reopened.fetch_add(1, Ordering::Relaxed);
        self.is_used.store(true, Ordering::Relaxed);
        *handles = Some(real);
        Ok(true)
    }

    /// Gives its descriptors up. False: it is in use, or must not.
    fn close(&self) -> bool {
        let Some(mut handles) = self.handles.try_write() else { return false };
        let Some(real) = &*handles else { return true };
        // Nobody else reads or writes now.
        let ended = self.ended.load(Ordering::Acquire);
        if ended != self.synced.load(Ordering::Acquire) {
            if let Err(error) = real.sync() {
                *self.untold.lock() = Some(error);
                self.is_kept.store(true, Ordering::Release);
                return false;
            }
            self.synced.fetch_max(ended, Ordering::AcqRel);
        }
        self.descriptors.open.fetch_sub(real.descriptors(), Ordering::Relaxed);
        *handles = None;
        true
    }
}

impl Drop for ParkedFile {
    fn drop(&mut self) {
        if let Some(real) = self.handles.get_mut() {
            self.descriptors.open.fetch_sub(real.descriptors(), Ordering::Relaxed);
        }
        self.descriptors.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl File for ParkedFile {
    fn path(&self) -> &Path {
        &self.opened_as
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.with(|file| file.read_at(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.change(|file| file.write_at(buf, offset))
    }

    fn sync(&self) -> Result<()> {
        if let Some(error) = &*self.untold.lock() {
            return Err(error.clone());
        }
        let ended = self.ended.load(Ordering::Acquire);
        if self.begun.load(Ordering::Acquire) == self.synced.load(Ordering::Acquire) {
            // All there is was synced when it was closed.
            return Ok(());
        }
        let result = self.with(RealFile::sync);
        match &result {
            Ok(()) => _ = self.synced.fetch_max(ended, Ordering::AcqRel),
            Err(_) => self.is_kept.store(true, Ordering::Release),
        }
        result
    }

    fn len(&self) -> Result<u64> {
        self.with(RealFile::len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.change(|file| file.set_len(len))
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.change(|file| file.reserve(offset, len))
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.change(|file| file.punch_hole(offset, len))
    }

    fn allocated_bytes(&self) -> Result<u64> {
        self.with(RealFile::allocated_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{RealVfs, Vfs};

    const LIMIT: usize = 10;

    fn fill(vfs: &RealVfs, dir: &Path, files: u32) -> Vec<Arc<dyn File>> {
        let open = |n: u32| vfs.open(&dir.join(format!("f{n}")), OpenMode::Create).unwrap();
        let files: Vec<_> = (0..files).map(open).collect();
        files.iter().zip(0u32..).for_each(|(file, n)| file.write_at(&n.to_le_bytes(), 0).unwrap());
        files
    }

    fn number(file: &Arc<dyn File>) -> u32 {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 0).unwrap();
        u32::from_le_bytes(bytes)
    }

    fn open_now(vfs: &RealVfs) -> u64 {
        vfs.descriptors().unwrap().open
    }

    #[test]
    fn a_hundred_files_share_ten_descriptors_unseen() {
        for direct_io in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let vfs = RealVfs::with_limit(direct_io, LIMIT);
            let files = fill(&vfs, dir.path(), 100);
            assert!(open_now(&vfs) <= LIMIT as u64);
            for round in 0..3 {
                for (file, n) in files.iter().zip(0..) {
                    assert_eq!(number(file), n, "round {round}");
                    file.sync().unwrap();
                    assert!(open_now(&vfs) <= LIMIT as u64);
                }
            }
            assert!(vfs.descriptors().unwrap().reopened >= 300);
            drop(files);
            assert_eq!(open_now(&vfs), 0);
        }
    }

    #[test]
    fn renamed_removed_and_replaced_files_stay_what_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let vfs = RealVfs::with_limit(false, LIMIT);
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        vfs.create_dir_all(&a).unwrap();
        let files = fill(&vfs, &a, 30);
        vfs.rename(&a, &b).unwrap();
        files.iter().zip(0..).for_each(|(file, n)| assert_eq!(number(file), n));
        vfs.rename(&b.join("f1"), &b.join("f2")).unwrap();
        assert_eq!((number(&files[1]), number(&files[2])), (1, 2));
        vfs.remove_file(&b.join("f3")).unwrap();
        vfs.remove_dir_all(&b).unwrap();
        files.iter().zip(0..).for_each(|(file, n)| assert_eq!(number(file), n, "without a name"));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "somebody else works in the directory")]
    fn a_file_that_others_have_replaced_or_removed_is_not_taken_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let vfs = RealVfs::with_limit(false, 4);
        let files = fill(&vfs, dir.path(), 20);
        for n in [0, 1] {
            std::fs::remove_file(dir.path().join(format!("f{n}"))).unwrap();
        }
        std::fs::write(dir.path().join("f1"), [0; 100]).unwrap();
        let mut bytes = [0; 4];
        let lost = files[0].read_at(&mut bytes, 0).unwrap_err();
        assert!(matches!(lost, Error::Io { op: "open", .. }), "{lost}");
        let other = files[1].read_at(&mut bytes, 0).unwrap_err().to_string();
        assert!(other.contains("another file"), "{other}");
        assert_eq!(number(&files[2]), 2);
    }

    #[test]
    fn threads_that_read_write_and_rename_meet_their_own_files() {
        let dir = tempfile::tempdir().unwrap();
        let vfs = RealVfs::with_limit(false, 6);
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let (vfs, root) = (vfs.clone(), dir.path().to_owned());
                scope.spawn(move || {
                    let mut at = root.join(format!("d{thread}-0"));
                    vfs.create_dir_all(&at).unwrap();
                    let files = fill(&vfs, &at, 12);
                    for round in 1..60u32 {
                        for (file, n) in files.iter().zip(0..12u32) {
                            assert_eq!(
                                number(file),
                                if round == 1 { n } else { n + thread * 100 + round - 1 }
                            );
                            file.write_at(&(n + thread * 100 + round).to_le_bytes(), 0).unwrap();
                        }
                        let next = root.join(format!("d{thread}-{round}"));
                        vfs.rename(&at, &next).unwrap();
                        at = next;
                    }
                    vfs.remove_dir_all(&at).unwrap();
                });
            }
        });
        assert_eq!(open_now(&vfs), 0);
    }
}
