//! A file system over another one: what is changed stays in memory, and the one below is only read.
//!
//! For a start in spite of damage: recovery and whoever reads do what they always do, and what is on the disk stays evidence.
//! Pages that were written are kept one by one for each file; a name is a file with such pages, a new directory, or gone.
//! Directories that are below cannot be renamed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_base::locks::{Mutex, RwLock};
use pando_base::{Error, Result};

use super::{DirEntry, File, LockFile, OpenMode, Vfs};

const PAGE_BYTES: u64 = 4096;

/// See the head of this file.
#[derive(Debug)]
pub struct ShadowVfs {
    below: Arc<dyn Vfs>,
    /// What has been opened, made, renamed or removed.
    names: Mutex<HashMap<PathBuf, Name>>,
}

#[derive(Clone, Debug)]
enum Name {
    File(Arc<Content>),
    /// What is below it under its name is not in it.
    NewDir,
    Gone,
}

/// A file, whatever its name.
#[derive(Debug)]
struct Content {
    below: Option<Arc<dyn File>>,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    len: u64,
    /// So much of the file below is still part of it.
    below_len: u64,
    /// Pages that were written, by number.
    pages: BTreeMap<u64, Box<[u8]>>,
}

/// A handle.
#[derive(Debug)]
struct ShadowFile {
    path: PathBuf,
    content: Arc<Content>,
}

impl ShadowVfs {
    /// Nothing is changed yet.
    pub fn over(below: Arc<dyn Vfs>) -> Arc<ShadowVfs> {
        Arc::new(ShadowVfs { below, names: Mutex::default() })
    }

    /// Whether what the file system below has under this name is hidden.
    fn hides(names: &HashMap<PathBuf, Name>, path: &Path) -> bool {
        path.ancestors().find_map(|above| names.get(above)).is_some()
    }

    fn content(&self, names: &mut HashMap<PathBuf, Name>, path: &Path) -> Result<Arc<Content>> {
        if let Some(Name::File(content)) = names.get(path) {
            return Ok(content.clone());
        }
        if Self::hides(names, path) {
            return Err(not_found(path));
        }
        let below = self.below.open(path, OpenMode::Existing)?;
        let len = below.len()?;
        let state = RwLock::new(State { len, below_len: len, pages: BTreeMap::new() });
        let content = Arc::new(Content { below: Some(below), state });
        names.insert(path.to_owned(), Name::File(content.clone()));
        Ok(content)
    }

    fn is_there(&self, names: &HashMap<PathBuf, Name>, path: &Path) -> Result<bool> {
        match names.get(path) {
            Some(Name::File(_) | Name::NewDir) => Ok(true),
            _ if Self::hides(names, path) => Ok(false),
            _ => self.below.exists(path),
        }
    }
}

fn not_found(path: &Path) -> Error {
    Error::NotFound { what: path.display().to_string() }
}

impl Vfs for ShadowVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut names = self.names.lock();
        let is_there = self.is_there(&names, path)?;
        if is_there && mode == OpenMode::Create {
            return Err(Error::Exists { what: path.display().to_string() });
        }
        let content = if is_there || mode == OpenMode::Existing {
            self.content(&mut names, path)?
        } else {
            let content = Arc::new(Content { below: None, state: RwLock::default() });
            names.insert(path.to_owned(), Name::File(content.clone()));
            content
        };
        Ok(Arc::new(ShadowFile { path: path.to_owned(), content }))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let mut names = self.names.lock();
        if !self.is_there(&names, path)? {
            return Err(not_found(path));
        }
        names.insert(path.to_owned(), Name::Gone);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut names = self.names.lock();
        if matches!(names.get(from), Some(Name::NewDir)) || self.below.read_dir(from).is_ok() {
            let error = io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "nothing is written");
            return Err(Error::io("rename", from, 0, error));
        }
        let content = self.content(&mut names, from)?;
        names.insert(to.to_owned(), Name::File(content));
        names.insert(from.to_owned(), Name::Gone);
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut names = self.names.lock();
        let missing: Vec<PathBuf> = path
            .ancestors()
            .map_while(|dir| (!self.is_there(&names, dir).ok()?).then(|| dir.to_owned()))
            .collect();
        names.extend(missing.into_iter().filter(|dir| *dir != Path::new("")).map(|dir| (dir, Name::NewDir)));
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        let mut names = self.names.lock();
        if !self.is_there(&names, path)? {
            return Err(not_found(path));
        }
        names.retain(|name, _| !name.starts_with(path));
        names.insert(path.to_owned(), Name::Gone);
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let names = self.names.lock();
        if !self.is_there(&names, path)? {
            return Err(not_found(path));
        }
        let mut found: BTreeSet<DirEntry> = match Self::hides(&names, path) {
            true => BTreeSet::new(),
            false => self.below.read_dir(path)?.into_iter().collect(),
        };
        found.retain(|entry| !names.contains_key(&path.join(&entry.name)));
        for (child, name) in names.iter().filter(|(child, _)| child.parent() == Some(path)) {
            let Some(file_name) = child.file_name() else { continue };
            let is_dir = matches!(name, Name::NewDir);
            if !matches!(name, Name::Gone) {
                found.insert(DirEntry { name: file_name.to_string_lossy().into_owned(), is_dir });
            }
        }
        Ok(found.into_iter().collect())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.is_there(&self.names.lock(), path)
    }

    /// The lock is below, where others look for it.
    fn lock(&self, path: &Path) -> Result<LockFile> {
        self.below.lock(path)
    }

    fn now_micros(&self) -> u64 {
        self.below.now_micros()
    }
}

