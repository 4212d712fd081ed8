//! Rows in order. As long as there is memory, they are sorted there; else each thread writes what it has, sorted, into the
//! temporary file (a *run*), and runs are merged.
//!
//! In a run each row has its key as bytes that are ordered as the rows are, whatever the columns are ([`Order::keys`]).

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::Arc;

use pando_column::vector::Strings;
use pando_query::{Failure, Why};

use crate::column::{
    bytes_of_held_texts, bytes_of_new_strings, Batch, Column, Data, Dict, Kind, UNSUPPORTED,
};
use crate::eval::{Eval, Result};
use crate::execute::{empty, Pipeline, Run};
use crate::expr::Expr;
use crate::first_rows::{ordered_bits, FirstRows};
use crate::keys::Budget;
use crate::sort;
use crate::spill::{in_pieces, rows_of_bytes, Chunk, Piece, Spill, Spool};

/// Which rows are wanted of all: so many are skipped, and so many are given.
type Cut = (u64, Option<u64>);

/// What rows are sorted by; true: descending.
struct Order<'a> {
    by: Vec<(Expr, bool)>,
    cut: Cut,
    /// What the first rows say of those that come later.
    first: Option<Arc<FirstRows>>,
    kinds: &'a [Kind],
    eval: Eval<'a>,
}

/// A row's key in the file follows its columns and the texts that it is sorted by.
type RunOfRows = VecDeque<Piece>;

/// What a thread has.
#[derive(Default)]
struct Own {
    batches: Vec<Batch>,
    /// Rows that have come since it was looked which may be among the first, and how many bytes they keep in memory.
    fresh: Vec<Batch>,
    fresh_bytes: usize,
    /// What was taken of the budget for them.
    fresh_taken: usize,
    fresh_texts: Vec<Option<Dict>>,
    /// All rows that have come.
    rows: usize,
    strings: Vec<Option<Arc<Strings>>>,
    /// What was taken of the budget, and what was not.
    taken: usize,
    untaken: usize,
    runs: Vec<RunOfRows>,
}

/// Runs that are merged at once.
const RUNS_MIN: usize = 4;
const RUNS_MAX: usize = 64;

/// Rows, and bytes of rows, after which it is looked which of them are among the first, at least.
const FRESH_ROWS: usize = 1 << 16;
const FRESH_BYTES: usize = 16 << 20;
/// So many bytes of them wait where the budget has no more.
const FRESH_BYTES_UNTAKEN: usize = 1 << 20;

/// Rows that are wanted, beyond which all of them are kept, and written as runs where memory ends.
const WANTED_MAX: usize = 1 << 16;

/// Rows whose keys are made without asking whether to go on.
const KEYS_AT_ONCE: usize = 1 << 14;

/// Rows that are merged at once.
const MERGED_ROWS: usize = 4096;

