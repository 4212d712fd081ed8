//! Groups that a plan computes several times are computed once: a CTE that is read twice, a view beside its own maximum.
//!
//! Two parts of a plan are the same if they differ in nothing but the numbers of their columns, and if their tables are the same:
//! one query reads all its tables at one moment. What joins say of the columns of such a part is not used below it, as it is
//! said of one of its places only.

use std::collections::HashMap;

use crate::expr::{Expr, Slot};
use crate::plan::{Plan, Told};
use crate::spill::Chunk;

/// Parts of a plan that are compared with each other, at most.
const COMPARED_MAX: usize = 64;

/// The groups of a plan that occur several times, and the rows of those that are known.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    /// Which they are, by the places of the operators in memory.
    numbers: HashMap<usize, usize>,
    rows: HashMap<usize, Vec<Chunk>>,
}

fn place(plan: &Plan) -> usize {
    std::ptr::from_ref(plan) as usize
}

impl Repeated {
    /// Of a plan; `is_same_table` says it of the numbers of two tables.
    pub(crate) fn of(plan: &Plan, is_same_table: &dyn Fn(usize, usize) -> bool) -> Repeated {
        let mut repeated = Repeated::default();
        let mut known = Vec::new();
        repeated.look_at(plan, is_same_table, &mut known);
        repeated
    }

    fn look_at<'a>(
        &mut self,
        plan: &'a Plan,
        is_same_table: &dyn Fn(usize, usize) -> bool,
        known: &mut Vec<&'a Plan>,
    ) {
        if matches!(plan, Plan::Aggregate { .. }) {
            let is_same = |other: &Plan| Pair { is_same_table, slots: HashMap::new() }.is_same(plan, other);
            if let Some(number) = known.iter().position(|other| is_same(other)) {
                self.numbers.insert(place(plan), number);
                self.numbers.insert(place(known[number]), number);
                return;
            }
            if known.len() < COMPARED_MAX {
                known.push(plan);
            }
        }
        plan.inputs().into_iter().for_each(|input| self.look_at(input, is_same_table, known));
    }

    /// Which of them it is; `None`: it occurs once.
    pub(crate) fn number_of(&self, plan: &Plan) -> Option<usize> {
        self.numbers.get(&place(plan)).copied()
    }

    /// The rows of one.
    pub(crate) fn rows(&self, number: usize) -> Option<Vec<Chunk>> {
        self.rows.get(&number).cloned()
    }

    /// They are known now.
    pub(crate) fn keep(&mut self, number: usize, rows: Vec<Chunk>) {
        self.rows.insert(number, rows);
    }
}

/// A comparison of two plans.
struct Pair<'a> {
    is_same_table: &'a dyn Fn(usize, usize) -> bool,
    /// The columns of the second, by the first one's names for them.
    slots: HashMap<Slot, Slot>,
}

impl Pair<'_> {
    fn is_same(&mut self, a: &Plan, b: &Plan) -> bool {
        match (a, b) {
            (Plan::One, Plan::One) => true,
            (
                Plan::Scan { table, parts, columns, filter, .. },
                Plan::Scan { table: table_b, parts: parts_b, columns: columns_b, filter: filter_b, .. },
            ) => {
                let are_tables = parts == parts_b
                    && (0..*parts).all(|part| (self.is_same_table)(table + part, table_b + part));
                let are_columns = columns.len() == columns_b.len()
                    && columns.iter().zip(columns_b).all(|(a, b)| {
                        self.slots.insert(b.slot, a.slot);
                        let is_same_form = std::mem::discriminant(&a.form) == std::mem::discriminant(&b.form);
                        a.place == b.place && a.kind == b.kind && is_same_form
                    });
                are_tables && are_columns && self.are_equal(filter, filter_b)
            }
            (Plan::Filter(a, condition), Plan::Filter(b, condition_b)) => {
                self.is_same(a, b) && self.is_equal(condition, condition_b)
            }
            (Plan::Project(a, outputs), Plan::Project(b, outputs_b)) => {
                self.is_same(a, b) && self.are_named(outputs, outputs_b)
            }
            (Plan::Join(a), Plan::Join(b)) => {
                a.kind == b.kind
                    && a.is_marked == b.is_marked
                    && self.is_same(&a.probe, &b.probe)
                    && self.is_same(&a.build, &b.build)
                    && a.keys.len() == b.keys.len()
                    && a.keys
                        .iter()
                        .zip(&b.keys)
                        .all(|(a, b)| self.is_equal(&a.0, &b.0) && self.is_equal(&a.1, &b.1))
                    && self.are_equal(a.residual.as_slice(), b.residual.as_slice())
            }
            (
                Plan::Aggregate { input, groups, told, is_one },
                Plan::Aggregate { input: input_b, groups: groups_b, told: told_b, is_one: is_one_b },
            ) => {
                is_one == is_one_b
                    && self.is_same(input, input_b)
                    && self.are_named(groups, groups_b)
                    && self.are_told(told, told_b)
            }
            _ => false,
        }
    }

    fn are_told(&mut self, a: &[Told], b: &[Told]) -> bool {
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| {
                self.slots.insert(b.slot, a.slot);
                a.function == b.function
                    && a.kind == b.kind
                    && self.are_equal(a.of.as_slice(), b.of.as_slice())
            })
    }

    fn are_named(&mut self, a: &[(Slot, Expr)], b: &[(Slot, Expr)]) -> bool {
        a.len() == b.len()
            && a.iter().zip(b).all(|((name, a), (name_b, b))| {
                let is_equal = self.is_equal(a, b);
                self.slots.insert(*name_b, *name);
                is_equal
            })
    }

    fn are_equal(&self, a: &[Expr], b: &[Expr]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.is_equal(a, b))
    }

    /// What the server computes is never the same twice: it may be RAND().
    fn is_equal(&self, a: &Expr, b: &Expr) -> bool {
        let renamed = b.replaced(&mut |part| match part {
            Expr::Slot(slot, kind) => self.slots.get(slot).map(|name| Expr::Slot(*name, *kind)),
            _ => None,
        });
        *a == renamed && !a.needs_server()
    }
}