impl Content {
    /// Fills `buf` with what the file has at `offset`, zeros where it has nothing.
    fn read(&self, state: &State, buf: &mut [u8], offset: u64) -> Result<()> {
        buf.fill(0);
        let of_below = state.below_len.saturating_sub(offset).min(buf.len() as u64) as usize;
        if let (Some(below), Some(part)) =
            (&self.below, buf.get_mut(..of_below).filter(|part| !part.is_empty()))
        {
            below.read_at(part, offset)?;
        }
        let end = offset + buf.len() as u64;
        for (number, page) in state.pages.range(offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES)) {
            let start = number * PAGE_BYTES;
            let (from, to) = (start.max(offset), (start + PAGE_BYTES).min(end));
            let source = page.get((from - start) as usize..(to - start) as usize);
            let target = buf.get_mut((from - offset) as usize..(to - offset) as usize);
            if let (Some(source), Some(target)) = (source, target) {
                target.copy_from_slice(source);
            }
        }
        Ok(())
    }

    fn write(&self, state: &mut State, buf: &[u8], offset: u64) -> Result<()> {
        let end = offset + buf.len() as u64;
        for number in offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            let start = number * PAGE_BYTES;
            if !state.pages.contains_key(&number) {
                let mut page = vec![0; PAGE_BYTES as usize];
                self.read(state, &mut page, start)?;
                state.pages.insert(number, page.into());
            }
            let (from, to) = (start.max(offset), (start + PAGE_BYTES).min(end));
            let source = buf.get((from - offset) as usize..(to - offset) as usize);
            let page = state
                .pages
                .get_mut(&number)
                .and_then(|page| page.get_mut((from - start) as usize..(to - start) as usize));
            if let (Some(source), Some(page)) = (source, page) {
                page.copy_from_slice(source);
            }
        }
        state.len = state.len.max(end);
        Ok(())
    }

    fn cut(&self, state: &mut State, len: u64) -> Result<()> {
        if len < state.len {
            let last = len / PAGE_BYTES;
            let rest = PAGE_BYTES - len % PAGE_BYTES;
            if rest < PAGE_BYTES {
                self.write(state, &vec![0; rest as usize], len)?;
            }
            state.pages.split_off(&(last + u64::from(rest < PAGE_BYTES)));
            state.below_len = state.below_len.min(len);
        }
        state.len = len;
        Ok(())
    }
}

