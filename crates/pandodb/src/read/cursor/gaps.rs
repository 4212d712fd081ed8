//! How a locking cursor passes over nothing: it looks at every gap on its way, and excludes phantoms by holding it.
//!
//! Before it trusts that `next` is the next key, the cursor
//! 1. holds the gap from where it was up to and including `next` (or up to its stop, or the end): from now on
//!    nobody else inserts there (`pando_txn`, `lock_gap`). Only in transactions that take gaps; without (READ COMMITTED)
//!    others may insert where it has been, but what they had written before it came there it meets all the same;
//! 2. looks at what others have written there and not committed. Such a key has no lock of its own in an index
//!    that is not unique, so its writer is given that lock, and then the cursor asks for it like everybody:
//!    it waits for the writer's end, in the queue, with deadlocks found, time limit, NOWAIT and kill;
//! 3. looks again from where it was, at the newest state, if anything may have come since it looked first.
//!    `next` itself then counts as not looked at: its row may be gone by now, and another one of the same
//!    key written by somebody whom step 2 did not meet, because it passed by who writes to a row that is there.
//!
//! Who inserts asks for gaps while it holds its own writes alone (`Txn::write_when_free`), so it either meets
//! the gap of step 1 or is met in step 2. What comes in between the two cannot be: a writer is on the
//! dictionary's list before it asks. And who is on the list no more is visible for step 3.
//!
//! Keys that are there are not the gap's business: rows are locked as the cursor stops at them, and an entry of
//! an index is protected by the lock of its row. So in an index an entry may be stale by the time its row is
//! locked: then the row has another entry now, which the scan meets at its place if that is still
//! ahead; with gaps held it cannot have come to a place behind. The key of a stale entry, if it is unique, may be another
//! row's now: whoever scans asks for the same key again ([`Cursor::read_again`]).
//!
//! Without gaps the lock of what was waited for in step 2 is given back at once: it was for waiting only.
//!
//! SKIP LOCKED, and who only peeks, pass by what others have written: step 2 is left out.

use std::ops::Bound;

use pando_base::planted::{is_planted, Bug};
use pando_txn::LockOutcome;

use super::{Cursor, Direction, ReadMode};
use crate::error::Result;
use crate::txn::transaction::{LockWait, Txn};

/// How far a locking cursor has come.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// The cursor locks, and looks at gaps.
    pub(super) is_on: bool,
    /// Gaps are held: REPEATABLE READ and SERIALIZABLE.
    pub(super) holds: bool,
    /// Where the part not looked at begins: going up its first key, going down the first key after
    /// it (`None`: it has no end above).
    edge: Option<Vec<u8>>,
    /// Everything up to the end of the cursor's way has been looked at.
    is_complete: bool,
}

