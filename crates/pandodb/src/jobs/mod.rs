//! Background work: flushes and compactions, checkpoints, the log, tables nobody uses.

pub(crate) mod background;
pub(crate) mod idle;
pub(crate) mod memory;
