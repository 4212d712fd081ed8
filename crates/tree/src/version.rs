//! What a reader takes once: memtables and root, frozen together (I4).

use std::sync::Arc;

use pando_base::{DeletedRange, DeletedRanges, Seqno};
use pando_run::Run;

use crate::memtable::Memtable;
use crate::node::Node;

/// One state of a tree. Never changed, only replaced by the next.
#[derive(Debug)]
pub(crate) struct TreeVersion {
    pub root: Arc<Node>,
    /// Newest first; all newer than anything in the root.
    pub sealed: Vec<Arc<Memtable>>,
    /// Takes inserts; newer than the sealed ones.
    pub active: Arc<Memtable>,
    /// Every record of the dictionary with seqno <= this is in the nodes.
    pub flushed: Seqno,
    /// Ranges that hide what is older (`deleted`).
    pub deleted: DeletedRanges,
    /// Counts truncations: a job that began before one must not apply its result.
    pub generation: u64,
}

impl TreeVersion {
    /// The same with another root.
    pub(crate) fn with_root(&self, root: Arc<Node>) -> TreeVersion {
        let (sealed, active) = (self.sealed.clone(), self.active.clone());
        TreeVersion { root, sealed, active, deleted: self.deleted.clone(), ..*self }
    }

    /// Ranges deleted by commits up to `seqno`.
    pub(crate) fn deleted_up_to(&self, seqno: Seqno) -> Vec<DeletedRange> {
        self.deleted.as_slice().iter().filter(|range| range.seqno <= seqno).cloned().collect()
    }

    /// Whether a deleted range cannot be cleaned before the active memtable is sealed.
    pub(crate) fn holds_up_sweep(&self) -> bool {
        let waits = self.deleted.as_slice().iter().any(|range| range.seqno > self.flushed);
        waits && self.sealed.is_empty() && self.active.needed_from().is_some()
    }

    /// Runs that memtables have adopted, newest first; above the root, below the records of all memtables
    /// that could have the same keys in an older version.
    pub(crate) fn adopted(&self) -> Vec<Arc<Run>> {
        self.memtables().flat_map(|memtable| memtable.adopted()).collect()
    }

    /// Memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.sealed)
    }
}
