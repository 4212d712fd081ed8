//! What functions answer, and the one place where the engine's errors become numbers.

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::path::Path;
use std::sync::OnceLock;

use pandodb::{EngineError, Error};

use crate::bytes::PandoBytes;
use crate::guard::{contain, guard};

/// The answer of a function. The first three are ordinary outcomes, the others are told to clients
/// (the plugin's table `error_map` has the server's number for each).
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PandoStatus {
    /// Done.
    Ok = 0,
    /// No such row, or no more rows.
    NotFound = 1,
    /// The row is locked by another transaction and SKIP LOCKED was asked for.
    Skipped = 2,
    /// A unique key exists already; see `pando_txn_duplicate`.
    Duplicate = 3,
    /// Chosen as the victim of a deadlock: the transaction must be rolled back.
    Deadlock = 4,
    /// A lock was not granted in time.
    LockTimeout = 5,
    /// The connection was killed.
    Killed = 6,
    /// NOWAIT, and the lock is held by another transaction.
    WouldBlock = 7,
    /// No space left on the device; goes on when there is space.
    DiskFull = 8,
    /// Bytes on disk are not what was written.
    Corruption = 9,
    /// The database accepts no writes since a failed write or sync of its log.
    ReadOnly = 10,
    /// The operating system refused an operation.
    Io = 11,
    /// A key or row is beyond the limits.
    TooLong = 12,
    /// There is no such table.
    NoSuchTable = 13,
    /// There is such a table (or its directory) already.
    TableExists = 14,
    /// A prepared transaction without a connection has changed the table.
    InUse = 15,
    /// The table has other indexes than this object, or this snapshot, knows of.
    DefinitionChanged = 16,
    /// It cannot be done this way.
    Unsupported = 17,
    /// The encoder of a load refused a row; see `pando_load_finish`.
    Refused = 18,
    /// A bug was met, which the error log tells of. The transaction of the call, if there was one, can only be rolled back.
    Bug = 19,
    /// The key that is asked for, or would have to say whether it has a value, is damaged.
    KeyUnusable = 20,
    /// A key of encryption is missing, or is another one.
    EncryptionKey = 21,
    /// A large value is lost with its file, or that file is to take new ones.
    ValuesLost = 22,
    /// The log failed after others could see the commit: it may be gone after a restart. No writes are accepted any more.
    InDoubt = 23,
    /// A newer release wrote it, in a format that this one does not know.
    NewerFormat = 24,
    /// The caller has made a mistake: what it gave does not belong together, or there is no such thing. Nothing was done.
    BadArgument = 25,
    /// Somebody has the database open: another process, or this one.
    DatabaseInUse = 26,
}

/// Every status, for tables that have to be complete.
pub const STATUSES: &[PandoStatus] = &[
    PandoStatus::Ok,
    PandoStatus::NotFound,
    PandoStatus::Skipped,
    PandoStatus::Duplicate,
    PandoStatus::Deadlock,
    PandoStatus::LockTimeout,
    PandoStatus::Killed,
    PandoStatus::WouldBlock,
    PandoStatus::DiskFull,
    PandoStatus::Corruption,
    PandoStatus::ReadOnly,
    PandoStatus::Io,
    PandoStatus::TooLong,
    PandoStatus::NoSuchTable,
    PandoStatus::TableExists,
    PandoStatus::InUse,
    PandoStatus::DefinitionChanged,
    PandoStatus::Unsupported,
    PandoStatus::Refused,
    PandoStatus::Bug,
    PandoStatus::KeyUnusable,
    PandoStatus::EncryptionKey,
    PandoStatus::ValuesLost,
    PandoStatus::InDoubt,
    PandoStatus::NewerFormat,
    PandoStatus::BadArgument,
    PandoStatus::DatabaseInUse,
];

thread_local! {
    static ERROR_TEXT: RefCell<String> = const { RefCell::new(String::new()) };
    static ERROR_OS: Cell<i32> = const { Cell::new(0) };
}

/// Text of the last failed call on this thread, valid until the next call on it.
#[no_mangle]
pub extern "C" fn pando_error_text() -> PandoBytes {
    guard(|| ERROR_TEXT.with_borrow(|text| PandoBytes::from_slice(text.as_bytes())))
}

/// Number of the operating system's error behind the last `Io` on this thread, 0 if it has none.
#[no_mangle]
pub extern "C" fn pando_error_os() -> i32 {
    guard(|| ERROR_OS.get())
}

/// Before the paths of tables: the data directory, which is nobody's business but the operator's.
static BASE: OnceLock<String> = OnceLock::new();

/// From now on texts of errors name files relative to this directory.
pub(crate) fn hide(base_dir: &Path) {
    // A process has one database; another one's paths would be told in full.
    let _ = BASE.set(format!("{}/", base_dir.display().to_string().trim_end_matches('/')));
}

/// `base` as it begins paths, and not in the middle of one.
fn without_base(text: &str, base: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(base) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let is_inside = out.ends_with(|c: char| c.is_alphanumeric() || "/._-#@$".contains(c));
        out.push_str(if is_inside { base } else { "./" });
        rest = &found[base.len()..];
    }
    out.push_str(rest);
    out
}

/// Duplicates may come with each row of a statement: where no file can be named, none is looked for, and the text takes the place of the last one.
fn keep_text(error: &Error) {
    ERROR_TEXT.with_borrow_mut(|text| {
        text.clear();
        // Into a string it cannot fail.
        let _ = write!(text, "{error}");
        let may_name_files = !matches!(error, Error::Duplicate { .. });
        if let Some(base) = BASE.get().filter(|base| may_name_files && base.len() > 1) {
            *text = without_base(text, base);
        }
    });
}

