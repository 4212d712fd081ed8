//! Cursors of transactions: the tree's rows merged with the transaction's own writes.
//!
//! A seek fixes what the cursor sees: a seqno, and a **mark** in the write set. Own writes made
//! before the mark are seen, later ones are not, so a statement never meets the rows it has just
//! written (the Halloween problem). Rows that a locking cursor stops at are locked first and then
//! given in their newest version. One that is gone by then may have got another key, so from there on
//! the cursor sees the newest committed state: a row that moves ahead of it is met there.
//!
//! A locking cursor sees the newest committed state at every step, and waits for what others have written on its way
//! and not committed (`gaps`). In transactions that take gaps (REPEATABLE READ and SERIALIZABLE) nobody else can
//! insert where it has been, either.
//!
//! `own` stands at the neighbour in the own writes not yet passed in the current direction (`own_writes`). When both
//! sides have a key, the write set wins and the tree is moved past it.

mod ahead;
mod gaps;

use std::ops::Bound;
use std::sync::Arc;

use pando_base::{pause, Error as EngineError, Seqno};
use pando_txn::{LockMode, LockOutcome, Mark, Snapshot};

use crate::error::Result;
use crate::read::own_writes::{OwnCursor, OwnEntry};
use crate::table::{Dict, Table};
use crate::txn::transaction::{LockWait, Txn};
use ahead::Ahead;
use gaps::Reach;

/// What a seek and the moves after it see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// The transaction's snapshot.
    Snapshot,
    /// The newest committed versions at the time of the seek.
    Latest,
    /// As `Latest`; each row is locked, then given in its newest version. In an index entries are not locked
    /// (their rows are, by whoever reads them), only the gaps between them.
    Locked(LockMode, LockWait),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Nothing,
    Tree,
    Own,
    /// At a row that was locked ahead.
    Ahead,
}

/// What becomes of a row that a cursor has come to.
#[derive(Debug)]
enum Admission {
    /// It is given.
    Row,
    /// It is not to be seen.
    PassedBy,
    /// It was there in the cursor's view and is not any more.
    Gone(Vec<u8>),
}

impl Txn {
    /// A cursor over a dictionary of the table. It is positioned by its seeks; these fail if the table is of another database, or has no
    /// such dictionary.
    pub fn cursor(&self, table: &Arc<Table>, index: usize) -> Cursor {
        Cursor::new(table.clone(), index)
    }
}

/// A cursor. Not valid until its first seek, and after an error not until the next.
#[derive(Debug)]
pub struct Cursor {
    table: Arc<Table>,
    index: usize,
    tree: Option<pando_tree::Cursor>,
    mode: ReadMode,
    seqno: Seqno,
    /// Keeps the versions at `seqno` for modes other than the transaction's snapshot.
    held: Option<Snapshot>,
    /// The own writes, if there were any to this dictionary at the seek.
    own: Option<OwnCursor>,
    at: At,
    direction: Direction,
    /// Newest version of a locked row, where it isn't the one that the tree's cursor shows.
    newer: Option<Vec<u8>>,
    just_locked: bool,
    is_peek: bool,
    reach: Reach,
    ahead: Ahead,
    /// Where the way of a locking cursor ends: going up the first key not wanted, going down the last
    /// that is.
    stop: Option<Vec<u8>>,
}

impl Cursor {
    pub(crate) fn new(table: Arc<Table>, index: usize) -> Cursor {
        Cursor {
            table,
            index,
            tree: None,
            mode: ReadMode::Snapshot,
            seqno: 0,
            held: None,
            own: None,
            at: At::Nothing,
            direction: Direction::Forward,
            newer: None,
            just_locked: false,
            is_peek: false,
            reach: Reach::default(),
            ahead: Ahead::default(),
            stop: None,
        }
    }

    /// A locking cursor, from the next seek on, ends at this key, and neither looks beyond it nor locks
    /// there. Going up it is the first key not wanted, going down the last that is.
    pub fn set_stop(&mut self, stop: Option<&[u8]>) {
        if self.stop.as_deref() != stop {
            self.stop = stop.map(<[u8]>::to_vec);
        }
    }

    /// Whether a locking cursor may lock rows before it comes to them, many at once: for those who keep what they have
    /// locked, and will probably come to all of them. `keeps_rows`: in READ COMMITTED, too, no row is given back that passes
    /// the [condition](Cursor::set_condition).
    pub fn allow_ahead(&mut self, is_allowed: bool, keeps_rows: bool) {
        self.ahead.allow(is_allowed, keeps_rows);
    }

