//! Transactions: reads through a snapshot and their own writes, writes into the write set under
//! row locks, commit through the pipeline.
//!
//! Consistent reads never lock. Locking reads lock the row first and then read the newest
//! committed version: nobody else can be in the middle of committing it, because locks are held
//! until a commit is visible.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use pando_base::planted::{is_planted, Bug};
use pando_base::{limits, DictId, Error as EngineError, Seqno, TxnId};
use pando_txn::{LockError, LockMode, LockOutcome, Mark, Snapshot, TxnHandle, Wait};

use crate::db::options::LogLevel;
use crate::db::prepared::Phase;
use crate::db::scheduler::PAID_AT_ONCE_BYTES;
use crate::db::Db;
use crate::error::{Error, Result};
use crate::table::entry::check_lengths;
use crate::table::writes::Writes;
use crate::table::{Dict, Table};
use crate::txn::expectation::Expectation;

/// Of a transaction that has spilled, what may still be in memory when it commits: it goes through the log
/// and the memtables while gates are held.
const COMMIT_BYTES_MAX: u64 = 1 << 20;

/// Of a transaction that has not spilled. More would keep the commits behind it waiting for its publication
/// longer than a client should notice.
const UNSPILLED_COMMIT_BYTES_MAX: u64 = 8 << 20;

/// How long a locking read waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    /// The transaction's own lock wait timeout.
    Default,
    /// Not at all: [`Error::WouldBlock`].
    NoWait,
    /// Not at all: the row is passed by.
    SkipLocked,
    /// Not at all: a cursor gives the row as it was last committed, without a lock ([`crate::Cursor::is_peek`]). Not
    /// for transactions that take gaps.
    Peek,
    /// So many seconds.
    Seconds(u64),
}

/// What a locking read found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockedRead {
    /// The row, locked.
    Row(Vec<u8>),
    /// No row; the key is locked.
    Absent,
    /// Held by another, and SKIP LOCKED was asked for.
    Skipped,
}

/// A transaction. Used by one thread at a time; after commit or rollback it can be used for the next.
#[derive(Debug)]
pub struct Txn {
    pub(crate) db: Arc<Db>,
    pub(crate) handle: TxnHandle,
    /// Shared with the lists of the touched dictionaries.
    pub(crate) writes: Arc<Writes>,
    /// Dictionaries with writes, ascending by id; each has `writes` on its list of writers.
    touched: Vec<Arc<Dict>>,
    snapshot: Option<Snapshot>,
    lock_wait: Duration,
    just_locked: bool,
    /// Locking cursors keep others from inserting where they have been.
    takes_gaps: bool,
    is_synced: bool,
    /// A range is deleted as such: see `write::delete_range`.
    pub(crate) has_whole_range: bool,
    /// The rows that a scan has locked ahead last ([`Txn::lock_row`]).
    pub(crate) locked_ahead: Option<LockedAhead>,
    /// Number of locks beyond which stretches are tried, if that is more than the budget (`escalation`).
    pub(crate) escalate_at: usize,
    /// Dictionaries where locks were replaced by stretches for the budget (`escalation`).
    pub(crate) escalated: Vec<DictId>,
    /// Bytes written for which no background work was paid for yet.
    unpaid_bytes: u64,
    expectation: Expectation,
    pub(crate) phase: Phase,
}

/// Where all rows are locked by a stretch, and by nobody else in any way that excludes it. Of keys without a row that is
/// not so: nobody has looked whether others hold them.
#[derive(Debug)]
pub(crate) struct LockedAhead {
    dict: DictId,
    mode: LockMode,
    from: Vec<u8>,
    to: Vec<u8>,
    /// Only keys of this length: without gaps, others may come to have rows between.
    len: Option<usize>,
}

impl LockedAhead {
    fn has(&self, dict: DictId, key: &[u8], mode: LockMode) -> bool {
        self.dict == dict
            && (self.mode == LockMode::Exclusive || mode == LockMode::Shared)
            && *self.from <= *key
            && *key < *self.to
            && self.len.is_none_or(|len| len == key.len())
    }
}

