//! Running a query.
//!
//! 1. The view's keys are divided at the leaves. Threads take parts from a common counter until none is left.
//! 2. A thread fills a batch from its cursor, filters it, adds what is left to its groups, and looks whether it is to stop:
//!    the client has gone, another thread has failed, memory is used up.
//! 3. The groups of the threads become one set; it is checked that the answer is determined.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use pandodb::layout::Layouts;
use pandodb::{on_threads, processors, Error, Result, Table, Txn, View};

use crate::aggregate::{Aggregate, Cell, Groups, Overflow, Shape};
use crate::batch::{Batch, Column, Form, Place, Reader, BATCH_ROWS};
use crate::decimal::{self, PRECISION_MAX};
use crate::filter::{Filter, Prepared};

/// What a query may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads; 0: as many as there are processors.
    pub threads: usize,
    /// Bytes that groups may take.
    pub memory_bytes: usize,
}

/// Why a query was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A column, condition or aggregate is none that is computed exactly here.
    Unsupported,
    /// The groups would not fit in memory.
    Memory,
    /// A sum beyond 128 bits.
    Overflow,
    /// Texts that are equal and not the same.
    Undetermined,
    /// Whoever asked does not want it any more.
    Stopped,
}

/// What became of a query.
#[derive(Debug)]
pub enum Outcome {
    /// Rows of cells: the groups' columns, then the aggregates; in no order.
    Rows(Vec<Vec<Cell>>),
    /// It is to be answered some other way.
    GivenBack(Why),
}

/// A query over the rows of one table.
#[derive(Debug)]
pub struct Query {
    /// The columns that are looked at.
    pub columns: Vec<Column>,
    /// Which rows count; none: all.
    pub filter: Option<Filter>,
    /// Columns whose values make the groups. None: one group of all rows, also if there are none.
    pub groups: Vec<usize>,
    /// What is told of each group.
    pub aggregates: Vec<Aggregate>,
}

