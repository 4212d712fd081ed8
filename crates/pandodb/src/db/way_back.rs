//! A rename that may be taken back (`ddl::renames`).

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct WayBack {
    /// Who may take it back.
    pub(crate) statement: u64,
    /// The name before.
    pub(crate) from: String,
    /// The name since.
    pub(crate) to: String,
    /// Space that the log has promised for it.
    pub(crate) bytes: u64,
}
