//! The rows of a table that a query looks at, block by block: which of them count, and their columns. What is not looked at
//! before rows are dropped is decoded of the rows that are left.

use std::sync::Arc;

use pando_column::vector::{Values, Vector};
use pandodb::Block;

use crate::block::TableColumn;
use crate::column::{Batch, Column, Data, Kind, UNSUPPORTED};
use crate::eval::{Eval, Result, TRUE};
use crate::expr::{Expr, Slot};
use crate::key_filter::KeyFilter;

/// Rows that go on together, where blocks have few that count.
const ROWS_TOGETHER: usize = 2048;

/// Rows of blocks that wait for more.
#[derive(Default)]
pub(crate) struct Waiting {
    batches: Vec<Batch>,
    rows: usize,
}

impl Waiting {
    /// Adds rows; gives what goes on now.
    pub(crate) fn add(&mut self, batch: Batch, kinds: &[Kind]) -> Option<Batch> {
        if self.rows == 0 && batch.rows >= ROWS_TOGETHER / 4 {
            return Some(batch);
        }
        self.rows += batch.rows;
        self.batches.push(batch);
        if self.rows < ROWS_TOGETHER {
            return None;
        }
        self.rest(kinds)
    }

    /// What is left.
    pub(crate) fn rest(&mut self, kinds: &[Kind]) -> Option<Batch> {
        let batches = std::mem::take(&mut self.batches);
        let rows = std::mem::take(&mut self.rows);
        let batch = Batch::concat(&batches, kinds);
        (rows > 0).then_some(Batch { rows, ..batch })
    }
}

/// What is wanted of a table.
pub(crate) struct TableRows {
    pub columns: Vec<TableColumn>,
    /// Conditions, bound to the columns, as they are said.
    pub filter: Vec<Expr>,
    /// The same, as they are asked: those of one column together.
    asked: Vec<(Expr, Vec<Slot>)>,
    /// What joins say of columns; after the conditions, as these may warn.
    pub joins: Vec<(usize, Arc<KeyFilter>)>,
    /// The columns that go on.
    pub given: Vec<usize>,
}

/// The columns of one block, as far as they are known.
struct Columns<'a> {
    of: &'a TableRows,
    block: &'a Block,
    /// Of all rows.
    whole: Vec<Option<Arc<Column>>>,
}

impl Columns<'_> {
    fn whole(&mut self, at: usize) -> Result<Arc<Column>> {
        if let Some(column) = &self.whole[at] {
            return Ok(column.clone());
        }
        let column = Arc::new(self.decoded(at, &self.block.vectors[at])?);
        self.whole[at] = Some(column.clone());
        Ok(column)
    }

    /// What cannot be decoded is found, and told of, by the way that goes row by row.
    fn decoded(&self, at: usize, vector: &Arc<Vector>) -> Result<Column> {
        let of = &self.of.columns[at];
        Column::of_vector(vector, of.kind, &of.form, &of.place).ok_or(UNSUPPORTED)
    }

    /// The column of some rows; `None`: of all.
    fn some(&mut self, at: usize, rows: Option<&[u32]>) -> Result<Arc<Column>> {
        let Some(rows) = rows else { return self.whole(at) };
        if self.whole[at].is_none() && rows.len() < self.block.rows / 2 {
            if let Some(picked) = picked(&self.block.vectors[at], rows) {
                return Ok(Arc::new(self.decoded(at, &Arc::new(picked))?));
            }
        }
        Ok(Arc::new(self.whole(at)?.gather(rows)))
    }
}

/// Some rows of a vector, where it is less work than to decode all of them.
fn picked(vector: &Vector, rows: &[u32]) -> Option<Vector> {
    let nulls = vector.nulls().map(|nulls| {
        let mut of_rows = pando_column::vector::Nulls::new();
        rows.iter().for_each(|row| of_rows.push(nulls.is_null(*row as usize)));
        of_rows
    });
    let nulls = nulls.filter(|nulls| nulls.count() > 0);
    let Values::Fixed { width, bytes } = vector.values() else { return None };
    let mut of_rows = Vec::with_capacity(rows.len() * width);
    rows.iter().for_each(|row| {
        let begin = *row as usize * width;
        of_rows.extend_from_slice(&bytes[begin..begin + width]);
    });
    Some(Vector::new(rows.len(), nulls, Values::Fixed { width: *width, bytes: of_rows }))
}

impl TableRows {
    /// Of conditions that are bound to the columns; the numbers of columns are their places.
    pub(crate) fn new(
        columns: Vec<TableColumn>,
        filter: Vec<Expr>,
        joins: Vec<(usize, Arc<KeyFilter>)>,
        given: Vec<usize>,
    ) -> TableRows {
        let mut asked: Vec<(Expr, Vec<Slot>)> = Vec::new();
        for part in &filter {
            let mut slots = Vec::new();
            part.slots(&mut slots);
            slots.sort_unstable();
            slots.dedup();
            let is_alike = |(known, of): &&mut (Expr, Vec<Slot>)| *of == slots && is_plain(known);
            // What is asked behind a condition that may warn stays behind it.
            let begin = asked.iter().rposition(|(known, _)| known.is_early()).map_or(0, |at| at + 1);
            match asked[begin..].iter_mut().find(is_alike).filter(|_| slots.len() == 1 && is_plain(part)) {
                Some((known, _)) => *known = Expr::And(vec![known.clone(), part.clone()]),
                None => asked.push((part.clone(), slots)),
            }
        }
        TableRows { columns, filter, asked, joins, given }
    }