impl Db {
    /// Starts a transaction. It takes its snapshot when it first reads.
    pub fn begin(self: &Arc<Self>) -> Txn {
        Txn::new(self.clone(), self.new_txn_id(), self.lock_wait_timeout())
    }
}

impl Txn {
    /// A scan has locked the rows from `from` up to, but without, `to`; those of this length only if one is given.
    pub(crate) fn note_locked_ahead(
        &mut self,
        dict: DictId,
        mode: LockMode,
        (from, to): (&[u8], &[u8]),
        len: Option<usize>,
    ) {
        match &mut self.locked_ahead {
            Some(ahead)
                if ahead.dict == dict && ahead.mode == mode && ahead.len == len && ahead.to == from =>
            {
                ahead.to.clear();
                ahead.to.extend_from_slice(to);
            }
            ahead => *ahead = Some(LockedAhead { dict, mode, from: from.to_vec(), to: to.to_vec(), len }),
        }
    }

    pub(crate) fn new(db: Arc<Db>, id: TxnId, lock_wait: Duration) -> Txn {
        Txn {
            handle: db.locks.register(id),
            writes: Writes::new(id, db.metrics.clone()),
            db,
            touched: Vec::new(),
            snapshot: None,
            lock_wait,
            just_locked: false,
            takes_gaps: false,
            is_synced: true,
            has_whole_range: false,
            locked_ahead: None,
            escalate_at: 0,
            escalated: Vec::new(),
            unpaid_bytes: 0,
            expectation: Expectation::new(),
            phase: Phase::Active,
        }
    }

    /// One that goes on with what [`Txn::take_parts`] gave.
    pub(crate) fn from_parts(
        db: Arc<Db>,
        handle: TxnHandle,
        writes: Arc<Writes>,
        touched: Vec<Arc<Dict>>,
        phase: Phase,
    ) -> Txn {
        Txn {
            handle,
            lock_wait: db.lock_wait_timeout(),
            db,
            writes,
            touched,
            snapshot: None,
            just_locked: false,
            takes_gaps: false,
            is_synced: true,
            has_whole_range: false,
            locked_ahead: None,
            escalate_at: 0,
            escalated: Vec::new(),
            unpaid_bytes: 0,
            expectation: Expectation::new(),
            phase,
        }
    }

    /// Gives away locks and writes; what stays is a new transaction with a new id.
    pub(crate) fn take_parts(&mut self) -> (TxnHandle, Arc<Writes>, Vec<Arc<Dict>>) {
        let id = self.db.new_txn_id();
        let handle = std::mem::replace(&mut self.handle, self.db.locks.register(id));
        let writes = std::mem::replace(&mut self.writes, Writes::new(id, self.db.metrics.clone()));
        let touched = std::mem::take(&mut self.touched);
        self.end();
        (handle, writes, touched)
    }

    /// The reverse, of a new transaction.
    pub(crate) fn put_parts(&mut self, handle: TxnHandle, writes: Arc<Writes>, touched: Vec<Arc<Dict>>) {
        debug_assert!(self.touched.is_empty() && self.handle.locks_and_ranges_held() == 0);
        (self.handle, self.writes, self.touched) = (handle, writes, touched);
    }

    /// The transaction's id.
    pub fn id(&self) -> TxnId {
        self.handle.id()
    }

    /// The database it belongs to.
    pub fn db(&self) -> &Arc<Db> {
        &self.db
    }

    /// A new statement begins: a kill of the one before is over ([`Db::kill`] holds until then).
    pub fn clear_kill(&self) {
        self.handle.clear_kill();
    }

    /// Changes how long [`LockWait::Default`] waits.
    pub fn set_lock_wait(&mut self, wait: Duration) {
        self.lock_wait = wait;
    }

    /// Decides whether a commit in one phase waits for the log's sync, where the database's flush mode asks for it; else it waits for what
    /// [`FlushMode::Write`](pando_wal::FlushMode) does.
    pub fn set_synced(&mut self, is_synced: bool) {
        self.is_synced = is_synced;
    }

