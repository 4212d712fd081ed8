//! Execution. A plan is cut into **pipelines**: rows of a source go through steps, batch by batch, on several threads, into
//! something that gathers them: a hash table, groups, or just rows. What a step looks rows up in has been made before.
//! `execute/operators.rs` makes a pipeline of each operator of a plan, `execute/joins.rs` of joins.

mod any_rows;
mod first_different;
pub(crate) mod first_texts;
mod joins;
mod operators;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;

use pando_base::locks::Mutex;
use pando_query::scan::{Rest, Scan};
use pando_query::{Failure, Why};
use pandodb::layout::Layouts;
use pandodb::{on_threads, Block, Table, Txn, Want};

use crate::block::TableColumn;
use crate::column::{bytes_of_new_strings, Batch, Column, Kind, UNSUPPORTED};
use crate::eval::{wrong_plan, Eval, Result};
use crate::explain::Counts;
use crate::expr::{Expr, Slot, Texts};
use crate::first_rows::FirstRows;
use crate::grace_join::Grace;
use crate::key_filter::KeyFilter;
use crate::keys::Budget;
use crate::plan::Plan;
use crate::repeated::Repeated;
use crate::spill::{Chunk, Spill, Spool};
use crate::steps::{Step, Steps};
use crate::table_rows::{TableRows, Waiting};
use crate::zones::Bounded;

/// What a query runs with.
pub(crate) struct Run<'a> {
    pub txn: &'a mut Txn,
    pub tables: &'a [&'a Table],
    pub layouts: Vec<&'a Layouts>,
    pub texts: &'a Texts,
    pub budget: &'a Arc<Budget>,
    /// Where rows go that memory has no room for.
    pub spill: Option<&'a Spill>,
    pub threads: usize,
    /// What is done with the rows of a pipeline needs the session's thread.
    pub is_alone: bool,
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
    pub rows_met: u64,
    /// So many rows of tables are looked at, and no more.
    pub rows_left: Option<Arc<AtomicUsize>>,
    /// Rows of tables go on at once, however few they are.
    pub is_hurried: bool,
    /// The rows of the sort that ended last, before it cut them.
    pub rows_sorted: usize,
    pub counts: &'a Counts,
    /// What the joins above the part of the plan that is being made ready say of its columns.
    pub filters: Filters,
    /// What an order of which the first rows are wanted says of a column of that part.
    pub first: Option<First>,
    pub repeated: Repeated,
    /// See [`crate::Block::first_stands`].
    pub first_stands: bool,
}

/// The column, and whether each row of that part is one of those that are sorted.
pub(crate) struct First {
    slot: Slot,
    rows: Arc<FirstRows>,
    are_all_given: bool,
}

/// What joins say of columns.
type Filters = Vec<(Slot, Arc<KeyFilter>)>;

/// Where the rows of a pipeline come from.
enum Source {
    Table {
        table: usize,
        parts: usize,
        rows: TableRows,
    },
    Chunks(Vec<Chunk>),
    /// In an order, which is that of the rows that come out of it.
    Ordered(Vec<Chunk>),
    Grace(Box<Grace>),
}

impl Source {
    fn held(batches: Vec<Batch>) -> Source {
        Source::Chunks(batches.into_iter().map(Chunk::Held).collect())
    }

    fn chunks(&self) -> Option<&[Chunk]> {
        match self {
            Source::Chunks(chunks) | Source::Ordered(chunks) => Some(chunks),
            Source::Table { .. } | Source::Grace(_) => None,
        }
    }
}

pub(crate) struct Pipeline {
    source: Source,
    steps: Vec<Step>,
    slots: Vec<(Slot, Kind)>,
}

impl Pipeline {
    pub(crate) fn bind(&self, expr: &Expr) -> Result<Expr> {
        let slots: Vec<Slot> = self.slots.iter().map(|(slot, _)| *slot).collect();
        expr.bound(&slots).ok_or(UNSUPPORTED)
    }

    pub(crate) fn bind_all(&self, exprs: &[Expr]) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.bind(expr)).collect()
    }

    pub(crate) fn needs_server(&self) -> bool {
        let of_source = match &self.source {
            Source::Table { rows, .. } => rows.filter.iter().any(Expr::needs_server),
            Source::Chunks(_) | Source::Ordered(_) => false,
            Source::Grace(grace) => grace.needs_server(),
        };
        of_source || self.steps.iter().any(Step::needs_server)
    }

    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.slots.iter().map(|(_, kind)| *kind).collect()
    }
}

/// Whether it has read its input, or one of both, when its pipeline is there.
fn holds_rows(plan: &Plan) -> bool {
    matches!(
        plan,
        Plan::Join(_)
            | Plan::Aggregate { .. }
            | Plan::Rollup { .. }
            | Plan::Window { .. }
            | Plan::Sort { .. }
            | Plan::Sets(_)
            | Plan::Union(..)
    )
}

