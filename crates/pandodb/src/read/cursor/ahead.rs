//! Rows that a locking scan locks ahead, many at once, by a stretch and a gap that reach up to the last of them.
//!
//! A scan of rows that goes up and has met some rows will probably meet as many again. In a transaction that takes gaps
//! all rows that it meets stay locked, and so does what lies between; so it need not lock them one by one:
//!
//! 1. It reads on, as it sees the rows, and keeps what it has read: at first as many rows as it has met so far, so that a
//!    scan that ends early has locked about as much as it read; later [`ROWS_MAX`]. A cursor that has gone to the end of one range of keys and
//!    begins another one (the lookups of a join) is expected to go as far again.
//! 2. It leaves out what comes behind the first row that another has locked, or the first key that another has written and
//!    not committed. If too little is left, rows are met one by one for a while: only so they are waited for.
//! 3. It takes the stretch, unless others have one there, and the gap. Nobody else locks or inserts there from now on.
//! 4. It looks again whether others hold something there: whoever came in between 2 and 3. If so, rows are met one by
//!    one; what is held already stays.
//! 5. If anything was committed since it read, it reads the same range again. What was there before has been
//!    looked at under the stretch, and cannot change any more. What is new goes through 4 again.
//!
//! Rows kept are given without a look at locks or trees; only own writes come before them, those done since the seek (`news`).
//! Nor are locks looked at when the transaction locks these rows again (`Txn::lock_row`). A key among them without a row is another
//! matter: others may have it from before, and insert it no more, as the gap is held; whoever inserts it asks them.
//!
//! Whoever reads may give a condition ([`Cursor::set_condition`]): it is evaluated on all rows kept, as columns, and those
//! for which it is not true are not given.
//!
//! **Without gaps** (READ COMMITTED), where a row that does not match is not to stay locked, rows are only read ahead, and
//! those left are then locked one by one, as always. 2 looks at what others have written only,
//! and not for `LockWait::Peek`; instead of 3 to 5 it is read again if anything was committed between. So what others
//! had moved when the scan began is met as ever; but a scan has been at a row when it has read it, if it is not left.
//! Where those left are **dense** (`dense`: numbers that follow one another, as counters give them), and whoever reads keeps
//! them all, they are locked by a stretch after all: there is no place between them for which an insert could wait.
//!
//! Not done for SKIP LOCKED and NOWAIT: what is locked and not read yet would be passed by, or an error, for others
//! who ask so. Nor where the statement gives rows back (READ COMMITTED): a stretch is given back as a whole.

mod dense;
mod news;

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use pando_base::{pause, Seqno};
use pando_txn::LockMode;

use super::gaps::after;
use super::{Admission, At, Cursor, Direction, ReadMode};
use crate::error::{Error, Result};
use crate::read::blocks::{has_references, large_wants, Block, RowCondition, RowReader, Want};
use crate::read::own_writes::OwnCursor;
use crate::table::{Dict, Table};
use crate::txn::transaction::{LockWait, Txn};
use news::News;

/// Rows that are met one by one first.
const ROWS_BEFORE: usize = 64;

/// Where the range before had so many, the first one is enough.
const ROWS_EXPECTED_MIN: usize = 2 * ROWS_MIN;

/// Fewer are not worth while.
const ROWS_MIN: usize = 16;

/// Rows locked at once, at most.
const ROWS_MAX: usize = 4096;

/// Bytes of rows kept, beyond which no more are read.
const BYTES_MAX: usize = 1 << 20;

/// Times that a range is read before its rows are met one by one.
const READS_MAX: usize = 3;

/// A condition, and what makes columns of rows.
struct Sieve {
    condition: Arc<dyn RowCondition + Send + Sync>,
    reader: RowReader,
    /// Which of the columns may refer to large values.
    large: Vec<usize>,
}

impl fmt::Debug for Sieve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sieve")
    }
}

/// What can be done ahead.
#[derive(Clone, Copy)]
enum Way {
    /// Rows are locked in this mode, and gaps.
    Lock(LockMode),
    /// Rows are only read; those that are left are locked one by one.
    Read { meets_writers: bool },
}

