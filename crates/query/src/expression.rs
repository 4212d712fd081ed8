//! Expressions: numbers that are computed from columns.
//!
//! Each says of which scale its numbers are and within what bounds they have to be: the server's type for it. A number
//! beyond them is an error there, or something else than a number; here it is [`Trouble::Overflow`], and the query is
//! given back.

use std::borrow::Cow;

use pando_column::vector::Nulls;

use crate::cells::{Cells, Dense, Entries};
use crate::filter::Filter;
use crate::frame::{Frame, Slots, Trouble};

/// How many numbers a query may compute.
pub const EXPRESSIONS_MAX: usize = 1 << 14;

/// A number that is computed. It can be named like a column: the first one is named like a column after the last.
#[derive(Clone, Debug)]
pub struct Expression {
    /// How.
    pub operator: Operator,
    /// Digits behind its point.
    pub scale: u32,
    /// What it can be.
    pub bounds: Bounds,
}

/// What a number of the server's can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// That of 64 bits with a sign.
    Signed,
    /// That of 64 bits without.
    Unsigned,
    /// All that there is.
    Decimal,
}

/// What is computed. Columns are columns, or expressions that come before.
#[derive(Clone, Debug)]
pub enum Operator {
    /// Always the same, in the expression's scale; `None`: NULL.
    Constant(Option<i128>),
    /// The sum of two.
    Add(usize, usize),
    /// The first without the second.
    Subtract(usize, usize),
    /// The product.
    Multiply(usize, usize),
    /// The first where the condition is true, else the second.
    If(Filter, usize, usize),
    /// Of a DATE.
    OfDate(DatePart, usize),
    /// Of a DATETIME that has so many bits behind its seconds.
    OfDateTime(DatePart, usize, u32),
}

/// Part of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatePart {
    /// 0 to 9999.
    Year,
    /// 0 to 12.
    Month,
    /// 0 to 31.
    Day,
}

impl Expression {
    /// The slots that it is computed from.
    pub(crate) fn inputs(&self) -> Vec<usize> {
        match &self.operator {
            Operator::Constant(_) => Vec::new(),
            Operator::Add(a, b) | Operator::Subtract(a, b) | Operator::Multiply(a, b) => vec![*a, *b],
            Operator::OfDate(_, of) | Operator::OfDateTime(_, of, _) => vec![*of],
            Operator::If(filter, a, b) => {
                let mut slots = vec![*a, *b];
                filter.slots(&mut slots);
                slots
            }
        }
    }

    pub(crate) fn renumber(&mut self, number: &dyn Fn(usize) -> usize) {
        match &mut self.operator {
            Operator::Constant(_) => {}
            Operator::Add(a, b) | Operator::Subtract(a, b) | Operator::Multiply(a, b) => {
                (*a, *b) = (number(*a), number(*b));
            }
            Operator::OfDate(_, of) | Operator::OfDateTime(_, of, _) => *of = number(*of),
            Operator::If(filter, a, b) => {
                filter.renumber(number);
                (*a, *b) = (number(*a), number(*b));
            }
        }
    }

    /// Whether it can be computed, as the expression with this slot.
    pub(crate) fn fits(&self, slots: &Slots<'_>, slot: usize) -> bool {
        let are_numbers = match &self.operator {
            Operator::If(_, a, b) => slots.scale(*a).is_some() && slots.scale(*b).is_some(),
            _ => self.inputs().iter().all(|input| slots.scale(*input).is_some()),
        };
        let scales: Vec<u32> = self.inputs().iter().filter_map(|input| slots.scale(*input)).collect();
        let scale_fits = match self.operator {
            Operator::Constant(_) => true,
            Operator::Multiply(..) => scales.iter().sum::<u32>() == self.scale,
            Operator::Add(..) | Operator::Subtract(..) => scales.iter().max() == Some(&self.scale),
            Operator::If(_, a, b) => slots.scale(a).max(slots.scale(b)) == Some(self.scale),
            Operator::OfDate(..) | Operator::OfDateTime(..) => self.scale == 0,
        };
        are_numbers && scale_fits && self.inputs().iter().all(|input| *input < slot)
    }
}

