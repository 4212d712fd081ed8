//! Rows sorted by numbers whose last digits are those of a plan (`Expr::Near`): whether they stand in this order in every plan.

use std::cmp::Ordering;
use std::sync::Arc;

use pando_query::{Failure, Why};

use crate::column::{Batch, Column, Data, UNSUPPORTED};
use crate::eval::Result;
use crate::execute::{Pipeline, Run};
use crate::expr::Expr;
use crate::sort::Sorter;
use crate::spill::Chunk;

/// What the rows are sorted by, one key after the other.
enum Key {
    Exact(Sorter),
    /// The two between which each value lies, whichever is the lower one.
    Near([Arc<Column>; 2]),
}

/// How the values of two rows stand to each other.
enum Pair {
    Same,
    Apart,
    /// One plan may have the one first, another the other.
    Open,
}

impl Key {
    fn pair(&self, row: u32) -> Pair {
        match self {
            Key::Exact(sorter) if sorter.compare(row, row + 1) == Ordering::Equal => Pair::Same,
            Key::Exact(_) => Pair::Apart,
            Key::Near(ends) => match (range(ends, row as usize), range(ends, row as usize + 1)) {
                (None, None) => Pair::Same,
                (Some((least, most)), Some((other_least, other_most))) => {
                    let are_points = least == most && other_least == other_most;
                    match most < other_least || other_most < least {
                        true => Pair::Apart,
                        false if are_points => Pair::Same,
                        false => Pair::Open,
                    }
                }
                _ => Pair::Apart,
            },
        }
    }
}

/// `None`: the value is NULL.
fn range(ends: &[Arc<Column>; 2], row: usize) -> Option<(f64, f64)> {
    let [Some(one), Some(other)] = ends.each_ref().map(|column| match &column.data {
        Data::Real(values) if !column.is_null(row) => Some(values[row]),
        _ => None,
    }) else {
        return None;
    };
    Some((one.min(other), one.max(other)))
}

impl Run<'_> {
    /// Of rows that are sorted, the first and one more: cuts those that are skipped, and those beyond the limit. The query is given
    /// back if another plan might have others, or have them in another order.
    pub(crate) fn cut_near(
        &mut self,
        pipeline: &Pipeline,
        order: &[(Expr, bool)],
        chunks: &[Chunk],
        (skip, limit): (u64, Option<u64>),
    ) -> Result<Batch> {
        let batch = self.loaded(chunks, &pipeline.kinds())?;
        let column = |expr: &Expr| self.eval().column(&pipeline.bind(expr)?, &batch);
        let mut keys = Vec::new();
        for (expr, descends) in order {
            keys.push(match expr {
                Expr::Near(_, one, other) => Key::Near([column(one)?, column(other)?]),
                exact => {
                    let by = [(column(exact)?, exact.kind(), *descends)];
                    Key::Exact(Sorter::new(&by, self.texts, self.budget)?)
                }
            });
        }
        for row in 1..u32::try_from(batch.rows).map_err(|_| UNSUPPORTED)? {
            let pairs = keys.iter().map(|key| key.pair(row - 1));
            if let Some(Pair::Open) = pairs.into_iter().find(|pair| !matches!(pair, Pair::Same)) {
                return Err(Failure::GivenBack(Why::Unsure));
            }
        }
        let end = limit.map_or(batch.rows as u64, |limit| skip.saturating_add(limit).min(batch.rows as u64));
        let rows: Vec<u32> = (skip.min(end)..end).map(|row| row as u32).collect();
        Ok(batch.gather(&rows))
    }
}
