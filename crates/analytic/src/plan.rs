//! Plans: operators over operators, with the columns that they give.

use pando_query::Place;

use crate::block::TableColumn;
use crate::column::{Kind, Value};
use crate::expr::{Expr, Function, Saying, Slot};
use crate::hash_join::JoinKind;
use crate::sets::Sets;
use crate::window::Window;

/// A column that is told of groups.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub slot: Slot,
    pub function: Function,
    pub kind: Kind,
    pub of: Option<Expr>,
}

impl Told {
    /// What is computed of each row.
    pub(crate) fn arguments(&self) -> &[Expr] {
        let of = self.of.as_ref().map_or(&[][..], Expr::row);
        match self.function {
            Function::Concat => of.get(crate::concat::HEAD..).unwrap_or_default(),
            _ => of,
        }
    }
}

/// A join: rows of `probe` are looked up in `build`, which is held in memory.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub kind: JoinKind,
    pub probe: Plan,
    pub build: Plan,
    /// What has to be equal, of the one and of the other.
    pub keys: Vec<(Expr, Expr)>,
    /// What else has to be true.
    pub residual: Option<Expr>,
    /// Of `Semi` and `Anti`: it is `probe` that is held in memory, and marked by the rows of `build`.
    pub is_marked: bool,
    /// The rows of `probe` are few: they are read first, and those of `build` that are none of their partners are dropped.
    pub is_probe_first: bool,
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// One row without columns.
    One,
    /// The rows of a table for which all conditions are true.
    Scan {
        table: usize,
        parts: usize,
        /// How many rows it has, about.
        rows: f64,
        columns: Vec<TableColumn>,
        filter: Vec<Expr>,
    },
    Filter(Box<Plan>, Expr),
    Project(Box<Plan>, Vec<(Slot, Expr)>),
    Join(Box<Join>),
    Aggregate {
        input: Box<Plan>,
        groups: Vec<(Slot, Expr)>,
        told: Vec<Told>,
        is_one: bool,
    },
    Sort {
        input: Box<Plan>,
        order: Vec<(Expr, bool)>,
        skip: u64,
        limit: Option<u64>,
    },
    /// Groups, the groups of these, and so on, up to one of all; the last column is the number of groups that a row has.
    Rollup {
        input: Box<Plan>,
        groups: Vec<(Slot, Expr)>,
        told: Vec<Told>,
        level: Slot,
    },
    /// What is told of the rows around each.
    Window {
        input: Box<Plan>,
        windows: Vec<(Slot, Window)>,
    },
    /// Rows of one that another has, or has not.
    Sets(Box<Sets>),
    /// Rows of several; each gives its columns in the order of the slots beside it.
    Union(Vec<(Plan, Vec<Slot>)>, Vec<(Slot, Kind)>),
}

impl Join {
    /// Whether the rows without a partner are asked for, as `LEFT JOIN ... WHERE right.id IS NULL` does it: a column is to be NULL that is none in any
    /// row of the right side, or in none that has a partner.
    fn asks_for_lonely(&self, condition: &Expr) -> bool {
        let (JoinKind::Left, Expr::IsNull(of)) = (self.kind, condition) else { return false };
        let Expr::Slot(slot, _) = &**of else { return false };
        let is_key = |(_, right): &(Expr, Expr)| matches!(right, Expr::Slot(known, _) if known == slot);
        !self.keys.is_empty() && (self.keys.iter().any(is_key) || self.build.is_never_null(*slot))
    }

    /// The rows without a partner, beside NULLs.
    fn lonely(self) -> Plan {
        let own = self.probe.slots().into_iter().map(|(slot, kind)| (slot, Expr::Slot(slot, kind)));
        let others =
            self.build.slots().into_iter().map(|(slot, kind)| (slot, Expr::Constant(Value::Null, kind)));
        let outputs = own.chain(others).collect();
        let is_marked = self.is_probe_first || self.probe.scanned() < self.build.scanned();
        let join = Join { kind: JoinKind::Anti, is_marked, is_probe_first: false, ..self };
        Plan::Project(Box::new(Plan::Join(Box::new(join))), outputs)
    }
}

/// A condition on what is computed, below the computation where that cannot fail and computes no group's value anew.
fn filtered_outputs(input: Box<Plan>, outputs: Vec<(Slot, Expr)>, condition: Expr, slots: &[Slot]) -> Plan {
    let is_plain = |slot: &Slot| {
        outputs
            .iter()
            .any(|(output, expr)| output == slot && !expr.any(&|part| matches!(part, Expr::Divide(..))))
    };
    if !slots.iter().all(is_plain) {
        return Plan::Filter(Box::new(Plan::Project(input, outputs)), condition);
    }
    let shown = Plan::Project(input, outputs);
    if shown.shows_groups() && shown.can_fail() {
        return Plan::Filter(Box::new(shown), condition);
    }
    let Plan::Project(input, outputs) = shown else { return shown };
    let inner = condition.replaced(&mut |part| match part {
        Expr::Slot(slot, _) => {
            outputs.iter().find(|(output, _)| output == slot).map(|(_, expr)| expr.clone())
        }
        _ => None,
    });
    Plan::Project(Box::new(input.filtered(inner)), outputs)
}

