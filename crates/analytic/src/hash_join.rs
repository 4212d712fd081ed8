//! One side of a join in memory, with a hash table over what connects it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::column::{Batch, Column, Data, NO_ROW};
use crate::eval::{Eval, Result, FALSE, TRUE, UNKNOWN};
use crate::expr::Expr;
use crate::keys::{Budget, KeyPart, Keys};
use crate::word_table::{with_width, WordTable};
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
}

/// Where the first row with a key is.
#[derive(Debug)]
enum Heads {
    /// By the key's distance from the least one: of integers that lie close together.
    Direct(i64, Vec<u32>),
    /// By its words.
    Hashed(WordTable),
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Built {
    pub batch: Batch,
    keys: Keys,
    words: Vec<u64>,
    heads: Heads,
    /// The next row with the same key; empty: no two rows have the same.
    next: Vec<u32>,
    /// A key of it is NULL.
    has_null: bool,
    /// Which rows have a partner, where that is asked.
    matched: Vec<AtomicBool>,
}

/// The keys of some rows, looked up.
#[derive(Debug)]
pub(crate) struct Found {
    /// The first row with the same key, or [`NO_ROW`].
    heads: Vec<u32>,
    /// Which rows have a NULL in their keys.
    nulls: Option<Vec<bool>>,
}

/// Rows that may belong together.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pub probe: Vec<u32>,
    pub build: Vec<u32>,
}

/// So many places for each key are not too many for a direct table.
const DIRECT_PER_KEY: u64 = 8;

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
        budget.take(rows * (keys.words * 8 + usize::from(marks)))?;
        let words = keys.encode(columns, rows, true, budget)?;
        let nulls = Keys::nulls(columns);
        let has_null = nulls.as_ref().is_some_and(|nulls| nulls.contains(&true));
        let is_known = |row: &usize| !nulls.as_ref().is_some_and(|nulls| nulls[*row]);
        let mut next: Vec<u32> = Vec::new();
        let mut chain = |row: usize, before: u32| {
            if before == NO_ROW {
                return;
            }
            if next.is_empty() {
                next.resize(rows, NO_ROW);
            }
            next[row] = before;
        };
        // From the last to the first: a chain gives its rows in their order.
        let heads = match direct_range(&keys, columns, &words, is_known) {
            Some((least, places)) => {
                budget.take(places * 4)?;
                let mut heads = vec![NO_ROW; places];
                for row in (0..rows).rev().filter(is_known) {
                    let head = &mut heads[(words[row] as i64).abs_diff(least) as usize];
                    chain(row, *head);
                    *head = row as u32;
                }
                Heads::Direct(least, heads)
            }
            None => {
                budget.take(WordTable::bytes_for(rows))?;
                let mut table = WordTable::new(rows);
                let known = (words.as_slice(), keys.words);
                with_width!(keys.words, W => for row in (0..rows).rev().filter(is_known) {
                    chain(row, table.replace::<W>(row as u32, known));
                });
                Heads::Hashed(table)
            }
        };
        budget.take(next.len() * 4)?;
        let matched = if marks { (0..rows).map(|_| AtomicBool::new(false)).collect() } else { Vec::new() };
        Ok(Built { batch, keys, words, heads, next, has_null, matched })
    }

    /// Looks up the keys of rows.
    pub(crate) fn find(&self, columns: &[Arc<Column>], rows: usize, budget: &Budget) -> Result<Found> {
        let words = self.keys.encode(columns, rows, false, budget)?;
        let nulls = Keys::nulls(columns);
        let mut heads = Vec::with_capacity(rows);
        match &self.heads {
            Heads::Direct(least, of_keys) => heads.extend(words.iter().map(|word| {
                // What is less than the least wraps around, and lies beyond.
                let place = (*word).wrapping_sub(*least as u64);
                of_keys.get(usize::try_from(place).unwrap_or(usize::MAX)).copied().unwrap_or(NO_ROW)
            })),
            Heads::Hashed(table) => {
                let (width, known) = (self.keys.words, (self.words.as_slice(), self.keys.words));
                with_width!(width, W => table.find_all::<W>(&words, known, |row| heads.push(row)));
            }
        }
        if let Some(nulls) = &nulls {
            heads.iter_mut().zip(nulls).filter(|(_, is_null)| **is_null).for_each(|(head, _)| *head = NO_ROW);
        }
        Ok(Found { heads, nulls })
    }

    /// The partners of the rows from `from` on, until there are `most`; says which row is next. With `first_only` one
    /// for each.
    pub(crate) fn pairs(&self, found: &Found, from: usize, most: usize, first_only: bool) -> (Pairs, usize) {
        let mut pairs = Pairs::default();
        if first_only || self.next.is_empty() {
            let end = found.heads.len().min(from.saturating_add(most));
            let heads = &found.heads[from..end];
            pairs.probe.reserve(heads.len());
            pairs.build.reserve(heads.len());
            for (row, head) in heads.iter().enumerate() {
                if *head != NO_ROW {
                    pairs.probe.push((from + row) as u32);
                    pairs.build.push(*head);
                }
            }
            return (pairs, end);
        }
        let mut row = from;
        while row < found.heads.len() && pairs.probe.len() < most {
            let mut at = found.heads[row];
            while at != NO_ROW {
                pairs.probe.push(row as u32);
                pairs.build.push(at);
                at = self.next[at as usize];
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
        found: &Found,
        probe: &Batch,
        residual: Option<&Expr>,
        eval: Eval<'_>,
    ) -> Result<Vec<u8>> {
        let mut truths = vec![FALSE; probe.rows];
        let mut from = 0;
        while from < probe.rows {
            eval.go_on()?;
            let (mut pairs, next) = self.pairs(found, from, PAIRS_MAX, residual.is_none());
            from = next;
            if let Some(residual) = residual {
                pairs = self.filter(pairs, probe, residual, eval)?;
            }
            pairs.probe.iter().for_each(|row| truths[*row as usize] = TRUE);
        }
        if self.batch.rows > 0 {
            for (row, truth) in truths.iter_mut().enumerate() {
                let has_null = found.nulls.as_ref().is_some_and(|nulls| nulls[row]);
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
        found: &Found,
        probe: &Batch,
        residual: Option<&Expr>,
        eval: Eval<'_>,
    ) -> Result<()> {
        let mut from = 0;
        while from < probe.rows {
            eval.go_on()?;
            let (mut pairs, next) = self.pairs(found, from, PAIRS_MAX, false);
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

/// The least key and how many places there are from it on, where each key can have one of its own.
fn direct_range(
    keys: &Keys,
    columns: &[Arc<Column>],
    words: &[u64],
    is_known: impl Fn(&usize) -> bool,
) -> Option<(i64, usize)> {
    let ([KeyPart::Word | KeyPart::Natural], [column]) = (keys.parts.as_slice(), columns) else {
        return None;
    };
    // All of them are integers with a sign.
    let Data::Small(_) = column.data else { return None };
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for (_, word) in words.iter().enumerate().filter(|(row, _)| is_known(row)) {
        (least, most) = (least.min(*word as i64), most.max(*word as i64));
    }
    if least > most {
        return Some((0, 0));
    }
    let places = most.abs_diff(least).checked_add(1)?;
    (places <= words.len() as u64 * DIRECT_PER_KEY + 1024).then_some((least, places as usize))
}

/// Pairs that are put together at once, or a few more.
pub(crate) const PAIRS_MAX: usize = 16384;