    /// What the columns that go on are.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.given.iter().map(|at| self.columns[*at].kind).collect()
    }

    /// The rows of a block that count; `None`: none does.
    pub(crate) fn of_block(&self, block: &Block, eval: Eval<'_>) -> Result<Option<Batch>> {
        let mut columns = Columns { of: self, block, whole: vec![None; self.columns.len()] };
        let mut selected: Option<Vec<u32>> = None;
        let is_none = |selected: &Option<Vec<u32>>| selected.as_ref().is_some_and(Vec::is_empty);
        for (part, slots) in self.asked.iter().filter(|_| !block.is_all_wanted) {
            selected = self.narrowed((part, slots), selected, &mut columns, eval)?;
            if is_none(&selected) {
                return Ok(None);
            }
        }
        for (at, filter) in &self.joins {
            if !filter.is_of_use() {
                continue;
            }
            let column = columns.some(*at, selected.as_deref())?;
            if let Some(kept) = filter.select(&column) {
                selected = Some(taken(selected, kept));
            }
            if is_none(&selected) {
                return Ok(None);
            }
        }
        let mut out = Batch { rows: selected.as_ref().map_or(block.rows, Vec::len), columns: Vec::new() };
        for at in &self.given {
            out.columns.push(columns.some(*at, selected.as_deref())?);
        }
        Ok(Some(out))
    }

    /// Those of the selected rows of which a condition is true.
    fn narrowed(
        &self,
        (part, slots): (&Expr, &[Slot]),
        selected: Option<Vec<u32>>,
        columns: &mut Columns<'_>,
        eval: Eval<'_>,
    ) -> Result<Option<Vec<u32>>> {
        if let ([slot], true) = (slots, is_plain(part)) {
            let at = *slot as usize;
            if let Some(kept) =
                self.by_entries(part, at, &columns.block.vectors[at], selected.as_deref(), eval)?
            {
                return Ok(kept.or(selected));
            }
        }
        let mut batch = Batch { rows: columns.block.rows, columns: vec![nothing(); self.columns.len()] };
        for slot in slots {
            batch.columns[*slot as usize] = columns.some(*slot as usize, selected.as_deref())?;
        }
        batch.rows = selected.as_ref().map_or(columns.block.rows, Vec::len);
        Ok(match eval.select(part, &batch)? {
            Some(kept) => Some(taken(selected, kept)),
            None => selected,
        })
    }

    /// Where the storage names entries of a dictionary, a condition on that column alone is computed once for each. The
    /// rows that are left (`None`: as before); `None` in all: it is not so.
    fn by_entries(
        &self,
        part: &Expr,
        at: usize,
        vector: &Arc<Vector>,
        selected: Option<&[u32]>,
        eval: Eval<'_>,
    ) -> Result<Option<Option<Vec<u32>>>> {
        let Values::Dictionary { codes, entries } = vector.values() else { return Ok(None) };
        let count = entries.len();
        if count * 2 > selected.map_or(vector.rows(), <[u32]>::len) {
            return Ok(None);
        }
        let own = Vector::new(count, None, Values::Varying(entries.clone()));
        let of = &self.columns[at];
        // An entry that no row has may be anything: then all rows are looked at.
        let Some(column) = Column::of_vector(&Arc::new(own), of.kind, &of.form, &of.place) else {
            return Ok(None);
        };
        let mut batch = Batch { rows: count, columns: vec![nothing(); self.columns.len()] };
        batch.columns[at] = Arc::new(column);
        let mut truth = eval.truth(part, &batch)?;
        if let Some(nulls) = vector.nulls() {
            let null = Column::constant(&crate::column::Value::Null, of.kind, 1);
            batch = Batch { rows: 1, columns: vec![nothing(); self.columns.len()] };
            batch.columns[at] = Arc::new(null);
            truth.extend(eval.truth(part, &batch)?);
            let of_row = |row: u32| match nulls.is_null(row as usize) {
                true => truth[count],
                false => truth[codes[row as usize] as usize],
            };
            return Ok(Some(kept(vector.rows(), selected, |row| of_row(row) == TRUE)));
        }
        Ok(Some(kept(vector.rows(), selected, |row| truth[codes[row as usize] as usize] == TRUE)))
    }
}

fn nothing() -> Arc<Column> {
    Arc::new(Column { data: Data::Small(Vec::new()), nulls: None })
}

/// Rows by their places among those that were selected before.
fn taken(selected: Option<Vec<u32>>, kept: Vec<u32>) -> Vec<u32> {
    match selected {
        None => kept,
        Some(rows) => kept.iter().map(|at| rows[*at as usize]).collect(),
    }
}

/// The rows that are wanted; `None`: all of them. Without a branch for each.
fn kept(rows: usize, selected: Option<&[u32]>, is_wanted: impl Fn(u32) -> bool) -> Option<Vec<u32>> {
    let all = selected.map_or(rows, <[u32]>::len);
    let mut kept = vec![0u32; all];
    let mut count = 0;
    let mut push = |row: u32| {
        kept[count] = row;
        count += usize::from(is_wanted(row));
    };
    match selected {
        None => (0..rows as u32).for_each(&mut push),
        Some(rows) => rows.iter().for_each(|row| push(*row)),
    }
    kept.truncate(count);
    (count < all).then_some(kept)
}

/// Whether a condition can be computed of any value: it does not fail, and nobody else computes it.
fn is_plain(part: &Expr) -> bool {
    !part.any(&|part| {
        !matches!(
            part,
            Expr::Slot(..)
                | Expr::Constant(..)
                | Expr::Compare(..)
                | Expr::And(_)
                | Expr::Or(_)
                | Expr::Not(_)
                | Expr::IsNull(_)
                | Expr::In(..)
                | Expr::Test(..)
        )
    })
}