impl Run<'_> {
    /// The rows of a pipeline in an order, without those that are skipped, and those beyond a limit.
    pub(crate) fn sorted(
        &mut self,
        pipeline: &Pipeline,
        order: &[(Expr, bool)],
        cut: Cut,
        first: Option<Arc<FirstRows>>,
    ) -> Result<Vec<Chunk>> {
        let by = order
            .iter()
            .map(|(expr, descends)| Ok((pipeline.bind(expr)?, *descends)))
            .collect::<Result<Vec<_>>>()?;
        let kinds = pipeline.kinds();
        let (texts, budget, is_stopped) = (self.texts, self.budget, self.is_stopped);
        let eval = Eval { texts, is_stopped };
        let order = Order { by, cut, first, kinds: &kinds, eval };
        let needs_server = order.by.iter().any(|(expr, _)| expr.needs_server());
        let spill = self.spill.filter(|_| !order.by.is_empty() && !needs_server);
        let threads = if self.is_alone || pipeline.needs_server() { 1 } else { self.threads };
        // Where the server computes what rows are sorted by, it is asked once of each.
        let wanted = order.end().filter(|end| !needs_server && *end <= WANTED_MAX);
        let keeper = Keeper { order: &order, spill, budget, share: budget.allowance() / threads, wanted };
        let mut parts = self.fold(pipeline, Own::default, |own, batch| keeper.take(own, batch))?;
        parts.iter_mut().try_for_each(|own| keeper.end(own))?;
        self.rows_sorted = parts.iter().map(|own| own.rows).sum();
        if parts.iter().all(|own| own.runs.is_empty() && own.untaken == 0) {
            let batches: Vec<Batch> = parts.iter_mut().flat_map(|own| own.batches.drain(..)).collect();
            let all = match batches.is_empty() {
                true => empty(&kinds),
                false => Batch::concat(&batches, &kinds),
            };
            drop(batches);
            match (self.sorted_in_memory(&order, &all), spill) {
                (Err(Failure::GivenBack(Why::Memory)), Some(_)) => {}
                (sorted, _) => return Ok(vec![Chunk::Held(sorted?)]),
            }
            let own = Own { batches: vec![all], ..Own::default() };
            parts.push(own);
        }
        let Some(spill) = spill else { return Err(UNSUPPORTED) };
        let mut runs = Vec::new();
        for mut own in parts {
            own.write(&order, spill, budget)?;
            runs.append(&mut own.runs);
        }
        self.merged(runs, &order, spill)
    }

    fn sorted_in_memory(&self, order: &Order<'_>, all: &Batch) -> Result<Batch> {
        let keys = order
            .by
            .iter()
            .map(|(expr, descends)| Ok((self.eval().column(expr, all)?, expr.kind(), *descends)));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        // What sorting takes is given back.
        let budget = Budget::part(self.budget, usize::MAX);
        let sorted = sort::order(&keys, all.rows, order.cut, &budget, self.eval())?;
        Ok(all.gather(&sorted))
    }

    fn merged(&mut self, mut runs: Vec<RunOfRows>, order: &Order<'_>, spill: &Spill) -> Result<Vec<Chunk>> {
        let most = (self.budget.room() / 4 / spill.piece_bytes()).clamp(RUNS_MIN, RUNS_MAX);
        // The shortest first, so that few rows are written again.
        while runs.len() > most {
            runs.sort_by_key(|run| std::cmp::Reverse(run.iter().map(|piece| piece.rows).sum::<usize>()));
            let some = runs.split_off(runs.len() - most.min(runs.len() - most + 1));
            let mut run = VecDeque::new();
            merge(some, order, &mut |batch| {
                for piece in in_pieces(&batch, rows_of_bytes(&batch, spill.piece_bytes())) {
                    run.push_back(spill.write(&piece)?);
                }
                Ok(true)
            })?;
            runs.push(run);
        }
        let left = AtomicUsize::new(self.budget.allowance());
        let mut spool = Spool::new(Some(spill), self.budget, &left, order.kinds);
        let mut cutter = Cutter::new(order);
        merge(runs, order, &mut |batch| {
            let (batch, goes_on) = cutter.cut(batch)?;
            spool.add(batch)?;
            Ok(goes_on)
        })?;
        cutter.finish()?;
        spool.finish()
    }
}

/// How threads keep the rows that come: in memory as long as there is some, and of those that cannot be wanted any more, none.
struct Keeper<'a> {
    order: &'a Order<'a>,
    spill: Option<&'a Spill>,
    budget: &'a Arc<Budget>,
    /// Of the budget, for a thread.
    share: usize,
    /// So many rows are wanted at most.
    wanted: Option<usize>,
}

