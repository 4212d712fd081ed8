//! Aggregates whose state is more than one number: means and variances of DOUBLEs, bits, texts one after the other.

use std::sync::Arc;

use pando_query::{Failure, Why};

use crate::column::{Column, Data, Kind, OVERFLOW, UNSUPPORTED};
use crate::concat::{Concat, Shown};
use crate::eval::{Eval, Result};
use crate::expr::Function;
use crate::keys::Budget;
use crate::rounding::Rounding;

/// How many values, their mean, and the sum of the squares of how far they are from it (Welford's method: what is known
/// after each value depends on the order of values, and is the server's bit by bit where the order is).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        if self.count == 1 {
            self.mean = value;
            return;
        }
        let from_before = value - self.mean;
        self.mean += from_before / self.count as f64;
        self.squares += from_before * (value - self.mean);
    }

    fn variance(&self, of_sample: bool) -> Option<f64> {
        match (self.count, of_sample) {
            (0, _) | (1, true) => None,
            (1, false) => Some(0.0),
            (count, _) => Some(self.squares / (count - u64::from(of_sample)) as f64),
        }
    }
}

/// What is known of all groups so far, of one aggregate.
#[derive(Clone, Debug)]
pub(crate) enum Other {
    Moments(Vec<Moments>),
    /// How many, and their sum.
    Mean(Vec<(u64, f64)>),
    Bits(Function, Vec<u64>),
    Concat(Concat),
    Rounding(Vec<Rounding>),
}

fn bits(function: Function, a: u64, b: u64) -> u64 {
    match function {
        Function::BitAnd => a & b,
        Function::BitOr => a | b,
        _ => a ^ b,
    }
}

impl Other {
    pub(crate) fn new(function: Function) -> Other {
        match function {
            Function::Mean => Other::Mean(Vec::new()),
            Function::BitAnd | Function::BitOr | Function::BitXor => Other::Bits(function, Vec::new()),
            Function::Concat => Other::Concat(Concat::default()),
            Function::ErrorOfSum | Function::ErrorOfMean => Other::Rounding(Vec::new()),
            _ => Other::Moments(Vec::new()),
        }
    }

    pub(crate) fn grow(&mut self, count: usize) {
        match self {
            Other::Moments(all) => all.resize(count, Moments::default()),
            Other::Mean(all) => all.resize(count, (0, 0.0)),
            Other::Bits(function, all) => {
                all.resize(count, if *function == Function::BitAnd { u64::MAX } else { 0 })
            }
            Other::Concat(_) => {}
            Other::Rounding(all) => all.resize(count, Rounding::default()),
        }
    }

    /// Adds rows; says how many bytes they take beside those of the groups.
    pub(crate) fn add(&mut self, kind: Kind, groups: &[u32], columns: &[Arc<Column>]) -> Result<usize> {
        let Some(column) = columns.first() else { return Err(UNSUPPORTED) };
        let rows = groups.iter().enumerate().map(|(row, group)| (row, *group as usize));
        let known = rows.filter(|(row, _)| !column.is_null(*row));
        match self {
            Other::Moments(all) => {
                for (row, group) in known {
                    all[group].add(real_of(column, kind, row)?);
                }
            }
            Other::Mean(all) => {
                for (row, group) in known {
                    all[group].0 += 1;
                    all[group].1 += real_of(column, kind, row)?;
                }
            }
            Other::Bits(function, all) => {
                for (row, group) in known {
                    all[group] = bits(*function, all[group], column.number(row) as u64);
                }
            }
            Other::Concat(concat) => return Ok(concat.add(groups, columns)),
            Other::Rounding(all) => {
                for (row, group) in known {
                    all[group].add(real_of(column, kind, row)?);
                }
            }
        }
        Ok(0)
    }

    /// Adds what another thread, or partition, has of groups with these numbers.
    pub(crate) fn merge(&mut self, other: Other, groups: &[u32]) -> Result<()> {
        match (self, other) {
            (Other::Moments(all), Other::Moments(others)) => {
                for (group, other) in groups.iter().zip(others).filter(|(_, other)| other.count > 0) {
                    into_none(&mut all[*group as usize], other, |own| own.count)?;
                }
            }
            (Other::Mean(all), Other::Mean(others)) => {
                for (group, other) in groups.iter().zip(others).filter(|(_, other)| other.0 > 0) {
                    into_none(&mut all[*group as usize], other, |own| own.0)?;
                }
            }
            (Other::Bits(function, all), Other::Bits(_, others)) => {
                for (group, other) in groups.iter().zip(others) {
                    let own = &mut all[*group as usize];
                    *own = bits(*function, *own, other);
                }
            }
            (Other::Concat(concat), Other::Concat(other)) => concat.merge(other, groups),
            (Other::Rounding(all), Other::Rounding(others)) => {
                for (group, other) in groups.iter().zip(others) {
                    all[*group as usize].merge(&other);
                }
            }
            _ => return Err(UNSUPPORTED),
        }
        Ok(())
    }

