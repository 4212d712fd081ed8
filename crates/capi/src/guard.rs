//! Keeps panics from crossing the boundary, and decides what becomes of them ([`pando_base::panics`]): every exported function is a
//! call of [`guard`], or of something that comes to [`contain`]. A test (`tests/guarded.rs`) reads the sources for that.

use std::backtrace::Backtrace;
use std::ffi::{c_char, CStr};
use std::fmt::{self, Write};
use std::panic::{catch_unwind, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use pando_base::panics;

use crate::log::{PandoLog, PandoLogLevel};

/// Where panics are reported; set when the first database is opened.
static LOG: OnceLock<unsafe extern "C" fn(PandoLogLevel, *const c_char)> = OnceLock::new();

/// Of so many panics that a statement is told of, the log has backtraces. A client may try again for ever.
static BACKTRACES_LEFT: AtomicU32 = AtomicU32::new(20);

/// Runs the body of an exported function that changes what others share, or has no way to say that it has failed. A panic in it stops the
/// process: the hook has logged it.
pub(crate) fn guard<T>(body: impl FnOnce() -> T) -> T {
    let _scope = panics::uncontained();
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(_) => std::process::abort(),
    }
}

/// Runs the body of an exported function that can fail and changes nothing that outlives it, but what one transaction or one object has,
/// which is not used any more then. A panic comes back as its text for people.
pub(crate) fn contain<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    panics::contain(body).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        format!("a bug was found, see the server's error log: {text}")
    })
}

/// In builds that check themselves, keys and constants with this text are a bug, for tests of what comes of one.
#[cfg(debug_assertions)]
const PLANTED: &[u8] = b"planted-panic-of-a-test";

/// See [`PLANTED`].
#[cfg(debug_assertions)]
pub(crate) fn meet_planted_bug(bytes: &[u8]) {
    assert!(!bytes.windows(PLANTED.len()).any(|part| part == PLANTED), "a test has planted this");
}

/// Nothing, in builds for others.
#[cfg(not(debug_assertions))]
pub(crate) fn meet_planted_bug(_bytes: &[u8]) {}

/// From now on panics of every thread of this library go to `log` with their backtrace. They stop the process where nobody contains them:
/// a background thread that dies quietly would be worse.
pub(crate) fn report_panics_to(log: PandoLog) {
    let Some(log) = log else { return };
    if LOG.set(log).is_ok() {
        std::panic::set_hook(Box::new(report));
        panics::stop_when_torn(|| {
            tell(c"the bug was met in the middle of a change that others share: the server stops")
        });
    }
}

fn tell(line: &CStr) {
    if let Some(log) = LOG.get() {
        // SAFETY: the function was given for this purpose, the line lives for the call.
        unsafe { log(PandoLogLevel::Error, line.as_ptr()) }
    }
}

/// The line that has to be in the log comes first and takes no memory: what follows may fail, as when the bug is one of the allocator.
fn report(panic: &PanicHookInfo<'_>) {
    let is_contained = panics::is_contained();
    let mut line = Line { bytes: [0; 2048], len: 0 };
    let _ = line.write_str(match is_contained {
        true => "a bug was found, the statement fails: ",
        false => "a bug was found, the server stops: ",
    });
    let _ = match panic.payload().downcast_ref::<String>().map(String::as_str) {
        Some(text) => line.write_str(text),
        None => line.write_str(panic.payload().downcast_ref::<&str>().copied().unwrap_or("a panic")),
    };
    if let Some(place) = panic.location() {
        let _ = write!(line, " at {place}");
    }
    let _ = write!(line, ", version {}", env!("CARGO_PKG_VERSION"));
    tell(line.as_c_str());
    if !pando_memory::is_usable() {
        tell(c"the bug was met where memory is given out: the server stops");
        std::process::abort();
    }
    let has_backtrace = |left: u32| left.checked_sub(1);
    if !is_contained
        || BACKTRACES_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, has_backtrace).is_ok()
    {
        for part in Backtrace::force_capture().to_string().lines() {
            let mut line = Line { bytes: [0; 2048], len: 0 };
            let _ = line.write_str(part);
            tell(line.as_c_str());
        }
    }
    if !is_contained {
        std::process::abort();
    }
}

/// A line of a log, in memory that is there. What is too long is cut.
struct Line {
    bytes: [u8; 2048],
    len: usize,
}

impl Line {
    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - 1 - self.len;
        for byte in text.bytes().take(room) {
            self.bytes[self.len] = if byte < b' ' { b' ' } else { byte };
            self.len += 1;
        }
        Ok(())
    }
}
