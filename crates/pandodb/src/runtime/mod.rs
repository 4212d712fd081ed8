//! What the rooms above stand on, and what knows nothing of tables: files, threads, clock, failures.

pub(crate) mod clock;
pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod heap;
pub(crate) mod horizon;
pub(crate) mod load_pool;
pub(crate) mod log_space;
pub(crate) mod removed;
pub(crate) mod threads;
