//! EXISTS and IN as values, and NOT IN of a query that is tied to the one around it.
//!
//! A join gives each row a mark: whether it has a partner. What a NULL leaves open is given back: the server was seen to have
//! ideas of its own of NOT IN there.

use crate::block::Block;
use crate::column::{Column, Data, Kind, Value};
use crate::eval::{Result, TRUE, UNKNOWN};
use crate::expr::{Expr, Slot};
use crate::hash_join::JoinKind;
use crate::plan::{Join, Plan};
use crate::planner::{and, Planner, Unit};
use crate::subquery::Asked;

impl Column {
    /// What a condition is of each row.
    pub(crate) fn of_truths(truths: &[u8]) -> Column {
        let data = Data::Small(truths.iter().map(|truth| i64::from(*truth == TRUE)).collect());
        let has_nulls = truths.contains(&UNKNOWN);
        let nulls = has_nulls.then(|| truths.iter().map(|truth| *truth == UNKNOWN).collect());
        Column { data, nulls }
    }
}

fn number(value: i128) -> Expr {
    Expr::Constant(Value::Number(value), Kind::Signed)
}

/// A mark that is not NULL.
fn is_true(mark: Slot) -> Expr {
    let mark = Expr::Slot(mark, Kind::Signed);
    Expr::Case(Kind::Signed, vec![(mark, number(1))], Box::new(number(0)))
}

impl Planner<'_> {
    /// Whether each row has a partner in a query, and the name of that.
    pub(crate) fn marked(&mut self, unit: Unit, left: &[Expr], block: &Block) -> Result<(Unit, Expr)> {
        let asked = self.asked_query(unit, left, block, !left.is_empty())?;
        let is_tied = asked.is_tied();
        let (unit, found, open) = self.with_marks(asked);
        if left.is_empty() {
            return Ok((unit, is_true(found)));
        }
        let value = match open {
            Some(open) => {
                let is_sure = Expr::Or(vec![is_true(found), Expr::Not(Box::new(open))]);
                Expr::Sure(Box::new(is_sure), Box::new(is_true(found)))
            }
            None if is_tied => is_true(found),
            None => {
                let mark = Expr::Slot(found, Kind::Signed);
                let is_known = Expr::Not(Box::new(Expr::IsNull(Box::new(mark))));
                Expr::Sure(Box::new(is_known), Box::new(is_true(found)))
            }
        };
        Ok((unit, value))
    }

    /// With a mark of what has a partner; and, of IN of a tied query, what says that a NULL leaves it open.
    fn with_marks(&mut self, asked: Asked) -> (Unit, Slot, Option<Expr>) {
        let is_tied = asked.is_tied();
        let Asked { unit, inner, keys, left, residual } = asked;
        let found = self.new_slot();
        let mut slots = unit.slots.clone();
        slots.push(found);
        let both = keys.iter().chain(&left).cloned().collect();
        let mut plan = mark(found, unit.plan, inner.plan.clone(), both, residual.clone());
        let mut open = Vec::new();
        // Of pairs that are tied one side may be NULL. Rows are compared with few of the other side: with those that are NULL, and where they
        // are NULL themselves.
        for (a, b) in left.into_iter().filter(|_| is_tied) {
            let of_nulls = inner.plan.clone().filtered(Expr::IsNull(Box::new(b)));
            let mut of_null = keys.clone();
            of_null.push((Expr::IsNull(Box::new(a)), number(1)));
            for (build, keys) in [(of_nulls, keys.clone()), (inner.plan.clone(), of_null)] {
                let slot = self.new_slot();
                plan = mark(slot, plan, build, keys, residual.clone());
                slots.push(slot);
                open.push(is_true(slot));
            }
        }
        let open = (!open.is_empty()).then_some(Expr::Or(open));
        (Unit { plan, slots, rows: unit.rows }, found, open)
    }

    /// The rows of which NOT IN is true.
    pub(crate) fn tied_not_in(&mut self, asked: Asked, slots: Vec<Slot>) -> Result<Unit> {
        let (unit, found, open) = self.with_marks(asked);
        let none = Expr::Not(Box::new(is_true(found)));
        let plan = unit.plan.filtered(none);
        let plan = match open {
            Some(open) => {
                let is_sure = Expr::Not(Box::new(open));
                Plan::Filter(Box::new(plan), Expr::Sure(Box::new(is_sure), Box::new(number(1))))
            }
            None => plan,
        };
        Ok(Unit { plan, slots, rows: (unit.rows * 0.3).max(1.0) })
    }
}

fn mark(slot: Slot, probe: Plan, build: Plan, keys: Vec<(Expr, Expr)>, residual: Vec<Expr>) -> Plan {
    let (kind, residual) = (JoinKind::Mark(slot), and(residual));
    Plan::Join(Box::new(Join { kind, probe, build, keys, residual, is_marked: false, is_probe_first: false }))
}
