//! Moments: their parts, and the first of those of which something is the same.
//!
//! `DATE(d)`, `WEEK(d)` and `DATE_FORMAT(d, '%Y-%m')` are the server's code, but look at nothing beyond the day. So it is asked of the
//! day's first moment instead, and its answer holds for all of the day (`memo.rs`). Which moment that is says whoever made the query.

use std::sync::Arc;

use crate::column::{Batch, Column, Data, Kind, UNSUPPORTED};
use crate::eval::{Eval, Result};
use crate::expr::{Expr, Part};

impl Eval<'_> {
    /// The moments that stand for others.
    pub(crate) fn floor(&self, number: u32, of: &Expr, batch: &Batch) -> Result<Column> {
        let floor = self.texts.floors.get(number as usize).ok_or(UNSUPPORTED)?;
        let moments: Arc<Column> = self.column(of, batch)?;
        let of_row = |row: usize| match moments.is_null(row) {
            true => 0,
            false => floor(moments.number(row) as i64),
        };
        let values = (0..batch.rows).map(of_row).collect();
        Ok(Column { data: Data::Small(values), nulls: moments.nulls.clone() })
    }
}

/// A part of all moments of a column.
pub(crate) fn parts_of(part: Part, kind: Kind, moments: &Column) -> Column {
    let rows = moments.rows();
    let values = match &moments.data {
        Data::Small(moments) => parts_of_each(part, kind, moments),
        _ => (0..rows).map(|row| part_of(part, kind, moments.number(row) as i64)).collect(),
    };
    let mut nulls = moments.nulls.clone();
    if matches!(part, Part::Seconds | Part::Microseconds) {
        let has_none = |row: &usize| {
            let moment = moments.number(*row) as i64;
            part_of(Part::Month, kind, moment) == 0 || part_of(Part::Day, kind, moment) == 0
        };
        for row in (0..rows).filter(has_none) {
            nulls.get_or_insert_with(|| vec![false; rows])[row] = true;
        }
    }
    Column { data: Data::Small(values), nulls }
}

/// The same, with a loop for each part and kind: nothing is computed of the others.
fn parts_of_each(part: Part, kind: Kind, moments: &[i64]) -> Vec<i64> {
    macro_rules! loops {
        ($($part:ident),*) => {
            match (part, kind) {
                $((Part::$part, Kind::Date) => moments.iter().map(|&moment| part_of(Part::$part, Kind::Date, moment)).collect(),
                (Part::$part, _) => moments.iter().map(|&moment| part_of(Part::$part, Kind::DateTime, moment)).collect(),)*
            }
        };
    }
    loops!(
        Year,
        Month,
        Day,
        Quarter,
        YearMonth,
        Hour,
        Minute,
        Second,
        Date,
        Regular,
        Seconds,
        Microseconds,
        Possible
    )
}

/// A part of a moment of a kind.
#[inline(always)]
pub(crate) fn part_of(part: Part, kind: Kind, moment: i64) -> i64 {
    let (year, month, day, seconds) = match kind {
        Kind::Date => (moment >> 9, moment >> 5 & 15, moment & 31, 0),
        _ => {
            let whole = moment >> 24;
            let (date, seconds) = (whole >> 17, whole & 0x1ffff);
            let months = date >> 5;
            (months / 13, months % 13, date & 31, seconds)
        }
    };
    match part {
        Part::Year => year,
        Part::Month => month,
        Part::Day => day,
        Part::Quarter => (month + 2) / 3,
        Part::YearMonth => year * 100 + month,
        Part::Hour => seconds >> 12,
        Part::Minute => seconds >> 6 & 63,
        Part::Second => seconds & 63,
        Part::Date => year << 9 | month << 5 | day,
        Part::Regular => i64::from((1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day)),
        Part::Possible => i64::from(day <= 28 || day <= days_of(year, month)),
        Part::Seconds => elapsed(year, month, day, seconds),
        Part::Microseconds => {
            let behind = if kind == Kind::Date { 0 } else { moment & 0xff_ffff };
            elapsed(year, month, day, seconds) * 1_000_000 + behind
        }
    }
}

