//! Transactions: rows in, rows out by key, marks, commit and rollback.

use std::mem::MaybeUninit;
use std::time::Duration;

use pandodb::{EngineError, Entry, Error, LargeValue, LockMode, LockedRead, Mark, OnDuplicate, Txn};

use crate::buffer::PandoBuffer;
use crate::bytes::PandoBytes;
use crate::database::PandoDb;
use crate::guard::{contain, guard, meet_planted_bug};
use crate::large::{large_values, PandoLargeValue};
use crate::member::member;
use crate::read::{lock_wait, PandoRead};
use crate::status::{fail, fail_with_bug, run, PandoStatus};
use crate::table::PandoTable;

/// What an insert does about a row that has one of its unique keys.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoOnDuplicate {
    /// `Duplicate`; the row is locked, shared.
    Share = 0,
    /// `Duplicate`; the row is locked exclusively, because it will be changed or deleted.
    Lock = 1,
    /// Takes its place without looking for it: the caller vouches that there is none, or that it has the same key in every dictionary.
    /// Where that cannot do, as `Lock`.
    Overwrite = 2,
}

crate::member::members! {
    PandoOnDuplicate: Share Lock Overwrite;
}

impl From<PandoOnDuplicate> for OnDuplicate {
    fn from(on_duplicate: PandoOnDuplicate) -> OnDuplicate {
        match on_duplicate {
            PandoOnDuplicate::Share => OnDuplicate::Share,
            PandoOnDuplicate::Lock => OnDuplicate::Lock,
            PandoOnDuplicate::Overwrite => OnDuplicate::Overwrite,
        }
    }
}

/// A transaction of one connection; after commit or rollback it serves the next.
#[derive(Debug)]
pub struct PandoTxn {
    pub(crate) txn: Txn,
    /// Marks given out in this transaction; their numbers are positions here. `None`: released.
    marks: Vec<Option<Mark>>,
    /// Dictionary and value of the last duplicate key.
    duplicate: (u32, Vec<u8>),
    /// Key and value of the row of a load that was the duplicate.
    loaded_duplicate: (Vec<u8>, Vec<u8>),
    /// A call with it has met a bug: what it has read, written and locked is not trusted any more, and goes with its rollback.
    is_unsure: bool,
}

impl PandoTxn {
    pub(crate) fn new(txn: Txn) -> PandoTxn {
        let (marks, duplicate, loaded_duplicate) = Default::default();
        PandoTxn { txn, marks, duplicate, loaded_duplicate, is_unsure: false }
    }

    /// Runs the body of a function that answers with a status, for a transaction that has met no bug yet. A panic is one.
    pub(crate) fn run(
        &mut self,
        body: impl FnOnce(&mut PandoTxn) -> pandodb::Result<PandoStatus>,
    ) -> PandoStatus {
        if self.is_unsure {
            return self.refuse();
        }
        contain(|| body(self).unwrap_or_else(|error| fail(&error))).unwrap_or_else(|text| {
            self.is_unsure = true;
            fail_with_bug(text)
        })
    }

    fn refuse(&self) -> PandoStatus {
        fail_with_bug("the transaction has met a bug, and can only be rolled back".into())
    }

    pub(crate) fn set_duplicate(&mut self, index: usize, existing: Vec<u8>, key: Vec<u8>, value: Vec<u8>) {
        self.duplicate = (index as u32, existing);
        self.loaded_duplicate = (key, value);
    }

    pub(crate) fn loaded_duplicate(&self) -> (&[u8], &[u8]) {
        (&self.loaded_duplicate.0, &self.loaded_duplicate.1)
    }
}

/// What one row is in one dictionary.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoEntry {
    /// The key.
    pub key: PandoBytes,
    /// The value.
    pub value: PandoBytes,
    /// 1: no other row may have this key.
    pub unique: u8,
}

/// Begins a transaction (without a snapshot); free it with [`pando_txn_free`].
///
/// # Safety
/// `db` is open and stays so for the life of the transaction.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_new(db: *const PandoDb) -> *mut PandoTxn {
    guard(|| {
        // SAFETY: the caller vouches for it.
        let db = unsafe { &(*db).db };
        Box::into_raw(Box::new(PandoTxn::new(db.begin())))
    })
}

/// Rolls back what is not committed and frees the transaction. Null is allowed.
///
/// # Safety
/// The transaction is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_free(txn: *mut PandoTxn) {
    guard(|| {
        if !txn.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(txn) });
        }
    });
}