impl File for ShadowFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let state = self.content.state.read();
        let len = state.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        if let Some(buf) = buf.get_mut(..len) {
            self.content.read(&state, buf, offset)?;
        }
        Ok(len)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.content.write(&mut self.content.state.write(), buf, offset)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.content.state.read().len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.content.cut(&mut self.content.state.write(), len)
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        let mut state = self.content.state.write();
        state.len = state.len.max(offset + len);
        Ok(())
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        let mut state = self.content.state.write();
        let len = len.min(state.len.saturating_sub(offset));
        let mut at = offset;
        while at < offset + len {
            let piece = (offset + len - at).min(1 << 20);
            self.content.write(&mut state, &vec![0; piece as usize], at)?;
            at += piece;
        }
        Ok(())
    }

    fn allocated_bytes(&self) -> Result<u64> {
        self.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::SimVfs;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn bytes(vfs: &dyn Vfs, path: &Path) -> Vec<u8> {
        let file = vfs.open(path, OpenMode::Existing).unwrap();
        let mut bytes = vec![1; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// Random changes give what they give on the disk, and the disk below has none of them.
    #[test]
    fn what_is_changed_is_seen_above_and_not_below() {
        let path = Path::new("/d/file");
        for seed in 0..40 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (below, twin): (Arc<dyn Vfs>, Arc<dyn Vfs>) = (SimVfs::new(seed), SimVfs::new(seed));
            let start: Vec<u8> = (0..rng.random_range(0..30_000u32)).map(|_| rng.random()).collect();
            for vfs in [&below, &twin] {
                vfs.create_dir_all(Path::new("/d")).unwrap();
                vfs.open(path, OpenMode::Create).unwrap().write_at(&start, 0).unwrap();
            }
            let above: Arc<dyn Vfs> = ShadowVfs::over(below.clone());
            for _ in 0..30 {
                let (kind, offset) = (rng.random_range(0..5), rng.random_range(0..40_000));
                let piece: Vec<u8> = (0..rng.random_range(1..9000u32)).map(|_| rng.random()).collect();
                let len = piece.len() as u64;
                for vfs in [&above, &twin] {
                    let file = vfs.open(path, OpenMode::Existing).unwrap();
                    match kind {
                        0 | 1 => file.write_at(&piece, offset).unwrap(),
                        2 => file.set_len(offset).unwrap(),
                        3 => file.preallocate(offset).unwrap(),
                        _ if offset + len <= file.len().unwrap() => file.punch_hole(offset, len).unwrap(),
                        _ => {}
                    }
                }
                assert_eq!(bytes(&*above, path), bytes(&*twin, path), "seed {seed}, kind {kind}");
            }
            assert_eq!(bytes(&*below, path), start);
        }
    }

    #[test]
    fn names_change_above_and_not_below() {
        let below: Arc<dyn Vfs> = SimVfs::new(1);
        let (a, b, dir) = (Path::new("/d/a"), Path::new("/d/b"), Path::new("/d"));
        below.create_dir_all(dir).unwrap();
        for (path, text) in [(a, b"a"), (b, b"b")] {
            below.open(path, OpenMode::Create).unwrap().write_at(text, 0).unwrap();
        }
        let above = ShadowVfs::over(below.clone());
        let names = |vfs: &dyn Vfs, dir: &Path| -> Vec<String> {
            vfs.read_dir(dir).unwrap().into_iter().map(|entry| entry.name).collect()
        };
        assert!(matches!(above.open(a, OpenMode::Create), Err(Error::Exists { .. })));
        above.rename(a, b).unwrap();
        assert_eq!((names(&*above, dir), bytes(&*above, b)), (vec!["b".to_owned()], b"a".to_vec()));
        assert!(matches!(above.open(a, OpenMode::Existing), Err(Error::NotFound { .. })));
        above.remove_file(b).unwrap();
        assert!(!above.exists(b).unwrap() && above.remove_file(b).is_err());
        above.open(b, OpenMode::CreateOrOpen).unwrap().write_at(b"new", 0).unwrap();
        let nested = Path::new("/d/x/y");
        above.create_dir_all(nested).unwrap();
        above.open(&nested.join("z"), OpenMode::Create).unwrap();
        assert_eq!(names(&*above, nested), ["z"]);
        assert_eq!(names(&*above, dir), ["b", "x"]);
        above.remove_dir_all(dir).unwrap();
        assert!(!above.exists(b).unwrap() && above.read_dir(dir).is_err());
        above.create_dir_all(dir).unwrap();
        assert!(names(&*above, dir).is_empty() && !above.exists(a).unwrap());
        assert_eq!(
            (names(&*below, dir), bytes(&*below, b)),
            (vec!["a".to_owned(), "b".to_owned()], b"b".to_vec())
        );
    }

    #[test]
    fn directories_below_keep_their_names() {
        let below: Arc<dyn Vfs> = SimVfs::new(1);
        below.create_dir_all(Path::new("/d/t")).unwrap();
        let above = ShadowVfs::over(below);
        assert!(above.rename(Path::new("/d/t"), Path::new("/d/u")).is_err());
        assert!(above.exists(Path::new("/d/t")).unwrap());
    }
}