/// The status of an error; its text is kept for [`pando_error_text`].
pub(crate) fn fail(error: &Error) -> PandoStatus {
    keep_text(error);
    match error {
        Error::Engine(error) => engine_status(error),
        Error::InDoubt { .. } => PandoStatus::InDoubt,
        Error::Deadlock => PandoStatus::Deadlock,
        Error::LockTimeout => PandoStatus::LockTimeout,
        Error::Killed => PandoStatus::Killed,
        Error::WouldBlock => PandoStatus::WouldBlock,
        Error::DefinitionChanged => PandoStatus::DefinitionChanged,
        Error::Duplicate { .. } => PandoStatus::Duplicate,
        Error::KeyUnusable { .. } => PandoStatus::KeyUnusable,
        Error::ValuesLost { .. } => PandoStatus::ValuesLost,
    }
}

fn engine_status(error: &EngineError) -> PandoStatus {
    match error {
        EngineError::Io { source, .. } => {
            ERROR_OS.set(source.raw_os_error().unwrap_or(0));
            PandoStatus::Io
        }
        EngineError::DiskFull { .. } => PandoStatus::DiskFull,
        EngineError::Corruption { .. } => PandoStatus::Corruption,
        EngineError::ReadOnly { .. } => PandoStatus::ReadOnly,
        EngineError::TooLong { .. } => PandoStatus::TooLong,
        EngineError::NotFound { .. } => PandoStatus::NoSuchTable,
        EngineError::Exists { .. } => PandoStatus::TableExists,
        EngineError::InUse { .. } => PandoStatus::InUse,
        EngineError::Unsupported { .. } => PandoStatus::Unsupported,
        EngineError::Key { .. } => PandoStatus::EncryptionKey,
        EngineError::NewerFormat { .. } => PandoStatus::NewerFormat,
        EngineError::Argument { .. } => PandoStatus::BadArgument,
        EngineError::Locked { .. } => PandoStatus::DatabaseInUse,
    }
}

/// The status of a bug.
pub(crate) fn fail_with_bug(text: String) -> PandoStatus {
    ERROR_TEXT.set(text);
    PandoStatus::Bug
}

/// Runs the body of a function that answers with a status, and does not go on after a panic: changes of what all share.
pub(crate) fn run(body: impl FnOnce() -> pandodb::Result<PandoStatus>) -> PandoStatus {
    guard(|| body().unwrap_or_else(|error| fail(&error)))
}

/// Runs the body of a function that answers with a status, also after a panic: what only reads. See [`contain`]. One that has a
/// transaction uses [`crate::PandoTxn::run`].
pub(crate) fn run_contained(body: impl FnOnce() -> pandodb::Result<PandoStatus>) -> PandoStatus {
    contain(|| body().unwrap_or_else(|error| fail(&error))).unwrap_or_else(fail_with_bug)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::path::Path;

    fn one_of_each() -> Vec<Error> {
        let path = Path::new("/t/main.pando");
        vec![
            Error::Duplicate { index: 0, existing: Vec::new() },
            Error::Deadlock,
            Error::LockTimeout,
            Error::Killed,
            Error::WouldBlock,
            Error::DefinitionChanged,
            Error::KeyUnusable { reason: "a checksum".into() },
            Error::ValuesLost { what: "a file".into() },
            Error::InDoubt { reason: "a sync failed".into() },
            EngineError::io("write", path, 0, std::io::Error::from_raw_os_error(28)).into(),
            EngineError::corruption(path, 0, "block checksum", 1, 2).into(),
            EngineError::ReadOnly { reason: "a sync failed".into() }.into(),
            EngineError::io("write", path, 0, std::io::Error::from_raw_os_error(5)).into(),
            EngineError::TooLong { what: "key", size: 2, limit: 1 }.into(),
            EngineError::NotFound { what: "table t".into() }.into(),
            EngineError::Exists { what: "table t".into() }.into(),
            EngineError::InUse { what: "table t".into() }.into(),
            EngineError::Unsupported { what: "a change".into() }.into(),
            EngineError::Key { path: path.into(), key_id: 1, version: 2, reason: "none".into() }.into(),
            EngineError::NewerFormat {
                path: path.into(),
                offset: 0,
                what: "a block".into(),
                version: 9,
                known: 3,
            }
            .into(),
            EngineError::argument("a table of another database").into(),
            EngineError::Locked { path: path.into() }.into(),
        ]
    }

    #[test]
    fn the_directory_of_the_database_is_left_out_where_a_path_begins_with_it() {
        let without = |text| without_base(text, "data/");
        assert_eq!(without("open of data/t.pando: no"), "open of ./t.pando: no");
        assert_eq!(without("data/a and \"data/b\""), "./a and \"./b\"");
        assert_eq!(without("/srv/data/t of mydata/u"), "/srv/data/t of mydata/u");
        assert_eq!(
            without_base("at /srv/data/t, not /mnt/srv/data/t", "/srv/data/"),
            "at ./t, not /mnt/srv/data/t"
        );
    }

    #[test]
    fn every_error_has_a_status_of_its_own_and_a_text() {
        let mut seen = HashSet::new();
        for error in one_of_each() {
            assert!(seen.insert(fail(&error)), "{error}");
            // SAFETY: no call on this thread since the text was set.
            let text = unsafe { pando_error_text().to_text() };
            assert_eq!(text, error.to_string());
        }
        fail(&EngineError::io("read", Path::new("f"), 0, std::io::Error::from_raw_os_error(24)).into());
        assert_eq!(pando_error_os(), 24);
        use PandoStatus::{Bug, NotFound, Ok, Refused, Skipped};
        let outcomes = [Ok, NotFound, Skipped, Refused, Bug];
        assert_eq!(seen.len() + outcomes.len(), STATUSES.len());
    }
}