/// A condition on joined rows, on the side that it is of.
fn filtered_join(mut join: Box<Join>, condition: Expr, slots: &[Slot]) -> Plan {
    let is_of = |side: &Plan| {
        let given = side.slots();
        slots.iter().all(|slot| given.iter().any(|(known, _)| known == slot))
    };
    if is_of(&join.probe) {
        join.probe = join.probe.filtered(condition);
        return Plan::Join(join);
    }
    if join.kind == JoinKind::Inner && is_of(&join.build) {
        join.build = join.build.filtered(condition);
        return Plan::Join(join);
    }
    if join.asks_for_lonely(&condition) {
        return join.lonely();
    }
    Plan::Filter(Box::new(Plan::Join(join)), condition)
}

impl Plan {
    /// Whether a column of it is a part of the key of a table's rows.
    fn is_never_null(&self, slot: Slot) -> bool {
        match self {
            Plan::Scan { columns, .. } => {
                let is_of_key = |place: &Place| matches!(place, Place::Key { .. } | Place::KeyPart(_));
                columns.iter().any(|column| column.slot == slot && is_of_key(&column.place))
            }
            Plan::Filter(input, _) => input.is_never_null(slot),
            _ => false,
        }
    }

    /// How many rows are read of tables.
    fn scanned(&self) -> f64 {
        match self {
            Plan::Scan { rows, .. } => *rows,
            other => other.inputs().into_iter().map(Plan::scanned).sum(),
        }
    }

    /// The columns that it gives.
    pub(crate) fn slots(&self) -> Vec<(Slot, Kind)> {
        match self {
            Plan::One => Vec::new(),
            Plan::Scan { columns, .. } => columns.iter().map(|column| (column.slot, column.kind)).collect(),
            Plan::Filter(input, _) => input.slots(),
            Plan::Project(_, outputs) => outputs.iter().map(|(slot, expr)| (*slot, expr.kind())).collect(),
            Plan::Join(join) => match join.kind {
                JoinKind::Semi | JoinKind::Anti | JoinKind::AntiNull => join.probe.slots(),
                JoinKind::Mark(slot) => {
                    let mut slots = join.probe.slots();
                    slots.push((slot, Kind::Signed));
                    slots
                }
                _ => join.probe.slots().into_iter().chain(join.build.slots()).collect(),
            },
            Plan::Aggregate { groups, told, .. } => {
                let groups = groups.iter().map(|(slot, expr)| (*slot, expr.kind()));
                groups.chain(told.iter().map(|told| (told.slot, told.kind))).collect()
            }
            Plan::Sort { input, .. } => input.slots(),
            Plan::Union(_, slots) => slots.clone(),
            Plan::Rollup { groups, told, level, .. } => {
                let groups = groups.iter().map(|(slot, expr)| (*slot, expr.kind()));
                let told = told.iter().map(|told| (told.slot, told.kind));
                groups.chain(told).chain([(*level, Kind::Signed)]).collect()
            }
            Plan::Window { input, windows } => {
                let windows = windows.iter().map(|(slot, window)| (*slot, window.kind));
                input.slots().into_iter().chain(windows).collect()
            }
            Plan::Sets(sets) => sets.slots.clone(),
        }
    }