/// Rows that were read and locked.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Whoever reads allows it.
    is_allowed: bool,
    /// Whoever reads gives back no row that is left.
    keeps_rows: bool,
    bytes: Vec<u8>,
    /// Ends of key and value of each row in `bytes`.
    ends: Vec<(usize, usize)>,
    sieve: Option<Sieve>,
    /// The rows that are left of them; `None`: all.
    left: Option<Vec<u32>>,
    /// The row, of those left, that the cursor is at or comes to.
    at: usize,
    /// As of when they were read: what is behind them may be looked at in a newer state already.
    seqno: Seqno,
    /// They are locked.
    is_locked: bool,
    /// Rows met since the seek, or since it had to stop.
    met: usize,
    /// Rows met since the seek.
    all_met: usize,
    /// Rows that the range before had, all of which were met.
    expected: usize,
    /// There was nothing behind those that were read.
    is_last: bool,
    /// Where own writes are that the rows do not show.
    news: News,
}

impl Ahead {
    pub(super) fn allow(&mut self, is_allowed: bool, keeps_rows: bool) {
        self.is_allowed = is_allowed;
        self.keeps_rows = keeps_rows;
    }

    /// A scan begins.
    pub(super) fn restart(&mut self) {
        self.pause();
        self.all_met = 0;
        self.is_last = false;
    }

    /// Rows are met one by one for a while.
    fn pause(&mut self) {
        self.clear();
        self.met = 0;
        self.expected = 0;
    }

    /// A scan begins; the one before, of another range, has come to its end.
    pub(super) fn go_to_next_range(&mut self) {
        let all_met = self.all_met;
        self.restart();
        self.expected = all_met;
    }

    /// How many rows are read ahead now; 0: it is too early.
    fn wanted(&self) -> usize {
        match self.met >= ROWS_BEFORE || (self.met > 0 && self.expected >= ROWS_EXPECTED_MIN) {
            true => self.met.max(self.expected).min(ROWS_MAX),
            false => 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.left = None;
        self.at = 0;
        self.news = News::default();
    }

    pub(super) fn set_condition(
        &mut self,
        table: &Table,
        condition: Option<(&Arc<dyn RowCondition + Send + Sync>, &[Want])>,
    ) {
        let Some((condition, wants)) = condition else {
            self.sieve = None;
            return;
        };
        if self.sieve.as_ref().is_some_and(|sieve| Arc::ptr_eq(&sieve.condition, condition)) {
            return;
        }
        self.sieve = table.layouts().map(|layouts| Sieve {
            condition: condition.clone(),
            reader: RowReader::new(layouts, wants),
            large: large_wants(layouts, wants),
        });
    }

    /// Leaves those for which the condition is, or may be, true. Gives how many it has taken away.
    fn sift(&mut self) -> usize {
        let Some(mut sieve) = self.sieve.take() else { return 0 };
        let rows = self.ends.len();
        for row in 0..rows {
            let (key_end, end) = self.ends[row];
            if sieve.reader.read(self.key_of(row), &self.bytes[key_end..end]).is_none() {
                // Bytes that are none of a row: the server tells, which gets all from here on.
                return 0;
            }
        }
        let vectors = sieve.reader.take();
        // Whoever reads looks at the condition again, and reads the values.
        if rows > 0 && !sieve.large.iter().any(|at| has_references(&vectors[*at])) {
            self.left =
                sieve.condition.select(&Block { rows, vectors, is_all_wanted: false, is_complete: true });
        }
        self.sieve = Some(sieve);
        self.left.as_ref().map_or(0, |left| rows - left.len())
    }

    pub(super) fn seqno(&self) -> Seqno {
        self.seqno
    }

    /// One row was met by itself.
    pub(super) fn note_met(&mut self) {
        self.met += 1;
        self.all_met += 1;
    }

    pub(super) fn step(&mut self) {
        self.at += 1;
    }

    /// Whether the cursor is at, or comes to, one of the rows.
    pub(super) fn is_any(&self) -> bool {
        self.at < self.count()
    }

    /// Whether there is a row behind the one that it is at that can be given without a lock.
    pub(super) fn has_next(&self) -> bool {
        self.is_locked && self.at + 1 < self.count()
    }

    fn count(&self) -> usize {
        self.left.as_ref().map_or(self.ends.len(), Vec::len)
    }

    fn row(&self, at: usize) -> usize {
        self.left.as_ref().map_or(at, |left| left[at] as usize)
    }

    pub(super) fn key(&self) -> &[u8] {
        self.key_of(self.row(self.at))
    }

    pub(super) fn value(&self) -> &[u8] {
        let (key_end, end) = self.ends[self.row(self.at)];
        &self.bytes[key_end..end]
    }

    fn key_of(&self, row: usize) -> &[u8] {
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before].1);
        &self.bytes[begin..self.ends[row].0]
    }

    fn keys(&self) -> Vec<&[u8]> {
        (0..self.ends.len()).map(|row| self.key_of(row)).collect()
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn is_full(&self, rows: usize) -> bool {
        self.ends.len() >= rows || self.bytes.len() >= BYTES_MAX
    }

    fn truncate(&mut self, rows: usize) {
        self.is_last &= rows == self.ends.len();
        self.ends.truncate(rows);
    }

    /// Whether all rows were among those before, of which both are ascending.
    fn are_among(&self, mut before: &[Vec<u8>]) -> bool {
        self.keys().iter().all(|key| {
            let at = before.partition_point(|other| other.as_slice() < *key);
            before = &before[at..];
            before.first().is_some_and(|other| other == key)
        })
    }
}