impl Keeper<'_> {
    fn take(&self, own: &mut Own, batch: Batch) -> Result<()> {
        own.rows += batch.rows;
        let Some(wanted) = self.wanted else { return self.keep(own, batch.detached()) };
        let bytes = batch.bytes() + bytes_of_held_texts(&batch.columns, &mut own.fresh_texts);
        own.fresh_bytes += bytes;
        own.fresh.push(batch);
        // They are there twice when they are put together.
        let is_taken =
            own.taken + own.fresh_taken + 2 * bytes <= self.share && self.budget.try_take(2 * bytes);
        own.fresh_taken += if is_taken { 2 * bytes } else { 0 };
        let rows: usize = own.fresh.iter().map(|batch| batch.rows).sum();
        // At least as much as is kept: so each row is copied a few times at most.
        let bytes = FRESH_BYTES.max(own.taken + own.untaken);
        let may_wait = is_taken || own.fresh_bytes < FRESH_BYTES_UNTAKEN;
        if may_wait && rows < (wanted * 2).max(FRESH_ROWS) && own.fresh_bytes < bytes {
            return Ok(());
        }
        let first = own.first(self.order, wanted, self.budget)?;
        self.keep(own, first)
    }

    /// No more rows come.
    fn end(&self, own: &mut Own) -> Result<()> {
        match self.wanted {
            Some(wanted) if !own.fresh.is_empty() => {
                let first = own.first(self.order, wanted, self.budget)?;
                self.keep(own, first)
            }
            _ => Ok(()),
        }
    }

    fn keep(&self, own: &mut Own, batch: Batch) -> Result<()> {
        let bytes = batch.bytes() + bytes_of_new_strings(&batch.columns, &mut own.strings);
        let Some(spill) = self.spill else {
            self.budget.take(bytes)?;
            own.taken += bytes;
            own.batches.push(batch);
            return Ok(());
        };
        own.batches.push(batch);
        if own.taken + bytes <= self.share && self.budget.try_take(bytes) {
            own.taken += bytes;
            return Ok(());
        }
        own.untaken += bytes;
        match own.taken + own.untaken < spill.scatter_bytes() {
            true => Ok(()),
            false => own.write(self.order, spill, self.budget),
        }
    }
}

impl Own {
    /// Takes all its rows: those that may be among the first.
    fn first(&mut self, order: &Order<'_>, wanted: usize, budget: &Arc<Budget>) -> Result<Batch> {
        let mut batches = std::mem::take(&mut self.batches);
        batches.append(&mut self.fresh);
        budget.release(std::mem::take(&mut self.taken));
        (self.untaken, self.fresh_bytes) = (0, 0);
        self.strings.clear();
        self.fresh_texts.clear();
        let all = Batch::concat(&batches, order.kinds);
        drop(batches);
        // Now they are there once.
        let taken = std::mem::take(&mut self.fresh_taken);
        budget.release(taken - taken / 2);
        let first = first_of_all(all, order, wanted, budget);
        budget.release(taken / 2);
        first
    }

    /// Writes all rows as a run.
    fn write(&mut self, order: &Order<'_>, spill: &Spill, budget: &Budget) -> Result<()> {
        if self.batches.is_empty() {
            budget.release(std::mem::take(&mut self.taken));
            return Ok(());
        }
        let all = Batch::concat(&self.batches, order.kinds);
        self.batches.clear();
        self.strings.clear();
        let columns = order.columns(&all)?;
        let (bytes, ends) = order.keys(&columns, all.rows)?;
        let key = |row: u32| {
            let row = row as usize;
            &bytes[if row == 0 { 0 } else { ends[row - 1] }..ends[row]]
        };
        let mut rows: Vec<u32> = (0..all.rows as u32).collect();
        sort::sort_rows(&mut rows, |a, b| key(a).cmp(key(b)), order.eval)?;
        // What comes behind the limit here, does so among all rows, too. Those that are equal to the last one are asked for.
        if let Some(last) = order.end().filter(|end| *end < rows.len()) {
            let last = last.saturating_sub(1);
            let end = last + rows[last..].partition_point(|row| key(*row) <= key(rows[last]));
            rows.truncate(end);
        }
        let mut run = VecDeque::new();
        for rows in rows.chunks(rows_of_bytes(&all, spill.piece_bytes())) {
            order.eval.go_on()?;
            let mut piece = all.gather(rows);
            if order.is_cut() {
                piece.columns.extend(order.texts(&columns).map(|column| Arc::new(column.gather(rows))));
            }
            let mut keys = Strings::new();
            rows.iter().for_each(|row| keys.push(key(*row)));
            let data = Data::Text((0..rows.len() as u32).collect(), Dict::Strings(Arc::new(keys)));
            piece.columns.push(Arc::new(Column { data, nulls: None }));
            run.push_back(spill.write(&piece)?);
        }
        self.runs.push(run);
        budget.release(std::mem::take(&mut self.taken));
        self.untaken = 0;
        Ok(())
    }
}

