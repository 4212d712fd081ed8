//! The rows of a table that a query looks at, block by block: which of them count, and their columns. What is not looked at
//! before rows are dropped is decoded of the rows that are left.

use std::sync::Arc;

use pando_column::vector::{Values, Vector};
use pando_query::scan::Rest;
use pandodb::Block;

use crate::block::TableColumn;
use crate::column::{bytes_of_held_texts, Batch, Column, Data, Dict, Kind, UNSUPPORTED};
use crate::eval::{Eval, Result, TRUE};
use crate::expr::{Expr, Slot};
use crate::first_rows::FirstRows;
use crate::interval::Interval;
use crate::key_filter::KeyFilter;
use crate::moment_ranges::of_moments;
use crate::selection::rows_of_entries;

/// Rows that go on together, where blocks have few that count.
const ROWS_TOGETHER: usize = 2048;
/// Bytes of texts with which they go on, however few they are: a text may have megabytes, and of a block of which one row is left all
/// texts are in memory.
const BYTES_TOGETHER: usize = 2 << 20;

/// Rows of blocks that wait for more.
#[derive(Default)]
pub(crate) struct Waiting {
    batches: Vec<Batch>,
    rows: usize,
    /// Of texts.
    bytes: usize,
    /// The texts of the last batch, which may be those of the next one.
    texts: Vec<Option<Dict>>,
}

impl Waiting {
    /// Adds rows; gives what goes on now.
    pub(crate) fn add(&mut self, batch: Batch, kinds: &[Kind]) -> Option<Batch> {
        let bytes = bytes_of_held_texts(&batch.columns, &mut self.texts);
        if self.rows == 0 && (batch.rows >= ROWS_TOGETHER / 4 || bytes >= BYTES_TOGETHER / 4) {
            self.texts.clear();
            return Some(batch);
        }
        self.rows += batch.rows;
        self.bytes += bytes;
        self.batches.push(batch);
        if self.rows < ROWS_TOGETHER && self.bytes < BYTES_TOGETHER {
            return None;
        }
        self.rest(kinds)
    }

    /// What is left.
    pub(crate) fn rest(&mut self, kinds: &[Kind]) -> Option<Batch> {
        let batches = std::mem::take(&mut self.batches);
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        self.texts.clear();
        let batch = match batches.len() {
            1 => batches[0].clone(),
            _ => Batch::concat(&batches, kinds),
        };
        (rows > 0).then_some(Batch { rows, ..batch })
    }
}

/// A condition, and what is known of it.
struct Asked {
    condition: Expr,
    slots: Vec<Slot>,
    /// It can be computed of any value ([`is_plain`]) of one column.
    is_of_one: bool,
    /// If it says between which numbers its column lies.
    interval: Option<Interval>,
}

/// What is wanted of a table.
pub(crate) struct TableRows {
    pub columns: Vec<TableColumn>,
    /// Conditions, bound to the columns, as they are said.
    pub filter: Vec<Expr>,
    /// The same, as they are asked: those of one column together.
    asked: Vec<Asked>,
    /// What joins say of columns; after the conditions, as these may warn.
    pub joins: Vec<(usize, Arc<KeyFilter>)>,
    /// What an order of which the first rows are wanted says of its first key; after all else.
    pub first: Option<FirstOf>,
    /// The columns that go on.
    pub given: Vec<usize>,
}

