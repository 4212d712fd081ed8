//! What a plan was, and what came of it: its operators, from the top, with the rows that they were thought to give and gave.
//!
//! Rows are counted batch by batch. An operator that holds rows (groups, an order, one side of a join) also has the time that it
//! took to get them, with all that is below it.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::block::Operation as SetOperation;
use crate::column::{Kind, Value};
use crate::estimate::of_operator;
use crate::expr::{Comparison, Expr, Function, Operation, Slot};
use crate::hash_join::JoinKind;
use crate::plan::Plan;
use crate::window::Window;

/// In the text of a condition: here comes the number of a column, up to [`NAME_END`].
pub const COLUMN_BEGIN: char = '\u{1}';
/// Likewise, the number of an expression of the server's.
pub const SERVED_BEGIN: char = '\u{2}';
/// The end of such a number.
pub const NAME_END: char = '\u{3}';

/// An operator of a plan that was executed.
#[derive(Clone, Debug, Default)]
pub struct Operator {
    /// The one that its rows go to.
    pub parent: Option<usize>,
    /// What it does.
    pub name: &'static str,
    /// Of a scan: which table.
    pub table: Option<usize>,
    /// Its condition, or what it makes groups of, or sorts by.
    pub what: String,
    /// Rows that it was thought to give.
    pub estimated: f64,
    /// Rows that it gave.
    pub rows: u64,
    /// What it took to get the rows that it holds; 0 microseconds: it passes them on.
    pub held_us: u64,
}

#[derive(Debug, Default)]
struct Count {
    rows: AtomicU64,
    held_us: AtomicU64,
}

/// What is counted while a plan is executed.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// By the place in memory of the operator, which stays for so long.
    numbers: HashMap<usize, usize>,
    counts: Vec<Count>,
}

fn place(plan: &Plan) -> usize {
    std::ptr::from_ref(plan) as usize
}

impl Counts {
    pub(crate) fn of(plan: &Plan) -> Counts {
        let mut counts = Counts::default();
        counts.number(plan);
        counts.counts.resize_with(counts.numbers.len(), Count::default);
        counts
    }

    fn number(&mut self, plan: &Plan) {
        let number = self.numbers.len();
        self.numbers.insert(place(plan), number);
        plan.inputs().into_iter().for_each(|input| self.number(input));
    }

    pub(crate) fn number_of(&self, plan: &Plan) -> Option<usize> {
        self.numbers.get(&place(plan)).copied()
    }

    pub(crate) fn add_rows(&self, number: usize, rows: usize) {
        if let Some(count) = self.counts.get(number) {
            count.rows.fetch_add(rows as u64, Ordering::Relaxed);
        }
    }

    /// How many rows all operators have given so far.
    pub(crate) fn rows(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.rows.load(Ordering::Relaxed)).collect()
    }

    /// They have not given more than these, as it is done once more.
    pub(crate) fn set_rows(&self, rows: &[u64]) {
        self.counts.iter().zip(rows).for_each(|(count, rows)| count.rows.store(*rows, Ordering::Relaxed));
    }

    /// Of an operator that holds its rows.
    pub(crate) fn held(&self, number: usize, took: Duration) {
        if let Some(count) = self.counts.get(number) {
            // Less than one is one: it has held them.
            let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
            count.held_us.fetch_add(us, Ordering::Relaxed);
        }
    }

    /// The operators, each before its inputs.
    pub(crate) fn operators(&self, plan: &Plan, distinct: &HashMap<Slot, f64>) -> Vec<Operator> {
        let mut names = Names::default();
        names.learn(plan);
        let mut all = Vec::new();
        self.add(plan, None, (distinct, &names), &mut all);
        all
    }

    /// Adds one and its inputs; says how many rows it was thought to give.
    fn add(
        &self,
        plan: &Plan,
        parent: Option<usize>,
        known: (&HashMap<Slot, f64>, &Names),
        to: &mut Vec<Operator>,
    ) -> f64 {
        let (distinct, names) = known;
        let number = to.len();
        let count = self.counts.get(number);
        let of = |count: Option<&AtomicU64>| count.map_or(0, |count| count.load(Ordering::Relaxed));
        let table = if let Plan::Scan { table, .. } = plan { Some(*table) } else { None };
        to.push(Operator {
            parent,
            name: name(plan),
            table,
            what: names.what(plan),
            estimated: 0.0,
            rows: of(count.map(|count| &count.rows)),
            held_us: of(count.map(|count| &count.held_us)),
        });
        let inputs: Vec<f64> =
            plan.inputs().into_iter().map(|input| self.add(input, Some(number), known, to)).collect();
        let rows = of_operator(plan, &inputs, distinct);
        to[number].estimated = rows;
        rows
    }
}

