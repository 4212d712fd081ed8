//! Orders.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::column::{Column, Data, Kind, UNSUPPORTED};
use crate::eval::Result;
use crate::expr::Texts;

/// What rows are sorted by, ready to be compared.
enum Ready {
    Number(Arc<Column>),
    /// Where the key of each row is.
    Text(Vec<u32>, Vec<Vec<u8>>, Arc<Column>),
}

/// Compares rows.
pub(crate) struct Sorter(Vec<(Ready, bool)>);

impl Sorter {
    /// Of these columns; true: descending.
    pub(crate) fn new(keys: &[(Arc<Column>, Kind, bool)], texts: &Texts) -> Result<Sorter> {
        let mut ready = Vec::new();
        for (column, kind, descends) in keys {
            let one = match (kind, &column.data) {
                (Kind::Text(collation), Data::Text(codes, dict)) => {
                    let key = texts.collations.get(*collation as usize).ok_or(UNSUPPORTED)?;
                    let mut of_codes: Vec<Vec<u8>> = vec![Vec::new(); dict.len()];
                    let mut is_known = vec![false; dict.len()];
                    for (row, code) in codes.iter().enumerate() {
                        if !column.is_null(row) && !is_known[*code as usize] {
                            is_known[*code as usize] = true;
                            key(dict.get(*code), &mut of_codes[*code as usize]);
                        }
                    }
                    Ready::Text(codes.clone(), of_codes, column.clone())
                }
                (Kind::Text(_), _) => return Err(UNSUPPORTED),
                _ => Ready::Number(column.clone()),
            };
            ready.push((one, *descends));
        }
        Ok(Sorter(ready))
    }

    /// NULL comes first.
    pub(crate) fn compare(&self, a: u32, b: u32) -> Ordering {
        for (one, descends) in &self.0 {
            let order = match one {
                Ready::Number(column) => by_number(column, a as usize, b as usize),
                Ready::Text(codes, keys, column) => {
                    let (a, b) = (a as usize, b as usize);
                    match (column.is_null(a), column.is_null(b)) {
                        (false, false) => keys[codes[a] as usize].cmp(&keys[codes[b] as usize]),
                        (of_a, of_b) => of_b.cmp(&of_a),
                    }
                }
            };
            if order.is_ne() {
                return if *descends { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }
}

/// The rows in their order, without those that are skipped, and those beyond the limit. NULL comes first; true: descending.
pub(crate) fn order(
    keys: &[(Arc<Column>, Kind, bool)],
    rows: usize,
    skip: u64,
    limit: Option<u64>,
    texts: &Texts,
) -> Result<Vec<u32>> {
    let sorter = Sorter::new(keys, texts)?;
    let compare = |a: &u32, b: &u32| sorter.compare(*a, *b).then(a.cmp(b));
    let mut order: Vec<u32> = (0..rows as u32).collect();
    let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(rows);
    let end = limit
        .map_or(rows, |limit| skip.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)).min(rows));
    if !keys.is_empty() {
        if end > 0 && end < rows / 4 {
            order.select_nth_unstable_by(end - 1, compare);
            order.truncate(end);
        }
        order.sort_unstable_by(compare);
    }
    order.truncate(end);
    order.drain(..skip.min(order.len()));
    Ok(order)
}

fn by_number(column: &Column, a: usize, b: usize) -> Ordering {
    match (column.is_null(a), column.is_null(b)) {
        (false, false) => match &column.data {
            Data::Real(values) => values[a].partial_cmp(&values[b]).unwrap_or(Ordering::Equal),
            Data::Small(values) => values[a].cmp(&values[b]),
            _ => column.number(a).cmp(&column.number(b)),
        },
        (of_a, of_b) => of_b.cmp(&of_a),
    }
}
