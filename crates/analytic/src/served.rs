//! Expressions that the server's own code computes: of as few rows as possible.
//!
//! What has no form here (a rare function, a comparison that converts) is told by number to whoever made the query
//! ([`crate::ServerValues`]), with the columns that it looks at. Where these are one column with few different values, it is
//! computed once for each.

use std::collections::HashMap;
use std::sync::Arc;

use pando_column::vector::Strings;

use crate::column::{Batch, Column, Data, Dict, UNSUPPORTED};
use crate::eval::{Eval, Result, FALSE, TRUE};
use crate::expr::Expr;

impl Column {
    /// Texts, one for each row; those of NULLs may be anything.
    pub fn of_texts<'a>(texts: impl Iterator<Item = &'a [u8]>, nulls: Option<Vec<bool>>) -> Column {
        let mut strings = Strings::new();
        texts.for_each(|text| strings.push(text));
        let codes = (0..strings.len() as u32).collect();
        if strings.is_empty() {
            strings.push(b"");
        }
        Column { data: Data::Text(codes, Dict::Strings(Arc::new(strings))), nulls }
    }
}

/// Rows below which nobody looks for equal values.
const ROWS_MIN: usize = 64;

impl Eval<'_> {
    /// The values of a server's expression.
    pub(crate) fn served(&self, number: u32, of: &[Expr], batch: &Batch) -> Result<Column> {
        let server = self.texts.server.as_ref().ok_or(UNSUPPORTED)?;
        let rows = batch.rows;
        if of.is_empty() {
            let one = server(number, &[], 1)?;
            return Ok(one.gather(&vec![0; rows]));
        }
        let columns = of.iter().map(|expr| self.column(expr, batch)).collect::<Result<Vec<_>>>()?;
        if let ([column], true) = (columns.as_slice(), rows >= ROWS_MIN) {
            if let Some((different, places)) = different(column) {
                let few = server(number, &[Arc::new(column.gather(&different))], different.len())?;
                return Ok(few.gather(&places));
            }
        }
        server(number, &columns, rows)
    }

    /// Adds a part of AND or OR whose first parts are known, looking only at rows that these leave open.
    pub(crate) fn combine_open(
        &self,
        part: &Expr,
        batch: &Batch,
        all: &mut [u8],
        combine: &impl Fn(u8, u8) -> u8,
    ) -> Result<()> {
        let is_open = |known: u8| combine(known, TRUE) != combine(known, FALSE);
        let rows: Vec<u32> = (0..batch.rows as u32).filter(|row| is_open(all[*row as usize])).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let truth = match rows.len() == batch.rows {
            true => self.truth(part, batch)?,
            false => self.truth(part, &batch.gather(&rows))?,
        };
        rows.iter().zip(truth).for_each(|(row, one)| {
            let known = &mut all[*row as usize];
            *known = combine(*known, one);
        });
        Ok(())
    }
}

/// Rows that have all different values of a column, and of each row which of these has its value; `None`: they are many.
fn different(column: &Column) -> Option<(Vec<u32>, Vec<u32>)> {
    let rows = column.rows();
    let most = rows / 4;
    let (mut different, mut places) = (Vec::new(), Vec::with_capacity(rows));
    let mut null = None;
    let mut by_number: HashMap<i64, u32> = HashMap::new();
    let mut by_code = match &column.data {
        Data::Text(_, dict) if dict.len() <= rows.max(1 << 16) => vec![u32::MAX; dict.len()],
        _ => Vec::new(),
    };
    for row in 0..rows {
        let next = different.len() as u32;
        let place = if column.is_null(row) {
            *null.get_or_insert(next)
        } else {
            match &column.data {
                Data::Small(values) => *by_number.entry(values[row]).or_insert(next),
                Data::Text(codes, _) => {
                    let known = by_code.get_mut(codes[row] as usize)?;
                    if *known == u32::MAX {
                        *known = next;
                    }
                    *known
                }
                Data::Large(_) | Data::Real(_) => return None,
            }
        };
        if place == next {
            different.push(row as u32);
            if different.len() > most {
                return None;
            }
        }
        places.push(place);
    }
    Some((different, places))
}
