//! A file of the operating system, through the page cache or past it.
//!
//! **Direct I/O** wants offset, length and memory aligned. Memory is aligned by copying through a
//! buffer of the thread. A read is rounded outward. Of a write, the whole pages go direct, and what is
//! left at either end goes through a second, buffered handle. The two stay coherent: the system writes
//! dirty pages of a range back before it reads that range directly, and drops them from its cache when
//! it writes there directly; and no direct write ever covers a page of which it does not own all bytes.
//! Where the file system refuses direct I/O, at opening or later, everything is buffered.

use super::{File, OpenMode};
use pando_base::limits::PAGE_BYTES;
use pando_base::observer::{self, FileMark, FileOperation};
use pando_base::{pause, Error, Result};
use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Files are for the server's user and group, as the server makes its own.
const FILE_MODE: u32 = 0o660;

/// Largest direct I/O; longer ones are split.
const DIRECT_BYTES_MAX: usize = 1 << 20;

const PAGE: usize = PAGE_BYTES as usize;

#[derive(Debug)]
pub(super) struct RealFile {
    path: PathBuf,
    buffered: fs::File,
    /// The handle past the page cache, if there is one.
    direct: Option<fs::File>,
    /// Set when the file system took `O_DIRECT` at opening and refused an I/O later.
    direct_refused: AtomicBool,
    /// What it is to the observer.
    mark: FileMark,
}

impl Drop for RealFile {
    fn drop(&mut self) {
        if let Some(observer) = observer::get().filter(|_| self.mark != 0) {
            observer.file_closed(self.mark);
        }
    }
}

