//! Conditions on what is computed of a moment and rises with it, said of the moment itself: `YEAR(d) = 2021` is
//! `d >= '2021-01-01' AND d < '2022-01-01'`, and `UNIX_TIMESTAMP(ts) < 7` is `ts < 7` as TIMESTAMPs are stored. That can be asked of bounds of segments (`zones.rs`) and of whole columns in one pass (`interval.rs`).
//!
//! A DATE or a DATETIME of the year 2021 lies between two numbers whatever its month and day are: zeros, and days that no month has, too.

use crate::column::{Kind, Value};
use crate::expr::{Comparison, Expr, Part};

/// Years are less.
const YEAR_END: i128 = 10_000;
/// Ranges that one list of constants may become.
const RANGES_MAX: usize = 4;
/// Bits of a packed DATETIME that are below its day, and of which so many are its day.
const BITS_BELOW_DAY: u32 = 41;
const BITS_OF_DAY: u32 = 5;
/// A packed DATETIME has so many for each year.
const MONTHS: i128 = 13;
/// A DATE has 4 bits for its month.
const BITS_OF_MONTH: u32 = 4;

/// The condition, as several that must all be true. Rows of which it is NULL may be such of which these are false.
pub(crate) fn of_moments(condition: &Expr) -> Vec<Expr> {
    match condition {
        Expr::And(parts) => parts.iter().flat_map(of_moments).collect(),
        Expr::Or(parts) => vec![Expr::Or(parts.iter().map(|part| together(of_moments(part))).collect())],
        Expr::Compare(comparison, a, b) => match (&**a, &**b) {
            (of, Expr::Constant(value, kind)) => compared(*comparison, of, value, *kind),
            (Expr::Constant(value, kind), of) => compared(comparison.swapped(), of, value, *kind),
            _ => None,
        }
        .unwrap_or_else(|| vec![condition.clone()]),
        Expr::In(of, values) if values.len() <= RANGES_MAX => {
            let ranges =
                values.iter().map(|value| compared(Comparison::Equal, of, value, of.kind()).map(together));
            let ranges: Option<Vec<Expr>> = ranges.collect();
            vec![ranges.map_or_else(|| condition.clone(), Expr::Or)]
        }
        other => vec![other.clone()],
    }
}

fn together(mut parts: Vec<Expr>) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        _ => Expr::And(parts),
    }
}

/// A comparison of what is computed of a moment with a constant.
fn compared(comparison: Comparison, computed: &Expr, value: &Value, kind: Kind) -> Option<Vec<Expr>> {
    if let Some(same) = same_number(computed) {
        let constant = Expr::Constant(value.clone(), kind);
        return Some(vec![Expr::Compare(comparison, Box::new(same.clone()), Box::new(constant))]);
    }
    let (moment, first) = first_with(computed, value, kind)?;
    let compare = |comparison, bound| {
        let bound = Expr::Constant(Value::Number(bound), moment.kind());
        Expr::Compare(comparison, Box::new(moment.clone()), Box::new(bound))
    };
    let (least, below, next) = (first.reached, Comparison::Less, first.passed);
    let from = |bound| compare(Comparison::GreaterOrEqual, bound);
    Some(match comparison {
        Comparison::GreaterOrEqual => vec![from(least)],
        Comparison::Greater => vec![from(next)],
        Comparison::Less => vec![compare(below, least)],
        Comparison::LessOrEqual => vec![compare(below, next)],
        Comparison::Equal | Comparison::Same => vec![from(least), compare(below, next)],
        Comparison::NotEqual => vec![Expr::Or(vec![compare(below, least), from(next)])],
    })
}

/// The column whose number it is: UNIX_TIMESTAMP of a TIMESTAMP, which is stored as such.
fn same_number(computed: &Expr) -> Option<&Expr> {
    let is_integer = |kind| matches!(kind, Kind::Signed | Kind::Unsigned);
    match computed {
        Expr::Convert(to, of) if is_integer(*to) => Some(&**of),
        _ => None,
    }
    .filter(|of| matches!(of, Expr::Slot(_, kind) if is_integer(*kind)))
}

/// The first moments of which something computed is at least a constant, and more.
struct First {
    reached: i128,
    passed: i128,
}

