//! Records on their way into a segment.

use pando_base::Seqno;

/// What a builder keeps of a record beside its bytes.
pub(crate) struct Row {
    /// Bytes that its key shares with the one before.
    pub(crate) shared: u32,
    /// Bytes of its key beyond those.
    pub(crate) suffix: u32,
    /// Bytes of its value.
    pub(crate) value: u32,
    pub(crate) deleted: bool,
    pub(crate) seqno: Seqno,
}
