//! The steps of a pipeline: what becomes of a batch on its way.

use std::sync::Arc;

use pando_query::{Failure, Why};

use crate::column::{Batch, Column, NO_ROW};
use crate::eval::{Eval, Result, FALSE, TRUE, UNKNOWN};
use crate::explain::Counts;
use crate::expr::Expr;
use crate::hash_join::{Built, Found, JoinKind, Pairs, PAIRS_MAX};
use crate::keys::Budget;

/// One of them.
pub(crate) enum Step {
    Filter(Expr),
    Project(Vec<Expr>),
    /// What an operator with this number gives.
    Count(usize),
    Probe {
        built: Arc<Built>,
        kind: JoinKind,
        keys: Vec<Expr>,
        residual: Option<Expr>,
        /// Columns of the one and of the other that go on.
        probe: Vec<usize>,
        build: Vec<usize>,
    },
}

impl Step {
    pub(crate) fn needs_server(&self) -> bool {
        match self {
            Step::Filter(condition) => condition.needs_server(),
            Step::Project(exprs) => exprs.iter().any(Expr::needs_server),
            Step::Count(_) => false,
            Step::Probe { keys, residual, .. } => keys.iter().chain(residual).any(Expr::needs_server),
        }
    }
}

/// All of a pipeline, with what they need.
pub(crate) struct Steps<'a> {
    pub steps: &'a [Step],
    pub counts: &'a Counts,
    pub eval: Eval<'a>,
    pub budget: &'a Budget,
}

impl Steps<'_> {
    /// Sends a batch through the steps from number `at` on.
    pub(crate) fn push(
        &self,
        at: usize,
        batch: Batch,
        sink: &mut dyn FnMut(Batch) -> Result<()>,
    ) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        let Some(step) = self.steps.get(at) else { return sink(batch) };
        match step {
            Step::Count(number) => {
                self.counts.add_rows(*number, batch.rows);
                self.push(at + 1, batch, sink)
            }
            Step::Filter(condition) => match self.eval.select(condition, &batch)? {
                None => self.push(at + 1, batch, sink),
                Some(rows) => self.push(at + 1, batch.gather(&rows), sink),
            },
            Step::Project(exprs) => {
                let column = |expr| self.eval.column(expr, &batch);
                let columns = exprs.iter().map(column).collect::<Result<Vec<_>>>()?;
                self.push(at + 1, Batch { rows: batch.rows, columns }, sink)
            }
            Step::Probe { built, kind, keys, residual, probe, .. } => {
                let columns =
                    keys.iter().map(|key| self.eval.column(key, &batch)).collect::<Result<Vec<_>>>()?;
                let found = built.find(&columns, batch.rows, self.budget)?;
                match kind {
                    JoinKind::Mark(_) => {
                        let truths = built.truths(&found, &batch, residual.as_ref(), self.eval)?;
                        let mut columns: Vec<_> = probe.iter().map(|at| batch.columns[*at].clone()).collect();
                        columns.push(Arc::new(Column::of_truths(&truths)));
                        self.push(at + 1, Batch { rows: batch.rows, columns }, sink)
                    }
                    JoinKind::Semi | JoinKind::Anti | JoinKind::AntiNull => {
                        let truths = built.truths(&found, &batch, residual.as_ref(), self.eval)?;
                        // What the server gives where a NULL leaves it open was seen not to be what the standard says.
                        if *kind == JoinKind::AntiNull && truths.contains(&UNKNOWN) {
                            return Err(Failure::GivenBack(Why::Open));
                        }
                        let is_wanted = |truth: u8| match kind {
                            JoinKind::Semi => truth == TRUE,
                            JoinKind::Anti => truth != TRUE,
                            _ => truth == FALSE,
                        };
                        let rows: Vec<u32> =
                            (0..batch.rows as u32).filter(|row| is_wanted(truths[*row as usize])).collect();
                        let kept = Batch {
                            rows: batch.rows,
                            columns: probe.iter().map(|at| batch.columns[*at].clone()).collect(),
                        };
                        let all = rows.len() == batch.rows;
                        self.push(at + 1, if all { kept } else { kept.gather(&rows) }, sink)
                    }
                    _ => self.pairs(at, &batch, step, &found, sink),
                }
            }
        }
    }

    fn pairs(
        &self,
        at: usize,
        batch: &Batch,
        step: &Step,
        found: &Found,
        sink: &mut dyn FnMut(Batch) -> Result<()>,
    ) -> Result<()> {
        let Step::Probe { built, kind, residual, probe, build, .. } = step else { return Ok(()) };
        let mut from = 0;
        while from < batch.rows {
            self.eval.go_on()?;
            let begin = from;
            let (mut pairs, next) = built.pairs(found, from, PAIRS_MAX, false);
            from = next;
            if let Some(residual) = residual {
                pairs = built.filter(pairs, batch, residual, self.eval)?;
            }
            if *kind == JoinKind::Single && pairs.probe.windows(2).any(|pair| pair[0] == pair[1]) {
                // The server says the error.
                return Err(Failure::GivenBack(Why::Several));
            }
            let is_outer = matches!(kind, JoinKind::Left | JoinKind::Single);
            let mut has_none = false;
            if is_outer {
                (pairs, has_none) = with_lonely(pairs, begin as u32, next as u32);
            }
            let mut columns = Vec::with_capacity(probe.len() + build.len());
            // Each row with one partner: they stay as they are.
            let is_each = pairs.probe.len() == batch.rows
                && pairs.probe.iter().enumerate().all(|(row, probe)| row == *probe as usize);
            columns.extend(probe.iter().map(|at| match is_each {
                true => batch.columns[*at].clone(),
                false => Arc::new(batch.columns[*at].gather(&pairs.probe)),
            }));
            for at in build {
                let column = &built.batch.columns[*at];
                columns.push(Arc::new(match has_none {
                    true => column.gather_or_null(&pairs.build),
                    false => column.gather(&pairs.build),
                }));
            }
            self.push(at + 1, Batch { rows: pairs.probe.len(), columns }, sink)?;
        }
        Ok(())
    }
}

/// With a pair for each row that has none; says whether there is such a row.
fn with_lonely(pairs: Pairs, begin: u32, end: u32) -> (Pairs, bool) {
    let mut all = Pairs::default();
    let (mut at, mut has_lonely) = (0, false);
    for row in begin..end {
        let first = at;
        while at < pairs.probe.len() && pairs.probe[at] == row {
            all.probe.push(row);
            all.build.push(pairs.build[at]);
            at += 1;
        }
        if at == first {
            all.probe.push(row);
            all.build.push(NO_ROW);
            has_lonely = true;
        }
    }
    (all, has_lonely)
}