/// The rows that may be among the first, in memory of their own.
fn first_of_all(all: Batch, order: &Order<'_>, wanted: usize, budget: &Arc<Budget>) -> Result<Batch> {
    let columns = order.columns(&all)?;
    let keys: Vec<_> =
        order.by.iter().zip(&columns).map(|((expr, down), of)| (of.clone(), expr.kind(), *down)).collect();
    // What sorting takes is given back.
    let budget = Budget::part(budget, usize::MAX);
    let (rows, last) = match sort::first(&keys, all.rows, wanted, &budget, order.eval) {
        Err(Failure::GivenBack(Why::Memory)) => return Ok(all.detached()),
        first => first?,
    };
    if let (Some(first), Some(last), Some(column)) = (&order.first, last, columns.first()) {
        first.note(column, last as usize, order.eval.texts)?;
    }
    Ok(all.gather(&rows).with_own_texts())
}

/// Before what follows a value: NULL comes first; numbers that do not fit lie around those that do.
const NULL: u8 = 0;
const BELOW: u8 = 1;
const SMALL: u8 = 2;
const ABOVE: u8 = 3;
const SOME: u8 = 4;

impl Order<'_> {
    fn columns(&self, batch: &Batch) -> Result<Vec<Arc<Column>>> {
        self.by.iter().map(|(expr, _)| self.eval.column(expr, batch)).collect()
    }

    /// The texts of the order.
    fn texts<'b>(&self, columns: &'b [Arc<Column>]) -> impl Iterator<Item = &'b Arc<Column>> + 'b {
        columns.iter().filter(|column| matches!(column.data, Data::Text(..)))
    }

    fn is_cut(&self) -> bool {
        self.cut.0 > 0 || self.cut.1.is_some()
    }

    /// How many rows are wanted, from the first one.
    fn end(&self) -> Option<usize> {
        let (skip, limit) = self.cut;
        Some(usize::try_from(skip.saturating_add(limit?)).unwrap_or(usize::MAX))
    }

    /// Of each row bytes that are ordered as the rows are, and where they end.
    fn keys(&self, columns: &[Arc<Column>], rows: usize) -> Result<(Vec<u8>, Vec<usize>)> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(rows));
        let mut of_text = Vec::new();
        for row in 0..rows {
            if row % KEYS_AT_ONCE == 0 {
                self.eval.go_on()?;
            }
            for ((expr, descends), column) in self.by.iter().zip(columns) {
                let begin = bytes.len();
                match (&column.data, expr.kind()) {
                    _ if column.is_null(row) => bytes.push(NULL),
                    (Data::Text(codes, dict), Kind::Text(collation)) => {
                        let key = self.eval.texts.collations.get(collation as usize).ok_or(UNSUPPORTED)?;
                        of_text.clear();
                        key(dict.get(codes[row]), &mut of_text);
                        bytes.push(SOME);
                        add_text(&of_text, &mut bytes);
                    }
                    (Data::Real(values), _) => {
                        bytes.push(SOME);
                        bytes.extend(ordered_bits(values[row]).to_be_bytes());
                    }
                    (Data::Text(..), _) | (_, Kind::Text(_)) => return Err(UNSUPPORTED),
                    _ => add_number(column.number(row), &mut bytes),
                }
                if *descends {
                    bytes[begin..].iter_mut().for_each(|byte| *byte = !*byte);
                }
            }
            ends.push(bytes.len());
        }
        Ok((bytes, ends))
    }
}