/// The transaction's id, for `pando_db_kill`.
///
/// # Safety
/// The transaction is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_id(txn: *const PandoTxn) -> u64 {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*txn).txn.id().0 })
}

/// A statement begins: row locks are waited for this many milliseconds from now on, and a kill of an
/// earlier statement is forgotten.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_begin_statement(txn: *mut PandoTxn, lock_wait_ms: u64) {
    // SAFETY: the caller vouches for it.
    let txn = unsafe { &mut (*txn).txn };
    guard(|| {
        txn.clear_kill();
        txn.set_lock_wait(Duration::from_millis(lock_wait_ms));
    });
}

/// Decides whether commits in one phase wait for the log's sync where the flush mode asks for it (1).
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_set_synced(txn: *mut PandoTxn, is_synced: u8) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*txn).txn.set_synced(is_synced != 0) });
}

/// Decides whether locking reads exclude phantoms from now on (1): REPEATABLE READ and SERIALIZABLE.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_set_takes_gaps(txn: *mut PandoTxn, takes_gaps: u8) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*txn).txn.set_takes_gaps(takes_gaps != 0) });
}

/// Takes the snapshot of consistent reads unless there is one.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_open_snapshot(txn: *mut PandoTxn) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*txn).txn.open_snapshot() });
}

/// As [`pando_txn_open_snapshot`], of every commit that has its place in the order now: to be called under
/// the mutex that [`pando_txn_commit_ordered`] is called under. Waits for nobody.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_open_ordered_snapshot(txn: *mut PandoTxn) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*txn).txn.open_ordered_snapshot() });
}

/// Gives the snapshot back; the next consistent read takes a new one.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_close_snapshot(txn: *mut PandoTxn) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*txn).txn.close_snapshot() });
}

/// 1 when a commit would write something.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_has_writes(txn: *const PandoTxn) -> u8 {
    // SAFETY: the caller vouches for it.
    guard(|| u8::from(unsafe { (*txn).txn.has_writes() }))
}

/// Bytes of uncommitted writes.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_write_bytes(txn: *const PandoTxn) -> u64 {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*txn).txn.write_bytes() })
}

/// A number for the place in the transaction's writes where it is now, for [`pando_txn_rollback_to`].
/// Valid until the transaction ends or is rolled back to an earlier mark, or it is released.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_mark(txn: *mut PandoTxn) -> u64 {
    // SAFETY: the caller vouches for it.
    let txn = unsafe { &mut *txn };
    guard(|| {
        txn.marks.push(Some(txn.txn.mark()));
        txn.marks.len() as u64 - 1
    })
}

/// How many writes were done since the mark and not undone, one for each entry of each row; all ones if there is no
/// such mark.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_writes_since(txn: *const PandoTxn, mark: u64) -> u64 {
    // SAFETY: the caller vouches for it.
    let txn = unsafe { &*txn };
    guard(|| match txn.marks.get(mark as usize) {
        Some(Some(place)) => txn.txn.writes_since(*place),
        _ => u64::MAX,
    })
}

/// The mark will not be rolled back to any more. Writes before and after a mark that was not released are
/// kept apart, which costs a long transaction.
///
/// # Safety
/// The transaction is alive and belongs to this thread; the mark is valid, and not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_release_mark(txn: *mut PandoTxn, mark: u64) {
    // SAFETY: the caller vouches for it.
    let txn = unsafe { &mut *txn };
    guard(|| {
        let Some(place) = txn.marks.get_mut(mark as usize).and_then(Option::take) else { return };
        txn.txn.release_mark(place);
        while let Some(None) = txn.marks.last() {
            txn.marks.pop();
        }
    });
}

/// Undoes the writes made since the mark. Locks stay. `BadArgument`: there is no such mark, or the transaction is prepared; nothing was undone.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_rollback_to(txn: *mut PandoTxn, mark: u64) -> PandoStatus {
    // SAFETY: the caller vouches for it.
    let txn = unsafe { &mut *txn };
    run(|| {
        let mark = usize::try_from(mark).unwrap_or(usize::MAX);
        let Some(Some(place)) = txn.marks.get(mark).copied() else {
            return Err(EngineError::argument("the transaction has no such mark to roll back to").into());
        };
        txn.txn.rollback_to(place)?;
        // One set later at the same place stays: a savepoint between two statements, the second of which failed.
        let is_undone = |later: &Option<Mark>| later.is_none_or(|later| later > place);
        while txn.marks.len() > mark + 1 && txn.marks.last().is_some_and(is_undone) {
            txn.marks.pop();
        }
        Ok(PandoStatus::Ok)
    })
}

