//! Groups, in memory as long as there is some; else rows go into the temporary file by the hash of what they are groups of, and
//! one part of them after the other is made groups of.
//!
//! What is written are rows, not what is known of groups so far: so all aggregates can be told, also those of different values and
//! of texts, and rows of a group stay in the order in which they came. The price is that the rows are gone over once more.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_query::{Failure, Why};
use pandodb::on_threads;

use crate::column::{Batch, Column, Kind, UNSUPPORTED};
use crate::concat::Shown;
use crate::eval::{Eval, Result};
use crate::execute::first_texts::is_of_one_scan;
use crate::execute::{with_slots, Pipeline, Run};
use crate::expr::{Expr, Function, Slot, Texts};
use crate::groups::{Groups, Shape, Told};
use crate::keys::{Budget, KeyPart, Keys};
use crate::partition::{add_parts, Parts, Scatter, LEVELS};
use crate::plan::Plan;
use crate::spill::{Chunk, Piece, Spill, Spool};

/// Rows, and what is to be told of groups of them.
pub(crate) struct Gathering<'a> {
    pipeline: Pipeline,
    told: &'a [crate::plan::Told],
    is_one: bool,
    /// What is computed of rows, each once: first what they are groups of.
    computed: Vec<Expr>,
    groups: usize,
    /// Which of these each aggregate looks at.
    arguments: Vec<Vec<usize>>,
    /// Of texts that are equal, that of the first row stands for the group.
    pub(crate) first_stands: bool,
}

impl Gathering<'_> {
    fn kinds(&self) -> Vec<Kind> {
        self.computed.iter().map(Expr::kind).collect()
    }

    /// Of the columns of the groups and of what is told of them.
    fn given_kinds(&self) -> Vec<Kind> {
        let groups = self.computed[..self.groups].iter().map(Expr::kind);
        groups.chain(self.told.iter().map(|told| told.kind)).collect()
    }

    pub(crate) fn columns(&self, eval: Eval<'_>, batch: &Batch) -> Result<Vec<Arc<Column>>> {
        self.computed.iter().map(|expr| eval.column(expr, batch)).collect()
    }

    /// Whether something depends on the order of the rows, as a sum of DOUBLEs does.
    pub(crate) fn is_of_order(&self) -> bool {
        let kind = |told: &crate::plan::Told| told.of.as_ref().map_or(Kind::Signed, Expr::kind);
        self.told.iter().any(|told| told.function.is_of_order(kind(told)))
    }

    /// Those of what the rows are groups of.
    pub(crate) fn columns_of_groups(&self, eval: Eval<'_>, batch: &Batch) -> Result<Vec<Arc<Column>>> {
        self.computed[..self.groups].iter().map(|expr| eval.column(expr, batch)).collect()
    }

    fn keys(&self, texts: &Texts) -> Result<Keys> {
        let part = |expr: &Expr| KeyPart::of(expr.kind(), &texts.collations).ok_or(UNSUPPORTED);
        Ok(Keys::of_groups(self.computed[..self.groups].iter().map(part).collect::<Result<_>>()?)
            .telling_apart())
    }

    pub(crate) fn shape(&self, texts: &Texts) -> Result<Shape> {
        let part = |expr: &Expr| KeyPart::of(expr.kind(), &texts.collations).ok_or(UNSUPPORTED);
        let told_of = |told: &crate::plan::Told| {
            let kind = told.of.as_ref().map_or(Kind::Signed, Expr::kind);
            let key = match kind {
                Kind::Text(collation) => texts.collations.get(collation as usize).cloned(),
                _ => None,
            };
            let keys = match told.function {
                Function::CountDistinct | Function::SumDistinct => {
                    let counted = told.of.as_ref().ok_or(UNSUPPORTED)?.row();
                    Some(Keys::of_groups(counted.iter().map(part).collect::<Result<_>>()?))
                }
                _ => None,
            };
            let concat = match (told.function, &told.of) {
                (Function::Concat, Some(of)) => Some(Arc::new(Shown::of(of, texts)?)),
                _ => None,
            };
            Ok(Told { function: told.function, kind, key, keys, concat })
        };
        let told = self.told.iter().map(told_of).collect::<Result<_>>()?;
        Ok(Shape { keys: self.keys(texts)?, told, is_one: self.is_one })
    }

    pub(crate) fn add(
        &self,
        groups: &mut Groups,
        shape: &Shape,
        columns: &[Arc<Column>],
        rows: usize,
        budget: &Budget,
    ) -> Result<()> {
        let of = |places: &Vec<usize>| places.iter().map(|at| columns[*at].clone()).collect();
        let arguments: Vec<Vec<Arc<Column>>> = self.arguments.iter().map(of).collect();
        groups.add(shape, &columns[..self.groups], &arguments, rows, budget)
    }
}

