//! From what a query says to how it is answered: which tables are joined in which order, where conditions are evaluated.
//!
//! FROM becomes **units**: tables, derived tables, each with the conditions on it alone. Two units at a time are joined,
//! those first whose join is thought to have the fewest rows; the smaller one is held in memory. What only the
//! rows around connect is joined through these (`domain.rs`). LEFT JOINs come after the others, as a row that is not there yet
//! cannot be lost there; then queries in conditions (`subquery.rs`).

use std::collections::HashMap;

use pando_query::{Failure, Why};

use crate::block::{Block, From, Source};
use crate::column::{Kind, Value};
use crate::determined;
use crate::domain::Around;
use crate::estimate::{of_join, selectivity};
use crate::eval::{wrong_plan, Result};
use crate::expr::{Comparison, Expr, Function, Slot};
use crate::hash_join::JoinKind;
use crate::plan::{Join, Plan, Told};
use crate::renamed::is_same_query;

/// Rows that are joined with others.
#[derive(Debug)]
pub(crate) struct Unit {
    pub plan: Plan,
    pub slots: Vec<Slot>,
    /// How many, about.
    pub rows: f64,
}

impl Unit {
    /// Stands in a unit's place while that becomes another.
    pub(crate) fn of_nothing() -> Unit {
        Unit { plan: Plan::One, slots: Vec::new(), rows: 1.0 }
    }

    pub(crate) fn has_all(&self, slots: &[Slot]) -> bool {
        slots.iter().all(|slot| self.slots.contains(slot))
    }

    fn filter(&mut self, condition: Expr, distinct: &HashMap<Slot, f64>) {
        self.rows = (self.rows * selectivity(&condition, distinct)).max(1.0);
        let plan = std::mem::replace(&mut self.plan, Plan::One);
        self.plan = plan.filtered(condition);
    }
}

/// Rows with their groups made, what is left of the select list, and of ORDER BY.
pub(crate) type Grouped = (Unit, Vec<(Slot, Expr)>, Vec<(Expr, bool)>);

/// Whether a group is by this value, and only makes sure of something about it.
fn is_surely(group: &Expr, value: &Expr) -> bool {
    matches!(group, Expr::Sure(_, of) if **of == *value)
}

/// What groups are by.
struct Groups {
    input: Unit,
    groups: Vec<(Slot, Expr)>,
    /// Groups that are values of queries, as they were said.
    asked: Vec<(Expr, Expr)>,
}

/// A LEFT JOIN that waits for its turn.
struct Outer<'f> {
    right: Right<'f>,
    /// The columns of its right side.
    slots: Vec<Slot>,
    on: Vec<Expr>,
}

/// The right side of a LEFT JOIN. How several tables are joined there is also a matter of what is on the left.
enum Right<'f> {
    Unit(Unit),
    Nest(&'f [From]),
}

/// Says what part of a table's rows conditions leave, by looking at some of them; `None`: nobody knows.
pub(crate) type Sample<'a> = dyn Fn(&Plan) -> Option<f64> + 'a;

/// Plans a query.
pub(crate) struct Planner<'a> {
    sample: Option<&'a Sample<'a>>,
    pub next_slot: Slot,
    /// What ties the rows of the FROM that is planned next to others.
    pub around: Option<Around>,
    /// How many different values a column has, about.
    pub distinct: HashMap<Slot, f64>,
}

pub(crate) fn slots_of(expr: &Expr) -> Vec<Slot> {
    let mut slots = Vec::new();
    expr.slots(&mut slots);
    slots
}

