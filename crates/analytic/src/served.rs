//! Expressions that the server's own code computes: of as few rows as possible.
//!
//! What has no form here (a rare function, a comparison that converts) is told by number to whoever made the query
//! ([`crate::ServerValues`]), with the columns that it looks at. Where their values come again, it is computed once for each
//! (`memo.rs`).

use std::sync::Arc;

use pando_column::vector::Strings;

use crate::column::{Batch, Column, Data, Dict, Kind, UNSUPPORTED};
use crate::eval::{Eval, Result, FALSE, TRUE};
use crate::expr::Expr;
use crate::memo::Memo;

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

impl Eval<'_> {
    /// The values of a server's expression of a kind.
    pub(crate) fn served(&self, number: u32, kind: Kind, of: &[Expr], batch: &Batch) -> Result<Column> {
        let server = self.texts.server.as_ref().ok_or(UNSUPPORTED)?;
        let rows = batch.rows;
        if of.is_empty() {
            let one = server(number, &[], 1)?;
            return Ok(one.gather(&vec![0; rows]));
        }
        let columns = of.iter().map(|expr| self.column(expr, batch)).collect::<Result<Vec<_>>>()?;
        let mut memos = self.texts.memos.lock();
        let new = || Memo::new(&of.iter().map(Expr::kind).collect::<Vec<_>>());
        let memo = memos.entry(number).or_insert_with(new);
        memo.values((&columns, rows), kind, |columns, rows| server(number, columns, rows))
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
