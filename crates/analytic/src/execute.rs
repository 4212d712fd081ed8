//! Execution. A plan is cut into **pipelines**: rows of a source go through steps, batch by batch, on several threads, into
//! something that gathers them: a hash table, groups, or just rows. What a step looks rows up in has been made before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;

use pando_base::locks::Mutex;
use pando_query::scan::Scan;
use pando_query::{Failure, Why};
use pandodb::layout::Layouts;
use pandodb::{on_threads, Block, Table, Txn, Want};

use crate::block::TableColumn;
use crate::column::{bytes_of_new_strings, Batch, Column, Kind, Value, UNSUPPORTED};
use crate::eval::{wrong_plan, Eval, Result};
use crate::explain::Counts;
use crate::expr::{Expr, Slot, Texts};
use crate::first_rows::FirstRows;
use crate::grace_join::{self, Grace, Whole};
use crate::hash_join::{Built, JoinKind};
use crate::key_filter::KeyFilter;
use crate::keys::{Budget, KeyPart, Keys};
use crate::partition::Parts;
use crate::plan::{Join, Plan};
use crate::repeated::Repeated;
use crate::spill::{Chunk, Spill, Spool};
use crate::steps::{Step, Steps};
use crate::table_rows::{FirstOf, TableRows, Waiting};
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
    /// The rows of the sort that ended last, before it cut them.
    pub rows_sorted: usize,
    pub counts: &'a Counts,
    /// What the joins above the part of the plan that is being made ready say of its columns.
    pub filters: Filters,
    /// What an order of which the first rows are wanted says of a column of that part.
    pub first: Option<First>,
    pub repeated: Repeated,
}

/// The column, and whether each row of that part is one of those that are sorted.
pub(crate) struct First {
    slot: Slot,
    rows: Arc<FirstRows>,
    are_all_given: bool,
}

/// What joins say of columns.
type Filters = Vec<(Slot, Arc<KeyFilter>)>;

/// One side of a join, its columns, and what its keys say of the other side.
type Side = (Sided, Vec<(Slot, Kind)>, Filters);