impl<'a> Planner<'a> {
    pub(crate) fn new(block: &Block, sample: Option<&'a Sample<'a>>) -> Planner<'a> {
        let mut slots = Vec::new();
        block.slots(&mut slots);
        largest(block, &mut slots);
        let next_slot = slots.iter().max().map_or(0, |most| most + 1);
        Planner { sample, next_slot, around: None, distinct: HashMap::new() }
    }

    pub(crate) fn new_slot(&mut self) -> Slot {
        self.next_slot += 1;
        self.next_slot - 1
    }

    /// The plan of a query that does not depend on another; its columns are the block's outputs.
    pub(crate) fn block(&mut self, block: &Block) -> Result<Unit> {
        if !block.others.is_empty() {
            return self.together(block);
        }
        let input = self.rows(block)?;
        let unit = self.grouped(block, input)?;
        let unit = self.windowed(unit)?;
        self.finished(block, unit)
    }

    /// FROM and WHERE.
    pub(crate) fn rows(&mut self, block: &Block) -> Result<Unit> {
        let mut conditions = Vec::new();
        if let Some(filter) = &block.filter {
            add_conditions(filter.clone(), &mut conditions);
        }
        self.joined(&block.from, conditions)
    }

    /// FROM, with conditions.
    fn joined(&mut self, from: &[From], mut conditions: Vec<Expr>) -> Result<Unit> {
        let around = self.around.take();
        let (mut units, mut outers) = (Vec::new(), Vec::new());
        self.sources(from, &mut units, &mut outers, &mut conditions)?;
        // A LEFT JOIN whose rows without a partner a condition throws away is a JOIN.
        loop {
            let rejected =
                |outer: &Outer| conditions.iter().any(|condition| rejects_nulls(condition, &outer.slots));
            let Some(at) = outers.iter().position(rejected) else { break };
            let outer = outers.remove(at);
            conditions.extend(outer.on);
            match outer.right {
                Right::Unit(unit) => units.push(unit),
                Right::Nest(nest) => {
                    let mut inner = Vec::new();
                    self.sources(nest, &mut units, &mut inner, &mut conditions)?;
                    outers.splice(at..at, inner);
                }
            }
        }
        let (with_query, plain): (Vec<_>, Vec<_>) =
            conditions.into_iter().partition(|condition| condition.has_query());
        let mut conditions = plain;
        add_implied(&units, &mut conditions);
        let mut left = Vec::new();
        for condition in conditions {
            let slots = slots_of(&condition);
            match units.iter_mut().find(|unit| !slots.is_empty() && unit.has_all(&slots)) {
                Some(unit) => unit.filter(condition, &self.distinct),
                None => left.push(condition),
            }
        }
        // Which order is best depends on how many rows are left of each.
        let is_alone = units.len() + with_query.len() + outers.len() == 1;
        units.iter_mut().for_each(|unit| self.look_at(unit, if is_alone { 1e6 } else { 8192.0 }));
        let mut late = Vec::new();
        for condition in with_query {
            match self.early_query(&condition, &mut units)? {
                true => {}
                false => late.push(condition),
            }
        }
        if let Some(around) = &around {
            self.connect(&mut units, &mut left, around);
        }
        let mut unit = self.join_all(units, &mut left, &mut late, around.as_ref())?;
        for outer in outers {
            unit = self.outer_join(unit, outer)?;
        }
        for condition in left {
            unit.filter(condition, &self.distinct);
        }
        for condition in late {
            unit = self.with_query(unit, condition)?;
        }
        Ok(unit)
    }

    /// Counts some rows of a table instead of guessing how many its conditions leave.
    fn look_at(&self, unit: &mut Unit, rows_min: f64) {
        let (Some(sample), Plan::Scan { rows, filter, .. }) = (self.sample, &unit.plan) else { return };
        if filter.is_empty() || *rows < rows_min {
            return;
        }
        if let Some(part) = sample(&unit.plan) {
            unit.rows = (rows * part).max(1.0);
        }
    }

    fn sources<'f>(
        &mut self,
        from: &'f [From],
        units: &mut Vec<Unit>,
        outers: &mut Vec<Outer<'f>>,
        conditions: &mut Vec<Expr>,
    ) -> Result<()> {
        for one in from {
            let mut on = Vec::new();
            if let Some(condition) = &one.on {
                add_conditions(condition.clone(), &mut on);
            }
            if !one.is_outer {
                conditions.extend(on);
                match &one.source {
                    Source::Nest(nest) => self.sources(nest, units, outers, conditions)?,
                    other => units.push(self.source(other)?),
                }
                continue;
            }
            if on.iter().any(Expr::has_query) {
                return Err(wrong_plan("a query in ON"));
            }
            let outer = match &one.source {
                Source::Nest(nest) => {
                    let mut slots = Vec::new();
                    one.given(&mut slots);
                    Outer { right: Right::Nest(nest), slots, on }
                }
                other => {
                    let unit = self.source(other)?;
                    Outer { slots: unit.slots.clone(), right: Right::Unit(unit), on }
                }
            };
            outers.push(outer);
        }
        Ok(())
    }

    fn source(&mut self, source: &Source) -> Result<Unit> {
        match source {
            Source::Table { table, parts, rows, columns, filter, .. } => {
                let rows = (*rows as f64).max(1.0);
                for column in columns.iter().filter(|column| column.distinct > 0) {
                    self.distinct.insert(column.slot, column.distinct as f64);
                }
                let slots = columns.iter().map(|column| column.slot).collect();
                let (table, parts, columns) = (*table, *parts, columns.clone());
                let plan = Plan::Scan { table, parts, rows, columns, filter: Vec::new() };
                let mut unit = Unit { plan, slots, rows };
                if let Some(filter) = filter {
                    unit.filter(filter.clone(), &self.distinct);
                }
                Ok(unit)
            }
            Source::Query(block) => self.block(block),
            Source::Nest(nest) => self.joined(nest, Vec::new()),
        }
    }

    /// Joins all units; conditions that were used are taken out, also of those with queries (`late`). Units that are tied to others may not
    /// have too many pairs.
    fn join_all(
        &mut self,
        mut units: Vec<Unit>,
        conditions: &mut Vec<Expr>,
        late: &mut Vec<Expr>,
        around: Option<&Around>,
    ) -> Result<Unit> {
        if units.is_empty() {
            return Ok(Unit { plan: Plan::One, slots: Vec::new(), rows: 1.0 });
        }
        while units.len() > 1 {
            let mut best: Option<(f64, usize, usize)> = None;
            for a in 0..units.len() {
                for b in a + 1..units.len() {
                    let edges = equalities(conditions, &units[a], &units[b]);
                    // What is not connected waits until nothing else is left.
                    let penalty = if edges.is_empty() { 1e30 } else { 1.0 };
                    let rows = of_join(&units[a], &units[b], &edges, &self.distinct) * penalty;
                    if best.is_none_or(|(known, ..)| rows < known) {
                        best = Some((rows, a, b));
                    }
                }
            }
            let Some((_, a, b)) = best else { break };
            let is_connected = !equalities(conditions, &units[a], &units[b]).is_empty();
            if !is_connected && self.connect_by_query(&mut units, conditions, late)? {
                continue;
            }
            let second = units.remove(b);
            let first = units.remove(a);
            // How many rows there are is known when some have been looked at.
            let are_too_many = around.is_some_and(|around| around.are_too_many(&first, &second));
            if are_too_many && self.sample.is_some() && !is_connected {
                return Err(Failure::GivenBack(Why::Pairs));
            }
            let unit = self.join_two(first, second, conditions);
            units.push(unit);
        }
        units.pop().ok_or_else(|| wrong_plan("no tables"))
    }

    fn join_two(&mut self, first: Unit, second: Unit, conditions: &mut Vec<Expr>) -> Unit {
        let (probe, build) = if first.rows >= second.rows { (first, second) } else { (second, first) };
        let keys = equalities(conditions, &probe, &build);
        conditions.retain(|condition| keys_of(condition, &probe, &build).is_empty());
        let rows = of_join(&probe, &build, &keys, &self.distinct);
        let slots = probe.slots.iter().chain(&build.slots).copied().collect();
        let keys = keys.into_iter().map(|(a, b)| alike(a, b)).collect();
        let join = Join {
            kind: JoinKind::Inner,
            probe: probe.plan,
            build: build.plan,
            keys,
            residual: None,
            is_marked: false,
            is_probe_first: false,
        };
        let mut unit = Unit { plan: Plan::Join(Box::new(join)), slots, rows };
        // What can be asked of the rows now.
        let (now, later): (Vec<_>, Vec<_>) =
            conditions.drain(..).partition(|condition| unit.has_all(&slots_of(condition)));
        *conditions = later;
        if !now.is_empty() {
            for condition in &now {
                unit.rows = (unit.rows * selectivity(condition, &self.distinct)).max(1.0);
            }
            let all = if now.len() == 1 {
                now.into_iter().next().unwrap_or(Expr::And(Vec::new()))
            } else {
                Expr::And(now)
            };
            if let Plan::Join(join) = &mut unit.plan {
                join.residual = Some(all);
            }
        }
        unit
    }

    fn outer_join(&mut self, left: Unit, outer: Outer<'_>) -> Result<Unit> {
        let Outer { right, slots, on } = outer;
        let is_own = |condition: &Expr| slots_of(condition).iter().all(|slot| slots.contains(slot));
        let (own, on): (Vec<_>, Vec<_>) = on.into_iter().partition(is_own);
        let right = match right {
            Right::Unit(mut unit) => {
                own.into_iter().for_each(|condition| unit.filter(condition, &self.distinct));
                unit
            }
            Right::Nest(nest) => {
                self.around = Around::of(&left, on.iter(), slots);
                self.joined(nest, own)?
            }
        };
        let (mut keys, mut residual) = (Vec::new(), Vec::new());
        for condition in on {
            let of_both = keys_of(&condition, &left, &right);
            if of_both.is_empty() {
                residual.push(condition);
            }
            keys.extend(of_both.into_iter().map(|(a, b)| alike(a, b)));
        }
        let rows = of_join(&left, &right, &keys, &self.distinct).max(left.rows);
        let slots = left.slots.iter().chain(&right.slots).copied().collect();
        let is_probe_first = is_small_beside(left.rows, &right.plan);
        let join = Join {
            kind: JoinKind::Left,
            probe: left.plan,
            build: right.plan,
            keys,
            residual: and(residual),
            is_marked: false,
            is_probe_first,
        };
        Ok(Unit { plan: Plan::Join(Box::new(join)), slots, rows })
    }

    /// GROUP BY and HAVING; what is left of the outputs is in `replaced`.
    fn grouped(&mut self, block: &Block, input: Unit) -> Result<Grouped> {
        let (outputs, order) = (block.outputs.clone(), block.order.clone());
        if !block.is_grouped {
            // Without groups HAVING is one more condition.
            return Ok((self.having(input, block.having.clone())?, outputs, order));
        }
        let Groups { mut input, groups, asked } = self.groups(block, input)?;
        let mut told: Vec<Told> = Vec::new();
        let mut replace = |planner: &mut Planner<'_>, expr: &Expr| {
            expr.replaced(&mut |part| {
                let is_it = |group: &Expr| group == part || is_surely(group, part);
                if let Some((slot, group)) = groups.iter().find(|(_, group)| is_it(group)) {
                    return Some(Expr::Slot(*slot, group.kind()));
                }
                if let Some((_, named)) = asked.iter().find(|(said, _)| is_same_query(said, part)) {
                    return Some(named.clone());
                }
                let (function, kind, of) = match part {
                    Expr::Aggregate(function, kind, of) => (*function, *kind, of.as_deref().cloned()),
                    Expr::Slot(slot, kind) if block.determined.contains(slot) => {
                        (Function::Min, *kind, Some(part.clone()))
                    }
                    _ => return None,
                };
                let known = told.iter().find(|told| told.function == function && told.of == of);
                let slot = known.map_or_else(|| planner.new_slot(), |told| told.slot);
                if known.is_none() {
                    told.push(Told { slot, function, kind, of });
                }
                Some(Expr::Slot(slot, kind))
            })
        };
        let outputs: Vec<_> = outputs.iter().map(|(slot, expr)| (*slot, replace(self, expr))).collect();
        let order: Vec<_> = order.iter().map(|(expr, descends)| (replace(self, expr), *descends)).collect();
        let having = block.having.as_ref().map(|having| replace(self, having));
        for told in &mut told {
            if let Some(of) = told.of.take() {
                let (unit, of) = self.with_scalars(input, of)?;
                input = unit;
                told.of = Some(of);
            }
        }
        let is_one = groups.is_empty();
        let of_groups: f64 = groups
            .iter()
            .map(|(_, group)| match group {
                Expr::Slot(slot, _) => self.distinct.get(slot).copied().unwrap_or(input.rows),
                _ => input.rows / 10.0,
            })
            .product();
        let rows = if is_one { 1.0 } else { of_groups.min(input.rows).max(1.0) };
        let slots: Vec<Slot> =
            groups.iter().map(|(slot, _)| *slot).chain(told.iter().map(|told| told.slot)).collect();
        let (unit, order) = match &block.rollup {
            Some(descends) => {
                self.rolled_up(Unit { slots, rows, ..input }, groups, told, descends, &having)?
            }
            None => {
                let (groups, determined) = determined::split(groups);
                let mut plan = Plan::Aggregate { input: Box::new(input.plan), groups, told, is_one };
                if !determined.is_empty() {
                    let known = plan.slots().into_iter().map(|(slot, kind)| (slot, Expr::Slot(slot, kind)));
                    let outputs = known.chain(determined).collect();
                    plan = Plan::Project(Box::new(plan), outputs);
                }
                (Unit { plan, slots, rows }, order)
            }
        };
        Ok((self.having(unit, having)?, outputs, order))
    }

    /// What the groups are by, each said once.
    fn groups(&mut self, block: &Block, mut input: Unit) -> Result<Groups> {
        let mut groups: Vec<(Slot, Expr)> = Vec::new();
        let mut asked = Vec::new();
        for said in &block.groups {
            let (unit, group) = self.with_scalars(input, said.clone())?;
            input = unit;
            if groups.iter().any(|(_, known)| *known == group) {
                if block.rollup.is_some() {
                    return Err(wrong_plan("ROLLUP of the same twice"));
                }
                continue;
            }
            let slot = match &group {
                Expr::Slot(slot, _) => *slot,
                _ => self.new_slot(),
            };
            if said.has_query() {
                asked.push((said.clone(), Expr::Slot(slot, group.kind())));
            }
            groups.push((slot, group));
        }
        Ok(Groups { input, groups, asked })
    }

    fn having(&mut self, mut unit: Unit, having: Option<Expr>) -> Result<Unit> {
        let mut conditions = Vec::new();
        having.into_iter().for_each(|having| add_conditions(having, &mut conditions));
        for condition in conditions {
            unit = self.condition(unit, condition)?;
        }
        Ok(unit)
    }

    /// The select list, DISTINCT, ORDER BY and LIMIT.
    fn finished(&mut self, block: &Block, (mut unit, mut outputs, mut order): Grouped) -> Result<Unit> {
        for (_, expr) in &mut outputs {
            let (with, replaced) = self.with_scalars(unit, expr.clone())?;
            (unit, *expr) = (with, replaced);
        }
        let mut sorted_by = Vec::new();
        let is_cut = block.limit.is_some() || block.skip > 0;
        let mut more = Vec::new();
        for (expr, descends) in order.drain(..) {
            let (with, expr) = self.with_scalars(unit, expr)?;
            unit = with;
            let is_output = |slot: Slot| outputs.iter().any(|(output, _)| *output == slot);
            let mut as_slot = |expr: Expr| {
                let kind = expr.kind();
                let slot = match (&expr, outputs.iter().find(|(_, output)| *output == expr)) {
                    (Expr::Slot(slot, _), _) if is_output(*slot) => *slot,
                    (_, Some((slot, _))) => *slot,
                    (_, None) if block.is_distinct => {
                        return Err(wrong_plan("DISTINCT, and an order of something else"))
                    }
                    (_, None) => {
                        let slot = self.new_slot();
                        more.push((slot, expr));
                        slot
                    }
                };
                Ok(Box::new(Expr::Slot(slot, kind)))
            };
            let by = match expr {
                Expr::Near(value, one, other) => {
                    Expr::Near(as_slot(*value)?, as_slot(*one)?, as_slot(*other)?)
                }
                other => *as_slot(other)?,
            };
            sorted_by.push((by, descends));
        }
        let slots: Vec<Slot> = outputs.iter().map(|(slot, _)| *slot).collect();
        for (slot, expr) in &outputs {
            if let Expr::Slot(of, _) = expr {
                if let Some(distinct) = self.distinct.get(of).copied() {
                    self.distinct.insert(*slot, distinct);
                }
            } else {
                self.distinct.insert(*slot, (unit.rows / 2.0).max(1.0));
            }
        }
        let all = outputs.into_iter().chain(more).collect();
        let mut unit = Unit { plan: Plan::Project(Box::new(unit.plan), all), slots, rows: unit.rows };
        if block.is_distinct {
            unit = self.distinct_rows(unit);
        }
        if sorted_by.is_empty() && !is_cut {
            return Ok(unit);
        }
        self.ordered(unit, &sorted_by, block.skip, block.limit)
    }

    pub(crate) fn ordered(
        &mut self,
        unit: Unit,
        order: &[(Expr, bool)],
        skip: u64,
        limit: Option<u64>,
    ) -> Result<Unit> {
        if order.is_empty() && limit.is_none() && skip == 0 {
            return Ok(unit);
        }
        let rows = limit.map_or(unit.rows, |limit| unit.rows.min(limit as f64));
        let plan = Plan::Sort { input: Box::new(unit.plan), order: order.to_vec(), skip, limit };
        Ok(Unit { plan, slots: unit.slots, rows })
    }

    pub(crate) fn distinct_rows(&mut self, unit: Unit) -> Unit {
        let given = unit.plan.slots();
        let groups = unit.slots.iter().filter_map(|slot| {
            let (_, kind) = given.iter().find(|(known, _)| known == slot)?;
            Some((*slot, Expr::Slot(*slot, *kind)))
        });
        let groups = groups.collect();
        let plan = Plan::Aggregate { input: Box::new(unit.plan), groups, told: Vec::new(), is_one: false };
        Unit { plan, slots: unit.slots, rows: unit.rows / 2.0 }
    }

    fn condition(&mut self, mut unit: Unit, condition: Expr) -> Result<Unit> {
        if condition.has_query() {
            return self.with_query(unit, condition);
        }
        unit.filter(condition, &self.distinct);
        Ok(unit)
    }
}