/// Commits. Whatever comes back, the transaction is over; but one that was prepared stays so after an error,
/// without this object, which has a new id then. One that has met a bug is rolled back: `Bug`.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_commit(txn: *mut PandoTxn) -> PandoStatus {
    // SAFETY: the caller vouches for it.
    let txn = unsafe { &mut *txn };
    run(|| {
        txn.marks.clear();
        if txn.is_unsure && !txn.txn.is_prepared() {
            txn.txn.rollback();
            txn.is_unsure = false;
            return Ok(txn.refuse());
        }
        txn.is_unsure = false;
        txn.txn.commit()?;
        Ok(PandoStatus::Ok)
    })
}

/// First phase of a two-phase commit: durable but for the decision, under the coordinator's name for it.
/// After an error it can only be rolled back. Without writes it does nothing.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_prepare(txn: *mut PandoTxn, xid: PandoBytes) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (txn, xid) = unsafe { (&mut *txn, xid.as_slice()) };
    run(|| {
        meet_planted_bug(xid);
        if txn.is_unsure {
            return Ok(txn.refuse());
        }
        txn.txn.prepare(xid)?;
        Ok(PandoStatus::Ok)
    })
}

/// A kill is over: lock requests do not fail any more.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_clear_kill(txn: *mut PandoTxn) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*txn).txn.clear_kill() });
}

/// Gives a prepared transaction to whoever knows its name, at once. [`pando_txn_commit_ordered`], [`pando_txn_commit`] and
/// [`pando_txn_rollback`] take it back; it has another id until then, and must not be used for anything else. Does nothing
/// to one without writes.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_leave(txn: *mut PandoTxn) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*txn).txn.leave() });
}

/// 1 while it is prepared and not resolved: freeing it then leaves it to `pando_db_commit_by_xid`.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_is_prepared(txn: *const PandoTxn) -> u8 {
    // SAFETY: the caller vouches for it.
    guard(|| u8::from(unsafe { (*txn).txn.is_prepared() }))
}

/// Gives a prepared transaction its place in the order of commits; [`pando_txn_commit`] must follow, and
/// tells what went wrong. Waits for no other transaction. `remembered` is 1 if the coordinator's decision is
/// on disk and comes back after a crash: then the commit does not wait for the log.
///
/// # Safety
/// The transaction is alive, and the thread it belongs to waits for this call.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_commit_ordered(txn: *mut PandoTxn, remembered: u8) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*txn).txn.commit_ordered(remembered != 0) });
}

/// Rolls back.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_rollback(txn: *mut PandoTxn) {
    // SAFETY: the caller vouches for it.
    let txn = unsafe { &mut *txn };
    guard(|| {
        txn.marks.clear();
        txn.txn.rollback();
        txn.is_unsure = false;
    });
}

/// Reads one key of dictionary `index` into `buffer`: `Ok`, `NotFound` or `Skipped`. As with every function that takes a table,
/// `BadArgument`: the table is of another database, or has no such dictionary; nothing was done, and the transaction can go on.
///
/// # Safety
/// All objects are alive, the transaction and the buffer belong to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_get(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    index: u32,
    key: PandoBytes,
    read: MaybeUninit<PandoRead>,
    wait_s: i64,
    buffer: *mut PandoBuffer,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (txn, table, key, buffer) =
        unsafe { (&mut *txn, &(*table).table, key.as_slice(), &mut (*buffer).bytes) };
    txn.run(|PandoTxn { txn, .. }| {
        meet_planted_bug(key);
        let (index, read) = (index as usize, member(read)?);
        let found = match read {
            PandoRead::Snapshot => txn.get(table, index, key)?,
            PandoRead::Latest => txn.get_latest(table, index, key)?,
            PandoRead::Shared | PandoRead::Exclusive => {
                let mode = if read == PandoRead::Shared { LockMode::Shared } else { LockMode::Exclusive };
                match txn.get_locked(table, index, key, mode, lock_wait(wait_s))? {
                    LockedRead::Row(value) => Some(value),
                    LockedRead::Absent => None,
                    LockedRead::Skipped => return Ok(PandoStatus::Skipped),
                }
            }
        };
        txn.note_rows_read(u64::from(found.is_some()));
        Ok(match found {
            Some(value) => {
                *buffer = value;
                PandoStatus::Ok
            }
            None => PandoStatus::NotFound,
        })
    })
}

