//! Quotients, and numbers that lose digits behind the point. Most numbers are small, and so are their divisors: these take no 128 bits.

use crate::column::{Column, Data, OVERFLOW, UNSUPPORTED};
use crate::eval::{either_null, power, zip, Result, Small, Val};

/// Half is rounded away from zero.
pub(crate) fn rounded(value: i128, unit: i128) -> i128 {
    let (whole, rest) = (value / unit, (value % unit).unsigned_abs());
    match rest * 2 >= unit.unsigned_abs() {
        true => whole + value.signum(),
        false => whole,
    }
}

/// As `rounded`, of a unit above 1.
pub(crate) fn rounded_small(value: i64, unit: i64) -> i64 {
    let (whole, rest) = (value / unit, (value % unit).unsigned_abs());
    whole + if rest >= unit.unsigned_abs().div_ceil(2) { value.signum() } else { 0 }
}

/// The quotient of numbers with so many digits behind the point, cut to `scale` of them.
pub(crate) fn divide(scale: u32, a: &Val, b: &Val, scales: (u32, u32), rows: usize) -> Result<Column> {
    let nulls = either_null(a, b, rows);
    // a / 10^s / (b / 10^t) * 10^scale
    let digits = i64::from(scale) + i64::from(scales.1) - i64::from(scales.0);
    let factor = power(digits.unsigned_abs() as u32)?;
    if let (..=0, Some(a), Some(Small::One(b @ 1..))) = (digits, Small::of(a), Small::of(b)) {
        if let Ok(b) = i64::try_from(i128::from(b).saturating_mul(factor)) {
            let values = zip(&a, &Small::One(b), rows, |a, b| a / b);
            return Ok(Column { data: Data::Small(values), nulls });
        }
    }
    let one = |row: usize| {
        if nulls.as_ref().is_some_and(|nulls| nulls[row]) {
            return Ok(0);
        }
        let (a, b) = (a.number(row), b.number(row));
        if b == 0 {
            return Err(UNSUPPORTED);
        }
        match digits >= 0 {
            true => Ok(a.checked_mul(factor).ok_or(OVERFLOW)? / b),
            false => Ok(a / b.checked_mul(factor).ok_or(OVERFLOW)?),
        }
    };
    let values = (0..rows).map(one).collect::<Result<Vec<i128>>>()?;
    Ok(Column::of_large(values, nulls))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::column::Value;

    #[test]
    fn small_numbers_are_divided_and_rounded_as_large_ones() {
        let numbers =
            [i64::MIN, i64::MIN + 1, -150, -100, -51, -50, -49, -1, 0, 1, 49, 50, 51, 149, i64::MAX];
        for unit in [10, 100, 1000] {
            for number in numbers {
                let expected = rounded(number.into(), unit.into());
                assert_eq!(i128::from(rounded_small(number, unit)), expected, "{number} / {unit}");
            }
        }
        let column = |data| Val::Each(Arc::new(Column { data, nulls: None }));
        let small = column(Data::Small(numbers.to_vec()));
        let large = column(Data::Large(numbers.iter().map(|number| i128::from(*number)).collect()));
        for divisor in [1, 7, 3600, i64::MAX] {
            let by = Val::One(Value::Number(divisor.into()));
            for (scale, scales) in [(0, (0, 0)), (0, (3, 0)), (1, (3, 0)), (2, (0, 0)), (0, (18, 0))] {
                let quotients = |of| {
                    divide(scale, of, &by, scales, numbers.len())
                        .map(|column| (0..numbers.len()).map(|row| column.number(row)).collect::<Vec<i128>>())
                };
                assert_eq!(
                    quotients(&small).unwrap(),
                    quotients(&large).unwrap(),
                    "{divisor} {scale} {scales:?}"
                );
            }
        }
    }
}
