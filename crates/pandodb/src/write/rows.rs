//! Rows of a table: one entry per dictionary, checked for uniqueness before anything is written.

use std::sync::Arc;

use pando_base::{limits, Error as EngineError};
use pando_txn::LockMode;

use crate::error::{Error, Result};
use crate::table::entry::{check_lengths, Entry};
use crate::table::large::LargeValue;
use crate::table::{Dict, Table};
use crate::txn::transaction::{LockWait, Txn};
use crate::write::building_ops::BuildingOps;
use crate::write::large::LargeChange;

/// What an insert does about a row that has one of its unique keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// [`Error::Duplicate`]; the row is locked, shared.
    #[default]
    Share,
    /// [`Error::Duplicate`]; the row is locked exclusively, for one who goes on to change or delete it. So two who do so do not wait
    /// for each other.
    Lock,
    /// Takes its place without looking for it. The caller vouches that there is none, or that it has the same key in every dictionary of the
    /// table, so that each entry replaces its own. Where that cannot do, because the row may refer to large values, or indexes are
    /// being built: as `Lock`.
    Overwrite,
}

/// In which dictionaries a row changes, a bit for each.
#[derive(Clone, Copy)]
struct Changes {
    moved: u128,
    changed: u128,
}

/// The caller may give the same bytes twice: to compare bytes that were written a moment ago stalls the processor.
fn differ(before: &[u8], after: &[u8]) -> bool {
    !std::ptr::eq(before, after) && before != after
}

impl Changes {
    fn new(table: &Table, old: &[Entry<'_>], new: &[Entry<'_>], in_full: bool) -> Changes {
        assert!(table.dicts.len() <= limits::INDEXES_MAX + 1, "no table has more");
        let mut changes = Changes { moved: 0, changed: 0 };
        for (index, (before, after)) in old.iter().zip(new).take(table.dicts.len()).enumerate() {
            let is_moved = differ(before.key, after.key);
            changes.moved |= u128::from(is_moved) << index;
            let is_changed = in_full || is_moved || differ(before.value, after.value);
            changes.changed |= u128::from(is_changed) << index;
        }
        changes
    }

    fn is_moved(self, index: usize) -> bool {
        self.moved >> index & 1 != 0
    }

    fn is_changed(self, index: usize) -> bool {
        self.changed >> index & 1 != 0
    }
}

