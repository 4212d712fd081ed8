//! Running a query.
//!
//! 1. All tables but the first are read, each with its own conditions, and kept in memory (`join.rs`).
//! 2. The first table is gone over on several threads (`scan.rs`). Each block of it is filtered, joined with the others, and
//!    what is left is added to the thread's groups. A thread looks often whether it is to stop: the client has gone,
//!    another thread has failed, memory is used up.
//! 3. The groups of the threads become one set; it is checked that the answer is determined.

use std::sync::Arc;

use pandodb::layout::Layouts;
use pandodb::{Block, Error, QueryThreads, Result, Table, Txn, Verdict, Zones};

use crate::aggregate::{Aggregate, Cell};
use crate::budget::Share;
use crate::column::{Column, Form, Place};
use crate::decimal::{self, PRECISION_MAX};
use crate::expression::{Expression, Operator, EXPRESSIONS_MAX};
use crate::filter::{Filter, Prepared, DEPTH_MAX};
use crate::frame::{Frame, Slots, Trouble};
use crate::groups::{Groups, Shape};
use crate::join::{self, all_rows, Cross, Side, Step, PIECE_ROWS};
use crate::memory::Gathering;
use crate::range::ranges;
use crate::scan::{Judge, Rest, Scan};
use crate::zone;

/// What a query may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads; 0: a share of what there is for all queries ([`QueryThreads`]).
    pub threads: usize,
    /// Bytes that groups and joined tables may take.
    pub memory_bytes: usize,
}

/// Why a query was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A column, condition or aggregate is none that is computed exactly here.
    Unsupported,
    /// The groups would not fit in memory.
    Memory,
    /// A sum beyond 128 bits, or a number that the server would not have.
    Overflow,
    /// Texts that are equal and not the same.
    Undetermined,
    /// Whoever asked does not want it any more.
    Stopped,
    /// A NULL leaves open what NOT IN is, and the server has its own idea of it.
    Open,
    /// A query as a value has several rows.
    Several,
    /// The server's own expression has something to say.
    Told,
    /// The answer depends on how the server would go about it.
    Unsure,
    /// A temporary file could not be written or read.
    Disk,
    /// It would make pairs of many rows, few of which are wanted.
    Pairs,
}

/// What became of a query.
#[derive(Debug)]
pub enum Outcome {
    /// Rows of cells: the groups' columns, then the aggregates; in no order.
    Rows(Vec<Vec<Cell>>),
    /// It is to be answered some other way.
    GivenBack(Why),
}

/// A query over the rows of some tables. Wherever a column is named, an expression can be, too.
#[derive(Debug, Default)]
pub struct Query {
    /// The columns that are looked at. The first table should be the largest.
    pub columns: Vec<Column>,
    /// Numbers that are computed; they are named like columns after the last.
    pub expressions: Vec<Expression>,
    /// Pairs of columns of different tables that are equal.
    pub equalities: Vec<(usize, usize)>,
    /// Which rows count; none: all.
    pub filter: Option<Filter>,
    /// Columns whose values make the groups. None: one group of all rows, also if there are none.
    pub groups: Vec<usize>,
    /// What is told of each group.
    pub aggregates: Vec<Aggregate>,
}

impl Query {
    /// Gives columns and expressions other numbers, wherever they are named.
    pub fn renumber(&mut self, number: &dyn Fn(usize) -> usize) {
        self.expressions.iter_mut().for_each(|expression| expression.renumber(number));
        self.equalities.iter_mut().for_each(|(a, b)| (*a, *b) = (number(*a), number(*b)));
        self.filter.iter_mut().for_each(|filter| filter.renumber(number));
        self.groups.iter_mut().for_each(|group| *group = number(*group));
        self.aggregates.iter_mut().for_each(|aggregate| *aggregate = aggregate.renumbered(number));
    }
}

/// How a query has ended, if not well.
#[derive(Debug)]
pub enum Failure {
    /// It is to be answered some other way.
    GivenBack(Why),
    /// What reading a table has met.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Failure {
        Failure::GivenBack(match trouble {
            Trouble::Overflow => Why::Overflow,
            Trouble::TooMuch => Why::Memory,
            // It is found, and told of, by the way that goes row by row.
            Trouble::Damaged => Why::Unsupported,
        })
    }
}

const UNSUPPORTED: Failure = Failure::GivenBack(Why::Unsupported);

