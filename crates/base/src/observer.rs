//! Who is told of the engine's threads, of what it asks of files, and of its memory, while it works: a server that shows such
//! things (MariaDB's performance schema).
//!
//! There is at most one for the process. Without one nothing is done.

use std::fmt::Debug;
use std::path::Path;
use std::sync::OnceLock;

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// Flushes, compactions, checkpoints.
    Worker,
    /// Looks after the log, tables and memory, again and again.
    Ticker,
    /// Reads what the cache held, and writes it down.
    CacheKeeper,
    /// Rewrites what old versions of keys have encrypted.
    KeyRotator,
    /// Bulk loads and index builds.
    Loader,
    /// Helps a statement: queries, large loads.
    Helper,
}

/// What is asked of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOperation {
    /// To read bytes.
    Read,
    /// To write bytes.
    Write,
    /// To make sure that they stay.
    Sync,
}

/// A file that was opened, to the observer; 0: it does not look at it.
pub type FileMark = u64;

/// See the head of this file. Its functions return soon, ask nothing of the engine, and do not panic.
pub trait Observer: Debug + Send + Sync {
    /// This thread begins.
    fn thread_begins(&self, kind: ThreadKind);
    /// It ends.
    fn thread_ends(&self);
    /// A file has been opened.
    fn file_opened(&self, path: &Path) -> FileMark;
    /// It is closed.
    fn file_closed(&self, file: FileMark);
    /// There is no file of this name any more.
    fn file_gone(&self, path: &Path);
    /// Calls `io`, which is an operation of so many bytes.
    fn during(&self, file: FileMark, operation: FileOperation, bytes: usize, io: &mut dyn FnMut());
    /// Bytes in use now, by what for.
    fn memory(&self, uses: &[u64; MEMORY_USES.len()]);
}

/// What memory is used for, in the order of [`Observer::memory`].
pub const MEMORY_USES: [&str; 6] = ["block_cache", "memtables", "row_locks", "loads", "queries", "other"];

static OBSERVER: OnceLock<Box<dyn Observer>> = OnceLock::new();

/// From now on `observer` is told. The first one stays.
pub fn set(observer: Box<dyn Observer>) {
    let _ = OBSERVER.set(observer);
}

/// The observer, if there is one.
pub fn get() -> Option<&'static dyn Observer> {
    OBSERVER.get().map(|observer| &**observer)
}

/// What a thread of this kind does.
pub fn thread<T>(kind: ThreadKind, work: impl FnOnce() -> T) -> T {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            if let Some(observer) = get() {
                observer.thread_ends();
            }
        }
    }
    let Some(observer) = get() else { return work() };
    observer.thread_begins(kind);
    let _ends = Ends;
    work()
}

/// An operation of a file.
pub fn during<T>(file: FileMark, operation: FileOperation, bytes: usize, io: impl FnOnce() -> T) -> T {
    let Some(observer) = get().filter(|_| file != 0) else { return io() };
    let (mut io, mut result) = (Some(io), None);
    observer.during(file, operation, bytes, &mut || {
        if let Some(io) = io.take() {
            result = Some(io());
        }
    });
    match (result, io) {
        (Some(result), _) => result,
        (None, Some(io)) => io(),
        (None, None) => unreachable!("an operation that was begun has ended, or panics"),
    }
}