    /// With one more condition, as near to the tables as it goes.
    pub(crate) fn filtered(self, condition: Expr) -> Plan {
        let mut slots = Vec::new();
        condition.slots(&mut slots);
        match self {
            Plan::Scan { table, parts, rows, columns, mut filter } => {
                // What the server computes silently comes last, of the fewest rows.
                let at = match condition.is_late() {
                    true => filter.len(),
                    false => filter.iter().position(Expr::is_late).unwrap_or(filter.len()),
                };
                filter.insert(at, condition);
                Plan::Scan { table, parts, rows, columns, filter }
            }
            Plan::Project(input, outputs) => filtered_outputs(input, outputs, condition, &slots),
            Plan::Join(join) => filtered_join(join, condition, &slots),
            Plan::Filter(input, known) => Plan::Filter(Box::new(input.filtered(condition)), known),
            Plan::Aggregate { .. } if self.can_fail() => Plan::Filter(Box::new(self), condition),
            Plan::Aggregate { input, groups, told, is_one } => {
                let is_group = |slot: &Slot| groups.iter().any(|(group, _)| group == slot);
                if slots.is_empty() || !slots.iter().all(is_group) {
                    let plan = Plan::Aggregate { input, groups, told, is_one };
                    return Plan::Filter(Box::new(plan), condition);
                }
                let inner = condition.replaced(&mut |part| match part {
                    Expr::Slot(slot, _) => {
                        groups.iter().find(|(group, _)| group == slot).map(|(_, expr)| expr.clone())
                    }
                    _ => None,
                });
                Plan::Aggregate { input: Box::new(input.filtered(inner)), groups, told, is_one }
            }
            Plan::Window { input, windows } => {
                let plan = Plan::Window { input, windows };
                if plan.can_fail() || !plan.is_of_partitions(&condition) {
                    return Plan::Filter(Box::new(plan), condition);
                }
                let Plan::Window { input, windows } = plan else { return plan };
                Plan::Window { input: Box::new(input.filtered(condition)), windows }
            }
            Plan::Union(inputs, slots) if inputs.iter().all(|(input, _)| !input.can_fail()) => {
                let filtered = |(input, own): (Plan, Vec<Slot>)| {
                    let inner = condition.replaced(&mut |part| match part {
                        Expr::Slot(slot, kind) => {
                            let at = slots.iter().position(|(known, _)| known == slot)?;
                            own.get(at).map(|own| Expr::Slot(*own, *kind))
                        }
                        _ => None,
                    });
                    (input.filtered(inner), own)
                };
                Plan::Union(inputs.into_iter().map(filtered).collect(), slots)
            }
            other => Plan::Filter(Box::new(other), condition),
        }
    }

    /// Of windows: whether a condition leaves or drops all rows of a partition together.
    fn is_of_partitions(&self, condition: &Expr) -> bool {
        let mut slots = Vec::new();
        condition.slots(&mut slots);
        !slots.is_empty() && slots.iter().all(|slot| self.is_partition(*slot))
    }

    /// Of windows: whether all rows of a partition have one value in a column, whatever the window. Texts of one partition need
    /// not be the same.
    pub(crate) fn is_partition(&self, slot: Slot) -> bool {
        let Plan::Window { windows, .. } = self else { return false };
        let is_slot = |part: &Expr| match part {
            Expr::Slot(known, kind) => *known == slot && !matches!(kind, Kind::Text(_) | Kind::Real),
            _ => false,
        };
        windows.iter().all(|(_, window)| window.partition.iter().any(is_slot))
    }

    /// Whether it computes what can fail. The server computes groups and first rows of all rows that there are, so none may be
    /// dropped below, whatever becomes of them above.
    pub(crate) fn can_fail(&self) -> bool {
        match self {
            Plan::Project(..) => !self.failing().is_empty(),
            Plan::Aggregate { input, groups, told, .. } | Plan::Rollup { input, groups, told, .. } => {
                let of_told = told.iter().filter_map(|told| told.of.as_ref());
                let mut exprs = groups.iter().map(|(_, group)| group).chain(of_told);
                exprs.any(|expr| input.can_fail_in(expr)) || input.can_fail()
            }
            Plan::Window { input, windows } => {
                let mut exprs = windows.iter().flat_map(|(_, window)| window.parts());
                exprs.any(|expr| input.can_fail_in(expr)) || input.can_fail()
            }
            Plan::Sets(sets) => sets.left.0.can_fail() || sets.right.0.can_fail(),
            Plan::Filter(input, _) | Plan::Sort { input, .. } => input.can_fail(),
            _ => false,
        }
    }

    /// Its columns that can fail.
    pub(crate) fn failing(&self) -> Vec<Slot> {
        let Plan::Project(input, outputs) = self else { return Vec::new() };
        outputs.iter().filter(|(_, expr)| input.can_fail_in(expr)).map(|(slot, _)| *slot).collect()
    }

    /// Whether it is what a SELECT with groups shows: the server computes all its columns of all its rows.
    pub(crate) fn shows_groups(&self) -> bool {
        matches!(self, Plan::Project(input, _) if input.groups_below().is_some())
    }

    /// Whether an expression over what it gives can fail. What an average divides by is not 0.
    fn can_fail_in(&self, expr: &Expr) -> bool {
        let is_count = |by: &Expr| match (by, self.groups_below()) {
            (Expr::Slot(slot, _), Some(told)) => told
                .iter()
                .any(|told| told.slot == *slot && matches!(told.function, Function::Rows | Function::Count)),
            _ => false,
        };
        match expr {
            Expr::Divide(_, a, by) if is_count(by) => self.can_fail_in(a),
            Expr::Divide(..) | Expr::Real(..) => true,
            Expr::Server { may_say: Saying::Warnings | Saying::Errors, .. } => true,
            Expr::Arithmetic(_, Kind::Signed | Kind::Unsigned, ..) => true,
            other => other.parts().into_iter().any(|part| self.can_fail_in(part)),
        }
    }