/// A query made ready.
struct Plan<'a> {
    shape: Shape<'a>,
    tables: &'a [&'a Table],
    layouts: Vec<&'a Layouts>,
    /// Of each table the condition on its rows alone.
    filters: Vec<Option<Prepared>>,
    /// Of the only table what conditions look at and can fail: computed for all rows (`range.rs`).
    doubtful: Vec<usize>,
    crosses: Vec<Cross>,
    equalities: &'a [(usize, usize)],
    /// The columns of each table that are read, and those that are needed of the rows that are left.
    columns: Vec<Vec<usize>>,
    kept: Vec<Vec<usize>>,
    threads: usize,
    /// They are this query's as long as it runs.
    _shared: Option<QueryThreads>,
    memory_bytes: usize,
    /// What the tables that were read into memory take of what there is for all queries.
    share: Share<'static>,
    taken_bytes: usize,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Query {
    /// Whether it is one that can be answered, unless its rows are in the way.
    pub fn is_answerable(&self, tables: &[&Table]) -> bool {
        self.plan(tables, Limits { threads: 1, memory_bytes: 0 }, &|| false).is_some()
    }

    /// Answers it from what the transaction sees. `is_stopped` is asked often, by all threads.
    ///
    /// # Errors
    /// Those of reading the tables.
    pub fn run(
        &self,
        txn: &mut Txn,
        tables: &[&Table],
        limits: Limits,
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Outcome> {
        let result = match self.plan(tables, limits, is_stopped) {
            Some(plan) => plan.run(txn),
            None => return Ok(Outcome::GivenBack(Why::Unsupported)),
        };
        txn.note_query(result.as_ref().ok().map(|(_, rows_met)| *rows_met));
        match result {
            Ok((rows, _)) => Ok(Outcome::Rows(rows)),
            Err(Failure::GivenBack(why)) => Ok(Outcome::GivenBack(why)),
            Err(Failure::Error(error)) => Err(error),
        }
    }

    /// `None`: it is not one that can be answered.
    fn plan<'a>(
        &'a self,
        tables: &'a [&'a Table],
        limits: Limits,
        is_stopped: &'a (dyn Fn() -> bool + Sync),
    ) -> Option<Plan<'a>> {
        let layouts =
            tables.iter().map(|table| table.layouts().map(Arc::as_ref)).collect::<Option<Vec<_>>>()?;
        let slots = Slots { columns: &self.columns, expressions: &self.expressions };
        if tables.is_empty() || tables.len() > 64 || !self.is_supported(&slots, &layouts) {
            return None;
        }
        let doubtful = self.doubtful(&slots, &layouts)?;
        if !doubtful.is_empty() && tables.len() > 1 {
            return None;
        }
        let (mut of_tables, mut crosses) = (vec![Vec::new(); tables.len()], Vec::new());
        let mut parts = Vec::new();
        self.filter.iter().for_each(|filter| flatten(filter, &mut parts));
        for part in parts {
            let mut looked_at = Vec::new();
            part.slots(&mut looked_at);
            let bits = looked_at.iter().fold(0, |bits, slot| bits | slots.tables_of(*slot));
            match bits.count_ones() {
                0 | 1 => of_tables[bits.trailing_zeros() as usize % 64].push(part.clone()),
                _ => {
                    let prepared = part.prepare(&slots, false)?;
                    crosses.push(Cross { prepared, slots: looked_at, tables: bits });
                }
            }
        }
        let mut columns = vec![Vec::new(); tables.len()];
        for (table, filters) in of_tables.iter().enumerate() {
            let mut looked_at = Vec::new();
            filters.iter().for_each(|filter| filter.slots(&mut looked_at));
            looked_at.iter().for_each(|slot| slots.columns_of(*slot, &mut columns[table]));
        }
        let filter = |filters: Vec<Filter>| match filters.len() {
            0 => Some(None),
            _ => Filter::And(filters).prepare(&slots, false).map(Some),
        };
        let filters = of_tables.into_iter().map(filter).collect::<Option<Vec<_>>>()?;
        let shape = Shape { slots, groups: &self.groups, aggregates: &self.aggregates };
        let mut needed = shape.wanted();
        needed.extend(self.equalities.iter().flat_map(|(a, b)| [*a, *b]));
        crosses.iter().for_each(|cross| needed.extend(&cross.slots));
        let mut kept = vec![Vec::new(); tables.len()];
        let mut all = Vec::new();
        needed.iter().for_each(|slot| shape.slots.columns_of(*slot, &mut all));
        all.iter().for_each(|column| kept[self.columns[*column].table].push(*column));
        for (columns, kept) in columns.iter_mut().zip(&mut kept) {
            columns.extend_from_slice(kept);
            [&mut *columns, kept].into_iter().for_each(|columns| {
                columns.sort_unstable();
                columns.dedup();
            });
        }
        let shared = (limits.threads == 0).then(QueryThreads::take);
        let threads = shared.as_ref().map_or(limits.threads, QueryThreads::count);
        let (equalities, memory_bytes) = (self.equalities.as_slice(), limits.memory_bytes);
        Some(Plan {
            shape,
            tables,
            layouts,
            filters,
            doubtful,
            crosses,
            equalities,
            columns,
            kept,
            threads,
            _shared: shared,
            memory_bytes,
            share: Share::new(),
            taken_bytes: 0,
            is_stopped,
        })
    }

    /// What conditions look at and cannot be computed of every row, as far as types tell. `None`: something fails of no
    /// row at all.
    pub(crate) fn doubtful(&self, slots: &Slots<'_>, layouts: &[&Layouts]) -> Option<Vec<usize>> {
        let size = |column: &Column| size_of(column, layouts[column.table]).flatten();
        let sizes: Vec<_> = self.columns.iter().map(size).collect();
        let (ranges, tables) = (ranges(slots, &sizes), slots.tables());
        if ranges.iter().zip(&tables).any(|(range, tables)| range.is_none() && *tables == 0) {
            return None;
        }
        let mut looked_at = Vec::new();
        self.filter.iter().for_each(|filter| filter.slots(&mut looked_at));
        looked_at.retain(|slot| ranges[*slot].is_none());
        Some(looked_at)
    }

    /// All conditions.
    fn filters(&self) -> impl Iterator<Item = &Filter> {
        let of_expressions = self.expressions.iter().filter_map(|expression| match &expression.operator {
            Operator::If(filter, ..) => Some(filter),
            _ => None,
        });
        self.filter.iter().chain(of_expressions)
    }

    pub(crate) fn is_supported(&self, slots: &Slots<'_>, layouts: &[&Layouts]) -> bool {
        let column_fits = |column: &Column| {
            let Some(layouts) = layouts.get(column.table) else { return false };
            let Some(size) = size_of(column, layouts) else { return false };
            match (&column.form, size) {
                (Form::Presence, _) | (Form::Text(_), None) => true,
                (Form::Signed | Form::Unsigned, Some(1..=8)) | (Form::Ordered, Some(1..=15)) => true,
                (Form::Year, Some(1)) => true,
                (Form::Decimal { precision, scale }, Some(size)) => {
                    scale <= precision
                        && (1..=PRECISION_MAX).contains(precision)
                        && size == decimal::size(*precision, *scale)
                }
                _ => false,
            }
        };
        let expression_fits = |(place, expression): (usize, &Expression)| {
            expression.fits(slots, self.columns.len() + place)
                && slots.conditions_fit(self.columns.len() + place)
        };
        let are_equal_forms = |(a, b): &(usize, usize)| match (self.columns.get(*a), self.columns.get(*b)) {
            (Some(a), Some(b)) => {
                a.table != b.table && a.form.scale().is_some() && a.form.scale() == b.form.scale()
            }
            _ => false,
        };
        if self.expressions.len() > EXPRESSIONS_MAX || self.filters().any(|f| f.is_deeper_than(DEPTH_MAX)) {
            return false;
        }
        let mut looked_at = Vec::new();
        self.filter.iter().for_each(|filter| filter.slots(&mut looked_at));
        self.columns.iter().all(column_fits)
            && self.expressions.iter().enumerate().all(expression_fits)
            && self.equalities.iter().all(are_equal_forms)
            && looked_at.iter().all(|slot| *slot < slots.len())
            && self.groups.iter().all(|slot| slots.has_values(*slot))
            && self.aggregates.iter().all(|aggregate| aggregate.fits(slots))
    }
}

