//! Whole queries over the rows of tables.
//!
//! A query is put together piece by piece: columns and expressions, which are named by the numbers that they get; the
//! condition as a stack machine is given one (operands before operators); groups and aggregates. Then it is run, and its
//! rows are read. What is put together wrongly comes back as `Unsupported` when it is run.

use std::cmp::Ordering;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use pando_query::{
    Aggregate, Bounds, Cell, Collation, Column, Comparison, Constant, DatePart, Expression, Filter, Form,
    Limits, Operator, Outcome, Place, Predicate, Query, DEPTH_MAX,
};
use pandodb::{KeyPath, LockMode, Table, Txn};

use crate::bytes::PandoBytes;
use crate::guard::{contain, guard, meet_planted_bug};
use crate::member::{member, Members};
use crate::read::PandoRead;
use crate::status::{run_contained, PandoStatus};
use crate::table::PandoTable;
use crate::transaction::PandoTxn;

/// What the bytes of a column mean to a query.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoForm {
    /// An integer with a sign.
    Signed = 0,
    /// An integer without.
    Unsigned = 1,
    /// DECIMAL.
    Decimal = 2,
    /// At most 15 bytes that memcmp orders.
    Ordered = 3,
    /// Text in a collation.
    Text = 4,
    /// Only whether it is NULL.
    Presence = 5,
    /// YEAR(4).
    Year = 6,
    /// Nothing but how many bytes a text has, as an integer without a sign, or of a query here whether it is NULL: known without the
    /// value, which may lie apart.
    Length = 7,
}

/// A column that a query wants.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoQueryColumn {
    /// Which of the query's tables has it.
    pub table: u32,
    /// What its bytes mean.
    pub form: MaybeUninit<PandoForm>,
    /// Its position in the table's current layout; negative: it is in the key.
    pub position: i32,
    /// Where in the key.
    pub key_offset: u32,
    /// Bytes in the key.
    pub key_size: u32,
    /// 1: the key descends.
    pub key_reversed: u8,
    /// The way through the key, where that is needed: see crates/column/src/key_path.rs. Null: it is not.
    pub key_path: PandoBytes,
    /// Digits of a DECIMAL.
    pub precision: u32,
    /// Those behind its point.
    pub scale: u32,
    /// What `PandoCompareTexts` gets for this column's texts.
    pub collation: *const c_void,
}

/// A constant of a condition.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoConstant {
    /// 1: NULL.
    pub is_null: u8,
    /// 1: text, else a number.
    pub is_text: u8,
    /// Lower half of the number without its point.
    pub low: u64,
    /// Upper half.
    pub high: i64,
    /// Digits behind the point.
    pub scale: u32,
    /// The text.
    pub text: PandoBytes,
    /// The collation of the comparison.
    pub collation: *const c_void,
}

/// Operators of conditions.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoOperator {
    /// The column compared with the last constant.
    Equal = 0,
    /// Likewise.
    NotEqual = 1,
    /// Likewise.
    Less = 2,
    /// Likewise.
    LessOrEqual = 3,
    /// Likewise.
    Greater = 4,
    /// Likewise.
    GreaterOrEqual = 5,
    /// The column is one of all constants given since the last condition that took some.
    In = 6,
    /// The column is NULL.
    IsNull = 7,
    /// Of the last `count` conditions.
    And = 8,
    /// Of the last `count` conditions.
    Or = 9,
    /// Of the last condition.
    Not = 10,
    /// Always true; of no column.
    True = 11,
}

/// How a number is computed.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoArithmetic {
    /// It is the constant given before.
    Constant = 0,
    /// The sum of `first` and `second`.
    Add = 1,
    /// `first` without `second`.
    Subtract = 2,
    /// The product of both.
    Multiply = 3,
    /// `first` where the last condition is true, else `second`.
    If = 4,
    /// The year of `first`, a DATE.
    Year = 5,
    /// Its month.
    Month = 6,
    /// Its day.
    Day = 7,
    /// The year of `first`, a DATETIME with `second` bits behind its seconds.
    YearOfDateTime = 8,
    /// Its month.
    MonthOfDateTime = 9,
    /// Its day.
    DayOfDateTime = 10,
}