/// Slots that only sources name.
fn largest(block: &Block, slots: &mut Vec<Slot>) {
    block.given(slots);
    slots.extend(block.outputs.iter().map(|(slot, _)| *slot));
    let mut inner = Vec::new();
    block.from.iter().for_each(|from| in_from(from, &mut inner));
    inner.into_iter().for_each(|block| largest(block, slots));
    block.others.iter().for_each(|other| largest(&other.block, slots));
    let conditions = block.filter.iter().chain(&block.having).chain(&block.groups);
    let others = block.outputs.iter().map(|(_, expr)| expr).chain(block.order.iter().map(|(expr, _)| expr));
    conditions.chain(others).for_each(|expr| in_expr(expr, slots));
}

fn in_from<'a>(from: &'a From, to: &mut Vec<&'a Block>) {
    match &from.source {
        Source::Query(block) => to.push(block),
        Source::Nest(nest) => nest.iter().for_each(|from| in_from(from, to)),
        Source::Table { .. } => {}
    }
}

fn in_expr(expr: &Expr, slots: &mut Vec<Slot>) {
    match expr {
        Expr::Scalar(block, _) | Expr::Exists(block) | Expr::InQuery(_, block) => largest(block, slots),
        _ => {}
    }
    expr.parts().into_iter().for_each(|part| in_expr(part, slots));
}