/// Of which moment something is computed, and its first ones as to a constant. `None`: of nothing that rises with it, or of no column.
fn first_with<'a>(computed: &'a Expr, value: &Value, kind: Kind) -> Option<(&'a Expr, First)> {
    let Value::Number(number) = *value else { return None };
    let of_column = |of: &'a Expr| {
        let is_moment = matches!(of, Expr::Slot(_, Kind::Date | Kind::DateTime));
        is_moment.then_some((of, of.kind() == Kind::Date))
    };
    match (computed, kind) {
        (Expr::Part(part @ (Part::Year | Part::YearMonth), of), Kind::Signed | Kind::Unsigned) => {
            let (moment, is_date) = of_column(of)?;
            let begin = |number: i128| match part {
                Part::Year => month_begin(is_date, number.clamp(0, YEAR_END), 0),
                _ => {
                    let number = number.clamp(0, YEAR_END * 100);
                    month_begin(is_date, number / 100, number % 100)
                }
            };
            Some((moment, First { reached: begin(number), passed: begin(number + 1) }))
        }
        (Expr::Part(Part::Date, of), Kind::Date) => {
            let (moment, is_date) = of_column(of)?;
            let begin = |day: i128| if is_date { day } else { packed(day) };
            Some((moment, First { reached: begin(number), passed: after(begin(number), is_date) }))
        }
        (Expr::Convert(Kind::DateTime, of), Kind::DateTime) => {
            let (moment, is_date) = match &**of {
                Expr::Part(Part::Date, of) => of_column(of)?,
                of => of_column(of)?,
            };
            let day = number >> BITS_BELOW_DAY;
            let begin = if is_date { unpacked(day) } else { day << BITS_BELOW_DAY };
            let passed = after(begin, is_date);
            let is_midnight = day << BITS_BELOW_DAY == number;
            Some((moment, First { reached: if is_midnight { begin } else { passed }, passed }))
        }
        _ => None,
    }
}

/// The first of a month, whose day may be 0; of a month that no year has: of the next year.
fn month_begin(is_date: bool, year: i128, month: i128) -> i128 {
    let (year, month) = if month > 12 { (year + 1, 0) } else { (year, month) };
    match is_date {
        true => (year << BITS_OF_MONTH | month) << BITS_OF_DAY,
        false => (year * MONTHS + month) << (BITS_OF_DAY + BITS_BELOW_DAY),
    }
}

/// The first moment behind a day.
fn after(begin: i128, is_date: bool) -> i128 {
    begin + if is_date { 1 } else { 1 << BITS_BELOW_DAY }
}

/// A DATE as the first DATETIME of its day.
fn packed(date: i128) -> i128 {
    let (months, day) = (date >> BITS_OF_DAY, date & ((1 << BITS_OF_DAY) - 1));
    let (year, month) = (months >> BITS_OF_MONTH, months & ((1 << BITS_OF_MONTH) - 1));
    ((year * MONTHS + month) << BITS_OF_DAY | day) << BITS_BELOW_DAY
}