impl Txn {
    /// Inserts a row: `entries[i]` goes to the table's dictionary `i`; those beyond, to the indexes that are
    /// being built ([`Table::building`]).
    /// Errors leave nothing written: [`Error::Duplicate`], those of locks, an entry that is too long, a table of another database, and
    /// too few or too many entries.
    /// A row that has one of its unique keys is locked, shared: it will be there until the transaction ends.
    pub fn insert_row(&mut self, table: &Table, entries: &[Entry<'_>]) -> Result<()> {
        self.insert(table, entries, &[], OnDuplicate::Share)
    }

    /// As [`Txn::insert_row`], of a row that refers to `large` values.
    pub fn insert_row_with(
        &mut self,
        table: &Table,
        entries: &[Entry<'_>],
        large: &[LargeValue<'_>],
        on_duplicate: OnDuplicate,
    ) -> Result<()> {
        self.insert(table, entries, large, on_duplicate)
    }

    /// As [`Txn::insert_row`], for one who goes on to change or delete the row that is in the way
    /// ([`OnDuplicate::Lock`]).
    pub fn insert_row_or_lock(&mut self, table: &Table, entries: &[Entry<'_>]) -> Result<()> {
        self.insert(table, entries, &[], OnDuplicate::Lock)
    }

    fn insert(
        &mut self,
        table: &Table,
        entries: &[Entry<'_>],
        large: &[LargeValue<'_>],
        on_duplicate: OnDuplicate,
    ) -> Result<()> {
        check_entries(table, entries)?;
        let large = LargeChange::insert(table, large)?;
        self.begin_row(table, entries, &large)?;
        let building = BuildingOps::new(table, &[], entries)?;
        self.claim_all(table, entries, large.bytes() > 0, on_duplicate)?;
        let row = table.dicts.iter().zip(entries).filter(|(dict, _)| !dict.is_unusable());
        row.clone().for_each(|(dict, _)| self.touch(dict));
        building.touch(self);
        large.touch(self);
        let new = row.clone().map(|(dict, entry)| (dict, entry.key));
        self.write_when_free(new, LockWait::Default, |writes| {
            row.for_each(|(dict, entry)| writes.put(dict.id, entry.key, entry.value));
            building.write(writes);
            large.write(writes);
        })?;
        self.writes.write().net_rows.add(table.rows().id, 1);
        self.db.metrics.rows_inserted.add(1);
        Ok(())
    }

    /// Replaces a row that was read under its lock. Entries that did not change cost nothing. Of an old value nothing counts but
    /// whether it is the new one.
    /// Errors as [`Txn::insert_row`].
    pub fn update_row(&mut self, table: &Table, old: &[Entry<'_>], new: &[Entry<'_>]) -> Result<()> {
        self.replace_row(table, old, new, &[], false)
    }

    /// As [`Txn::update_row`], or where it [is newer](Txn::is_newer_than_snapshot) [`Txn::update_newer_row`], of a row that
    /// refers to `large` values to which it did not refer before.
    pub fn update_row_with(
        &mut self,
        table: &Table,
        old: &[Entry<'_>],
        new: &[Entry<'_>],
        large: &[LargeValue<'_>],
        is_newer: bool,
    ) -> Result<()> {
        self.replace_row(table, old, new, large, is_newer)
    }

    /// As [`Txn::update_row`], for a row that [is newer than the snapshot](Txn::is_newer_than_snapshot): writes also
    /// the entries that did not change. So consistent reads by an index meet the row as those without do: the
    /// committed entry is not in their snapshot.
    pub fn update_newer_row(&mut self, table: &Table, old: &[Entry<'_>], new: &[Entry<'_>]) -> Result<()> {
        self.replace_row(table, old, new, &[], true)
    }

    /// Whether a row, which this transaction has locked, was committed after the snapshot of its consistent reads
    /// was taken, and not changed by this transaction yet.
    pub fn is_newer_than_snapshot(&self, table: &Table, key: &[u8]) -> Result<bool> {
        self.check_own(table)?;
        let Some(seqno) = self.kept_snapshot_seqno() else { return Ok(false) };
        if self.db.snapshots.visible() <= seqno || self.own(table.rows(), key)?.is_some() {
            return Ok(false);
        }
        let newest = table.rows().tree.newest(key)?;
        Ok(newest.is_some_and(|(newest, _)| newest > seqno))
    }

    /// Whether this transaction itself has written or deleted a key of dictionary `index`.
    pub fn has_written(&self, table: &Table, index: usize, key: &[u8]) -> Result<bool> {
        Ok(self.own(self.dict_of(table, index)?, key)?.is_some())
    }

    fn replace_row(
        &mut self,
        table: &Table,
        old: &[Entry<'_>],
        new: &[Entry<'_>],
        large: &[LargeValue<'_>],
        in_full: bool,
    ) -> Result<()> {
        check_entries(table, old)?;
        check_entries(table, new)?;
        self.begin_row(table, new, &LargeChange::insert(table, large)?)?;
        let building = BuildingOps::new(table, old, new)?;
        let changes = Changes::new(table, old, new, in_full);
        self.lock_old(table, old)?;
        let large = match changes.is_changed(0) {
            true => self.change_large(table, old[0].key, Some(new[0].value), large)?,
            false => LargeChange::default(),
        };
        for (index, (dict, after)) in table.dicts.iter().zip(new).enumerate() {
            if after.unique && changes.is_moved(index) {
                self.claim(dict, index, after.key, LockMode::Shared)?;
            }
        }
        let is_written = |index: &usize| changes.is_changed(*index) && !table.dicts[*index].is_unusable();
        let changed = (0..table.dicts.len()).filter(is_written);
        changed.clone().for_each(|index| self.touch(&table.dicts[index]));
        building.touch(self);
        large.touch(self);
        let inserted = changed.clone().filter(|index| changes.is_moved(*index));
        let inserted = inserted.map(|index| (&table.dicts[index], new[index].key));
        self.write_when_free(inserted, LockWait::Default, |writes| {
            for index in changed {
                let (dict, after) = (&table.dicts[index], &new[index]);
                if changes.is_moved(index) {
                    writes.delete(dict.id, old[index].key);
                }
                writes.put(dict.id, after.key, after.value);
            }
            building.write(writes);
            large.write(writes);
        })?;
        self.db.metrics.rows_updated.add(1);
        Ok(())
    }

    /// Deletes a row that was read under its lock.
    pub fn delete_row(&mut self, table: &Table, old: &[Entry<'_>]) -> Result<()> {
        check_entries(table, old)?;
        self.check_writable(table)?;
        self.pay_along(old.iter().map(|entry| entry.key.len()).sum())?;
        let building = BuildingOps::new(table, old, &[])?;
        self.lock_old(table, old)?;
        let large = self.change_large(table, old[0].key, None, &[])?;
        building.touch(self);
        large.touch(self);
        for (dict, entry) in table.dicts.iter().zip(old).filter(|(dict, _)| !dict.is_unusable()) {
            self.write_delete(dict, entry.key);
        }
        let mut writes = self.writes.write();
        building.write(&mut writes.set);
        large.write(&mut writes.set);
        writes.net_rows.add(table.rows().id, -1);
        drop(writes);
        self.db.metrics.rows_deleted.add(1);
        Ok(())
    }

    /// Refuses a table of another database, one that was dropped, and a write through an object that does not know all indexes: one of them would miss it.
    /// The server reopens its tables when their definition changes, so nobody should meet the second.
    fn check_writable(&self, table: &Table) -> Result<()> {
        self.check_own(table)?;
        table.check_there()?;
        match table.is_writable() {
            true => Ok(()),
            false => Err(Error::DefinitionChanged),
        }
    }

    /// What may refuse a row before anything of it is written.
    fn begin_row(&mut self, table: &Table, entries: &[Entry<'_>], large: &LargeChange<'_>) -> Result<()> {
        self.check_writable(table)?;
        let bytes: usize = entries.iter().map(|entry| entry.key.len() + entry.value.len()).sum();
        self.pay_along(bytes + large.bytes())
    }

    /// Locks the unique keys that a row gives up, so that nobody takes them before the commit.
    /// The row's own key is locked whether or not the table has a primary key.
    fn lock_old(&mut self, table: &Table, old: &[Entry<'_>]) -> Result<()> {
        for (index, (dict, entry)) in table.dicts.iter().zip(old).enumerate() {
            if index == 0 || entry.unique {
                self.lock_row(dict, entry.key, LockMode::Exclusive, LockWait::Default)?;
            }
        }
        Ok(())
    }

    /// Locks a key that is about to be inserted and makes sure that it is free. `duplicates`: how it is locked if not.
    pub(crate) fn claim(
        &mut self,
        dict: &Arc<Dict>,
        index: usize,
        key: &[u8],
        duplicates: LockMode,
    ) -> Result<()> {
        dict.check_usable()?;
        self.wait_for_gaps_first(dict, key)?;
        let existing = match duplicates {
            LockMode::Shared => self.lock_free_or_share(dict, key)?,
            LockMode::Exclusive => {
                self.lock(dict, key, LockMode::Exclusive, LockWait::Default)?;
                self.newest_locked(dict, key)?
            }
        };
        match existing {
            Some(existing) => Err(Error::Duplicate { index, existing }),
            None => Ok(()),
        }
    }

    /// Makes sure that the unique keys of a new row are this transaction's.
    fn claim_all(
        &mut self,
        table: &Table,
        entries: &[Entry<'_>],
        has_large: bool,
        on_duplicate: OnDuplicate,
    ) -> Result<()> {
        let unique = table.dicts.iter().zip(entries).enumerate().filter(|(_, (_, entry))| entry.unique);
        if on_duplicate == OnDuplicate::Overwrite && !has_large && can_write_unread(table) {
            for (_, (dict, entry)) in unique.clone() {
                self.take_unseen(dict, entry.key)?;
            }
            // Until it was locked the row may have got the first large value of the table.
            if can_write_unread(table) {
                self.db.metrics.rows_unread.add(1);
                return Ok(());
            }
        }
        let lock = match on_duplicate {
            OnDuplicate::Share => LockMode::Shared,
            OnDuplicate::Lock | OnDuplicate::Overwrite => LockMode::Exclusive,
        };
        for (index, (dict, entry)) in unique {
            self.claim(dict, index, entry.key, lock)?;
        }
        Ok(())
    }

    /// Locks a key that is about to be written, whether or not it has a row.
    fn take_unseen(&mut self, dict: &Arc<Dict>, key: &[u8]) -> Result<()> {
        dict.check_usable()?;
        self.wait_for_gaps_first(dict, key)?;
        self.lock(dict, key, LockMode::Exclusive, LockWait::Default)?;
        Ok(())
    }

    /// In the place of a locking read of the row with this key, for one who knows the row, or all of it that its change or delete
    /// needs: what is in the other dictionaries' keys. False: the row must be read all the same, because it may refer to
    /// large values, or indexes are being built.
    ///
    /// # Errors
    /// Those of locks.
    pub fn lock_unread(&mut self, table: &Table, key: &[u8]) -> Result<bool> {
        self.check_own(table)?;
        if !can_write_unread(table) {
            return Ok(false);
        }
        self.lock_row(table.rows(), key, LockMode::Exclusive, LockWait::Default)?;
        let is_known = can_write_unread(table);
        self.db.metrics.rows_unread.add(u64::from(is_known));
        Ok(is_known)
    }

    /// Locks a key exclusively if it is free; shared, if it has a row, which is the answer.
    fn lock_free_or_share(&mut self, dict: &Dict, key: &[u8]) -> Result<Option<Vec<u8>>> {
        // 1. Mostly nobody is in the way.
        match self.lock(dict, key, LockMode::Exclusive, LockWait::NoWait) {
            Err(Error::WouldBlock) => {}
            locked => return locked.and_then(|_| self.share_met(dict, key)),
        }
        // 2. Who is has met the row, too, and stays; or is about to insert, change or delete it.
        self.lock(dict, key, LockMode::Shared, LockWait::Default)?;
        if let Some(existing) = self.newest_locked(dict, key)? {
            return Ok(Some(existing));
        }
        // 3. It is free after all. All who have waited for that see it at once: none of them keeps what would be in
        //    the others' way.
        if self.just_locked() {
            self.db.locks.unlock(&self.handle, dict.id, key);
        }
        self.lock(dict, key, LockMode::Exclusive, LockWait::Default)?;
        self.share_met(dict, key)
    }

    /// The row of a key that was locked to insert it; if there is one, the lock need not be exclusive.
    fn share_met(&mut self, dict: &Dict, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let existing = self.newest_locked(dict, key)?;
        if existing.is_some() && self.just_locked() {
            self.db.locks.share(&self.handle, dict.id, key);
        }
        Ok(existing)
    }
}

/// Whether a row that may be there can be replaced or deleted by who has not read it. Once its key is locked, the answer stays.
fn can_write_unread(table: &Table) -> bool {
    let has_large = table.large.as_ref().is_some_and(|values| values.may_be_some());
    !has_large && table.building.iter().all(|building| building.is_over())
}

/// A row has an entry in every dictionary, and none is longer than its files can have.
fn check_entries(table: &Table, entries: &[Entry<'_>]) -> Result<()> {
    if entries.len() == table.entries() {
        // Those that are deleted as well: a tombstone has a key, too.
        return entries.iter().try_for_each(|entry| check_lengths(entry.key, entry.value));
    }
    let (path, wanted) = (table.path(), table.entries());
    let what = format!("a row of table {path} has {wanted} entries, not {}", entries.len());
    Err(EngineError::argument(what).into())
}
