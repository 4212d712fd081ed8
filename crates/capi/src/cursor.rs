//! Cursors: fetches of batches of rows.

use std::mem::MaybeUninit;
use std::sync::Arc;

use pandodb::{Cursor, EngineError, FilteredRows, Table, Txn};

use crate::batch::{Arena, PandoBatch};
use crate::bytes::PandoBytes;
use crate::filter::PandoFilter;
use crate::guard::{guard, meet_planted_bug};
use crate::member::member;
use crate::read::{lock_wait, read_mode, PandoRead};
use crate::status::PandoStatus;
use crate::table::PandoTable;
use crate::transaction::PandoTxn;

/// Where a fetch begins; the first and third go up from there, the others down.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoMove {
    /// The first row whose key is at or after the key given.
    AtOrAfter = 0,
    /// The last row whose key is before the key given.
    Before = 1,
    /// The first row.
    First = 2,
    /// The last row.
    Last = 3,
    /// The row after the last one fetched; the fetch before went up.
    Next = 4,
    /// The row before the last one fetched; the fetch before went down.
    Previous = 5,
    /// The last one fetched, which is a peek (`PandoBatch::is_peek`), as it is once `wait_s` has been waited for it; if it
    /// is gone, the row after it in the direction of the fetch before.
    Peeked = 6,
    /// The last one fetched again, as it is in the newest state by now; if it is gone, the row after it in the direction of
    /// the fetch before. For locking fetches.
    Again = 7,
}

crate::member::members! {
    PandoMove: AtOrAfter Before First Last Next Previous Peeked Again;
}

/// What a fetch is asked for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoFetch {
    /// Where to begin.
    pub start: MaybeUninit<PandoMove>,
    /// What is seen. Locking reads of other dictionaries than 0 lock gaps only; the rows are the caller's
    /// to lock.
    pub read: MaybeUninit<PandoRead>,
    /// How long locks are waited for (`PANDO_WAIT_*`).
    pub wait_s: i64,
    /// The key of `AtOrAfter` and `Before`.
    pub key: PandoBytes,
    /// Going up, the first key that is not wanted; going down, the last that is. Null: no bound.
    pub stop: PandoBytes,
    /// Most rows.
    pub rows_max: u32,
    /// The fetch ends with the row that passes this size.
    pub bytes_max: u32,
    /// 1: a locking fetch may lock rows before it comes to them, as many as it has met, for scans that will probably come to
    /// all of them. It gives those that are locked already, at least one.
    pub is_ahead: u8,
    /// 1: who fetches keeps the locks of all rows that it is given, because it has no other condition on them than `condition`.
    /// Then rows may be locked ahead also where gaps stay free, if there is no place for another key between them.
    pub keeps_rows: u8,
    /// Null, or a condition on the rows of dictionary 0, for locking fetches with `is_ahead`: those for which it is not true
    /// need not be given.
    pub condition: *const PandoFilter,
    /// Null, or a condition on the rows of dictionary 0: those for which it is not true need not be given, nor columns
    /// that the filter does not say are needed. For snapshot reads that begin at `First` or `AtOrAfter`, and their
    /// `Next`, which have to give it again. A fetch that has looked at many rows in vain ends without rows before the
    /// cursor has `ended`.
    pub filter: *const PandoFilter,
}

/// A cursor over one dictionary of a table.
#[derive(Debug)]
pub struct PandoCursor {
    cursor: Cursor,
    /// The scan, if it is one with a filter.
    filtered: Option<FilteredRows>,
    arena: Arena,
}

/// Makes a cursor over dictionary `index`; free it with [`pando_cursor_free`].
///
/// # Safety
/// Both objects are alive.
#[no_mangle]
pub unsafe extern "C" fn pando_cursor_new(
    txn: *const PandoTxn,
    table: *const PandoTable,
    index: u32,
) -> *mut PandoCursor {
    guard(|| {
        // SAFETY: the caller vouches for both.
        let (txn, table): (&Txn, &Arc<Table>) = unsafe { (&(*txn).txn, &(*table).table) };
        Box::into_raw(Box::new(PandoCursor {
            cursor: txn.cursor(table, index as usize),
            filtered: None,
            arena: Arena::default(),
        }))
    })
}

/// Frees a cursor. Null is allowed.
///
/// # Safety
/// The cursor is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_cursor_free(cursor: *mut PandoCursor) {
    guard(|| {
        if !cursor.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(cursor) });
        }
    });
}

/// Fetches rows. `NotFound`: there is none. After an error the cursor has to seek again; after `Bug`, it can only be freed.
///
/// # Safety
/// `cursor` and `txn` are alive and belong to this thread, `fetch` and `batch` are valid.
#[no_mangle]
pub unsafe extern "C" fn pando_cursor_fetch(
    cursor: *mut PandoCursor,
    txn: *mut PandoTxn,
    fetch: *const PandoFetch,
    batch: *mut PandoBatch,
) -> PandoStatus {
    // SAFETY: the caller vouches for all four.
    let (cursor, txn, fetch, batch) = unsafe { (&mut *cursor, &mut *txn, &*fetch, &mut *batch) };
    txn.run(|PandoTxn { txn, .. }| {
        cursor.arena.clear();
        // SAFETY: the caller's bytes stay for the call.
        let (key, stop) = unsafe { (fetch.key.as_slice(), fetch.stop.as_option()) };
        meet_planted_bug(key);
        // SAFETY: the caller vouches for it, if there is one.
        if let Some(filter) = unsafe { fetch.filter.as_ref() } {
            let ended = cursor.fill_filtered(txn, fetch, filter, key, stop)?;
            return Ok(cursor.give(txn, ended, batch));
        }
        cursor.filtered = None;
        position(&mut cursor.cursor, txn, fetch, key)?;
        let ended = cursor.fill(txn, fetch, stop)?;
        Ok(cursor.give(txn, ended, batch))
    })
}