    /// Stops at the first row with a key at or after `key`.
    pub fn seek(&mut self, txn: &mut Txn, key: &[u8], mode: ReadMode) -> Result<()> {
        self.fix_view(txn, mode)?;
        self.tree_mut().seek(key)?;
        self.start_forward(txn, Bound::Included(key))
    }

    /// Stops at the last row with a key before `key`.
    pub fn seek_before(&mut self, txn: &mut Txn, key: &[u8], mode: ReadMode) -> Result<()> {
        self.fix_view(txn, mode)?;
        self.tree_mut().seek_before(key)?;
        self.start_backward(txn, Bound::Excluded(key))
    }

    /// Stops at the first row.
    pub fn seek_first(&mut self, txn: &mut Txn, mode: ReadMode) -> Result<()> {
        self.fix_view(txn, mode)?;
        self.tree_mut().seek_first()?;
        self.start_forward(txn, Bound::Unbounded)
    }

    /// Stops at the last row.
    pub fn seek_last(&mut self, txn: &mut Txn, mode: ReadMode) -> Result<()> {
        self.fix_view(txn, mode)?;
        self.tree_mut().seek_last()?;
        self.start_backward(txn, Bound::Unbounded)
    }

    /// Moves to the next row. Errors: those of reading and of locks; it is at no row ([`Cursor::valid`]), or the transaction is one of
    /// another database.
    pub fn next(&mut self, txn: &mut Txn) -> Result<()> {
        self.check_movable(txn)?;
        if self.direction == Direction::Backward {
            self.turn(txn)?;
            return Ok(());
        }
        self.leave(txn)?;
        self.settle(txn)
    }

    /// Moves to the row before. Errors: as with [`Cursor::next`].
    pub fn prev(&mut self, txn: &mut Txn) -> Result<()> {
        self.check_movable(txn)?;
        if self.direction == Direction::Forward {
            self.turn(txn)?;
            return Ok(());
        }
        self.leave(txn)?;
        self.settle(txn)
    }

    /// Waits for the row that the cursor is at, which is a peek ([`Cursor::is_peek`]). It stays there if there still is
    /// a row, as it is then; else it goes on. What it sees of the own writes is what it saw before: a row that this
    /// statement has moved on is not met again.
    pub fn wait_for_peeked(&mut self, txn: &mut Txn, wait: LockWait) -> Result<()> {
        self.check_movable(txn)?;
        let ReadMode::Locked(mode, peeking) = self.mode else { return Ok(()) };
        self.mode = ReadMode::Locked(mode, wait);
        self.newer = None;
        self.is_peek = false;
        let admission = self.admit(txn);
        self.mode = ReadMode::Locked(mode, peeking);
        match admission {
            Ok(Admission::Row) => return Ok(()),
            Ok(Admission::PassedBy) => self.leave(txn)?,
            Ok(Admission::Gone(key)) => self.pass_gone(txn, &key)?,
            Err(error) => {
                self.at = At::Nothing;
                return Err(error);
            }
        }
        self.settle(txn)
    }

    /// Comes to the same key again, as it is in the newest state by now, or if it is gone to the next one. For entries of
    /// an index of which the caller has found, when it had locked their row, that they were out of date: a unique key may
    /// have gone to another row. For locking cursors. Requires: valid.
    pub fn read_again(&mut self, txn: &mut Txn) -> Result<()> {
        self.check_movable(txn)?;
        let key = self.key().to_vec();
        self.at = At::Nothing;
        let from = self.reach.go_back_before(key, self.direction);
        self.look_again(txn, Some(from))?;
        self.settle(txn)
    }

    /// Locks the row that the entry names which the cursor is at, a locking one of an index: `row_key` is the caller's reading of the
    /// entry. True: the entry says how that row is, now that nobody else can change it. False: that is to be seen from the row;
    /// where rows that do not match are given back, it is not locked.
    ///
    /// Who changes a row's entries holds the row's lock until the index has them, and they are visible. So an entry is what it was when
    /// it was read if nothing has come to the index since. What this transaction has written itself the cursor may have passed
    /// (the mark of its seek), so that is not looked for in the index.
    pub fn lock_row(&mut self, txn: &mut Txn, row_key: &[u8]) -> Result<bool> {
        txn.check_own(&self.table)?;
        let ReadMode::Locked(mode, wait) = self.mode else { return Ok(false) };
        if !self.valid() || txn.lock_row(self.table.rows(), row_key, mode, wait)?.is_none() {
            return Ok(false);
        }
        let is_news = self.dict().tree.last_write() > self.row_seqno();
        if !is_news && txn.own(self.table.rows(), row_key)?.is_none() {
            return Ok(true);
        }
        txn.give_back_just_locked(&self.table, 0, row_key);
        Ok(false)
    }

