//! What the server has said of values that come again: its expressions are computed once for each combination of the values
//! that they look at, over all batches of a query.
//!
//! Texts count as the same only where their bytes are: what an expression makes of them may differ even where their
//! collation calls them equal. Where values rarely come again, nothing is kept.

use std::sync::Arc;

use crate::column::{Column, Data, Kind};
use crate::eval::Result;
use crate::keys::{Budget, Interner, KeyPart, Keys};
use crate::word_table::{with_width, WordTable};

/// Bytes that the texts of one expression's values may take.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Where the texts of a batch's rows have more on average, they are long and hardly come again, and nothing is kept.
const TEXT_BYTES_OF_ROW_MAX: usize = 1 << 10;
/// Combinations of values that are kept.
const VALUES_MAX: usize = 1 << 16;
/// Columns that an expression may look at.
const COLUMNS_MAX: usize = 4;
/// Rows after which it is judged whether values come again.
const ROWS_JUDGED: usize = 1 << 14;
/// The first rows of a larger block: where no two of them are the same, there are many more combinations than are kept.
const ROWS_TRIED: usize = 1 << 10;

/// See the head of this file; of one expression.
#[derive(Debug)]
pub(crate) struct Memo {
    /// `None`: nothing is kept.
    known: Option<Known>,
}

#[derive(Debug)]
struct Known {
    keys: Keys,
    budget: Budget,
    table: WordTable,
    words: Vec<u64>,
    /// By the number of the combination.
    said: Option<Column>,
    rows: usize,
}

impl Memo {
    /// Of an expression that looks at columns of these kinds.
    pub(crate) fn new(kinds: &[Kind]) -> Memo {
        let part = |kind: &Kind| {
            Some(match kind {
                Kind::Signed | Kind::Date | Kind::DateTime | Kind::Time => KeyPart::Word,
                Kind::Unsigned => KeyPart::Natural,
                Kind::Decimal(_) => KeyPart::Wide,
                Kind::Text(_) => {
                    let same = |text: &[u8], key: &mut Vec<u8>| key.extend_from_slice(text);
                    KeyPart::Text(Arc::new(Interner::new(Arc::new(same))))
                }
                // There are two zeros.
                Kind::Real => return None,
            })
        };
        let parts = kinds.iter().map(part).collect::<Option<Vec<_>>>().filter(|_| kinds.len() <= COLUMNS_MAX);
        let known = |parts| Known {
            keys: Keys::of_groups(parts),
            budget: Budget::new(TEXT_BYTES_MAX),
            table: WordTable::new(0),
            words: Vec::new(),
            said: None,
            rows: 0,
        };
        Memo { known: parts.map(known) }
    }

    /// Whether all values are asked for.
    pub(crate) fn keeps_nothing(&self) -> bool {
        self.known.is_none()
    }

    /// The values of an expression of a kind, of rows with these columns; `ask` says those that are not known.
    ///
    /// # Errors
    /// Those of asking; nothing is kept from then on.
    pub(crate) fn values(
        &mut self,
        (columns, rows): (&[Arc<Column>], usize),
        kind: Kind,
        ask: impl Fn(&[Arc<Column>], usize) -> Result<Column>,
    ) -> Result<Column> {
        if self.known.is_some() && text_bytes(columns, rows) > TEXT_BYTES_OF_ROW_MAX * rows {
            self.known = None;
        }
        if rows > 4 * ROWS_TRIED && self.known.as_mut().is_some_and(|known| known.are_all_different(columns))
        {
            self.known = None;
        }
        let of_rows = self
            .known
            .take()
            .map(|mut known| known.values((columns, rows), kind, &ask).map(|of| (known, of)));
        match of_rows {
            Some(Ok((known, Some(values)))) => {
                self.known = known.is_of_use().then_some(known);
                Ok(values)
            }
            Some(Err(failure)) => Err(failure),
            Some(Ok((_, None))) | None => ask(columns, rows),
        }
    }
}

/// Bytes of the texts of so many rows.
fn text_bytes(columns: &[Arc<Column>], rows: usize) -> usize {
    let of_column = |column: &Arc<Column>| match &column.data {
        Data::Text(codes, dict) => {
            (0..rows).filter(|row| !column.is_null(*row)).map(|row| dict.get(codes[row]).len()).sum()
        }
        _ => 0,
    };
    columns.iter().map(of_column).sum()
}

impl Known {
    /// Whether no values of the first rows of the first block come again.
    fn are_all_different(&mut self, columns: &[Arc<Column>]) -> bool {
        if self.rows > 0 {
            return false;
        }
        let tried: Vec<u32> = (0..ROWS_TRIED as u32).collect();
        let first: Vec<Arc<Column>> = columns.iter().map(|column| Arc::new(column.gather(&tried))).collect();
        let Ok(words) = self.keys.encode(&first, ROWS_TRIED, true, &self.budget) else { return false };
        let (mut table, mut of_table) = (WordTable::new(0), Vec::new());
        let (width, known) = (self.keys.words, (&mut of_table, self.keys.words));
        with_width!(width, W => table.find_or_add::<W>(&words, known, |_| {}));
        table.len() == ROWS_TRIED
    }

