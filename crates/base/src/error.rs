//! The operating error: what can go wrong below transactions, each variant saying where (I8).
//! Expected outcomes (not found, duplicate, deadlock) are not errors of this kind, and bugs panic.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result with the operating error.
pub type Result<T> = std::result::Result<T, Error>;

/// An operating error. Cheap to clone, so that a latched error can be told to every client.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused a read, write, sync or directory operation.
    #[error("{op} of {} at offset {offset} failed: {source}", path.display())]
    Io {
        /// What was tried: "read", "write", "sync", "open"...
        op: &'static str,
        /// The file.
        path: PathBuf,
        /// Byte offset in the file, 0 where it has no meaning.
        offset: u64,
        /// The system's error.
        #[source]
        source: Arc<io::Error>,
    },
    /// No space on the device or over a quota. The engine goes on once there is space.
    #[error("no space left while trying to {op} {} at offset {offset}", path.display())]
    DiskFull {
        /// What was tried.
        op: &'static str,
        /// The file.
        path: PathBuf,
        /// Byte offset in the file.
        offset: u64,
    },
    /// Bytes on disk are not what was written: bad checksum, impossible structure, short file.
    #[error("corrupt data in {} at offset {offset}: {what}: expected {expected}, found {found}", path.display())]
    Corruption {
        /// The file.
        path: PathBuf,
        /// Byte offset of the block that is wrong.
        offset: u64,
        /// Which block or field.
        what: String,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A failed log write or sync put durability in doubt; nothing is accepted any more (I8).
    #[error("the engine is read-only since: {reason}")]
    ReadOnly {
        /// The first failure, as told then.
        reason: String,
    },
    /// A key, value or request beyond `limits`.
    #[error("{what} of {size} bytes is over the limit of {limit}")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The object is not there: a table was dropped, an id is unknown.
    #[error("{what} does not exist")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// A prepared transaction without a connection has changed it.
    #[error("{what} is in use by a prepared transaction")]
    InUse {
        /// What was to be taken away.
        what: String,
    },
    /// An object of that name is there already.
    #[error("{what} exists already")]
    Exists {
        /// What was to be created.
        what: String,
    },
    /// A key of encryption is missing, or is not the one that something was encrypted with. Nothing is damaged: with
    /// the key it can be read.
    #[error("{} needs encryption key {key_id}{}: {reason}", path.display(), of_version(*version))]
    Key {
        /// The file that is encrypted.
        path: PathBuf,
        /// The key's number.
        key_id: u32,
        /// Its version; 0 for the newest there is.
        version: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// A later release wrote it, in a format that this one does not know. Nothing is damaged: that release reads it.
    #[error(
        "{} was written by a newer PANDO: its {what} has format version {version}, this plugin knows up to {known}; \
         use the newer plugin",
        path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Byte offset of the block.
        offset: u64,
        /// Which block.
        what: String,
        /// Its version.
        version: u32,
        /// The newest version that is known here.
        known: u32,
    },
    /// It can be asked for, but not be done this way.
    #[error("{what}")]
    Unsupported {
        /// What and why.
        what: String,
    },
    /// The caller has made a mistake: what it gave does not belong together, or there is no such thing. Nothing was done.
    #[error("{what}")]
    Argument {
        /// What is wrong with it.
        what: String,
    },
    /// Somebody has the database open.
    #[error("the database is in use, by another process or by this one: {} is locked", path.display())]
    Locked {
        /// The file that is locked while a database is open.
        path: PathBuf,
    },
}

fn of_version(version: u32) -> String {
    match version {
        0 => String::new(),
        version => format!(", version {version}"),
    }
}

impl Error {
    /// A mistake of the caller.
    pub fn argument(what: impl Into<String>) -> Error {
        Error::Argument { what: what.into() }
    }

    /// Wraps a system error, telling a full disk from the rest.
    pub fn io(op: &'static str, path: &Path, offset: u64, source: io::Error) -> Error {
        let full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            || matches!(source.raw_os_error(), Some(28 | 122));
        if full {
            Error::DiskFull { op, path: path.to_owned(), offset }
        } else {
            Error::Io { op, path: path.to_owned(), offset, source: Arc::new(source) }
        }
    }

    /// A block or field of a file that is not what was written.
    pub fn corruption(
        path: &Path,
        offset: u64,
        what: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
    ) -> Error {
        Error::Corruption {
            path: path.to_owned(),
            offset,
            what: what.into(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// Whether the same request may succeed later without repair (a full disk).
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::DiskFull { .. })
    }

    /// Whether a file is damaged or lost, for all that its bytes tell. What the system refuses (EIO, no permission) may be read later,
    /// and what a newer release wrote by that release.
    pub fn is_damage(&self) -> bool {
        const EISDIR: i32 = 21;
        match self {
            Error::Corruption { .. } | Error::NotFound { .. } => true,
            Error::Io { source, .. } => source.raw_os_error() == Some(EISDIR),
            _ => false,
        }
    }

    /// Whether the system lacked something for the moment (space, open files, memory) or was interrupted. Such a request
    /// has done nothing, unless it was a sync: it may be made again as it was.
    pub fn is_shortage(&self) -> bool {
        const EINTR: i32 = 4;
        const EAGAIN: i32 = 11;
        const ENOMEM: i32 = 12;
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        match self {
            Error::DiskFull { .. } => true,
            Error::Io { source, .. } => {
                matches!(source.raw_os_error(), Some(EINTR | EAGAIN | ENOMEM | ENFILE | EMFILE))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_system_errors() {
        let full = Error::io("write", Path::new("/t/main.pando"), 4096, io::Error::from_raw_os_error(28));
        assert!(matches!(full, Error::DiskFull { offset: 4096, .. }), "{full}");
        let other = Error::io("write", Path::new("/t/main.pando"), 0, io::Error::from_raw_os_error(5));
        assert!(matches!(other, Error::Io { .. }), "{other}");
        assert!(full.is_shortage() && !other.is_shortage());
        assert!(!other.is_damage() && !full.is_damage());
        let no_files = Error::io("open", Path::new("/t/main.pando"), 0, io::Error::from_raw_os_error(24));
        assert!(no_files.is_shortage() && !no_files.is_transient(), "{no_files}");
    }

    #[test]
    fn what_a_newer_release_wrote_is_no_damage_and_names_file_and_versions() {
        let path = Path::new("/t/main.pando").to_owned();
        let newer = Error::NewerFormat { path, offset: 4096, what: "node".into(), version: 9, known: 3 };
        assert!(!newer.is_damage() && !newer.is_shortage());
        let text = newer.to_string();
        for part in ["/t/main.pando", "newer PANDO", "its node", "version 9", "up to 3"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn corruption_names_file_offset_expected_and_found() {
        let text =
            Error::corruption(Path::new("/t/main.pando"), 8192, "block checksum", "1", "2").to_string();
        for part in ["/t/main.pando", "8192", "block checksum", "expected 1", "found 2"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
