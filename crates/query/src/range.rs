//! What numbers a slot can have by its type alone, and so: whether computing it can fail.
//!
//! Where the server computes a condition is a matter of its plan: of all rows of a table, of those that a key leads to, of
//! those that have found their partners in a join, of those for which the conditions before it are true. Where the
//! computation may fail, the plan decides whether there is an error. So a condition that can fail is computed here for all
//! rows of its table: there are none beside them that the server could look at. In a join it is not even known of which
//! tables' rows that would be (equal columns stand for each other): there it is not taken.
//!
//! What is computed of constants alone the server may compute before it looks at any row: if that can fail, the query is not
//! taken.
//!
//! What groups and aggregates are computed from needs none of this: the server, too, comes to it for the rows of the answer,
//! and for no others.

use crate::column::{Column, Form};
use crate::expression::{Bounds, DatePart, Expression, Operator};
use crate::frame::Slots;

/// The least and the most.
type Range = (i128, i128);

/// Of what nothing is computed: texts and such. And NULL.
const NO_NUMBER: Range = (0, 0);

/// For each slot the numbers that it can have; `None`: computing it can fail. `sizes` are the bytes of the columns.
pub(crate) fn ranges(slots: &Slots<'_>, sizes: &[Option<usize>]) -> Vec<Option<Range>> {
    let mut ranges: Vec<Option<Range>> =
        slots.columns.iter().zip(sizes).map(|(column, size)| Some(of_column(column, *size))).collect();
    for expression in slots.expressions {
        let range = of_expression(expression, slots, &ranges);
        ranges.push(range);
    }
    ranges
}

fn of_column(column: &Column, size: Option<usize>) -> Range {
    let bits = 8 * size.unwrap_or(8).min(8) as u32;
    match column.form {
        Form::Signed => (-1 << (bits - 1), (1 << (bits - 1)) - 1),
        Form::Unsigned => (0, (1 << bits) - 1),
        Form::Decimal { precision, .. } => {
            let most = 10i128.pow(precision.min(crate::decimal::PRECISION_MAX)) - 1;
            (-most, most)
        }
        Form::Year => (0, 1900 + 255),
        Form::Ordered | Form::Text(_) | Form::Presence => NO_NUMBER,
    }
}

fn of_expression(expression: &Expression, slots: &Slots<'_>, ranges: &[Option<Range>]) -> Option<Range> {
    // Conditions inside of it count like numbers that it is computed from.
    if expression.inputs().iter().any(|input| ranges.get(*input).is_none_or(Option::is_none)) {
        return None;
    }
    // In the expression's scale.
    let scaled = |slot: usize| {
        let factor = 10i128.checked_pow(expression.scale.checked_sub(slots.scale(slot)?)?)?;
        let (least, most) = ranges[slot]?;
        Some((least.checked_mul(factor)?, most.checked_mul(factor)?))
    };
    let (least, most) = match expression.operator {
        Operator::Constant(None) => NO_NUMBER,
        Operator::Constant(Some(value)) => (value, value),
        Operator::Add(a, b) => {
            let (a, b) = (scaled(a)?, scaled(b)?);
            (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?)
        }
        Operator::Subtract(a, b) => {
            let (a, b) = (scaled(a)?, scaled(b)?);
            (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?)
        }
        Operator::Multiply(a, b) => product(ranges[a]?, ranges[b]?)?,
        Operator::If(_, a, b) => {
            let (a, b) = (scaled(a)?, scaled(b)?);
            (a.0.min(b.0), a.1.max(b.1))
        }
        Operator::OfDate(part, _) | Operator::OfDateTime(part, ..) => match part {
            DatePart::Year => (0, (1 << 15) - 1),
            DatePart::Month => (0, 15),
            DatePart::Day => (0, 31),
        },
    };
    let (lowest, highest) = match expression.bounds {
        Bounds::Decimal => (i128::MIN, i128::MAX),
        Bounds::Signed => (i64::MIN.into(), i64::MAX.into()),
        Bounds::Unsigned => (0, u64::MAX.into()),
    };
    (lowest <= least && most <= highest).then_some((least, most))
}

fn product(a: Range, b: Range) -> Option<Range> {
    let corners = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)];
    let products = corners.map(|(a, b)| a.checked_mul(b));
    let mut range = (i128::MAX, i128::MIN);
    for product in products {
        let product = product?;
        range = (range.0.min(product), range.1.max(product));
    }
    Some(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Place;
    use crate::filter::Filter;

    fn column(form: Form) -> Column {
        Column { table: 0, place: Place::Stored(0), form }
    }

    /// Slot 0 is an INT, 1 an INT UNSIGNED, 2 a BIGINT, 3 a DECIMAL(20,4), 4 a TINYINT; 5 is the expression.
    fn range(operator: Operator, scale: u32, bounds: Bounds) -> Option<Range> {
        let columns = [
            column(Form::Signed),
            column(Form::Unsigned),
            column(Form::Signed),
            column(Form::Decimal { precision: 20, scale: 4 }),
            column(Form::Signed),
        ];
        let expressions = [Expression { operator, scale, bounds }];
        let slots = Slots { columns: &columns, expressions: &expressions };
        ranges(&slots, &[Some(4), Some(4), Some(8), Some(10), Some(1)])[5]
    }

    #[test]
    fn numbers_that_fit_by_their_types_cannot_fail() {
        let of_tinyint = Operator::Multiply(4, 4);
        assert_eq!(range(of_tinyint, 0, Bounds::Signed), Some((-128 * 127, 128 * 128)));
        assert!(range(Operator::Multiply(0, 0), 0, Bounds::Signed).is_some());
        assert!(range(Operator::Add(0, 1), 0, Bounds::Signed).is_some());
        assert!(range(Operator::Add(2, 3), 4, Bounds::Decimal).is_some());
        assert!(range(Operator::OfDate(DatePart::Year, 1), 0, Bounds::Signed).is_some());
        assert!(range(Operator::Constant(None), 0, Bounds::Unsigned).is_some());
    }

    #[test]
    fn numbers_that_could_be_too_large_or_negative_can_fail() {
        assert_eq!(range(Operator::Add(2, 0), 0, Bounds::Signed), None);
        assert_eq!(range(Operator::Subtract(1, 1), 0, Bounds::Unsigned), None);
        assert_eq!(range(Operator::Multiply(3, 3), 8, Bounds::Decimal), None, "40 digits");
        assert_eq!(range(Operator::Constant(Some(-1)), 0, Bounds::Unsigned), None);
        assert_eq!(
            range(Operator::If(Filter::IsNull(9), 0, 0), 0, Bounds::Signed),
            None,
            "of what is not there"
        );
    }
}
