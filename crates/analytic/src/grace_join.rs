//! Joins of which neither side fits into memory (Kitsuregawa et al., "Application of hash to data base machine and its
//! architecture", 1983): both sides are divided by the hash of their keys, and one part after the other is joined. Rows with equal
//! keys are in the same part, so that each row meets all its partners there.
//!
//! What a part does not know is whether the whole side has rows, or a NULL: that is told of all parts (`Whole`), for NOT IN and
//! marks. Joins without keys are not divided.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_query::{Failure, Why};
use pandodb::on_threads;

use crate::column::{bytes_of_new_strings, Batch, Column, Kind};
use crate::eval::{Eval, Result};
use crate::execute::{empty, Pipeline, Run};
use crate::expr::Expr;
use crate::hash_join::{Built, JoinKind};
use crate::keys::{Budget, Keys};
use crate::partition::{add_parts, Parts, Scatter, LEVELS};
use crate::spill::{take_of, Chunk, Piece, Spill, Spool};
use crate::steps::{Step, Steps};

/// What is known of all of the side that is looked up in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Whole {
    pub has_rows: bool,
    pub has_null: bool,
}

/// One side of a join.
pub(crate) enum Side {
    /// In memory: rows, their keys, and what they have taken of it.
    Held(Batch, Vec<Arc<Column>>, usize),
    Divided(Parts, Whole),
}

/// A join in parts.
pub(crate) struct Grace {
    pub build: Parts,
    pub probe: Parts,
    pub whole: Whole,
    pub keys: Keys,
    pub build_kinds: Vec<Kind>,
    pub probe_kinds: Vec<Kind>,
    /// Of the side that is looked up in.
    pub build_keys: Vec<Expr>,
    /// Of the other side, as the step has them.
    pub probe_keys: Vec<Expr>,
    pub kind: JoinKind,
    /// The rows that are looked up in are those that are given.
    pub is_marked: bool,
    pub residual: Option<Expr>,
    /// The columns of both that go on.
    pub kept: (Vec<usize>, Vec<usize>),
}

/// How a side is divided.
struct Dividing<'a> {
    spill: &'a Spill,
    keys: &'a Keys,
    kinds: &'a [Kind],
    exprs: &'a [Expr],
    eval: Eval<'a>,
    budget: &'a Budget,
    has_rows: AtomicBool,
    has_null: AtomicBool,
}

/// What a thread has of a side that is read.
#[derive(Default)]
struct Reading<'a> {
    held: Vec<Batch>,
    strings: Vec<Option<Arc<pando_column::vector::Strings>>>,
    taken: usize,
    scatter: Option<Scatter<'a>>,
}

impl<'a> Reading<'a> {
    /// Divides what was held so far, and more.
    fn divide(&mut self, batch: Option<Batch>, of: &Dividing<'a>) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        self.strings.clear();
        let scatter = self.scatter.get_or_insert_with(|| Scatter::new(of.spill, &of.keys.parts, of.kinds, 0));
        for batch in held.into_iter().chain(batch) {
            of.eval.go_on()?;
            let columns = of.exprs.iter().map(|expr| of.eval.column(expr, &batch));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            of.has_rows.fetch_or(batch.rows > 0, Ordering::Relaxed);
            let is_null = Keys::nulls(&columns).is_some_and(|nulls| nulls.contains(&true));
            of.has_null.fetch_or(is_null, Ordering::Relaxed);
            scatter.add(batch, &columns)?;
        }
        of.budget.release(std::mem::take(&mut self.taken));
        Ok(())
    }
}

/// What a row of the side in memory takes beside its columns, about: its words twice, places in tables, lists.
fn bytes_of_row(keys: &Keys) -> usize {
    keys.words * 16 + 56
}

