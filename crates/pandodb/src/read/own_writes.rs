//! A transaction's own writes as a cursor meets them: the write set and the spilled levels as they were at
//! a mark, merged, one entry at a time, in either direction.
//!
//! The write set is asked anew for each step, as it changes under the cursor (what is written after the
//! mark is not seen). Levels before the mark do not change, but they may be merged, and what was in memory
//! may become one of them: then (`State::changes`) the cursor finds its place in them again.

use std::ops::Bound;
use std::sync::Arc;

use pando_base::{DictId, Result};
use pando_txn::Mark;

use crate::table::spill::ApartCursor;
use crate::table::writes::{LiveMark, State, Writes};

/// An entry: `None` is a delete.
pub(crate) type OwnEntry = (Vec<u8>, Option<Vec<u8>>);

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct OwnCursor {
    dict: DictId,
    mark: LiveMark,
    forward: bool,
    /// Places in the levels before the mark, newest first; valid for `changes`.
    levels: Vec<ApartCursor>,
    changes: u64,
    entry: Option<OwnEntry>,
}

impl OwnCursor {
    /// Sees what is written to `dict` until now; at no entry yet.
    pub(crate) fn new(writes: &Arc<Writes>, dict: DictId) -> OwnCursor {
        OwnCursor {
            dict,
            mark: LiveMark::new(writes),
            forward: true,
            levels: Vec::new(),
            changes: 0,
            entry: None,
        }
    }

    /// Another one that sees the same; at no entry yet.
    pub(crate) fn beside(&self) -> OwnCursor {
        OwnCursor {
            dict: self.dict,
            mark: self.mark.clone(),
            forward: true,
            levels: Vec::new(),
            changes: 0,
            entry: None,
        }
    }

    /// What was written before is seen.
    pub(crate) fn mark(&self) -> Mark {
        self.mark.mark()
    }

    /// The entry it is at.
    pub(crate) fn entry(&self) -> Option<&OwnEntry> {
        self.entry.as_ref()
    }

    /// Goes to the first entry from `from` on. After an error, here and below, it is at none.
    pub(crate) fn seek_forward(&mut self, writes: &Writes, from: Bound<&[u8]>) -> Result<()> {
        self.forward = true;
        self.seek(&writes.read(), from)
    }

    /// Goes to the last entry before `to`, which is not a bound that includes its key.
    pub(crate) fn seek_backward(&mut self, writes: &Writes, to: Bound<&[u8]>) -> Result<()> {
        self.forward = false;
        self.seek(&writes.read(), to)
    }

    /// Goes to the next entry in its direction. Requires: it is at one.
    pub(crate) fn step(&mut self, writes: &Writes) -> Result<()> {
        let Some((key, _)) = self.entry.take() else { return Ok(()) };
        let state = writes.read();
        if state.changes != self.changes {
            return self.seek(&state, Bound::Excluded(&key));
        }
        for level in self.levels.iter_mut().filter(|level| level.key() == Some(&key)) {
            level.step(self.forward)?;
        }
        self.settle(&state, Bound::Excluded(&key));
        Ok(())
    }

    fn seek(&mut self, state: &State, bound: Bound<&[u8]>) -> Result<()> {
        self.entry = None;
        self.levels.clear();
        self.changes = state.changes;
        let seen = state.levels.iter().rev().filter(|level| level.to <= self.mark.mark());
        for runs in seen.map(|level| level.runs_of(self.dict)).filter(|runs| !runs.is_empty()) {
            self.levels.push(match (self.forward, bound) {
                (true, from) => ApartCursor::forward(runs, from)?,
                (false, Bound::Unbounded) => ApartCursor::backward(runs, None)?,
                (false, Bound::Excluded(key)) => ApartCursor::backward(runs, Some(key))?,
                (false, Bound::Included(_)) => unreachable!("a seek backward excludes its key"),
            });
        }
        self.settle(state, bound);
        Ok(())
    }

    /// The nearest entry: of the write set within `bound`, or where a level stands.
    fn settle(&mut self, state: &State, bound: Bound<&[u8]>) {
        let mark = self.mark.mark();
        let mut best = match self.forward {
            true => state.set.next_ge(self.dict, bound, mark),
            false => state.set.next_le(self.dict, bound, mark),
        };
        for level in &self.levels {
            let Some(key) = level.key() else { continue };
            // Of the same key the newer is there already.
            let is_nearer = |best: &[u8]| if self.forward { key < best } else { key > best };
            if best.is_none_or(|(best, _)| is_nearer(best)) {
                best = Some((key, level.value()));
            }
        }
        self.entry = best.map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)));
    }
}
