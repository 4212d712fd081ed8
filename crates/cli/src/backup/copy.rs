//! Copies of files, with checksums.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use pandodb::{PinnedCopy, NOTE_OF_NEXT_FILE};
use xxhash_rust::xxh3::{xxh3_64, Xxh3};

use super::manifest::{ExtentEntry, FileEntry};
use super::progress::Progress;
use super::stream::Archive;
use super::{at, fail, Outcome};

/// A superblock's page.
const SLOT_BYTES: usize = 4096;
/// What all blocks of tree files begin with, and where they say whose they are.
const MAGIC: &[u8] = b"PNDO";
const OWNER: std::ops::Range<usize> = 8..16;
/// Bytes read and written at once.
const PIECE_BYTES: usize = 4 << 20;

fn hex(checksum: u64) -> String {
    format!("{checksum:016x}")
}

fn create(path: &Path) -> Outcome<File> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(at(parent))?;
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(at(path))?;
    Ok(file)
}

/// Copies a file and syncs the copy; `name` is what the manifest calls it.
pub fn plain(from: &Path, to: &Path, name: &str, progress: &mut Progress) -> Outcome<FileEntry> {
    copy(from, to, None, name, progress)
}

/// Copies the first `bytes` of a file of the log, without what it notes of a next one, which the backup need not have.
pub fn log(from: &Path, to: &Path, bytes: u64, name: &str, progress: &mut Progress) -> Outcome<FileEntry> {
    copy(from, to, Some(bytes), name, progress)
}

fn copy(
    from: &Path,
    to: &Path,
    log_bytes: Option<u64>,
    name: &str,
    progress: &mut Progress,
) -> Outcome<FileEntry> {
    let mut source = File::open(from).map_err(at(from))?;
    let mut target = create(to)?;
    let mut left = log_bytes.unwrap_or(u64::MAX);
    let blank = log_bytes.map_or(0..0, |_| NOTE_OF_NEXT_FILE);
    let (mut hash, mut copied) = (Xxh3::new(), 0u64);
    let mut piece = vec![0; PIECE_BYTES];
    while left > 0 {
        let wanted = left.min(piece.len() as u64) as usize;
        let count = source.read(&mut piece[..wanted]).map_err(at(from))?;
        if count == 0 {
            break;
        }
        let within = |at: u64| at.saturating_sub(copied).min(count as u64) as usize;
        piece[within(blank.start)..within(blank.end)].fill(0);
        target.write_all(&piece[..count]).map_err(at(to))?;
        hash.update(&piece[..count]);
        copied += count as u64;
        left -= count as u64;
        progress.add(count as u64);
    }
    if let Some(bytes) = log_bytes.filter(|bytes| *bytes != copied) {
        return fail(format!("{}: {copied} bytes instead of {bytes}", from.display()));
    }
    target.sync_all().map_err(at(to))?;
    Ok(FileEntry {
        path: name.to_owned(),
        bytes: copied,
        xxh3: hex(hash.digest()),
        dict: None,
        extents: Vec::new(),
    })
}

/// Checksum of a whole file.
pub fn checksum(path: &Path, name: &str) -> Outcome<FileEntry> {
    let mut file = File::open(path).map_err(at(path))?;
    let (mut hash, mut bytes) = (Xxh3::new(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = file.read(&mut piece).map_err(at(path))?;
        if count == 0 {
            break;
        }
        hash.update(&piece[..count]);
        bytes += count as u64;
    }
    Ok(FileEntry { path: name.to_owned(), bytes, xxh3: hex(hash.digest()), dict: None, extents: Vec::new() })
}

/// Opens the file of a dictionary; `None` if there is none of this name, or it is that of another one now. Whatever happens to its
/// name afterwards, what was opened stays the same.
pub fn open_tree(path: &Path, dict: u64) -> Outcome<Option<File>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(path)(error)),
    };
    let mut slots = [0; 2 * SLOT_BYTES];
    file.read_exact_at(&mut slots, 0).map_err(at(path))?;
    // One of them may be in the middle of being written.
    let is_its = |slot: &[u8]| slot.starts_with(MAGIC) && slot.get(OWNER) == Some(&dict.to_le_bytes()[..]);
    let (first, second) = slots.split_at(SLOT_BYTES);
    Ok((is_its(first) || is_its(second)).then_some(file))
}

/// A pinned tree file: what to copy of it, how the manifest calls it, and what an earlier backup has of it.
pub struct Tree<'a> {
    /// Where it was found, for errors.
    pub path: &'a Path,
    /// The file itself.
    pub source: File,
    /// Its parts.
    pub copy: &'a PinnedCopy,
    /// What the manifest calls it.
    pub name: &'a str,
    /// Its dictionary.
    pub dict: u64,
    /// What is known of it.
    pub base: Option<&'a FileEntry>,
}

