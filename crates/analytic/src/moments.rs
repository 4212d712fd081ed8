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

/// A part of a moment of a kind.
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
    }
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