impl Cursor {
    /// A locking cursor that may go ahead passes rows by for which the condition, of these columns, is not true.
    pub fn set_condition(&mut self, condition: Option<(&Arc<dyn RowCondition + Send + Sync>, &[Want])>) {
        let table = self.table.clone();
        self.ahead.set_condition(&table, condition);
    }

    /// Comes to the next row ahead, if there are some, or there can be. False: what comes has to be met by itself.
    pub(super) fn go_ahead(&mut self, txn: &mut Txn) -> Result<bool> {
        loop {
            if !self.ahead.is_any() {
                if !self.read_ahead(txn)? {
                    return Ok(false);
                }
                continue;
            }
            self.newer = None;
            self.is_peek = false;
            self.at = At::Ahead;
            if !self.ahead.is_locked {
                match self.admit(txn)? {
                    Admission::Row => return Ok(true),
                    Admission::PassedBy => self.ahead.step(),
                    Admission::Gone(key) => self.pass_gone(txn, &key)?,
                }
                continue;
            }
            self.just_locked = false;
            if self.see_own_ahead(txn)? {
                return Ok(true);
            }
            self.ahead.step();
        }
    }

    /// The row that it is at is gone: from there on the newest state is seen.
    pub(super) fn pass_gone(&mut self, txn: &Txn, key: &[u8]) -> Result<()> {
        if self.at != At::Ahead {
            return self.catch_up(txn, key);
        }
        let from = after(key);
        self.ahead.clear();
        self.reach.go_on_from(&from);
        self.look_again(txn, Some(from))
    }

    /// The transaction's own newest state of the row counts. False: there the row is deleted.
    fn see_own_ahead(&mut self, txn: &Txn) -> Result<bool> {
        let dict = self.dict().clone();
        if !txn.has_touched(&dict) {
            return Ok(true);
        }
        let since = self.own_mark();
        let mut news = std::mem::take(&mut self.ahead.news);
        let (from, to) = (self.ahead.key(), self.ahead.key_of(self.ahead.ends.len() - 1));
        news.update((txn.writes(), dict.id, since), from, to)?;
        if !news.is_any_up_to(from) {
            self.ahead.news = news;
            return Ok(true);
        }
        match txn.own_since(&dict, self.ahead.key(), since)? {
            Some(own) => {
                self.newer = own;
                Ok(self.newer.is_some())
            }
            None => Ok(true),
        }
    }

    fn way_ahead(&self) -> Option<Way> {
        let ReadMode::Locked(mode, wait) = self.mode else { return None };
        let may = self.ahead.is_allowed
            && self.index == 0
            && self.direction == Direction::Forward
            && self.reach.may_go_on()
            && !self.ahead.is_last
            && self.ahead.wanted() > 0;
        match wait {
            _ if !may => None,
            LockWait::Default | LockWait::Seconds(1..) if self.reach.holds => Some(Way::Lock(mode)),
            LockWait::Default | LockWait::Seconds(1..) | LockWait::Peek if !self.reach.holds => {
                Some(Way::Read { meets_writers: wait != LockWait::Peek })
            }
            _ => None,
        }
    }