pub(crate) fn and(mut conditions: Vec<Expr>) -> Option<Expr> {
    match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(Expr::And(conditions)),
    }
}

/// The parts of a condition that all have to be true; what all parts of an OR have in common is one.
fn add_conditions(condition: Expr, to: &mut Vec<Expr>) {
    let mut parts = Vec::new();
    condition.conjuncts(&mut parts);
    for part in parts {
        let Expr::Or(branches) = part else {
            to.push(part);
            continue;
        };
        let mut split: Vec<Vec<Expr>> = Vec::new();
        for branch in branches {
            let mut of_branch = Vec::new();
            branch.conjuncts(&mut of_branch);
            split.push(of_branch);
        }
        let Some(first) = split.first().cloned() else { continue };
        for common in first {
            if common.has_query() || !split.iter().all(|branch| branch.contains(&common)) {
                continue;
            }
            split.iter_mut().for_each(|branch| branch.retain(|part| *part != common));
            to.push(common);
        }
        // A branch of which nothing else is left is true wherever the common ones are.
        if split.iter().all(|branch| !branch.is_empty()) {
            to.push(Expr::Or(split.into_iter().filter_map(and).collect()));
        }
    }
}

/// Of an OR over several units: what it says of one alone.
fn add_implied(units: &[Unit], conditions: &mut Vec<Expr>) {
    let mut implied = Vec::new();
    for condition in conditions.iter() {
        let Expr::Or(branches) = condition else { continue };
        for unit in units {
            if unit.has_all(&slots_of(condition)) {
                continue;
            }
            let of_unit = |branch: &Expr| {
                let mut parts = Vec::new();
                branch.clone().conjuncts(&mut parts);
                parts.retain(|part| {
                    let slots = slots_of(part);
                    !slots.is_empty() && unit.has_all(&slots)
                });
                and(parts)
            };
            if let Some(parts) = branches.iter().map(of_unit).collect::<Option<Vec<_>>>() {
                implied.push(Expr::Or(parts));
            }
        }
    }
    conditions.extend(implied);
}

