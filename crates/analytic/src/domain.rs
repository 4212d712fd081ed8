//! Tables that nothing but the rows around them tie together: `outer LEFT JOIN (a JOIN c) ON a.x = outer.x AND c.y = outer.y`, or a
//! query `(SELECT COUNT(*) FROM a JOIN c WHERE a.x = outer.x AND c.y = outer.y)`.
//!
//! What is inside is joined first, and here that would be each row of `a` beside each of `c`. Few of these pairs have a row around
//! them. So, where conditions do not connect all units:
//!
//! 1. What is equal to the same value is equal: of `a.x = outer.x AND c.y = outer.x` follows `a.x = c.y`.
//! 2. The **domain** is one more unit: the combinations of `outer.x` and `outer.y`, each once, are joined with `a` and `c` (Neumann and
//!    Kemper, "Unnesting Arbitrary Queries", BTW 2015). A pair of `a` and `c` has one combination at most, so none comes twice; the
//!    join with the rows around stays what it is, so a pair too many does not matter, and the domain may be that of more rows than
//!    there are around: conditions that are no matter of these columns alone, or that may fail, are left out.
//! 3. Where neither helps and the pairs are many, the query is given back: the server looks up what is tied to one row at a time.

use std::collections::HashMap;

use crate::column::Kind;
use crate::estimate::of_plan;
use crate::expr::{Comparison, Expr, Slot};
use crate::hash_join::JoinKind;
use crate::plan::{Join, Plan};
use crate::planner::{key_of, keys_of, slots_of, Planner, Unit};

/// All pairs are no trouble up to here.
const PAIRS_FEW: f64 = 1024.0;
/// Beyond, they are too many.
const PAIRS_MAX: f64 = 1e6;

/// Rows that are scanned while a pair is made and held, about.
const SCANNED_PER_PAIR: f64 = 16.0;

/// Tables that are read for a domain, at most: it may be a part of what another is made of.
const SCANS_MAX: usize = 8;

/// What ties rows to those around them.
pub(crate) struct Around {
    plan: Plan,
    /// How many rows are around, about.
    rows: f64,
    /// What is equal, of the rows around and of the tied ones.
    ties: Vec<(Expr, Expr)>,
}

impl Around {
    /// Rows that are tied by some conditions to those of a unit; of the tied ones these columns are known.
    pub(crate) fn of<'a>(
        unit: &Unit,
        conditions: impl Iterator<Item = &'a Expr>,
        slots: Vec<Slot>,
    ) -> Option<Around> {
        let inner = Unit { plan: Plan::One, slots, rows: 1.0 };
        let ties: Vec<_> = conditions.filter_map(|condition| key_of(condition, unit, &inner)).collect();
        (!ties.is_empty()).then(|| Around { plan: unit.plan.clone(), rows: unit.rows, ties })
    }

    /// Whether two units that nothing connects have too many pairs for this.
    pub(crate) fn are_too_many(&self, first: &Unit, second: &Unit) -> bool {
        let pairs = first.rows * second.rows;
        pairs > PAIRS_MAX && pairs > 4.0 * first.rows.max(second.rows).max(self.rows)
    }
}

/// Which units conditions connect: those of one number.
struct Parts(Vec<usize>);

impl Parts {
    fn of(units: &[Unit], conditions: &[Expr]) -> Parts {
        let mut parts = Parts((0..units.len()).collect());
        for a in 0..units.len() {
            for b in a + 1..units.len() {
                if conditions.iter().any(|condition| !keys_of(condition, &units[a], &units[b]).is_empty()) {
                    parts.connect(a, b);
                }
            }
        }
        parts
    }

    fn connect(&mut self, a: usize, b: usize) {
        let (kept, gone) = (self.0[a], self.0[b]);
        self.0.iter_mut().filter(|part| **part == gone).for_each(|part| *part = kept);
    }

    fn are_connected(&self) -> bool {
        self.0.iter().all(|part| *part == self.0[0])
    }

    /// How many pairs (or triples) there would be of those of these parts.
    fn pairs(&self, units: &[Unit], parts: &[usize]) -> f64 {
        let rows = |part: &usize| {
            let of_part = units.iter().zip(&self.0).filter(|(_, known)| *known == part);
            of_part.map(|(unit, _)| unit.rows).fold(1.0, f64::max)
        };
        parts.iter().map(rows).product()
    }
}