impl Tree<'_> {
    /// Goes over its parts in order; `take` gets those that are not in the backup before, with their offsets.
    fn parts(
        &self,
        progress: &mut Progress,
        mut take: impl FnMut(u64, &[u8]) -> Outcome<()>,
    ) -> Outcome<FileEntry> {
        for (offset, page) in &self.copy.slots {
            take(*offset, page)?;
        }
        let known: HashMap<u64, &ExtentEntry> = (self.base)
            .map(|base| base.extents.iter().map(|extent| (extent.0, extent)).collect())
            .unwrap_or_default();
        let mut piece = Vec::new();
        let mut extents = Vec::with_capacity(self.copy.places.len());
        for place in &self.copy.places {
            // An extent is at most some tens of megabytes.
            piece.resize(place.len as usize, 0);
            self.source.read_exact_at(&mut piece, place.offset).map_err(at(self.path))?;
            let sum = hex(xxh3_64(&piece));
            let before = known.get(&place.offset).filter(|known| known.1 == place.len && known.2 == sum);
            if before.is_none() {
                take(place.offset, &piece)?;
            }
            extents.push(ExtentEntry(place.offset, place.len, sum, u8::from(before.is_none())));
            progress.add(place.len);
        }
        let xxh3 = hex(slots_checksum(&self.copy.slots[0].1, &self.copy.slots[1].1));
        let (path, bytes) = (self.name.to_owned(), self.copy.file_bytes);
        Ok(FileEntry { path, bytes, xxh3, dict: Some(self.dict), extents })
    }

    /// Copies it into a sparse file.
    pub fn into_file(self, to: &Path, progress: &mut Progress) -> Outcome<FileEntry> {
        let target = create(to)?;
        target.set_len(self.copy.file_bytes).map_err(at(to))?;
        let entry =
            self.parts(progress, |offset, bytes| target.write_all_at(bytes, offset).map_err(at(to)))?;
        target.sync_all().map_err(at(to))?;
        Ok(entry)
    }

    /// Copies it into a stream, with zeros where it has nothing.
    pub fn into_stream(self, archive: &mut Archive, progress: &mut Progress) -> Outcome<FileEntry> {
        let mut out = archive.begin(self.name, self.copy.file_bytes)?;
        let mut done = 0;
        let entry = self.parts(progress, |offset, bytes| {
            let gap = offset.checked_sub(done).ok_or("extents that overlap")?;
            io::copy(&mut io::repeat(0).take(gap), &mut out)?;
            out.write_all(bytes)?;
            done = offset + bytes.len() as u64;
            Ok(())
        })?;
        io::copy(&mut io::repeat(0).take(self.copy.file_bytes.saturating_sub(done)), &mut out)?;
        archive.end(self.copy.file_bytes)?;
        Ok(entry)
    }
}

fn slots_checksum(first: &[u8], second: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(first);
    hash.update(second);
    hash.digest()
}

/// Reads a tree file of a backup and compares its checksums; with `to`, writes what it has there.
pub fn check_tree(
    path: &Path,
    entry: &FileEntry,
    to: Option<(&Path, &File)>,
    progress: &mut Progress,
) -> Outcome<()> {
    let file = File::open(path).map_err(at(path))?;
    let bytes = file.metadata().map_err(at(path))?.len();
    if bytes != entry.bytes {
        return fail(format!("{}: {bytes} bytes instead of {}", path.display(), entry.bytes));
    }
    let write = |piece: &[u8], offset: u64| match to {
        Some((path, target)) => target.write_all_at(piece, offset).map_err(at(path)),
        None => Ok(()),
    };
    let mut slots = vec![0; 2 * SLOT_BYTES];
    file.read_exact_at(&mut slots, 0).map_err(at(path))?;
    let (first, second) = slots.split_at(SLOT_BYTES);
    if hex(slots_checksum(first, second)) != entry.xxh3 {
        return fail(format!("{}: the superblocks have another checksum", path.display()));
    }
    write(&slots, 0)?;
    let mut piece = Vec::new();
    for ExtentEntry(offset, len, sum, is_here) in &entry.extents {
        if *is_here == 0 {
            continue;
        }
        if offset.checked_add(*len).is_none_or(|end| end > bytes) {
            return fail(format!("{}: the manifest has an extent behind its end", path.display()));
        }
        piece.resize(*len as usize, 0);
        file.read_exact_at(&mut piece, *offset).map_err(at(path))?;
        if hex(xxh3_64(&piece)) != *sum {
            return fail(format!("{}: the bytes at offset {offset} have another checksum", path.display()));
        }
        write(&piece, *offset)?;
        progress.add(*len);
    }
    Ok(())
}

/// Reads a plain file of a backup and compares its checksum; with `to`, copies it there.
pub fn check_plain(
    path: &Path,
    entry: &FileEntry,
    to: Option<&Path>,
    progress: &mut Progress,
) -> Outcome<()> {
    let found = match to {
        Some(to) => plain(path, to, &entry.path, progress)?,
        None => checksum(path, &entry.path)?,
    };
    if found.bytes != entry.bytes {
        return fail(format!("{}: {} bytes instead of {}", path.display(), found.bytes, entry.bytes));
    }
    match found.xxh3 == entry.xxh3 {
        true => Ok(()),
        false => fail(format!("{}: it has another checksum", path.display())),
    }
}