/// How many bytes a column has, if always as many; the outer `None`: there is no such column.
fn size_of(column: &Column, layouts: &Layouts) -> Option<Option<usize>> {
    match &column.place {
        Place::Key { size, .. } => Some(Some(*size)),
        Place::KeyPart(path) => Some((path.width() > 0).then(|| path.width())),
        Place::Length(_) => Some(Some(std::mem::size_of::<u64>())),
        Place::Stored(position) => {
            let of = layouts.current().columns.get(*position)?;
            Some((!of.ty.kind.is_counted()).then_some(of.ty.size as usize))
        }
    }
}

/// The conditions that all have to be true.
fn flatten<'a>(filter: &'a Filter, parts: &mut Vec<&'a Filter>) {
    match filter {
        Filter::And(filters) => filters.iter().for_each(|filter| flatten(filter, parts)),
        filter => parts.push(filter),
    }
}

impl Plan<'_> {
    fn run(mut self, txn: &mut Txn) -> std::result::Result<(Vec<Vec<Cell>>, u64), Failure> {
        let mut sides: Vec<Option<Side>> = vec![None];
        let mut rows_met = 0;
        for table in 1..self.tables.len() {
            let (side, met) = self.side(txn, table)?;
            rows_met += met;
            sides.push(Some(side));
        }
        let crosses = std::mem::take(&mut self.crosses);
        let steps = join::plan(&self.shape.slots, &sides, self.equalities, crosses).ok_or(UNSUPPORTED)?;
        self.take_memory(join::bytes(&steps))?;
        let (groups, mut share, met) = self.first(txn, &sides, &steps)?;
        rows_met += met;
        if groups.bytes() > self.memory_bytes || !share.set(groups.bytes()) {
            return Err(Failure::GivenBack(Why::Memory));
        }
        if !groups.is_determined(&self.shape) {
            return Err(Failure::GivenBack(Why::Undetermined));
        }
        Ok((groups.rows(&self.shape), rows_met))
    }

    fn take_memory(&mut self, bytes: usize) -> std::result::Result<(), Failure> {
        let left = self.memory_bytes.checked_sub(bytes).ok_or(Failure::GivenBack(Why::Memory))?;
        self.memory_bytes = left;
        self.taken_bytes += bytes;
        match self.share.set(self.taken_bytes) {
            true => Ok(()),
            false => Err(Failure::GivenBack(Why::Memory)),
        }
    }

    fn scan<'a>(
        &'a self,
        txn: &'a mut Txn,
        table: usize,
        judge: &'a Judge<'a>,
    ) -> std::result::Result<Scan<'a>, Failure> {
        let wants =
            self.columns[table].iter().map(|column| self.shape.slots.columns[*column].want()).collect();
        let view = txn.view(self.tables[table], 0)?;
        Ok(Scan::new(self.layouts[table], view, (wants, Vec::new()), judge, self.is_stopped))
    }

    /// How many rows of a segment a table's conditions leave.
    fn verdict(&self, table: usize, zones: &Zones<'_>) -> Verdict {
        let Some(filter) = self.filters[table].as_ref().filter(|_| self.doubtful.is_empty()) else {
            return Verdict::Some;
        };
        let (columns, layouts) = (self.shape.slots.columns, self.layouts[table]);
        zone::verdict_of_zones(filter, columns, &self.columns[table], layouts, zones)
    }

    fn frame<'a>(&self, table: usize, block: &'a Block) -> Frame<'a> {
        Frame::of_block(&self.shape.slots, block.rows, &self.columns[table], &block.vectors)
    }

    /// The rows that its condition leaves; `None`: all.
    fn select(
        &self,
        table: usize,
        block: &Block,
        frame: &mut Frame<'_>,
    ) -> std::result::Result<Option<Vec<u32>>, Failure> {
        if block.is_all_wanted {
            return Ok(None);
        }
        self.doubtful.iter().try_for_each(|slot| frame.ensure(&self.shape.slots, *slot))?;
        Ok(match &self.filters[table] {
            Some(filter) => filter.select(&self.shape.slots, frame)?,
            None => None,
        })
    }

    /// Reads a table into memory.
    fn side(&mut self, txn: &mut Txn, table: usize) -> std::result::Result<(Side, u64), Failure> {
        let slots = &self.shape.slots;
        let kept = &self.kept[table];
        let judge = |zones: &Zones<'_>| self.verdict(table, zones);
        let scan = self.scan(txn, table, &judge)?;
        let threads = scan.threads(self.threads);
        let memory_bytes = self.memory_bytes / threads;
        let step = |(gathering, share): &mut (Gathering, Share<'_>),
                    block: Block,
                    _: &mut Rest<'_>|
         -> std::result::Result<(), Failure> {
            let mut frame = self.frame(table, &block);
            let selected = self.select(table, &block, &mut frame)?;
            kept.iter().try_for_each(|column| frame.ensure(slots, *column))?;
            match selected {
                None => gathering.add(&frame),
                Some(rows) => gathering.add(&frame.picked(slots, kept, &rows)),
            }
            let bytes = gathering.bytes();
            match bytes > memory_bytes || !share.set(bytes) {
                true => Err(Failure::GivenBack(Why::Memory)),
                false => Ok(()),
            }
        };
        let parts = scan.fold(threads, || (Gathering::new(slots, kept), Share::new()), step)?;
        // Until the whole is counted, its parts are.
        let (parts, shares): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_else(|| Gathering::new(slots, kept));
        parts.for_each(|part| all.append(slots, part));
        let (rows_met, bytes) = (scan.rows_met(), all.bytes());
        let share = all.rows() as f64 / scan.rows_in_all().max(1) as f64;
        let frame = all.finish(slots);
        drop((scan, shares));
        self.take_memory(bytes)?;
        Ok((Side { frame, share }, rows_met))
    }

    /// Goes over the first table.
    fn first(
        &self,
        txn: &mut Txn,
        sides: &[Option<Side>],
        steps: &[Step],
    ) -> std::result::Result<(Groups, Share<'static>, u64), Failure> {
        let judge = |zones: &Zones<'_>| self.verdict(0, zones);
        let scan = self.scan(txn, 0, &judge)?;
        let threads = scan.threads(self.threads);
        let memory_bytes = self.memory_bytes / threads;
        let wanted = self.shape.wanted();
        let step = |(groups, share): &mut (Groups, Share<'_>),
                    block: Block,
                    _: &mut Rest<'_>|
         -> std::result::Result<(), Failure> {
            let mut frame = self.frame(0, &block);
            let selected = self.select(0, &block, &mut frame)?;
            match steps.is_empty() {
                true => self.add(groups, frame, selected, &wanted)?,
                false => self.add_joined(groups, frame, selected, sides, steps, &wanted)?,
            }
            let bytes = groups.bytes();
            match bytes > memory_bytes || !share.set(bytes) {
                true => Err(Failure::GivenBack(Why::Memory)),
                false => Ok(()),
            }
        };
        let parts = scan.fold(threads, || (Groups::new(&self.shape), Share::new()), step)?;
        let (parts, mut shares): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_else(|| Groups::new(&self.shape));
        parts.try_for_each(|part| all.merge(&self.shape, part))?;
        Ok((all, shares.pop().unwrap_or_default(), scan.rows_met()))
    }

    fn add(
        &self,
        groups: &mut Groups,
        mut frame: Frame<'_>,
        selected: Option<Vec<u32>>,
        wanted: &[usize],
    ) -> std::result::Result<(), Failure> {
        let slots = &self.shape.slots;
        let Some(rows) = selected else {
            wanted.iter().try_for_each(|slot| frame.ensure(slots, *slot))?;
            return Ok(groups.add(&self.shape, &frame)?);
        };
        if rows.is_empty() {
            return Ok(());
        }
        self.kept[0].iter().try_for_each(|column| frame.ensure(slots, *column))?;
        let mut picked = frame.picked(slots, &self.kept[0], &rows);
        wanted.iter().try_for_each(|slot| picked.ensure(slots, *slot))?;
        Ok(groups.add(&self.shape, &picked)?)
    }

    fn add_joined(
        &self,
        groups: &mut Groups,
        mut frame: Frame<'_>,
        selected: Option<Vec<u32>>,
        sides: &[Option<Side>],
        steps: &[Step],
        wanted: &[usize],
    ) -> std::result::Result<(), Failure> {
        let slots = &self.shape.slots;
        self.kept[0].iter().try_for_each(|column| frame.ensure(slots, *column))?;
        let selected = selected.map_or_else(|| all_rows(frame.rows), Into::into);
        for piece in selected.chunks(PIECE_ROWS) {
            let joined = join::join(slots, steps, sides, &frame, piece.to_vec(), wanted)?;
            if let Some(mut joined) = joined {
                wanted.iter().try_for_each(|slot| joined.ensure(slots, *slot))?;
                groups.add(&self.shape, &joined)?;
            }
        }
        Ok(())
    }
}
