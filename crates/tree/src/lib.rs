//! The tree: memtables over a B-epsilon tree of immutable runs, in one file.
//!
//! # Structure
//!
//! ```text
//!   active memtable                    takes inserts
//!   sealed memtables                   wait to be written
//!   root      pivots, children,        buffer: runs over its whole range, newest first
//!     node    pivots, children,        buffer
//!       leaf  (a slot of its parent)   one run, or few that hardly overlap
//! ```
//!
//! Nodes are immutable and shared; an edit copies the path from the changed node to the root
//! (`edit`). A `TreeVersion` (memtables and root) is what a reader takes once and keeps as long as
//! it likes. Only internal nodes have blocks on disk, written by checkpoints; a leaf stands inside
//! its parent.
//!
//! # Invariants
//!
//! Of those of docs/architecture.md, these are the tree's:
//!
//! * **I1** Only committed versions are inserted; a version is visible if `seqno <= snapshot`.
//! * **I2** Runs never change; a run and its space live as long as a version, a cursor or the durable
//!   checkpoint holds it.
//! * **I3** On a path from the memtables to a leaf, for one key, everything higher up is newer:
//!   memtables are sealed with the gate closed and written in order, a buffer's runs are ordered, and
//!   a flush gives a child everything it has not been given, up to one order.
//! * **I4** A reader loads the version once. It waits for nobody, and no I/O happens under a lock.
//! * **I7** A superblock names only what is synced, after the log up to its seqno is (`checkpoint`).
//!
//! # Locks, in the order they are taken
//!
//! 1. `checkpoint_turn`: one checkpoint at a time; the only one held during I/O, and nobody else
//!    needs it.
//! 2. `gate`: shared by a commit from before its seqno is assigned until its records are in,
//!    exclusive to swap the active memtable. Several trees: in the order of their dictionaries' ids.
//! 3. `structure`: every swap of the version, the table of running jobs, the hints.
//! 4. `coverage`, `durable`: a few fields each, nothing is called with them held (but `coverage` is
//!    held over the swap of the version, so that no commit is missed by `oldest_unwritten`).
//!
//! # Life of a record
//!
//! 1. Its commit enters the gate, gets a seqno, inserts it into the active memtable (`memtable`).
//! 2. The memtable is full and sealed (`tree`); a job writes it as the newest run of the root's
//!    buffer (`flush`).
//! 3. When enough waits for a child, a flush merges the child's share of the buffer into one run on
//!    top of the child's buffer, and so on down; at the leaf with the leaf's own run, dropping what no
//!    snapshot sees (`jobs` for the policy, `flush`, `merge_output`; `ordered_inserts` for inserts in the order of keys). Runs pile up in a buffer only so
//!    far: they are merged (`compact`).
//! 4. A checkpoint makes durable whatever the tree then is (`checkpoint`); after a restart it is
//!    read back (`open`, `node_format`), and the log brings what came later.
//! 5. Records of a transaction that outgrew its memory come another way: it writes **private runs** into
//!    the tree's file (`private_runs`), and its commit puts them under the active memtable by reference
//!    ([`WriteGuard::adopt`]), with which they go into the root's buffer. Of a commit that adopts
//!    runs a key may be in several of them, and once more in the memtable, all with its seqno: what is
//!    higher up counts.
//! 6. A get finds it in the first place on the path that has its key (`get`), a cursor merges the
//!    places (`cursor`).

mod bulk_base;
mod checkpoint;
mod column_cache;
mod compact;
mod config;
mod coverage;
mod cursor;
mod deferred;
mod deleted;
mod dump;
mod durable;
mod edit;
mod estimate;
mod flush;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod get;
mod job_claims;
mod jobs;
mod memtable;
mod memtable_cursor;
mod merge_output;
mod merge_window;
mod node;
mod node_format;
mod node_places;
mod open;
mod ordered_inserts;
mod pending_base;
mod pieces;
mod private_runs;
mod salvage;
mod sample;
mod source;
mod split_keys;
#[cfg(test)]
mod tests;
mod tree;
mod verify;
mod version;
mod warm;

pub use bulk_base::BottomHold;
pub use checkpoint::CheckpointStats;
pub use column_cache::Chunk;
pub use config::{Horizon, TreeConfig};
pub use cursor::Cursor;
pub use deferred::DeferredCommit;
pub use deleted::RangeTicket;
pub use estimate::{RowBounds, RunForms, TreeStats};
pub use node_places::{places_without_key, verify_without_key, WithoutKey};
pub use pando_run::{Columns, Estimate};
pub use pieces::{Piece, Pieces};
pub use private_runs::PrivateWriter;
pub use salvage::{salvage, LostRange, Salvaged, SalvagedRow};
pub use sample::{EachKey, Sampled};
pub use tree::{ClosedGate, Debt, Tree, WriteGuard};