    fn groups_below(&self) -> Option<&[Told]> {
        match self {
            Plan::Aggregate { told, .. } | Plan::Rollup { told, .. } => Some(told),
            Plan::Filter(input, _) | Plan::Window { input, .. } => input.groups_below(),
            _ => None,
        }
    }

    /// Whether each operator gets the columns that it looks at, and nothing is left that is not executed.
    pub(crate) fn is_sound(&self) -> bool {
        let has = |input: &Plan, exprs: &[&Expr]| {
            let given = input.slots();
            exprs.iter().all(|expr| !expr.has_query() && has_all(&given, expr))
        };
        let inner = self.inputs().into_iter().all(Plan::is_sound);
        inner
            && match self {
                Plan::One | Plan::Union(..) | Plan::Sets(_) => true,
                Plan::Window { input, windows } => {
                    has(input, &windows.iter().flat_map(|(_, window)| window.parts()).collect::<Vec<_>>())
                }
                Plan::Scan { filter, .. } => {
                    filter.iter().all(|part| !part.has_query() && has_all(&self.slots(), part))
                }
                Plan::Filter(input, condition) => has(input, &[condition]),
                Plan::Project(input, outputs) => {
                    has(input, &outputs.iter().map(|(_, expr)| expr).collect::<Vec<_>>())
                }
                Plan::Join(join) => {
                    let both: Vec<_> = join.probe.slots().into_iter().chain(join.build.slots()).collect();
                    let of_keys = join
                        .keys
                        .iter()
                        .all(|(probe, build)| has(&join.probe, &[probe]) && has(&join.build, &[build]));
                    of_keys && join.residual.iter().all(|part| !part.has_query() && has_all(&both, part))
                }
                Plan::Aggregate { input, groups, told, .. } | Plan::Rollup { input, groups, told, .. } => {
                    let of_told = told.iter().filter_map(|told| told.of.as_ref());
                    has(input, &groups.iter().map(|(_, expr)| expr).chain(of_told).collect::<Vec<_>>())
                }
                Plan::Sort { input, order, .. } => {
                    has(input, &order.iter().map(|(expr, _)| expr).collect::<Vec<_>>())
                }
            }
    }

    pub(crate) fn inputs_mut(&mut self) -> Vec<&mut Plan> {
        match self {
            Plan::One | Plan::Scan { .. } => Vec::new(),
            Plan::Filter(input, _)
            | Plan::Project(input, _)
            | Plan::Aggregate { input, .. }
            | Plan::Rollup { input, .. }
            | Plan::Window { input, .. }
            | Plan::Sort { input, .. } => vec![input],
            Plan::Sets(sets) => vec![&mut sets.left.0, &mut sets.right.0],
            Plan::Join(join) => vec![&mut join.probe, &mut join.build],
            Plan::Union(inputs, _) => inputs.iter_mut().map(|(input, _)| input).collect(),
        }
    }

    /// How many tables are read.
    pub(crate) fn scans(&self) -> usize {
        match self {
            Plan::Scan { .. } => 1,
            _ => self.inputs().into_iter().map(Plan::scans).sum(),
        }
    }

    /// How many rows the largest of its tables has, about.
    pub(crate) fn rows_scanned(&self) -> f64 {
        match self {
            Plan::Scan { rows, .. } => *rows,
            _ => self.inputs().into_iter().map(Plan::rows_scanned).fold(0.0, f64::max),
        }
    }

    pub(crate) fn inputs(&self) -> Vec<&Plan> {
        match self {
            Plan::One | Plan::Scan { .. } => Vec::new(),
            Plan::Filter(input, _)
            | Plan::Project(input, _)
            | Plan::Aggregate { input, .. }
            | Plan::Rollup { input, .. }
            | Plan::Window { input, .. }
            | Plan::Sort { input, .. } => vec![input],
            Plan::Sets(sets) => vec![&sets.left.0, &sets.right.0],
            Plan::Join(join) => vec![&join.probe, &join.build],
            Plan::Union(inputs, _) => inputs.iter().map(|(input, _)| input).collect(),
        }
    }
}

fn has_all(given: &[(Slot, Kind)], expr: &Expr) -> bool {
    let mut slots = Vec::new();
    expr.slots(&mut slots);
    let is_plain = !expr.any(&|part| matches!(part, Expr::Aggregate(..) | Expr::Window(_)));
    is_plain && slots.iter().all(|slot| given.iter().any(|(known, _)| known == slot))
}