    /// Whether it goes up.
    pub fn is_forward(&self) -> bool {
        self.direction == Direction::Forward
    }

    /// Gives rows from the current one on, in the direction of the last seek or move, until `take` says that it
    /// has enough; then the cursor is at the row given last, else at no row. The same as `next` or `prev` after each,
    /// but plain reads up the tree give many rows for what the steps alone would cost. A locking cursor gives those that
    /// are locked already, at least one.
    pub fn visit(&mut self, txn: &mut Txn, mut take: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let forward = self.direction == Direction::Forward;
        let plain = self.own.is_none() && !matches!(self.mode, ReadMode::Locked(..));
        if let (true, true, At::Tree, Some(tree)) = (forward, plain, self.at, &mut self.tree) {
            self.at = At::Nothing;
            tree.visit(take)?;
            if tree.valid() {
                self.at = At::Tree;
            }
            return Ok(());
        }
        let is_locking = matches!(self.mode, ReadMode::Locked(..));
        while self.valid() && take(self.key(), self.value()) {
            if is_locking && !(self.at == At::Ahead && self.ahead.has_next()) {
                return Ok(());
            }
            if forward {
                self.next(txn)?;
            } else {
                self.prev(txn)?;
            }
        }
        Ok(())
    }

    /// Whether the cursor is at a row.
    pub fn valid(&self) -> bool {
        self.at != At::Nothing
    }

    /// Key of the row.
    ///
    /// # Panics
    /// It is at no row ([`Cursor::valid`]).
    pub fn key(&self) -> &[u8] {
        match (self.at, self.own_entry(), &self.tree) {
            (At::Own, Some((key, _)), _) => key,
            (At::Tree, _, Some(tree)) => tree.key(),
            (At::Ahead, ..) => self.ahead.key(),
            _ => panic!("key of a cursor that is at no row"),
        }
    }

    /// Value of the row.
    ///
    /// # Panics
    /// It is at no row ([`Cursor::valid`]).
    pub fn value(&self) -> &[u8] {
        match (&self.newer, self.at, self.own_entry(), &self.tree) {
            (Some(newer), ..) => newer,
            (None, At::Own, Some((_, Some(value))), _) => value,
            (None, At::Tree, _, Some(tree)) => tree.value(),
            (None, At::Ahead, ..) => self.ahead.value(),
            _ => panic!("value of a cursor that is at no row"),
        }
    }

    /// Whether the lock on this row was not held before the cursor came here, so that it may be
    /// given back if the row does not match.
    pub fn just_locked(&self) -> bool {
        self.just_locked
    }

    /// Whether the row is locked by another, and this its last committed version ([`LockWait::Peek`]).
    pub fn is_peek(&self) -> bool {
        self.is_peek
    }

    fn check_movable(&self, txn: &Txn) -> Result<()> {
        txn.check_own(&self.table)?;
        match self.valid() {
            true => Ok(()),
            false => Err(EngineError::argument("a cursor that is at no row cannot be moved").into()),
        }
    }

    fn own_entry(&self) -> Option<&OwnEntry> {
        self.own.as_ref().and_then(OwnCursor::entry)
    }

    /// Own writes done before are seen, merged with the tree's rows. Without any at the seek, all that there are came later.
    fn own_mark(&self) -> Mark {
        self.own.as_ref().map_or(Mark::START, OwnCursor::mark)
    }

    fn dict(&self) -> &Arc<Dict> {
        &self.table.dicts[self.index]
    }

    fn tree_mut(&mut self) -> &mut pando_tree::Cursor {
        self.tree.as_mut().expect("fix_view comes first")
    }

