//! Expressions that the server's own code computes: of as few rows as possible.
//!
//! What has no form here (a rare function, a comparison that converts) is told by number to whoever made the query
//! ([`crate::ServerValues`]), with the columns that it looks at. Where their values come again, it is computed once for each
//! (`memo.rs`), unless the server has something to say: that is said of each row.

use std::sync::Arc;

use pando_column::vector::Strings;
use pando_query::{Failure, Why};

use crate::column::{Batch, Column, Data, Dict, Kind, Value, UNSUPPORTED};
use crate::eval::{Eval, Result, FALSE, TRUE};
use crate::expr::{Expr, Hearing, OnSaying};
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
    pub(crate) fn served(
        &self,
        (number, on_saying): (u32, OnSaying),
        kind: Kind,
        of: &[Expr],
        batch: &Batch,
    ) -> Result<Column> {
        let server = self.texts.server.as_ref().ok_or(UNSUPPORTED)?;
        let rows = batch.rows;
        if rows == 0 {
            return Ok(Column::constant(&Value::Null, kind, 0));
        }
        // Of which rows there is something to say counts only where it is said.
        let of_some = if on_saying == OnSaying::Ask { Hearing::Asked } else { Hearing::Silent };
        let of_all = if on_saying == OnSaying::Tell { Hearing::Told } else { of_some };
        let is_told = |failure: &Failure| {
            on_saying == OnSaying::Tell && matches!(failure, Failure::GivenBack(Why::Told))
        };
        if of.is_empty() {
            return match server(number, of_some, &[], 1) {
                Ok(one) => Ok(one.gather(&vec![0; rows])),
                Err(failure) if is_told(&failure) => server(number, Hearing::Told, &[], rows),
                Err(failure) => Err(failure),
            };
        }
        let columns = of.iter().map(|expr| self.column(expr, batch)).collect::<Result<Vec<_>>>()?;
        let mut memos = self.texts.memos.lock();
        let new = || Memo::new(&of.iter().map(Expr::kind).collect::<Vec<_>>());
        let memo = memos.entry((number, on_saying)).or_insert_with(new);
        if memo.keeps_nothing() && on_saying != OnSaying::Ask {
            return server(number, of_all, &columns, rows);
        }
        match memo.values((&columns, rows), kind, |columns, rows| server(number, of_some, columns, rows)) {
            // From now on nothing is kept.
            Err(failure) if is_told(&failure) => server(number, Hearing::Told, &columns, rows),
            values => values,
        }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::expr::{Saying, Texts};

    /// A server that has something to say of 7, and counts how often it has said it, and for how many rows it was asked.
    fn texts(told: &Arc<AtomicUsize>, asked: &Arc<AtomicUsize>) -> Texts {
        let (told, asked) = (told.clone(), asked.clone());
        let server = move |_: u32, hearing: Hearing, columns: &[Arc<Column>], rows: usize| {
            let values: Vec<i64> =
                (0..rows).map(|row| columns.first().map_or(7, |column| column.number(row) as i64)).collect();
            let sayings = values.iter().filter(|value| **value == 7).count();
            match hearing {
                Hearing::Silent if sayings > 0 => return Err(Failure::GivenBack(Why::Told)),
                Hearing::Silent => {}
                Hearing::Told => _ = told.fetch_add(sayings, Relaxed),
                Hearing::Asked => _ = asked.fetch_add(sayings, Relaxed),
            }
            Ok(Column { data: Data::Small(values.iter().map(|value| value * 2).collect()), nulls: None })
        };
        Texts { server: Some(Arc::new(server)), ..Texts::default() }
    }

    fn of(slots: &[u32], on_saying: OnSaying) -> Expr {
        let of = slots.iter().map(|slot| Expr::Slot(*slot, Kind::Signed)).collect();
        Expr::Server { number: 0, kind: Kind::Signed, may_say: Saying::Warnings, first: 0, on_saying, of }
    }

    fn batch(values: &[i64]) -> Batch {
        let column = Column { data: Data::Small(values.to_vec()), nulls: None };
        Batch { rows: values.len(), columns: vec![Arc::new(column)] }
    }

    #[test]
    fn what_the_server_says_is_said_of_each_row() {
        let (told, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let texts = texts(&told, &asked);
        let eval = Eval { texts: &texts, is_stopped: &|| false };
        let double = |values: &[i64], on_saying| {
            let column = eval.column(&of(&[0], on_saying), &batch(values)).unwrap();
            assert!((0..values.len()).all(|row| column.number(row) == i128::from(values[row]) * 2));
        };
        // Values that come again are computed once, as long as there is nothing to say of one.
        double(&[1, 2, 1, 2], OnSaying::Tell);
        assert_eq!(told.load(Relaxed), 0);
        double(&[7, 1, 7, 7], OnSaying::Tell);
        assert_eq!(told.load(Relaxed), 3);
        double(&[7, 1], OnSaying::Tell);
        assert_eq!((told.load(Relaxed), asked.load(Relaxed)), (4, 0));
        // Where nothing but what there is to say is wanted, it is enough that it is said once.
        double(&[7, 1, 7], OnSaying::Ask);
        assert_eq!((told.load(Relaxed), asked.load(Relaxed)), (4, 1));
        double(&[], OnSaying::Tell);
        assert_eq!(told.load(Relaxed), 4);
        // Where nothing may be said, what is silent is computed, and the rest gives the query back.
        double(&[1, 2, 1], OnSaying::GiveBack);
        for values in [&[1, 7][..], &[7]] {
            let refused = eval.column(&of(&[0], OnSaying::GiveBack), &batch(values));
            assert!(matches!(refused, Err(Failure::GivenBack(Why::Told))));
        }
        let many: Vec<i64> = (100..40_000).collect();
        double(&many, OnSaying::GiveBack);
        assert!(
            eval.column(&of(&[0], OnSaying::GiveBack), &batch(&[7])).is_err(),
            "beyond what is remembered, too"
        );
        assert_eq!((told.load(Relaxed), asked.load(Relaxed)), (4, 1));
    }

    #[test]
    fn a_constant_is_said_of_each_row() {
        let (told, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let texts = texts(&told, &asked);
        let eval = Eval { texts: &texts, is_stopped: &|| false };
        let column = eval.column(&of(&[], OnSaying::Tell), &batch(&[1, 2, 3])).unwrap();
        assert!((0..3).all(|row| column.number(row) == 14));
        assert_eq!(told.load(Relaxed), 3);
    }
}
