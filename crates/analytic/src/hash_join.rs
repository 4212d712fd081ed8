//! One side of a join in memory, with a hash table over what connects it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::column::{Batch, Column, Data, NO_ROW};
use crate::eval::{Eval, Result, FALSE, TRUE, UNKNOWN};
use crate::expr::{Expr, Slot};
use crate::grace_join::Whole;
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
    /// Each, with whether it has a partner, in a column of this name; NULL: that depends on a NULL.
    Mark(Slot),
}

/// Which number a key has: keys are numbered in the order in which they come first.
#[derive(Debug)]
enum Numbers {
    /// By the key's distance from the least one: of integers that lie close together.
    Direct(i64, Vec<u32>),
    /// By its words, which are here by number.
    Hashed(WordTable, Vec<u64>),
}

/// The rows of each key, one key after the other.
#[derive(Debug)]
struct Lists {
    /// Where those of a key begin; those of the next one end them.
    starts: Vec<u32>,
    rows: Vec<u32>,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Built {
    pub batch: Batch,
    keys: Keys,
    numbers: Numbers,
    /// `None`: each row has a key of its own, and the key's number is the row's.
    lists: Option<Lists>,
    /// It has rows.
    has_rows: bool,
    /// A key of it is NULL.
    has_null: bool,
    /// Which rows have a partner, where that is asked.
    matched: Vec<AtomicBool>,
}

/// The keys of some rows, looked up.
#[derive(Debug)]
pub(crate) struct Found {
    /// The number of each row's key, or [`NO_ROW`].
    numbers: Vec<u32>,
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
        (budget, eval): (&Budget, Eval<'_>),
    ) -> Result<Built> {
        let rows = batch.rows;
        if rows >= NO_ROW as usize {
            return Err(Failure::GivenBack(Why::Memory));
        }
        // Words, numbers, and lists.
        budget.take(rows * (keys.words * 8 + 12 + usize::from(marks)))?;
        let mut words = encode_in_pieces(&keys, columns, rows, (budget, eval))?;
        let mut known: Option<Vec<u32>> = None;
        if let Some(nulls) = Keys::nulls(columns).filter(|nulls| nulls.contains(&true)) {
            let not_null: Vec<u32> = (0..rows as u32).filter(|row| !nulls[*row as usize]).collect();
            let of_row = |row: &u32| &words[*row as usize * keys.words..(*row as usize + 1) * keys.words];
            words = not_null.iter().flat_map(of_row).copied().collect();
            known = Some(not_null);
        }
        let (numbers, of_rows, count) = number_keys(&keys, columns, words, budget)?;
        let lists = match count == rows {
            true => None,
            false => Some(Lists::new(&of_rows, count, known.as_deref())),
        };
        let matched = if marks { (0..rows).map(|_| AtomicBool::new(false)).collect() } else { Vec::new() };
        let (has_rows, has_null) = (rows > 0, known.is_some());
        Ok(Built { batch, keys, numbers, lists, has_rows, has_null, matched })
    }

    /// As a part of a side of which that is known.
    pub(crate) fn of_whole(self, whole: Whole) -> Built {
        Built { has_rows: whole.has_rows, has_null: whole.has_null, ..self }
    }

    /// Looks up the keys of rows.
    pub(crate) fn find(&self, columns: &[Arc<Column>], rows: usize, budget: &Budget) -> Result<Found> {
        let words = self.keys.encode(columns, rows, false, budget)?;
        let nulls = Keys::nulls(columns);
        let mut numbers = Vec::with_capacity(rows);
        match &self.numbers {
            Numbers::Direct(least, places) => numbers.extend(words.iter().map(|word| {
                // What is less than the least wraps around, and lies beyond.
                let place = (*word).wrapping_sub(*least as u64);
                places.get(usize::try_from(place).unwrap_or(usize::MAX)).copied().unwrap_or(NO_ROW)
            })),
            Numbers::Hashed(table, known) => {
                let (width, known) = (self.keys.words, (known.as_slice(), self.keys.words));
                with_width!(width, W => table.find_all::<W>(&words, known, |number| numbers.push(number)));
            }
        }
        if let Some(nulls) = &nulls {
            let of_null = numbers.iter_mut().zip(nulls).filter(|(_, is_null)| **is_null);
            of_null.for_each(|(number, _)| *number = NO_ROW);
        }
        Ok(Found { numbers, nulls })
    }

