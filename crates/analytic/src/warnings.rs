//! Conditions that may warn, and of which rows they are asked.
//!
//! Of which rows the server computes a condition is a matter of its plan, and so is what it warns of. What may warn is asked beforehand, of
//! all rows of which any plan could compute it: if there is the same to say of the rows that it is computed of in the end, it would be so in any
//! plan.
//!
//! Of one table the server asks conditions in the order in which they are written, but for equalities of columns and constants, which come first
//! (`substitute_for_best_equal_field`). So the rows that conditions before it leave are all rows of which it can be computed there ([`Written`]).
use crate::column::{Kind, Value};
use crate::expr::{Expr, Saying, Slot};
use crate::plan::Plan;

/// The conditions of a query.
pub(crate) struct Written<'a> {
    /// In the order in which they are written.
    pub all: Vec<Expr>,
    /// Of them, those that come first wherever they are written: the translator knows which equalities these are.
    pub first: &'a [Expr],
}

impl Written<'_> {
    /// What is asked of rows before what warns: the conditions that the engine computes itself, of those.
    fn before(&self, of: &Expr) -> Vec<Expr> {
        let Some(at) = self.all.iter().position(|condition| is_part(of, condition)) else {
            return Vec::new();
        };
        let conditions = self.all.iter().enumerate();
        let before = conditions.filter(|(own, condition)| *own < at || self.first.contains(condition));
        let native = before.filter(|(_, condition)| !condition.needs_server() && !condition.is_early());
        native.map(|(_, condition)| condition.clone()).collect()
    }
}

/// Whether what may warn is a part of the condition. Parts that are asked alone are known by their columns.
fn is_part(of: &Expr, condition: &Expr) -> bool {
    if condition.any(&|part| part == of) {
        return true;
    }
    let slots_of = |expr: &Expr| {
        let mut slots = Vec::new();
        expr.slots(&mut slots);
        slots
    };
    let slots = slots_of(of);
    condition.any(&|part| match part {
        Expr::Server { may_say: Saying::OfParts, .. } => {
            let known = slots_of(part);
            slots.iter().all(|slot| known.contains(slot))
        }
        _ => false,
    })
}

impl Plan {
    /// What may warn in conditions is asked first. A condition that stands alone is computed of all rows by any plan. Where there are several tables,
    /// nothing is asked first that only warns (`asks_all`: it is): if it warns of the rows that it is computed of, the query is given back.
    /// Nor can what looks at several tables itself be asked so; an error of that would be the server's alone. `parts`: of conditions, which may
    /// warn. False: that cannot be.
    pub(crate) fn settle_warnings(&mut self, asks_all: bool, parts: &[&Expr], written: &Written<'_>) -> bool {
        let is_of_several = self.conditions() + parts.len() > 1;
        let may_hush = !asks_all && self.scans() > 1;
        let mut sayings = Vec::new();
        if is_of_several {
            self.add_saying(&mut sayings);
        }
        // With whether it has to be asked.
        let mut asked: Vec<(&Expr, bool)> = parts.iter().map(|of| (*of, true)).collect();
        for of in &sayings {
            match of {
                Expr::Server { may_say: Saying::OfParts, .. } if !may_hush => {}
                Expr::Server { may_say: Saying::Errors, .. } => asked.push((of, true)),
                _ if may_hush => self.hush(of),
                _ => asked.push((of, false)),
            }
        }
        if is_of_several {
            self.ask_first();
        }
        let is_of_one_table = self.scans() == 1;
        for (of, has_to_be) in asked {
            let before = if is_of_one_table { written.before(of) } else { Vec::new() };
            if !self.ask(of, &before) {
                if has_to_be {
                    return false;
                }
                self.hush(of);
            }
        }
        true
    }

    /// Has an expression of one table's columns computed of all its rows that these conditions leave. False: they are not those of one table.
    pub(crate) fn ask(&mut self, of: &Expr, before: &[Expr]) -> bool {
        let mut slots = Vec::new();
        of.slots(&mut slots);
        let yes = Expr::Constant(Value::Number(1), Kind::Signed);
        // Whatever it is: this is never false.
        let is_known = Expr::Or(vec![Expr::IsNull(Box::new(of.asked())), yes.clone()]);
        self.ask_table(&Expr::Sure(Box::new(is_known), Box::new(yes)), &slots, before)
    }

    fn ask_table(&mut self, asked: &Expr, slots: &[Slot], before: &[Expr]) -> bool {
        let given = self.slots();
        let has_all = slots.iter().all(|slot| given.iter().any(|(known, _)| known == slot));
        if let (Plan::Scan { filter, .. }, true) = (&mut *self, has_all) {
            let is_before = |part: &Expr| part.is_early() || before.contains(part);
            filter.sort_by_key(|part| !is_before(part));
            let at = filter.iter().take_while(|part| is_before(part)).count();
            filter.insert(at, asked.clone());
            return true;
        }
        if self.inputs_mut().into_iter().any(|input| input.ask_table(asked, slots, before)) {
            return true;
        }
        // A derived table.
        let is_derived = has_all && matches!(self, Plan::Project(..) | Plan::Aggregate { .. });
        if is_derived {
            let derived = std::mem::replace(self, Plan::One);
            *self = Plan::Filter(Box::new(derived), asked.clone());
        }
        is_derived
    }

    /// Has whatever the server says of an expression in conditions give the query back.
    fn hush(&mut self, of: &Expr) {
        match self {
            Plan::Scan { filter, .. } => filter.iter_mut().for_each(|part| part.hush(of)),
            Plan::Filter(_, condition) => condition.hush(of),
            Plan::Join(join) => {
                join.keys.iter_mut().flat_map(|(a, b)| [a, b]).for_each(|key| key.hush(of));
                join.residual.iter_mut().for_each(|residual| residual.hush(of));
            }
            _ => {}
        }
        self.inputs_mut().into_iter().for_each(|input| input.hush(of));
    }

    /// How many conditions there are; a join is one, and another table, too.
    fn conditions(&self) -> usize {
        let own = match self {
            Plan::Scan { filter, .. } => filter.len(),
            Plan::Filter(..) => 1,
            Plan::Join(_) | Plan::Union(..) | Plan::Sets(_) => 2,
            _ => 0,
        };
        self.inputs().into_iter().fold(own, |count, input| count + input.conditions())
    }

    /// Adds what may say something in conditions.
    fn add_saying(&self, to: &mut Vec<Expr>) {
        match self {
            Plan::Scan { filter, .. } => filter.iter().for_each(|part| part.add_saying(to)),
            Plan::Filter(_, condition) => condition.add_saying(to),
            Plan::Join(join) => {
                join.keys.iter().flat_map(|(a, b)| [a, b]).for_each(|key| key.add_saying(to));
                join.residual.iter().for_each(|residual| residual.add_saying(to));
            }
            _ => {}
        }
        self.inputs().into_iter().for_each(|input| input.add_saying(to));
    }

    fn ask_first(&mut self) {
        if let Plan::Scan { filter, .. } = self {
            filter.sort_by_key(|part| !part.is_early());
        }
        self.inputs_mut().into_iter().for_each(Plan::ask_first);
    }
}