/// What a number of the server's can be.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoBounds {
    /// 64 bits with a sign.
    Signed = 0,
    /// 64 bits without.
    Unsigned = 1,
    /// A DECIMAL.
    Decimal = 2,
}

/// A number that is computed. Columns are named by their numbers, and so are expressions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoExpression {
    /// How.
    pub arithmetic: MaybeUninit<PandoArithmetic>,
    /// What it can be.
    pub bounds: MaybeUninit<PandoBounds>,
    /// Digits behind its point.
    pub scale: u32,
    /// What it is computed from.
    pub first: u32,
    /// Likewise.
    pub second: u32,
}

/// Aggregates.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoAggregate {
    /// Rows.
    Rows = 0,
    /// Rows where the column is not NULL.
    Count = 1,
    /// The sum, and of how many values.
    Sum = 2,
    /// Smallest value.
    Min = 3,
    /// Largest value.
    Max = 4,
    /// How many different values.
    Distinct = 5,
}

crate::member::members! {
    PandoForm: Signed Unsigned Decimal Ordered Text Presence Year Length;
    PandoOperator: Equal NotEqual Less LessOrEqual Greater GreaterOrEqual In IsNull And Or Not True;
    PandoArithmetic: Constant Add Subtract Multiply If Year Month Day YearOfDateTime MonthOfDateTime DayOfDateTime;
    PandoBounds: Signed Unsigned Decimal;
    PandoAggregate: Rows Count Sum Min Max Distinct;
}

/// A value of an answer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoCell {
    /// 1: NULL.
    pub is_null: u8,
    /// Lower half of a number without its point.
    pub low: u64,
    /// Upper half.
    pub high: i64,
    /// Of a sum: of how many values.
    pub count: u64,
    /// Text, which lives as long as the query; a null pointer for numbers.
    pub text: PandoBytes,
}

/// The order of two texts in a collation, as `memcmp` tells it. Called on several threads at once.
pub type PandoCompareTexts =
    extern "C" fn(collation: *const c_void, first: PandoBytes, second: PandoBytes) -> i32;
/// Whether a text is such as `pattern` says. Called on several threads at once.
pub type PandoMatches = extern "C" fn(pattern: *const c_void, text: PandoBytes) -> u8;
/// Whether the query is not wanted any more. Called on several threads at once.
pub type PandoIsStopped = extern "C" fn(context: *const c_void) -> u8;

/// A query.
#[derive(Debug)]
pub struct PandoQuery {
    query: Query,
    compare: PandoCompareTexts,
    constants: Vec<Constant>,
    /// Each with how deep it is.
    conditions: Vec<(Filter, usize)>,
    is_wrong: bool,
    rows: Vec<Vec<Cell>>,
}

/// Numbers from here on name expressions, while there may be more columns.
const FIRST_EXPRESSION: usize = 1 << 20;

/// A pointer of the server's that threads pass around and only the server's functions follow.
#[derive(Clone, Copy, Debug)]
struct Context(*const c_void);
// SAFETY: it is given back to functions that may be called on any thread, and not followed here.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Closures take the whole, not the pointer in it.
    fn pointer(&self) -> *const c_void {
        self.0
    }
}

fn collation(compare: PandoCompareTexts, collation: *const c_void) -> Collation {
    let context = Context(collation);
    Collation(Arc::new(move |a: &[u8], b: &[u8]| -> Ordering {
        meet_planted_bug(a);
        compare(context.pointer(), PandoBytes::from_slice(a), PandoBytes::from_slice(b)).cmp(&0)
    }))
}

fn number(low: u64, high: i64) -> i128 {
    i128::from(high) << 64 | i128::from(low)
}

/// Makes a query that wants nothing yet; free it with [`pando_query_free`].
#[no_mangle]
pub extern "C" fn pando_query_new(compare: PandoCompareTexts) -> *mut PandoQuery {
    guard(|| {
        let query = Query::default();
        let (constants, conditions, rows) = (Vec::new(), Vec::new(), Vec::new());
        Box::into_raw(Box::new(PandoQuery { query, compare, constants, conditions, is_wrong: false, rows }))
    })
}