impl Run<'_> {
    pub(crate) fn gathering<'p>(
        &mut self,
        input: &Plan,
        groups: &[(Slot, Expr)],
        told: &'p [crate::plan::Told],
        is_one: bool,
    ) -> Result<Gathering<'p>> {
        if groups.len() > 63 {
            return Err(UNSUPPORTED);
        }
        let group_exprs: Vec<Expr> = groups.iter().map(|(_, expr)| expr.clone()).collect();
        let exprs: Vec<&Expr> =
            group_exprs.iter().chain(told.iter().filter_map(|told| told.of.as_ref())).collect();
        let pipeline = self.pipeline(input, &with_slots(&[], &exprs))?;
        let mut computed = pipeline.bind_all(&group_exprs)?;
        let mut arguments = Vec::new();
        for told in told {
            let mut of_told = Vec::new();
            for argument in pipeline.bind_all(told.arguments())? {
                let known = computed[groups.len()..].iter().position(|known| *known == argument);
                of_told.push(known.map_or(computed.len(), |known| known + groups.len()));
                if known.is_none() {
                    computed.push(argument);
                }
            }
            arguments.push(of_told);
        }
        let first_stands = self.first_stands && is_of_one_scan(input);
        Ok(Gathering { pipeline, told, is_one, computed, groups: groups.len(), arguments, first_stands })
    }

    /// All groups, in memory.
    pub(crate) fn gathered(&mut self, of: &Gathering<'_>, budget: &Budget) -> Result<(Groups, Shape)> {
        let shape = of.shape(self.texts)?;
        let (texts, is_stopped) = (self.texts, self.is_stopped);
        let parts = self.fold_gathering(
            of,
            || Groups::new(&shape),
            |groups, batch| {
                let columns = of.columns(Eval { texts, is_stopped }, &batch)?;
                of.add(groups, &shape, &columns, batch.rows, budget)
            },
        )?;
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_else(|| Groups::new(&shape));
        for part in parts {
            all.merge(&shape, part, budget)?;
        }
        Ok((all, shape))
    }

    fn groups_in_memory(&mut self, of: &Gathering<'_>, budget: &Budget) -> Result<Batch> {
        let (all, shape) = self.gathered(of, budget)?;
        self.with_first_texts(of, all, &shape, budget)?.finish(&shape, budget, self.eval())
    }

    pub(crate) fn fold_gathering<S: Send>(
        &mut self,
        of: &Gathering<'_>,
        begin: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, Batch) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        let is_ordered = of.is_of_order();
        let (threads, was_alone) = (self.threads, self.is_alone);
        if is_ordered {
            self.threads = 1;
        }
        self.is_alone |= of.computed.iter().any(Expr::needs_server);
        let parts = self.fold(&of.pipeline, begin, step);
        (self.threads, self.is_alone) = (threads, was_alone);
        parts
    }

    pub(crate) fn aggregate(
        &mut self,
        input: &Plan,
        groups: &[(Slot, Expr)],
        told: &[crate::plan::Told],
        is_one: bool,
    ) -> Result<Vec<Chunk>> {
        let of = self.gathering(input, groups, told, is_one)?;
        let Some(spill) = self.spill.filter(|_| !is_one) else {
            return Ok(held(self.groups_in_memory(&of, self.budget)?));
        };
        let before = (self.rows_met, self.counts.rows());
        {
            let budget = Budget::part(self.budget, self.budget.allowance());
            match self.groups_in_memory(&of, &budget) {
                Err(Failure::GivenBack(Why::Memory)) => {}
                Err(failure) => return Err(failure),
                Ok(batch) => {
                    drop(budget);
                    let left = AtomicUsize::new(self.budget.allowance());
                    let kinds = of.given_kinds();
                    let mut spool = Spool::new(Some(spill), self.budget, &left, &kinds);
                    for batch in crate::spill::in_pieces(&batch, GIVEN_ROWS) {
                        spool.add(batch)?;
                    }
                    return spool.finish();
                }
            }
        }
        // All of it once more, into the file.
        self.rows_met = before.0;
        self.counts.set_rows(&before.1);
        let (texts, is_stopped) = (self.texts, self.is_stopped);
        let (keys, kinds) = (of.keys(texts)?, of.kinds());
        let scattered = self.fold_gathering(
            &of,
            || Scatter::new(spill, &keys.parts, &kinds, 0),
            |scatter, batch| {
                let eval = Eval { texts, is_stopped };
                eval.go_on()?;
                let columns = of.columns(eval, &batch)?;
                let rows = Batch { rows: batch.rows, columns };
                scatter.add(rows.clone(), &rows.columns[..of.groups])
            },
        )?;
        let mut parts = Parts::new();
        for scatter in scattered {
            add_parts(&mut parts, scatter.finish()?);
        }
        self.groups_of_parts(&of, parts, spill)
    }

    fn groups_of_parts(&self, of: &Gathering<'_>, parts: Parts, spill: &Spill) -> Result<Vec<Chunk>> {
        let kinds = of.given_kinds();
        let left = AtomicUsize::new(self.budget.allowance());
        let work: Mutex<VecDeque<(Vec<Piece>, u32)>> =
            Mutex::new(parts.into_iter().filter(|part| !part.is_empty()).map(|part| (part, 1)).collect());
        let share = self.budget.limit_of_part(self.threads);
        let (texts, budget, is_stopped) = (self.texts, self.budget, self.is_stopped);
        let results = on_threads(self.threads, || {
            let eval = Eval { texts, is_stopped };
            let mut spool = Spool::new(Some(spill), budget, &left, &kinds);
            loop {
                let next = work.lock().pop_front();
                let Some((pieces, level)) = next else { return spool.finish() };
                let part = Budget::part(budget, share);
                match groups_of_pieces(of, &pieces, eval, &part) {
                    Ok(batch) => {
                        drop(part);
                        for batch in crate::spill::in_pieces(&batch, GIVEN_ROWS) {
                            spool.add(batch)?;
                        }
                    }
                    Err(Failure::GivenBack(Why::Memory)) if level < LEVELS => {
                        drop(part);
                        let smaller = of.divided(pieces, level, spill, eval)?;
                        if level > 1 && smaller.iter().filter(|part| !part.is_empty()).count() == 1 {
                            // One group, or so: there is nothing to divide.
                            return Err(Failure::GivenBack(Why::Memory));
                        }
                        let smaller = smaller.into_iter().filter(|part| !part.is_empty());
                        work.lock().extend(smaller.map(|part| (part, level + 1)));
                    }
                    Err(failure) => return Err(failure),
                }
            }
        });
        let chunks = results.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(chunks.into_iter().flatten().collect())
    }
}