impl Planner<'_> {
    /// Connects units by what ties them to the rows around them: steps 1 and 2 of the head of this file.
    pub(crate) fn connect(&mut self, units: &mut Vec<Unit>, conditions: &mut Vec<Expr>, around: &Around) {
        let mut parts = Parts::of(units, conditions);
        if units.len() < 2 || parts.are_connected() {
            return;
        }
        let unit_of = |of: &Expr| units.iter().position(|unit| unit.has_all(&slots_of(of)));
        let ties: Vec<_> =
            around.ties.iter().filter_map(|(outer, own)| Some((outer, own, unit_of(own)?))).collect();
        for (at, (outer, own, unit)) in ties.iter().enumerate() {
            let same = ties[..at].iter().find(|(other_outer, other, other_unit)| {
                other_outer == outer
                    && are_of_one_kind(own.kind(), other.kind())
                    && parts.0[*other_unit] != parts.0[*unit]
            });
            if let Some((_, other, other_unit)) = same {
                conditions.push(equal((*other).clone(), (*own).clone()));
                parts.connect(*other_unit, *unit);
            }
        }
        if let Some(domain) = self.domain(units, &parts, &ties, &around.plan, conditions) {
            units.push(domain);
        }
    }

    /// See the head of this file; with the conditions that connect it. `None`: it would be of no use, or cannot be made.
    fn domain(
        &mut self,
        units: &[Unit],
        parts: &Parts,
        ties: &[(&Expr, &Expr, usize)],
        around: &Plan,
        conditions: &mut Vec<Expr>,
    ) -> Option<Unit> {
        let ties: Vec<_> = ties.iter().filter(|(outer, own, _)| is_of_domain(outer, own)).collect();
        let mut tied: Vec<usize> = ties.iter().map(|(.., unit)| parts.0[*unit]).collect();
        tied.sort_unstable();
        tied.dedup();
        let pairs = parts.pairs(units, &tied);
        if tied.len() < 2 || pairs <= PAIRS_FEW {
            return None;
        }
        let wanted: Vec<Slot> = ties.iter().flat_map(|(outer, ..)| slots_of(outer)).collect();
        let input = at_least(around, &wanted, &self.distinct)?;
        if input.rows_scanned() > SCANNED_PER_PAIR * pairs || input.scans() > SCANS_MAX {
            return None;
        }
        let input_rows = of_plan(&input, &self.distinct);
        let mut groups: Vec<(Slot, Expr)> = Vec::new();
        let mut rows = 1.0;
        for (outer, own, _) in ties {
            let known = groups.iter().find(|(_, group)| group == *outer).map(|(slot, _)| *slot);
            let slot = known.unwrap_or_else(|| self.new_slot());
            if known.is_none() {
                let of_outer = slots_of(outer).first().and_then(|slot| self.distinct.get(slot)).copied();
                let distinct = of_outer.unwrap_or(input_rows);
                self.distinct.insert(slot, distinct);
                rows *= distinct.max(1.0);
                groups.push((slot, (*outer).clone()));
            }
            conditions.push(equal(Expr::Slot(slot, outer.kind()), (*own).clone()));
        }
        let slots = groups.iter().map(|(slot, _)| *slot).collect();
        let plan = Plan::Aggregate { input: Box::new(input), groups, told: Vec::new(), is_one: false };
        Some(Unit { plan, slots, rows: f64::min(rows, input_rows) })
    }
}

fn equal(a: Expr, b: Expr) -> Expr {
    Expr::Compare(Comparison::Equal, Box::new(a), Box::new(b))
}

/// Whether equal to the same is equal to each other.
fn are_of_one_kind(a: Kind, b: Kind) -> bool {
    let is_number = |kind| matches!(kind, Kind::Signed | Kind::Unsigned | Kind::Decimal(_));
    a == b || (is_number(a) && is_number(b))
}

/// Groups of texts that are equal and not the same would have no one name.
fn is_of_domain(outer: &Expr, own: &Expr) -> bool {
    matches!(outer, Expr::Slot(..)) && !outer.kind().is_text() && !own.may_fail()
}