fn add_number(value: i128, to: &mut Vec<u8>) {
    match i64::try_from(value) {
        Ok(value) => {
            to.push(SMALL);
            to.extend((value as u64 ^ 1 << 63).to_be_bytes());
        }
        Err(_) => {
            to.push(if value < 0 { BELOW } else { ABOVE });
            to.extend((value as u128 ^ 1 << 127).to_be_bytes());
        }
    }
}

/// A text that begins another one comes before it.
fn add_text(text: &[u8], to: &mut Vec<u8>) {
    for byte in text {
        to.push(*byte);
        if *byte == 0 {
            to.push(0xff);
        }
    }
    to.extend([0, 1]);
}

/// A run that is merged: where it is.
struct Head {
    pieces: RunOfRows,
    batch: Batch,
    row: usize,
    /// Which of the batches that rows are taken from it is.
    source: usize,
}

impl Head {
    fn key(&self) -> &[u8] {
        match self.batch.columns.last().map(|column| &column.data) {
            Some(Data::Text(codes, dict)) => dict.get(codes[self.row]),
            _ => &[],
        }
    }
}

/// Merges runs; `take` gets the rows in order, and says whether it wants more.
fn merge(runs: Vec<RunOfRows>, order: &Order<'_>, take: &mut dyn FnMut(Batch) -> Result<bool>) -> Result<()> {
    let mut kinds = order.kinds.to_vec();
    if order.is_cut() {
        kinds.extend(order.by.iter().map(|(expr, _)| expr.kind()).filter(|kind| kind.is_text()));
    }
    kinds.push(Kind::Text(0));
    let (mut heads, mut sources) = (Vec::new(), Vec::new());
    for mut pieces in runs {
        if let Some(first) = pieces.pop_front() {
            let batch = first.load()?;
            heads.push(Head { pieces, source: sources.len(), batch: batch.clone(), row: 0 });
            sources.push(batch);
        }
    }
    // The next one is the last.
    heads.sort_by(|a, b| b.key().cmp(a.key()));
    let mut rows: Vec<(usize, u32)> = Vec::with_capacity(MERGED_ROWS);
    while let Some(mut head) = heads.pop() {
        rows.push((head.source, head.row as u32));
        head.row += 1;
        if head.row == head.batch.rows {
            match head.pieces.pop_front() {
                None => head.batch.rows = 0,
                Some(next) => {
                    head.batch = next.load()?;
                    (head.row, head.source) = (0, sources.len());
                    sources.push(head.batch.clone());
                }
            }
        }
        if head.batch.rows > 0 {
            let at = heads.partition_point(|other: &Head| other.key().cmp(head.key()) == Ordering::Greater);
            heads.insert(at, head);
        }
        if rows.len() >= MERGED_ROWS || sources.len() > heads.len() * 2 + RUNS_MIN || heads.is_empty() {
            order.eval.go_on()?;
            if !take(picked(&sources, &rows, &kinds))? {
                return Ok(());
            }
            rows.clear();
            sources = heads.iter().map(|head| head.batch.clone()).collect();
            heads.iter_mut().enumerate().for_each(|(at, head)| head.source = at);
        }
    }
    Ok(())
}

