//! Conditions on the columns of one row, evaluated for a batch at a time, with three values.
//!
//! A constant is brought to the scale of its column once: what lies between two values of the column becomes a
//! condition on the values around it. So comparisons of integers with decimal constants are those of whole numbers.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::batch::{Batch, Cells, Collation, Column, Form, Values};

/// Results of comparisons of texts that one condition remembers, while it has met fewer different ones.
const REMEMBERED_TEXTS: usize = 4096;

/// How a column is compared with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// What a column is compared with.
#[derive(Clone, Debug)]
pub enum Constant {
    /// NULL.
    Null,
    /// `value` divided by ten to the power of `scale`.
    Number {
        /// Without its point.
        value: i128,
        /// Digits behind the point.
        scale: u32,
    },
    /// Text, and the order that counts for this comparison.
    Text(Vec<u8>, Collation),
}

/// A condition.
#[derive(Clone, Debug)]
pub enum Filter {
    /// All are true.
    And(Vec<Filter>),
    /// One is true.
    Or(Vec<Filter>),
    /// It is false.
    Not(Box<Filter>),
    /// Column, comparison, constant.
    Compare(usize, Comparison, Constant),
    /// The column equals one of them.
    In(usize, Vec<Constant>),
    /// The column is NULL.
    IsNull(usize),
    /// Always so; `None` is unknown.
    Always(Option<bool>),
}

/// False, true or unknown.
type Truth = u8;
const FALSE: Truth = 0;
const TRUE: Truth = 1;
const UNKNOWN: Truth = 2;

fn truth(value: Option<bool>) -> Truth {
    value.map_or(UNKNOWN, Truth::from)
}

/// A condition ready to be evaluated; of one thread.
#[derive(Debug)]
pub(crate) enum Prepared {
    All(Vec<Prepared>),
    Any(Vec<Prepared>),
    Not(Box<Prepared>),
    Number(usize, Comparison, i128),
    Numbers {
        column: usize,
        sorted: Vec<i128>,
        has_null: bool,
    },
    Text {
        column: usize,
        test: TextTest,
        known: HashMap<Vec<u8>, Truth>,
    },
    IsNull(usize),
    /// Of NULLs unknown, of others this.
    Given(usize, bool),
    Always(Truth),
}

#[derive(Debug)]
pub(crate) enum TextTest {
    Compare(Comparison, Vec<u8>, Collation),
    In(Vec<(Vec<u8>, Collation)>, bool),
}

impl TextTest {
    fn of(&self, text: &[u8]) -> Truth {
        match self {
            TextTest::Compare(comparison, constant, Collation(order)) => {
                Truth::from(comparison.holds(order(text, constant)))
            }
            TextTest::In(constants, has_null) => {
                match constants.iter().any(|(constant, Collation(order))| order(text, constant).is_eq()) {
                    true => TRUE,
                    false => truth((!has_null).then_some(false)),
                }
            }
        }
    }
}

/// The scale that a column's numbers have; `None` where it is not compared with numbers.
fn scale_of(column: &Column) -> Option<u32> {
    match column.form {
        Form::Signed | Form::Unsigned | Form::Ordered => Some(0),
        Form::Decimal { scale, .. } => Some(scale),
        Form::Text(_) | Form::Presence => None,
    }
}

/// The largest whole number of the column's scale that is not above the constant, and whether it is the constant.
/// `None`: beyond what can be computed with.
fn scaled(value: i128, scale: u32, to: u32) -> Option<(i128, bool)> {
    if scale <= to {
        return Some((value.checked_mul(10i128.checked_pow(to - scale)?)?, true));
    }
    let unit = 10i128.checked_pow(scale - to)?;
    Some((value.div_euclid(unit), value.rem_euclid(unit) == 0))
}

fn number_test(column: usize, comparison: Comparison, value: i128, is_exact: bool) -> Prepared {
    use Comparison::*;
    if is_exact {
        return Prepared::Number(column, comparison, value);
    }
    match comparison {
        Equal => Prepared::Given(column, false),
        NotEqual => Prepared::Given(column, true),
        Less | LessOrEqual => Prepared::Number(column, LessOrEqual, value),
        Greater | GreaterOrEqual => Prepared::Number(column, Greater, value),
    }
}

impl Filter {
    /// `None`: columns and constants do not fit, or beyond what can be computed with.
    pub(crate) fn prepare(&self, columns: &[Column]) -> Option<Prepared> {
        let all = |filters: &[Filter]| filters.iter().map(|f| f.prepare(columns)).collect::<Option<Vec<_>>>();
        Some(match self {
            Filter::And(filters) => Prepared::All(all(filters)?),
            Filter::Or(filters) => Prepared::Any(all(filters)?),
            Filter::Not(filter) => Prepared::Not(Box::new(filter.prepare(columns)?)),
            Filter::Always(value) => Prepared::Always(truth(*value)),
            Filter::IsNull(column) => columns.get(*column).map(|_| Prepared::IsNull(*column))?,
            Filter::Compare(column, comparison, constant) => {
                let of = columns.get(*column)?;
                match constant {
                    Constant::Null => Prepared::Always(UNKNOWN),
                    Constant::Number { value, scale } => {
                        let (value, is_exact) = scaled(*value, *scale, scale_of(of)?)?;
                        number_test(*column, *comparison, value, is_exact)
                    }
                    Constant::Text(text, collation) => {
                        let Form::Text(_) = of.form else { return None };
                        let test = TextTest::Compare(*comparison, text.clone(), collation.clone());
                        Prepared::Text { column: *column, test, known: HashMap::new() }
                    }
                }
            }
            Filter::In(column, constants) => prepare_in(*column, columns.get(*column)?, constants)?,
        })
    }
}