    /// Rows ahead, perhaps none. False: what comes has to be met by itself.
    fn read_ahead(&mut self, txn: &mut Txn) -> Result<bool> {
        let Some(way) = self.way_ahead() else { return Ok(false) };
        // Nobody is asked for a lock, and perhaps for none for long.
        if txn.handle.is_killed() {
            return Err(Error::Killed);
        }
        let from = self.ahead_from();
        let read = match way {
            Way::Lock(mode) => self.lock_ahead(txn, mode, &from)?,
            Way::Read { meets_writers } => self.only_read_ahead(txn, meets_writers, &from)?,
        };
        let Some(to) = read else {
            self.ahead.pause();
            self.look_again(txn, Some(from))?;
            return Ok(false);
        };
        self.ahead.met += self.ahead.ends.len();
        self.ahead.all_met += self.ahead.ends.len();
        self.ahead.is_locked = matches!(way, Way::Lock(_));
        self.reach.go_on_at_least_from(&to);
        let filtered = self.ahead.sift();
        txn.db.metrics.rows_filtered.add(filtered as u64);
        if let (false, ReadMode::Locked(mode, _)) = (self.ahead.is_locked, self.mode) {
            self.lock_dense(txn, mode)?;
        }
        Ok(true)
    }

    /// Where the rows ahead begin, and what has not been looked at between them. The edge can be far behind the next row: a gap that was
    /// waited for is looked at up to its end, and then gone through.
    fn ahead_from(&self) -> Vec<u8> {
        let edge = self.reach.edge_forward();
        let tree = self.tree.as_ref().filter(|tree| tree.valid()).map(pando_tree::Cursor::key);
        let own = self.own.as_ref().and_then(OwnCursor::entry).map(|(key, _)| key.as_slice());
        let next = tree.into_iter().chain(own).min();
        next.filter(|next| *next < edge.as_slice()).map_or(edge.clone(), <[u8]>::to_vec)
    }

    /// Reads as many rows as it has met, or expects, from where both sides are. `None`: there are too few.
    fn collect_some(&mut self, txn: &Txn) -> Result<Option<usize>> {
        let rows = self.ahead.wanted();
        self.ahead.clear();
        self.collect(txn, |ahead, _| ahead.is_full(rows))?;
        let read = self.ahead.ends.len();
        self.ahead.is_last = !self.ahead.is_full(rows);
        Ok((read >= ROWS_MIN).then_some(read))
    }

    /// Steps 1 to 5. Gives up to where; `None`: what comes has to be met by itself.
    fn lock_ahead(&mut self, txn: &mut Txn, mode: LockMode, from: &[u8]) -> Result<Option<Vec<u8>>> {
        let dict = self.dict().clone();
        // 1.
        let Some(read) = self.collect_some(txn)? else { return Ok(None) };
        // 2.
        let last = Bound::Included(self.ahead.key_of(read - 1));
        let free = self.obstacle(txn, &dict, Some(mode), from, last)?.unwrap_or(read);
        if free < ROWS_MIN {
            return Ok(None);
        }
        self.ahead.truncate(free);
        let to = after(self.ahead.key_of(free - 1));
        // 3.
        if !txn.db.locks.lock_stretch(&txn.handle, dict.id, mode, from, Some(&to)) {
            return Ok(None);
        }
        txn.lock_gap(&dict, from, Some(&to));
        // 4 and 5.
        let Some(is_read_again) = self.settle_ahead(txn, &dict, mode, from, &to)? else { return Ok(None) };
        txn.note_locked_ahead(dict.id, mode, (from, &to), None);
        txn.db.metrics.rows_locked_ahead.add(self.ahead.ends.len() as u64);
        if free < read || is_read_again {
            self.look_again(txn, Some(to.clone()))?;
        }
        Ok(Some(to))
    }

