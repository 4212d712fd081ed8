//! Rows whose keys follow one another without a place between them: 7, 8, 9, as counters and hidden keys give them.
//!
//! Who locks all of them by a stretch keeps nobody from inserting, which a scan in READ COMMITTED must not do. Beyond its lock budget it does all the
//! same (`txn/escalation.rs`): then all rows that follow one another in the table are as good.

use std::ops::Bound;

use pando_txn::LockMode;

use super::{Ahead, Cursor, ROWS_BEFORE};
use crate::error::Result;
use crate::read::cursor::gaps::after;
use crate::txn::transaction::Txn;

/// Bytes at the end of a key that are taken as one number.
const NUMBER_BYTES: usize = 8;

impl Cursor {
    /// Locks the rows left by a stretch, those up to the first place where another key could be; what is behind it is read again. If others are
    /// in the way, or have changed anything since it was read, all stays as it is: then the rows are met one by one, and
    /// those that the stretch has already stay locked.
    pub(super) fn lock_dense(&mut self, txn: &mut Txn, mode: LockMode) -> Result<()> {
        let dict = self.dict().clone();
        let is_wide = txn.escalated.contains(&dict.id);
        let rows = match self.ahead.keeps_rows {
            false => 0,
            true if is_wide => self.ahead.neighbours(),
            true => self.ahead.dense_rows(),
        };
        if rows < ROWS_BEFORE {
            return Ok(());
        }
        let last = self.ahead.row(rows - 1);
        let from = self.ahead.key_of(self.ahead.row(0)).to_vec();
        let to = match is_wide {
            true => after(self.ahead.key_of(last)),
            false => end_of(self.ahead.key_of(last)),
        };
        let is_free = |cursor: &Cursor, txn: &Txn| -> Result<bool> {
            let obstacle = cursor.obstacle(txn, &dict, Some(mode), &from, Bound::Excluded(to.as_slice()))?;
            Ok(obstacle.is_none_or(|at| at > last))
        };
        if !is_free(self, txn)?
            || !txn.db.locks.lock_stretch(&txn.handle, dict.id, mode, &from, Some(&to))
            || !is_free(self, txn)?
            || dict.tree.last_write() > self.ahead.seqno
        {
            return Ok(());
        }
        txn.note_locked_ahead(dict.id, mode, (&from, &to), (!is_wide).then_some(from.len()));
        txn.db.metrics.rows_locked_ahead.add(rows as u64);
        self.ahead.is_locked = true;
        if rows < self.ahead.count() {
            let end = after(self.ahead.key_of(last));
            self.ahead.keep(rows);
            self.reach.go_on_from(&end);
            self.look_again(txn, Some(end))?;
        }
        Ok(())
    }
}

impl Ahead {
    /// How many of the rows left, from the first on, follow one another.
    fn dense_rows(&self) -> usize {
        let key = |at: usize| self.key_of(self.row(at));
        let follows = |at: &usize| follows(key(at - 1), key(*at));
        self.count().min(1) + (1..self.count()).take_while(follows).count()
    }

    /// How many of the rows left, from the first on, have no row between them that a condition has left out.
    fn neighbours(&self) -> usize {
        (0..self.count()).take_while(|at| self.row(*at) == self.row(0) + at).count()
    }

    /// Forgets the rows behind the first `rows` of those left; about as many are read next time, as most would be in vain.
    fn keep(&mut self, rows: usize) {
        let raw = self.row(rows - 1) + 1;
        self.truncate(raw);
        if let Some(left) = &mut self.left {
            left.truncate(rows);
        }
        self.met = 2 * rows;
    }
}

/// Whether there is no key of this length between them.
fn follows(key: &[u8], next: &[u8]) -> bool {
    let head = key.len().saturating_sub(NUMBER_BYTES);
    key.len() == next.len()
        && key[..head] == next[..head]
        && number(&key[head..]).checked_add(1) == Some(number(&next[head..]))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The first key behind it of its length, so that the stretches of rows that follow one another become one.
fn end_of(key: &[u8]) -> Vec<u8> {
    let mut end = key.to_vec();
    match end.iter().rposition(|byte| *byte != u8::MAX) {
        Some(at) => {
            end[at] += 1;
            end[at + 1..].fill(0);
            end
        }
        None => after(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_without_a_place_between_them_follow_one_another() {
        for (key, next, expected) in [
            (&[0, 1][..], &[0, 2][..], true),
            (&[0, 255], &[1, 0], true),
            (&[0, 1], &[0, 3], false),
            (&[0, 2], &[0, 1], false),
            (&[0, 1], &[0, 1], false),
            (&[1], &[1, 0], false),
            (&[], &[], false),
            (&[255], &[0], false),
            (&[9, 0, 0, 0, 0, 0, 0, 0, 7], &[9, 0, 0, 0, 0, 0, 0, 0, 8], true),
            (&[9, 0, 0, 0, 0, 0, 0, 0, 7], &[8, 0, 0, 0, 0, 0, 0, 0, 8], false),
            (&[9, 255, 255, 255, 255, 255, 255, 255, 255], &[10, 0, 0, 0, 0, 0, 0, 0, 0], false),
        ] {
            assert_eq!(follows(key, next), expected, "{key:?} {next:?}");
        }
        assert_eq!(end_of(&[0, 1]), [0, 2]);
        assert_eq!(end_of(&[0, 255, 255]), [1, 0, 0]);
        assert_eq!(end_of(&[255]), [255, 0]);
    }
}
