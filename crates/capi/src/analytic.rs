//! SELECTs of any shape: the server says the query as bytes (`pando_analytic::Query::decode`), and gets rows.

use std::ffi::c_void;
use std::sync::Arc;

use pando_analytic::{Answer, Outcome, Query, Texts, Value};
use pando_query::{Limits, Why};
use pandodb::Table;

use crate::bytes::PandoBytes;
use crate::guard::{contain, guard};
use crate::query::PandoIsStopped;
use crate::server_values::{served, PandoServerValues};
use crate::status::{run_contained, PandoStatus};
use crate::table::PandoTable;
use crate::transaction::PandoTxn;

/// Writes something made of a text into `to`, if it has room for it; says how many bytes that takes. `u64::MAX`: it is NULL.
/// Called on several threads at once.
pub type PandoChangeText =
    extern "C" fn(context: *const c_void, text: PandoBytes, to: *mut u8, room: u64) -> u64;
/// Whether a text passes a test. Called on several threads at once.
pub type PandoTestText = extern "C" fn(context: *const c_void, text: PandoBytes) -> u8;

/// What the server's code does with texts; the lists are read when the query is made, what they point to lives as long as it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoAnalyticTexts {
    /// Gives the bytes that order a text in a collation.
    pub key: PandoChangeText,
    /// The collations.
    pub collations: *const *const c_void,
    /// How many.
    pub collation_count: usize,
    /// Tests a text.
    pub test: PandoTestText,
    /// The tests.
    pub tests: *const *const c_void,
    /// How many.
    pub test_count: usize,
    /// Changes a text.
    pub change: PandoChangeText,
    /// The changes.
    pub changes: *const *const c_void,
    /// How many.
    pub change_count: usize,
    /// Computes expressions that the engine has no form for.
    pub server: PandoServerValues,
    /// What it is given.
    pub server_context: *const c_void,
}

/// What an answer's value is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoAnalyticForm {
    /// NULL.
    Null = 0,
    /// A number without its point.
    Number = 1,
    /// A DOUBLE.
    Real = 2,
    /// A text.
    Text = 3,
}

/// A value of an answer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoAnalyticCell {
    /// What it is.
    pub form: PandoAnalyticForm,
    /// Digits behind the point of a number.
    pub scale: u32,
    /// Lower half of a number.
    pub low: u64,
    /// Upper half.
    pub high: i64,
    /// A DOUBLE.
    pub real: f64,
    /// A text, which lives as long as the query.
    pub text: PandoBytes,
}

/// Why a query was not answered.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoAnalyticWhy {
    /// It was.
    Answered = 0,
    /// Something in it is not computed here, or its rows have no exact answer.
    Unsupported = 1,
    /// Memory.
    Memory = 2,
    /// A number that is too large.
    Overflow = 3,
    /// Texts that are equal and not the same.
    Undetermined = 4,
    /// It is not wanted any more.
    Stopped = 5,
}

/// A query and its answer.
#[derive(Debug)]
pub struct PandoAnalytic {
    query: Query,
    answer: Answer,
}

#[derive(Clone, Copy)]
struct Context(*const c_void);
// SAFETY: it is given back to functions that may be called on any thread, and not followed here.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    fn pointer(&self) -> *const c_void {
        self.0
    }
}

/// A list of the server's.
///
/// # Safety
/// It has so many entries.
unsafe fn contexts(list: *const *const c_void, count: usize) -> Vec<Context> {
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts(list, count) }.iter().map(|context| Context(*context)).collect()
}

/// Appends what `change` writes; says false for NULL.
fn append(change: PandoChangeText, context: *const c_void, text: &[u8], to: &mut Vec<u8>) -> bool {
    let begin = to.len();
    let mut room = text.len() * 4 + 64;
    loop {
        to.resize(begin + room, 0);
        let size = change(context, PandoBytes::from_slice(text), to[begin..].as_mut_ptr(), room as u64);
        match usize::try_from(size) {
            Ok(size) if size <= room => {
                to.truncate(begin + size);
                return true;
            }
            Ok(size) if size < usize::MAX / 2 => room = size,
            _ => {
                to.truncate(begin);
                return false;
            }
        }
    }
}

