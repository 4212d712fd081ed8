//! Lines for the server's error log.

use std::ffi::c_char;

/// Severity of a line for the server's error log.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoLogLevel {
    /// News.
    Note = 0,
    /// Something to look at.
    Warning = 1,
    /// Data or durability are in danger.
    Error = 2,
}

/// Takes a line for the server's error log; called from any thread.
pub type PandoLog = Option<unsafe extern "C" fn(level: PandoLogLevel, line: *const c_char)>;
