//! `SELECT DISTINCT a, b FROM t LIMIT 10`: the first different rows, in the order in which rows come, if few rows have so many. Who
//! looks into a large table asks so, and waits for no more than that. Else all different rows are found, by all threads, and sorted: so it is
//! always the same ones that are shown.

use std::sync::atomic::AtomicUsize;
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_query::{Failure, Why};

use crate::column::Batch;
use crate::eval::{Eval, Result};
use crate::execute::first_texts::is_of_one_scan;
use crate::execute::{Pipeline, Run, Source};
use crate::expr::{Expr, Slot};
use crate::groups::Groups;
use crate::keys::Budget;
use crate::plan::Plan;
use crate::spill::Chunk;

/// So many rows of tables are looked at.
const ROWS_LOOKED_AT: usize = 1 << 16;

impl Run<'_> {
    /// Some of the different rows of a plan without an order; `plan` makes them of `input`.
    pub(super) fn first_different(
        &mut self,
        plan: &Plan,
        (input, groups): (&Plan, &[(Slot, Expr)]),
        (skip, limit): (u64, u64),
    ) -> Result<Pipeline> {
        let wanted = usize::try_from(skip.saturating_add(limit)).unwrap_or(usize::MAX);
        let before = self.narrow_filters(|_| None);
        let first = match wanted < ROWS_LOOKED_AT && is_of_one_scan(input) {
            true => self.among_first(input, groups, wanted)?,
            false => None,
        };
        let pipeline = match first {
            Some(batch) => {
                self.rows_sorted = batch.rows;
                let rows: Vec<u32> =
                    (0..batch.rows as u32).skip(skip as usize).take(limit as usize).collect();
                let source = Source::Ordered(vec![Chunk::Held(batch.gather(&rows))]);
                Pipeline { source, steps: Vec::new(), slots: plan.slots() }
            }
            None => {
                let by = |(slot, kind): &(Slot, _)| (Expr::Slot(*slot, *kind), false);
                let order: Vec<(Expr, bool)> = plan.slots().iter().map(by).collect();
                let needed: Vec<Slot> = groups.iter().map(|(slot, _)| *slot).collect();
                let pipeline = self.pipeline(plan, &needed)?;
                let chunks = self.sorted(&pipeline, &order, (skip, Some(limit)), None)?;
                Pipeline { source: Source::Ordered(chunks), steps: Vec::new(), slots: pipeline.slots }
            }
        };
        self.filters = before;
        Ok(pipeline)
    }

    /// So many different rows, or all of them; `None`: those that are looked at have not so many. Where they do not fit into memory, the query
    /// is given back: the server ends with them, and to find all others would take far longer.
    fn among_first(&mut self, input: &Plan, groups: &[(Slot, Expr)], wanted: usize) -> Result<Option<Batch>> {
        let of = self.gathering(input, groups, &[], false)?;
        let (budget, texts, is_stopped) =
            (Budget::part(self.budget, usize::MAX), self.texts, self.is_stopped);
        let shape = of.shape(texts)?;
        let found = Mutex::new(Groups::new(&shape));
        let before = (self.rows_met, self.counts.rows(), self.threads);
        self.threads = 1;
        self.rows_left = Some(Arc::new(AtomicUsize::new(ROWS_LOOKED_AT)));
        let result = self.fold_gathering(
            &of,
            || (),
            |(), batch| {
                let columns = of.columns(Eval { texts, is_stopped }, &batch)?;
                let mut found = found.lock();
                of.add(&mut found, &shape, &columns, batch.rows, &budget)?;
                match found.count() < wanted {
                    true => Ok(()),
                    false => Err(Failure::GivenBack(Why::Stopped)),
                }
            },
        );
        self.rows_left = None;
        self.threads = before.2;
        let found = found.into_inner();
        let is_enough = match result {
            Ok(_) => true,
            Err(Failure::GivenBack(Why::Stopped)) if !is_stopped() => found.count() >= wanted,
            Err(failure) => return Err(failure),
        };
        if is_enough {
            return found.finish(&shape, &budget, self.eval()).map(Some);
        }
        self.rows_met = before.0;
        self.counts.set_rows(&before.1);
        Ok(None)
    }
}