/// The smallest key after `key`.
pub(super) fn after(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

impl Reach {
    /// Nothing at or after the bound has been looked at.
    pub(super) fn start_forward(&mut self, from: Bound<&[u8]>) {
        if self.is_on {
            self.is_complete = false;
            self.edge = Some(match from {
                Bound::Unbounded => Vec::new(),
                Bound::Included(key) => key.to_vec(),
                Bound::Excluded(key) => after(key),
            });
        }
    }

    /// Nothing at or before the bound has been looked at.
    pub(super) fn start_backward(&mut self, to: Bound<&[u8]>) {
        if self.is_on {
            self.is_complete = false;
            self.edge = match to {
                Bound::Unbounded => None,
                Bound::Included(key) => Some(after(key)),
                Bound::Excluded(key) => Some(key.to_vec()),
            };
        }
    }

    /// The key is looked at again. Gives where the cursor begins: going up the key, going down the first after it.
    pub(super) fn go_back_before(&mut self, key: Vec<u8>, direction: Direction) -> Vec<u8> {
        let from = match direction {
            Direction::Forward => key,
            Direction::Backward => after(&key),
        };
        self.is_complete = false;
        self.edge = Some(from.clone());
        from
    }

    /// Whether everything up to the end of the cursor's way has been looked at.
    pub(super) fn is_at_end(&self) -> bool {
        self.is_on && self.is_complete
    }

    /// Whether there is something left to look at.
    pub(super) fn may_go_on(&self) -> bool {
        self.is_on && !self.is_complete
    }

    /// Going up, where the part not looked at begins.
    pub(super) fn edge_forward(&self) -> Vec<u8> {
        self.edge.clone().unwrap_or_default()
    }

    /// Going up, everything before `key` has been looked at.
    pub(super) fn go_on_from(&mut self, key: &[u8]) {
        self.edge = Some(key.to_vec());
    }

    /// Going up, everything before `key` has been looked at, and perhaps more already.
    pub(super) fn go_on_at_least_from(&mut self, key: &[u8]) {
        if self.edge.as_deref().is_none_or(|edge| edge < key) {
            self.go_on_from(key);
        }
    }

    /// Whether the gap down or up to `next` is looked at already. `None`: the end of the cursor's way.
    fn includes(&self, next: Option<&[u8]>, direction: Direction) -> bool {
        if self.is_complete {
            return true;
        }
        match (next, &self.edge, direction) {
            (Some(next), Some(edge), Direction::Forward) => next < edge.as_slice(),
            (Some(next), Some(edge), Direction::Backward) => next >= edge.as_slice(),
            _ => false,
        }
    }
}

/// Keys from the first up to, but without, the second (`None`: up to the end).
struct Gap {
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl Gap {
    /// Whether this key is all that is in it.
    fn is_key(&self, key: Option<&[u8]>) -> bool {
        key.is_some_and(|key| self.from == key && self.to.as_ref().is_some_and(|to| *to == after(key)))
    }

    /// Without `next`, with which it ends in this direction.
    fn leave_out(&mut self, next: &[u8], direction: Direction) {
        match direction {
            Direction::Forward => self.to = Some(next.to_vec()),
            Direction::Backward => self.from = after(next),
        }
    }
}

impl Cursor {
    /// Steps 1 to 3 for the key that the cursor has come to, or the end of its way. False: there was news, and
    /// the cursor is to look again; it is at no row.
    pub(super) fn guard_gap(&mut self, txn: &mut Txn) -> Result<bool> {
        let next = self.valid().then(|| self.key().to_vec());
        if self.reach.includes(next.as_deref(), self.direction) {
            return Ok(true);
        }
        let mut gap = self.gap_up_to(next.as_deref());
        let dict = self.dict().clone();
        if self.reach.holds {
            txn.lock_gap(&dict, &gap.from, gap.to.as_deref());
        }
        if gap.is_key(next.as_deref()) {
            // Nothing lies between: the row's lock decides about the rest.
            self.move_edge(gap);
            return Ok(true);
        }
        let waited = self.meet_writers(txn, &gap, next.as_deref())?;
        let is_news = (waited || dict.tree.last_write() > self.seqno) && !is_planted(Bug::ScanSeesOldState);
        if let Some(next) = next.as_deref().filter(|_| is_news) {
            gap.leave_out(next, self.direction);
        }
        let looked_from = self.move_edge(gap);
        self.reach.is_complete = next.is_none();
        if is_news {
            self.look_again(txn, looked_from)?;
        }
        Ok(!is_news)
    }

    /// What has to be held to be sure that `next` is next.
    fn gap_up_to(&self, next: Option<&[u8]>) -> Gap {
        let edge = self.reach.edge.clone();
        match self.direction {
            Direction::Forward => {
                Gap { from: edge.unwrap_or_default(), to: next.map(after).or_else(|| self.stop.clone()) }
            }
            Direction::Backward => Gap {
                from: next.map(<[u8]>::to_vec).or_else(|| self.stop.clone()).unwrap_or_default(),
                to: edge,
            },
        }
    }

    /// The gap has been looked at. Gives where it began, in the cursor's direction.
    fn move_edge(&mut self, gap: Gap) -> Option<Vec<u8>> {
        match self.direction {
            // Without an end: no key is beyond it.
            Direction::Forward => match gap.to {
                Some(to) => self.reach.edge.replace(to),
                None => self.reach.edge.clone(),
            },
            Direction::Backward => self.reach.edge.replace(gap.from),
        }
    }

    /// Step 2. True if others had written there; they have ended, or it would be an error.
    fn meet_writers(&self, txn: &mut Txn, gap: &Gap, next: Option<&[u8]>) -> Result<bool> {
        let ReadMode::Locked(mode, wait) = self.mode else { return Ok(false) };
        if matches!(wait, LockWait::SkipLocked | LockWait::Peek) || is_planted(Bug::GapWritersNotMet) {
            return Ok(false);
        }
        let dict = self.dict();
        let mut waited = false;
        for writes in dict.writers.others(txn.writes()) {
            let mut from = Bound::Included(gap.from.clone());
            let to = gap.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            while let Some(key) =
                writes.first_written_between(dict.id, from.as_ref().map(Vec::as_slice), to)?
            {
                // The row there is locked as a row.
                if next != Some(key.as_slice()) {
                    writes.unless_ended(|| txn.db.locks.lock_for_owner(writes.owner(), dict.id, &key));
                    let outcome = txn.lock(dict, &key, mode, wait)?;
                    if !self.reach.holds && matches!(outcome, Some(LockOutcome::Granted { .. })) {
                        txn.db.locks.unlock(&txn.handle, dict.id, &key);
                    }
                    waited = true;
                }
                from = Bound::Excluded(key);
            }
        }
        Ok(waited)
    }

    /// Step 3: the newest state from where the gap began. What is seen of the own writes stays.
    pub(super) fn look_again(&mut self, txn: &Txn, edge: Option<Vec<u8>>) -> Result<()> {
        self.see_newest(txn);
        let forward = self.direction == Direction::Forward;
        let tree = self.tree_mut();
        match &edge {
            _ if forward => tree.seek(edge.as_deref().unwrap_or_default())?,
            Some(edge) => tree.seek_before(edge)?,
            None => tree.seek_last()?,
        }
        let Some(own) = &mut self.own else { return Ok(()) };
        if forward {
            own.seek_forward(txn.writes(), Bound::Included(edge.as_deref().unwrap_or_default()))
        } else {
            own.seek_backward(txn.writes(), edge.as_deref().map_or(Bound::Unbounded, Bound::Excluded))
        }
        .map_err(Into::into)
    }
}