pub(crate) fn with_slots(needed: &[Slot], exprs: &[&Expr]) -> Vec<Slot> {
    let mut all = needed.to_vec();
    exprs.iter().for_each(|expr| expr.slots(&mut all));
    all.sort_unstable();
    all.dedup();
    all
}

impl Run<'_> {
    /// All rows of a plan, of the columns that are needed, in the order that it says.
    pub(crate) fn rows(&mut self, plan: &Plan, needed: &[Slot]) -> Result<Batch> {
        let pipeline = self.pipeline(plan, needed)?;
        let chunks = self.chunks_of(&pipeline, needed, None)?;
        let kind = |slot: &Slot| pipeline.slots.iter().find(|(known, _)| known == slot);
        let kinds: Vec<Kind> = needed.iter().filter_map(kind).map(|(_, kind)| *kind).collect();
        self.loaded(&chunks, &kinds)
    }

    /// Rows, in memory.
    pub(crate) fn loaded(&self, chunks: &[Chunk], kinds: &[Kind]) -> Result<Batch> {
        let mut batches = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let batch = chunk.load()?;
            if chunk.is_spilled() {
                self.budget.take(batch.bytes() + bytes_of_new_strings(&batch.columns, &mut Vec::new()))?;
            }
            batches.push(batch);
        }
        Ok(match batches.is_empty() {
            true => empty(kinds),
            false => Batch::concat(&batches, kinds),
        })
    }

    /// Likewise, wherever they are.
    pub(crate) fn chunks(&mut self, plan: &Plan, needed: &[Slot]) -> Result<Vec<Chunk>> {
        let pipeline = self.pipeline(plan, needed)?;
        self.chunks_of(&pipeline, needed, self.spill)
    }

    fn chunks_of(
        &mut self,
        pipeline: &Pipeline,
        needed: &[Slot],
        spill: Option<&Spill>,
    ) -> Result<Vec<Chunk>> {
        let chunks = self.collect(pipeline, spill)?;
        let at = |slot: &Slot| {
            let found = pipeline.slots.iter().position(|(known, _)| known == slot);
            found.ok_or_else(|| wrong_plan("a column is missing"))
        };
        let places = needed.iter().map(at).collect::<Result<Vec<_>>>()?;
        Ok(chunks.iter().map(|chunk| chunk.of_columns(&places)).collect())
    }

    pub(crate) fn eval(&self) -> Eval<'_> {
        Eval { texts: self.texts, is_stopped: self.is_stopped }
    }

    /// The pipeline of a plan, with what counts its rows.
    pub(crate) fn pipeline(&mut self, plan: &Plan, needed: &[Slot]) -> Result<Pipeline> {
        let begin = Instant::now();
        let mut pipeline = self.pipeline_of(plan, needed)?;
        let Some(number) = self.counts.number_of(plan) else { return Ok(pipeline) };
        if holds_rows(plan) {
            self.counts.held(number, begin.elapsed());
        }
        match (&pipeline.source, pipeline.steps.is_empty()) {
            (Source::Chunks(chunks) | Source::Ordered(chunks), true) => {
                self.counts.add_rows(number, chunks.iter().map(Chunk::rows).sum());
            }
            _ => pipeline.steps.push(Step::Count(number)),
        }
        Ok(pipeline)
    }

    /// The rows that come out of a pipeline.
    pub(crate) fn collect(&mut self, pipeline: &Pipeline, spill: Option<&Spill>) -> Result<Vec<Chunk>> {
        if let (Some(chunks), true) = (pipeline.source.chunks(), pipeline.steps.is_empty()) {
            return Ok(chunks.to_vec());
        }
        let (budget, kinds) = (self.budget, pipeline.kinds());
        let left = AtomicUsize::new(budget.allowance());
        let begin = || Spool::new(spill, budget, &left, &kinds);
        let parts = self.fold(pipeline, begin, |spool, batch| spool.add(batch))?;
        let chunks = parts.into_iter().map(Spool::finish).collect::<Result<Vec<_>>>()?;
        Ok(chunks.into_iter().flatten().collect())
    }

    /// Likewise, all of them in memory.
    pub(crate) fn collect_held(&mut self, pipeline: &Pipeline) -> Result<Vec<Batch>> {
        let chunks = self.collect(pipeline, None)?;
        match chunks.iter().any(Chunk::is_spilled) {
            true => Ok(vec![self.loaded(&chunks, &pipeline.kinds())?]),
            false => chunks.iter().map(Chunk::load).collect(),
        }
    }

    /// Gives all batches that come out of a pipeline to `step`, which has something of its own in each thread.
    pub(crate) fn fold<S: Send>(
        &mut self,
        pipeline: &Pipeline,
        begin: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, Batch) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        let (texts, budget, is_stopped) = (self.texts, self.budget, self.is_stopped);
        // The server's own expressions are computed by its session's thread, and by no other.
        let most = if self.is_alone || pipeline.needs_server() { 1 } else { self.threads };
        let steps =
            Steps { steps: &pipeline.steps, counts: self.counts, eval: Eval { texts, is_stopped }, budget };
        match &pipeline.source {
            Source::Chunks(chunks) | Source::Ordered(chunks) => {
                let most = if matches!(pipeline.source, Source::Ordered(_)) { 1 } else { most };
                let next = AtomicUsize::new(0);
                let work = || {
                    let mut state = begin();
                    while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if is_stopped() {
                            return Err(Failure::GivenBack(Why::Stopped));
                        }
                        steps.push(0, chunk.load()?, &mut |batch| step(&mut state, batch))?;
                    }
                    Ok(state)
                };
                on_threads(most.min(chunks.len()).max(1), work).into_iter().collect()
            }
            Source::Grace(grace) => {
                let push = |state: &mut S, batch| steps.push(0, batch, &mut |batch| step(state, batch));
                self.fold_grace(grace, most, begin, push)
            }
            Source::Table { table, parts, rows } => {
                self.fold_table(*table..table + parts, rows, &steps, most, begin, step)
            }
        }
    }

    /// The rows of a table. One partition after the other, as the server does; all of one snapshot. One thread goes on with what it
    /// has.
    fn fold_table<S: Send>(
        &mut self,
        partitions: Range<usize>,
        rows: &TableRows,
        steps: &Steps<'_>,
        most: usize,
        begin: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, Batch) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        let mut all = Vec::new();
        let carried = Mutex::new(None);
        let begin = || carried.lock().take().unwrap_or_else(&begin);
        let kinds = rows.kinds();
        for table in partitions {
            let (Some(of_table), Some(layouts)) = (self.tables.get(table), self.layouts.get(table)) else {
                return Err(UNSUPPORTED);
            };
            let wants: Vec<Want> = rows.columns.iter().map(want).collect();
            let first = rows.first.as_ref().map(|first| (first.at, &*first.rows));
            let bounded = Bounded::of(&rows.filter, &rows.joins, first, &rows.columns, layouts);
            let judge = |zones: &pandodb::Zones<'_>| bounded.verdict(zones);
            let view = self.txn.view(of_table, 0)?;
            let scan = Scan::new(layouts, view, (wants, rows.late()), &judge, self.is_stopped);
            let threads = scan.threads(most);
            let begin = || (begin(), Waiting::default());
            let (rows_left, is_hurried) = (self.rows_left.as_deref(), self.is_hurried);
            let result = scan.fold(threads, begin, |(state, waiting), block: Block, rest: &mut Rest<'_>| {
                rows_left.map_or(Ok(()), |left| look_at(left, block.rows))?;
                rows.of_block(block, rest, steps.eval, &mut |batch| {
                    let next = if is_hurried { Some(batch) } else { waiting.add(batch, &kinds) };
                    let Some(batch) = next else { return Ok(()) };
                    steps.push(0, batch, &mut |batch| step(state, batch))
                })
            });
            self.rows_met += scan.rows_met();
            for (mut state, mut waiting) in result? {
                if let Some(batch) = waiting.rest(&kinds) {
                    steps.push(0, batch, &mut |batch| step(&mut state, batch))?;
                }
                match most {
                    1 => *carried.lock() = Some(state),
                    _ => all.push(state),
                }
            }
        }
        all.extend(carried.into_inner());
        Ok(all)
    }
}

/// Takes some rows of those that may be looked at.
fn look_at(left: &AtomicUsize, rows: usize) -> Result<()> {
    let less = |left: usize| left.checked_sub(rows);
    match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::GivenBack(Why::Stopped)),
    }
}

pub(crate) fn want(column: &TableColumn) -> Want {
    pando_query::Column { table: 0, place: column.place.clone(), form: column.form.clone() }.want()
}

pub(crate) fn empty(kinds: &[Kind]) -> Batch {
    let column = |kind: &Kind| Arc::new(Column::constant(&crate::column::Value::Null, *kind, 0));
    Batch { rows: 0, columns: kinds.iter().map(column).collect() }
}

/// Rows that threads take at once.
const PIECE_ROWS: usize = 32768;

pub(crate) fn pieces(batch: Batch) -> Vec<Batch> {
    if batch.rows <= PIECE_ROWS {
        return vec![batch];
    }
    let rows = batch.rows as u32;
    let starts = (0..rows).step_by(PIECE_ROWS);
    starts
        .map(|start| batch.gather(&(start..rows.min(start + PIECE_ROWS as u32)).collect::<Vec<_>>()))
        .collect()
}