fn name(plan: &Plan) -> &'static str {
    match plan {
        Plan::One => "one row",
        Plan::Scan { .. } => "scan",
        Plan::Filter(..) => "filter",
        Plan::Project(..) => "columns",
        Plan::Join(join) => match (join.kind, join.is_marked) {
            (JoinKind::Inner, _) => "join",
            (JoinKind::Left, _) => "left join",
            (JoinKind::Single, _) => "join of one row",
            (JoinKind::Semi, false) => "semi-join",
            (JoinKind::Semi, true) => "semi-join, left side held",
            (JoinKind::Anti | JoinKind::AntiNull, false) => "anti-join",
            (JoinKind::Anti | JoinKind::AntiNull, true) => "anti-join, left side held",
            (JoinKind::Mark(_), _) => "mark join",
        },
        Plan::Aggregate { is_one: true, .. } => "aggregate",
        Plan::Aggregate { told, .. } if told.is_empty() => "distinct",
        Plan::Aggregate { .. } => "groups",
        Plan::Rollup { .. } => "rollup",
        Plan::Window { .. } => "windows",
        Plan::Sets(sets) => match sets.operation {
            SetOperation::Union => "union",
            SetOperation::Except => "except",
            SetOperation::Intersect => "intersect",
        },
        Plan::Sort { order, .. } if order.is_empty() => "limit",
        Plan::Sort { limit: None, .. } => "sort",
        Plan::Sort { .. } => "first rows",
        Plan::Union(..) => "union",
    }
}

fn list(exprs: impl Iterator<Item = String>, between: &str) -> String {
    exprs.collect::<Vec<_>>().join(between)
}

/// Longer texts are no names of columns.
const NAME_MAX: usize = 100;

/// What the columns are that operators compute, for people. Columns of tables, and what the server computes, are numbers.
#[derive(Default)]
struct Names(HashMap<Slot, String>);

