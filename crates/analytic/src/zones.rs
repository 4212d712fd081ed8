//! Segments of a table that conditions need not look at.

use std::sync::Arc;

use pando_query::zone::Span;
use pandodb::layout::Layouts;
use pandodb::{Verdict, Zones};

use crate::block::TableColumn;
use crate::column::{moment, Kind, Value};
use crate::eval::power;
use crate::expr::{Comparison, Expr, Slot};
use crate::first_rows::FirstRows;
use crate::key_filter::KeyFilter;
use pando_query::Place;

/// Whether the bounds that a segment has of a column are the numbers that are compared, or become them.
fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Signed | Kind::Unsigned | Kind::Decimal(_) | Kind::Date | Kind::DateTime)
}

/// What a condition asks of one column.
#[derive(Debug)]
enum Test {
    /// To be compared with a number.
    Compare(usize, Comparison, i128),
    /// To be NULL.
    Null(usize),
    /// One of these.
    Any(Vec<Test>),
}

impl Test {
    fn of(condition: &Expr, columns: &[TableColumn]) -> Option<Test> {
        match condition {
            Expr::Or(parts) => {
                parts.iter().map(|part| Test::of(part, columns)).collect::<Option<_>>().map(Test::Any)
            }
            Expr::IsNull(of) => match &**of {
                Expr::Slot(slot, _) => Some(Test::Null(*slot as usize)),
                _ => None,
            },
            Expr::Compare(comparison, a, b) => match (&**a, &**b) {
                (Expr::Slot(slot, _), Expr::Constant(value, kind)) => {
                    Test::compare(*slot, *comparison, value, *kind, columns)
                }
                (Expr::Constant(value, kind), Expr::Slot(slot, _)) => {
                    Test::compare(*slot, comparison.swapped(), value, *kind, columns)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn compare(
        slot: Slot,
        comparison: Comparison,
        value: &Value,
        of: Kind,
        columns: &[TableColumn],
    ) -> Option<Test> {
        let kind = columns[slot as usize].kind;
        let Value::Number(number) = value else { return None };
        let is_moment = |kind| matches!(kind, Kind::Date | Kind::DateTime);
        if !is_number(kind) || of.scale() > kind.scale() || ((is_moment(kind) || is_moment(of)) && kind != of)
        {
            return None;
        }
        let number = power(kind.scale() - of.scale()).ok().and_then(|unit| number.checked_mul(unit))?;
        Some(Test::Compare(slot as usize, comparison, number))
    }
}

/// The column that was asked about last, and what is known of it.
type LastSpan = Option<(usize, Option<Span>)>;

/// Conditions that compare a column's numbers with a constant.
pub(crate) struct Bounded<'a> {
    tests: Vec<Test>,
    /// Columns whose numbers lie outside have no partner in a join.
    ranges: Vec<(usize, i64, i64)>,
    /// The column of an order of which the first rows are wanted: those of some segments come behind them.
    first: Option<(usize, &'a FirstRows)>,
    /// No other tests.
    are_all: bool,
    columns: &'a [TableColumn],
    layouts: &'a Layouts,
}

impl<'a> Bounded<'a> {
    /// Of conditions that are bound to the columns.
    pub(crate) fn of(
        filter: &[Expr],
        joins: &[(usize, Arc<KeyFilter>)],
        first: Option<(usize, &'a FirstRows)>,
        columns: &'a [TableColumn],
        layouts: &'a Layouts,
    ) -> Bounded<'a> {
        // Behind a condition that may warn nothing is passed by: it is asked of all rows that are left to it.
        let asked = filter.iter().take_while(|part| !part.is_early());
        let tests: Vec<Test> = asked.filter_map(|part| Test::of(part, columns)).collect();
        let are_all = tests.len() == filter.len();
        let may_skip = !filter.iter().any(Expr::is_early);
        let ranges = joins.iter().filter(|(at, _)| may_skip && is_number(columns[*at].kind));
        let ranges = ranges.map(|(at, filter)| (*at, filter.bounds().0, filter.bounds().1)).collect();
        // What may fail, or warn, is computed of all rows.
        let first =
            first.filter(|(at, _)| is_number(columns[*at].kind) && !filter.iter().any(Expr::may_fail));
        Bounded { tests, ranges, first, are_all, columns, layouts }
    }

    /// How many rows of a segment all conditions leave.
    pub(crate) fn verdict(&self, zones: &Zones<'_>) -> Verdict {
        for (at, least, most) in &self.ranges {
            if let Some(span) = self.span(*at, zones) {
                let is_outside =
                    |(low, high): (i128, i128)| high < i128::from(*least) || low > i128::from(*most);
                let bounds = span.bounds().map(|bounds| self.compared(*at, bounds));
                // NULL everywhere, or all of it outside. Bounds that are no values say nothing.
                if least > most || bounds.is_none_or(|bounds| bounds.is_some_and(is_outside)) {
                    return Verdict::None;
                }
            }
        }
        if let Some((at, first)) = self.first {
            if let Some(span) = self.span(at, zones) {
                let bounds = span.bounds().map(|bounds| self.compared(at, bounds));
                // Bounds that are no values say nothing.
                if bounds != Some(None) && first.is_behind(bounds.flatten(), span.has_null()) {
                    return Verdict::None;
                }
            }
        }
        let mut all = if self.are_all { Verdict::All } else { Verdict::Some };
        // Tests of one column come one after another.
        let mut last = None;
        for test in &self.tests {
            match self.of_test(test, zones, &mut last) {
                Verdict::None => return Verdict::None,
                Verdict::Some => all = Verdict::Some,
                Verdict::All => {}
            }
        }
        all
    }

    fn of_test(&self, test: &Test, zones: &Zones<'_>, last: &mut LastSpan) -> Verdict {
        match test {
            Test::Compare(at, comparison, constant) => {
                self.one(*at, *comparison, *constant, self.known_span(*at, zones, last))
            }
            Test::Null(at) => match self.known_span(*at, zones, last) {
                Some(span) if span.bounds().is_none() => Verdict::All,
                Some(span) if !span.has_null() => Verdict::None,
                _ => Verdict::Some,
            },
            Test::Any(tests) => tests.iter().map(|test| self.of_test(test, zones, last)).fold(
                Verdict::None,
                |any, one| match (any, one) {
                    (Verdict::All, _) | (_, Verdict::All) => Verdict::All,
                    (Verdict::None, Verdict::None) => Verdict::None,
                    _ => Verdict::Some,
                },
            ),
        }
    }

    /// As `span`; `last` is what was asked before.
    fn known_span(&self, at: usize, zones: &Zones<'_>, last: &mut LastSpan) -> Option<Span> {
        match *last {
            Some((of, span)) if of == at => span,
            _ => {
                let span = self.span(at, zones);
                *last = Some((at, span));
                span
            }
        }
    }

    fn span(&self, at: usize, zones: &Zones<'_>) -> Option<Span> {
        let of = &self.columns[at];
        let stored = match of.place {
            Place::Stored(position) => self.layouts.current().columns.get(position),
            Place::Length(_) | Place::Key { .. } | Place::KeyPart(_) => None,
        };
        Span::of(&zones.get(at)?, &of.form, &of.place, stored)
    }

    /// Bounds in the form in which their column is compared; `None`: they are no values.
    fn compared(&self, at: usize, (least, most): (i128, i128)) -> Option<(i128, i128)> {
        let of = &self.columns[at];
        if of.kind != Kind::DateTime {
            return Some((least, most));
        }
        let size = match &of.place {
            Place::Stored(position) => self.layouts.current().columns.get(*position)?.ty.size as usize,
            Place::Key { size, .. } => *size,
            Place::KeyPart(path) => path.width(),
            Place::Length(_) => return None,
        };
        Some((moment(least, size, of.kind)?.into(), moment(most, size, of.kind)?.into()))
    }

    fn one(&self, at: usize, comparison: Comparison, constant: i128, span: Option<Span>) -> Verdict {
        let Some(span) = span else { return Verdict::Some };
        let Some(bounds) = span.bounds() else { return Verdict::None };
        let Some((least, most)) = self.compared(at, bounds) else { return Verdict::Some };
        let (all, none) = match comparison {
            Comparison::Equal => (least == constant && most == constant, constant < least || constant > most),
            Comparison::NotEqual => {
                (constant < least || constant > most, least == constant && most == constant)
            }
            Comparison::Less => (most < constant, least >= constant),
            Comparison::LessOrEqual => (most <= constant, least > constant),
            Comparison::Greater => (least > constant, most <= constant),
            Comparison::GreaterOrEqual => (least >= constant, most < constant),
            Comparison::Same => (false, false),
        };
        match (all && !span.has_null(), none) {
            (true, _) => Verdict::All,
            (_, true) => Verdict::None,
            _ => Verdict::Some,
        }
    }
}