/// Whether a condition is not true, but false or NULL, where all these columns are NULL.
fn rejects_nulls(condition: &Expr, slots: &[Slot]) -> bool {
    match condition {
        Expr::Not(part) => match &**part {
            Expr::IsNull(part) => is_null_of_nulls(part, slots),
            // That it is not true is not enough: the opposite of false is true.
            other => is_null_of_nulls(other, slots),
        },
        Expr::And(parts) => parts.iter().any(|part| rejects_nulls(part, slots)),
        Expr::Or(parts) => parts.iter().all(|part| rejects_nulls(part, slots)),
        other => is_null_of_nulls(other, slots),
    }
}

/// Whether an expression is NULL where all these columns are NULL.
fn is_null_of_nulls(expr: &Expr, slots: &[Slot]) -> bool {
    match expr {
        Expr::Slot(slot, _) => slots.contains(slot),
        Expr::Arithmetic(_, _, a, b) | Expr::Real(_, a, b) | Expr::Divide(_, a, b) => {
            is_null_of_nulls(a, slots) || is_null_of_nulls(b, slots)
        }
        Expr::Compare(comparison, a, b) => {
            *comparison != Comparison::Same && (is_null_of_nulls(a, slots) || is_null_of_nulls(b, slots))
        }
        Expr::Part(_, part)
        | Expr::Convert(_, part)
        | Expr::Kept { of: part, .. }
        | Expr::In(part, _)
        | Expr::Test(_, part)
        | Expr::Not(part) => is_null_of_nulls(part, slots),
        Expr::And(parts) | Expr::Or(parts) => parts.iter().all(|part| is_null_of_nulls(part, slots)),
        _ => false,
    }
}

