//! Where commands write to.
//!
//! - [`stdout`] and [`stderr`] remember when nobody reads on, as behind `pando export | head`. The program ends without a word then, as
//!   others do.
//! - [`NewFile`] is there when it is whole, or not at all.

use std::fs::{self, File};
use std::io::{self, Stderr, Stdout, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{linkat, open, AtFlags, Mode, OFlags, CWD};

use crate::backup::{at, Outcome};

/// What a shell tells of a program that the signal SIGPIPE has ended.
pub const STATUS_OF_SIGPIPE: u8 = 128 + 13;

static READER_IS_GONE: AtomicBool = AtomicBool::new(false);

/// Whether a write failed because nobody reads standard output or standard error any more.
pub fn reader_is_gone() -> bool {
    READER_IS_GONE.load(Ordering::Relaxed)
}

/// An output that somebody reads.
#[derive(Debug)]
pub struct Watched<W>(W);

/// Standard output.
pub fn stdout() -> Watched<Stdout> {
    Watched(io::stdout())
}

/// Standard error.
pub fn stderr() -> Watched<Stderr> {
    Watched(io::stderr())
}

impl<W> Watched<W> {
    fn noted<T>(result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            READER_IS_GONE.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::noted(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::noted(self.0.flush())
    }
}

/// A file that gets its name when it is whole. Until then it has none, so that nothing is left of a program that is killed; where the file
/// system has no such files, its name is that of the file with `.part`, and it is removed if anything fails.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: File,
    part: Option<PathBuf>,
}

impl NewFile {
    /// Begins one. A file that is there is not touched.
    ///
    /// # Errors
    /// There is one, or it cannot be made.
    pub fn begin(path: &Path) -> Outcome<NewFile> {
        refuse_another(path)?;
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match open(dir_of(path), flags, Mode::from_raw_mode(0o666)) {
            Ok(file) if Path::new("/proc/self/fd").exists() => {
                Ok(NewFile { path: path.to_owned(), file: file.into(), part: None })
            }
            _ => NewFile::begin_with_name(path),
        }
    }

    fn begin_with_name(path: &Path) -> Outcome<NewFile> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = File::create_new(&part).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => format!(
                "{}: there is such a file already: another pando writes it, or one was killed and it is to be removed",
                part.display()
            ),
            _ => format!("{}: {error}", part.display()),
        })?;
        Ok(NewFile { path: path.to_owned(), file, part: Some(part) })
    }

    /// What its content is written to.
    ///
    /// # Errors
    /// Those of the system.
    pub fn writer(&self) -> Outcome<File> {
        self.file.try_clone().map_err(at(&self.path))
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// It cannot be made durable, or somebody has made a file of this name meanwhile. It is gone then.
    pub fn finish(mut self) -> Outcome<()> {
        self.file.sync_all().map_err(at(&self.path))?;
        match &self.part {
            None => {
                use std::os::fd::AsRawFd as _;
                let unnamed = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                linkat(CWD, unnamed, CWD, &self.path, AtFlags::SYMLINK_FOLLOW).map_err(at(&self.path))?;
            }
            Some(part) => {
                refuse_another(&self.path)?;
                fs::rename(part, &self.path).map_err(at(&self.path))?;
            }
        }
        self.part = None;
        let dir = dir_of(&self.path);
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(at(dir))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}

fn refuse_another(path: &Path) -> Outcome<()> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(format!("{}: there is such a file already", path.display()).into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(at(path)(error)),
    }
}

fn dir_of(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_file_is_there_when_it_is_whole_and_otherwise_not_at_all() {
        type Begin = fn(&Path) -> Outcome<NewFile>;
        for begin in [NewFile::begin as Begin, NewFile::begin_with_name] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("rows.csv");
            let file = begin(&path).unwrap();
            file.writer().unwrap().write_all(b"half").unwrap();
            assert!(!path.exists());
            drop(file);
            assert_eq!(names(dir.path()), [""; 0]);

            let file = begin(&path).unwrap();
            file.writer().unwrap().write_all(b"all").unwrap();
            file.finish().unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"all");
            assert_eq!(names(dir.path()), ["rows.csv"]);
        }
    }

    #[test]
    fn a_file_that_is_there_is_not_touched_whenever_it_was_made() {
        type Begin = fn(&Path) -> Outcome<NewFile>;
        for begin in [NewFile::begin as Begin, NewFile::begin_with_name] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("rows.csv");
            let file = begin(&path).unwrap();
            file.writer().unwrap().write_all(b"mine").unwrap();
            fs::write(&path, "other").unwrap();
            assert!(file.finish().is_err());
            assert!(NewFile::begin(&path).is_err());
            assert_eq!(fs::read(&path).unwrap(), b"other");
            assert_eq!(names(dir.path()), ["rows.csv"]);
        }
    }

    #[test]
    fn a_part_that_is_there_is_somebody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.csv");
        let first = NewFile::begin_with_name(&path).unwrap();
        assert!(NewFile::begin_with_name(&path).is_err());
        assert_eq!(names(dir.path()), ["rows.csv.part"]);
        first.finish().unwrap();
    }
}
