//! Backups: pinning a moment, telling the copier of it, and the copier's side.

pub(crate) mod command;
pub(crate) mod copy;
pub(crate) mod pin;
