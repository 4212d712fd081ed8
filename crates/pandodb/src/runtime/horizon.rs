//! Which versions merges must keep.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pando_base::planted::{is_planted, Bug};
use pando_base::Seqno;
use pando_tree::Horizon;
use pando_txn::Snapshots;

/// During recovery nobody reads, so the newest version is all a merge must keep; afterwards the
/// registry of snapshots decides.
#[derive(Debug, Default)]
pub(crate) struct EngineHorizon {
    replayed: AtomicU64,
    snapshots: OnceLock<Arc<Snapshots>>,
}

impl EngineHorizon {
    /// Recovery has brought back every commit up to here.
    pub(crate) fn replayed(&self, seqno: Seqno) {
        self.replayed.fetch_max(seqno, Ordering::AcqRel);
    }

    /// Recovery is over.
    pub(crate) fn open_for(&self, snapshots: Arc<Snapshots>) {
        assert!(self.snapshots.set(snapshots).is_ok(), "a database is opened once");
    }
}

impl Horizon for EngineHorizon {
    fn snapshots(&self) -> Vec<Seqno> {
        match self.snapshots.get() {
            Some(snapshots) => {
                let mut live = snapshots.live();
                if is_planted(Bug::OldSnapshotForgotten) && live.len() > 1 {
                    live.remove(0);
                }
                live
            }
            None => vec![self.replayed.load(Ordering::Acquire)],
        }
    }
}

/// Of a file that nobody reads but a tool: the newest version of each row is all that counts.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Horizon for Nobody {
    fn snapshots(&self) -> Vec<Seqno> {
        vec![Seqno::MAX]
    }
}
