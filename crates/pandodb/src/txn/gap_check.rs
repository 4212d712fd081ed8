//! Inserts and the gaps of others.
//!
//! A locking scan first holds its gap and then looks at what others have written (`cursor::gaps`). So who
//! inserts asks for gaps while nobody can look at its writes, and writes before anybody can: either it
//! meets the gap, or the scan meets the key. Only keys that are not there yet are inserts. What the
//! transaction has written before, if only a delete, others have met already, and a key with a
//! row is the business of that row's lock.

use std::sync::Arc;

use pando_txn::WriteSet;

use crate::error::Result;
use crate::table::Dict;
use crate::txn::transaction::{LockWait, Txn};

impl Txn {
    /// Keeps others from inserting keys from `from` up to, but without, `to`.
    pub(crate) fn lock_gap(&mut self, dict: &Dict, from: &[u8], to: Option<&[u8]>) {
        self.db.locks.lock_gap(&self.handle, dict.id, from, to);
    }

    /// Writes (`write`) what the row comes to. `new` are the keys that this may insert; gaps of others that
    /// cover one that is not there yet are waited for. Errors leave nothing written.
    /// Requires: the dictionaries are touched.
    pub(crate) fn write_when_free<'a>(
        &mut self,
        new: impl Iterator<Item = (&'a Arc<Dict>, &'a [u8])> + Clone,
        wait: LockWait,
        write: impl FnOnce(&mut WriteSet),
    ) -> Result<()> {
        let mut there = Vec::new();
        loop {
            let mut writes = self.writes.write();
            let in_gap = |(dict, key): &(&'a Arc<Dict>, &'a [u8])| {
                !self.db.locks.may_insert(&self.handle, dict.id, key) && !there.contains(&(dict.id, *key))
            };
            let Some((dict, key)) = new.clone().find(in_gap) else {
                write(&mut writes.set);
                self.handle.set_weight(writes.set.ops() + 1);
                return Ok(());
            };
            drop(writes);
            if self.own(dict, key)?.is_some() || self.newest_locked(dict, key)?.is_some() {
                there.push((dict.id, key));
            } else {
                self.wait_for_gaps(dict, key, wait)?;
            }
        }
    }

    /// Waits until no gap of another covers the key.
    pub(crate) fn wait_for_gaps(&self, dict: &Dict, key: &[u8], wait: LockWait) -> Result<()> {
        Ok(self.db.locks.wait_to_insert(&self.handle, dict.id, key, self.wait_of(wait))?)
    }

    /// As [`Txn::wait_for_gaps`], before a key is locked: who waits for a gap should not hold the key that its
    /// holder may want to insert. A key with a row is a duplicate, whoever holds gaps.
    pub(crate) fn wait_for_gaps_first(&self, dict: &Dict, key: &[u8]) -> Result<()> {
        if self.db.locks.may_insert(&self.handle, dict.id, key) || self.own(dict, key)?.is_some() {
            return Ok(());
        }
        let newest = self.db.snapshots.take();
        match dict.tree.get(key, newest.seqno())? {
            Some(_) => Ok(()),
            None => self.wait_for_gaps(dict, key, LockWait::Default),
        }
    }

    /// As a write of a key that nobody can have a gap around: when prepared batches are read back.
    pub(crate) fn write_put(&mut self, dict: &Arc<Dict>, key: &[u8], value: &[u8]) {
        self.touch(dict);
        let mut writes = self.writes.write();
        writes.set.put(dict.id, key, value);
        self.handle.set_weight(writes.set.ops() + 1);
    }
}