impl Run<'_> {
    /// Reads one side of a join into memory, or divides it, if there is a file and not enough memory.
    pub(crate) fn side(&mut self, pipeline: &Pipeline, keys: &Keys, exprs: &[Expr]) -> Result<Side> {
        let kinds = pipeline.kinds();
        let can_spill = !exprs.is_empty() && !exprs.iter().any(Expr::needs_server);
        let Some(spill) = self.spill.filter(|_| can_spill) else {
            let batches = self.collect_held(pipeline)?;
            return self.held_side(batches, 0, &kinds, exprs);
        };
        let budget = self.budget;
        let left = AtomicUsize::new(budget.allowance());
        let is_full = AtomicBool::new(false);
        let eval = Eval { texts: self.texts, is_stopped: self.is_stopped };
        let (has_rows, has_null) = (AtomicBool::new(false), AtomicBool::new(false));
        let dividing = Dividing { spill, keys, kinds: &kinds, exprs, eval, budget, has_rows, has_null };
        let mut parts = self.fold(pipeline, Reading::default, |own, batch| {
            if !is_full.load(Ordering::Relaxed) {
                let batch = batch.detached();
                let bytes = batch.bytes()
                    + bytes_of_new_strings(&batch.columns, &mut own.strings)
                    + batch.rows * bytes_of_row(keys);
                if take_of(&left, bytes) && budget.try_take(bytes) {
                    own.taken += bytes;
                    own.held.push(batch);
                    return Ok(());
                }
                is_full.store(true, Ordering::Relaxed);
                return own.divide(Some(batch), &dividing);
            }
            own.divide(Some(batch), &dividing)
        })?;
        if !is_full.load(Ordering::Relaxed) {
            let batches: Vec<Batch> =
                parts.iter_mut().flat_map(|own| std::mem::take(&mut own.held)).collect();
            let rows: usize = batches.iter().map(|batch| batch.rows).sum();
            // What the table takes, it takes itself.
            let of_table = rows * bytes_of_row(keys);
            budget.release(of_table);
            let taken = parts.iter().map(|own| own.taken).sum::<usize>() - of_table;
            return self.held_side(batches, taken, &kinds, exprs);
        }
        let mut all = Parts::new();
        for mut own in parts {
            own.divide(None, &dividing)?;
            if let Some(scatter) = own.scatter {
                add_parts(&mut all, scatter.finish()?);
            }
        }
        let whole = Whole {
            has_rows: dividing.has_rows.load(Ordering::Relaxed),
            has_null: dividing.has_null.load(Ordering::Relaxed),
        };
        Ok(Side::Divided(all, whole))
    }

    fn held_side(&self, batches: Vec<Batch>, taken: usize, kinds: &[Kind], exprs: &[Expr]) -> Result<Side> {
        let batch = match batches.is_empty() {
            true => empty(kinds),
            false => Batch::concat(&batches, kinds),
        };
        drop(batches);
        let columns =
            exprs.iter().map(|expr| self.eval().column(expr, &batch)).collect::<Result<Vec<_>>>()?;
        Ok(Side::Held(batch, columns, taken))
    }

    /// A side that turned out not to fit.
    pub(crate) fn divided(
        &self,
        batch: &Batch,
        columns: &[Arc<Column>],
        kinds: &[Kind],
        keys: &Keys,
        spill: &Spill,
    ) -> Result<(Parts, Whole)> {
        let mut scatter = Scatter::new(spill, &keys.parts, kinds, 0);
        let rows: Vec<u32> = (0..batch.rows as u32).collect();
        for rows in rows.chunks(ROWS_AT_ONCE) {
            self.eval().go_on()?;
            let columns: Vec<_> = columns.iter().map(|column| Arc::new(column.gather(rows))).collect();
            scatter.add(batch.gather(rows), &columns)?;
        }
        let has_null = Keys::nulls(columns).is_some_and(|nulls| nulls.contains(&true));
        Ok((scatter.finish()?, Whole { has_rows: batch.rows > 0, has_null }))
    }

    /// Divides the rows of a pipeline.
    pub(crate) fn scattered(&mut self, pipeline: &Pipeline, keys: &Keys, exprs: &[Expr]) -> Result<Parts> {
        let Some(spill) = self.spill else { return Err(Failure::GivenBack(Why::Memory)) };
        let kinds = pipeline.kinds();
        let (texts, is_stopped) = (self.texts, self.is_stopped);
        let was_alone = self.is_alone;
        self.is_alone |= exprs.iter().any(Expr::needs_server);
        let result = self.fold(
            pipeline,
            || Scatter::new(spill, &keys.parts, &kinds, 0),
            |scatter, batch| {
                let eval = Eval { texts, is_stopped };
                eval.go_on()?;
                let columns =
                    exprs.iter().map(|expr| eval.column(expr, &batch)).collect::<Result<Vec<_>>>()?;
                scatter.add(batch, &columns)
            },
        );
        self.is_alone = was_alone;
        let mut all = Parts::new();
        for scatter in result? {
            add_parts(&mut all, scatter.finish()?);
        }
        Ok(all)
    }

    /// Joins part after part; `push` gets what comes of each batch.
    pub(crate) fn fold_grace<S: Send>(
        &self,
        grace: &Grace,
        most: usize,
        begin: impl Fn() -> S + Sync,
        push: impl Fn(&mut S, Batch) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        let states = Mutex::new(Vec::new());
        let mut work = grace.work();
        while let Some((build, probe, level)) = work.pop() {
            let Some((built, _budget)) = self.built_of(grace, &build)? else {
                work.extend(self.smaller(grace, (build, probe, level))?);
                continue;
            };
            let step = Step::Probe {
                built: Arc::new(built),
                kind: grace.kind,
                keys: grace.probe_keys.clone(),
                residual: grace.residual.clone(),
                probe: grace.kept.0.clone(),
                build: grace.kept.1.clone(),
            };
            let steps = [step];
            // What is remembered of texts of this part is given back with it.
            let budget = Budget::part(self.budget, usize::MAX);
            let steps = Steps { steps: &steps, counts: self.counts, eval: self.eval(), budget: &budget };
            let next = AtomicUsize::new(0);
            let results: Vec<Result<()>> = on_threads(most.min(probe.len()).max(1), || {
                let mut state = states.lock().pop().unwrap_or_else(&begin);
                while let Some(piece) = probe.get(next.fetch_add(1, Ordering::Relaxed)) {
                    steps.eval.go_on()?;
                    steps.push(0, piece.load()?, &mut |batch| push(&mut state, batch))?;
                }
                states.lock().push(state);
                Ok(())
            });
            results.into_iter().collect::<Result<Vec<()>>>()?;
        }
        let states = states.into_inner();
        Ok(if states.is_empty() { vec![begin()] } else { states })
    }

    /// The side in memory of a part; `None`: there is not enough.
    fn built_of(&self, grace: &Grace, build: &[Piece]) -> Result<Option<(Built, Arc<Budget>)>> {
        let budget = Arc::new(Budget::part(self.budget, self.budget.limit_of_part(1)));
        let result = self.built_within(grace, build, &budget);
        match result {
            Ok(built) => Ok(Some((built, budget))),
            Err(Failure::GivenBack(Why::Memory)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn built_within(&self, grace: &Grace, build: &[Piece], budget: &Budget) -> Result<Built> {
        let (mut batches, mut strings) = (Vec::new(), Vec::new());
        for piece in build {
            self.eval().go_on()?;
            let batch = piece.load()?;
            budget.take(batch.bytes() + bytes_of_new_strings(&batch.columns, &mut strings))?;
            batches.push(batch);
        }
        let batch = match batches.is_empty() {
            true => empty(&grace.build_kinds),
            false => Batch::concat(&batches, &grace.build_kinds),
        };
        drop(batches);
        let columns = grace.build_keys.iter().map(|expr| self.eval().column(expr, &batch));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Built::new(batch, grace.keys.renewed(), &columns, grace.is_marked, (budget, self.eval()))?
            .of_whole(grace.whole))
    }

    /// The same rows in smaller parts.
    fn smaller(&self, grace: &Grace, (build, probe, level): Work) -> Result<Vec<Work>> {
        let (Some(spill), true) = (self.spill, level < LEVELS) else {
            return Err(Failure::GivenBack(Why::Memory));
        };
        let divide = |pieces: Vec<Piece>, exprs: &[Expr], kinds: &[Kind]| {
            let mut scatter = Scatter::new(spill, &grace.keys.parts, kinds, level);
            for piece in pieces {
                self.eval().go_on()?;
                let batch = piece.load()?;
                let columns =
                    exprs.iter().map(|expr| self.eval().column(expr, &batch)).collect::<Result<Vec<_>>>()?;
                scatter.add(batch, &columns)?;
            }
            scatter.finish()
        };
        let rows: usize = build.iter().map(|piece| piece.rows).sum();
        let build = divide(build, &grace.build_keys, &grace.build_kinds)?;
        let largest = build.iter().map(|part| part.iter().map(|piece| piece.rows).sum::<usize>()).max();
        if level > 1 && largest == Some(rows) {
            // One key, or rows with a NULL: there is nothing to divide.
            return Err(Failure::GivenBack(Why::Memory));
        }
        let probe = divide(probe, &grace.probe_keys, &grace.probe_kinds)?;
        Ok(grace.of_use(build, probe, level + 1))
    }

    /// A semi-join, or an anti-join, whose own rows are marked by those of the other side, part after part.
    pub(crate) fn marked_in_parts(&mut self, grace: &Grace) -> Result<Vec<Chunk>> {
        let Some(spill) = self.spill else { return Err(Failure::GivenBack(Why::Memory)) };
        let left = AtomicUsize::new(self.budget.allowance());
        let mut spool = Spool::new(Some(spill), self.budget, &left, &grace.build_kinds);
        let needs_server = grace.needs_server();
        let most = if self.is_alone || needs_server { 1 } else { self.threads };
        let mut work = grace.work();
        while let Some((build, probe, level)) = work.pop() {
            let Some((built, _budget)) = self.built_of(grace, &build)? else {
                work.extend(self.smaller(grace, (build, probe, level))?);
                continue;
            };
            let next = AtomicUsize::new(0);
            let (eval, budget) = (self.eval(), Budget::part(self.budget, usize::MAX));
            let results: Vec<Result<()>> = on_threads(most.min(probe.len()).max(1), || {
                while let Some(piece) = probe.get(next.fetch_add(1, Ordering::Relaxed)) {
                    eval.go_on()?;
                    let batch = piece.load()?;
                    let columns = grace.probe_keys.iter().map(|key| eval.column(key, &batch));
                    let columns = columns.collect::<Result<Vec<_>>>()?;
                    let found = built.find(&columns, batch.rows, &budget)?;
                    built.mark(&found, &batch, grace.residual.as_ref(), eval)?;
                }
                Ok(())
            });
            results.into_iter().collect::<Result<Vec<()>>>()?;
            for rows in built.marked(grace.kind == JoinKind::Semi).chunks(ROWS_AT_ONCE) {
                spool.add(built.batch.gather(rows))?;
            }
        }
        spool.finish()
    }
}

/// Rows that are taken at once.
const ROWS_AT_ONCE: usize = 32768;

/// Both sides of a part, and how often it was divided.
type Work = (Vec<Piece>, Vec<Piece>, u32);

impl Grace {
    pub(crate) fn needs_server(&self) -> bool {
        self.probe_keys.iter().chain(&self.build_keys).chain(&self.residual).any(Expr::needs_server)
    }

    fn work(&self) -> Vec<Work> {
        self.of_use(self.build.clone(), self.probe.clone(), 1)
    }

    /// Parts of which something can come.
    fn of_use(&self, build: Parts, probe: Parts, level: u32) -> Vec<Work> {
        let is_of_use = |build: &[Piece], probe: &[Piece]| match (self.is_marked, self.kind) {
            (true, JoinKind::Semi) | (_, JoinKind::Inner | JoinKind::Semi) => {
                !build.is_empty() && !probe.is_empty()
            }
            (true, _) => !build.is_empty(),
            (false, _) => !probe.is_empty(),
        };
        let both = build.into_iter().zip(probe);
        let some = both.filter(|(build, probe)| is_of_use(build, probe));
        some.map(|(build, probe)| (build, probe, level)).collect()
    }
}
