//! How many rows there will be, about.

use std::collections::HashMap;

use crate::expr::{Comparison, Expr, Slot};
use crate::hash_join::JoinKind;
use crate::plan::Plan;
use crate::planner::{slots_of, Unit};

/// What part of the rows a condition leaves.
pub(crate) fn selectivity(condition: &Expr, distinct: &HashMap<Slot, f64>) -> f64 {
    let of_one = |expr: &Expr| match expr {
        Expr::Slot(slot, _) => distinct.get(slot).map_or(0.05, |distinct| 1.0 / distinct.max(1.0)),
        _ => 0.05,
    };
    match condition {
        Expr::Compare(Comparison::Equal | Comparison::Same, a, b) => match (&**a, &**b) {
            (expr, Expr::Constant(..)) | (Expr::Constant(..), expr) => of_one(expr),
            (a, b) => of_one(a).min(of_one(b)),
        },
        Expr::Compare(Comparison::NotEqual, ..) => 0.95,
        Expr::Compare(..) => 0.33,
        Expr::In(of, list) => (of_one(of) * list.len() as f64).min(1.0),
        Expr::Test(..) => 0.1,
        Expr::IsNull(_) => 0.1,
        Expr::Not(part) => (1.0 - selectivity(part, distinct)).max(0.05),
        Expr::And(parts) => parts.iter().map(|part| selectivity(part, distinct)).product(),
        Expr::Or(parts) => parts.iter().map(|part| selectivity(part, distinct)).sum::<f64>().min(1.0),
        _ => 0.5,
    }
}

/// How many rows two units have when they are joined.
pub(crate) fn of_join(
    first: &Unit,
    second: &Unit,
    keys: &[(Expr, Expr)],
    distinct: &HashMap<Slot, f64>,
) -> f64 {
    // Of an expression of several columns: those of the one with the most.
    let of = |expr: &Expr| match expr {
        Expr::IsNull(_) => Some(1.0),
        _ => slots_of(expr).iter().filter_map(|slot| distinct.get(slot).copied()).max_by(f64::total_cmp),
    };
    // Where nobody knows, the smaller side is thought to have each key once.
    let unknown = first.rows.min(second.rows);
    let of_pair = |(a, b): &(Expr, Expr)| match (of(a), of(b)) {
        (Some(a), Some(b)) => a.max(b).max(1.0),
        (Some(known), None) | (None, Some(known)) => known.max(1.0),
        (None, None) => unknown.max(1.0),
    };
    let mut divisor: f64 = keys.iter().map(of_pair).product();
    // Several columns have together no more values than there are rows.
    if keys.len() > 1 {
        let largest = keys.iter().map(of_pair).fold(1.0, f64::max);
        divisor = divisor.min(largest.max(first.rows).max(second.rows));
    }
    (first.rows * second.rows / divisor).max(1.0)
}

/// How many rows a plan gives.
pub(crate) fn of_plan(plan: &Plan, distinct: &HashMap<Slot, f64>) -> f64 {
    let inputs: Vec<f64> = plan.inputs().into_iter().map(|input| of_plan(input, distinct)).collect();
    of_operator(plan, &inputs, distinct)
}

/// How many an operator gives whose inputs give so many.
pub(crate) fn of_operator(plan: &Plan, inputs: &[f64], distinct: &HashMap<Slot, f64>) -> f64 {
    let left = |rows: f64, conditions: &[Expr]| {
        conditions.iter().fold(rows, |rows, condition| rows * selectivity(condition, distinct)).max(1.0)
    };
    let first = inputs.first().copied().unwrap_or(1.0);
    match plan {
        Plan::One => 1.0,
        Plan::Scan { rows, filter, .. } => left(*rows, filter),
        Plan::Filter(_, condition) => left(first, std::slice::from_ref(condition)),
        Plan::Project(..) => first,
        Plan::Join(join) => {
            let unit = |rows: f64| Unit { plan: Plan::One, slots: Vec::new(), rows };
            let second = inputs.get(1).copied().unwrap_or(1.0);
            let rows = of_join(&unit(first), &unit(second), &join.keys, distinct);
            match join.kind {
                JoinKind::Inner => left(rows, join.residual.as_slice()),
                JoinKind::Left => rows.max(first),
                JoinKind::Single | JoinKind::Mark(_) => first,
                JoinKind::Semi | JoinKind::Anti | JoinKind::AntiNull => (first * 0.3).max(1.0),
            }
        }
        Plan::Aggregate { is_one: true, .. } => 1.0,
        Plan::Aggregate { groups, .. } => {
            let of_group = |(_, group): &(Slot, Expr)| match group {
                Expr::Slot(slot, _) => distinct.get(slot).copied().unwrap_or(first),
                _ => first / 10.0,
            };
            groups.iter().map(of_group).product::<f64>().min(first).max(1.0)
        }
        // The levels above are few, mostly.
        Plan::Rollup { .. } => (first / 5.0).max(1.0),
        Plan::Window { .. } | Plan::Sets(_) => first,
        Plan::Sort { limit, .. } => limit.map_or(first, |limit| first.min(limit as f64)),
        Plan::Union(..) => inputs.iter().sum(),
    }
}
