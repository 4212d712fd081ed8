//! Background work: flushes and compactions, checkpoints, the log, tables nobody uses, the cache after a start.

pub(crate) mod background;
pub(crate) mod idle;
pub(crate) mod memory;
mod warm;
