//! Keeps panics from crossing the boundary.

use std::backtrace::Backtrace;
use std::panic::{catch_unwind, AssertUnwindSafe, PanicHookInfo};
use std::sync::OnceLock;

use pandodb::{LogLevel, LogSink};

/// Where a panic is reported before the process stops; set when the first database is opened.
static SINK: OnceLock<LogSink> = OnceLock::new();

/// Runs the body of an exported function. A panic in it stops the process: its hook has logged it.
pub(crate) fn guard<T>(body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(_) => std::process::abort(),
    }
}

/// From now on panics of every thread of this library go to `sink` with their backtrace, and stop
/// the process: a background thread that dies quietly would be worse.
pub(crate) fn report_panics_to(sink: LogSink) {
    if SINK.set(sink).is_ok() {
        std::panic::set_hook(Box::new(stop));
    }
}

fn stop(panic: &PanicHookInfo<'_>) {
    if let Some(sink) = SINK.get() {
        let text = format!("a bug was found, the server stops: {panic}\n{}", Backtrace::force_capture());
        for line in text.lines() {
            sink(LogLevel::Error, line);
        }
    }
    std::process::abort();
}