    /// Decides whether locking reads exclude phantoms from now on: REPEATABLE READ and SERIALIZABLE want that,
    /// READ COMMITTED does not. What is held stays.
    pub fn set_takes_gaps(&mut self, takes_gaps: bool) {
        self.takes_gaps = takes_gaps;
    }

    pub(crate) fn takes_gaps(&self) -> bool {
        self.takes_gaps
    }

    /// Takes the snapshot that consistent reads use, unless there is one.
    pub fn open_snapshot(&mut self) {
        if self.snapshot.is_none() {
            self.handle.note_begun();
            self.snapshot = Some(self.db.snapshots.take());
        }
    }

    /// Takes a snapshot of every commit that has its place in the order now, also of those that are still on
    /// their way ([`Txn::commit_ordered`]). Does not wait for them; the first read does. So several engines
    /// can be asked for a snapshot under the mutex of the server's commits, and all show the same commits.
    pub fn open_ordered_snapshot(&mut self) {
        if self.snapshot.is_none() {
            self.snapshot = Some(self.db.snapshots.take_at_least(self.db.wal.last_seqno()));
        }
    }

    /// Gives the snapshot back: READ COMMITTED at the end of each statement.
    pub fn close_snapshot(&mut self) {
        self.snapshot = None;
    }

    pub(crate) fn exchange_snapshot(&mut self, snapshot: Option<Snapshot>) -> Option<Snapshot> {
        std::mem::replace(&mut self.snapshot, snapshot)
    }

    /// Whether consistent reads have a snapshot already.
    pub fn has_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Seqno of consistent reads, if there is a snapshot already.
    pub(crate) fn kept_snapshot_seqno(&self) -> Option<Seqno> {
        self.snapshot.as_ref().map(Snapshot::seqno)
    }

    /// Seqno of consistent reads; opens the snapshot if need be.
    pub(crate) fn snapshot_seqno(&mut self) -> Seqno {
        self.open_snapshot();
        let seqno = self.snapshot.as_ref().map_or(0, Snapshot::seqno);
        self.db.wait_visible(seqno);
        seqno
    }

    /// Whether a commit would write something.
    pub fn has_writes(&self) -> bool {
        !self.writes.read().is_empty()
    }

    /// Bytes the write set holds.
    pub fn write_bytes(&self) -> u64 {
        self.writes.read().set.bytes() as u64
    }

    /// Whether the write set may hold something for this dictionary.
    pub(crate) fn has_touched(&self, dict: &Dict) -> bool {
        self.touched.binary_search_by_key(&dict.id, |d| d.id).is_ok()
    }

    /// What the transaction itself has written to a key: `Some(None)` is a delete.
    pub(crate) fn own(&self, dict: &Dict, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        self.own_since(dict, key, Mark::START)
    }

    /// The same for one who knows what was written to the key before the mark, which is live: of that, nothing is read from files.
    pub(crate) fn own_since(&self, dict: &Dict, key: &[u8], since: Mark) -> Result<Option<Option<Vec<u8>>>> {
        match self.has_touched(dict) {
            true => Ok(self.writes.read().get_since(dict.id, key, since)?),
            false => Ok(None),
        }
    }

    pub(crate) fn touched(&self) -> &[Arc<Dict>] {
        &self.touched
    }

    pub(crate) fn unpaid_bytes(&self) -> u64 {
        self.unpaid_bytes
    }

    pub(crate) fn writes(&self) -> &Arc<Writes> {
        &self.writes
    }

    /// Where the write set is now, for [`Txn::rollback_to`]. A mark that will not be asked for any more
    /// should be released: writes on both sides of it are kept apart.
    pub fn mark(&self) -> Mark {
        self.writes.mark()
    }

    /// How many writes were done since the mark, of each row one for each entry.
    pub fn writes_since(&self, mark: Mark) -> u64 {
        self.writes.read().set.ops_since(mark)
    }

    /// The mark will not be rolled back to any more.
    pub fn release_mark(&self, mark: Mark) {
        self.writes.release_mark(mark);
    }