/// The two sides of an equality of one unit with another.
pub(crate) fn key_of(condition: &Expr, first: &Unit, second: &Unit) -> Option<(Expr, Expr)> {
    match condition {
        Expr::Compare(Comparison::Equal, a, b) => sides(a, b, first, second),
        _ => None,
    }
}

/// What is equal of two units wherever a condition is true, and nowhere else: for `=` its two sides. `a <=> b` is two
/// equalities, of the values with another one in NULL's place, and of whether they are NULL.
pub(crate) fn keys_of(condition: &Expr, first: &Unit, second: &Unit) -> Vec<(Expr, Expr)> {
    let Expr::Compare(Comparison::Same, a, b) = condition else {
        return key_of(condition, first, second).into_iter().collect();
    };
    let Some((a, b)) = sides(a, b, first, second) else { return Vec::new() };
    let is_null = |of: &Expr| Expr::IsNull(Box::new(of.clone()));
    let nulls = (is_null(&a), is_null(&b));
    vec![(without_null(a), without_null(b)), nulls]
}

fn sides(a: &Expr, b: &Expr, first: &Unit, second: &Unit) -> Option<(Expr, Expr)> {
    let (of_a, of_b) = (slots_of(a), slots_of(b));
    if of_a.is_empty() || of_b.is_empty() || !is_key(a.kind(), b.kind()) {
        return None;
    }
    if first.has_all(&of_a) && second.has_all(&of_b) {
        return Some((a.clone(), b.clone()));
    }
    (first.has_all(&of_b) && second.has_all(&of_a)).then(|| (b.clone(), a.clone()))
}