    /// `None`: these are not kept.
    fn values(
        &mut self,
        (columns, rows): (&[Arc<Column>], usize),
        kind: Kind,
        ask: impl Fn(&[Arc<Column>], usize) -> Result<Column>,
    ) -> Result<Option<Column>> {
        let Ok(words) = self.keys.encode(columns, rows, true, &self.budget) else { return Ok(None) };
        let (before, mut numbers) = (self.table.len() as u32, Vec::with_capacity(rows));
        let (width, known) = (self.keys.words, (&mut self.words, self.keys.words));
        with_width!(width, W => self.table.find_or_add::<W>(&words, known, |number| numbers.push(number)));
        self.rows += rows;
        // Numbers are given in the order in which their values come first.
        let mut next = before;
        let mut new = Vec::new();
        for (row, number) in numbers.iter().enumerate() {
            if *number == next {
                new.push(row as u32);
                next += 1;
            }
        }
        if !new.is_empty() {
            let columns: Vec<Arc<Column>> =
                columns.iter().map(|column| Arc::new(column.gather(&new))).collect();
            let of_new = ask(&columns, new.len())?;
            self.said = Some(match &self.said {
                None => of_new,
                Some(said) => Column::concat(&[said, &of_new], kind),
            });
        }
        Ok(self.said.as_ref().map(|said| said.gather(&numbers)))
    }

    fn is_of_use(&self) -> bool {
        self.table.len() <= VALUES_MAX && (self.rows < ROWS_JUDGED || self.table.len() <= self.rows / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Value;
    use std::cell::Cell;

    fn texts(of: &[&str], nulls: &[usize]) -> Arc<Column> {
        let nulls = (0..of.len()).map(|row| nulls.contains(&row)).collect();
        Arc::new(Column::of_texts(of.iter().map(|text| text.as_bytes()), Some(nulls)))
    }

    fn small(of: &[i64]) -> Arc<Column> {
        Arc::new(Column { data: Data::Small(of.to_vec()), nulls: None })
    }

    /// What is asked: a text and a number, one after the other.
    fn both(columns: &[Arc<Column>], rows: usize) -> Column {
        let of_row =
            |row: usize| format!("{:?}{:?}", columns[0].value(row), columns[1].value(row)).into_bytes();
        let values: Vec<Vec<u8>> = (0..rows).map(of_row).collect();
        Column::of_texts(
            values.iter().map(Vec::as_slice),
            Some((0..rows).map(|row| columns[1].number(row) == 9).collect()),
        )
    }

    #[test]
    fn each_combination_is_asked_once() {
        let mut memo = Memo::new(&[Kind::Text(0), Kind::Signed]);
        let asked = Cell::new(0);
        let batches = [
            (texts(&["a", "A", "a", "", ""], &[4]), small(&[1, 1, 1, 1, 1])),
            (texts(&["b", "a", "A", "", "a"], &[3]), small(&[1, 1, 1, 1, 9])),
            (texts(&["a", "a"], &[]), small(&[9, 1])),
        ];
        // Of the first all but one, of the second two, of the third none.
        for ((first, second), new) in batches.into_iter().zip([4, 6, 6]) {
            let (columns, rows) = ([first, second], 0);
            let rows = rows + columns[0].rows();
            let values = memo.values((&columns, rows), Kind::Text(0), |columns, rows| {
                asked.set(asked.get() + rows);
                Ok(both(columns, rows))
            });
            let (values, expected) = (values.unwrap(), both(&columns, rows));
            let all = |of: &Column| (0..rows).map(|row| of.value(row)).collect::<Vec<Value>>();
            assert_eq!((all(&values), asked.get()), (all(&expected), new));
        }
    }

    #[test]
    fn values_that_do_not_come_again_are_not_kept() {
        let mut memo = Memo::new(&[Kind::Signed]);
        let double = |columns: &[Arc<Column>], rows: usize| {
            Ok(Column {
                data: Data::Small((0..rows).map(|row| columns[0].number(row) as i64 * 2).collect()),
                nulls: None,
            })
        };
        for batch in 0..20 {
            let values: Vec<i64> = (batch * 1000..(batch + 1) * 1000).collect();
            let found = memo.values((&[small(&values)], 1000), Kind::Signed, double).unwrap();
            assert!((0..1000).all(|row| found.number(row) == i128::from(values[row]) * 2));
        }
        assert!(memo.known.is_none());
        // Of a large block the first rows tell, if no two of them are the same.
        for (modulus, is_kept) in [(i64::MAX, false), (1000, true)] {
            let mut memo = Memo::new(&[Kind::Signed]);
            let values: Vec<i64> = (0..8192).map(|row| row % modulus).collect();
            let found = memo.values((&[small(&values)], 8192), Kind::Signed, double).unwrap();
            assert!((0..8192).all(|row| found.number(row) == i128::from(values[row]) * 2));
            assert_eq!(memo.known.is_some(), is_kept);
        }
        let mut memo = Memo::new(&[Kind::Text(0), Kind::Signed]);
        let long = "x".repeat(TEXT_BYTES_OF_ROW_MAX + 1);
        let columns = [texts(&[&long], &[]), small(&[1])];
        assert_eq!(memo.values((&columns, 1), Kind::Text(0), |c, rows| Ok(both(c, rows))).unwrap().rows(), 1);
        assert!(memo.known.is_none(), "long texts are not kept");
        assert!(Memo::new(&[Kind::Real]).known.is_none());
        assert!(Memo::new(&[Kind::Signed; 5]).known.is_none());
    }
}
