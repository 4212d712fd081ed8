//! What every layer of Pando shares: ids and sequence numbers, the record, limits and defaults,
//! the operating error, the table of metrics, and the counts of a thread. Depends on nothing of ours.

pub mod accesses;
pub mod deleted;
pub mod error;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod ids;
pub mod limits;
pub mod locks;
pub mod metrics;
pub mod observer;
pub mod panics;
pub mod pauses;
pub mod planted;
pub mod ranges;
pub mod record;

pub use accesses::Accesses;
pub use deleted::{DeletedRange, DeletedRanges};
pub use error::{Error, Result};
pub use ids::{DictId, NodeId, RunId, Seqno, TxnId, MAX_SEQNO, SETTLED_SEQNO};
pub use metrics::Metrics;
pub use pauses::pause;
pub use record::{compare_versions, key_head, shared_prefix, Kind, RecordRef};
