//! Queries in expressions: they become joins.
//!
//! What ties such a query to the one around it are conditions that look at columns of both. They are taken out of it: the
//! equalities among them become what the join is over, the others are asked of pairs of rows.

use crate::block::Block;
use crate::column::{Kind, Value};
use crate::domain::Around;
use crate::eval::{wrong_plan, Result};
use crate::expr::{Comparison, Expr, Slot};
use crate::hash_join::JoinKind;
use crate::plan::{Join, Plan};
use crate::planner::{
    alike, and, is_key, is_null_of_nothing, is_small_beside, key_of, keys_of, slots_of, Planner, Unit,
};

/// So many times more rows than a unit has all others, if its conditions with queries are asked first.
const FEW_BESIDE: f64 = 4.0;

/// A query without what ties it to the one around it.
struct Untied {
    block: Block,
    ties: Vec<Expr>,
}

/// Rows that are asked of, and those of a query in a condition.
pub(crate) struct Asked {
    pub unit: Unit,
    pub inner: Unit,
    /// What is equal where they are tied.
    pub keys: Vec<(Expr, Expr)>,
    /// What IN says is equal.
    pub left: Vec<(Expr, Expr)>,
    /// What else ties them.
    pub residual: Vec<Expr>,
}

impl Asked {
    pub(crate) fn is_tied(&self) -> bool {
        !self.keys.is_empty() || !self.residual.is_empty()
    }
}

/// The columns that a query looks at and does not have.
pub(crate) fn free_slots(block: &Block) -> Vec<Slot> {
    let mut free = Vec::new();
    add_free(block, &mut free);
    free.sort_unstable();
    free.dedup();
    free
}

fn add_free(block: &Block, to: &mut Vec<Slot>) {
    let (mut looked_at, mut given) = (Vec::new(), Vec::new());
    block.slots(&mut looked_at);
    all_given(block, &mut given);
    to.extend(looked_at.into_iter().filter(|slot| !given.contains(slot)));
}

fn all_given(block: &Block, to: &mut Vec<Slot>) {
    block.given(to);
    to.extend(block.outputs.iter().map(|(slot, _)| *slot));
    let mut inner = Vec::new();
    block.from.iter().for_each(|from| blocks_of(from, &mut inner));
    inner.into_iter().for_each(|block| all_given(block, to));
    block.others.iter().for_each(|other| all_given(&other.block, to));
    let one = block.filter.iter().chain(&block.groups).chain(&block.having);
    let others = block.outputs.iter().map(|(_, expr)| expr).chain(block.order.iter().map(|(expr, _)| expr));
    one.chain(others).for_each(|expr| given_in(expr, to));
}

/// Adds the columns that queries in an expression have themselves.
pub(crate) fn given_in(expr: &Expr, to: &mut Vec<Slot>) {
    match expr {
        Expr::Scalar(block, _) | Expr::Exists(block) | Expr::InQuery(_, block) => all_given(block, to),
        _ => {}
    }
    expr.parts().into_iter().for_each(|part| given_in(part, to));
}

fn blocks_of<'a>(from: &'a crate::block::From, to: &mut Vec<&'a Block>) {
    match &from.source {
        crate::block::Source::Query(block) => to.push(block),
        crate::block::Source::Nest(nest) => nest.iter().for_each(|from| blocks_of(from, to)),
        crate::block::Source::Table { .. } => {}
    }
}

/// Takes the conditions out of WHERE that look at columns of another query.
fn untie(block: &Block) -> Result<Untied> {
    let free = free_slots(block);
    let mut block = block.clone();
    if free.is_empty() {
        return Ok(Untied { block, ties: Vec::new() });
    }
    if block.rollup.is_some() || block.outputs.iter().any(|(_, expr)| expr.has_window()) {
        return Err(wrong_plan("a tied query with windows or ROLLUP"));
    }
    let mut parts = Vec::new();
    if let Some(filter) = block.filter.take() {
        filter.conjuncts(&mut parts);
    }
    let (ties, own): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|part| slots_of(part).iter().any(|slot| free.contains(slot)));
    block.filter = and(own);
    if !free_slots(&block).is_empty() || ties.iter().any(Expr::has_query) {
        return Err(wrong_plan("a query that is tied elsewhere than in WHERE"));
    }
    Ok(Untied { block, ties })
}