/// The DATE of a packed day.
fn unpacked(day: i128) -> i128 {
    let (months, day) = (day >> BITS_OF_DAY, day & ((1 << BITS_OF_DAY) - 1));
    (((months / MONTHS) << BITS_OF_MONTH) | (months % MONTHS)) << BITS_OF_DAY | day
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::holds;
    use crate::moments::part_of;
    use crate::tags::Named;

    /// What conditions on the moment alone say.
    fn said(condition: &Expr, moment: i128) -> bool {
        match condition {
            Expr::And(parts) => parts.iter().all(|part| said(part, moment)),
            Expr::Or(parts) => parts.iter().any(|part| said(part, moment)),
            Expr::Compare(comparison, a, b) => match (&**a, &**b) {
                (Expr::Slot(..), Expr::Constant(Value::Number(bound), _)) => {
                    holds(*comparison, moment.cmp(bound))
                }
                _ => panic!("{condition:?}"),
            },
            _ => panic!("{condition:?}"),
        }
    }

    fn date(year: i128, month: i128, day: i128) -> i128 {
        year << 9 | month << 5 | day
    }

    /// Dates of all kinds, those that no calendar has, too.
    fn dates() -> Vec<i128> {
        let mut all = Vec::new();
        for year in [0, 1, 1999, 2020, 2021, 9999] {
            for month in [0, 1, 2, 11, 12] {
                all.extend([0, 1, 28, 30, 31].map(|day| date(year, month, day)));
            }
        }
        all
    }

    fn times(date: i128) -> [i128; 4] {
        [0, 1, 23 << 36 | 59 << 30 | 59 << 24 | 999_999, 12 << 36].map(|time| packed(date) + time)
    }

    fn check(computed: &Expr, of: impl Fn(i64) -> i128, moments: &[i128], constants: &[i128], kind: Kind) {
        for constant in constants {
            let bound = Expr::Constant(Value::Number(*constant), kind);
            for comparison in Comparison::ALL.iter().copied() {
                let (one, other) = (Box::new(computed.clone()), Box::new(bound.clone()));
                for condition in [
                    Expr::Compare(comparison, one.clone(), other.clone()),
                    Expr::Compare(comparison.swapped(), other, one),
                ] {
                    let all = of_moments(&condition);
                    for moment in moments {
                        let value = of(i64::try_from(*moment).unwrap());
                        let found = all.iter().all(|part| said(part, *moment));
                        assert_eq!(
                            found,
                            holds(comparison, value.cmp(constant)),
                            "{condition:?} of {moment}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn ranges_of_moments_say_the_same() {
        let dates = dates();
        let moments: Vec<i128> = dates.iter().flat_map(|date| times(*date)).collect();
        let years = [-1, 0, 1, 1999, 2020, 2021, 2022, 9999, 10_000, i128::from(i64::MAX)];
        let months = [
            -1,
            0,
            100,
            202_011,
            202_012,
            202_013,
            202_055,
            202_100,
            202_101,
            999_912,
            999_913,
            i128::from(u64::MAX),
        ];
        for (kind, all) in [(Kind::Date, &dates), (Kind::DateTime, &moments)] {
            let slot = || Box::new(Expr::Slot(0, kind));
            let part = |part| move |moment: i64| i128::from(part_of(part, kind, moment));
            check(&Expr::Part(Part::Year, slot()), part(Part::Year), all, &years, Kind::Signed);
            check(&Expr::Part(Part::YearMonth, slot()), part(Part::YearMonth), all, &months, Kind::Unsigned);
            let date_of = Expr::Part(Part::Date, slot());
            check(&date_of, part(Part::Date), all, &dates, Kind::Date);
            let midnight = |moment: i64| packed(i128::from(part_of(Part::Date, kind, moment)));
            check(&Expr::Convert(Kind::DateTime, Box::new(date_of)), midnight, all, &moments, Kind::DateTime);
        }
        let of_date = Expr::Convert(Kind::DateTime, Box::new(Expr::Slot(0, Kind::Date)));
        check(&of_date, |date| packed(i128::from(date)), &dates, &moments, Kind::DateTime);
    }

    #[test]
    fn converted_integers_are_those_of_the_column() {
        let constant = || Box::new(Expr::Constant(Value::Number(7), Kind::Signed));
        let of = |slot: Expr| Expr::Compare(Comparison::Less, Box::new(slot), constant());
        let converted = |kind| Expr::Convert(Kind::Signed, Box::new(Expr::Slot(0, kind)));
        assert_eq!(of_moments(&of(converted(Kind::Unsigned))), vec![of(Expr::Slot(0, Kind::Unsigned))]);
        let rounded = of(converted(Kind::Decimal(2)));
        assert_eq!(of_moments(&rounded), vec![rounded]);
    }

    #[test]
    fn conditions_are_looked_into() {
        let year = || Box::new(Expr::Part(Part::Year, Box::new(Expr::Slot(0, Kind::Date))));
        let is = |number| {
            Expr::Compare(
                Comparison::Equal,
                year(),
                Box::new(Expr::Constant(Value::Number(number), Kind::Signed)),
            )
        };
        assert_eq!(of_moments(&Expr::And(vec![is(2020), is(2021)])).len(), 4);
        let either = of_moments(&Expr::Or(vec![is(2020), is(2021)]));
        assert_eq!(of_moments(&Expr::In(year(), vec![Value::Number(2020), Value::Number(2021)])), either);
        assert!(said(&either[0], date(2021, 3, 1)) && !said(&either[0], date(2022, 0, 0)));
        // What does not rise with the moment, and what is negated, stays as it is: NULL is not false there.
        let month = Expr::Part(Part::Month, Box::new(Expr::Slot(0, Kind::Date)));
        let one = Box::new(Expr::Constant(Value::Number(1), Kind::Signed));
        let of_month = Expr::Compare(Comparison::Equal, Box::new(month), one);
        for other in [of_month, Expr::Not(Box::new(is(2020))), Expr::In(year(), vec![Value::Number(1); 5])] {
            assert_eq!(of_moments(&other), vec![other]);
        }
    }
}
