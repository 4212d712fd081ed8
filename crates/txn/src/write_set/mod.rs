//! The write set of a transaction: everything it wrote and has not committed.
//!
//! Purpose: hold the writes outside the tree (I1, I6), let the transaction read them in key order
//! merged with the tree, undo a suffix of them (statement, savepoint), and hand over each key's final
//! state at commit.
//!
//! Structure: one **op log** (`log.rs`) of puts and deletes in the order they were done, its bytes
//! in an **arena** (`arena.rs`) that never moves them; per dictionary an ordered **index**
//! (`index.rs`) from key to the newest op of that key. Each op knows the op of the same key before it,
//! so the state at any earlier moment can be read: a [`Mark`] is a length of the log, and a read with
//! a mark follows each key's chain to below it. That is how a statement does not see what it writes
//! itself (Halloween).
//!
//! What holds:
//! 1. The index of a dictionary has exactly the keys with an op in the log, each with its newest op.
//! 2. Along a key's chain op numbers decrease; the first op of a key owns the key's bytes.
//! 3. `rollback_to` leaves the same answers as if the undone ops had never been.
//!
//! Life of an op: `put` finds the key in the index (a key above all others without a descent), pushes
//! the op with the found op as its previous, and sets or inserts the index entry. `rollback_to` walks
//! the undone ops backwards, setting each entry to the op's previous or removing it, then
//! truncates the log; when less is kept than undone it builds the indexes anew from what is kept.
//!
//! Auto-increment counters ride along so that commit can log them. They only grow, and no rollback
//! takes them back: numbers given out are not given out again.
//!
//! **Spilling.** When `bytes()` passes the transaction's budget, the caller writes the final state of the
//! ops between two marks (`try_for_each_final_of`) somewhere else and lets go of them (`keep_from`). The log
//! then begins later: a [`Mark`] counts the ops of the whole transaction, spilled ones included, and
//! `spilled` says where the log begins. What is asked for an earlier moment, this write set does not
//! know; rolling back to one empties it, and the caller forgets what it has elsewhere.

mod arena;
mod index;
mod log;

use std::ops::Bound;

use pando_base::planted::{is_planted, Bug};
use pando_base::{DictId, Kind};

use index::{Index, Slot};
use log::{OpLog, OpNumber, NO_OP};

/// Indexes kept by `clear` for the next transaction: a table with a few secondary keys.
const SPARE_INDEXES_MAX: usize = 8;

/// A moment in the life of a write set: the writes done before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

impl Mark {
    /// The moment after every write: a read with it sees all.
    pub const LATEST: Mark = Mark(u64::MAX);
    /// The moment before every write.
    pub const START: Mark = Mark(0);
}

/// A key and the value written to it, `None` if it was deleted.
pub type Written<'a> = (&'a [u8], Option<&'a [u8]>);

#[derive(Debug)]
struct DictWrites {
    id: DictId,
    index: Index,
    /// Next auto-increment value to be logged, 0 for none.
    auto_increment: u64,
}

/// Uncommitted writes of one transaction; see the head of this module.
#[derive(Debug, Default)]
pub struct WriteSet {
    log: OpLog,
    /// Ops before those of the log.
    spilled: u64,
    /// In the order of their first use; ops name dictionaries by position here.
    dicts: Vec<DictWrites>,
    /// Positions in `dicts`, ascending by id.
    by_id: Vec<u32>,
    /// Position in `dicts` last written to.
    recent: usize,
    spare: Vec<Index>,
}

impl WriteSet {
    /// An empty write set. Allocates nothing.
    pub fn new() -> WriteSet {
        WriteSet::default()
    }

    /// The moment up to which ops have been let go of: what was written before is elsewhere.
    pub fn spilled(&self) -> Mark {
        Mark(self.spilled)
    }

    /// How many ops of the log were done before the mark; above all for [`Mark::LATEST`].
    fn end_of(&self, mark: Mark) -> OpNumber {
        mark.0.saturating_sub(self.spilled).min(u64::from(NO_OP)) as OpNumber
    }