/// The value, or one that is not NULL.
fn without_null(expr: Expr) -> Expr {
    let kind = expr.kind();
    let instead = match kind {
        Kind::Text(_) => Value::Text(Vec::new()),
        Kind::Real => Value::Real(0.0),
        _ => Value::Number(0),
    };
    let when = (Expr::IsNull(Box::new(expr.clone())), Expr::Constant(instead, kind));
    Expr::Case(kind, vec![when], Box::new(expr))
}

fn equalities(conditions: &[Expr], first: &Unit, second: &Unit) -> Vec<(Expr, Expr)> {
    conditions.iter().flat_map(|condition| keys_of(condition, first, second)).collect()
}

pub(crate) fn is_key(a: Kind, b: Kind) -> bool {
    match (a, b) {
        (Kind::Text(a), Kind::Text(b)) => a == b,
        (Kind::Real, Kind::Real) => true,
        (Kind::Text(_) | Kind::Real, _) | (_, Kind::Text(_) | Kind::Real) => false,
        _ => true,
    }
}

/// Whether so many rows are few enough to be read before what they are joined with.
pub(crate) fn is_small_beside(rows: f64, other: &Plan) -> bool {
    rows * 8.0 < other.rows_scanned() && rows < 1e6
}

/// With as many digits behind the point on both sides.
pub(crate) fn alike(a: Expr, b: Expr) -> (Expr, Expr) {
    let scale = a.kind().scale().max(b.kind().scale());
    let with = |expr: Expr| match expr.kind() {
        Kind::Text(_) | Kind::Real => expr,
        kind if kind.scale() == scale => expr,
        _ => Expr::Convert(Kind::Decimal(scale), Box::new(expr)),
    };
    (with(a), with(b))
}

/// Whether it is certain to be NULL of no rows. Where aggregates are NULL, what is computed of them need not be: COALESCE, IS NULL, CASE and
/// many functions have a value then.
pub(crate) fn is_null_of_nothing(expr: &Expr) -> bool {
    match expr {
        Expr::Aggregate(function, ..) => function.of_nothing() == crate::column::Value::Null,
        Expr::Constant(value, _) => *value == crate::column::Value::Null,
        Expr::Convert(_, part) | Expr::Kept { of: part, .. } => is_null_of_nothing(part),
        Expr::Arithmetic(_, _, a, b) | Expr::Divide(_, a, b) | Expr::Real(_, a, b) => {
            is_null_of_nothing(a) || is_null_of_nothing(b)
        }
        _ => false,
    }
}