    /// The partners of the rows from `from` on, until there are `most`; says which row is next. With `first_only` one
    /// for each.
    pub(crate) fn pairs(&self, found: &Found, from: usize, most: usize, first_only: bool) -> (Pairs, usize) {
        let mut pairs = Pairs::default();
        let Some(lists) = &self.lists else {
            let end = found.numbers.len().min(from.saturating_add(most));
            let some = found.numbers[from..end].iter().enumerate().filter(|(_, number)| **number != NO_ROW);
            for (row, number) in some {
                pairs.probe.push((from + row) as u32);
                pairs.build.push(*number);
            }
            return (pairs, end);
        };
        let mut row = from;
        while row < found.numbers.len() && pairs.probe.len() < most {
            if found.numbers[row] != NO_ROW {
                let list = lists.of(found.numbers[row]);
                let list = if first_only { &list[..1] } else { list };
                pairs.build.extend_from_slice(list);
                pairs.probe.resize(pairs.build.len(), row as u32);
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
        match (residual, &self.lists) {
            (Some(residual), Some(lists)) => {
                self.find_first(lists, found, probe, (residual, eval), &mut truths)?
            }
            _ => {
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
            }
        }
        if self.has_rows {
            for (row, truth) in truths.iter_mut().enumerate() {
                let has_null = found.nulls.as_ref().is_some_and(|nulls| nulls[row]);
                if *truth == FALSE && (has_null || self.has_null) {
                    *truth = UNKNOWN;
                }
            }
        }
        Ok(truths)
    }

    /// Which rows of a batch have a partner of which a condition is true. One is enough: all rows try a few first, and those that are left more and more.
    fn find_first(
        &self,
        lists: &Lists,
        found: &Found,
        probe: &Batch,
        (residual, eval): (&Expr, Eval<'_>),
        truths: &mut [u8],
    ) -> Result<()> {
        let list = |row: u32| lists.of(found.numbers[row as usize]);
        let has_any = |row: &u32| found.numbers[*row as usize] != NO_ROW;
        let mut open: Vec<u32> = (0..probe.rows as u32).filter(has_any).collect();
        let (mut tried, mut each) = (0, FIRST_PARTNERS);
        while !open.is_empty() {
            let (mut at, mut left) = (0, Vec::new());
            while at < open.len() {
                eval.go_on()?;
                let begin = at;
                let mut pairs = Pairs::default();
                while at < open.len() && pairs.probe.len() < PAIRS_MAX {
                    let list = list(open[at]);
                    pairs.build.extend_from_slice(&list[tried..list.len().min(tried + each)]);
                    pairs.probe.resize(pairs.build.len(), open[at]);
                    at += 1;
                }
                let pairs = self.filter(pairs, probe, residual, eval)?;
                pairs.probe.iter().for_each(|row| truths[*row as usize] = TRUE);
                let is_left = |row: &&u32| truths[**row as usize] != TRUE && list(**row).len() > tried + each;
                left.extend(open[begin..at].iter().filter(is_left));
            }
            open = left;
            tried += each;
            each = (each * 8).min(PAIRS_MAX);
        }
        Ok(())
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
                // One partner is enough.
                let is_open = |build: &u32| !self.matched[*build as usize].load(Ordering::Relaxed);
                let open = pairs.probe.iter().zip(&pairs.build).filter(|(_, build)| is_open(build));
                let (probes, builds) = open.map(|(probe, build)| (*probe, *build)).unzip();
                pairs = self.filter(Pairs { probe: probes, build: builds }, probe, residual, eval)?;
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

impl Lists {
    /// Of the numbers of rows; `known` says which rows these are, if not all.
    fn new(numbers: &[u32], count: usize, known: Option<&[u32]>) -> Lists {
        let mut starts = vec![0u32; count + 1];
        numbers.iter().for_each(|number| starts[*number as usize + 1] += 1);
        for number in 0..count {
            starts[number + 1] += starts[number];
        }
        let (mut next, mut rows) = (starts.clone(), vec![0; numbers.len()]);
        for (at, number) in numbers.iter().enumerate() {
            let next = &mut next[*number as usize];
            rows[*next as usize] = known.map_or(at as u32, |known| known[at]);
            *next += 1;
        }
        Lists { starts, rows }
    }

    /// The rows of a key, in their order; there is at least one.
    #[inline]
    fn of(&self, number: u32) -> &[u32] {
        let number = number as usize;
        &self.rows[self.starts[number] as usize..self.starts[number + 1] as usize]
    }
}

/// Numbers the keys of rows; gives those of the rows, and how many different ones there are.
fn number_keys(
    keys: &Keys,
    columns: &[Arc<Column>],
    words: Vec<u64>,
    budget: &Budget,
) -> Result<(Numbers, Vec<u32>, usize)> {
    let mut of_rows = Vec::with_capacity(words.len() / keys.words);
    if let Some((least, count)) = direct_range(keys, columns, &words) {
        budget.take(count * 4)?;
        let (mut places, mut next) = (vec![NO_ROW; count], 0);
        for word in &words {
            let place = &mut places[(*word as i64).abs_diff(least) as usize];
            if *place == NO_ROW {
                *place = next;
                next += 1;
            }
            of_rows.push(*place);
        }
        return Ok((Numbers::Direct(least, places), of_rows, next as usize));
    }
    let (mut table, mut known) = (WordTable::new(0), Vec::new());
    let width = keys.words;
    with_width!(width, W => {
        table.find_or_add::<W>(&words, (&mut known, width), |number| of_rows.push(number));
    });
    budget.take(table.bytes() + known.len() * 8)?;
    let count = table.len();
    Ok((Numbers::Hashed(table, known), of_rows, count))
}

/// Rows whose keys are encoded before it is asked whether to go on: new texts take their time.
const ENCODED_AT_ONCE: usize = 1 << 16;

fn encode_in_pieces(
    keys: &Keys,
    columns: &[Arc<Column>],
    rows: usize,
    (budget, eval): (&Budget, Eval<'_>),
) -> Result<Vec<u64>> {
    if rows <= ENCODED_AT_ONCE {
        return keys.encode(columns, rows, true, budget);
    }
    let mut words = Vec::with_capacity(rows * keys.words);
    for from in (0..rows).step_by(ENCODED_AT_ONCE) {
        eval.go_on()?;
        let piece: Vec<u32> = (from..rows.min(from + ENCODED_AT_ONCE)).map(|row| row as u32).collect();
        let columns: Vec<_> = columns.iter().map(|column| Arc::new(column.gather(&piece))).collect();
        words.extend(keys.encode(&columns, piece.len(), true, budget)?);
    }
    Ok(words)
}

/// The least key and how many places there are from it on, where each key can have one of its own.
fn direct_range(keys: &Keys, columns: &[Arc<Column>], words: &[u64]) -> Option<(i64, usize)> {
    let ([KeyPart::Word | KeyPart::Natural], [column]) = (keys.parts.as_slice(), columns) else {
        return None;
    };
    // All of them are integers with a sign.
    let Data::Small(_) = column.data else { return None };
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    words.iter().for_each(|word| (least, most) = (least.min(*word as i64), most.max(*word as i64)));
    if least > most {
        return Some((0, 0));
    }
    let places = most.abs_diff(least).checked_add(1)?;
    (places <= words.len() as u64 * DIRECT_PER_KEY + 1024).then_some((least, places as usize))
}

/// Partners that a row tries first, where one is enough.
const FIRST_PARTNERS: usize = 16;
/// Pairs that are put together at once, or a few more.
pub(crate) const PAIRS_MAX: usize = 16384;
