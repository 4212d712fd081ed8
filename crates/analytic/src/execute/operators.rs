//! Pipelines of operators: what each operator of a plan does to the rows of the operator below it.

use std::sync::Arc;

use pando_query::{Failure, Why};

use crate::block::TableColumn;
use crate::column::{Batch, Kind, UNSUPPORTED};
use crate::eval::Result;
use crate::execute::{pieces, with_slots, Filters, First, Pipeline, Run, Source};
use crate::expr::{Expr, Slot};
use crate::first_rows::FirstRows;
use crate::keys::Budget;
use crate::plan::{Plan, Told};
use crate::spill::Chunk;
use crate::steps::Step;
use crate::table_rows::{FirstOf, TableRows};

impl Run<'_> {
    pub(super) fn pipeline_of(&mut self, plan: &Plan, needed: &[Slot]) -> Result<Pipeline> {
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
                self.scan_of((*table, *parts), columns, filter, needed, first)
            }
            Plan::Filter(input, condition) => self.filtered(input, condition, needed, first),
            Plan::Project(input, outputs) => self.projected(plan, input, outputs, needed, first),
            Plan::Join(join) if join.is_marked => self.marked(join, needed),
            Plan::Join(join) => self.join(join, needed, first),
            Plan::Aggregate { input, groups, told, is_one } => {
                self.aggregated(plan, input, (groups, told), *is_one)
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
            Plan::Sort { input, order, skip, limit } => self.ordered(input, order, (*skip, *limit), needed),
            Plan::Union(inputs, slots) => self.united(inputs, slots),
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

    fn filtered(
        &mut self,
        input: &Plan,
        condition: &Expr,
        needed: &[Slot],
        first: Option<First>,
    ) -> Result<Pipeline> {
        // What is asked of all rows is asked of those, too, that a join drops.
        let before = self.narrow_filters(|slot| (!condition.is_early()).then_some(slot));
        self.first =
            first.filter(|_| !condition.may_fail()).map(|first| First { are_all_given: false, ..first });
        let mut pipeline = self.pipeline(input, &with_slots(needed, &[condition]))?;
        self.filters = before;
        let condition = pipeline.bind(condition)?;
        pipeline.steps.push(Step::Filter(condition));
        Ok(pipeline)
    }

    fn projected(
        &mut self,
        plan: &Plan,
        input: &Plan,
        outputs: &[(Slot, Expr)],
        needed: &[Slot],
        first: Option<First>,
    ) -> Result<Pipeline> {
        let failing = plan.failing();
        let below = |slot| match outputs.iter().find(|(output, _)| *output == slot) {
            Some((_, Expr::Slot(inner, _))) if failing.is_empty() => Some(*inner),
            _ => None,
        };
        let before = self.narrow_filters(below);
        self.first = first.and_then(|first| Some(First { slot: below(first.slot)?, ..first }));
        let is_computed = |slot| needed.contains(slot) || (plan.shows_groups() && failing.contains(slot));
        let outputs: Vec<_> = outputs.iter().filter(|(slot, _)| is_computed(slot)).collect();
        let exprs: Vec<&Expr> = outputs.iter().map(|(_, expr)| expr).collect();
        let mut pipeline = self.pipeline(input, &with_slots(&[], &exprs))?;
        self.filters = before;
        let bound = exprs.iter().map(|expr| pipeline.bind(expr)).collect::<Result<Vec<_>>>()?;
        pipeline.steps.push(Step::Project(bound));
        pipeline.slots = outputs.iter().map(|(slot, expr)| (*slot, expr.kind())).collect();
        Ok(pipeline)
    }

    fn aggregated(
        &mut self,
        plan: &Plan,
        input: &Plan,
        (groups, told): (&[(Slot, Expr)], &[Told]),
        is_one: bool,
    ) -> Result<Pipeline> {
        let repeated = self.repeated.number_of(plan);
        let known = repeated.and_then(|number| self.repeated.rows(number));
        let can_narrow = repeated.is_none() && !plan.can_fail();
        let before = self.narrow_filters(|slot| match groups.iter().find(|(group, _)| *group == slot) {
            Some((_, Expr::Slot(inner, _))) if can_narrow => Some(*inner),
            _ => None,
        });
        let chunks = match known {
            Some(chunks) => chunks,
            None => self.aggregate(input, groups, told, is_one)?,
        };
        if let Some(number) = repeated {
            self.repeated.keep(number, chunks.clone());
        }
        self.filters = before;
        let source = Source::Chunks(chunks);
        Ok(Pipeline { source, steps: Vec::new(), slots: plan.slots() })
    }

    fn ordered(
        &mut self,
        input: &Plan,
        order: &[(Expr, bool)],
        (skip, limit): (u64, Option<u64>),
        needed: &[Slot],
    ) -> Result<Pipeline> {
        if let (Plan::Aggregate { input: of, groups, told, is_one: false }, [], Some(limit)) =
            (input, order, limit)
        {
            if told.is_empty() {
                return self.first_different(input, (of, groups), (skip, limit));
            }
        }
        if let ([], [], 0, Some(limit), true) = (order, needed, skip, limit, input.may_end_early()) {
            return self.any_rows(input, usize::try_from(limit).unwrap_or(usize::MAX));
        }
        let exprs: Vec<&Expr> = order.iter().map(|(expr, _)| expr).collect();
        // Which rows are the first is not known before all are there.
        let is_cut = skip > 0 || limit.is_some();
        let before = self.narrow_filters(|slot| (!is_cut).then_some(slot));
        let mut wanted = with_slots(needed, &exprs);
        wanted.extend(if is_cut { input.failing() } else { Vec::new() });
        self.first = first_of(order, skip, limit, self.budget);
        let of_order = self.first.as_ref().map(|first| first.rows.clone());
        let pipeline = self.pipeline(input, &with_slots(&wanted, &[]))?;
        self.filters = before;
        let is_near = order.iter().any(|(expr, _)| matches!(expr, Expr::Near(..)));
        let source = Source::Ordered(if is_near {
            let one_more = limit.map(|limit| skip.saturating_add(limit).saturating_add(1));
            let chunks = self.sorted(&pipeline, order, (0, one_more), of_order)?;
            vec![Chunk::Held(self.cut_near(&pipeline, order, &chunks, (skip, limit))?)]
        } else {
            self.sorted(&pipeline, order, (skip, limit), of_order)?
        });
        Ok(Pipeline { source, steps: Vec::new(), slots: pipeline.slots })
    }

    fn united(&mut self, inputs: &[(Plan, Vec<Slot>)], slots: &[(Slot, Kind)]) -> Result<Pipeline> {
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
        Ok(Pipeline { source: Source::Chunks(chunks), steps: Vec::new(), slots: slots.to_vec() })
    }

    /// Leaves those filters that hold below an operator, by the names that their columns have there. Gives what to put
    /// back afterwards.
    pub(super) fn narrow_filters(&mut self, below: impl Fn(Slot) -> Option<Slot>) -> Filters {
        let narrowed = self.filters.iter().filter_map(|(slot, filter)| Some((below(*slot)?, filter.clone())));
        let narrowed = narrowed.collect();
        std::mem::replace(&mut self.filters, narrowed)
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