impl Names {
    /// From the tables up: a column is named by what it is computed of.
    fn learn(&mut self, plan: &Plan) {
        plan.inputs().into_iter().for_each(|input| self.learn(input));
        match plan {
            Plan::Project(_, outputs) => outputs.iter().for_each(|(slot, expr)| self.add(*slot, expr)),
            Plan::Aggregate { groups, told, .. } | Plan::Rollup { groups, told, .. } => {
                groups.iter().for_each(|(slot, expr)| self.add(*slot, expr));
                for told in told {
                    self.add(
                        told.slot,
                        &Expr::Aggregate(told.function, told.kind, told.of.clone().map(Box::new)),
                    );
                }
            }
            Plan::Window { windows, .. } => {
                for (slot, window) in windows {
                    self.add(*slot, &Expr::Window(Box::new(window.clone())));
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, slot: Slot, expr: &Expr) {
        if matches!(expr, Expr::Slot(of, _) if *of == slot) {
            return;
        }
        let text = self.text(expr);
        if text.len() <= NAME_MAX {
            self.0.insert(slot, text);
        }
    }

    fn what(&self, plan: &Plan) -> String {
        let text = |expr: &Expr| self.text(expr);
        match plan {
            Plan::One | Plan::Project(..) | Plan::Sets(_) | Plan::Union(..) => String::new(),
            Plan::Scan { filter, .. } => list(filter.iter().map(text), " AND "),
            Plan::Filter(_, condition) => text(condition),
            Plan::Join(join) => {
                let keys = join.keys.iter().map(|(a, b)| format!("{} = {}", text(a), text(b)));
                list(keys.chain(join.residual.iter().map(text)), " AND ")
            }
            Plan::Aggregate { groups, .. } | Plan::Rollup { groups, .. } => {
                list(groups.iter().map(|(_, group)| text(group)), ", ")
            }
            Plan::Window { windows, .. } => {
                list(windows.iter().map(|(_, window)| self.of_window(window)), ", ")
            }
            Plan::Sort { order, .. } => {
                let by = |(expr, descends): &(Expr, bool)| text(expr) + if *descends { " DESC" } else { "" };
                list(order.iter().map(by), ", ")
            }
        }
    }

    fn text(&self, expr: &Expr) -> String {
        let text = |expr: &Expr| self.text(expr);
        let both = |sign: &str, a: &Expr, b: &Expr| format!("({} {sign} {})", text(a), text(b));
        let calculated = |operation: &Operation, a: &Expr, b: &Expr| match operation {
            Operation::Add => both("+", a, b),
            Operation::Subtract => both("-", a, b),
            Operation::Multiply => both("*", a, b),
        };
        match expr {
            Expr::Slot(slot, _) => match self.0.get(slot) {
                Some(name) => name.clone(),
                None => format!("{COLUMN_BEGIN}{slot}{NAME_END}"),
            },
            Expr::Server { number, .. } => format!("{SERVED_BEGIN}{number}{NAME_END}"),
            Expr::Constant(value, kind) => constant(value, *kind),
            Expr::Arithmetic(operation, _, a, b) | Expr::Real(operation, a, b) => calculated(operation, a, b),
            Expr::Divide(_, a, b) => both("/", a, b),
            Expr::Compare(comparison, a, b) => format!("{} {} {}", text(a), sign(*comparison), text(b)),
            Expr::And(parts) => format!("({})", list(parts.iter().map(text), " AND ")),
            Expr::Or(parts) => format!("({})", list(parts.iter().map(text), " OR ")),
            Expr::Not(part) => format!("NOT {}", text(part)),
            Expr::IsNull(part) => format!("{} IS NULL", text(part)),
            Expr::Case(..) => "CASE".into(),
            Expr::In(of, values) => format!("{} IN ({} constants)", text(of), values.len()),
            Expr::Test(_, of) => format!("{} LIKE", text(of)),
            Expr::Change(_, _, of) | Expr::Convert(_, of) | Expr::Floor(_, of) | Expr::Kept { of, .. } => {
                text(of)
            }
            Expr::Measure(_, of) => format!("LENGTH({})", text(of)),
            Expr::Part(part, of) => format!("{part:?}({})", text(of)),
            Expr::Sure(_, value) | Expr::Near(value, ..) => text(value),
            Expr::Row(parts) => list(parts.iter().map(text), ", "),
            Expr::Window(window) => self.of_window(window),
            Expr::Aggregate(function, _, of) => self.aggregate(*function, of.as_deref()),
            Expr::Scalar(..) | Expr::Exists(_) | Expr::InQuery(..) => "(SELECT)".into(),
        }
    }

    fn of_window(&self, window: &Window) -> String {
        let of = window.of.as_ref().map_or_else(String::new, |of| self.text(of));
        format!("{:?}({of})", window.function)
    }

    fn aggregate(&self, function: Function, of: Option<&Expr>) -> String {
        let of = of.map_or_else(|| "*".into(), |of| self.text(of));
        match function {
            Function::Rows | Function::Count => format!("COUNT({of})"),
            Function::CountDistinct => format!("COUNT(DISTINCT {of})"),
            Function::Sum => format!("SUM({of})"),
            Function::SumDistinct => format!("SUM(DISTINCT {of})"),
            Function::Min => format!("MIN({of})"),
            Function::Max => format!("MAX({of})"),
            Function::Mean => format!("AVG({of})"),
            Function::Variance => format!("VAR_POP({of})"),
            Function::VarianceOfSample => format!("VAR_SAMP({of})"),
            Function::Deviation => format!("STD({of})"),
            Function::DeviationOfSample => format!("STDDEV_SAMP({of})"),
            Function::BitAnd => format!("BIT_AND({of})"),
            Function::BitOr => format!("BIT_OR({of})"),
            Function::BitXor => format!("BIT_XOR({of})"),
            Function::Concat => "GROUP_CONCAT(...)".into(),
            Function::ErrorOfSum => format!("the error of SUM({of})"),
            Function::ErrorOfMean => format!("the error of AVG({of})"),
        }
    }
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
        Comparison::Same => "<=>",
    }
}

/// A DATE, DATETIME or TIME as the server shows it.
fn moment(packed: i128, kind: Kind) -> String {
    let (sign, packed) = if packed < 0 { ("-", -packed) } else { ("", packed) };
    let day = |date: i128, months: i128| format!("{:04}-{:02}-{:02}", months / 13, months % 13, date & 31);
    if kind == Kind::Date {
        return format!("'{:04}-{:02}-{:02}'", packed >> 9, packed >> 5 & 15, packed & 31);
    }
    let (whole, micros) = (packed >> 24, packed & 0xff_ffff);
    let (seconds, date) = (whole & 0x1ffff, whole >> 17);
    let mut text = match kind {
        Kind::DateTime => format!("{} {:02}", day(date, date >> 5), seconds >> 12),
        _ => format!("{sign}{:02}", whole >> 12),
    };
    _ = write!(text, ":{:02}:{:02}", seconds >> 6 & 63, seconds & 63);
    if micros > 0 {
        _ = write!(text, ".{micros:06}");
    }
    format!("'{text}'")
}

fn constant(value: &Value, kind: Kind) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Number(number) if matches!(kind, Kind::Date | Kind::DateTime | Kind::Time) => {
            moment(*number, kind)
        }
        Value::Number(number) => {
            let scale = kind.scale() as usize;
            let digits = format!("{:0width$}", number.unsigned_abs(), width = scale + 1);
            let (whole, behind) = digits.split_at(digits.len() - scale);
            let mut text = String::from(if *number < 0 { "-" } else { "" }) + whole;
            if scale > 0 {
                _ = write!(text, ".{behind}");
            }
            text
        }
        Value::Real(value) => value.to_string(),
        Value::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_as_the_server_shows_them() {
        let date = 2025 << 9 | 6 << 5 | 1;
        assert_eq!(constant(&Value::Number(date), Kind::Date), "'2025-06-01'");
        let datetime =
            |seconds: i128, micros: i128| ((2025 * 13 + 6) << 5 | 1) << 41 | seconds << 24 | micros;
        let shown = |packed| constant(&Value::Number(packed), Kind::DateTime);
        assert_eq!(shown(datetime(0, 0)), "'2025-06-01 00:00:00'");
        assert_eq!(shown(datetime(23 << 12 | 59 << 6 | 58, 1200)), "'2025-06-01 23:59:58.001200'");
        let time = |hours: i128| (hours << 12 | 5 << 6 | 7) << 24;
        assert_eq!(constant(&Value::Number(time(838)), Kind::Time), "'838:05:07'");
        assert_eq!(constant(&Value::Number(-time(3)), Kind::Time), "'-03:05:07'");
    }
}
