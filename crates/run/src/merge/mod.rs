//! Merging runs: the k-way cursor that flushes and compactions read from, and the rule that says which
//! versions no snapshot can see any more.

mod cursor;
mod heap;
mod versions;

pub use cursor::MergeCursor;
pub use heap::MergeHeap;
pub use versions::VersionFilter;
