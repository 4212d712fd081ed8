//! Joins: one side is read into memory, or divided if it is too large (`grace_join.rs`), and the rows of the other look their
//! partners up.

use std::sync::Arc;

use pando_query::{Failure, Why};

use crate::column::{Column, Kind, Value, UNSUPPORTED};
use crate::eval::{Eval, Result};
use crate::execute::{pieces, with_slots, Filters, First, Pipeline, Run, Source};
use crate::expr::{Expr, Slot};
use crate::grace_join::{self, Grace, Whole};
use crate::hash_join::{Built, JoinKind};
use crate::key_filter::KeyFilter;
use crate::keys::{Budget, KeyPart, Keys};
use crate::partition::Parts;
use crate::plan::{Join, Plan};
use crate::spill::Chunk;
use crate::steps::Step;

/// One side of a join, its columns, and what its keys say of the other side.
type Side = (Sided, Vec<(Slot, Kind)>, Filters);

/// One side of a join, to be looked up in.
enum Sided {
    Built(Built),
    Divided(Parts, Whole),
}

impl Run<'_> {
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

    pub(super) fn join(&mut self, join: &Join, needed: &[Slot], first: Option<First>) -> Result<Pipeline> {
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
            None => self.probe_side(join, &probe_slots, &of_probe, of_built, first)?,
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

    /// The rows of a join's probe side, less those of which the built side's keys (`of_built`) say that they have no partner.
    fn probe_side(
        &mut self,
        join: &Join,
        slots: &[Slot],
        of_probe: &[Expr],
        of_built: Filters,
        first: Option<First>,
    ) -> Result<Pipeline> {
        let count = self.filters.len();
        if matches!(join.kind, JoinKind::Inner | JoinKind::Semi) {
            self.filters.extend(of_built);
        }
        // What is told of all rows (that a query as a value has one) is told of those that an order drops, too.
        let tells_of_all =
            !matches!(join.kind, JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti)
                || of_probe.iter().chain(&join.residual).any(Expr::may_fail);
        self.first = first.filter(|_| !tells_of_all).map(|first| First { are_all_given: false, ..first });
        let pipeline = self.pipeline(&join.probe, slots);
        self.filters.truncate(count);
        pipeline
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
    pub(super) fn marked(&mut self, join: &Join, needed: &[Slot]) -> Result<Pipeline> {
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
}

fn bound_to(slots: &[(Slot, Kind)], exprs: &[Expr]) -> Result<Vec<Expr>> {
    let slots: Vec<Slot> = slots.iter().map(|(slot, _)| *slot).collect();
    exprs.iter().map(|expr| expr.bound(&slots).ok_or(UNSUPPORTED)).collect()
}

fn of_plan(slots: &[Slot], plan: &Plan) -> Vec<Slot> {
    let given = plan.slots();
    slots.iter().copied().filter(|slot| given.iter().any(|(known, _)| known == slot)).collect()
}