/// The first key of an order, and whether each row that the table gives is one of those that are sorted.
#[derive(Clone)]
pub(crate) struct FirstOf {
    pub at: usize,
    pub rows: Arc<FirstRows>,
    pub are_all_given: bool,
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
        if self.whole[at].is_none() {
            let (vector, of) = (&self.block.vectors[at], &self.of.columns[at]);
            if let Values::Dictionary { .. } | Values::Constant(_) = vector.values() {
                let column = Column::of_rows(vector, Some(rows), (of.kind, &of.form, &of.place));
                return column.map(Arc::new).ok_or(UNSUPPORTED);
            }
            if let Some(picked) = (rows.len() < self.block.rows / 2).then(|| picked(vector, rows)).flatten() {
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
    macro_rules! of_width {
        ($($w:literal)*) => {
            match *width {
                $($w => picked_bytes::<$w>(bytes, rows),)*
                width => rows.iter().flat_map(|row| &bytes[*row as usize * width..][..width]).copied().collect(),
            }
        };
    }
    let bytes = of_width!(1 2 3 4 5 6 7 8 9 10);
    Some(Vector::new(rows.len(), nulls, Values::Fixed { width: *width, bytes }))
}

/// Values of one width, which is known to the compiler: they are copied without a call for each.
fn picked_bytes<const W: usize>(bytes: &[u8], rows: &[u32]) -> Vec<u8> {
    let value =
        |row: &u32| -> [u8; W] { *bytes[*row as usize * W..].first_chunk().expect("a row of the block") };
    rows.iter().map(value).collect::<Vec<[u8; W]>>().into_flattened()
}

impl TableRows {
    /// Of conditions that are bound to the columns; the numbers of columns are their places.
    pub(crate) fn new(
        columns: Vec<TableColumn>,
        filter: Vec<Expr>,
        joins: Vec<(usize, Arc<KeyFilter>)>,
        first: Option<FirstOf>,
        given: Vec<usize>,
    ) -> TableRows {
        let filter: Vec<Expr> = filter.iter().flat_map(of_moments).collect();
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
        let with_interval = |(condition, slots): (Expr, Vec<Slot>)| Asked {
            interval: Interval::of(&condition).filter(|_| slots.len() == 1),
            is_of_one: slots.len() == 1 && is_plain(&condition),
            condition,
            slots,
        };
        let asked = asked.into_iter().map(with_interval).collect();
        TableRows { columns, filter, asked, joins, first, given }
    }

    /// What the columns that go on are.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.given.iter().map(|at| self.columns[*at].kind).collect()
    }

    /// Which columns nobody looks at of rows that do not count.
    pub(crate) fn late(&self) -> Vec<bool> {
        let mut is_late = vec![true; self.columns.len()];
        let asked = self.asked.iter().flat_map(|asked| &asked.slots).map(|slot| *slot as usize);
        let first = self.first.iter().map(|first| first.at);
        asked.chain(self.joins.iter().map(|(at, _)| *at)).chain(first).for_each(|at| is_late[at] = false);
        is_late
    }

    /// Gives the rows of a block that count, all at once or, where values of late columns lie apart, in parts. `rest` reads these columns.
    pub(crate) fn of_block(
        &self,
        mut block: Block,
        rest: &mut Rest<'_>,
        eval: Eval<'_>,
        give: &mut dyn FnMut(Batch) -> Result<()>,
    ) -> Result<()> {
        let mut columns = Columns { of: self, block: &block, whole: vec![None; self.columns.len()] };
        let mut selected = self.selected(&mut columns, eval)?;
        let early = columns.whole;
        while selected.as_ref().is_none_or(|rows| !rows.is_empty()) {
            if block.is_complete {
                return give(self.batch(&block, early, selected.as_deref())?);
            }
            let done = rest(&mut block, selected.as_deref())?;
            let mut later = Vec::new();
            if done < selected.as_ref().map_or(block.rows, Vec::len) {
                later =
                    selected.get_or_insert_with(|| (0..block.rows as u32).collect()).split_off(done.max(1));
            }
            give(self.batch(&block, early.clone(), selected.as_deref())?)?;
            selected = Some(later);
            block.is_complete = false;
        }
        Ok(())
    }

    fn batch(&self, block: &Block, whole: Vec<Option<Arc<Column>>>, rows: Option<&[u32]>) -> Result<Batch> {
        let mut columns = Columns { of: self, block, whole };
        let given = self.given.iter().map(|at| columns.some(*at, rows));
        Ok(Batch { rows: rows.map_or(block.rows, <[u32]>::len), columns: given.collect::<Result<_>>()? })
    }

    /// The rows of a block that count, without its late columns; `None`: all.
    fn selected(&self, columns: &mut Columns<'_>, eval: Eval<'_>) -> Result<Option<Vec<u32>>> {
        let block = columns.block;
        let mut selected: Option<Vec<u32>> = None;
        let is_none = |selected: &Option<Vec<u32>>| selected.as_ref().is_some_and(Vec::is_empty);
        for asked in self.asked.iter().filter(|_| !block.is_all_wanted) {
            selected = self.narrowed(asked, selected, columns, eval)?;
            if is_none(&selected) {
                return Ok(selected);
            }
        }
        for (at, filter) in self.joins_in_order() {
            let vector = &block.vectors[*at];
            selected = match self.joined_by_entries(filter, *at, vector, selected.as_deref()) {
                Some(kept) => kept.or(selected),
                None => match filter.select(&*columns.some(*at, selected.as_deref())?) {
                    Some(kept) => Some(taken(selected, kept)),
                    None => selected,
                },
            };
            if is_none(&selected) {
                return Ok(selected);
            }
        }
        if let Some(first) = &self.first {
            let column = columns.some(first.at, selected.as_deref())?;
            if let Some(kept) = first.rows.select(&column, first.are_all_given, eval.texts)? {
                selected = Some(taken(selected, kept));
            }
        }
        Ok(selected)
    }

    /// What joins say that drops rows: first what has dropped most so far.
    fn joins_in_order(&self) -> Vec<&(usize, Arc<KeyFilter>)> {
        let mut joins: Vec<_> = self.joins.iter().filter(|(_, filter)| filter.is_of_use()).collect();
        joins.sort_by_cached_key(|(_, filter)| filter.share_passed());
        joins
    }

    /// As `by_entries`, of what a join says.
    fn joined_by_entries(
        &self,
        filter: &KeyFilter,
        at: usize,
        vector: &Arc<Vector>,
        selected: Option<&[u32]>,
    ) -> Option<Option<Vec<u32>>> {
        let Values::Dictionary { codes, entries } = vector.values() else { return None };
        let rows = selected.map_or(vector.rows(), <[u32]>::len);
        if entries.len() * 2 > rows {
            return None;
        }
        let of = &self.columns[at];
        let column = Column::of_entries(entries, (of.kind, &of.form, &of.place))?;
        let has_partner = filter.of_entries(&column);
        let kept = rows_of_entries(codes, vector.nulls(), selected, (&has_partner, 0));
        filter.note(rows, kept.as_ref().map_or(rows, Vec::len));
        Some(kept)
    }

    /// Those of the selected rows of which a condition is true.
    fn narrowed(
        &self,
        asked: &Asked,
        selected: Option<Vec<u32>>,
        columns: &mut Columns<'_>,
        eval: Eval<'_>,
    ) -> Result<Option<Vec<u32>>> {
        let Asked { condition: part, slots, .. } = asked;
        if let ([slot], true) = (slots.as_slice(), asked.is_of_one) {
            let at = *slot as usize;
            if let Some(kept) =
                self.by_entries(asked, at, &columns.block.vectors[at], selected.as_deref(), eval)?
            {
                return Ok(kept.or(selected));
            }
            if let Some(interval) = asked.interval {
                let column = columns.some(at, selected.as_deref())?;
                if let Some(kept) = interval.select(&column) {
                    return Ok(match kept {
                        Some(kept) => Some(taken(selected, kept)),
                        None => selected,
                    });
                }
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
        Asked { condition: part, interval, .. }: &Asked,
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
        let of = &self.columns[at];
        // An entry that no row has may be anything: then all rows are looked at.
        let Some(column) = Column::of_entries(entries, (of.kind, &of.form, &of.place)) else {
            return Ok(None);
        };
        if let Some(wanted) = interval.and_then(|interval| interval.mask(&column)) {
            // No NULL lies between two numbers.
            return Ok(Some(rows_of_entries(codes, vector.nulls(), selected, (&wanted, 0))));
        }
        let mut batch = Batch { rows: count, columns: vec![nothing(); self.columns.len()] };
        batch.columns[at] = Arc::new(column);
        let is_wanted = |truth: &u8| u8::from(*truth == TRUE);
        let wanted: Vec<u8> = eval.truth(part, &batch)?.iter().map(is_wanted).collect();
        let mut of_null = 0;
        if vector.nulls().is_some() {
            let null = Column::constant(&crate::column::Value::Null, of.kind, 1);
            batch = Batch { rows: 1, columns: vec![nothing(); self.columns.len()] };
            batch.columns[at] = Arc::new(null);
            of_null = eval.truth(part, &batch)?.first().map_or(0, is_wanted);
        }
        Ok(Some(rows_of_entries(codes, vector.nulls(), selected, (&wanted, of_null))))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Value;
    use crate::keys::Budget;
    use pando_column::vector::{Nulls, Strings};
    use pando_query::{Form, Place};

    /// Few rows of long texts go on as soon as many short ones.
    #[test]
    fn rows_that_wait_are_bounded_by_rows_and_by_bytes() {
        let batch = |rows: usize, size: usize| {
            let vector = Vector::new(rows, None, Values::Constant(vec![b'x'; size]));
            let data = Data::Text(vec![0; rows], Dict::Vector(Arc::new(vector)));
            Batch { rows, columns: vec![Arc::new(Column { data, nulls: None })] }
        };
        let kinds = [Kind::Text(0)];
        for (rows, size, expected) in
            [(1, BYTES_TOGETHER / 4, 1), (1, BYTES_TOGETHER / 8, 8), (256, 10, ROWS_TOGETHER / 256)]
        {
            let mut waiting = Waiting::default();
            for _ in 0..2 {
                let given = (1..).find_map(|count| Some((count, waiting.add(batch(rows, size), &kinds)?)));
                let (count, given) = given.unwrap();
                assert_eq!((count, given.rows), (expected, expected * rows));
                assert!(matches!(given.columns[0].value(0), Value::Text(text) if text.len() == size));
            }
            assert!(waiting.rest(&kinds).is_none());
        }
    }

    /// What a join says of a dictionary's entries is what it says of the rows.
    #[test]
    fn a_join_asked_of_entries_keeps_the_same_rows() {
        let keys = Column { data: Data::Small(vec![3, 1 << 40, -7]), nulls: None };
        let filter = Arc::new(KeyFilter::of(&keys, &Budget::new(1 << 20)).unwrap().expect("a filter"));
        let mut entries = Strings::new();
        [-7i64, 0, 3, 1 << 40, i64::MAX].iter().for_each(|value| entries.push(&value.to_le_bytes()));
        for has_nulls in [false, true] {
            let rows = 50;
            let codes: Vec<u32> = (0..rows).map(|row| row * row % 5).collect();
            let mut nulls = Nulls::new();
            (0..rows).for_each(|row| nulls.push(has_nulls && row % 4 == 0));
            let vector = Vector::new(
                rows as usize,
                Some(nulls),
                Values::Dictionary { codes, entries: entries.clone() },
            );
            let vector = Arc::new(vector);
            let of = TableColumn {
                slot: 0,
                kind: Kind::Signed,
                place: Place::Stored(0),
                form: Form::Signed,
                distinct: 0,
            };
            let whole = Column::of_vector(&vector, of.kind, &of.form, &of.place).expect("numbers");
            let table = TableRows::new(vec![of], vec![], vec![(0, filter.clone())], None, vec![0]);
            let some: Vec<u32> = (0..rows).filter(|row| row % 3 > 0).collect();
            for selected in [None, Some(some.as_slice())] {
                let column = selected.map_or_else(
                    || whole.gather(&(0..rows).collect::<Vec<u32>>()),
                    |some| whole.gather(some),
                );
                let expected = filter.select(&column).map(|kept| taken(selected.map(<[u32]>::to_vec), kept));
                let found = table.joined_by_entries(&filter, 0, &vector, selected).expect("a dictionary");
                assert_eq!(found, expected, "NULLs {has_nulls}, of {selected:?}");
            }
        }
    }
}
