//! What a transaction needs besides the tree, as plain data structures without I/O:
//!
//! - [`Snapshots`]: the newest visible commit, the snapshots in use, and publication of commits;
//! - [`WriteSet`]: a transaction's uncommitted writes, readable in key order at any earlier moment;
//! - [`LockManager`]: row locks with queues, deadlock detection, time limits and kill.
//!
//! They know nothing of each other; `pandodb` puts them together. A write locks its key, goes into the
//! write set, and at commit through log and memtables, after which its number is published and
//! its locks are released.

mod lock;
mod snapshot;
mod write_set;

pub use lock::{
    Deadlock, DeadlockWait, HeldKey, HeldStretch, LockError, LockKind, LockManager, LockMode, LockOutcome,
    LockRow, LockWatch, TxnHandle, TxnRow, Wait,
};
pub use snapshot::{Snapshot, Snapshots};
pub use write_set::{Mark, WriteSet, Written};