/// The columns of the rows around that an expression looks at, also within its queries.
fn outer_slots(expr: &Expr) -> Vec<Slot> {
    let (mut slots, mut given) = (slots_of(expr), Vec::new());
    given_in(expr, &mut given);
    slots.retain(|slot| !given.contains(slot));
    slots
}

/// The columns that its sources give.
fn given_of(block: &Block) -> Vec<Slot> {
    let mut given = Vec::new();
    block.given(&mut given);
    given
}

fn equal(a: Expr, b: Expr) -> Expr {
    Expr::Compare(Comparison::Equal, Box::new(a), Box::new(b))
}

/// Whether each row of a query is that of its sources, whatever others there are.
fn is_of_rows(block: &Block) -> bool {
    let is_cut = block.limit.is_some() || block.skip > 0;
    !is_cut
        && !block.is_grouped
        && block.others.is_empty()
        && !block.outputs.iter().any(|(_, expr)| expr.has_window() || expr.has_query())
}

/// What ties two units: equalities, and other conditions.
fn split_ties(ties: Vec<Expr>, outer: &Unit, inner: &Unit) -> (Vec<(Expr, Expr)>, Vec<Expr>) {
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    for tie in ties {
        let of_both = keys_of(&tie, outer, inner);
        if of_both.is_empty() {
            others.push(tie);
        }
        keys.extend(of_both.into_iter().map(|(a, b)| alike(a, b)));
    }
    (keys, others)
}