impl DatePart {
    fn of_date(self, date: i128) -> i64 {
        (match self {
            DatePart::Year => date >> 9,
            DatePart::Month => date >> 5 & 15,
            DatePart::Day => date & 31,
        }) as i64
    }

    /// As the server packs them: from the top a bit, year times 13 plus month, day, hour, minute, second.
    fn of_date_time(self, value: i128, behind_seconds: u32) -> i64 {
        let days = value >> behind_seconds >> 17 & 0x3f_ffff;
        (match self {
            DatePart::Year => (days >> 5) / 13,
            DatePart::Month => (days >> 5) % 13,
            DatePart::Day => days & 31,
        }) as i64
    }
}

/// Computes it for a frame that has what it is computed from.
pub(crate) fn evaluate(
    expression: &Expression,
    slots: &Slots<'_>,
    frame: &mut Frame<'_>,
) -> Result<Cells<'static>, Trouble> {
    match &expression.operator {
        Operator::Constant(value) => Ok(Cells::constant(*value, frame.rows)),
        Operator::OfDate(part, of) => Ok(mapped(frame.cells(*of), |date| part.of_date(date))),
        Operator::OfDateTime(part, of, behind) => {
            Ok(mapped(frame.cells(*of), |value| part.of_date_time(value, *behind)))
        }
        Operator::Multiply(a, b) => {
            let [a, b] = [frame.cells(*a), frame.cells(*b)];
            computed(expression, [a, b], [1, 1], i64::checked_mul, i128::checked_mul)
        }
        Operator::Add(a, b) => {
            let factors = factors(slots, expression.scale, [*a, *b])?;
            let [a, b] = [frame.cells(*a), frame.cells(*b)];
            computed(expression, [a, b], factors, i64::checked_add, i128::checked_add)
        }
        Operator::Subtract(a, b) => {
            let factors = factors(slots, expression.scale, [*a, *b])?;
            let [a, b] = [frame.cells(*a), frame.cells(*b)];
            computed(expression, [a, b], factors, i64::checked_sub, i128::checked_sub)
        }
        Operator::If(filter, a, b) => {
            let prepared = filter.prepare(slots, false).ok_or(Trouble::Damaged)?;
            let mut mask = vec![1; frame.rows];
            prepared.narrow(slots, frame, &mut mask)?;
            let factors = factors(slots, expression.scale, [*a, *b])?;
            chosen(expression, &mask, [frame.cells(*a), frame.cells(*b)], factors)
        }
    }
}

/// What the numbers of the slots have to be multiplied by.
fn factors(slots: &Slots<'_>, scale: u32, of: [usize; 2]) -> Result<[i128; 2], Trouble> {
    let factor = |slot| {
        let digits = slots.scale(slot).and_then(|of| scale.checked_sub(of));
        digits.and_then(|digits| 10i128.checked_pow(digits)).ok_or(Trouble::Overflow)
    };
    Ok([factor(of[0])?, factor(of[1])?])
}

fn mapped(cells: &Cells<'_>, map: impl Fn(i128) -> i64) -> Cells<'static> {
    let entries: Vec<i64> = (0..cells.entries.len()).map(|entry| map(cells.entry_number(entry))).collect();
    Cells {
        rows: cells.rows,
        nulls: cells.nulls.as_deref().map(|nulls| Cow::Owned(nulls.clone())),
        codes: cells.codes.clone().into_owned(),
        entries: Entries::Small(entries.into()),
    }
}

fn either_null(a: &Cells<'_>, b: &Cells<'_>) -> Option<Nulls> {
    match (a.nulls.as_deref(), b.nulls.as_deref()) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (Some(a), Some(b)) => {
            let words = a.words().iter().zip(b.words()).map(|(a, b)| a | b).collect();
            Some(Nulls::from_words(words, a.rows()))
        }
    }
}

