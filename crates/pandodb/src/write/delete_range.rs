//! All rows of a range deleted at once, whatever their number: one entry in the log, one mark in the tree (`pando_tree::deleted`).
//!
//! 1. The rows are locked by one range lock, and nobody else may hold, wait for, or have written any key in it; else the caller
//!    deletes row by row, and waits. Looked at before and after the lock is taken, as scans that lock ahead do (`read::cursor::ahead`).
//!    From then on nobody else inserts there: whoever inserts a row locks its key.
//! 2. The rows are counted as a query counts them, mostly without being read.
//! 3. The range goes into the write set, with a delete of its first row, which gives it a place among the ops.
//!
//! Mostly the commit comes next. If the transaction reads or writes anything before, the rows of the range are deleted one by one first
//! ([`Txn::write_out_ranges`]): so nobody who looks at own writes needs to know of ranges. A rollback to a savepoint between the two
//! takes these deletes back, and the range counts again.
//!
//! Only of tables without other keys, whose rows refer to no large values.

use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::Seqno;
use pando_txn::LockMode;

use crate::error::{Error, Result};
use crate::table::writes::OwnRange;
use crate::table::{Dict, Table};
use crate::txn::transaction::Txn;

impl Txn {
    /// Deletes the rows with keys in `[lo, hi)`, or all from `lo` on; says how many there were. `None`: this is not possible
    /// now, and nothing was done; rows have to be deleted one by one. Never waits.
    ///
    /// # Errors
    /// Those of reading; the table was dropped, or the transaction is prepared.
    pub fn delete_range(&mut self, table: &Table, lo: &[u8], hi: Option<&[u8]>) -> Result<Option<u64>> {
        let dict = self.dict_to_write(table, 0)?;
        dict.check_usable()?;
        let is_last = hi.is_some_and(|hi| hi <= lo);
        if is_last || self.has_writes() || !may_delete_ranges(table) {
            return Ok(None);
        }
        if dict.tree.is_short_of_ranges() {
            // As old as can be: among the first to be checkpointed.
            dict.dirty_since.store(1, Ordering::Relaxed);
        }
        let Some(place) = dict.tree.reserve_range(lo, hi) else { return Ok(None) };
        if self.is_between(dict, lo, hi)?
            || !self.db.locks.lock_stretch(&self.handle, dict.id, LockMode::Exclusive, lo, hi)
            || self.is_between(dict, lo, hi)?
        {
            return Ok(None);
        }
        let newest = self.db.snapshots.take();
        let mut first = dict.tree.cursor(newest.seqno());
        first.seek(lo)?;
        let rows = self.count_between(dict, newest.seqno(), lo, hi)?;
        if rows > 0 {
            self.touch(dict);
            let mut writes = self.writes.write();
            writes.delete_range((dict.id, place), lo, hi, first.key());
            writes.net_rows.add(dict.id, -i64::try_from(rows).unwrap_or(i64::MAX));
            drop(writes);
            self.has_whole_range = true;
            self.db.metrics.ranges_deleted.add(1);
            self.db.metrics.rows_deleted.add(rows);
        }
        Ok(Some(rows))
    }

    /// Whether others are at some key of the range.
    fn is_between(&self, dict: &Dict, lo: &[u8], hi: Option<&[u8]>) -> Result<bool> {
        let end = hi.map_or(Bound::Unbounded, Bound::Excluded);
        for writes in dict.writers.others(self.writes()) {
            // A range of theirs is under their range lock.
            if writes.first_written_between(dict.id, Bound::Included(lo), end)?.is_some() {
                return Ok(true);
            }
        }
        Ok(self.db.locks.is_any_held_between(&self.handle, dict.id, LockMode::Exclusive, lo, hi))
    }

    fn count_between(&self, dict: &Dict, seqno: Seqno, lo: &[u8], hi: Option<&[u8]>) -> Result<u64> {
        let (mut rows, mut cursor) = (0, dict.tree.cursor(seqno));
        let mut pieces = dict.tree.pieces(seqno, lo, hi);
        while let Some(piece) = pieces.next()? {
            if self.handle.is_killed() {
                return Err(Error::Killed);
            }
            if let Some(plain) = piece.plain_rows {
                rows += plain as u64;
                continue;
            }
            cursor.seek(&piece.begin)?;
            let is_inside = |key: &[u8]| piece.end.as_deref().is_none_or(|end| key < end);
            cursor.visit(|key, _| {
                let inside = is_inside(key);
                rows += u64::from(inside);
                inside
            })?;
        }
        Ok(rows)
    }

    /// Deletes the rows of a deleted range one by one, before anything else is done.
    ///
    /// # Errors
    /// Those of reading, and of writing many rows; it is tried again then before anything else is done.
    pub(crate) fn write_out_ranges(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.has_whole_range) {
            return Ok(());
        }
        let (from, ranges) = {
            let writes = self.writes.read();
            (writes.set.mark(), writes.whole_ranges().cloned().collect::<Vec<_>>())
        };
        let written = ranges.iter().try_for_each(|range| self.delete_rows_of(range));
        match written {
            Ok(()) => self.writes.write().set_written_out(from),
            Err(_) => self.has_whole_range = true,
        }
        written
    }

    /// Their number is counted already, and they are locked.
    fn delete_rows_of(&mut self, range: &OwnRange) -> Result<()> {
        let dict = self.touched().iter().find(|dict| dict.id == range.dict).cloned();
        let Some(dict) = dict else { return Ok(()) };
        let newest = self.db.snapshots.take();
        let mut cursor = dict.tree.cursor(newest.seqno());
        cursor.seek(&range.lo)?;
        while cursor.valid() && range.hi.as_deref().is_none_or(|hi| cursor.key() < hi) {
            if self.handle.is_killed() {
                return Err(Error::Killed);
            }
            self.pay_along(cursor.key().len())?;
            self.write_delete(&dict, cursor.key());
            cursor.next()?;
        }
        Ok(())
    }

    /// Takes a range of a prepared batch back, under the lock of all its keys.
    pub(crate) fn restore_range(&mut self, dict: &Arc<Dict>, lo: &[u8], hi: Option<&[u8]>) {
        if !self.db.locks.lock_stretch(&self.handle, dict.id, LockMode::Exclusive, lo, hi) {
            // Another's is there, which was restored before: nobody gets any key before this one is resolved.
            self.db.locks.lock_all_beside_others(&self.handle, dict.id);
        }
        self.touch(dict);
        // Its first row is deleted by the entry before it.
        self.writes.write().add_range((dict.id, dict.tree.reserve_restored_range()), lo, hi);
    }
}

/// Whether a row is nothing but its entry among the rows.
fn may_delete_ranges(table: &Table) -> bool {
    let has_values = |large: &Dict| large.tree.all_records().rows > 0 || large.writers.is_any();
    table.dicts.len() == 1
        && table.building.is_empty()
        && table.is_writable()
        && !table.large.as_ref().is_some_and(|large| has_values(&large.dict))
}
