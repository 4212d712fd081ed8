//! Segments of a table that conditions need not look at.

use std::sync::Arc;

use pando_query::zone::Span;
use pandodb::layout::Layouts;
use pandodb::{Verdict, Zones};

use crate::block::TableColumn;
use crate::column::{Kind, Value};
use crate::eval::power;
use crate::expr::{Comparison, Expr};
use crate::key_filter::KeyFilter;
use pando_query::{Column, Place};

/// Whether what a segment says of a column's bounds are the numbers that are compared.
fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Signed | Kind::Unsigned | Kind::Decimal(_) | Kind::Date)
}

/// Conditions that compare a column's numbers with a constant.
pub(crate) struct Bounded<'a> {
    tests: Vec<(usize, Comparison, i128)>,
    /// Columns whose numbers lie outside have no partner in a join.
    ranges: Vec<(usize, i64, i64)>,
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
        columns: &'a [TableColumn],
        layouts: &'a Layouts,
    ) -> Bounded<'a> {
        let mut tests = Vec::new();
        // Behind a condition that may warn nothing is passed by: it is asked of all rows that are left to it.
        for part in filter.iter().take_while(|part| !part.is_early()) {
            let Expr::Compare(comparison, a, b) = part else { continue };
            let (slot, comparison, constant) = match (&**a, &**b) {
                (Expr::Slot(slot, _), Expr::Constant(value, kind)) => (slot, *comparison, (value, kind)),
                (Expr::Constant(value, kind), Expr::Slot(slot, _)) => {
                    (slot, comparison.swapped(), (value, kind))
                }
                _ => continue,
            };
            let kind = columns[*slot as usize].kind;
            let is_number = is_number(kind);
            let Value::Number(number) = constant.0 else { continue };
            let scales = (kind.scale(), constant.1.scale());
            if !is_number || scales.1 > scales.0 {
                continue;
            }
            let Some(number) = power(scales.0 - scales.1).ok().and_then(|unit| number.checked_mul(unit))
            else {
                continue;
            };
            tests.push((*slot as usize, comparison, number));
        }
        let are_all = tests.len() == filter.len();
        let may_skip = !filter.iter().any(Expr::is_early);
        let ranges = joins.iter().filter(|(at, _)| may_skip && is_number(columns[*at].kind));
        let ranges = ranges.map(|(at, filter)| (*at, filter.bounds().0, filter.bounds().1)).collect();
        Bounded { tests, ranges, are_all, columns, layouts }
    }

    /// How many rows of a segment all conditions leave.
    pub(crate) fn verdict(&self, zones: &Zones<'_>) -> Verdict {
        for (at, least, most) in &self.ranges {
            if let Some(span) = self.span(*at, zones) {
                let is_outside = |(low, high)| high < i128::from(*least) || low > i128::from(*most);
                if least > most || span.bounds().is_none_or(is_outside) {
                    return Verdict::None;
                }
            }
        }
        let mut all = if self.are_all { Verdict::All } else { Verdict::Some };
        for (at, comparison, constant) in &self.tests {
            match self.one(*at, *comparison, *constant, zones) {
                Verdict::None => return Verdict::None,
                Verdict::Some => all = Verdict::Some,
                Verdict::All => {}
            }
        }
        all
    }

    fn span(&self, at: usize, zones: &Zones<'_>) -> Option<Span> {
        let of = &self.columns[at];
        let column = Column { table: 0, place: of.place, form: of.form.clone() };
        let stored = match of.place {
            Place::Stored(position) => self.layouts.current().columns.get(position),
            Place::Key { .. } => None,
        };
        Span::of(&zones.get(at)?, &column, stored)
    }

    fn one(&self, at: usize, comparison: Comparison, constant: i128, zones: &Zones<'_>) -> Verdict {
        let Some(span) = self.span(at, zones) else { return Verdict::Some };
        let Some((least, most)) = span.bounds() else { return Verdict::None };
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