/// How the work of a thread has ended, if not well.
enum Failure {
    GivenBack(Why),
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

impl From<Overflow> for Failure {
    fn from(_: Overflow) -> Failure {
        Failure::GivenBack(Why::Overflow)
    }
}

/// What the threads of a query share.
struct Work<'a> {
    query: &'a Query,
    shape: Shape<'a>,
    layouts: &'a Layouts,
    view: View<'a>,
    bounds: Vec<Vec<u8>>,
    next_part: AtomicUsize,
    memory_bytes: usize,
    has_failed: AtomicBool,
    rows_met: AtomicU64,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Query {
    /// Answers it from what the transaction sees. `is_stopped` is asked often, by all threads.
    ///
    /// # Errors
    /// Those of reading the table.
    pub fn run(
        &self,
        txn: &mut Txn,
        table: &Table,
        limits: Limits,
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Outcome> {
        let Some(layouts) = table.layouts().filter(|layouts| self.is_supported(layouts)) else {
            return Ok(Outcome::GivenBack(Why::Unsupported));
        };
        let view = txn.view(table, 0)?;
        let bounds = view.bounds();
        let threads = if limits.threads == 0 { processors() } else { limits.threads };
        let threads = threads.clamp(1, bounds.len() + 1);
        let work = Work {
            query: self,
            shape: Shape { columns: &self.columns, groups: &self.groups, aggregates: &self.aggregates },
            layouts,
            view,
            bounds,
            next_part: AtomicUsize::new(0),
            memory_bytes: limits.memory_bytes / threads,
            has_failed: AtomicBool::new(false),
            rows_met: AtomicU64::new(0),
            is_stopped,
        };
        let result = work.run(threads, limits.memory_bytes);
        let rows_met = work.rows_met.load(Ordering::Relaxed);
        txn.note_query(result.is_ok().then_some(rows_met));
        match result {
            Ok(rows) => Ok(Outcome::Rows(rows)),
            Err(Failure::GivenBack(why)) => Ok(Outcome::GivenBack(why)),
            Err(Failure::Error(error)) => Err(error),
        }
    }

    fn is_supported(&self, layouts: &Layouts) -> bool {
        let stored = &layouts.current().columns;
        let column_fits = |column: &Column| {
            let size = match column.place {
                Place::Stored(position) => match stored.get(position) {
                    None => return false,
                    Some(of) if of.ty.kind.is_counted() => None,
                    Some(of) => Some(of.ty.size as usize),
                },
                Place::Key { size, .. } => Some(size),
            };
            match (&column.form, size) {
                (Form::Presence, _) | (Form::Text(_), None) => true,
                (Form::Signed | Form::Unsigned, Some(1..=8)) | (Form::Ordered, Some(1..=15)) => true,
                (Form::Decimal { precision, scale }, Some(size)) => {
                    scale <= precision
                        && (1..=PRECISION_MAX).contains(precision)
                        && size == decimal::size(*precision, *scale)
                }
                _ => false,
            }
        };
        let group_fits = |column: &usize| {
            self.columns.get(*column).is_some_and(|column| !matches!(column.form, Form::Presence))
        };
        self.columns.iter().all(column_fits)
            && self.groups.iter().all(group_fits)
            && self.aggregates.iter().all(|aggregate| aggregate.fits(&self.columns))
    }
}

impl Work<'_> {
    fn run(&self, threads: usize, memory_bytes: usize) -> std::result::Result<Vec<Vec<Cell>>, Failure> {
        let mut groups: Option<Groups> = None;
        let mut failure = None;
        for result in on_threads(threads, || self.thread()) {
            match (result, &mut groups) {
                (Ok(of_thread), None) => groups = Some(of_thread),
                (Ok(of_thread), Some(groups)) => groups.merge(&self.shape, of_thread)?,
                // An error tells more than that others stopped because of it.
                (Err(Failure::Error(error)), _) => failure = Some(Failure::Error(error)),
                (Err(given_back), _) => _ = failure.get_or_insert(given_back),
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let groups = groups.unwrap_or_else(|| Groups::new(&self.shape));
        if groups.bytes() > memory_bytes {
            return Err(Failure::GivenBack(Why::Memory));
        }
        if !groups.is_determined(&self.shape) {
            return Err(Failure::GivenBack(Why::Undetermined));
        }
        let row =
            |group| groups.key_cells(&self.shape, group).chain(groups.cells(&self.shape, group)).collect();
        Ok((0..groups.len()).map(row).collect())
    }

    fn thread(&self) -> std::result::Result<Groups, Failure> {
        let result = self.parts();
        if result.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn parts(&self) -> std::result::Result<Groups, Failure> {
        let mut groups = Groups::new(&self.shape);
        let mut filter = match &self.query.filter {
            None => None,
            Some(filter) => {
                let prepared = filter.prepare(&self.query.columns);
                Some(prepared.ok_or(Failure::GivenBack(Why::Unsupported))?)
            }
        };
        loop {
            let part = self.next_part.fetch_add(1, Ordering::Relaxed);
            if part > self.bounds.len() {
                return Ok(groups);
            }
            self.part(part, filter.as_mut(), &mut groups)?;
        }
    }

    fn part(
        &self,
        part: usize,
        mut filter: Option<&mut Prepared>,
        groups: &mut Groups,
    ) -> std::result::Result<(), Failure> {
        let begin = part.checked_sub(1).and_then(|before| self.bounds.get(before));
        let end = self.bounds.get(part);
        let mut cursor = self.view.cursor(begin.map(Vec::as_slice), end.map(Vec::as_slice))?;
        let mut reader = Reader::new(self.layouts, &self.query.columns);
        let mut batch = Batch::new(&self.query.columns);
        let mut selected: Vec<u32> = Vec::new();
        loop {
            batch.clear();
            while batch.rows < BATCH_ROWS {
                let Some((key, row)) = cursor.next()? else { break };
                // A damaged row is found, and told of, by the way that goes row by row.
                reader.read(key, row, &mut batch).ok_or(Failure::GivenBack(Why::Unsupported))?;
            }
            if batch.rows == 0 {
                return Ok(());
            }
            self.rows_met.fetch_add(batch.rows as u64, Ordering::Relaxed);
            match &mut filter {
                Some(filter) => filter.select(&batch, &mut selected),
                None => {
                    selected.clear();
                    selected.extend(0..batch.rows as u32);
                }
            }
            groups.add(&self.shape, &batch, &selected)?;
            if groups.bytes() > self.memory_bytes {
                return Err(Failure::GivenBack(Why::Memory));
            }
            if self.has_failed.load(Ordering::Relaxed) || (self.is_stopped)() {
                return Err(Failure::GivenBack(Why::Stopped));
            }
        }
    }
}