/// Locks the row that the entry names which was fetched last, alone in its batch, by a locking fetch of another dictionary than 0: `row_key` is
/// that row's key. `is_current`: 1 if the entry says how the row is; else that is to be seen from the row itself, by a locking read.
///
/// # Safety
/// `cursor` and `txn` are alive and belong to this thread, `is_current` is valid.
#[no_mangle]
pub unsafe extern "C" fn pando_cursor_lock_row(
    cursor: *mut PandoCursor,
    txn: *mut PandoTxn,
    row_key: PandoBytes,
    is_current: *mut u8,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (cursor, txn, row_key, is_current) =
        unsafe { (&mut *cursor, &mut *txn, row_key.as_slice(), &mut *is_current) };
    txn.run(|PandoTxn { txn, .. }| {
        *is_current = u8::from(cursor.cursor.lock_row(txn, row_key)?);
        Ok(PandoStatus::Ok)
    })
}

fn position(cursor: &mut Cursor, txn: &mut Txn, fetch: &PandoFetch, key: &[u8]) -> pandodb::Result<()> {
    let (start, mode) = (member(fetch.start)?, read_mode(member(fetch.read)?, fetch.wait_s));
    // SAFETY: the caller's bytes stay for the call.
    cursor.set_stop(unsafe { fetch.stop.as_option() });
    cursor.allow_ahead(fetch.is_ahead != 0, fetch.keeps_rows != 0);
    // SAFETY: the caller vouches for it, if there is one.
    let condition = unsafe { fetch.condition.as_ref() };
    cursor.set_condition(condition.map(|filter| (&filter.condition, filter.filter.wants())));
    match start {
        PandoMove::AtOrAfter => cursor.seek(txn, key, mode),
        PandoMove::Before => cursor.seek_before(txn, key, mode),
        PandoMove::First => cursor.seek_first(txn, mode),
        PandoMove::Last => cursor.seek_last(txn, mode),
        PandoMove::Next if cursor.valid() => cursor.next(txn),
        PandoMove::Previous if cursor.valid() => cursor.prev(txn),
        PandoMove::Peeked if cursor.valid() => cursor.wait_for_peeked(txn, lock_wait(fetch.wait_s)),
        PandoMove::Again if cursor.valid() => cursor.read_again(txn),
        PandoMove::Next | PandoMove::Previous | PandoMove::Peeked | PandoMove::Again => Ok(()),
    }
}

impl PandoCursor {
    fn give(&self, txn: &Txn, ended: bool, batch: &mut PandoBatch) -> PandoStatus {
        txn.note_rows_read(u64::from(self.arena.count()));
        let is_at_row = self.filtered.is_none() && self.cursor.valid();
        *batch = PandoBatch {
            rows: self.arena.bytes(),
            count: self.arena.count(),
            ended: u8::from(ended),
            just_locked: u8::from(is_at_row && self.cursor.just_locked()),
            is_peek: u8::from(is_at_row && self.cursor.is_peek()),
        };
        if batch.count == 0 {
            PandoStatus::NotFound
        } else {
            PandoStatus::Ok
        }
    }

    /// Collects rows that a filter leaves. True: there are no more.
    fn fill_filtered(
        &mut self,
        txn: &mut Txn,
        fetch: &PandoFetch,
        filter: &PandoFilter,
        key: &[u8],
        stop: Option<&[u8]>,
    ) -> pandodb::Result<bool> {
        let begin = match member(fetch.start)? {
            PandoMove::First => Some(None),
            PandoMove::AtOrAfter => Some(Some(key)),
            _ => None,
        };
        if let Some(begin) = begin {
            let wants = filter.filter.wants();
            self.filtered = txn.filtered_rows(&filter.table, wants, &filter.needed, begin, stop)?;
        }
        // To say that there are no more rows would lose them silently.
        let Some(rows) = &mut self.filtered else {
            let what = "rows of a filter, of a scan that did not begin with it".into();
            return Err(EngineError::Unsupported { what }.into());
        };
        let (rows_max, bytes_max) = (fetch.rows_max, fetch.bytes_max as usize);
        let arena = &mut self.arena;
        let visited = rows.visit(&*filter.filter, |key, value| {
            arena.push(key, value);
            arena.count() < rows_max && arena.len() < bytes_max
        });
        if visited.is_err() {
            self.filtered = None;
        }
        Ok(!visited?)
    }

    /// Collects rows from where the cursor is, which stays at the last one collected. True: there
    /// are no more.
    fn fill(&mut self, txn: &mut Txn, fetch: &PandoFetch, stop: Option<&[u8]>) -> pandodb::Result<bool> {
        let forward = self.cursor.is_forward();
        let (rows_max, bytes_max) = (fetch.rows_max, fetch.bytes_max as usize);
        let arena = &mut self.arena;
        let mut beyond = false;
        self.cursor.visit(txn, |key, value| {
            beyond = is_beyond(key, stop, forward);
            if !beyond {
                arena.push(key, value);
            }
            !beyond && arena.count() < rows_max && arena.len() < bytes_max
        })?;
        Ok(beyond || !self.cursor.valid())
    }
}

fn is_beyond(key: &[u8], stop: Option<&[u8]>, forward: bool) -> bool {
    match stop {
        None => false,
        Some(stop) if forward => key >= stop,
        Some(stop) => key < stop,
    }
}