/// Rows of several batches, in this order.
fn picked(sources: &[Batch], rows: &[(usize, u32)], kinds: &[Kind]) -> Batch {
    let mut of_sources = vec![Vec::new(); sources.len()];
    for (source, row) in rows {
        of_sources[*source].push(*row);
    }
    let mut next = Vec::with_capacity(sources.len());
    let mut count = 0u32;
    for of_source in &of_sources {
        next.push(count);
        count += of_source.len() as u32;
    }
    let parts = sources.iter().zip(&of_sources).filter(|(_, rows)| !rows.is_empty());
    let parts: Vec<Batch> = parts.map(|(source, rows)| source.gather(rows)).collect();
    let places: Vec<u32> = rows
        .iter()
        .map(|(source, _)| {
            next[*source] += 1;
            next[*source] - 1
        })
        .collect();
    Batch::concat(&parts, kinds).gather(&places)
}

/// Takes the rows that are wanted of all, in their order. Of rows that are equal, and of which some are wanted and some are not,
/// texts have to be the same.
struct Cutter<'a> {
    order: &'a Order<'a>,
    begin: usize,
    end: usize,
    /// Rows that came.
    rows: usize,
    /// The rows that are equal to the last one: where they begin, their key and texts, and whether these are several.
    alike: usize,
    key: Vec<u8>,
    texts: Vec<Option<Vec<u8>>>,
    has_several: bool,
}