    /// Decides what is seen from this seek on.
    fn fix_view(&mut self, txn: &mut Txn, mode: ReadMode) -> Result<()> {
        self.at = At::Nothing;
        let dict = txn.dict_of(&self.table, self.index)?.clone();
        txn.write_out_ranges()?;
        self.mode = mode;
        match self.reach.is_at_end() && self.stop.is_some() {
            true => self.ahead.go_to_next_range(),
            false => self.ahead.restart(),
        }
        self.reach.is_on = matches!(mode, ReadMode::Locked(..));
        self.reach.holds = txn.takes_gaps();
        self.seqno = match mode {
            ReadMode::Snapshot => {
                self.held = None;
                txn.snapshot_seqno()
            }
            ReadMode::Latest | ReadMode::Locked(..) => {
                let newest = txn.db.snapshots.take();
                let seqno = newest.seqno();
                self.held = Some(newest);
                seqno
            }
        };
        dict.check_readable(self.seqno)?;
        pause(16);
        self.own = txn.has_touched(&dict).then(|| OwnCursor::new(txn.writes(), dict.id));
        match &mut self.tree {
            Some(tree) => tree.refresh(self.seqno),
            None => self.tree = Some(dict.tree.cursor(self.seqno)),
        }
        Ok(())
    }

    fn start_forward(&mut self, txn: &mut Txn, from: Bound<&[u8]>) -> Result<()> {
        self.direction = Direction::Forward;
        self.reach.start_forward(from);
        let own = self.own.as_mut();
        own.map_or(Ok(()), |own| own.seek_forward(txn.writes(), from))?;
        self.settle(txn)
    }

    fn start_backward(&mut self, txn: &mut Txn, to: Bound<&[u8]>) -> Result<()> {
        self.direction = Direction::Backward;
        self.reach.start_backward(to);
        let own = self.own.as_mut();
        own.map_or(Ok(()), |own| own.seek_backward(txn.writes(), to))?;
        self.settle(txn)
    }

    /// Changes direction, keeping the view of the last seek.
    fn turn(&mut self, txn: &mut Txn) -> Result<()> {
        let key = self.key().to_vec();
        self.at = At::Nothing;
        self.ahead.restart();
        match self.direction {
            Direction::Forward => {
                self.tree_mut().seek_before(&key)?;
                self.start_backward(txn, Bound::Excluded(&key))
            }
            Direction::Backward => {
                let tree = self.tree_mut();
                tree.seek(&key)?;
                if tree.valid() && tree.key() == key {
                    tree.next()?;
                }
                self.start_forward(txn, Bound::Excluded(&key))
            }
        }
    }

    /// Moves off the current row on the side it came from.
    fn leave(&mut self, txn: &Txn) -> Result<()> {
        match std::mem::replace(&mut self.at, At::Nothing) {
            At::Nothing => panic!("a cursor that is at no row cannot be moved"),
            At::Tree => self.step_tree(),
            At::Own => self.step_own(txn),
            At::Ahead => {
                self.ahead.step();
                Ok(())
            }
        }
    }

    fn step_tree(&mut self) -> Result<()> {
        let forward = self.direction == Direction::Forward;
        let tree = self.tree_mut();
        if forward {
            tree.next()?
        } else {
            tree.prev()?
        }
        Ok(())
    }

    fn step_own(&mut self, txn: &Txn) -> Result<()> {
        Ok(self.own.as_mut().map_or(Ok(()), |own| own.step(txn.writes()))?)
    }

    /// Finds the row to stop at from where both sides are.
    fn settle(&mut self, txn: &mut Txn) -> Result<()> {
        loop {
            if self.reach.is_on && self.is_ahead(txn)? {
                return Ok(());
            }
            self.newer = None;
            self.is_peek = false;
            self.at = self.nearer(txn)?;
            if self.at != At::Nothing && self.is_beyond_stop() {
                self.at = At::Nothing;
            }
            if self.reach.is_on && !self.guarded(txn)? {
                continue;
            }
            if self.at == At::Nothing {
                return Ok(());
            }
            match self.admit(txn) {
                Ok(Admission::Row) => {
                    self.ahead.note_met();
                    return Ok(());
                }
                Ok(Admission::PassedBy) => self.leave(txn)?,
                Ok(Admission::Gone(key)) => self.catch_up(txn, &key)?,
                Err(error) => {
                    self.at = At::Nothing;
                    return Err(error);
                }
            }
        }
    }

    /// Whether the next row is one that was locked ahead.
    fn is_ahead(&mut self, txn: &mut Txn) -> Result<bool> {
        let is_ahead = self.go_ahead(txn);
        if is_ahead.is_err() {
            self.at = At::Nothing;
            self.ahead.restart();
        }
        is_ahead
    }