/// Seconds since the year 0. Days that a month does not have are those of the next, as `calc_daynr` of the server counts them.
fn elapsed(year: i64, month: i64, day: i64, clock: i64) -> i64 {
    if year == 0 && month == 0 {
        return 0;
    }
    let is_early = month <= 2;
    let leap_year = year - i64::from(is_early);
    let short_months = if is_early { 0 } else { (month * 4 + 23) / 10 };
    let leap_days = leap_year / 4 - (leap_year / 100 + 1) * 3 / 4;
    let days = 365 * year + 31 * (month - 1) + day - short_months + leap_days;
    days * 86_400 + (clock >> 12) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)
}

/// How many days a month has.
fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || (year % 400 == 0 && year != 0));
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Texts;

    #[test]
    fn seconds_since_the_year_0_are_those_of_the_calendar() {
        let at = |year: i64, month: i64, day: i64, clock: i64| {
            (((year * 13 + month) << 5 | day) << 17 | clock) << 24
        };
        let days =
            |year, month, day| part_of(Part::Seconds, Kind::DateTime, at(year, month, day, 0)) / 86_400;
        assert_eq!(
            (days(0, 1, 1), days(1970, 1, 1), days(9999, 12, 31)),
            (1, 719_528, 3_652_424),
            "as TO_DAYS has it"
        );
        for year in [0, 1, 4, 99, 100, 400, 1900, 2000, 2023, 2024] {
            for month in 1..=12 {
                let next = if month == 12 { days(year + 1, 1, 1) } else { days(year, month + 1, 1) };
                // The server takes the year 0 for one without a 29th of February.
                assert_eq!(next - days(year, month, 1), days_of(year, month), "{year}-{month}");
            }
        }
        assert_eq!(days(2023, 2, 31), days(2023, 3, 3), "a day that the month does not have");
        let clock = 23 << 12 | 59 << 6 | 58;
        let (seconds, moment) = (days(2024, 2, 29) * 86_400 + 86_398, at(2024, 2, 29, clock) + 250_000);
        assert_eq!(part_of(Part::Seconds, Kind::DateTime, moment), seconds);
        assert_eq!(part_of(Part::Microseconds, Kind::DateTime, moment), seconds * 1_000_000 + 250_000);
        let date = 2024 << 9 | 2 << 5 | 29;
        assert_eq!(part_of(Part::Microseconds, Kind::Date, date), days(2024, 2, 29) * 86_400_000_000);
        let column = Column {
            data: Data::Small(vec![at(0, 0, 0, 0), at(2024, 0, 1, 0), at(2024, 1, 0, 0), at(0, 1, 1, 1), 0]),
            nulls: Some(vec![false, false, false, false, true]),
        };
        let parts = parts_of(Part::Seconds, Kind::DateTime, &column);
        assert_eq!(parts.nulls, Some(vec![true, true, true, false, true]));
        assert_eq!(parts.number(3), 86_401);
        assert_eq!(parts_of(Part::Year, Kind::DateTime, &column).nulls, column.nulls);
    }

    #[test]
    fn moments_that_are_null_stand_for_nothing() {
        let floors: Vec<Arc<crate::expr::FloorOfMoment>> =
            vec![Arc::new(|_| unreachable!("not asked")), Arc::new(|moment| moment - moment % 100)];
        let texts = Texts { floors, ..Texts::default() };
        let eval = Eval { texts: &texts, is_stopped: &|| false };
        let column = Column { data: Data::Small(vec![7, 250, 301]), nulls: Some(vec![true, false, false]) };
        let batch = Batch { rows: 3, columns: vec![Arc::new(column)] };
        let floored = Expr::Floor(1, Box::new(Expr::Slot(0, Kind::DateTime)));
        assert_eq!(floored.kind(), Kind::DateTime);
        let found = eval.column(&floored, &batch).unwrap();
        assert_eq!((found.is_null(0), found.number(1), found.number(2)), (true, 200, 300));
        let unknown = Expr::Floor(2, Box::new(Expr::Slot(0, Kind::DateTime)));
        assert!(eval.column(&unknown, &batch).is_err());
    }
}
