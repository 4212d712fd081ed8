//! Rows of which nobody looks at a column: as many as are wanted, whichever they are. `EXISTS (SELECT ...)` of a query that
//! nothing ties to the one around it wants one. Tables are read no further than until they are found; a block's rows do not wait for more.

use std::sync::atomic::{AtomicUsize, Ordering};

use pando_query::{Failure, Why};

use crate::column::Batch;
use crate::eval::Result;
use crate::execute::{Pipeline, Run, Source};
use crate::expr::Expr;
use crate::hash_join::JoinKind;
use crate::plan::Plan;
use crate::tags::Saying;

/// Whether a condition of some rows says nothing of the others: it neither fails, nor warns.
fn is_silent(condition: &Expr) -> bool {
    !condition.any(&|part| match part {
        Expr::Server { may_say, .. } => *may_say != Saying::Nothing,
        Expr::Divide(..)
        | Expr::Real(..)
        | Expr::Arithmetic(..)
        | Expr::Convert(..)
        | Expr::Kept { .. }
        | Expr::Sure(..) => true,
        _ => false,
    })
}

impl Plan {
    /// Whether its first rows come before the last ones of a table are read, and reading these could say nothing more.
    pub(crate) fn may_end_early(&self) -> bool {
        match self {
            Plan::Scan { filter, .. } => filter.iter().all(is_silent),
            Plan::Filter(input, condition) => is_silent(condition) && input.may_end_early(),
            Plan::Project(input, outputs) => {
                outputs.iter().all(|(_, expr)| is_silent(expr)) && input.may_end_early()
            }
            Plan::Join(join) => {
                let keys = join.keys.iter().flat_map(|(probe, build)| [probe, build]);
                let is_plain =
                    matches!(join.kind, JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti);
                is_plain && keys.chain(&join.residual).all(is_silent) && join.probe.may_end_early()
            }
            _ => false,
        }
    }
}

impl Run<'_> {
    /// So many rows of a plan, without columns, or all that there are.
    pub(super) fn any_rows(&mut self, input: &Plan, wanted: usize) -> Result<Pipeline> {
        let before = self.narrow_filters(|_| None);
        let pipeline = self.pipeline(input, &[])?;
        self.filters = before;
        let found = AtomicUsize::new(0);
        let was_hurried = std::mem::replace(&mut self.is_hurried, true);
        let result = self.fold(
            &pipeline,
            || (),
            |(), batch| match found.fetch_add(batch.rows, Ordering::Relaxed) + batch.rows < wanted {
                true => Ok(()),
                false => Err(Failure::GivenBack(Why::Stopped)),
            },
        );
        self.is_hurried = was_hurried;
        let found = found.into_inner();
        match result {
            Err(Failure::GivenBack(Why::Stopped)) if found >= wanted && !(self.is_stopped)() => {}
            result => _ = result?,
        }
        let rows = found.min(wanted);
        self.rows_sorted = rows;
        let source = Source::held(vec![Batch { rows, columns: Vec::new() }]);
        Ok(Pipeline { source, steps: Vec::new(), slots: Vec::new() })
    }
}
