//! The lock budget: a transaction with very many row locks holds stretches of keys instead.
//!
//! A lock on a key costs some 100 bytes. When a transaction holds more than the budget allows, it replaces its
//! own locks on neighbouring keys by one **stretch** from the first to the last (`pando_txn`). Neighbouring
//! means that nothing else lies between, so that others are not kept from more than before:
//! - keys within one gap that the transaction holds (a locking scan has been over them), or
//! - keys with no committed key of anybody else between them, which the tree is asked for; inserted ones are
//!   not in the tree, so a bulk insert into fresh ground is one stretch.
//!
//! Where another has a stretch already, the locks stay single: two bulk inserts into the same fresh ground.
//!
//! What may be covered besides are keys that are not there, and uncommitted ones of others: those who hold them
//! keep them, and nobody else gets them before the transaction ends.
//!
//! Keys that lie scattered among those of others cannot be joined so; the attempt is given up early. If more than
//! half of the budget is left after it, the budget counts more than the others: the transaction holds **wider** stretches, over all that lies
//! between keys and stretches of its own, until a quarter of the budget is left (`widening`). Others that hold keys there keep them; who wants a key
//! there now waits. Locks that several share cannot be replaced: the others' need to stand for themselves.
//!
//! A scan goes on accordingly: it locks the rows that follow one another in the table by stretches at once
//! (`read/cursor/ahead/dense.rs`), as their locks would be replaced anyway.
//!
//! Only the transaction that is over its budget does this work, in its own thread. Where even that does not help, it is repeated only when
//! the number of locks has doubled.

use pando_base::DictId;
use pando_tree::Cursor;
use pando_txn::{HeldKey, LockMode};

use crate::error::Result;
use crate::table::Dict;
use crate::txn::transaction::Txn;

/// Fewer keys than this are not worth a stretch.
const STRETCH_KEYS_MIN: usize = 16;

/// After so many seeks an attempt that has joined little is given up.
const SEEKS_BEFORE_GIVING_UP: usize = 64;

/// Keys a seek has to yield by then.
const KEYS_A_SEEK_MIN: usize = 8;

impl Txn {
    /// After a lock was granted: keeps to the budget.
    pub(crate) fn keep_lock_budget(&mut self) {
        if self.handle.locks_and_ranges_held() <= self.escalate_at.max(self.db.lock_budget()) {
            return;
        }
        self.escalate();
        let budget = self.db.lock_budget();
        if self.handle.locks_and_ranges_held() > budget / 2 {
            self.widen(budget / 4);
        }
        let left = self.handle.locks_and_ranges_held();
        self.escalate_at = if left <= budget / 2 { 0 } else { left * 2 };
    }

    fn escalate(&mut self) {
        let mut keys = self.db.locks.held_keys(&self.handle);
        keys.sort_unstable_by(|a, b| (a.dict.0, &a.key).cmp(&(b.dict.0, &b.key)));
        for of_dict in keys.chunk_by(|a, b| a.dict == b.dict) {
            let Some(dict) = self.db.dict(of_dict[0].dict) else { continue };
            let mut stretches = Vec::new();
            // What was found before an error counts; the locks of the rest simply stay.
            _ = self.find_stretches(&dict, of_dict, &mut stretches);
            for stretch in stretches.into_iter().filter(|stretch| stretch.len() >= STRETCH_KEYS_MIN) {
                if self.db.locks.replace_by_stretch(&self.handle, stretch) {
                    self.db.metrics.row_lock_stretches.add(1);
                    self.note_escalated(dict.id);
                }
            }
        }
    }

    pub(crate) fn note_escalated(&mut self, dict: DictId) {
        if !self.escalated.contains(&dict) {
            self.escalated.push(dict);
        }
    }

    /// Cuts `keys`, ascending, into parts without anything of others between. Keys at the end may be left out.
    fn find_stretches<'a>(
        &self,
        dict: &Dict,
        keys: &'a [HeldKey],
        stretches: &mut Vec<&'a [HeldKey]>,
    ) -> Result<()> {
        let newest = self.db.snapshots.take();
        let mut tree = dict.tree.cursor(newest.seqno());
        let (mut begin, mut seeks) = (0, 0);
        while begin < keys.len() {
            if seeks > SEEKS_BEFORE_GIVING_UP && begin < seeks * KEYS_A_SEEK_MIN {
                return Ok(());
            }
            let mode = keys[begin].mode;
            let mut end = begin + 1;
            loop {
                let joined = self.joined_by_gap(dict, keys, end - 1, mode);
                if joined > end {
                    end = joined;
                    continue;
                }
                seeks += 1;
                let joined = joined_by_tree(&mut tree, keys, end - 1, mode)?;
                if joined == end {
                    break;
                }
                end = joined;
            }
            stretches.push(&keys[begin..end]);
            begin = end;
        }
        Ok(())
    }

    /// End of the keys from `at` on that lie in one gap of the transaction's and have this mode.
    fn joined_by_gap(&self, dict: &Dict, keys: &[HeldKey], at: usize, mode: LockMode) -> usize {
        let Some(gap_end) = self.db.locks.own_gap_end(&self.handle, dict.id, &keys[at].key) else {
            return at + 1;
        };
        let inside = |key: &&HeldKey| key.mode == mode && gap_end.as_ref().is_none_or(|end| key.key < *end);
        at + keys[at..].iter().take_while(inside).count()
    }
}

/// End of the keys from `at` on that have no key of others between them in the tree, and have this mode.
fn joined_by_tree(tree: &mut Cursor, keys: &[HeldKey], at: usize, mode: LockMode) -> Result<usize> {
    tree.seek(&keys[at].key)?;
    let mut last = at;
    loop {
        if tree.valid() && tree.key() == keys[last].key {
            tree.next()?;
        }
        let Some(next) = keys.get(last + 1).filter(|next| next.mode == mode) else { return Ok(last + 1) };
        if tree.valid() && tree.key() < next.key.as_slice() {
            return Ok(last + 1);
        }
        last += 1;
    }
}
