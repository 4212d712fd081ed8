//! Conditions that say between which numbers a column lies, asked of all rows in one pass: neither a truth for each row
//! and comparison is kept, nor is there a branch.

use crate::column::{Column, Data, Kind, Value};
use crate::expr::{Comparison, Expr};

/// The numbers from `least` to `most`, as a column has them; none if `least` is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    least: i64,
    most: i64,
}

impl Interval {
    const NONE: Interval = Interval { least: 1, most: 0 };

    /// What a condition says of the one column it is about. `None`: something else.
    pub(crate) fn of(condition: &Expr) -> Option<Interval> {
        match condition {
            Expr::And(parts) => {
                let mut all = Interval { least: i64::MIN, most: i64::MAX };
                for part in parts {
                    let one = Interval::of(part)?;
                    all = Interval { least: all.least.max(one.least), most: all.most.min(one.most) };
                }
                Some(if all.least > all.most { Interval::NONE } else { all })
            }
            Expr::Compare(comparison, a, b) => match (&**a, &**b) {
                (Expr::Slot(_, kind), Expr::Constant(value, of)) => compared(*comparison, *kind, value, *of),
                (Expr::Constant(value, of), Expr::Slot(_, kind)) => {
                    compared(comparison.swapped(), *kind, value, *of)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The rows whose number is one of these; `None`: all rows. `None` in all: the column's numbers are not small ones.
    pub(crate) fn select(self, column: &Column) -> Option<Option<Vec<u32>>> {
        let Data::Small(values) = &column.data else { return None };
        if self.least > self.most {
            return Some(Some(Vec::new()));
        }
        let wide = self.most.wrapping_sub(self.least) as u64;
        let is_in = |value: &i64| value.wrapping_sub(self.least) as u64 <= wide;
        let (mut kept, mut count) = (vec![0u32; values.len()], 0);
        match &column.nulls {
            None => {
                for (row, value) in values.iter().enumerate() {
                    kept[count] = row as u32;
                    count += usize::from(is_in(value));
                }
            }
            Some(nulls) => {
                for (row, (value, is_null)) in values.iter().zip(nulls).enumerate() {
                    kept[count] = row as u32;
                    count += usize::from(is_in(value) & !is_null);
                }
            }
        }
        kept.truncate(count);
        Some((count < values.len()).then_some(kept))
    }
}

impl Interval {
    /// 1 for each number that is one of these, and 0 for others; `None`: the column has NULLs, or its numbers are not small ones.
    pub(crate) fn mask(self, column: &Column) -> Option<Vec<u8>> {
        let (Data::Small(values), None) = (&column.data, &column.nulls) else { return None };
        let is_in = |value: &i64| u8::from(self.least <= *value && *value <= self.most);
        Some(values.iter().map(is_in).collect())
    }
}

/// What it says to compare a column with a constant.
fn compared(comparison: Comparison, kind: Kind, value: &Value, of: Kind) -> Option<Interval> {
    let is_number = |kind: Kind| !kind.is_text() && kind != Kind::Real;
    let Value::Number(number) = value else { return None };
    if !is_number(kind) || !is_number(of) {
        return None;
    }
    // The constant has no more digits behind the point than the column, or it lies between two of the column's numbers.
    let (floor, is_exact) = match kind.scale().checked_sub(of.scale()) {
        Some(more) => (number.checked_mul(10i128.checked_pow(more)?)?, true),
        None => {
            let unit = 10i128.checked_pow(of.scale() - kind.scale())?;
            (number.div_euclid(unit), number.rem_euclid(unit) == 0)
        }
    };
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let (low, high) = match comparison {
        Comparison::Equal | Comparison::Same if !is_exact => return Some(Interval::NONE),
        Comparison::Equal | Comparison::Same => (floor, floor),
        Comparison::NotEqual => return None,
        Comparison::Less if is_exact => (least, floor.checked_sub(1)?),
        Comparison::Less | Comparison::LessOrEqual => (least, floor),
        Comparison::GreaterOrEqual if is_exact => (floor, most),
        Comparison::Greater | Comparison::GreaterOrEqual => (floor.checked_add(1)?, most),
    };
    let (low, high) = (low.max(least), high.min(most));
    match (i64::try_from(low), i64::try_from(high)) {
        (Ok(low), Ok(high)) if low <= high => Some(Interval { least: low, most: high }),
        _ => Some(Interval::NONE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::holds;
    use crate::expr::Slot;

    const COMPARISONS: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
        Comparison::Same,
    ];

    fn slot(kind: Kind) -> Box<Expr> {
        Box::new(Expr::Slot(0 as Slot, kind))
    }

    fn constant(number: i128, kind: Kind) -> Box<Expr> {
        Box::new(Expr::Constant(Value::Number(number), kind))
    }

    /// Compares a column with two digits behind the point with a constant, both ways, beside the numbers one by one.
    fn check(comparison: Comparison, values: &[i64], nulls: Option<Vec<bool>>, number: i128, scale: u32) {
        let column = Column { data: Data::Small(values.to_vec()), nulls };
        let common = scale.max(2);
        let constant_in_common = number * 10i128.pow(common - scale);
        let is_kept = |row: &u32| {
            let value = i128::from(values[*row as usize]) * 10i128.pow(common - 2);
            !column.is_null(*row as usize) && holds(comparison, value.cmp(&constant_in_common))
        };
        let expected: Vec<u32> = (0..values.len() as u32).filter(is_kept).collect();
        let (slot, constant) = (slot(Kind::Decimal(2)), constant(number, Kind::Decimal(scale)));
        for condition in [
            Expr::Compare(comparison, slot.clone(), constant.clone()),
            Expr::Compare(comparison.swapped(), constant, slot),
        ] {
            let found =
                Interval::of(&condition).expect("an interval").select(&column).expect("small numbers");
            let found = found.unwrap_or_else(|| (0..values.len() as u32).collect());
            assert_eq!(found, expected, "{condition:?}");
            let mask = Interval::of(&condition).and_then(|interval| interval.mask(&column));
            let of_mask = mask
                .map(|mask| (0..).zip(mask).filter(|(_, is_in)| *is_in == 1).map(|(row, _)| row).collect());
            assert_eq!(of_mask, column.nulls.is_none().then_some(expected.clone()), "{condition:?}");
        }
    }

    /// Every comparison with constants of more and of fewer digits, at the ends of what there is.
    #[test]
    fn rows_are_those_of_which_the_comparison_holds() {
        let values = [i64::MIN, -1201, -1200, -1199, -1, 0, 1, 1199, 1200, 1201, i64::MAX - 1, i64::MAX];
        let nulls: Vec<bool> = (0..values.len()).map(|row| row % 5 == 3).collect();
        let mut numbers: Vec<i128> = values.iter().map(|value| i128::from(*value)).collect();
        numbers.extend([i128::from(i64::MAX) + 1, i128::from(i64::MIN) - 1, i128::MAX / 1000]);
        numbers.extend([12, -12, 120_000, 120_001, -120_001]);
        for comparison in COMPARISONS {
            for scale in [0, 2, 4] {
                for number in &numbers {
                    check(comparison, &values, None, *number, scale);
                    check(comparison, &values, Some(nulls.clone()), *number, scale);
                }
            }
        }
    }

    #[test]
    fn conditions_are_met_together() {
        let compare = |comparison, number| {
            Expr::Compare(comparison, slot(Kind::Signed), constant(number, Kind::Signed))
        };
        let both = Expr::And(vec![compare(Comparison::Greater, 3), compare(Comparison::LessOrEqual, 5)]);
        assert_eq!(Interval::of(&both), Some(Interval { least: 4, most: 5 }));
        let none = Expr::And(vec![both.clone(), compare(Comparison::Equal, 9)]);
        assert_eq!(Interval::of(&none), Some(Interval::NONE));
        assert_eq!(Interval::of(&compare(Comparison::NotEqual, 1)), None);
        assert_eq!(Interval::of(&Expr::And(vec![both, compare(Comparison::NotEqual, 1)])), None);
        let null = Expr::Compare(
            Comparison::Less,
            slot(Kind::Signed),
            Box::new(Expr::Constant(Value::Null, Kind::Signed)),
        );
        assert_eq!(Interval::of(&null), None);
    }
}