/// Frees a query. Null is allowed.
///
/// # Safety
/// `query` came from [`pando_query_new`] and is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_query_free(query: *mut PandoQuery) {
    guard(|| {
        if !query.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(query) });
        }
    });
}

/// Adds a column; says its number.
///
/// # Safety
/// `query` is alive; the collation lives as long as the query.
#[no_mangle]
pub unsafe extern "C" fn pando_query_column(query: *mut PandoQuery, column: PandoQueryColumn) -> u32 {
    // SAFETY: the caller vouches for it.
    unsafe { &mut *query }.build(|query| {
        // SAFETY: the caller vouches for it.
        let path = unsafe { column.key_path.as_option() }.map(KeyPath::parse);
        query.is_wrong |= matches!(path, Some(None));
        let form = query.member_or(column.form, PandoForm::Presence);
        let place = match (usize::try_from(column.position), path) {
            (Ok(position), _) if form == PandoForm::Length => Place::Length(position),
            (Ok(position), _) => Place::Stored(position),
            (Err(_), Some(Some(path))) => Place::KeyPart(Arc::new(path)),
            (Err(_), _) => Place::Key {
                offset: column.key_offset as usize,
                size: column.key_size as usize,
                is_reversed: column.key_reversed != 0,
            },
        };
        let form = match form {
            PandoForm::Signed => Form::Signed,
            PandoForm::Unsigned => Form::Unsigned,
            PandoForm::Decimal => Form::Decimal { precision: column.precision, scale: column.scale },
            PandoForm::Ordered => Form::Ordered,
            PandoForm::Text => Form::Text(collation(query.compare, column.collation)),
            // A text has a length if it is not NULL.
            PandoForm::Presence | PandoForm::Length => Form::Presence,
            PandoForm::Year => Form::Year,
        };
        query.query.columns.push(Column { table: column.table as usize, place, form });
        query.query.columns.len() as u32 - 1
    })
}

/// Adds an expression; says its number.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_query_expression(query: *mut PandoQuery, expression: PandoExpression) -> u32 {
    // SAFETY: the caller vouches for it.
    unsafe { &mut *query }.build(|query| query.expression(expression))
}

/// Says that two columns of different tables are equal.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_query_equality(query: *mut PandoQuery, first: u32, second: u32) {
    // SAFETY: the caller vouches for it.
    unsafe { &mut *query }.build(|query| query.query.equalities.push((first as usize, second as usize)));
}

/// Adds a condition: that the column's texts are such as a pattern says.
///
/// # Safety
/// `query` is alive; the pattern lives as long as the query.
#[no_mangle]
pub unsafe extern "C" fn pando_query_matches(
    query: *mut PandoQuery,
    column: u32,
    matches: PandoMatches,
    pattern: *const c_void,
) {
    let pattern = Context(pattern);
    // SAFETY: the caller vouches for it.
    unsafe { &mut *query }.build(|query| {
        let predicate = Predicate(Arc::new(move |text: &[u8]| {
            matches(pattern.pointer(), PandoBytes::from_slice(text)) != 0
        }));
        query.add(Some((Filter::Matches(column as usize, predicate), 1)));
    });
}

/// Adds a condition: that two columns of one kind compare like this.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_query_compare(
    query: *mut PandoQuery,
    operator: MaybeUninit<PandoOperator>,
    first: u32,
    second: u32,
) {
    // SAFETY: the caller vouches for it.
    unsafe { &mut *query }.build(|query| {
        let compared = |comparison| Filter::CompareColumns(first as usize, comparison, second as usize);
        let operator = query.member_or(operator, PandoOperator::True);
        query.add(comparison_of(operator).map(|comparison| (compared(comparison), 1)));
    });
}

/// Adds a constant for the next condition or expression.
///
/// # Safety
/// `query` is alive, and so are the bytes of the text; the collation lives as long as the query.
#[no_mangle]
pub unsafe extern "C" fn pando_query_constant(query: *mut PandoQuery, constant: PandoConstant) {
    // SAFETY: the caller vouches for it.
    unsafe { &mut *query }.build(|query| {
        let constant = match constant {
            PandoConstant { is_null: 1, .. } => Constant::Null,
            PandoConstant { is_text: 1, text, .. } => {
                // SAFETY: the caller vouches for it.
                let text = unsafe { text.as_slice() }.to_vec();
                meet_planted_bug(&text);
                Constant::Text(text, collation(query.compare, constant.collation))
            }
            PandoConstant { low, high, scale, .. } => Constant::Number { value: number(low, high), scale },
        };
        query.constants.push(constant);
    });
}