/// Makes a query of the bytes that say it. Null: they do not. Free it with [`pando_analytic_free`].
///
/// # Safety
/// The lists have as many entries as is said, and what they point to lives as long as the query.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_new(
    bytes: PandoBytes,
    texts: *const PandoAnalyticTexts,
) -> *mut PandoAnalytic {
    let made = contain(|| {
        // SAFETY: the caller vouches for all.
        let (bytes, texts) = unsafe { (bytes.as_slice(), &*texts) };
        let (key, test, change) = (texts.key, texts.test, texts.change);
        // SAFETY: the caller vouches for the lists.
        let (collations, tests, changes) = unsafe {
            (
                contexts(texts.collations, texts.collation_count),
                contexts(texts.tests, texts.test_count),
                contexts(texts.changes, texts.change_count),
            )
        };
        let mut of_query = Texts::default();
        for context in collations {
            of_query.collations.push(Arc::new(move |text: &[u8], to: &mut Vec<u8>| {
                append(key, context.pointer(), text, to);
            }));
        }
        for context in tests {
            of_query.tests.push(Arc::new(move |text: &[u8]| {
                test(context.pointer(), PandoBytes::from_slice(text)) != 0
            }));
        }
        for context in changes {
            of_query.changes.push(Arc::new(move |text: &[u8], to: &mut Vec<u8>| {
                append(change, context.pointer(), text, to)
            }));
        }
        let (server, context) = (texts.server, Context(texts.server_context));
        of_query.server = Some(Arc::new(move |number, columns, rows| {
            served(server, context.pointer(), number, columns, rows)
        }));
        Query::decode(bytes, of_query)
    });
    match made {
        Ok(Some(query)) => Box::into_raw(Box::new(PandoAnalytic { query, answer: Answer::default() })),
        _ => std::ptr::null_mut(),
    }
}

/// Frees a query. Null is allowed.
///
/// # Safety
/// `query` came from [`pando_analytic_new`] and is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_free(query: *mut PandoAnalytic) {
    guard(|| {
        if !query.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(query) });
        }
    });
}

/// Whether there is a plan for the query, so that it is answered unless its rows are in the way.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_is_answerable(query: *const PandoAnalytic) -> u8 {
    // SAFETY: the caller vouches for it.
    let is_answerable = contain(|| unsafe { &*query }.query.is_answerable());
    u8::from(is_answerable == Ok(true))
}

/// Answers the query from what consistent reads of the transaction see of `count` tables. `Unsupported`: it is to be answered
/// some other way, `why` says why; nothing has come of it; likewise after `Bug`. The rows can be read from then on, and stay.
///
/// # Safety
/// All objects are alive, `tables` are as many as are said; what `is_stopped` does with `context` may be done on any thread.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_run(
    query: *mut PandoAnalytic,
    txn: *mut PandoTxn,
    tables: *const *const PandoTable,
    count: usize,
    memory_bytes: u64,
    is_stopped: PandoIsStopped,
    context: *const c_void,
    why: *mut PandoAnalyticWhy,
) -> PandoStatus {
    // SAFETY: the caller vouches for all.
    let (query, txn, tables) = unsafe { (&mut *query, &mut *txn, std::slice::from_raw_parts(tables, count)) };
    // SAFETY: as above.
    let why = unsafe { &mut *why };
    *why = PandoAnalyticWhy::Unsupported;
    let context = Context(context);
    run_contained(|| {
        let limits = Limits { threads: 0, memory_bytes: memory_bytes as usize };
        let stopped = || is_stopped(context.pointer()) != 0;
        // SAFETY: the caller vouches for them.
        let tables: Vec<&Table> = tables.iter().map(|table| &*unsafe { &**table }.table).collect();
        match query.query.run(&mut txn.txn, &tables, limits, &stopped)? {
            Outcome::Rows(answer) => query.answer = answer,
            Outcome::GivenBack(because) => {
                *why = match because {
                    Why::Unsupported => PandoAnalyticWhy::Unsupported,
                    Why::Memory => PandoAnalyticWhy::Memory,
                    Why::Overflow => PandoAnalyticWhy::Overflow,
                    Why::Undetermined => PandoAnalyticWhy::Undetermined,
                    Why::Stopped => PandoAnalyticWhy::Stopped,
                };
                return Ok(PandoStatus::Unsupported);
            }
        }
        *why = PandoAnalyticWhy::Answered;
        Ok(PandoStatus::Ok)
    })
}

/// How many rows the answer has.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_rows(query: *const PandoAnalytic) -> u64 {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { &*query }.answer.rows() as u64)
}

/// How many rows of tables were gone over.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_rows_met(query: *const PandoAnalytic) -> u64 {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { &*query }.answer.rows_met)
}

/// A value of the answer. Beyond it: NULL.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_cell(
    query: *const PandoAnalytic,
    row: u64,
    column: u32,
) -> PandoAnalyticCell {
    guard(|| {
        // SAFETY: the caller vouches for it.
        let answer = &unsafe { &*query }.answer;
        let (row, column) = (row as usize, column as usize);
        let mut cell = PandoAnalyticCell {
            form: PandoAnalyticForm::Null,
            scale: answer.scale(column),
            low: 0,
            high: 0,
            real: 0.0,
            text: PandoBytes { data: std::ptr::null(), len: 0 },
        };
        if let Some(text) = answer.text(row, column) {
            cell.form = PandoAnalyticForm::Text;
            cell.text = PandoBytes::from_slice(text);
            return cell;
        }
        match answer.value(row, column) {
            Value::Null | Value::Text(_) => {}
            Value::Number(value) => {
                cell.form = PandoAnalyticForm::Number;
                (cell.low, cell.high) = (value as u64, (value >> 64) as i64);
            }
            Value::Real(value) => {
                cell.form = PandoAnalyticForm::Real;
                cell.real = value;
            }
        }
        cell
    })
}
