//! Segments of a table that conditions need not look at.

use pando_query::zone::Span;
use pandodb::layout::Layouts;
use pandodb::{Verdict, Zones};

use crate::block::TableColumn;
use crate::column::{Kind, Value};
use crate::eval::power;
use crate::expr::{Comparison, Expr};
use pando_query::{Column, Place};

/// Conditions that compare a column's numbers with a constant.
pub(crate) struct Bounded<'a> {
    tests: Vec<(usize, Comparison, i128)>,
    /// No others.
    are_all: bool,
    columns: &'a [TableColumn],
    layouts: &'a Layouts,
}

impl<'a> Bounded<'a> {
    /// Of conditions that are bound to the columns.
    pub(crate) fn of(filter: &[Expr], columns: &'a [TableColumn], layouts: &'a Layouts) -> Bounded<'a> {
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
            let is_number = matches!(kind, Kind::Signed | Kind::Unsigned | Kind::Decimal(_) | Kind::Date);
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
        Bounded { tests, are_all, columns, layouts }
    }

    /// How many rows of a segment all conditions leave.
    pub(crate) fn verdict(&self, zones: &Zones<'_>) -> Verdict {
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

    fn one(&self, at: usize, comparison: Comparison, constant: i128, zones: &Zones<'_>) -> Verdict {
        let of = &self.columns[at];
        let column = Column { table: 0, place: of.place, form: of.form.clone() };
        let stored = match of.place {
            Place::Stored(position) => self.layouts.current().columns.get(position),
            Place::Key { .. } => None,
        };
        let Some(zone) = zones.get(at) else { return Verdict::Some };
        let Some(span) = Span::of(&zone, &column, stored) else { return Verdict::Some };
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