/// Adds a condition: on a column, or on the last `count` conditions.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_query_condition(
    query: *mut PandoQuery,
    operator: MaybeUninit<PandoOperator>,
    column: u32,
    count: u32,
) {
    // SAFETY: the caller vouches for it.
    unsafe { &mut *query }.build(|query| {
        let operator = query.member_or(operator, PandoOperator::True);
        query.condition(operator, column as usize, count as usize);
    });
}

/// Adds a column that makes groups.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_query_group(query: *mut PandoQuery, column: u32) {
    // SAFETY: the caller vouches for it.
    unsafe { &mut *query }.build(|query| query.query.groups.push(column as usize));
}

/// Adds an aggregate.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_query_aggregate(
    query: *mut PandoQuery,
    aggregate: MaybeUninit<PandoAggregate>,
    column: u32,
) {
    // SAFETY: the caller vouches for it.
    unsafe { &mut *query }.build(|query| {
        let column = column as usize;
        let aggregate = match query.member_or(aggregate, PandoAggregate::Rows) {
            PandoAggregate::Rows => Aggregate::Rows,
            PandoAggregate::Count => Aggregate::Count(column),
            PandoAggregate::Sum => Aggregate::Sum(column),
            PandoAggregate::Min => Aggregate::Min(column),
            PandoAggregate::Max => Aggregate::Max(column),
            PandoAggregate::Distinct => Aggregate::Distinct(column),
        };
        query.query.aggregates.push(aggregate);
    });
}

/// Whether the query is one that can be answered, unless the rows are in the way. It cannot be run any more.
///
/// # Safety
/// All objects are alive, `tables` are as many as are said.
#[no_mangle]
pub unsafe extern "C" fn pando_query_is_answerable(
    query: *mut PandoQuery,
    tables: *const *const PandoTable,
    count: usize,
) -> u8 {
    // SAFETY: the caller vouches for all.
    let (query, tables) = unsafe { (&mut *query, std::slice::from_raw_parts(tables, count)) };
    let is_answerable = contain(|| {
        // SAFETY: the caller vouches for them.
        let tables: Vec<&Table> = tables.iter().map(|table| &*unsafe { &**table }.table).collect();
        query.finish() && query.query.is_answerable(&tables)
    });
    u8::from(is_answerable == Ok(true))
}

/// Changes what the groups and joined tables of all queries of the process may take together.
#[no_mangle]
pub extern "C" fn pando_query_set_memory_total(bytes: u64) {
    guard(|| pando_query::set_memory_max_bytes(bytes));
}

