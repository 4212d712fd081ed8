//! Background work: flushes and compactions, checkpoints, the log, tables nobody uses, the cache after a start, rotation of keys, encryption.

pub(crate) mod background;
pub(crate) mod encryption;
pub(crate) mod idle;
pub(crate) mod key_rotation;
pub(crate) mod memory;
mod warm;