fn prepare_in(column: usize, of: &Column, constants: &[Constant]) -> Option<Prepared> {
    let (mut sorted, mut texts, mut has_null) = (Vec::new(), Vec::new(), false);
    for constant in constants {
        match (constant, &of.form) {
            (Constant::Null, _) => has_null = true,
            (Constant::Text(text, collation), Form::Text(_)) => texts.push((text.clone(), collation.clone())),
            (Constant::Text(..), _) => return None,
            (Constant::Number { value, scale }, _) => {
                let (value, is_exact) = scaled(*value, *scale, scale_of(of)?)?;
                // What no value of the column can be is not looked for.
                sorted.extend(is_exact.then_some(value));
            }
        }
    }
    if let Form::Text(_) = of.form {
        return Some(Prepared::Text { column, test: TextTest::In(texts, has_null), known: HashMap::new() });
    }
    sorted.sort_unstable();
    Some(Prepared::Numbers { column, sorted, has_null })
}

impl Prepared {
    /// The rows for which it is true.
    pub(crate) fn select(&mut self, batch: &Batch, selected: &mut Vec<u32>) {
        let truths = self.evaluate(batch);
        selected.clear();
        selected.extend((0u32..).zip(&truths).filter(|(_, truth)| **truth == TRUE).map(|(row, _)| row));
    }

    fn evaluate(&mut self, batch: &Batch) -> Vec<Truth> {
        match self {
            Prepared::All(parts) => combine(parts, batch, TRUE, FALSE),
            Prepared::Any(parts) => combine(parts, batch, FALSE, TRUE),
            Prepared::Not(part) => {
                let mut truths = part.evaluate(batch);
                truths.iter_mut().filter(|truth| **truth != UNKNOWN).for_each(|truth| *truth ^= 1);
                truths
            }
            Prepared::Always(truth) => vec![*truth; batch.rows],
            Prepared::IsNull(column) => {
                batch.columns[*column].nulls.iter().map(|null| Truth::from(*null)).collect()
            }
            Prepared::Given(column, value) => {
                let value = Truth::from(*value);
                let nulls = &batch.columns[*column].nulls;
                nulls.iter().map(|null| if *null { UNKNOWN } else { value }).collect()
            }
            Prepared::Number(column, comparison, constant) => {
                compare_numbers(&batch.columns[*column], *comparison, *constant)
            }
            Prepared::Numbers { column, sorted, has_null } => {
                let absent = truth((!*has_null).then_some(false));
                numbers(&batch.columns[*column], |value| {
                    if sorted.binary_search(&value).is_ok() {
                        TRUE
                    } else {
                        absent
                    }
                })
            }
            Prepared::Text { column, test, known } => texts(&batch.columns[*column], test, known),
        }
    }
}

/// Three-valued AND (neutral: true, decisive: false) and OR (the other way round).
fn combine(parts: &mut [Prepared], batch: &Batch, neutral: Truth, decisive: Truth) -> Vec<Truth> {
    let mut truths = vec![neutral; batch.rows];
    for part in parts {
        for (truth, other) in truths.iter_mut().zip(part.evaluate(batch)) {
            if *truth != decisive && other != neutral {
                *truth = other;
            }
        }
    }
    truths
}

fn numbers(cells: &Cells, mut test: impl FnMut(i128) -> Truth) -> Vec<Truth> {
    let Values::Numbers(values) = &cells.values else { unreachable!("prepared for numbers") };
    values.iter().zip(&cells.nulls).map(|(value, null)| if *null { UNKNOWN } else { test(*value) }).collect()
}

fn compare_numbers(cells: &Cells, comparison: Comparison, constant: i128) -> Vec<Truth> {
    match comparison {
        Comparison::Equal => numbers(cells, |value| Truth::from(value == constant)),
        Comparison::NotEqual => numbers(cells, |value| Truth::from(value != constant)),
        Comparison::Less => numbers(cells, |value| Truth::from(value < constant)),
        Comparison::LessOrEqual => numbers(cells, |value| Truth::from(value <= constant)),
        Comparison::Greater => numbers(cells, |value| Truth::from(value > constant)),
        Comparison::GreaterOrEqual => numbers(cells, |value| Truth::from(value >= constant)),
    }
}

fn texts(cells: &Cells, test: &TextTest, known: &mut HashMap<Vec<u8>, Truth>) -> Vec<Truth> {
    let Values::Texts(texts) = &cells.values else { unreachable!("prepared for texts") };
    let mut of = |text: &[u8]| {
        if let Some(truth) = known.get(text) {
            return *truth;
        }
        let truth = test.of(text);
        if known.len() < REMEMBERED_TEXTS {
            known.insert(text.to_vec(), truth);
        }
        truth
    };
    let one = |(row, null): (usize, &bool)| if *null { UNKNOWN } else { of(texts.get(row)) };
    cells.nulls.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_between_two_values_of_a_column_fall_on_the_side_where_they_are() {
        assert_eq!(scaled(125, 2, 1), Some((12, false)), "1.25 among tenths");
        assert_eq!(scaled(-125, 2, 1), Some((-13, false)), "-1.25 lies above -1.3");
        assert_eq!(scaled(-120, 2, 1), Some((-12, true)));
        assert_eq!(scaled(5, 0, 3), Some((5000, true)));
        assert_eq!(scaled(i128::MAX, 0, 1), None);
    }
}