/// Answers the query from what consistent reads of the transaction see of `count` tables, the largest first.
/// `Unsupported`: it is to be answered some other way, nothing has come of it; likewise after `Bug`: of the transaction only the locks
/// have changed. The rows can be read from then on, and stay.
/// With `read` `Shared` or `Exclusive` it is answered from the newest state, and all rows of the tables are locked, if nobody
/// is in the way.
///
/// # Safety
/// All objects are alive, `tables` are as many as are said; what `is_stopped` does with `context` may be done on any thread.
#[no_mangle]
pub unsafe extern "C" fn pando_query_run(
    query: *mut PandoQuery,
    txn: *mut PandoTxn,
    tables: *const *const PandoTable,
    count: usize,
    read: MaybeUninit<PandoRead>,
    memory_bytes: u64,
    is_stopped: PandoIsStopped,
    context: *const c_void,
) -> PandoStatus {
    // SAFETY: the caller vouches for all.
    let (query, txn, tables) = unsafe { (&mut *query, &mut *txn, std::slice::from_raw_parts(tables, count)) };
    let context = Context(context);
    run_contained(|| {
        let read = member(read)?;
        if !query.finish() {
            return Ok(PandoStatus::Unsupported);
        }
        let limits = Limits { threads: 0, memory_bytes: memory_bytes as usize };
        let stopped = || is_stopped(context.pointer()) != 0;
        // SAFETY: the caller vouches for them.
        let tables: Vec<&Table> = tables.iter().map(|table| &*unsafe { &**table }.table).collect();
        let lock = match read {
            PandoRead::Snapshot | PandoRead::Latest => None,
            PandoRead::Shared => Some(LockMode::Shared),
            PandoRead::Exclusive => Some(LockMode::Exclusive),
        };
        let run = |txn: &mut Txn| query.query.run(txn, &tables, limits, &stopped);
        let outcome = match lock {
            None => run(&mut txn.txn)?,
            Some(mode) => {
                if !query.query.is_answerable(&tables) {
                    return Ok(PandoStatus::Unsupported);
                }
                for table in &tables {
                    if !txn.txn.lock_all_rows(table, mode)? {
                        return Ok(PandoStatus::Unsupported);
                    }
                }
                txn.txn.at_newest(run)?
            }
        };
        match outcome {
            Outcome::Rows(rows) => query.rows = rows,
            Outcome::GivenBack(_) => return Ok(PandoStatus::Unsupported),
        }
        Ok(PandoStatus::Ok)
    })
}

/// How many rows the answer has.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_query_rows(query: *const PandoQuery) -> u64 {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { &*query }.rows.len() as u64)
}

/// A value of the answer: the groups' columns come first, then the aggregates. Beyond them it is NULL.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_query_cell(query: *const PandoQuery, row: u64, place: u32) -> PandoCell {
    guard(|| {
        let none = PandoBytes { data: std::ptr::null(), len: 0 };
        let mut cell = PandoCell { is_null: 0, low: 0, high: 0, count: 0, text: none };
        // SAFETY: the caller vouches for it.
        let rows = &unsafe { &*query }.rows;
        match rows.get(row as usize).and_then(|row| row.get(place as usize)) {
            None | Some(Cell::Null) => cell.is_null = 1,
            Some(Cell::Number(value)) => (cell.low, cell.high) = (*value as u64, (*value >> 64) as i64),
            Some(Cell::Sum(sum, count)) => {
                (cell.low, cell.high, cell.count) = (*sum as u64, (*sum >> 64) as i64, *count);
            }
            Some(Cell::Text(text)) => cell.text = PandoBytes::from_slice(text),
        }
        cell
    })
}

