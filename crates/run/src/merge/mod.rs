//! Merging runs: the k-way cursor that flushes and compactions read from, and the rule that says which
//! versions no snapshot can see any more.

mod cursor;
mod versions;

pub use cursor::MergeCursor;
pub use versions::VersionFilter;