/// A plan that has all combinations of some columns that another has, but for those with a NULL, and maybe others. However often it is
/// executed, it has the same ones. `None`: none is found.
fn at_least(plan: &Plan, wanted: &[Slot], distinct: &HashMap<Slot, f64>) -> Option<Plan> {
    let is_in = |slots: &[(Slot, Kind)], slot: &Slot| slots.iter().any(|(known, _)| known == slot);
    let given = plan.slots();
    if !wanted.iter().all(|slot| is_in(&given, slot)) {
        return None;
    }
    match plan {
        Plan::Scan { table, parts, rows, columns, filter } => {
            let (table, parts, rows, columns) = (*table, *parts, *rows, columns.clone());
            let filter = filter.iter().filter(|condition| !condition.may_fail()).cloned().collect();
            Some(Plan::Scan { table, parts, rows, columns, filter })
        }
        Plan::Filter(input, condition) => {
            let rows = at_least(input, wanted, distinct)?;
            // Other columns may be NULL in `input`, and are not looked at.
            let is_known = slots_of(condition).iter().all(|slot| wanted.contains(slot));
            Some(match is_known && !condition.may_fail() {
                true => Plan::Filter(Box::new(rows), condition.clone()),
                false => rows,
            })
        }
        Plan::Project(input, outputs) => renamed(input, outputs, wanted, distinct),
        Plan::Aggregate { input, groups, .. } => renamed(input, groups, wanted, distinct),
        Plan::Sort { input, .. } | Plan::Window { input, .. } => at_least(input, wanted, distinct),
        Plan::Join(join) => {
            let (of_probe, of_build) = (join.probe.slots(), join.build.slots());
            let is_of_pairs = matches!(join.kind, JoinKind::Inner | JoinKind::Left);
            let part = if wanted.iter().all(|slot| is_in(&of_probe, slot)) {
                at_least(&join.probe, wanted, distinct)
            } else if is_of_pairs && wanted.iter().all(|slot| is_in(&of_build, slot)) {
                at_least(&join.build, wanted, distinct)
            } else {
                None
            };
            let pairs = if is_of_pairs { of_pairs(join, wanted, distinct) } else { None };
            match (part, pairs) {
                (Some(part), Some(pairs)) => {
                    let is_smaller = join.kind == JoinKind::Inner
                        && of_plan(&pairs, distinct) * 4.0 < of_plan(&part, distinct);
                    Some(if is_smaller { pairs } else { part })
                }
                (part, pairs) => part.or(pairs),
            }
        }
        Plan::One | Plan::Rollup { .. } | Plan::Sets(_) | Plan::Union(..) => None,
    }
}

/// Of columns that go by other names.
fn renamed(
    input: &Plan,
    outputs: &[(Slot, Expr)],
    wanted: &[Slot],
    distinct: &HashMap<Slot, f64>,
) -> Option<Plan> {
    let outputs: Vec<_> = outputs.iter().filter(|(slot, _)| wanted.contains(slot)).cloned().collect();
    let is_plain = outputs.iter().all(|(_, expr)| matches!(expr, Expr::Slot(..)));
    let is_whole = wanted.iter().all(|slot| outputs.iter().any(|(output, _)| output == slot));
    let below: Vec<Slot> = outputs.iter().flat_map(|(_, expr)| slots_of(expr)).collect();
    let rows = if is_plain && is_whole { at_least(input, &below, distinct)? } else { return None };
    Some(Plan::Project(Box::new(rows), outputs))
}

/// Of rows that have a partner: those of a LEFT JOIN without one have a NULL. What they are joined by is not NULL, as it is equal.
fn of_pairs(join: &Join, wanted: &[Slot], distinct: &HashMap<Slot, f64>) -> Option<Plan> {
    let is_plain = |(a, b): &(Expr, Expr)| matches!((a, b), (Expr::Slot(..), Expr::Slot(..)));
    if join.keys.is_empty() || !join.keys.iter().all(is_plain) {
        return None;
    }
    let of_side = |side: &Plan, keys: &mut dyn Iterator<Item = &Expr>| {
        let given = side.slots();
        let is_given = |slot: &&Slot| given.iter().any(|(known, _)| known == *slot);
        let mut slots: Vec<Slot> = wanted.iter().filter(is_given).copied().collect();
        slots.extend(keys.flat_map(slots_of));
        at_least(side, &slots, distinct)
    };
    Some(Plan::Join(Box::new(Join {
        kind: JoinKind::Inner,
        probe: of_side(&join.probe, &mut join.keys.iter().map(|(key, _)| key))?,
        build: of_side(&join.build, &mut join.keys.iter().map(|(_, key)| key))?,
        keys: join.keys.clone(),
        residual: None,
        is_marked: false,
        is_probe_first: join.is_probe_first,
    })))
}