fn comparison_of(operator: PandoOperator) -> Option<Comparison> {
    Some(match operator {
        PandoOperator::Equal => Comparison::Equal,
        PandoOperator::NotEqual => Comparison::NotEqual,
        PandoOperator::Less => Comparison::Less,
        PandoOperator::LessOrEqual => Comparison::LessOrEqual,
        PandoOperator::Greater => Comparison::Greater,
        PandoOperator::GreaterOrEqual => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

impl PandoQuery {
    /// Adds something to the query. After a panic it is one that is put together wrongly.
    fn build<T: Default>(&mut self, add: impl FnOnce(&mut PandoQuery) -> T) -> T {
        contain(|| add(self)).unwrap_or_else(|_| {
            self.is_wrong = true;
            T::default()
        })
    }

    /// What was given; where it is no member of its enumeration, the query is put together wrongly.
    fn member_or<E: Members>(&mut self, given: MaybeUninit<E>, other: E) -> E {
        member(given).unwrap_or_else(|_| {
            self.is_wrong = true;
            other
        })
    }

    fn condition(&mut self, operator: PandoOperator, column: usize, count: usize) {
        let simple = |filter| Some((filter, 1));
        let filter = match operator {
            PandoOperator::In => simple(Filter::In(column, std::mem::take(&mut self.constants))),
            PandoOperator::IsNull => simple(Filter::IsNull(column)),
            PandoOperator::And => {
                self.last_conditions(count).map(|(parts, depth)| (Filter::And(parts), depth + 1))
            }
            PandoOperator::Or => {
                self.last_conditions(count).map(|(parts, depth)| (Filter::Or(parts), depth + 1))
            }
            PandoOperator::Not => {
                self.conditions.pop().map(|(filter, depth)| (Filter::Not(Box::new(filter)), depth + 1))
            }
            PandoOperator::True => simple(Filter::Always(Some(true))),
            compared => comparison_of(compared)
                .and_then(|comparison| self.comparison(column, comparison))
                .and_then(simple),
        };
        self.add(filter);
    }

    /// One that is too deep is not kept: it could not even be freed.
    fn add(&mut self, condition: Option<(Filter, usize)>) {
        let condition = condition.filter(|(_, depth)| *depth <= DEPTH_MAX);
        self.is_wrong |= condition.is_none();
        self.conditions.extend(condition);
    }

    fn expression(&mut self, expression: PandoExpression) -> u32 {
        let (first, second) = (expression.first as usize, expression.second as usize);
        let operator = match self.member_or(expression.arithmetic, PandoArithmetic::Constant) {
            PandoArithmetic::Constant => self.constant(expression.scale),
            PandoArithmetic::Add => Some(Operator::Add(first, second)),
            PandoArithmetic::Subtract => Some(Operator::Subtract(first, second)),
            PandoArithmetic::Multiply => Some(Operator::Multiply(first, second)),
            PandoArithmetic::If => {
                self.conditions.pop().map(|(filter, _)| Operator::If(filter, first, second))
            }
            PandoArithmetic::Year => Some(Operator::OfDate(DatePart::Year, first)),
            PandoArithmetic::Month => Some(Operator::OfDate(DatePart::Month, first)),
            PandoArithmetic::Day => Some(Operator::OfDate(DatePart::Day, first)),
            PandoArithmetic::YearOfDateTime => {
                Some(Operator::OfDateTime(DatePart::Year, first, expression.second))
            }
            PandoArithmetic::MonthOfDateTime => {
                Some(Operator::OfDateTime(DatePart::Month, first, expression.second))
            }
            PandoArithmetic::DayOfDateTime => {
                Some(Operator::OfDateTime(DatePart::Day, first, expression.second))
            }
        };
        let bounds = match self.member_or(expression.bounds, PandoBounds::Signed) {
            PandoBounds::Signed => Bounds::Signed,
            PandoBounds::Unsigned => Bounds::Unsigned,
            PandoBounds::Decimal => Bounds::Decimal,
        };
        self.is_wrong |= operator.is_none();
        let operator = operator.unwrap_or(Operator::Constant(None));
        self.query.expressions.push(Expression { operator, scale: expression.scale, bounds });
        (FIRST_EXPRESSION + self.query.expressions.len()) as u32 - 1
    }

    /// The constant given last, if it is a number of this scale.
    fn constant(&mut self, scale: u32) -> Option<Operator> {
        match self.constants.pop()? {
            Constant::Null => Some(Operator::Constant(None)),
            Constant::Number { value, scale: of } if of == scale => Some(Operator::Constant(Some(value))),
            _ => None,
        }
    }

    fn comparison(&mut self, column: usize, comparison: Comparison) -> Option<Filter> {
        let constant = self.constants.pop()?;
        self.constants.is_empty().then_some(Filter::Compare(column, comparison, constant))
    }

    /// And how deep the deepest of them is.
    fn last_conditions(&mut self, count: usize) -> Option<(Vec<Filter>, usize)> {
        let from = self.conditions.len().checked_sub(count)?;
        let depth = self.conditions[from..].iter().map(|(_, depth)| *depth).max().unwrap_or(0);
        Some((self.conditions.drain(from..).map(|(filter, _)| filter).collect(), depth))
    }

    /// What was put together, if it is a query; nothing is left.
    pub(crate) fn take_finished(&mut self) -> Option<Query> {
        self.finish().then(|| std::mem::take(&mut self.query))
    }

    /// Whether what was put together is a query.
    fn finish(&mut self) -> bool {
        self.query.filter = self.conditions.pop().map(|(filter, _)| filter);
        let columns = self.query.columns.len();
        self.query.renumber(&|number| match number.checked_sub(FIRST_EXPRESSION) {
            Some(place) => columns + place,
            None => number,
        });
        !self.is_wrong && self.conditions.is_empty() && self.constants.is_empty()
    }
}