/// Locks one key of dictionary `index` and looks whether it has a row, which is not read: `Ok`, `NotFound` or `Skipped`, as a locking
/// [`pando_txn_get`]. `read` is `Shared` or `Exclusive`.
///
/// # Safety
/// All objects are alive, the transaction belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_lock_existing(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    index: u32,
    key: PandoBytes,
    read: MaybeUninit<PandoRead>,
    wait_s: i64,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (txn, table, key) = unsafe { (&mut *txn, &(*table).table, key.as_slice()) };
    txn.run(|PandoTxn { txn, .. }| {
        meet_planted_bug(key);
        let mode = match member(read)? {
            PandoRead::Shared => LockMode::Shared,
            PandoRead::Exclusive => LockMode::Exclusive,
            PandoRead::Snapshot | PandoRead::Latest => {
                return Err(EngineError::argument("a read that locks is Shared or Exclusive").into())
            }
        };
        let found = txn.lock_existing(table, index as usize, key, mode, lock_wait(wait_s))?;
        txn.note_rows_read(u64::from(found == Some(true)));
        Ok(match found {
            Some(true) => PandoStatus::Ok,
            Some(false) => PandoStatus::NotFound,
            None => PandoStatus::Skipped,
        })
    })
}

/// 1 when the lock of the last locking read was not held before it.
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_just_locked(txn: *const PandoTxn) -> u8 {
    // SAFETY: the caller vouches for it.
    guard(|| u8::from(unsafe { (*txn).txn.just_locked() }))
}

/// Gives back the lock of a row that was read and does not match (READ COMMITTED).
///
/// # Safety
/// All objects are alive, the transaction belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_unlock(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    index: u32,
    key: PandoBytes,
) {
    // SAFETY: the caller vouches for all of them.
    let (txn, table, key) = unsafe { (&mut (*txn).txn, &(*table).table, key.as_slice()) };
    guard(|| txn.unlock(table, index as usize, key));
}

/// # Safety
/// `entries` points to `count` entries whose bytes stay for the call.
unsafe fn entries<'a>(entries: *const PandoEntry, count: u32) -> Vec<Entry<'a>> {
    // SAFETY: the caller vouches for it.
    let entries = unsafe { std::slice::from_raw_parts(entries, count as usize) };
    entries
        .iter()
        .map(|entry| Entry {
            // SAFETY: as above.
            key: unsafe { entry.key.as_slice() },
            // SAFETY: as above.
            value: unsafe { entry.value.as_slice() },
            unique: entry.unique != 0,
        })
        .collect()
}

/// Runs a change of a row; a duplicate key is kept for [`pando_txn_duplicate`].
fn change(txn: &mut PandoTxn, work: impl FnOnce(&mut Txn) -> pandodb::Result<()>) -> PandoStatus {
    txn.run(|txn| match work(&mut txn.txn) {
        Err(Error::Duplicate { index, existing }) => {
            let error = Error::Duplicate { index, existing: Vec::new() };
            txn.duplicate = (index as u32, existing);
            Err(error)
        }
        other => other.map(|()| PandoStatus::Ok),
    })
}

/// Inserts a row: `new_entries[i]` goes to dictionary `i`, and the row refers to `large` values. Errors leave nothing written.
/// `on_duplicate`: what becomes of a row that is in the way.
///
/// # Safety
/// All objects are alive, the transaction belongs to this thread, `new_entries` has `count` entries, `large` has `large_count`.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_insert_row(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    new_entries: *const PandoEntry,
    count: u32,
    large: *const PandoLargeValue,
    large_count: u32,
    on_duplicate: MaybeUninit<PandoOnDuplicate>,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (txn, table, new) = unsafe { (&mut *txn, &(*table).table, entries(new_entries, count)) };
    // SAFETY: as above.
    let large: Vec<LargeValue<'_>> = unsafe { large_values(large, large_count) };
    change(txn, |txn| txn.insert_row_with(table, &new, &large, member(on_duplicate)?.into()))
}

/// In the place of a locking read of the row with this key in dictionary 0, for one who goes on to change or delete it and knows what
/// that needs. `out`: 0 if the row must be read all the same, and nothing is locked.
///
/// # Safety
/// As [`pando_txn_is_newer_than_snapshot`].
#[no_mangle]
pub unsafe extern "C" fn pando_txn_lock_unread(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    key: PandoBytes,
    out: *mut u8,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (txn, table, key, out) = unsafe { (&mut *txn, &(*table).table, key.as_slice(), &mut *out) };
    change(txn, |txn| {
        *out = u8::from(txn.lock_unread(table, key)?);
        Ok(())
    })
}