    fn guarded(&mut self, txn: &mut Txn) -> Result<bool> {
        let guarded = self.guard_gap(txn);
        if !matches!(guarded, Ok(true)) {
            self.at = At::Nothing;
        }
        guarded
    }

    fn is_beyond_stop(&self) -> bool {
        match (&self.stop, self.mode, self.direction) {
            (Some(stop), ReadMode::Locked(..), Direction::Forward) => self.key() >= stop.as_slice(),
            (Some(stop), ReadMode::Locked(..), Direction::Backward) => self.key() < stop.as_slice(),
            _ => false,
        }
    }

    /// Which side has the next row; own deletes are passed by together with what they hide.
    fn nearer(&mut self, txn: &Txn) -> Result<At> {
        loop {
            let tree = self.tree.as_ref().filter(|tree| tree.valid());
            let Some((own_key, own_value)) = self.own.as_ref().and_then(OwnCursor::entry) else {
                return Ok(if tree.is_some() { At::Tree } else { At::Nothing });
            };
            let deleted = own_value.is_none();
            if let Some(tree) = tree {
                let mut order = own_key.as_slice().cmp(tree.key());
                if self.direction == Direction::Backward {
                    order = order.reverse();
                }
                if order.is_gt() {
                    return Ok(At::Tree);
                }
                if order.is_eq() {
                    self.step_tree()?;
                }
            }
            if !deleted {
                return Ok(At::Own);
            }
            self.step_own(txn)?;
        }
    }

    /// Sees the newest committed state from here on, the tree's side behind `key`. What is seen of the
    /// own writes stays.
    fn catch_up(&mut self, txn: &Txn, key: &[u8]) -> Result<()> {
        self.see_newest(txn);
        let forward = self.direction == Direction::Forward;
        let tree = self.tree_mut();
        // Nothing was there when the key was looked at: locked, or by somebody else ([`Cursor::peek`]).
        if forward {
            tree.seek(key)?
        } else {
            tree.seek_before(key)?
        }
        Ok(())
    }

    /// Takes the newest committed state as the tree's side, which is nowhere then.
    fn see_newest(&mut self, txn: &Txn) {
        self.at = At::Nothing;
        let newest = txn.db.snapshots.take();
        let seqno = newest.seqno();
        self.seqno = seqno;
        self.held = Some(newest);
        self.tree_mut().refresh(seqno);
    }

    /// As of when the row was read that the cursor is at.
    fn row_seqno(&self) -> Seqno {
        match self.at {
            At::Ahead => self.ahead.seqno(),
            At::Nothing | At::Tree | At::Own => self.seqno,
        }
    }

    /// Locks the row if the mode says so.
    fn admit(&mut self, txn: &mut Txn) -> Result<Admission> {
        let ReadMode::Locked(mode, wait) = self.mode else { return Ok(Admission::Row) };
        if self.index != 0 {
            self.just_locked = false;
            return Ok(Admission::Row);
        }
        let dict = self.dict().clone();
        let key = self.key().to_vec();
        let Some(outcome) = txn.lock(&dict, &key, mode, wait)? else {
            return if wait == LockWait::Peek { self.peek(txn, key) } else { Ok(Admission::PassedBy) };
        };
        self.just_locked = !matches!(outcome, LockOutcome::AlreadyHeld);
        // Written by this transaction, perhaps by this very statement: its newest state counts,
        // or the indexes would be changed from a state that no longer is.
        if let Some(own) = txn.own_since(&dict, &key, self.own_mark())? {
            self.newer = own;
            return Ok(if self.newer.is_some() { Admission::Row } else { Admission::PassedBy });
        }
        if self.at != At::Own && dict.tree.last_write() > self.row_seqno() {
            self.newer = txn.newest_locked(&dict, &key)?;
            if self.newer.is_none() {
                return Ok(Admission::Gone(key));
            }
        }
        Ok(Admission::Row)
    }

    /// The last committed version of a row that another has locked.
    fn peek(&mut self, txn: &Txn, key: Vec<u8>) -> Result<Admission> {
        self.just_locked = false;
        let dict = self.dict();
        if dict.tree.last_write() > self.row_seqno() {
            let newest = txn.db.snapshots.take();
            self.newer = dict.tree.get(&key, newest.seqno())?;
            if self.newer.is_none() {
                return Ok(Admission::Gone(key));
            }
        }
        self.is_peek = true;
        Ok(Admission::Row)
    }
}
