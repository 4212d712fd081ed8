//! Who is told of the engine's threads, files and memory: see `pando_base::observer`.

use std::mem::MaybeUninit;
use std::path::Path;

use pando_base::observer::{self, FileMark, FileOperation, Observer, ThreadKind, MEMORY_USES};

use crate::bytes::PandoBytes;
use crate::guard::guard;

/// What a thread is for.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoThreadKind {
    /// Flushes, compactions, checkpoints.
    Worker = 0,
    /// Looks after the log, tables and memory.
    Ticker = 1,
    /// Reads what the cache held, and writes it down.
    CacheKeeper = 2,
    /// Bulk loads and index builds.
    Loader = 3,
    /// Helps a statement.
    Helper = 4,
    /// Rewrites what old versions of keys have encrypted.
    KeyRotator = 5,
}

/// What is asked of a file.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoFileOperation {
    /// To read bytes.
    Read = 0,
    /// To write bytes.
    Write = 1,
    /// To make sure that they stay.
    Sync = 2,
}

/// Memory for the observer during an operation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoFileState {
    /// The observer's.
    pub words: [u64; 16],
}

/// How many uses of memory there are: block cache, memtables, row locks, loads, queries, and the rest, in this order.
pub const PANDO_MEMORY_USES: usize = 6;
const _: () = assert!(MEMORY_USES.len() == PANDO_MEMORY_USES);

/// The server's functions. They return soon and ask nothing of the engine; any thread may call them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoObserver {
    /// This thread begins.
    pub thread_begins: unsafe extern "C" fn(kind: PandoThreadKind),
    /// It ends.
    pub thread_ends: unsafe extern "C" fn(),
    /// A file has been opened. What it is to the observer; 0: it does not look at it.
    pub file_opened: unsafe extern "C" fn(path: PandoBytes) -> u64,
    /// It is closed.
    pub file_closed: unsafe extern "C" fn(file: u64),
    /// There is no file of this name any more.
    pub file_gone: unsafe extern "C" fn(path: PandoBytes),
    /// An operation begins. 0: it is not looked at, and its end is not to be told.
    pub file_begins: unsafe extern "C" fn(
        file: u64,
        operation: PandoFileOperation,
        bytes: u64,
        state: *mut PandoFileState,
    ) -> u8,
    /// It ends.
    pub file_ends: unsafe extern "C" fn(state: *mut PandoFileState, bytes: u64),
    /// Bytes in use now, for each use.
    pub memory: unsafe extern "C" fn(uses: *const u64),
}

impl Observer for PandoObserver {
    fn thread_begins(&self, kind: ThreadKind) {
        let kind = match kind {
            ThreadKind::Worker => PandoThreadKind::Worker,
            ThreadKind::Ticker => PandoThreadKind::Ticker,
            ThreadKind::CacheKeeper => PandoThreadKind::CacheKeeper,
            ThreadKind::Loader => PandoThreadKind::Loader,
            ThreadKind::Helper => PandoThreadKind::Helper,
            ThreadKind::KeyRotator => PandoThreadKind::KeyRotator,
        };
        // SAFETY: the function was given for this purpose.
        unsafe { (self.thread_begins)(kind) }
    }

    fn thread_ends(&self) {
        // SAFETY: as above.
        unsafe { (self.thread_ends)() }
    }

    fn file_opened(&self, path: &Path) -> FileMark {
        // SAFETY: as above; the path lives for the call.
        unsafe { (self.file_opened)(bytes_of(path)) }
    }

    fn file_closed(&self, file: FileMark) {
        // SAFETY: as above; the mark is the observer's own.
        unsafe { (self.file_closed)(file) }
    }

    fn file_gone(&self, path: &Path) {
        // SAFETY: as above; the path lives for the call.
        unsafe { (self.file_gone)(bytes_of(path)) }
    }

    fn during(&self, file: FileMark, operation: FileOperation, bytes: usize, io: &mut dyn FnMut()) {
        let operation = match operation {
            FileOperation::Read => PandoFileOperation::Read,
            FileOperation::Write => PandoFileOperation::Write,
            FileOperation::Sync => PandoFileOperation::Sync,
        };
        let mut state = MaybeUninit::<PandoFileState>::uninit();
        // SAFETY: as above; the state stays where it is until the end is told.
        let is_observed = unsafe { (self.file_begins)(file, operation, bytes as u64, state.as_mut_ptr()) };
        io();
        if is_observed != 0 {
            // SAFETY: as above.
            unsafe { (self.file_ends)(state.as_mut_ptr(), bytes as u64) }
        }
    }

    fn memory(&self, uses: &[u64; MEMORY_USES.len()]) {
        // SAFETY: as above; the numbers live for the call.
        unsafe { (self.memory)(uses.as_ptr()) }
    }
}

fn bytes_of(path: &Path) -> PandoBytes {
    PandoBytes::from_slice(path.as_os_str().as_encoded_bytes())
}

/// From now on the observer is told; the first one stays. To be called before the database is opened.
///
/// # Safety
/// `observer` is valid for the call, and its functions as long as the process lives.
#[no_mangle]
pub unsafe extern "C" fn pando_observe(observer: *const PandoObserver) {
    // SAFETY: the caller vouches for it.
    let observer = unsafe { *observer };
    guard(|| observer::set(Box::new(observer)));
}
