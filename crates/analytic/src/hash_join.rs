//! One side of a join in memory, with a hash table over what connects it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::column::{Batch, Column, NO_ROW};
use crate::eval::{Eval, Result, FALSE, TRUE, UNKNOWN};
use crate::expr::{Expr, Slot};
use crate::keys::{hash, Budget, Keys};
use pando_query::{Failure, Why};

/// What a join gives of the rows that are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Each with each partner.
    Inner,
    /// Likewise; with NULLs, if there is none.
    Left,
    /// With its only partner, or with NULLs; more than one is an error, which the server tells.
    Single,
    /// Those that have a partner.
    Semi,
    /// Those that have none.
    Anti,
    /// NOT IN: those that have none, and of which that is sure.
    AntiNull,
    /// Each, with whether it has a partner, in a column of this name; NULL: that depends on a NULL.
    Mark(Slot),
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Built {
    pub batch: Batch,
    keys: Keys,
    words: Vec<u64>,
    heads: Vec<u32>,
    next: Vec<u32>,
    mask: u64,
    /// A key of it is NULL.
    has_null: bool,
    /// Which rows have a partner, where that is asked.
    matched: Vec<AtomicBool>,
}

/// Rows that may belong together.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pub probe: Vec<u32>,
    pub build: Vec<u32>,
}

impl Built {
    pub(crate) fn new(
        batch: Batch,
        keys: Keys,
        columns: &[Arc<Column>],
        marks: bool,
        budget: &Budget,
    ) -> Result<Built> {
        let rows = batch.rows;
        if rows >= NO_ROW as usize {
            return Err(Failure::GivenBack(Why::Memory));
        }
        let size = (rows * 2).next_power_of_two().max(16);
        budget.take(rows * (keys.words * 8 + 4 + usize::from(marks)) + size * 4)?;
        let words = keys.encode(columns, rows, true, budget)?;
        let (mut heads, mut next) = (vec![NO_ROW; size], vec![NO_ROW; rows]);
        let (mask, width) = (size as u64 - 1, keys.words);
        let mut has_null = false;
        // From the last to the first: a chain gives its rows in their order.
        for row in (0..rows).rev() {
            let key = &words[row * width..(row + 1) * width];
            if key[width - 1] != 0 {
                has_null = true;
                continue;
            }
            let head = &mut heads[(hash(key) & mask) as usize];
            next[row] = *head;
            *head = row as u32;
        }
        let matched = if marks { (0..rows).map(|_| AtomicBool::new(false)).collect() } else { Vec::new() };
        Ok(Built { batch, keys, words, heads, next, mask, has_null, matched })
    }

    pub(crate) fn probe_words(
        &self,
        columns: &[Arc<Column>],
        rows: usize,
        budget: &Budget,
    ) -> Result<Vec<u64>> {
        self.keys.encode(columns, rows, false, budget)
    }

    /// The partners of the rows from `from` on, until there are `most`; says which row is next. With `first_only` one
    /// for each.
    pub(crate) fn pairs(&self, words: &[u64], from: usize, most: usize, first_only: bool) -> (Pairs, usize) {
        let width = self.keys.words;
        let rows = words.len() / width;
        let mut pairs = Pairs::default();
        let mut row = from;
        while row < rows && pairs.probe.len() < most {
            let key = &words[row * width..(row + 1) * width];
            if key[width - 1] == 0 {
                let mut at = self.heads[(hash(key) & self.mask) as usize];
                while at != NO_ROW {
                    let place = at as usize * width;
                    if self.words[place..place + width] == *key {
                        pairs.probe.push(row as u32);
                        pairs.build.push(at);
                        if first_only {
                            break;
                        }
                    }
                    at = self.next[at as usize];
                }
            }
            row += 1;
        }
        (pairs, row)
    }

    /// Leaves those pairs of which a condition is true, over the columns of both.
    pub(crate) fn filter(
        &self,
        pairs: Pairs,
        probe: &Batch,
        residual: &Expr,
        eval: Eval<'_>,
    ) -> Result<Pairs> {
        if pairs.probe.is_empty() {
            return Ok(pairs);
        }
        // Only what the condition looks at is put together.
        let mut slots = Vec::new();
        residual.slots(&mut slots);
        let empty = Arc::new(Column { data: crate::column::Data::Small(Vec::new()), nulls: None });
        let split = probe.columns.len();
        let mut columns = vec![empty; split + self.batch.columns.len()];
        for slot in slots {
            let slot = slot as usize;
            columns[slot] = Arc::new(match slot.checked_sub(split) {
                None => probe.columns[slot].gather(&pairs.probe),
                Some(slot) => self.batch.columns[slot].gather(&pairs.build),
            });
        }
        let both = Batch { rows: pairs.probe.len(), columns };
        let Some(kept) = eval.select(residual, &both)? else { return Ok(pairs) };
        let pick = |rows: &[u32]| kept.iter().map(|at| rows[*at as usize]).collect();
        Ok(Pairs { probe: pick(&pairs.probe), build: pick(&pairs.build) })
    }

    /// What the rows of a batch have: TRUE a partner, FALSE none, UNKNOWN: it depends on a NULL.
    pub(crate) fn truths(
        &self,
        words: &[u64],
        probe: &Batch,
        residual: Option<&Expr>,
        eval: Eval<'_>,
    ) -> Result<Vec<u8>> {
        let width = self.keys.words;
        let mut truths = vec![FALSE; probe.rows];
        let mut from = 0;
        while from < probe.rows {
            eval.go_on()?;
            let (mut pairs, next) = self.pairs(words, from, PAIRS_MAX, residual.is_none());
            from = next;
            if let Some(residual) = residual {
                pairs = self.filter(pairs, probe, residual, eval)?;
            }
            pairs.probe.iter().for_each(|row| truths[*row as usize] = TRUE);
        }
        if self.batch.rows > 0 {
            for (row, truth) in truths.iter_mut().enumerate() {
                let has_null = words[row * width + width - 1] != 0;
                if *truth == FALSE && (has_null || self.has_null) {
                    *truth = UNKNOWN;
                }
            }
        }
        Ok(truths)
    }

    /// Notes which of the rows in memory have a partner among those of a batch.
    pub(crate) fn mark(
        &self,
        words: &[u64],
        probe: &Batch,
        residual: Option<&Expr>,
        eval: Eval<'_>,
    ) -> Result<()> {
        let mut from = 0;
        while from < probe.rows {
            eval.go_on()?;
            let (mut pairs, next) = self.pairs(words, from, PAIRS_MAX, false);
            from = next;
            if let Some(residual) = residual {
                pairs = self.filter(pairs, probe, residual, eval)?;
            }
            pairs.build.iter().for_each(|row| self.matched[*row as usize].store(true, Ordering::Relaxed));
        }
        Ok(())
    }

    /// The rows in memory that have a partner, or those that have none.
    pub(crate) fn marked(&self, has_partner: bool) -> Vec<u32> {
        let is = |row: &u32| self.matched[*row as usize].load(Ordering::Relaxed) == has_partner;
        (0..self.batch.rows as u32).filter(is).collect()
    }
}

/// Pairs that are put together at once, or a few more.
pub(crate) const PAIRS_MAX: usize = 16384;