fn computed(
    expression: &Expression,
    cells: [&Cells<'_>; 2],
    factors: [i128; 2],
    small: impl Fn(i64, i64) -> Option<i64>,
    large: impl Fn(i128, i128) -> Option<i128>,
) -> Result<Cells<'static>, Trouble> {
    let nulls = either_null(cells[0], cells[1]);
    let [a, b] = cells.map(Cells::dense);
    if let (Dense::Small(a), Dense::Small(b)) = (&a, &b) {
        if let Some(values) = small_computed(a, b, factors, &small) {
            return bounded(Cells::of_small(values, nulls), expression.bounds);
        }
    }
    let is_null = |row| nulls.as_ref().is_some_and(|nulls: &Nulls| nulls.is_null(row));
    let one = |row: usize| {
        if is_null(row) {
            return Ok(0);
        }
        let a = a.get(row).checked_mul(factors[0]).ok_or(Trouble::Overflow)?;
        let b = b.get(row).checked_mul(factors[1]).ok_or(Trouble::Overflow)?;
        large(a, b).ok_or(Trouble::Overflow)
    };
    let values = (0..cells[0].rows).map(one).collect::<Result<Vec<_>, _>>()?;
    bounded(Cells::of_large(values, nulls), expression.bounds)
}

/// `None`: not all of them are numbers of 64 bits.
fn small_computed(
    a: &[i64],
    b: &[i64],
    factors: [i128; 2],
    compute: &impl Fn(i64, i64) -> Option<i64>,
) -> Option<Vec<i64>> {
    let pairs = a.iter().zip(b);
    if factors == [1, 1] {
        return pairs.map(|(a, b)| compute(*a, *b)).collect();
    }
    let factors = [i64::try_from(factors[0]).ok()?, i64::try_from(factors[1]).ok()?];
    pairs.map(|(a, b)| compute(a.checked_mul(factors[0])?, b.checked_mul(factors[1])?)).collect()
}

/// Checks that all numbers are such as they can be.
fn bounded(cells: Cells<'static>, bounds: Bounds) -> Result<Cells<'static>, Trouble> {
    let (least, most) = match bounds {
        Bounds::Decimal => return Ok(cells),
        Bounds::Signed => (i128::from(i64::MIN), i128::from(i64::MAX)),
        Bounds::Unsigned => (0, i128::from(u64::MAX)),
    };
    let is_fine = |row: usize, value: i128| (least..=most).contains(&value) || cells.is_null(row);
    let are_fine = match &cells.entries {
        Entries::Small(_) if bounds == Bounds::Signed => true,
        Entries::Small(values) => values.iter().enumerate().all(|(row, value)| is_fine(row, (*value).into())),
        Entries::Large(values) => values.iter().enumerate().all(|(row, value)| is_fine(row, *value)),
        Entries::Texts(_) | Entries::Presence => false,
    };
    if are_fine {
        Ok(cells)
    } else {
        Err(Trouble::Overflow)
    }
}

fn chosen(
    expression: &Expression,
    mask: &[u8],
    cells: [&Cells<'_>; 2],
    factors: [i128; 2],
) -> Result<Cells<'static>, Trouble> {
    let dense = cells.map(Cells::dense);
    let mut nulls = Nulls::new();
    let mut values = Vec::with_capacity(mask.len());
    let mut is_small = true;
    for (row, bit) in mask.iter().enumerate() {
        let which = usize::from(*bit == 0);
        let is_null = cells[which].is_null(row);
        let value = match is_null {
            true => 0,
            false => dense[which].get(row).checked_mul(factors[which]).ok_or(Trouble::Overflow)?,
        };
        is_small &= i64::try_from(value).is_ok();
        nulls.push(is_null);
        values.push(value);
    }
    let cells = match is_small {
        true => Cells::of_small(values.iter().map(|value| *value as i64).collect(), Some(nulls)),
        false => Cells::of_large(values, Some(nulls)),
    };
    bounded(cells, expression.bounds)
}
