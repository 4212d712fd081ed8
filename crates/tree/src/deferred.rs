//! Deferred commits: a seqno first, the records later, and by another thread perhaps.
//!
//! An ordinary commit holds the gate from before its seqno is assigned until its records are in. A
//! prepared transaction of a server cannot: its seqno is assigned while the server holds a mutex over
//! all commits (`commit_ordered`), for a whole group of transactions by one thread, and each inserts its
//! records in its own thread afterwards. Held gates would be left by other threads than entered them,
//! and worse: the thread that orders the group has ordered its own commit first, so a sealer that waits
//! for that commit's gate and before which (fairness) no other commit of the group may enter would
//! wait for ever.
//!
//! So a deferred commit enters the gate only while its seqno is assigned, and books itself into the memtable
//! that is active then ([`Memtable::defer`](crate::memtable::Memtable)). Its records go there even if the
//! memtable has been sealed since. What makes this right:
//! - *Complete.* A memtable is sealed with the gate closed, so what was booked in it has a seqno up to
//!   the one it is sealed with; and it is not written before all of that is in (`is_settled`; booking
//!   needs an active memtable, so settled and sealed is for ever). Jobs and checkpoints do not wait:
//!   a checkpoint makes durable what is settled, and says so by its seqno.
//! - *Ordered (I3).* The commit's seqno is higher than all in older memtables and lower than all in newer
//!   ones, as if the records had been inserted at once.
//! - *Unseen.* Records in a sealed memtable are above every snapshot until the commit is published, and
//!   its row locks are held until then.
//! - *Logged.* The log has the records from before the seqno on, where the transaction was prepared; the
//!   memtable's first seqno, from which recovery needs the log, is lowered to that when it is booked.
//! - *No deadlock, no starvation.* Nobody waits for a deferred commit but for its visibility, as any later
//!   commit does. A sealer waits only for those inside the gate, and these for the log at most. A memtable
//!   collects no more of them once it is sealed, so it is settled when the server's threads have run.

use std::sync::Arc;

use pando_base::{pause, Kind, RecordRef, Seqno};
use pando_run::Run;

use crate::memtable::Memtable;
use crate::tree::{Tree, WriteGuard};

/// A commit whose records are still to be inserted. Dropping it says that they are.
#[derive(Debug)]
pub struct DeferredCommit {
    tree: Arc<Tree>,
    memtable: Arc<Memtable>,
}

impl Tree {
    /// Enters the gate and books a commit into the active memtable. The commit's seqno must be assigned
    /// before the gate is left; the log has its records from `logged_from` on.
    pub fn defer(self: &Arc<Self>, logged_from: Seqno) -> (WriteGuard<'_>, DeferredCommit) {
        let gate = self.gate();
        let memtable = gate.memtable().clone();
        memtable.defer(logged_from);
        (gate, DeferredCommit { tree: self.clone(), memtable })
    }
}

impl DeferredCommit {
    /// As [`WriteGuard::adopt`].
    pub fn adopt(&self, run: &Run, seqno: Seqno) {
        self.tree.adopt_into(&self.memtable, run, seqno);
    }

    /// As [`WriteGuard::delete_range`]. The log is kept since the commit was booked.
    pub fn delete_range(&self, lo: &[u8], hi: Option<&[u8]>, seqno: Seqno) {
        self.tree.add_deleted(lo, hi, seqno);
    }

    /// As [`WriteGuard::insert`].
    pub fn insert(&self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) {
        self.insert_all(&[RecordRef { key, seqno, kind, value }]);
    }

    /// As [`WriteGuard::insert_all`].
    pub fn insert_all(&self, records: &[RecordRef<'_>]) {
        let Some(first) = records.first() else { return };
        pause(16);
        self.memtable.insert_all(records);
        self.tree.note_write(first.seqno);
    }
}

impl Drop for DeferredCommit {
    fn drop(&mut self) {
        self.memtable.end_deferred();
    }
}