/// Deletes all rows with keys from `lo` up to, but without, `hi`, or all from `lo` on without `has_hi`, as the first thing that the
/// transaction writes. `rows`: how many there were. `done`: 0 if this is not possible now; then nothing was done, and they have to be
/// deleted one by one.
///
/// # Safety
/// The transaction is alive and belongs to this thread, the table is open, keys and outputs are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_delete_range(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    lo: PandoBytes,
    hi: PandoBytes,
    has_hi: u8,
    rows: *mut u64,
    done: *mut u8,
) -> PandoStatus {
    // SAFETY: the caller vouches for the first four, and for the outputs.
    let (txn, table, lo, hi) = unsafe { (&mut *txn, &(*table).table, lo.as_slice(), hi.as_slice()) };
    // SAFETY: as above.
    let (rows, done) = unsafe { (&mut *rows, &mut *done) };
    change(txn, |txn| {
        let deleted = txn.delete_range(table, lo, (has_hi != 0).then_some(hi))?;
        (*rows, *done) = (deleted.unwrap_or(0), u8::from(deleted.is_some()));
        Ok(())
    })
}

/// `out`: 1 if a row, which the transaction has locked, is newer than the snapshot of its consistent reads: then
/// [`pando_txn_update_row`] wants all of its entries, so that reads by an index meet it, too.
///
/// # Safety
/// The transaction is alive and belongs to this thread, the table is open, `key` and `out` are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_is_newer_than_snapshot(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    key: PandoBytes,
    out: *mut u8,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (txn, table, key, out) = unsafe { (&mut *txn, &(*table).table, key.as_slice(), &mut *out) };
    change(txn, |txn| {
        *out = u8::from(txn.is_newer_than_snapshot(table, key)?);
        Ok(())
    })
}

/// `out`: 1 if the transaction itself has written or deleted a key of dictionary `index`.
///
/// # Safety
/// As [`pando_txn_is_newer_than_snapshot`].
#[no_mangle]
pub unsafe extern "C" fn pando_txn_has_written(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    index: u32,
    key: PandoBytes,
    out: *mut u8,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (txn, table, key, out) = unsafe { (&mut *txn, &(*table).table, key.as_slice(), &mut *out) };
    change(txn, |txn| {
        *out = u8::from(txn.has_written(table, index as usize, key)?);
        Ok(())
    })
}

/// Replaces a row that was read under its lock. Errors leave nothing written. `in_full`: 1 if the row is newer than the
/// snapshot; else entries that are the same in both lists may be left out, that is, empty. Where it is known that the row
/// is not the same, the old one's value, that of the first of `old_entries`, may be left out, too. `large` are the values to which
/// the row did not refer before.
///
/// # Safety
/// As [`pando_txn_insert_row`], for all lists.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_update_row(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    old_entries: *const PandoEntry,
    new_entries: *const PandoEntry,
    count: u32,
    large: *const PandoLargeValue,
    large_count: u32,
    in_full: u8,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (txn, table, old, new) =
        unsafe { (&mut *txn, &(*table).table, entries(old_entries, count), entries(new_entries, count)) };
    // SAFETY: as above.
    let large: Vec<LargeValue<'_>> = unsafe { large_values(large, large_count) };
    change(txn, |txn| txn.update_row_with(table, &old, &new, &large, in_full != 0))
}

/// Deletes a row that was read under its lock.
///
/// # Safety
/// As [`pando_txn_insert_row`].
#[no_mangle]
pub unsafe extern "C" fn pando_txn_delete_row(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    old_entries: *const PandoEntry,
    count: u32,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (txn, table, old) = unsafe { (&mut *txn, &(*table).table, entries(old_entries, count)) };
    change(txn, |txn| txn.delete_row(table, &old))
}

/// After `Duplicate`: the dictionary that has the key already, and the value stored there, valid until
/// the next change through this transaction.
///
/// # Safety
/// The transaction is alive and belongs to this thread, `existing` is valid or null.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_duplicate(txn: *const PandoTxn, existing: *mut PandoBytes) -> u32 {
    // SAFETY: the caller vouches for both.
    let (duplicate, existing) = unsafe { (&(*txn).duplicate, existing.as_mut()) };
    guard(|| {
        if let Some(existing) = existing {
            *existing = PandoBytes::from_slice(&duplicate.1);
        }
        duplicate.0
    })
}

/// Auto-increment values below `next` are used; logged with the commit. Nothing can go wrong but a mistake of the caller (`BadArgument`).
///
/// # Safety
/// Both objects are alive, the transaction belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_raise_auto_increment(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    next: u64,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (txn, table) = unsafe { (&mut *txn, &(*table).table) };
    change(txn, |txn| txn.raise_auto_increment(table, next))
}