    pub(crate) fn finish(
        self,
        function: Function,
        shown: Option<&Shown>,
        rows: usize,
        (budget, eval): (&Budget, Eval<'_>),
    ) -> Result<Column> {
        let values: Vec<Option<f64>> = match self {
            Other::Bits(_, all) => {
                return Ok(Column::of_large(all.into_iter().map(i128::from).collect(), None));
            }
            Other::Concat(concat) => return concat.finish(shown.ok_or(UNSUPPORTED)?, rows, budget, eval),
            Other::Mean(all) => {
                all.into_iter().map(|(count, sum)| (count > 0).then(|| sum / count as f64)).collect()
            }
            Other::Rounding(all) => {
                let error =
                    if function == Function::ErrorOfSum { Rounding::of_sum } else { Rounding::of_mean };
                all.iter().map(error).collect()
            }
            Other::Moments(all) => {
                let of_sample = matches!(function, Function::VarianceOfSample | Function::DeviationOfSample);
                let is_root = matches!(function, Function::Deviation | Function::DeviationOfSample);
                let root = |variance: f64| if is_root { variance.sqrt() } else { variance };
                all.iter().map(|moments| moments.variance(of_sample).map(root)).collect()
            }
        };
        // What the server makes of an infinite one is its own.
        if values.iter().flatten().any(|value| !value.is_finite()) {
            return Err(OVERFLOW);
        }
        let nulls = values.iter().any(Option::is_none).then(|| values.iter().map(Option::is_none).collect());
        Ok(Column { data: Data::Real(values.into_iter().map(Option::unwrap_or_default).collect()), nulls })
    }
}

/// Two parts of the same group would be added in an order that is not that of rows.
fn into_none<T>(own: &mut T, other: T, count: impl Fn(&T) -> u64) -> Result<()> {
    if count(own) > 0 {
        return Err(Failure::GivenBack(Why::Undetermined));
    }
    *own = other;
    Ok(())
}

fn real_of(column: &Column, kind: Kind, row: usize) -> Result<f64> {
    match (&column.data, kind) {
        (Data::Real(values), _) => Ok(values[row]),
        (Data::Text(..), _) => Err(UNSUPPORTED),
        (_, Kind::Signed | Kind::Unsigned) => Ok(column.number(row) as f64),
        (_, Kind::Decimal(scale)) => Ok(real_of_decimal(column.number(row), scale)),
        _ => Err(UNSUPPORTED),
    }
}

/// Below this, numbers are DOUBLEs exactly; so are the powers of ten up to the last one.
const EXACT: u128 = 1 << 53;
const EXACT_POWER: u32 = 22;

/// The DOUBLE that is next to a DECIMAL.
fn real_of_decimal(value: i128, scale: u32) -> f64 {
    if scale == 0 {
        return value as f64;
    }
    if value.unsigned_abs() < EXACT && scale <= EXACT_POWER {
        return value as f64 / 10u128.pow(scale) as f64;
    }
    format!("{value}e-{scale}").parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|value| moments.add(*value));
        moments
    }

    #[test]
    fn variances_are_those_of_all_and_of_a_sample() {
        let moments = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(moments.variance(false), Some(4.0));
        assert_eq!(moments.variance(true), Some(32.0 / 7.0));
        assert_eq!((of(&[]).variance(false), of(&[]).variance(true)), (None, None));
        assert_eq!((of(&[3.0]).variance(false), of(&[3.0]).variance(true)), (Some(0.0), None));
    }

    #[test]
    fn parts_of_a_group_are_not_added_up_where_their_order_counts() {
        let column = |values: Vec<f64>| vec![Arc::new(Column { data: Data::Real(values), nulls: None })];
        let state = |groups: &[u32], values: Vec<f64>| {
            let mut state = Other::new(Function::Variance);
            state.grow(2);
            assert!(state.add(Kind::Real, groups, &column(values)).is_ok());
            state
        };
        let mut own = state(&[0, 0], vec![1.0, 2.0]);
        assert!(own.merge(state(&[1, 1], vec![5.0, 9.0]), &[0, 1]).is_ok());
        assert!(own.merge(state(&[1], vec![5.0]), &[0, 1]).is_err());
        let (texts, budget) = (crate::expr::Texts::default(), Budget::new(0));
        let eval = Eval { texts: &texts, is_stopped: &|| false };
        let column = own.finish(Function::Variance, None, 2, (&budget, eval)).ok();
        assert_eq!(column.map(|column| format!("{:?}", column.data)), Some("Real([0.25, 4.0])".to_owned()));
    }

    #[test]
    fn decimals_become_the_next_double() {
        for (value, scale, real) in [
            (15, 1, 1.5),
            (-1, 2, -0.01),
            (1, 30, 1e-30),
            (123_456_789_012_345_678_901, 9, 123_456_789_012.345_68),
        ] {
            assert_eq!(real_of_decimal(value, scale), real);
        }
    }
}