    /// Writes `value` under `key`.
    pub fn put(&mut self, dict: DictId, key: &[u8], value: &[u8]) {
        self.write(dict, key, Some(value));
    }

    /// Deletes `key`, whether or not it was written here before.
    pub fn delete(&mut self, dict: DictId, key: &[u8]) {
        self.write(dict, key, None);
    }

    /// What was written to `key`: `None` nothing, `Some(None)` a delete.
    pub fn get(&self, dict: DictId, key: &[u8]) -> Option<Option<&[u8]>> {
        self.get_at(dict, key, Mark::LATEST)
    }

    /// What was written to `key` before `mark`.
    pub fn get_at(&self, dict: DictId, key: &[u8], mark: Mark) -> Option<Option<&[u8]>> {
        let index = self.index(dict)?;
        let slot = index.find(&self.log, key).ok()?;
        let op = self.log.newest_below(index.op(slot), self.end_of(mark));
        (op != NO_OP).then(|| self.log.value(op))
    }

    /// The first key at or above `from` written to before `mark`, and what was written.
    ///
    /// Writes done later do not change the answer for a given mark, so a cursor keeps it until it has
    /// passed it; keys written only after the mark are skipped one by one.
    pub fn next_ge(&self, dict: DictId, from: Bound<&[u8]>, mark: Mark) -> Option<Written<'_>> {
        let index = self.index_before(dict, mark)?;
        let start = match from {
            Bound::Unbounded => index.first(),
            Bound::Included(key) => index.entry_from(index.find(&self.log, key).unwrap_or_else(|slot| slot)),
            Bound::Excluded(key) => match index.find(&self.log, key) {
                Ok(slot) => index.after(slot),
                Err(slot) => index.entry_from(slot),
            },
        };
        self.first_before_mark(index, start, mark, |slot| index.after(slot))
    }

    /// The last key at or below `from` written to before `mark`, and what was written; see `next_ge`.
    pub fn next_le(&self, dict: DictId, from: Bound<&[u8]>, mark: Mark) -> Option<Written<'_>> {
        let index = self.index_before(dict, mark)?;
        let start = match from {
            Bound::Unbounded => index.last(),
            Bound::Included(key) => match index.find(&self.log, key) {
                Ok(slot) => Some(slot),
                Err(slot) => index.before(slot),
            },
            Bound::Excluded(key) => index.before(index.find(&self.log, key).unwrap_or_else(|slot| slot)),
        };
        self.first_before_mark(index, start, mark, |slot| index.before(slot))
    }

    /// Now, for `rollback_to` and reads of this moment.
    pub fn mark(&self) -> Mark {
        Mark(self.spilled + u64::from(self.log.len()))
    }

    /// Undoes every write done since `mark`. Takes time by the writes undone or the writes kept,
    /// whichever are fewer. Before the mark of `spilled` it leaves nothing here.
    pub fn rollback_to(&mut self, mark: Mark) {
        let (kept, all) = (self.end_of(mark), self.log.len());
        self.spilled = self.spilled.min(mark.0);
        if kept >= all {
            return;
        }
        let kept = kept + u32::from(is_planted(Bug::SavepointKeepsOne));
        if kept >= all - kept {
            for op in (kept..all).rev() {
                self.undo(op);
            }
            self.log.truncate(kept);
        } else {
            self.log.truncate(kept);
            self.dicts.iter_mut().for_each(|writes| writes.index.clear());
            for op in 0..kept {
                self.redo(op);
            }
        }
    }

    /// Forgets everything, counters too, and keeps a little memory for the next transaction.
    pub fn clear(&mut self) {
        self.spilled = 0;
        self.log.clear();
        self.by_id.clear();
        self.recent = 0;
        for mut writes in self.dicts.drain(..) {
            if self.spare.len() < SPARE_INDEXES_MAX {
                writes.index.clear();
                self.spare.push(writes.index);
            }
        }
    }

    /// Whether there is no write (counters do not count: without writes nothing needs them).
    pub fn is_empty(&self) -> bool {
        self.ops() == 0
    }

    /// Writes done and not undone, several to one key counted each, spilled ones included.
    pub fn ops(&self) -> u64 {
        self.mark().0
    }

    /// Writes that are still here.
    pub fn ops_held(&self) -> u64 {
        u64::from(self.log.len())
    }

    /// Memory held, capacities included.
    pub fn bytes(&self) -> usize {
        let indexes = self.dicts.iter().map(|writes| writes.index.bytes()).sum::<usize>();
        let spare = self.spare.iter().map(Index::bytes).sum::<usize>();
        self.log.bytes()
            + indexes
            + spare
            + self.dicts.capacity() * size_of::<DictWrites>()
            + self.by_id.capacity() * size_of::<u32>()
            + self.spare.capacity() * size_of::<Index>()
    }

    /// The dictionaries written to, ascending.
    pub fn dicts(&self) -> impl Iterator<Item = DictId> + '_ {
        self.ascending().filter(|writes| !writes.index.is_empty()).map(|writes| writes.id)
    }

    /// Keys written to in `dict`.
    pub fn keys(&self, dict: DictId) -> usize {
        self.index(dict).map_or(0, Index::len)
    }

    /// Calls `f` with each key's newest write, ascending by dictionary, then key. The value of a
    /// delete is empty.
    pub fn for_each_final<'a>(&'a self, mut f: impl FnMut(DictId, &'a [u8], Kind, &'a [u8])) {
        for writes in self.ascending() {
            let mut at = writes.index.first();
            while let Some(slot) = at {
                let op = writes.index.op(slot);
                let (kind, value) = self.log.kind_and_value(op);
                f(writes.id, self.log.key(op), kind, value);
                at = writes.index.after(slot);
            }
        }
    }

    /// Writes done since the mark.
    pub fn ops_since(&self, mark: Mark) -> u64 {
        self.ops().saturating_sub(mark.0)
    }

    /// Calls `f` with the newest write of each key of `dict` among those done from one mark to another, ascending
    /// by key; the value of a delete is empty. Ends at its first error.
    pub fn try_for_each_final_of<E>(
        &self,
        dict: DictId,
        from: Mark,
        to: Mark,
        mut f: impl FnMut(&[u8], Kind, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (from, to) = (self.end_of(from), self.end_of(to));
        let Some(index) = self.index(dict) else { return Ok(()) };
        let mut at = index.first();
        while let Some(slot) = at {
            let op = self.log.newest_below(index.op(slot), to);
            if op != NO_OP && op >= from {
                let (kind, value) = self.log.kind_and_value(op);
                f(self.log.key(op), kind, value)?;
            }
            at = index.after(slot);
        }
        Ok(())
    }

    /// Lets go of the ops done before `mark`: the caller has them elsewhere. Counters stay.
    pub fn keep_from(&mut self, mark: Mark) {
        let first = self.end_of(mark).min(self.log.len());
        let old = std::mem::take(&mut self.log);
        self.spilled += u64::from(first);
        self.dicts.iter_mut().for_each(|writes| writes.index.clear());
        for op in first..old.len() {
            self.write_at(old.dict(op), old.key(op), old.value(op));
        }
    }

    /// Counts `ops` writes that the caller has done elsewhere, as if they had been done here and let go of.
    /// Requires: nothing is held here ([`WriteSet::ops_held`]).
    pub fn pass(&mut self, ops: u64) {
        assert!(self.log.len() == 0, "writes done elsewhere come after those done here");
        self.spilled += ops.max(1);
    }

    /// Commit shall log that auto-increment values of `dict` below `next` are given out. The highest
    /// one counts; rollback does not take it back.
    pub fn auto_increment(&mut self, dict: DictId, next: u64) {
        let position = self.position_or_new(dict);
        let counter = &mut self.dicts[position].auto_increment;
        *counter = next.max(*counter);
    }

    /// Calls `f` with each dictionary's counter, ascending by dictionary.
    pub fn for_each_auto_increment(&self, mut f: impl FnMut(DictId, u64)) {
        for writes in self.ascending().filter(|writes| writes.auto_increment > 0) {
            f(writes.id, writes.auto_increment);
        }
    }

    fn write(&mut self, dict: DictId, key: &[u8], value: Option<&[u8]>) {
        let position = self.position_or_new(dict);
        self.write_at(position, key, value);
    }

    fn write_at(&mut self, position: usize, key: &[u8], value: Option<&[u8]>) {
        let index = &mut self.dicts[position].index;
        match index.find(&self.log, key) {
            Ok(slot) => {
                let op = self.log.push(position, key, value, index.op(slot));
                index.set_op(slot, op);
            }
            Err(slot) => {
                let op = self.log.push(position, key, value, NO_OP);
                index.insert(&self.log, slot, op);
            }
        }
    }

    /// Takes the newest op out of the index; the log still has it.
    fn undo(&mut self, op: OpNumber) {
        let index = &mut self.dicts[self.log.dict(op)].index;
        let slot = index.find(&self.log, self.log.key(op)).expect("every op's key is in the index");
        assert_eq!(index.op(slot), op, "the newest op is undone first");
        match self.log.previous(op) {
            NO_OP => index.remove(slot),
            previous => index.set_op(slot, previous),
        }
    }

    /// Brings an op of the log into the index again, in the order of the log.
    fn redo(&mut self, op: OpNumber) {
        let index = &mut self.dicts[self.log.dict(op)].index;
        match index.find(&self.log, self.log.key(op)) {
            Ok(slot) => index.set_op(slot, op),
            Err(slot) => index.insert(&self.log, slot, op),
        }
    }

    fn first_before_mark(
        &self,
        index: &Index,
        mut at: Option<Slot>,
        mark: Mark,
        step: impl Fn(Slot) -> Option<Slot>,
    ) -> Option<Written<'_>> {
        while let Some(slot) = at {
            let op = self.log.newest_below(index.op(slot), self.end_of(mark));
            if op != NO_OP {
                return Some((self.log.key(op), self.log.value(op)));
            }
            at = step(slot);
        }
        None
    }

    fn ascending(&self) -> impl Iterator<Item = &DictWrites> + '_ {
        self.by_id.iter().map(|position| &self.dicts[*position as usize])
    }

    /// Where in `by_id` a dictionary is or would be.
    fn search(&self, dict: DictId) -> Result<usize, usize> {
        self.by_id.binary_search_by_key(&dict, |position| self.dicts[*position as usize].id)
    }

    fn index(&self, dict: DictId) -> Option<&Index> {
        let position = self.search(dict).ok()?;
        Some(&self.dicts[self.by_id[position] as usize].index)
    }

    /// The index, unless it is plain that nothing in it is older than `mark`.
    fn index_before(&self, dict: DictId, mark: Mark) -> Option<&Index> {
        if self.end_of(mark) == 0 {
            return None;
        }
        self.index(dict).filter(|index| !index.is_empty())
    }

    fn position_or_new(&mut self, dict: DictId) -> usize {
        if self.dicts.get(self.recent).is_some_and(|writes| writes.id == dict) {
            return self.recent;
        }
        self.recent = match self.search(dict) {
            Ok(rank) => self.by_id[rank] as usize,
            Err(rank) => {
                let index = self.spare.pop().unwrap_or_default();
                self.dicts.push(DictWrites { id: dict, index, auto_increment: 0 });
                self.by_id.insert(rank, self.dicts.len() as u32 - 1);
                self.dicts.len() - 1
            }
        };
        self.recent
    }
}

#[cfg(test)]
mod tests;