    /// Undoes the writes made since the mark: a statement or a savepoint. Locks stay (I6).
    ///
    /// # Errors
    /// The mark was released, or undone itself, or is one of an earlier transaction; this one is prepared. Nothing is undone then.
    pub fn rollback_to(&mut self, mark: Mark) -> Result<()> {
        self.check_active()?;
        if !self.writes.is_live(mark) {
            return Err(EngineError::argument("the transaction has no such mark to roll back to").into());
        }
        self.writes.rollback_to(mark);
        self.has_whole_range = self.writes.read().whole_ranges().next().is_some();
        self.db.metrics.statement_rollbacks.add(1);
        Ok(())
    }

    /// Refuses a table of another database, and one of a database that was closed.
    pub(crate) fn check_own(&self, table: &Table) -> Result<()> {
        Ok(self.db.check_own(table)?)
    }

    /// A dictionary of a table of this database. Errors: the table is of another one, or has no such dictionary.
    pub(crate) fn dict_of<'t>(&self, table: &'t Table, index: usize) -> Result<&'t Arc<Dict>> {
        self.db.check_own(table)?;
        Ok(table.dict(index)?)
    }

    /// The same for one who writes. Errors: also if it was dropped, or the transaction is prepared.
    pub(crate) fn dict_to_write<'t>(&self, table: &'t Table, index: usize) -> Result<&'t Arc<Dict>> {
        let dict = self.dict_of(table, index)?;
        self.check_active()?;
        table.check_there()?;
        match dict.dropped.load(Ordering::Acquire) {
            false => Ok(dict),
            // An index.
            true => Err(Error::DefinitionChanged),
        }
    }

    /// Refuses what a transaction does no more once it is prepared: what it writes then would be lost.
    #[inline]
    pub(crate) fn check_active(&self) -> Result<()> {
        match self.phase {
            Phase::Active => Ok(()),
            _ => Err(prepared_already()),
        }
    }

    /// Consistent read of one key: own writes, else the snapshot. Errors: those of reading; the table is of another database,
    /// or has no such dictionary ([`EngineError::Argument`](pando_base::Error::Argument)). So with every call that takes a table.
    pub fn get(&mut self, table: &Table, index: usize, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.write_out_ranges()?;
        let dict = self.dict_of(table, index)?;
        if let Some(own) = self.own(dict, key)? {
            return Ok(own);
        }
        let seqno = self.snapshot_seqno();
        dict.check_readable(seqno)?;
        self.find(dict, key, seqno)
    }

    /// Newest committed version of one key, or the transaction's own; locks nothing.
    pub fn get_latest(&mut self, table: &Table, index: usize, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.write_out_ranges()?;
        let dict = self.dict_of(table, index)?;
        dict.check_usable()?;
        if let Some(own) = self.own(dict, key)? {
            return Ok(own);
        }
        let newest = self.db.snapshots.take();
        self.find(dict, key, newest.seqno())
    }

    /// Locks one key, then reads its newest version. A key without a row stays locked if the transaction
    /// takes gaps: nobody else can insert it.
    pub fn get_locked(
        &mut self,
        table: &Table,
        index: usize,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<LockedRead> {
        self.write_out_ranges()?;
        let dict = self.dict_of(table, index)?;
        dict.check_usable()?;
        if self.lock_row(dict, key, mode, wait)?.is_none() {
            return Ok(LockedRead::Skipped);
        }
        if let Some(row) = self.newest_locked(dict, key)? {
            return Ok(LockedRead::Row(row));
        }
        self.give_back_just_locked(table, index, key);
        Ok(LockedRead::Absent)
    }

    /// As [`Txn::get_locked`], for who thinks that there is a row and wants to know only that: nothing of it is copied.
    /// `None`: it is held by another, and SKIP LOCKED was asked for.
    pub fn lock_existing(
        &mut self,
        table: &Table,
        index: usize,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Option<bool>> {
        self.write_out_ranges()?;
        let dict = self.dict_of(table, index)?;
        dict.check_usable()?;
        if self.lock_row(dict, key, mode, wait)?.is_none() {
            return Ok(None);
        }
        let is_there = match self.own(dict, key)? {
            Some(own) => own.is_some(),
            // As in `newest_locked`.
            None => dict.tree.has_as_expected(key)?,
        };
        if !is_there {
            self.give_back_just_locked(table, index, key);
        }
        Ok(Some(is_there))
    }

    /// The key that was locked last is not needed: its row is not there, or is not known to match.
    pub(crate) fn give_back_just_locked(&mut self, table: &Table, index: usize, key: &[u8]) {
        if self.just_locked && !self.takes_gaps {
            self.unlock(table, index, key);
        }
    }

    /// Counts rows handed to a caller (`rows_read`); those of cursors are counted by the batch.
    pub fn note_rows_read(&self, rows: u64) {
        self.db.metrics.rows_read.add(rows);
    }

    /// Whether the newest lock (or its upgrade to exclusive) was not held before it was asked for,
    /// so that [`Txn::unlock`] may give it back if the row does not match.
    pub fn just_locked(&self) -> bool {
        self.just_locked
    }

    /// Locks a key. `None`: it is held by another and SKIP LOCKED was asked for.
    pub(crate) fn lock(
        &mut self,
        dict: &Dict,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Option<LockOutcome>> {
        self.just_locked = false;
        let wait = self.wait_of(wait);
        match self.db.locks.lock(&self.handle, dict.id, key, mode, wait) {
            Ok(outcome) => {
                self.just_locked = matches!(outcome, LockOutcome::Granted { .. });
                if self.just_locked {
                    self.keep_lock_budget();
                }
                Ok(Some(outcome))
            }
            Err(LockError::WouldBlock) if wait == Wait::SkipLocked => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// As [`Txn::lock`], for who will not insert the key: without a look at the locks if it is among rows that were locked
    /// ahead. If there is no row, others may hold the key then; they insert it no more than others insert into the gap.
    pub(crate) fn lock_row(
        &mut self,
        dict: &Dict,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Option<LockOutcome>> {
        let is_ahead = self.locked_ahead.as_ref().is_some_and(|ahead| ahead.has(dict.id, key, mode));
        if !is_ahead || self.handle.is_killed() {
            return self.lock(dict, key, mode, wait);
        }
        self.just_locked = false;
        Ok(Some(LockOutcome::AlreadyHeld))
    }

    pub(crate) fn wait_of(&self, wait: LockWait) -> Wait {
        match wait {
            LockWait::Default => Wait::Timeout(self.lock_wait),
            LockWait::Seconds(0) | LockWait::NoWait => Wait::NoWait,
            LockWait::Seconds(seconds) => Wait::Timeout(Duration::from_secs(seconds)),
            LockWait::SkipLocked | LockWait::Peek => Wait::SkipLocked,
        }
    }

    /// The newest version of a key that this transaction holds a lock on.
    pub(crate) fn newest_locked(&mut self, dict: &Dict, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(own) = self.own(dict, key)? {
            return Ok(own);
        }
        // The lock keeps others from committing this key now, so the newest version is committed
        // and visible, whatever else is being published.
        self.find(dict, key, Seqno::MAX)
    }

    fn find(&mut self, dict: &Dict, key: &[u8], seqno: Seqno) -> Result<Option<Vec<u8>>> {
        let found = match self.expectation.is_expected(dict.id) {
            true => dict.tree.get_as_expected(key, seqno)?,
            false => dict.tree.get(key, seqno)?,
        };
        self.expectation.note(dict.id, found.is_some());
        Ok(found)
    }

    /// Gives back a lock that was taken for a row that turned out not to match (READ COMMITTED).
    /// Locks on rows the transaction has written stay.
    pub fn unlock(&mut self, table: &Table, index: usize, key: &[u8]) {
        // What it cannot have locked stays as it is.
        let Ok(dict) = self.dict_of(table, index) else { return };
        // If that cannot be read, the lock stays.
        if matches!(self.own(dict, key), Ok(None)) {
            self.db.locks.unlock(&self.handle, dict.id, key);
        }
    }

    /// Sets one key of one dictionary, whatever it held: locks it, then writes.
    pub fn put(
        &mut self,
        table: &Table,
        index: usize,
        key: &[u8],
        value: &[u8],
        wait: LockWait,
    ) -> Result<()> {
        let dict = self.dict_to_write(table, index)?;
        self.pay_along(key.len() + value.len())?;
        check_lengths(key, value)?;
        self.lock_to_write(dict, key, wait)?;
        self.touch(dict);
        let new = std::iter::once((dict, key));
        self.write_when_free(new, wait, |writes| writes.put(dict.id, key, value))
    }

    /// Deletes one key of one dictionary, whether or not it was there: locks it, then writes.
    pub fn delete(&mut self, table: &Table, index: usize, key: &[u8], wait: LockWait) -> Result<()> {
        let dict = self.dict_to_write(table, index)?;
        // A tombstone has a key, too: no file with a longer one can be read.
        check_lengths(key, &[])?;
        self.pay_along(key.len())?;
        self.lock_to_write(dict, key, wait)?;
        self.write_delete(dict, key);
        Ok(())
    }

    /// Locks a key that a transaction of an earlier life has written: nobody else can have it.
    pub(crate) fn lock_restored(&mut self, dict: &Dict, key: &[u8]) -> Result<()> {
        if is_planted(Bug::PreparedLocksLost) {
            return Ok(());
        }
        match self.lock_to_write(dict, key, LockWait::NoWait) {
            // It lies in the stretch of one that was restored before, which takes nothing from others.
            Err(Error::WouldBlock) => {
                self.db.locks.lock_for_owner(self.handle.id(), dict.id, key);
                Ok(())
            }
            locked => locked,
        }
    }

    /// A write cannot pass a locked key by.
    fn lock_to_write(&mut self, dict: &Dict, key: &[u8], wait: LockWait) -> Result<()> {
        match self.lock(dict, key, LockMode::Exclusive, wait)? {
            Some(_) => Ok(()),
            None => Err(Error::WouldBlock),
        }
    }

    /// Counts bytes that are about to be written. A long transaction pays for background work as it goes,
    /// often and shortly; a short one when it commits. Errors: as for a commit, nothing was written.
    pub(crate) fn pay_along(&mut self, bytes: usize) -> Result<()> {
        self.check_active()?;
        self.write_out_ranges()?;
        self.unpaid_bytes += bytes as u64;
        self.handle.add_write_bytes(bytes as u64);
        if self.unpaid_bytes >= PAID_AT_ONCE_BYTES {
            let bytes = std::mem::take(&mut self.unpaid_bytes);
            self.db.pay_for_debt(&self.touched, bytes, || !self.handle.is_killed())?;
            self.writes.count_memory();
        }
        let held = self.write_bytes();
        let is_worth_it = held > limits::WRITE_SET_BYTES_MIN && self.db.memory.is_short_of_write_sets();
        if held > self.db.write_set_bytes() || is_worth_it {
            self.writes.spill(&self.touched, false, self.db.spill_threads())?;
        }
        Ok(())
    }

    pub(crate) fn write_delete(&mut self, dict: &Arc<Dict>, key: &[u8]) {
        self.touch(dict);
        let mut writes = self.writes.write();
        writes.set.delete(dict.id, key);
        self.handle.set_weight(writes.set.ops() + 1);
    }

    /// Before a write to the dictionary: others can look the transaction up there.
    pub(crate) fn touch(&mut self, dict: &Arc<Dict>) {
        assert!(matches!(self.phase, Phase::Active), "a transaction that is prepared writes no more");
        if let Err(place) = self.touched.binary_search_by_key(&dict.id, |d: &Arc<Dict>| d.id) {
            dict.writers.add(&self.writes);
            self.touched.insert(place, dict.clone());
        }
    }

    /// Records that auto-increment values below `next` are used; logged with the rows that use
    /// them. Errors: the table is of another database, or was dropped; the transaction is prepared.
    pub fn raise_auto_increment(&mut self, table: &Table, next: u64) -> Result<()> {
        self.dict_to_write(table, 0)?;
        self.raise_auto_increment_of(table.rows(), next);
        Ok(())
    }

    pub(crate) fn raise_auto_increment_of(&mut self, rows: &Arc<Dict>, next: u64) {
        self.touch(rows);
        self.writes.write().set.auto_increment(rows.id, next);
        rows.auto_increment.fetch_max(next, Ordering::AcqRel);
    }

    /// Commits, and waits until the commit is as durable as the flush mode says. Whatever comes
    /// back, the transaction is over: an error before the log took the batch rolls back, an error
    /// of the log's write or sync latches the database (I8) and is [`Error::InDoubt`]. (A prepared one stays prepared.)
    pub fn commit(&mut self) -> Result<()> {
        if !matches!(self.phase, Phase::Active) {
            return self.commit_prepared();
        }
        if !self.has_writes() {
            self.end();
            return Ok(());
        }
        let is_patient = || !self.handle.is_killed();
        let published = self.prepare_adoption().and_then(|()| {
            self.db.publish(&self.writes.read(), &self.touched, self.unpaid_bytes, is_patient)
        });
        let published = match published {
            Ok(published) => published,
            Err(error) => {
                self.rollback();
                return Err(error.into());
            }
        };
        self.end();
        self.db.metrics.commits.add(1);
        if is_planted(Bug::CommitWithoutSync) {
            return Ok(());
        }
        let mode = self.db.flush_mode();
        let mode = if self.is_synced { mode } else { mode.unsynced() };
        Error::after_publication(self.db.wal.wait(published.lsn, mode))
    }

    /// What a commit does before it enters gates if writes were spilled, or are many: what is in memory is
    /// spilled, too, unless it is little, so that the commit itself is short; and memtables that may hold
    /// older versions of what the transaction has written, and locked, are sealed.
    pub(crate) fn prepare_adoption(&self) -> pando_base::Result<()> {
        let has_spilled = !self.writes.read().levels.is_empty();
        if !has_spilled && self.write_bytes() <= UNSPILLED_COMMIT_BYTES_MAX {
            return Ok(());
        }
        if self.write_bytes() > COMMIT_BYTES_MAX.min(self.db.write_set_bytes() / 4) {
            self.writes.spill(&self.touched, true, self.db.spill_threads())?;
        }
        self.seal_for_adoption();
        Ok(())
    }

    pub(crate) fn seal_for_adoption(&self) {
        let state = self.writes.read();
        for dict in self.touched.iter().filter(|dict| state.has_spilled(dict.id)) {
            dict.tree.seal_before_adoption(|| self.db.wal.last_seqno());
        }
    }

    /// Forgets all writes and gives back the locks: O(writes of this transaction) in memory, the
    /// trees are not touched (I6).
    pub fn rollback(&mut self) {
        match self.phase {
            Phase::Active => {}
            Phase::Prepared(_) | Phase::Left(_) => {
                if let Err(error) = self.rollback_prepared() {
                    self.db.log(LogLevel::Warning, &format!("rollback of a prepared transaction: {error}"));
                }
                return;
            }
            Phase::Ordered(_) => {
                // Decided and logged: others may see it.
                self.db
                    .log(LogLevel::Error, "a commit that has its place in the order cannot be rolled back");
                _ = self.commit();
                return;
            }
        }
        if self.has_writes() {
            self.db.metrics.rollbacks.add(1);
        }
        self.end();
    }

    pub(crate) fn end(&mut self) {
        // Before the locks go: see `writes`.
        self.writes.end();
        for dict in self.touched.drain(..) {
            dict.writers.remove(&self.writes);
        }
        self.unpaid_bytes = 0;
        self.escalate_at = 0;
        self.escalated.clear();
        self.has_whole_range = false;
        self.locked_ahead = None;
        self.snapshot = None;
        self.db.locks.release_all(&self.handle);
        self.handle.note_ended();
    }
}

#[cold]
fn prepared_already() -> Error {
    EngineError::argument("the transaction is prepared: it can only be committed or rolled back").into()
}

impl Drop for Txn {
    fn drop(&mut self) {
        match self.phase {
            Phase::Active => self.rollback(),
            Phase::Prepared(_) => self.detach(),
            Phase::Left(_) => {
                self.forget_left();
                self.rollback();
            }
            // Decided and logged; the coordinator should have come back for it.
            Phase::Ordered(_) => _ = self.commit(),
        }
    }
}