impl RealFile {
    pub(super) fn open(path: &Path, mode: OpenMode, direct_io: bool) -> io::Result<RealFile> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).mode(FILE_MODE);
        match mode {
            OpenMode::Existing => {}
            OpenMode::Create => _ = options.create_new(true),
            OpenMode::CreateOrOpen => _ = options.create(true),
        }
        let buffered = options.open(path)?;
        let direct = match open_direct_if(direct_io, path, &buffered) {
            Ok(direct) => direct,
            Err(error) => {
                if mode == OpenMode::Create {
                    // Best effort: it was not there before.
                    let _ = remove_new(path);
                }
                return Err(error);
            }
        };
        let mark = observer::get().map_or(0, |observer| observer.file_opened(path));
        Ok(RealFile { path: path.to_owned(), buffered, direct, direct_refused: AtomicBool::new(false), mark })
    }

    /// Device and inode: what tells the file from all others.
    pub(super) fn identity(&self) -> io::Result<(u64, u64)> {
        let metadata = self.buffered.metadata()?;
        Ok((metadata.dev(), metadata.ino()))
    }

    /// How many file descriptors it holds.
    pub(super) fn descriptors(&self) -> usize {
        1 + usize::from(self.direct.is_some())
    }

    fn direct(&self) -> Option<&fs::File> {
        self.direct.as_ref().filter(|_| !self.direct_refused.load(Ordering::Relaxed))
    }

    fn error(&self, op: &'static str, offset: u64, error: io::Error) -> Error {
        Error::io(op, &self.path, offset, error)
    }

    /// Runs direct I/O; `None` if there is none, or the file system refuses it after all.
    fn try_direct<T>(&self, io: impl FnOnce(&fs::File) -> io::Result<T>) -> Option<io::Result<T>> {
        match io(self.direct()?) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.direct_refused.store(true, Ordering::Relaxed);
                None
            }
            result => Some(result),
        }
    }

    /// Writes whole pages.
    fn write_pages(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.try_direct(|file| write_direct(file, buf, offset))
            .unwrap_or_else(|| self.buffered.write_all_at(buf, offset))
    }

    fn write_all(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let head = (offset.next_multiple_of(PAGE_BYTES) - offset) as usize;
        if self.direct().is_none() || buf.len() < head + PAGE {
            return self.buffered.write_all_at(buf, offset);
        }
        let (head, rest) = buf.split_at(head);
        let (pages, tail) = rest.split_at(rest.len() / PAGE * PAGE);
        let pages_offset = offset + head.len() as u64;
        if !head.is_empty() {
            self.buffered.write_all_at(head, offset)?;
        }
        self.write_pages(pages, pages_offset)?;
        if !tail.is_empty() {
            self.buffered.write_all_at(tail, pages_offset + pages.len() as u64)?;
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the vfs")]
fn remove_new(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

fn open_direct_if(wanted: bool, path: &Path, buffered: &fs::File) -> io::Result<Option<fs::File>> {
    match wanted {
        true => open_direct(path, buffered),
        false => Ok(None),
    }
}

/// A second handle with `O_DIRECT` to the file just opened; `None` where it is not to be had.
fn open_direct(path: &Path, buffered: &fs::File) -> io::Result<Option<fs::File>> {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    let direct = match fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
        Err(error) => return Err(error),
    };
    let (a, b) = (buffered.metadata()?, direct.metadata()?);
    if (a.dev(), a.ino()) != (b.dev(), b.ino()) {
        return Err(io::Error::other("the file was replaced while it was opened"));
    }
    Ok(Some(direct))
}

thread_local! {
    /// Memory for aligned I/O, kept by the thread: at most `DIRECT_BYTES_MAX` and a page.
    static ALIGNED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Lends the thread's buffer: `len` bytes, page-aligned.
fn with_aligned<T>(len: usize, f: impl FnOnce(&mut [u8]) -> T) -> T {
    ALIGNED.with_borrow_mut(|memory| {
        if memory.len() < len + PAGE {
            memory.resize(len + PAGE, 0);
        }
        let start = memory.as_ptr().align_offset(PAGE);
        f(&mut memory[start..start + len])
    })
}

/// Reads until `buf` is full or the file ends.
fn read_full(file: &fs::File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A direct read that ended within a page reached the end of the file; what is refused
            // is only to go on from there.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput && done % PAGE != 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

fn read_direct(file: &fs::File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        let at = offset + done as u64;
        let start = at / PAGE_BYTES * PAGE_BYTES;
        let skip = (at - start) as usize;
        let want = (skip + buf.len() - done).next_multiple_of(PAGE).min(DIRECT_BYTES_MAX);
        let got = with_aligned(want, |aligned| -> io::Result<usize> {
            let got = read_full(file, aligned, start)?;
            let usable = aligned[..got].get(skip..).unwrap_or(&[]);
            let n = usable.len().min(buf.len() - done);
            buf[done..done + n].copy_from_slice(&usable[..n]);
            done += n;
            Ok(got)
        })?;
        if got < want {
            break;
        }
    }
    Ok(done)
}

fn write_direct(file: &fs::File, buf: &[u8], offset: u64) -> io::Result<()> {
    let mut at = offset;
    for chunk in buf.chunks(DIRECT_BYTES_MAX) {
        if chunk.as_ptr().align_offset(PAGE) == 0 {
            file.write_all_at(chunk, at)?;
        } else {
            with_aligned(chunk.len(), |aligned| {
                aligned.copy_from_slice(chunk);
                file.write_all_at(aligned, at)
            })?;
        }
        at += chunk.len() as u64;
    }
    Ok(())
}

/// `fallocate`, again when a signal came between; false where the file system has no such thing.
fn fallocate(file: &fs::File, flags: rustix::fs::FallocateFlags, offset: u64, len: u64) -> io::Result<bool> {
    use rustix::io::Errno;
    loop {
        match rustix::fs::fallocate(file, flags, offset, len) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

impl File for RealFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        pause(16);
        observer::during(self.mark, FileOperation::Read, buf.len(), || {
            self.try_direct(|file| read_direct(file, buf, offset))
                .unwrap_or_else(|| read_full(&self.buffered, buf, offset))
        })
        .map_err(|e| self.error("read", offset, e))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        pause(16);
        observer::during(self.mark, FileOperation::Write, buf.len(), || self.write_all(buf, offset))
            .map_err(|e| self.error("write", offset, e))
    }

    fn sync(&self) -> Result<()> {
        pause(16);
        // Errors of writing back are told to each handle once. All such writing is of what went
        // through the buffered handle; what went direct was reported by its write.
        observer::during(self.mark, FileOperation::Sync, 0, || self.buffered.sync_data())
            .map_err(|e| self.error("sync", 0, e))
    }

    fn len(&self) -> Result<u64> {
        Ok(self.buffered.metadata().map_err(|e| self.error("stat", 0, e))?.len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.buffered.set_len(len).map_err(|e| self.error("set length", len, e))
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        let failed = |e| self.error("reserve space", offset, e);
        if len == 0
            || fallocate(&self.buffered, rustix::fs::FallocateFlags::empty(), offset, len).map_err(failed)?
        {
            return Ok(());
        }
        if self.len()? < offset + len {
            self.set_len(offset + len)?;
        }
        Ok(())
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        use rustix::fs::FallocateFlags;
        if len > 0 {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.buffered, flags, offset, len).map_err(|e| self.error("punch hole", offset, e))?;
        }
        Ok(())
    }

    fn allocated_bytes(&self) -> Result<u64> {
        Ok(self.buffered.metadata().map_err(|e| self.error("stat", 0, e))?.blocks() * 512)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file in a directory of its own.
    fn open(direct_io: bool) -> (tempfile::TempDir, RealFile) {
        let dir = tempfile::tempdir().unwrap();
        let file = RealFile::open(&dir.path().join("f"), OpenMode::Create, direct_io).unwrap();
        (dir, file)
    }

    #[test]
    fn reads_are_short_only_at_the_end_of_the_file() {
        for direct_io in [false, true] {
            let (_dir, file) = open(direct_io);
            file.write_at(&[7; 5000], 0).unwrap();
            let mut buf = [0; 3000];
            assert_eq!(file.read_at(&mut buf, 100).unwrap(), 3000);
            assert_eq!(file.read_at(&mut buf, 4000).unwrap(), 1000);
            assert_eq!(file.read_at(&mut buf, 5000).unwrap(), 0);
            assert_eq!(file.read_at(&mut buf, 1 << 40).unwrap(), 0);
            let text = file.read_exact_at(&mut buf, 4000).unwrap_err().to_string();
            assert!(
                text.contains("offset 4000") && text.contains("expected 3000 bytes, found 1000"),
                "{text}"
            );
        }
    }

    #[test]
    fn reserved_space_is_on_the_disk_and_punched_space_is_not() {
        let (_dir, file) = open(true);
        file.preallocate(4 << 20).unwrap();
        file.preallocate(1 << 20).unwrap();
        assert_eq!(file.len().unwrap(), 4 << 20);
        let full = file.allocated_bytes().unwrap();
        file.write_at(&[1; 8192], 1 << 20).unwrap();
        file.punch_hole(1 << 20, 2 << 20).unwrap();
        assert_eq!(file.len().unwrap(), 4 << 20);
        let punched = file.allocated_bytes().unwrap();
        if full >= 4 << 20 {
            assert!(punched <= full - (2 << 20), "{punched} of {full}");
            let mut buf = [9; 8192];
            file.read_exact_at(&mut buf, 1 << 20).unwrap();
            assert_eq!(buf, [0; 8192]);
        }
        file.set_len(4096).unwrap();
        file.sync().unwrap();
        assert_eq!(file.len().unwrap(), 4096);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn direct_and_unaligned_io_agree_with_bytes_in_memory(
            ops in proptest::collection::vec((any::<bool>(), 0..40_000usize, 0..30_000usize, any::<u8>(), any::<bool>()), 1..40),
        ) {
            let (_dir, file) = open(true);
            let mut model: Vec<u8> = Vec::new();
            for (write, offset, len, byte, aligned) in ops {
                let round = |n: usize| if aligned { n / PAGE * PAGE } else { n };
                let (offset, len) = (round(offset), round(len));
                if write && len > 0 {
                    model.resize(model.len().max(offset + len), 0);
                    let bytes: Vec<u8> = (0..len).map(|i| byte.wrapping_add(i as u8)).collect();
                    model[offset..offset + len].copy_from_slice(&bytes);
                    file.write_at(&bytes, offset as u64).unwrap();
                } else {
                    let mut buf = vec![0; len];
                    let n = file.read_at(&mut buf, offset as u64).unwrap();
                    let want = model.get(offset..).unwrap_or(&[]);
                    prop_assert_eq!(n, want.len().min(len));
                    prop_assert_eq!(&buf[..n], &want[..n]);
                }
                prop_assert_eq!(file.len().unwrap(), model.len() as u64);
            }
        }
    }

    #[test]
    fn io_longer_than_the_aligned_buffer_is_split() {
        let (_dir, file) = open(true);
        let bytes: Vec<u8> = (0..3 * DIRECT_BYTES_MAX + 777).map(|i| ((i * 31) >> 3) as u8).collect();
        file.write_at(&bytes, 123).unwrap();
        let mut back = vec![0; bytes.len()];
        file.read_exact_at(&mut back, 123).unwrap();
        assert!(back == bytes);
    }
}
