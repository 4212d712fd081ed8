//! Runs: immutable sorted sequences of records in a tree file, and what reads, merges and caches them.
//!
//! A run is written once by a [`RunWriter`]: segments one after another, after every
//! [`FILTER_PAGE_KEYS`](pando_base::limits::FILTER_PAGE_KEYS) keys or so a filter page over the segments
//! since the last one, and an index at the end. Every block is sealed by `storage::block`.
//!
//! ```text
//! | segment | segment | ... | filter page 0 | segment | ... | filter page 1 | index | padding |
//! '-------- extent ---------'------------------ extent ----------------------------------'
//! ```
//! A run lies in a few extents; no block straddles two. A node refers to a run by its [`RunMeta`], which
//! says where the index is; the index (module `index`) says where everything else is.
//!
//! What holds:
//! * **I2. A run never changes.** [`Run`] owns its extents: whoever can still read it (a reader, a tree
//!   version, the durable checkpoint) holds an `Arc<Run>`, and the last one to let go frees the space and
//!   takes the run's blocks out of the cache. A writer that is dropped unfinished leaves nothing.
//! * Records of a run ascend strictly by `compare_versions`. Versions of one key may straddle segments.
//! * **I8.** What is read is verified: checksum, structure, and that a segment is the one its index
//!   promised. Anything else is an error naming file and offset.
//! * All blocks a reader asks for come through the [`BlockCache`], so their memory is accounted. What
//!   isn't: the read-ahead of a cursor, up to 1 MiB each (module `read_ahead`), blocks that readers still
//!   hold after their eviction, and where the pages of filters are (module `pages`).
//!
//! Life of a point lookup: module `lookup`.
//!
//! No lock is held here beyond those inside the cache and that of a run's list of cached parts; two threads that miss the same block read it once.

mod cache;
mod columns;
mod cursor;
mod extent_writer;
mod filter_pages;
mod fuse_filter;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod index;
mod key_heads;
mod lookup;
mod loose_columns;
pub mod merge;
mod read_ahead;
mod run;
mod run_meta;
mod salvage;
#[cfg(test)]
mod tests;
mod verify;
mod warm;
mod writer;

pub use cache::BlockCache;
pub use columns::{Columns, RunColumns};
pub use cursor::RunCursor;
pub use fuse_filter::key_hash;
pub use lookup::{Candidate, Found, Lookup, Screened};
pub use loose_columns::LooseColumns;
pub use pando_column::{Compression, DecodeError, Zone, Zones};
pub use run::{Estimate, Run, RunContext, RunForm};
pub use run_meta::RunMeta;
pub use salvage::Pieces;
pub use warm::{CachedBlock, CachedForm};
pub use writer::{RunOptions, RunWriter};