impl Planner<'_> {
    /// A condition that can be asked of one unit before it is joined: IN of a query of its own, or whatever is the matter of the unit with
    /// the fewest rows by far. (Of a larger one the joins may leave fewer to be asked.) Says whether it was.
    pub(crate) fn early_query(&mut self, condition: &Expr, units: &mut [Unit]) -> Result<bool> {
        if units.len() < 2 {
            return Ok(false);
        }
        let own = match condition {
            Expr::InQuery(left, block)
                if !left.iter().any(Expr::has_query) && free_slots(block).is_empty() =>
            {
                let slots: Vec<Slot> = left.iter().flat_map(slots_of).collect();
                units.iter().position(|unit| !slots.is_empty() && unit.has_all(&slots))
            }
            _ => {
                let slots = outer_slots(condition);
                let own = units.iter().position(|unit| !slots.is_empty() && unit.has_all(&slots));
                own.filter(|own| {
                    let mut others = units.iter().enumerate().filter(|(at, _)| at != own);
                    others.all(|(_, other)| units[*own].rows * FEW_BESIDE <= other.rows)
                })
            }
        };
        let Some(own) = own else { return Ok(false) };
        let unit = std::mem::replace(&mut units[own], Unit::of_nothing());
        units[own] = self.with_query(unit, condition.clone())?;
        Ok(true)
    }

    /// Of units that nothing else connects: asks one of them a condition with a query that is its own matter, or joins one with the value of
    /// a query that is equal to something of another (`r JOIN e ON e.id = (SELECT MAX(id) FROM e WHERE e.r = r.id)`), so that this
    /// connects them. Says whether it did.
    pub(crate) fn connect_by_query(
        &mut self,
        units: &mut [Unit],
        conditions: &mut Vec<Expr>,
        late: &mut Vec<Expr>,
    ) -> Result<bool> {
        let unit_of = |units: &[Unit], of: &Expr| {
            let slots = outer_slots(of);
            units.iter().position(|unit| !slots.is_empty() && unit.has_all(&slots))
        };
        for at in 0..late.len() {
            if let Some(own) = unit_of(units, &late[at]) {
                let condition = late.remove(at);
                let unit = std::mem::replace(&mut units[own], Unit::of_nothing());
                units[own] = self.with_query(unit, condition)?;
                return Ok(true);
            }
            let Expr::Compare(Comparison::Equal, a, b) = &late[at] else { continue };
            let (Some(of_a), Some(of_b)) = (unit_of(units, a), unit_of(units, b)) else { continue };
            if of_a == of_b || !is_key(a.kind(), b.kind()) {
                continue;
            }
            let (a, b) = ((**a).clone(), (**b).clone());
            late.remove(at);
            let mut sides = Vec::new();
            for (own, side) in [(of_a, a), (of_b, b)] {
                let unit = std::mem::replace(&mut units[own], Unit::of_nothing());
                let (unit, side) = self.with_scalars(unit, side)?;
                units[own] = unit;
                sides.push(side);
            }
            let (Some(b), Some(a)) = (sides.pop(), sides.pop()) else { return Ok(false) };
            conditions.push(equal(a, b));
            return Ok(true);
        }
        Ok(false)
    }

    /// The rows for which a condition with a query in it is true.
    pub(crate) fn with_query(&mut self, unit: Unit, condition: Expr) -> Result<Unit> {
        match condition {
            Expr::Exists(block) => self.semi_join(unit, &[], &block, JoinKind::Semi),
            Expr::InQuery(left, block) => self.semi_join(unit, &left, &block, JoinKind::Semi),
            Expr::Not(part) => match *part {
                Expr::Exists(block) => self.semi_join(unit, &[], &block, JoinKind::Anti),
                Expr::InQuery(left, block) => self.semi_join(unit, &left, &block, JoinKind::AntiNull),
                Expr::Not(part) => self.with_query(unit, *part),
                other => self.with_scalar_condition(unit, Expr::Not(Box::new(other))),
            },
            other => self.with_scalar_condition(unit, other),
        }
    }

    fn with_scalar_condition(&mut self, unit: Unit, condition: Expr) -> Result<Unit> {
        let slots = unit.slots.clone();
        let (mut unit, condition) = self.with_scalars(unit, condition)?;
        if condition.has_query() {
            return Err(wrong_plan("a query within a condition"));
        }
        unit.plan = unit.plan.filtered(condition);
        unit.rows = (unit.rows * 0.3).max(1.0);
        unit.slots = slots;
        Ok(unit)
    }

    fn semi_join(&mut self, unit: Unit, left: &[Expr], block: &Block, kind: JoinKind) -> Result<Unit> {
        let slots = unit.slots.clone();
        let asked = self.asked_query(unit, left, block, kind == JoinKind::AntiNull)?;
        if kind == JoinKind::AntiNull && asked.is_tied() {
            return self.tied_not_in(asked, slots);
        }
        let Asked { unit, inner, mut keys, left, residual } = asked;
        keys.extend(left);
        let is_marked =
            matches!(kind, JoinKind::Semi | JoinKind::Anti) && !keys.is_empty() && unit.rows < inner.rows;
        let rows = (unit.rows * 0.3).max(1.0);
        let join = Join {
            kind,
            probe: unit.plan,
            build: inner.plan,
            keys,
            residual: and(residual),
            is_marked,
            is_probe_first: false,
        };
        Ok(Unit { plan: Plan::Join(Box::new(join)), slots, rows })
    }

    /// The rows that are asked of, and those of a query in a condition, with what connects them. With `is_exact` each of
    /// its rows counts, whatever its order.
    pub(crate) fn asked_query(
        &mut self,
        unit: Unit,
        left: &[Expr],
        block: &Block,
        is_exact: bool,
    ) -> Result<Asked> {
        let mut unit = unit;
        let mut of_left = Vec::new();
        for expr in left {
            let (with, expr) = self.with_scalars(unit, expr.clone())?;
            unit = with;
            of_left.push(expr);
        }
        let Untied { mut block, mut ties } = untie(block)?;
        // IN ties, too, but for the rows that it leaves open.
        let is_in_tie = !is_exact && is_of_rows(&block);
        let outputs = block.outputs.iter().filter(|_| is_in_tie).map(|(_, expr)| expr.clone());
        let of_in: Vec<_> = of_left.iter().cloned().zip(outputs).map(|(a, b)| equal(a, b)).collect();
        let around = Around::of(&unit, ties.iter().chain(&of_in), given_of(&block));
        if !ties.is_empty() && block.is_grouped {
            self.tie_groups(&unit, &mut block, &mut ties)?;
        }
        let (inner, of_inner) = if ties.is_empty() || block.is_grouped {
            if !is_exact && block.limit.is_none() && block.others.is_empty() {
                block.order.clear();
            }
            self.around = around;
            let mut inner = self.block(&block)?;
            // Of EXISTS one row is enough.
            if left.is_empty() && ties.is_empty() && inner.plan.may_end_early() {
                inner = self.ordered(inner, &[], 0, Some(1))?;
            }
            let given = inner.plan.slots();
            let kind_of = |slot: &Slot| given.iter().find(|(known, _)| known == slot).map(|(_, kind)| *kind);
            let of_inner: Option<Vec<Expr>> = block
                .outputs
                .iter()
                .take(left.len())
                .map(|(slot, _)| kind_of(slot).map(|kind| Expr::Slot(*slot, kind)))
                .collect();
            (inner, of_inner.ok_or_else(|| wrong_plan("outputs"))?)
        } else {
            if block.limit.is_some() || block.skip > 0 || !block.others.is_empty() || block.having.is_some() {
                return Err(wrong_plan("a tied query with a limit"));
            }
            self.around = around;
            let inner = self.rows(&block)?;
            (inner, block.outputs.iter().map(|(_, expr)| expr.clone()).collect())
        };
        let (keys, residual) = split_ties(ties, &unit, &inner);
        let mut pairs = Vec::new();
        if !left.is_empty() {
            if left.len() != of_inner.len() || (is_exact && left.len() > 1) {
                return Err(wrong_plan("IN of rows"));
            }
            for (a, b) in of_left.into_iter().zip(of_inner) {
                if a.kind() != b.kind() && (a.kind().is_text() || b.kind().is_text()) {
                    return Err(wrong_plan("IN of different kinds"));
                }
                pairs.push(alike(a, b));
            }
        }
        Ok(Asked { unit, inner, keys, left: pairs, residual })
    }

    /// What ties a query with groups becomes a group of it.
    fn tie_groups(&mut self, unit: &Unit, block: &mut Block, ties: &mut [Expr]) -> Result<()> {
        if block.groups.is_empty() || block.limit.is_some() || block.skip > 0 || !block.others.is_empty() {
            return Err(wrong_plan("a tied query with groups or a limit"));
        }
        let inner = Unit { plan: Plan::One, slots: given_of(block), rows: 1.0 };
        for tie in ties.iter_mut() {
            let Some((outer, inner)) = key_of(tie, unit, &inner) else {
                return Err(wrong_plan("a tied group without equalities"));
            };
            let slot = self.new_slot();
            let named = Expr::Slot(slot, inner.kind());
            block.outputs.push((slot, inner.clone()));
            block.groups.push(inner);
            *tie = equal(outer, named);
        }
        Ok(())
    }

    /// Joins what queries in an expression give, and names it in their place.
    pub(crate) fn with_scalars(&mut self, unit: Unit, expr: Expr) -> Result<(Unit, Expr)> {
        let mut unit = unit;
        if !expr.has_query() {
            return Ok((unit, expr));
        }
        let is_query = |part: &Expr| matches!(part, Expr::Scalar(..) | Expr::Exists(_) | Expr::InQuery(..));
        let mut queries = Vec::new();
        _ = expr.replaced(&mut |part| {
            is_query(part).then(|| {
                queries.push(part.clone());
                Expr::Constant(Value::Null, part.kind())
            })
        });
        let mut names = Vec::new();
        for query in queries {
            let (with, name) = match query {
                Expr::Scalar(block, kind) => self.scalar(unit, &block, kind)?,
                Expr::Exists(block) => self.marked(unit, &[], &block)?,
                Expr::InQuery(left, block) => self.marked(unit, &left, &block)?,
                other => (unit, other),
            };
            unit = with;
            names.push(name);
        }
        let mut names = names.into_iter();
        let replaced = expr.replaced(&mut |part| if is_query(part) { names.next() } else { None });
        Ok((unit, replaced))
    }

    fn scalar(&mut self, unit: Unit, block: &Block, kind: Kind) -> Result<(Unit, Expr)> {
        let [(output, _)] = block.outputs.as_slice() else { return Err(wrong_plan("a row of values")) };
        let output = *output;
        let Untied { mut block, ties } = untie(block)?;
        let mut slots = unit.slots.clone();
        slots.push(output);
        if ties.is_empty() {
            let inner = self.block(&block)?;
            let given = inner.plan.slots();
            let of_kind = given.iter().find(|(slot, _)| *slot == output).map_or(kind, |(_, kind)| *kind);
            let join = Join {
                kind: JoinKind::Single,
                probe: unit.plan,
                build: inner.plan,
                keys: Vec::new(),
                residual: None,
                is_marked: false,
                is_probe_first: false,
            };
            let joined = Unit { plan: Plan::Join(Box::new(join)), slots, rows: unit.rows };
            return Ok((joined, Expr::Slot(output, of_kind)));
        }
        if block.limit.is_some() || block.skip > 0 || !block.groups.is_empty() || !block.others.is_empty() {
            return Err(wrong_plan("a tied query with groups or a limit"));
        }
        if !block.is_grouped {
            return self.tied_rows(unit, block, ties, slots);
        }
        if block.having.is_some() {
            return Err(wrong_plan("a tied query with HAVING"));
        }
        // One group for each value of what ties it.
        let around = Around::of(&unit, ties.iter(), given_of(&block));
        let inner_slots = Unit { plan: Plan::One, slots: given_of(&block), rows: 1.0 };
        let (keys, others) = split_ties(ties, &unit, &inner_slots);
        if !others.is_empty() {
            return Err(wrong_plan("a tied group without equalities"));
        }
        let (_, of_output) = block.outputs[0].clone();
        let marker = self.new_slot();
        let mut join_keys = Vec::new();
        for (outer, inner) in keys {
            let slot = self.new_slot();
            block.outputs.push((slot, inner.clone()));
            join_keys.push((outer, Expr::Slot(slot, inner.kind())));
            block.groups.push(inner);
        }
        let has_value_of_none = !is_null_of_nothing(&of_output);
        if has_value_of_none {
            block.outputs.push((marker, Expr::Constant(Value::Number(1), Kind::Signed)));
        }
        let of_kind = of_output.kind();
        self.around = around;
        let inner = self.block(&block)?;
        let is_probe_first = is_small_beside(unit.rows, &inner.plan);
        let join = Join {
            kind: JoinKind::Left,
            probe: unit.plan,
            build: inner.plan,
            keys: join_keys,
            residual: None,
            is_marked: false,
            is_probe_first,
        };
        if has_value_of_none {
            slots.push(marker);
        }
        let joined = Unit { plan: Plan::Join(Box::new(join)), slots, rows: unit.rows };
        let value = Expr::Slot(output, of_kind);
        if !has_value_of_none {
            return Ok((joined, value));
        }
        // Of no rows: counts are 0, most others NULL, and the value is what is computed of these.
        let of_none = of_output.replaced(&mut |part| match part {
            Expr::Aggregate(function, kind, _) => Some(Expr::Constant(function.of_nothing(), *kind)),
            _ => None,
        });
        let is_none = Expr::IsNull(Box::new(Expr::Slot(marker, Kind::Signed)));
        Ok((joined, Expr::Case(of_kind, vec![(is_none, of_none)], Box::new(value))))
    }

    /// The only row that is tied to each row.
    fn tied_rows(
        &mut self,
        unit: Unit,
        block: Block,
        ties: Vec<Expr>,
        slots: Vec<Slot>,
    ) -> Result<(Unit, Expr)> {
        if block.is_distinct || block.having.is_some() {
            return Err(wrong_plan("a tied query with DISTINCT"));
        }
        self.around = Around::of(&unit, ties.iter(), given_of(&block));
        let inner = self.rows(&block)?;
        let (keys, others) = split_ties(ties, &unit, &inner);
        let (output, expr) = block.outputs[0].clone();
        let mut outputs = vec![(output, expr.clone())];
        let given = inner.plan.slots();
        for slot in keys.iter().flat_map(|(_, inner)| slots_of(inner)).chain(others.iter().flat_map(slots_of))
        {
            if let Some((slot, kind)) = given.iter().find(|(known, _)| *known == slot) {
                if !outputs.iter().any(|(known, _)| known == slot) {
                    outputs.push((*slot, Expr::Slot(*slot, *kind)));
                }
            }
        }
        let is_probe_first = is_small_beside(unit.rows, &inner.plan);
        let join = Join {
            kind: JoinKind::Single,
            probe: unit.plan,
            build: Plan::Project(Box::new(inner.plan), outputs),
            keys,
            residual: and(others),
            is_marked: false,
            is_probe_first,
        };
        let joined = Unit { plan: Plan::Join(Box::new(join)), slots, rows: unit.rows };
        Ok((joined, Expr::Slot(output, expr.kind())))
    }
}
