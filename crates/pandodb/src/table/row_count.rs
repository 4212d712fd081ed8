//! How many rows a table has, told at any time without reading it.
//!
//! The counts in a tree are of records: a row that was changed is there once more until a merge drops its old
//! version. So what commits say is added up instead: rows inserted less rows deleted, from a count that is taken of the tree
//! when it is first asked for. That one may be wrong, but what the tree says are bounds, and they draw
//! closer as buffers are merged into leaves: at least what leaves hold less all tombstones above them, at most all records that
//! are no tombstones. A count outside of them is moved to the nearer bound, for good.

use std::sync::atomic::{AtomicI64, Ordering};

use pando_base::DictId;
use pando_tree::RowBounds;

/// Rows of one dictionary; see the head of this file.
#[derive(Debug)]
pub(crate) struct RowCount {
    /// Inserted less deleted by commits since the dictionary was opened.
    net: AtomicI64,
    /// What there was before, or `UNKNOWN`.
    base: AtomicI64,
}

const UNKNOWN: i64 = i64::MIN;

impl RowCount {
    pub(crate) fn new() -> RowCount {
        RowCount { net: AtomicI64::new(0), base: AtomicI64::new(UNKNOWN) }
    }

    /// A commit has inserted so many rows more than it has deleted.
    pub(crate) fn add(&self, rows: i64) {
        self.net.fetch_add(rows, Ordering::Relaxed);
    }

    /// About how many there are. Races with commits make it wrong by what they write, until it is asked for next.
    pub(crate) fn estimate(&self, bounds: RowBounds) -> u64 {
        let net = self.net.load(Ordering::Relaxed);
        let base = self.base.load(Ordering::Relaxed);
        let told = match base {
            UNKNOWN => i64::try_from(bounds.likely).unwrap_or(i64::MAX),
            base => base.saturating_add(net),
        };
        let rows = told.max(0).unsigned_abs().clamp(bounds.least.min(bounds.most), bounds.most);
        let signed = i64::try_from(rows).unwrap_or(i64::MAX);
        if base == UNKNOWN || signed != told {
            self.base.store(signed.saturating_sub(net), Ordering::Relaxed);
        }
        rows
    }
}

/// Rows that a transaction has inserted less those that it has deleted, by dictionary of rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetRows(Vec<(DictId, i64)>);

impl NetRows {
    pub(crate) fn add(&mut self, dict: DictId, rows: i64) {
        match self.0.iter_mut().find(|(id, _)| *id == dict) {
            Some((_, net)) => *net += rows,
            None => self.0.push((dict, rows)),
        }
    }

    pub(crate) fn of(&self, dict: DictId) -> i64 {
        self.0.iter().find(|(id, _)| *id == dict).map_or(0, |(_, net)| *net)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(least: u64, likely: u64, most: u64) -> RowBounds {
        RowBounds { least, likely, most }
    }

    #[test]
    fn changed_rows_count_once() {
        let count = RowCount::new();
        assert_eq!(count.estimate(bounds(1000, 1000, 1000)), 1000);
        // 500 updates: records are added, rows are not.
        assert_eq!(count.estimate(bounds(1000, 1500, 1500)), 1000);
        count.add(20);
        count.add(-5);
        assert_eq!(count.estimate(bounds(995, 1510, 1520)), 1015);
    }

    #[test]
    fn a_wrong_beginning_is_corrected_by_what_merges_leave() {
        let count = RowCount::new();
        assert_eq!(count.estimate(bounds(1000, 3000, 3000)), 3000);
        assert_eq!(count.estimate(bounds(1000, 1200, 1200)), 1200);
        count.add(10);
        assert_eq!(count.estimate(bounds(1000, 1300, 1300)), 1210);
        // Of an adopted run or an emptied table nobody has said anything.
        assert_eq!(count.estimate(bounds(2000, 2000, 2000)), 2000);
        assert_eq!(count.estimate(bounds(0, 0, 0)), 0);
        count.add(7);
        assert_eq!(count.estimate(bounds(0, 7, 7)), 7);
    }
}