/// Groups that are given on at once.
const GIVEN_ROWS: usize = 32768;

fn held(batch: Batch) -> Vec<Chunk> {
    crate::execute::pieces(batch).into_iter().map(Chunk::Held).collect()
}

/// The groups of one part.
fn groups_of_pieces(of: &Gathering<'_>, pieces: &[Piece], eval: Eval<'_>, budget: &Budget) -> Result<Batch> {
    let shape = of.shape(eval.texts)?;
    let mut groups = Groups::of_part(&shape);
    for piece in pieces {
        eval.go_on()?;
        let batch = piece.load()?;
        of.add(&mut groups, &shape, &batch.columns, batch.rows, budget)?;
    }
    groups.finish(&shape, budget, eval)
}

impl Gathering<'_> {
    /// The same rows in smaller parts.
    fn divided(&self, pieces: Vec<Piece>, level: u32, spill: &Spill, eval: Eval<'_>) -> Result<Parts> {
        let (keys, kinds) = (self.keys(eval.texts)?, self.kinds());
        let mut scatter = Scatter::new(spill, &keys.parts, &kinds, level);
        for piece in pieces {
            eval.go_on()?;
            let batch = piece.load()?;
            scatter.add(batch.clone(), &batch.columns[..self.groups])?;
        }
        scatter.finish()
    }
}
