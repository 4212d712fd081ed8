//! GROUP BY ... WITH ROLLUP: the groups, the groups of these by all but their last column, and so on, up to one of all rows.
//!
//! Rows are gone over once: what is known of groups is added up level by level. A level is a number: how many of the columns a
//! row is a group of; the others are NULL in it, which is not the NULL of a group.

use std::sync::Arc;

use crate::column::{Batch, Column, Kind, Value};
use crate::eval::{wrong_plan, Result};
use crate::execute::Run;
use crate::expr::{Comparison, Expr, Slot};
use crate::plan::{Plan, Told};
use crate::planner::{slots_of, Planner, Unit};

impl Planner<'_> {
    /// Groups of a unit's rows on all levels, and their order: each row comes after those that it is told of.
    pub(crate) fn rolled_up(
        &mut self,
        input: Unit,
        groups: Vec<(Slot, Expr)>,
        told: Vec<Told>,
        descends: &[bool],
        having: &Option<Expr>,
    ) -> Result<(Unit, Vec<(Expr, bool)>)> {
        let of_group = |slot: &Slot| groups.iter().any(|(group, _)| group == slot);
        if having.iter().flat_map(slots_of).any(|slot| of_group(&slot)) {
            return Err(wrong_plan("ROLLUP, and HAVING of what it is a group of"));
        }
        let kind = |told: &Told| told.of.as_ref().map_or(Kind::Signed, Expr::kind);
        if groups.len() != descends.len() || told.iter().any(|told| told.function.is_of_order(kind(told))) {
            return Err(wrong_plan("ROLLUP of what depends on the order of rows"));
        }
        let level = self.new_slot();
        let mut order = Vec::new();
        for (at, ((slot, group), descends)) in groups.iter().zip(descends).enumerate() {
            let least = Expr::Constant(Value::Number(at as i128 + 1), Kind::Signed);
            let is_above =
                Expr::Compare(Comparison::Less, Box::new(Expr::Slot(level, Kind::Signed)), Box::new(least));
            order.push((is_above, false));
            order.push((Expr::Slot(*slot, group.kind()), *descends));
        }
        let Unit { plan, mut slots, rows } = input;
        slots.push(level);
        let plan = Plan::Rollup { input: Box::new(plan), groups, told, level };
        Ok((Unit { plan, slots, rows: rows * 2.0 }, order))
    }
}

impl Run<'_> {
    /// The groups of all levels, with the level of each.
    pub(crate) fn rolled_up(
        &mut self,
        input: &Plan,
        groups: &[(Slot, Expr)],
        told: &[Told],
    ) -> Result<Batch> {
        let of = self.gathering(input, groups, told, false)?;
        let (finest, shape) = self.gathered(&of, self.budget)?;
        let mut levels = vec![(finest, groups.len())];
        for kept in (0..groups.len()).rev() {
            let (finer, _) = levels.last().ok_or_else(|| wrong_plan("no groups"))?;
            let upper = finer.rolled_up(&shape, kept, self.budget)?;
            levels.push((upper, kept));
        }
        let mut batches = Vec::new();
        for (level, kept) in levels {
            self.eval().go_on()?;
            let mut batch = level.finish(&shape, self.budget, self.eval())?;
            let number = Value::Number(kept as i128);
            batch.columns.push(Arc::new(Column::constant(&number, Kind::Signed, batch.rows)));
            batches.push(batch);
        }
        let kinds: Vec<Kind> = groups
            .iter()
            .map(|(_, group)| group.kind())
            .chain(told.iter().map(|told| told.kind))
            .chain([Kind::Signed])
            .collect();
        Ok(Batch::concat(&batches, &kinds))
    }
}