/// One side of a join, to be looked up in.
enum Sided {
    Built(Built),
    Divided(Parts, Whole),
}

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

    fn pipeline_of(&mut self, plan: &Plan, needed: &[Slot]) -> Result<Pipeline> {
        if (self.is_stopped)() {
            return Err(Failure::GivenBack(Why::Stopped));
        }
        // It goes down to the table only where rows come one by one, each of a row below.
        let first = self.first.take();
        match plan {
            Plan::One => {
                let source = Source::held(vec![Batch { rows: 1, columns: Vec::new() }]);
                Ok(Pipeline { source, steps: Vec::new(), slots: Vec::new() })
            }
            Plan::Scan { table, parts, columns, filter, .. } => {
                Ok(self.scan_of((*table, *parts), columns, filter, needed, first)?)
            }
            Plan::Filter(input, condition) => {
                // What is asked of all rows is asked of those, too, that a join drops.
                let before = self.narrow_filters(|slot| (!condition.is_early()).then_some(slot));
                self.first = first
                    .filter(|_| !condition.may_fail())
                    .map(|first| First { are_all_given: false, ..first });
                let mut pipeline = self.pipeline(input, &with_slots(needed, &[condition]))?;
                self.filters = before;
                let condition = pipeline.bind(condition)?;
                pipeline.steps.push(Step::Filter(condition));
                Ok(pipeline)
            }
            Plan::Project(input, outputs) => {
                let failing = plan.failing();
                let below = |slot| match outputs.iter().find(|(output, _)| *output == slot) {
                    Some((_, Expr::Slot(inner, _))) if failing.is_empty() => Some(*inner),
                    _ => None,
                };
                let before = self.narrow_filters(below);
                self.first = first.and_then(|first| Some(First { slot: below(first.slot)?, ..first }));
                let is_computed =
                    |slot| needed.contains(slot) || (plan.shows_groups() && failing.contains(slot));
                let outputs: Vec<_> = outputs.iter().filter(|(slot, _)| is_computed(slot)).collect();
                let exprs: Vec<&Expr> = outputs.iter().map(|(_, expr)| expr).collect();
                let mut pipeline = self.pipeline(input, &with_slots(&[], &exprs))?;
                self.filters = before;
                let bound = exprs.iter().map(|expr| pipeline.bind(expr)).collect::<Result<Vec<_>>>()?;
                pipeline.steps.push(Step::Project(bound));
                pipeline.slots = outputs.iter().map(|(slot, expr)| (*slot, expr.kind())).collect();
                Ok(pipeline)
            }
            Plan::Join(join) if join.is_marked => self.marked(join, needed),
            Plan::Join(join) => self.join(join, needed, first),
            Plan::Aggregate { input, groups, told, is_one } => {
                let repeated = self.repeated.number_of(plan);
                let known = repeated.and_then(|number| self.repeated.rows(number));
                let can_narrow = repeated.is_none() && !plan.can_fail();
                let before =
                    self.narrow_filters(|slot| match groups.iter().find(|(group, _)| *group == slot) {
                        Some((_, Expr::Slot(inner, _))) if can_narrow => Some(*inner),
                        _ => None,
                    });
                let chunks = match known {
                    Some(chunks) => chunks,
                    None => self.aggregate(input, groups, told, *is_one)?,
                };
                if let Some(number) = repeated {
                    self.repeated.keep(number, chunks.clone());
                }
                self.filters = before;
                let source = Source::Chunks(chunks);
                Ok(Pipeline { source, steps: Vec::new(), slots: plan.slots() })
            }
            Plan::Rollup { input, groups, told, .. } => {
                // Rows that a join above drops count in the groups of groups, in the frames of others, and in sets.
                let before = self.narrow_filters(|_| None);
                let batch = self.rolled_up(input, groups, told)?;
                self.filters = before;
                Ok(Pipeline { source: Source::held(pieces(batch)), steps: Vec::new(), slots: plan.slots() })
            }
            Plan::Window { input, windows } => {
                let can_narrow = !plan.can_fail();
                let before =
                    self.narrow_filters(|slot| (can_narrow && plan.is_partition(slot)).then_some(slot));
                let (batch, slots) = self.with_windows(input, windows, needed)?;
                self.filters = before;
                Ok(Pipeline { source: Source::held(vec![batch]), steps: Vec::new(), slots })
            }
            Plan::Sets(sets) => {
                let before = self.narrow_filters(|_| None);
                let batch = self.sets(sets)?;
                self.filters = before;
                Ok(Pipeline { source: Source::held(pieces(batch)), steps: Vec::new(), slots: plan.slots() })
            }
            Plan::Sort { input, order, skip, limit } => {
                let exprs: Vec<&Expr> = order.iter().map(|(expr, _)| expr).collect();
                // Which rows are the first is not known before all are there.
                let is_cut = *skip > 0 || limit.is_some();
                let before = self.narrow_filters(|slot| (!is_cut).then_some(slot));
                let mut wanted = with_slots(needed, &exprs);
                wanted.extend(if is_cut { input.failing() } else { Vec::new() });
                self.first = first_of(order, *skip, *limit, self.budget);
                let of_order = self.first.as_ref().map(|first| first.rows.clone());
                let pipeline = self.pipeline(input, &with_slots(&wanted, &[]))?;
                self.filters = before;
                let is_near = order.iter().any(|(expr, _)| matches!(expr, Expr::Near(..)));
                let source = Source::Ordered(if is_near {
                    let one_more = limit.map(|limit| skip.saturating_add(limit).saturating_add(1));
                    let chunks = self.sorted(&pipeline, order, (0, one_more), of_order)?;
                    vec![Chunk::Held(self.cut_near(&pipeline, order, &chunks, (*skip, *limit))?)]
                } else {
                    self.sorted(&pipeline, order, (*skip, *limit), of_order)?
                });
                Ok(Pipeline { source, steps: Vec::new(), slots: pipeline.slots })
            }
            Plan::Union(inputs, slots) => {
                let mut chunks = Vec::new();
                for (input, of_input) in inputs {
                    let can_narrow = !input.can_fail();
                    let before = self.narrow_filters(|slot| {
                        let at = slots.iter().position(|(known, _)| can_narrow && *known == slot)?;
                        of_input.get(at).copied()
                    });
                    chunks.extend(self.chunks(input, of_input)?);
                    self.filters = before;
                }
                Ok(Pipeline { source: Source::Chunks(chunks), steps: Vec::new(), slots: slots.clone() })
            }
        }
    }

    fn scan_of(
        &mut self,
        (table, parts): (usize, usize),
        columns: &[TableColumn],
        filter: &[Expr],
        needed: &[Slot],
        first: Option<First>,
    ) -> Result<Pipeline> {
        let mut all = with_slots(needed, &filter.iter().collect::<Vec<_>>());
        all.extend(self.filters.iter().map(|(slot, _)| *slot));
        all.extend(first.iter().map(|first| first.slot));
        let columns: Vec<TableColumn> =
            columns.iter().filter(|column| all.contains(&column.slot)).cloned().collect();
        let slots: Vec<Slot> = columns.iter().map(|column| column.slot).collect();
        let filter =
            filter.iter().map(|part| part.bound(&slots).ok_or(UNSUPPORTED)).collect::<Result<_>>()?;
        let given: Vec<usize> = (0..columns.len()).filter(|at| needed.contains(&slots[*at])).collect();
        let given_slots = given.iter().map(|at| (columns[*at].slot, columns[*at].kind)).collect();
        let joins = self.filters.iter().filter_map(|(slot, filter)| {
            Some((slots.iter().position(|known| known == slot)?, filter.clone()))
        });
        let joins = joins.collect();
        let first = first.and_then(|First { slot, rows, are_all_given }| {
            Some(FirstOf { at: slots.iter().position(|known| *known == slot)?, rows, are_all_given })
        });
        let rows = TableRows::new(columns, filter, joins, first, given);
        let source = Source::Table { table, parts, rows };
        Ok(Pipeline { source, steps: Vec::new(), slots: given_slots })
    }

    fn keys_of(&self, keys: &[(Expr, Expr)]) -> Result<Keys> {
        let part = |(a, b): &(Expr, Expr)| {
            let of = |expr: &Expr| KeyPart::of(expr.kind(), &self.texts.collations);
            match (of(a), of(b)) {
                (Some(KeyPart::Text(a)), Some(KeyPart::Text(_))) => Some(KeyPart::Text(a)),
                (Some(KeyPart::Real), Some(KeyPart::Real)) => Some(KeyPart::Real),
                (Some(KeyPart::Word), Some(KeyPart::Word)) => Some(KeyPart::Word),
                (Some(KeyPart::Natural), Some(KeyPart::Natural)) => Some(KeyPart::Natural),
                (
                    Some(KeyPart::Word | KeyPart::Natural | KeyPart::Wide),
                    Some(KeyPart::Word | KeyPart::Natural | KeyPart::Wide),
                ) => Some(KeyPart::Wide),
                _ => None,
            }
        };
        Ok(Keys::of_join(keys.iter().map(part).collect::<Option<Vec<_>>>().ok_or(UNSUPPORTED)?))
    }

    /// Reads one side of a join into memory. The condition is over the columns of the other side and of this.
    fn build(
        &mut self,
        plan: &Plan,
        needed: &[Slot],
        keys: &Keys,
        exprs: &[Expr],
        marks: bool,
        others: &[Expr],
    ) -> Result<Side> {
        let pipeline = self.pipeline(plan, needed)?;
        let exprs = pipeline.bind_all(exprs)?;
        let (batch, columns, taken) = match self.side(&pipeline, keys, &exprs)? {
            grace_join::Side::Divided(parts, whole) => {
                return Ok((Sided::Divided(parts, whole), pipeline.slots, Vec::new()));
            }
            grace_join::Side::Held(batch, columns, taken) => (batch, columns, taken),
        };
        let filters = self.filters_of(others, &columns)?;
        let budget = Budget::part(self.budget, usize::MAX);
        match (Built::new(batch.clone(), keys.clone(), &columns, marks, (&budget, self.eval())), self.spill) {
            (Err(Failure::GivenBack(Why::Memory)), Some(spill)) if !exprs.is_empty() => {
                drop(budget);
                self.budget.release(taken);
                let (parts, whole) = self.divided(&batch, &columns, &pipeline.kinds(), keys, spill)?;
                Ok((Sided::Divided(parts, whole), pipeline.slots, filters))
            }
            (built, _) => {
                budget.keep();
                Ok((Sided::Built(built?), pipeline.slots, filters))
            }
        }
    }

    /// What keys that are known say of the columns of the other side.
    fn filters_of(&self, others: &[Expr], keys: &[Arc<Column>]) -> Result<Filters> {
        let mut filters = Vec::new();
        for (other, column) in others.iter().zip(keys) {
            let Expr::Slot(slot, kind) = other else { continue };
            if kind.is_text() || *kind == Kind::Real {
                continue;
            }
            if let Some(filter) = KeyFilter::of(column, self.budget)? {
                filters.push((*slot, Arc::new(filter)));
            }
        }
        Ok(filters)
    }

    /// Leaves those filters that hold below an operator, by the names that their columns have there. Gives what to put
    /// back afterwards.
    fn narrow_filters(&mut self, below: impl Fn(Slot) -> Option<Slot>) -> Filters {
        let narrowed = self.filters.iter().filter_map(|(slot, filter)| Some((below(*slot)?, filter.clone())));
        let narrowed = narrowed.collect();
        std::mem::replace(&mut self.filters, narrowed)
    }

    fn join(&mut self, join: &Join, needed: &[Slot], first: Option<First>) -> Result<Pipeline> {
        let residual: Vec<&Expr> = join.residual.iter().collect();
        let of_probe: Vec<Expr> = join.keys.iter().map(|(probe, _)| probe.clone()).collect();
        let of_build: Vec<Expr> = join.keys.iter().map(|(_, build)| build.clone()).collect();
        let wanted = with_slots(needed, &residual);
        let keys = self.keys_of(&join.keys)?;
        let build_slots = of_plan(&with_slots(&wanted, &of_build.iter().collect::<Vec<_>>()), &join.build);
        let probe_slots = of_plan(&with_slots(&wanted, &of_probe.iter().collect::<Vec<_>>()), &join.probe);
        let mut early = None;
        let mut of_early = Vec::new();
        if join.is_probe_first {
            let pipeline = self.pipeline(&join.probe, &probe_slots)?;
            let (pipeline, filters) = self.held(pipeline, &of_probe, &of_build)?;
            (early, of_early) = (Some(pipeline), filters);
        }
        // What is said of all rows holds on both sides where both have to be there; what has no partner on the one side is
        // of no use on the other. Rows of which only the number counts are all needed.
        let is_through = matches!(join.kind, JoinKind::Inner | JoinKind::Left);
        let before = self.narrow_filters(|slot| is_through.then_some(slot));
        self.filters.extend(of_early);
        let result = self.build(&join.build, &build_slots, &keys, &of_build, false, &of_probe);
        self.filters = before;
        let (sided, build_slots, of_built) = result?;
        let mut pipeline = match early {
            Some(pipeline) => pipeline,
            None => {
                let count = self.filters.len();
                if matches!(join.kind, JoinKind::Inner | JoinKind::Semi) {
                    self.filters.extend(of_built);
                }
                // What is told of all rows (that a query as a value has one) is told of those that an order drops, too.
                let tells_of_all =
                    !matches!(join.kind, JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti)
                        || of_probe.iter().chain(&join.residual).any(Expr::may_fail);
                self.first =
                    first.filter(|_| !tells_of_all).map(|first| First { are_all_given: false, ..first });
                let result = self.pipeline(&join.probe, &probe_slots);
                self.filters.truncate(count);
                result?
            }
        };
        let probe_keys = pipeline.bind_all(&of_probe)?;
        let both: Vec<Slot> = pipeline.slots.iter().chain(&build_slots).map(|(slot, _)| *slot).collect();
        let residual = match &join.residual {
            Some(residual) => Some(residual.bound(&both).ok_or(UNSUPPORTED)?),
            None => None,
        };
        let kept = |slots: &[(Slot, Kind)]| -> Vec<usize> {
            (0..slots.len()).filter(|at| needed.contains(&slots[*at].0)).collect()
        };
        let (probe, mut build) = (kept(&pipeline.slots), kept(&build_slots));
        if matches!(join.kind, JoinKind::Semi | JoinKind::Anti | JoinKind::AntiNull | JoinKind::Mark(_)) {
            build.clear();
        }
        let slots = probe.iter().map(|at| pipeline.slots[*at]).chain(build.iter().map(|at| build_slots[*at]));
        let mut slots: Vec<(Slot, Kind)> = slots.collect();
        if let JoinKind::Mark(slot) = join.kind {
            slots.push((slot, Kind::Signed));
        }
        let kind = join.kind;
        match sided {
            Sided::Built(built) => {
                let built = Arc::new(built);
                pipeline.steps.push(Step::Probe { built, kind, keys: probe_keys, residual, probe, build });
                pipeline.slots = slots;
                Ok(pipeline)
            }
            Sided::Divided(parts, whole) => {
                let grace = Grace {
                    build: parts,
                    probe: self.scattered(&pipeline, &keys, &probe_keys)?,
                    whole,
                    keys,
                    build_kinds: build_slots.iter().map(|(_, kind)| *kind).collect(),
                    build_keys: bound_to(&build_slots, &of_build)?,
                    probe_kinds: pipeline.kinds(),
                    probe_keys,
                    kind,
                    is_marked: false,
                    residual,
                    kept: (probe, build),
                };
                Ok(Pipeline { source: Source::Grace(Box::new(grace)), steps: Vec::new(), slots })
            }
        }
    }

    /// The rows of a pipeline, read, and what their keys say of the other side of a join.
    fn held(&mut self, pipeline: Pipeline, keys: &[Expr], others: &[Expr]) -> Result<(Pipeline, Filters)> {
        let keys = pipeline.bind_all(keys)?;
        let chunks = self.collect(&pipeline, self.spill)?;
        let mut filters = Vec::new();
        // Of rows in the file nothing is said: they would have to be read for it.
        if !chunks.iter().any(Chunk::is_spilled) {
            let mut columns = Vec::new();
            for key in &keys {
                let parts = chunks.iter().map(|chunk| self.eval().column(key, &chunk.load()?));
                let parts = parts.collect::<Result<Vec<_>>>()?;
                let parts: Vec<&Column> = parts.iter().map(|part| &**part).collect();
                columns.push(Arc::new(match parts.is_empty() {
                    true => Column::constant(&Value::Null, key.kind(), 0),
                    false => Column::concat(&parts, key.kind()),
                }));
            }
            filters = self.filters_of(others, &columns)?;
        }
        let pipeline = Pipeline { source: Source::Chunks(chunks), steps: Vec::new(), slots: pipeline.slots };
        Ok((pipeline, filters))
    }

    /// A semi-join whose own rows are held in memory, and marked by those of the other side.
    fn marked(&mut self, join: &Join, needed: &[Slot]) -> Result<Pipeline> {
        let residual: Vec<&Expr> = join.residual.iter().collect();
        let of_own: Vec<Expr> = join.keys.iter().map(|(own, _)| own.clone()).collect();
        let of_other: Vec<Expr> = join.keys.iter().map(|(_, other)| other.clone()).collect();
        let keys = self.keys_of(&join.keys)?;
        let wanted = with_slots(needed, &residual);
        let own_slots = of_plan(&with_slots(&wanted, &of_own.iter().collect::<Vec<_>>()), &join.probe);
        let (sided, own_slots, filters) =
            self.build(&join.probe, &own_slots, &keys, &of_own, true, &of_other)?;
        let other_slots = of_plan(
            &with_slots(&with_slots(&[], &residual), &of_other.iter().collect::<Vec<_>>()),
            &join.build,
        );
        let before = std::mem::replace(&mut self.filters, filters);
        let result = self.pipeline(&join.build, &other_slots);
        self.filters = before;
        let pipeline = result?;
        let other_keys = pipeline.bind_all(&of_other)?;
        let both: Vec<Slot> = pipeline.slots.iter().chain(&own_slots).map(|(slot, _)| *slot).collect();
        let residual = match &join.residual {
            Some(residual) => Some(residual.bound(&both).ok_or(UNSUPPORTED)?),
            None => None,
        };
        let built = match sided {
            Sided::Built(built) => built,
            Sided::Divided(parts, whole) => {
                let grace = Grace {
                    build: parts,
                    probe: self.scattered(&pipeline, &keys, &other_keys)?,
                    whole,
                    keys,
                    build_kinds: own_slots.iter().map(|(_, kind)| *kind).collect(),
                    build_keys: bound_to(&own_slots, &of_own)?,
                    probe_kinds: pipeline.kinds(),
                    probe_keys: other_keys,
                    kind: join.kind,
                    is_marked: true,
                    residual,
                    kept: (Vec::new(), Vec::new()),
                };
                let source = Source::Chunks(self.marked_in_parts(&grace)?);
                return Ok(Pipeline { source, steps: Vec::new(), slots: own_slots });
            }
        };
        let keys = other_keys;
        let (texts, budget, is_stopped) = (self.texts, self.budget, self.is_stopped);
        let was_alone = self.is_alone;
        self.is_alone |= keys.iter().chain(&residual).any(Expr::needs_server);
        let result = self.fold(
            &pipeline,
            || (),
            |(), batch| {
                let eval = Eval { texts, is_stopped };
                let columns = keys.iter().map(|key| eval.column(key, &batch)).collect::<Result<Vec<_>>>()?;
                let found = built.find(&columns, batch.rows, budget)?;
                built.mark(&found, &batch, residual.as_ref(), eval)
            },
        );
        self.is_alone = was_alone;
        result?;
        let rows = built.marked(join.kind == JoinKind::Semi);
        let batch = built.batch.gather(&rows);
        Ok(Pipeline { source: Source::held(pieces(batch)), steps: Vec::new(), slots: own_slots })
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
                // One partition after the other, as the server does; all of one snapshot. One thread goes on with what it has.
                let mut all = Vec::new();
                let carried = Mutex::new(None);
                let begin = || carried.lock().take().unwrap_or_else(&begin);
                let kinds = rows.kinds();
                for table in *table..table + parts {
                    let (Some(of_table), Some(layouts)) = (self.tables.get(table), self.layouts.get(table))
                    else {
                        return Err(UNSUPPORTED);
                    };
                    let wants: Vec<Want> = rows.columns.iter().map(want).collect();
                    let first = rows.first.as_ref().map(|first| (first.at, &*first.rows));
                    let bounded = Bounded::of(&rows.filter, &rows.joins, first, &rows.columns, layouts);
                    let judge = |zones: &pandodb::Zones<'_>| bounded.verdict(zones);
                    let view = self.txn.view(of_table, 0)?;
                    let scan = Scan::new(layouts, view, wants, &judge, is_stopped);
                    let threads = scan.threads(most);
                    let begin = || (begin(), Waiting::default());
                    let result = scan.fold(threads, begin, |(state, waiting), block: &Block| {
                        let Some(batch) = rows.of_block(block, steps.eval)? else {
                            return Ok(());
                        };
                        let Some(batch) = waiting.add(batch, &kinds) else { return Ok(()) };
                        steps.push(0, batch, &mut |batch| step(state, batch))
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
    }
}

/// What an order says of the rows that it has not seen yet.
fn first_of(order: &[(Expr, bool)], skip: u64, limit: Option<u64>, budget: &Arc<Budget>) -> Option<First> {
    let wanted = usize::try_from(skip.saturating_add(limit?)).ok().filter(|wanted| *wanted > 0)?;
    // What the server computes of rows it may warn of.
    if order.iter().any(|(expr, _)| expr.needs_server()) {
        return None;
    }
    let (Expr::Slot(slot, kind), descends) = order.first()? else { return None };
    let rows = Arc::new(FirstRows::new(*kind, *descends, wanted, budget.clone()));
    Some(First { slot: *slot, rows, are_all_given: true })
}

pub(crate) fn want(column: &TableColumn) -> Want {
    pando_query::Column { table: 0, place: column.place.clone(), form: column.form.clone() }.want()
}

fn bound_to(slots: &[(Slot, Kind)], exprs: &[Expr]) -> Result<Vec<Expr>> {
    let slots: Vec<Slot> = slots.iter().map(|(slot, _)| *slot).collect();
    exprs.iter().map(|expr| expr.bound(&slots).ok_or(UNSUPPORTED)).collect()
}

fn of_plan(slots: &[Slot], plan: &Plan) -> Vec<Slot> {
    let given = plan.slots();
    slots.iter().copied().filter(|slot| given.iter().any(|(known, _)| known == slot)).collect()
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