    /// As [`Cursor::lock_ahead`], without locks.
    fn only_read_ahead(
        &mut self,
        txn: &mut Txn,
        meets_writers: bool,
        from: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let dict = self.dict().clone();
        for _ in 0..READS_MAX {
            if dict.tree.last_write() > self.seqno {
                self.look_again(txn, Some(from.to_vec()))?;
            }
            let Some(read) = self.collect_some(txn)? else { return Ok(None) };
            let last = Bound::Included(self.ahead.key_of(read - 1));
            let free = match meets_writers {
                true => self.obstacle(txn, &dict, None, from, last)?.unwrap_or(read),
                false => read,
            };
            if free < ROWS_MIN {
                return Ok(None);
            }
            if meets_writers && dict.tree.last_write() > self.seqno {
                continue;
            }
            self.ahead.truncate(free);
            let to = after(self.ahead.key_of(free - 1));
            pause(2);
            if free < read {
                self.look_again(txn, Some(to.clone()))?;
            }
            return Ok(Some(to));
        }
        Ok(None)
    }

    /// Steps 4 and 5: whether the rows were read again. `None`: others hold something there, or it goes on and on.
    fn settle_ahead(
        &mut self,
        txn: &mut Txn,
        dict: &Dict,
        mode: LockMode,
        from: &[u8],
        to: &[u8],
    ) -> Result<Option<bool>> {
        for reads in 0..READS_MAX {
            if self.obstacle(txn, dict, Some(mode), from, Bound::Excluded(to))?.is_some() {
                return Ok(None);
            }
            if dict.tree.last_write() <= self.seqno {
                return Ok(Some(reads > 0));
            }
            let before: Vec<Vec<u8>> = self.ahead.keys().iter().map(|key| key.to_vec()).collect();
            self.look_again(txn, Some(from.to_vec()))?;
            self.ahead.clear();
            self.collect(txn, |_, key| key >= to)?;
            if self.ahead.are_among(&before) {
                return Ok(Some(true));
            }
        }
        Ok(None)
    }

    /// Reads rows from where both sides are, before the stop, until `is_enough` says so of the next one.
    fn collect(&mut self, txn: &Txn, is_enough: impl Fn(&Ahead, &[u8]) -> bool) -> Result<()> {
        self.ahead.seqno = self.seqno;
        let stop = self.stop.take();
        let is_over = |ahead: &Ahead, key: &[u8]| {
            stop.as_ref().is_some_and(|stop| key >= stop.as_slice()) || is_enough(ahead, key)
        };
        let result = self.collect_until(txn, is_over);
        self.stop = stop;
        self.at = At::Nothing;
        result
    }

    fn collect_until(&mut self, txn: &Txn, is_over: impl Fn(&Ahead, &[u8]) -> bool) -> Result<()> {
        if let (None, Some(tree)) = (&self.own, &mut self.tree) {
            let ahead = &mut self.ahead;
            return Ok(tree.visit(|key, value| {
                let goes_on = !is_over(ahead, key);
                if goes_on {
                    ahead.push(key, value);
                }
                goes_on
            })?);
        }
        loop {
            self.newer = None;
            self.at = self.nearer(txn)?;
            if self.at == At::Nothing || is_over(&self.ahead, self.key()) {
                return Ok(());
            }
            let mut ahead = std::mem::take(&mut self.ahead);
            ahead.push(self.key(), self.value());
            self.ahead = ahead;
            self.leave(txn)?;
        }
    }

    /// Before which of the rows, or behind the last, the first thing is that others have written between the bounds, or hold
    /// in a way that excludes the mode.
    fn obstacle(
        &self,
        txn: &Txn,
        dict: &Dict,
        mode: Option<LockMode>,
        from: &[u8],
        to: Bound<&[u8]>,
    ) -> Result<Option<usize>> {
        let keys = self.ahead.keys();
        let mut first = None;
        for writes in dict.writers.others(txn.writes()) {
            if let Some(written) = writes.first_written_between(dict.id, Bound::Included(from), to)? {
                let at = keys.partition_point(|key| *key < written.as_slice());
                first = Some(first.map_or(at, |first: usize| first.min(at)));
            }
        }
        let free = &keys[..first.unwrap_or(keys.len())];
        let Some(mode) = mode else { return Ok(first) };
        Ok(txn.db.locks.first_held_by_others(&txn.handle, dict.id, mode, free).or(first))
    }
}
