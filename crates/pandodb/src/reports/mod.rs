//! What a database says of itself: status, locks, checks, figures for optimizers.

pub(crate) mod check;
pub(crate) mod described;
pub(crate) mod dictionaries;
pub(crate) mod distinct_keys;
pub(crate) mod locks;
pub mod offline;
pub(crate) mod one_file;
pub(crate) mod rebuild;
pub(crate) mod salvage;
pub(crate) mod status;
