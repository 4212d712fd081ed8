//! UNION, EXCEPT and INTERSECT, from the left to the right. NULL is the same as NULL there.

use std::collections::{HashMap, HashSet};

use pando_query::{Failure, Why};

use crate::block::{Block, Operation};
use crate::column::{Batch, Kind, UNSUPPORTED};
use crate::eval::{wrong_plan, Result};
use crate::execute::Run;
use crate::expr::Slot;
use crate::keys::{KeyPart, Keys};
use crate::plan::Plan;
use crate::planner::{Planner, Unit};

/// Rows after which is asked whether to go on.
const ROWS_AT_ONCE: usize = 1 << 16;

/// EXCEPT or INTERSECT of two plans, of which each gives these columns.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    pub operation: Operation,
    pub is_distinct: bool,
    pub left: (Plan, Vec<Slot>),
    pub right: (Plan, Vec<Slot>),
    pub slots: Vec<(Slot, Kind)>,
}

impl Planner<'_> {
    /// A query and those that it is taken together with; its columns are the first one's outputs.
    pub(crate) fn together(&mut self, block: &Block) -> Result<Unit> {
        let mut first = block.clone();
        let others = std::mem::take(&mut first.others);
        let kinds: Vec<Kind> = block.outputs.iter().map(|(_, expr)| expr.kind()).collect();
        let names: Vec<Slot> = block.outputs.iter().map(|(slot, _)| *slot).collect();
        let slots: Vec<(Slot, Kind)> = names.iter().copied().zip(kinds.iter().copied()).collect();
        let mut all = self.block(&first)?;
        for other in others {
            let of_other: Vec<Kind> = other.block.outputs.iter().map(|(_, expr)| expr.kind()).collect();
            if of_other != kinds {
                return Err(wrong_plan("queries of different kinds are taken together"));
            }
            let unit = self.block(&other.block)?;
            let right = (unit.plan, other.block.outputs.iter().map(|(slot, _)| *slot).collect());
            let rows = match other.operation {
                Operation::Union => all.rows + unit.rows,
                _ => all.rows,
            };
            let plan = match (other.operation, all.plan) {
                (Operation::Union, Plan::Union(mut inputs, slots)) => {
                    inputs.push(right);
                    Plan::Union(inputs, slots)
                }
                (Operation::Union, left) => Plan::Union(vec![(left, names.clone()), right], slots.clone()),
                (operation, left) => Plan::Sets(Box::new(Sets {
                    operation,
                    is_distinct: other.is_distinct,
                    left: (left, names.clone()),
                    right,
                    slots: slots.clone(),
                })),
            };
            all = Unit { plan, slots: names.clone(), rows };
            if other.operation == Operation::Union && other.is_distinct {
                all = self.distinct_rows(all);
            }
        }
        Ok(all)
    }
}

impl Run<'_> {
    /// The rows of EXCEPT or INTERSECT.
    pub(crate) fn sets(&mut self, sets: &Sets) -> Result<Batch> {
        let left = self.rows(&sets.left.0, &sets.left.1)?;
        let right = self.rows(&sets.right.0, &sets.right.1)?;
        let parts = sets.slots.iter().map(|(_, kind)| KeyPart::of(*kind, &self.texts.collations));
        let keys = Keys::of_groups(parts.collect::<Option<Vec<_>>>().ok_or(UNSUPPORTED)?);
        if sets.slots.len() > 63 {
            return Err(UNSUPPORTED);
        }
        let width = keys.words;
        self.budget.take((left.rows + right.rows) * (width * 8 + 24))?;
        let of_right = keys.encode(&right.columns, right.rows, true, self.budget)?;
        let of_left = keys.encode(&left.columns, left.rows, true, self.budget)?;
        if keys.is_ambiguous() {
            return Err(Failure::GivenBack(Why::Undetermined));
        }
        let mut counts: HashMap<&[u64], usize> = HashMap::new();
        of_right.chunks(width).for_each(|words| *counts.entry(words).or_default() += 1);
        let is_except = sets.operation == Operation::Except;
        let mut seen: HashSet<&[u64]> = HashSet::new();
        let mut rows = Vec::new();
        for (row, words) in of_left.chunks(width).enumerate() {
            if row % ROWS_AT_ONCE == 0 {
                self.eval().go_on()?;
            }
            let is_kept = match (sets.is_distinct, counts.get_mut(words)) {
                (true, count) => count.is_some() != is_except && seen.insert(words),
                // Each row of the one has its partner in the other.
                (false, Some(count)) if *count > 0 => {
                    *count -= 1;
                    !is_except
                }
                (false, _) => is_except,
            };
            if is_kept {
                rows.push(row as u32);
            }
        }
        Ok(left.gather(&rows))
    }
}