impl<'a> Cutter<'a> {
    fn new(order: &'a Order<'a>) -> Cutter<'a> {
        Cutter {
            order,
            begin: usize::try_from(order.cut.0).unwrap_or(usize::MAX),
            end: order.end().unwrap_or(usize::MAX),
            rows: 0,
            alike: 0,
            key: Vec::new(),
            texts: Vec::new(),
            has_several: false,
        }
    }

    /// Gives those that are wanted, without their keys; says whether more have to come.
    fn cut(&mut self, batch: Batch) -> Result<(Batch, bool)> {
        let own = self.order.kinds.len();
        let first = self.rows;
        if self.order.is_cut() {
            let (texts, keys) = (&batch.columns[own..batch.columns.len() - 1], batch.columns.last());
            let Some(Data::Text(codes, dict)) = keys.map(|column| &column.data) else {
                return Err(UNSUPPORTED);
            };
            for (row, code) in codes.iter().enumerate() {
                let text = |column: &Arc<Column>| match &column.data {
                    Data::Text(codes, dict) if !column.is_null(row) => Some(dict.get(codes[row]).to_vec()),
                    _ => None,
                };
                let (key, of_row) = (dict.get(*code), texts.iter().map(text));
                if self.rows == 0 || key != self.key {
                    self.check()?;
                    (self.alike, self.has_several) = (self.rows, false);
                    self.key = key.to_vec();
                    self.texts = of_row.collect();
                } else if !self.has_several {
                    self.has_several = !of_row.eq(self.texts.iter().cloned());
                }
                self.rows += 1;
            }
        } else {
            self.rows += batch.rows;
        }
        let begin = self.begin.clamp(first, self.rows) - first;
        let end = self.end.clamp(first, self.rows) - first;
        let columns = batch.columns[..own].to_vec();
        let rows = Batch { rows: batch.rows, columns };
        let rows = match end.saturating_sub(begin) == rows.rows {
            true => rows,
            false => rows.gather(&(begin as u32..end.max(begin) as u32).collect::<Vec<_>>()),
        };
        // Those that are equal to the last one have to be seen.
        Ok((rows, self.alike < self.end || self.end == usize::MAX))
    }

    fn check(&self) -> Result<()> {
        let is_between = |cut: usize| self.alike < cut && cut < self.rows;
        match self.has_several && (is_between(self.begin) || is_between(self.end)) {
            true => Err(Failure::GivenBack(Why::Undetermined)),
            false => Ok(()),
        }
    }

    fn finish(&self) -> Result<()> {
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Texts;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn texts() -> Texts {
        let mut texts = Texts::default();
        texts
            .collations
            .push(Arc::new(|text: &[u8], key: &mut Vec<u8>| key.extend(text.to_ascii_lowercase())));
        texts
    }

    fn column(random: &mut ChaCha8Rng, kind: Kind, rows: usize) -> Column {
        let nulls = random.random_bool(0.7).then(|| (0..rows).map(|_| random.random_bool(0.2)).collect());
        let wide = [i128::MIN, i128::from(i64::MIN) - 1, i64::MIN.into(), -1, 0, 1, i64::MAX.into(), 1 << 64];
        let data = match kind {
            Kind::Text(_) => {
                let mut strings = Strings::new();
                let all: [&[u8]; 8] = [b"", b"a", b"A", b"ab", b"a\0", b"a\0b", b"a\xff", b"b"];
                all.iter().for_each(|text| strings.push(text));
                let codes = (0..rows).map(|_| random.random_range(0..all.len() as u32)).collect();
                Data::Text(codes, Dict::Strings(Arc::new(strings)))
            }
            Kind::Real => {
                let all = [f64::MIN, -1.5, -0.0, 0.0, f64::MIN_POSITIVE, 2.0, f64::MAX];
                Data::Real((0..rows).map(|_| all[random.random_range(0..all.len())]).collect())
            }
            Kind::Decimal(_) if random.random_bool(0.5) => {
                Data::Large((0..rows).map(|_| wide[random.random_range(0..wide.len())]).collect())
            }
            _ => Data::Small(
                (0..rows).map(|_| random.random_range(-3..3) << random.random_range(0..60)).collect(),
            ),
        };
        Column { data, nulls }
    }

    /// Rows that wait until the first of them are found are counted; and where nothing is left, few wait.
    #[test]
    fn rows_that_wait_take_memory_of_the_query() {
        let texts = texts();
        let (eval, kinds) = (Eval { texts: &texts, is_stopped: &|| false }, [Kind::Signed]);
        let by = vec![(Expr::Slot(0, Kind::Signed), false)];
        let order = Order { by, cut: (0, Some(10)), first: None, kinds: &kinds, eval };
        let batch = |from: i64| {
            let values = (from..from + 1000).rev().collect();
            Batch { rows: 1000, columns: vec![Arc::new(Column { data: Data::Small(values), nulls: None })] }
        };
        for is_short in [false, true] {
            let budget = Arc::new(Budget::new(16 << 20));
            let keeper =
                Keeper { order: &order, spill: None, budget: &budget, share: 8 << 20, wanted: Some(10) };
            if is_short {
                assert!(budget.try_take((16 << 20) - 5000));
            }
            let (mut own, mut most, before) = (Own::default(), 0, budget.room());
            for number in (0..300).rev() {
                keeper.take(&mut own, batch(number * 1000)).unwrap();
                most = most.max(own.fresh_bytes);
                let counted = before - budget.room();
                match is_short {
                    true => assert!(own.fresh_bytes <= FRESH_BYTES_UNTAKEN),
                    false => assert!(counted >= 2 * own.fresh_bytes, "{counted} of {}", own.fresh_bytes),
                }
            }
            assert!(most > FRESH_BYTES_UNTAKEN / 3, "some wait: {most}");
            keeper.end(&mut own).unwrap();
            let rows: Vec<i128> = own
                .batches
                .iter()
                .flat_map(|batch| (0..batch.rows).map(|row| batch.columns[0].number(row)))
                .collect();
            assert_eq!(rows.len(), 10);
            assert_eq!((rows.iter().min(), rows.iter().max()), (Some(&0), Some(&9)));
            assert_eq!(before - budget.room(), 80, "of the rows that are kept");
        }
    }

    /// Keys of bytes are ordered as values are, whatever these are.
    #[test]
    fn keys_are_ordered_as_the_rows_are() {
        let (texts, mut random) = (texts(), ChaCha8Rng::seed_from_u64(7));
        let eval = Eval { texts: &texts, is_stopped: &|| false };
        let kinds = [Kind::Signed, Kind::Text(0), Kind::Real, Kind::Decimal(2), Kind::DateTime];
        for _ in 0..300 {
            let rows = 12;
            let some: Vec<(Kind, bool)> = (0..3)
                .map(|_| (kinds[random.random_range(0..kinds.len())], random.random_bool(0.5)))
                .collect();
            let columns: Vec<Arc<Column>> =
                some.iter().map(|(kind, _)| Arc::new(column(&mut random, *kind, rows))).collect();
            let by = some.iter().enumerate();
            let by = by.map(|(at, (kind, descends))| (Expr::Slot(at as u32, *kind), *descends)).collect();
            let order = Order { by, cut: (0, None), first: None, kinds: &[], eval };
            let (bytes, ends) = order.keys(&columns, rows).unwrap();
            let key = |row: usize| &bytes[if row == 0 { 0 } else { ends[row - 1] }..ends[row]];
            let of: Vec<_> = columns
                .iter()
                .zip(&some)
                .map(|(column, (kind, descends))| (column.clone(), *kind, *descends))
                .collect();
            let sorter = sort::Sorter::new(&of, &texts, &Budget::new(1 << 20)).unwrap();
            for (a, b) in (0..rows).flat_map(|a| (0..rows).map(move |b| (a, b))) {
                assert_eq!(
                    key(a).cmp(key(b)),
                    sorter.compare(a as u32, b as u32),
                    "{some:?}: {:?} and {:?}",
                    columns.iter().map(|column| column.value(a)).collect::<Vec<_>>(),
                    columns.iter().map(|column| column.value(b)).collect::<Vec<_>>()
                );
            }
        }
    }

    /// Which of several equal texts a limit leaves is not guessed, in the file as little as in memory.
    #[test]
    fn cuts_between_equal_texts_are_found() {
        let (texts, kinds) = (texts(), [Kind::Text(0)]);
        let eval = Eval { texts: &texts, is_stopped: &|| false };
        let cut_of = |cut: Cut| {
            let mut strings = Strings::new();
            ["a", "b", "B", "b", "c", "c"].iter().for_each(|text| strings.push(text.as_bytes()));
            let data = Data::Text((0..6).collect(), Dict::Strings(Arc::new(strings)));
            let column = Arc::new(Column { data, nulls: None });
            let by = vec![(Expr::Slot(0, Kind::Text(0)), false)];
            let order = Order { by, cut, first: None, kinds: &kinds, eval };
            let (bytes, ends) = order.keys(std::slice::from_ref(&column), 6).unwrap();
            let mut keys = Strings::new();
            (0..6usize)
                .for_each(|row| keys.push(&bytes[if row == 0 { 0 } else { ends[row - 1] }..ends[row]]));
            let data = Data::Text((0..6).collect(), Dict::Strings(Arc::new(keys)));
            let keys = Arc::new(Column { data, nulls: None });
            let all = Batch { rows: 6, columns: vec![column.clone(), column, keys] };
            // Wherever the rows come in two parts.
            let found = (0..=6u32).map(|at| {
                let mut cutter = Cutter::new(&order);
                let mut rows = 0;
                for part in [(0..at).collect::<Vec<u32>>(), (at..6).collect()] {
                    let (batch, goes_on) = cutter.cut(all.gather(&part)).ok()?;
                    rows += batch.rows;
                    if !goes_on {
                        break;
                    }
                }
                cutter.finish().ok().map(|()| rows)
            });
            let found: Vec<Option<usize>> = found.collect();
            assert!(found.iter().all(|one| *one == found[0]), "{cut:?}: {found:?}");
            found[0]
        };
        for (cut, rows) in [
            ((0, Some(1)), Some(1)),
            ((0, Some(2)), None),
            ((0, Some(3)), None),
            ((0, Some(4)), Some(4)),
            // These are the same.
            ((0, Some(5)), Some(5)),
            ((2, None), None),
            ((1, Some(3)), Some(3)),
            ((5, None), Some(1)),
            ((9, None), Some(0)),
            ((0, Some(0)), Some(0)),
        ] {
            assert_eq!(cut_of(cut), rows, "{cut:?}");
        }
    }
}
