//! Which nodes and leaves running jobs rely on.
//!
//! A flush holds its parent shared (the buffer runs it reads must stay where they are) and its child
//! exclusively (range, buffer and runs must not change otherwise); merging runs of a buffer holds
//! the node exclusively. Pushing a newer run on top of a buffer disturbs none of these. A node held
//! exclusively is not split by others; when a node held shared is split, its new halves are held
//! too. Edits are checked against this table under the same mutex.

use std::collections::HashMap;

use pando_base::{NodeId, Seqno};

/// A place where dead records may be worth dropping.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    /// A key in the leaf's range.
    pub key: Vec<u8>,
    /// Of use once no live snapshot is older than this.
    pub after: Seqno,
    pub steps: u32,
}

/// A running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobId(u64);

#[derive(Debug, Default)]
struct Hold {
    exclusive: Option<JobId>,
    shared: Vec<JobId>,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct BusyTable {
    holds: HashMap<NodeId, Hold>,
    jobs: u64,
    /// The job that writes the oldest sealed memtable: one at a time, so runs arrive in order.
    memtable: Option<JobId>,
}

impl BusyTable {
    pub(crate) fn new_job(&mut self) -> JobId {
        self.jobs += 1;
        JobId(self.jobs)
    }

    /// Nobody relies on it in any way.
    pub(crate) fn is_free(&self, id: NodeId) -> bool {
        !self.holds.contains_key(&id)
    }

    /// It may be held shared.
    pub(crate) fn is_shareable(&self, id: NodeId) -> bool {
        self.holds.get(&id).is_none_or(|hold| hold.exclusive.is_none())
    }

    pub(crate) fn hold_exclusive(&mut self, job: JobId, id: NodeId) {
        assert!(self.is_free(id), "node {id} is in use");
        self.holds.insert(id, Hold { exclusive: Some(job), shared: Vec::new() });
    }

    pub(crate) fn hold_shared(&mut self, job: JobId, id: NodeId) {
        assert!(self.is_shareable(id), "node {id} is held exclusively");
        self.holds.entry(id).or_default().shared.push(job);
    }

    /// A job other than `job` holds it exclusively.
    pub(crate) fn is_exclusive_to_other(&self, job: JobId, id: NodeId) -> bool {
        self.holds.get(&id).is_some_and(|hold| hold.exclusive.is_some_and(|owner| owner != job))
    }

    /// A job other than `job` relies on it.
    pub(crate) fn is_held_by_other(&self, job: JobId, id: NodeId) -> bool {
        self.holds.get(&id).is_some_and(|hold| {
            hold.exclusive.is_some_and(|owner| owner != job) || hold.shared.iter().any(|owner| *owner != job)
        })
    }

    /// `new` was split off `old`: whoever relies on one relies on both.
    pub(crate) fn split(&mut self, old: NodeId, new: NodeId) {
        if let Some(hold) = self.holds.get(&old) {
            let copy = Hold { exclusive: hold.exclusive, shared: hold.shared.clone() };
            self.holds.insert(new, copy);
        }
    }

    pub(crate) fn is_memtable_busy(&self) -> bool {
        self.memtable.is_some()
    }

    pub(crate) fn hold_memtable(&mut self, job: JobId) {
        assert!(self.memtable.is_none(), "one memtable is written at a time");
        self.memtable = Some(job);
    }

    /// The job is over.
    pub(crate) fn release(&mut self, job: JobId) {
        if self.memtable == Some(job) {
            self.memtable = None;
        }
        self.holds.retain(|_, hold| {
            if hold.exclusive == Some(job) {
                hold.exclusive = None;
            }
            hold.shared.retain(|owner| *owner != job);
            hold.exclusive.is_some() || !hold.shared.is_empty()
        });
    }

    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.holds.is_empty() && self.memtable.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_flushes_share_a_parent_but_not_a_child() {
        let mut busy = BusyTable::default();
        let (a, b) = (busy.new_job(), busy.new_job());
        busy.hold_shared(a, NodeId(1));
        busy.hold_exclusive(a, NodeId(2));
        busy.hold_shared(b, NodeId(1));
        assert!(!busy.is_free(NodeId(1)) && busy.is_shareable(NodeId(1)));
        assert!(!busy.is_shareable(NodeId(2)));
        assert!(busy.is_exclusive_to_other(b, NodeId(2)) && !busy.is_exclusive_to_other(a, NodeId(2)));
        busy.release(a);
        assert!(busy.is_free(NodeId(2)) && !busy.is_free(NodeId(1)));
        busy.release(b);
        assert!(busy.is_idle());
    }

    #[test]
    fn both_halves_of_a_split_node_stay_held() {
        let mut busy = BusyTable::default();
        let job = busy.new_job();
        busy.hold_shared(job, NodeId(1));
        busy.split(NodeId(1), NodeId(9));
        let other = busy.new_job();
        assert!(busy.is_held_by_other(other, NodeId(9)));
        busy.release(job);
        assert!(busy.is_idle());
    }
}
