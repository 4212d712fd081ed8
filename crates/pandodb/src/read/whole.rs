//! All rows of a table locked at once, for a statement that will visit all of them anyway: if nobody is in the way.
//!
//! As a scan that locks ahead (`cursor::ahead`), but in one step: nobody else holds a row in a way that excludes it, or has
//! written anything; then the stretch and the gap over all keys are taken; then it is looked again, at who came between.
//! From there on nobody else locks or inserts anything, and the newest state is what the transaction sees until it ends.

use std::ops::Bound;
use std::sync::Arc;

use pando_txn::LockMode;

use crate::error::Result;
use crate::table::{Dict, Table};
use crate::txn::transaction::Txn;

impl Txn {
    /// Locks all rows, and what lies between and around them. False: others are in the way, or the transaction takes no
    /// gaps; then rows have to be locked one by one. Never waits.
    pub fn lock_all_rows(&mut self, table: &Table, mode: LockMode) -> Result<bool> {
        let dict = self.dict_of(table, 0)?;
        if !self.takes_gaps() || self.is_in_use(dict, mode)? {
            return Ok(false);
        }
        if !self.db.locks.lock_stretch(&self.handle, dict.id, mode, b"", None) {
            return Ok(false);
        }
        self.db.locks.lock_gap(&self.handle, dict.id, b"", None);
        Ok(!self.is_in_use(dict, mode)?)
    }

    fn is_in_use(&self, dict: &Arc<Dict>, mode: LockMode) -> Result<bool> {
        for writes in dict.writers.others(self.writes()) {
            if writes.first_written_between(dict.id, Bound::Unbounded, Bound::Unbounded)?.is_some() {
                return Ok(true);
            }
        }
        Ok(self.db.locks.is_any_held_by_others(&self.handle, dict.id, mode))
    }

    /// Does `f` with a snapshot of now in place of the one of consistent reads.
    pub fn at_newest<T>(&mut self, f: impl FnOnce(&mut Txn) -> T) -> T {
        let newest = self.db.snapshots.take();
        let kept = self.exchange_snapshot(Some(newest));
        let back = GiveBack { txn: self, kept };
        f(back.txn)
    }
}

/// Gives the transaction its snapshot back, also when a panic ends what was done with another one.
struct GiveBack<'a> {
    txn: &'a mut Txn,
    kept: Option<pando_txn::Snapshot>,
}

impl Drop for GiveBack<'_> {
    fn drop(&mut self) {
        let kept = self.kept.take();
        self.txn.exchange_snapshot(kept);
    }
}
