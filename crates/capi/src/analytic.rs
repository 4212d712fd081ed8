//! SELECTs of any shape: the server says the query as bytes (`pando_analytic::Query::decode`), and gets rows.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use pando_analytic::{Answer, Outcome, Query, SpillTo, TextOrder, Texts, Value};
use pando_query::{Limits, Why};
use pandodb::{RealVfs, Table};

use crate::bytes::PandoBytes;
use crate::guard::{contain, guard};
use crate::member::member;
use crate::query::PandoIsStopped;
use crate::server_values::{served, PandoServerValues};
use crate::status::{fail, run_contained, PandoStatus};
use crate::table::PandoTable;
use crate::transaction::PandoTxn;

/// Writes something made of a text into `to`, if it has room for it; says how many bytes that takes. `u64::MAX`: it is NULL.
/// Called on several threads at once.
pub type PandoChangeText =
    extern "C" fn(context: *const c_void, text: PandoBytes, to: *mut u8, room: u64) -> u64;
/// Whether a text passes a test. Called on several threads at once.
pub type PandoTestText = extern "C" fn(context: *const c_void, text: PandoBytes) -> u8;

/// An earlier moment that stands for one, both as a column of DATETIME or TIMESTAMP has them. Called on several threads at once.
pub type PandoFloorOfMoment = extern "C" fn(context: *const c_void, moment: i64) -> i64;
/// A number of a text. Called on several threads at once.
pub type PandoMeasureText = extern "C" fn(context: *const c_void, text: PandoBytes) -> i64;

/// How a collation orders texts.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoTextOrder {
    /// As the bytes say that `key` gives.
    Keys = 0,
    /// As their bytes are ordered.
    Bytes = 1,
    /// Likewise, as if all went on with spaces for ever.
    Padded = 2,
}

crate::member::members! {
    PandoTextOrder: Keys Bytes Padded;
}

/// What the server's code does with texts and moments; the lists are read when the query is made, what they point to lives as long as it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoAnalyticTexts {
    /// Gives the bytes that order a text in a collation.
    pub key: PandoChangeText,
    /// The collations.
    pub collations: *const *const c_void,
    /// How each of them orders texts.
    pub collation_orders: *const MaybeUninit<PandoTextOrder>,
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
    /// Says which moment stands for one.
    pub floor: PandoFloorOfMoment,
    /// In which ways.
    pub floors: *const *const c_void,
    /// How many.
    pub floor_count: usize,
    /// Measures a text.
    pub measure: PandoMeasureText,
    /// The measures.
    pub measures: *const *const c_void,
    /// How many.
    pub measure_count: usize,
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
    /// A text, which lives until another row is made ready.
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
    /// A NULL leaves open what NOT IN is.
    Open = 6,
    /// A query as a value has several rows.
    Several = 7,
    /// The server's own expression has something to say.
    Told = 8,
    /// The answer depends on how the server would go about it.
    Unsure = 9,
    /// A temporary file could not be written or read.
    Disk = 10,
    /// It would make pairs of many rows, few of which are wanted.
    Pairs = 11,
}

/// A query and its answer.
#[derive(Debug)]
pub struct PandoAnalytic {
    query: Query,
    answer: Answer,
    /// Why there is no plan for it.
    why_not: String,
}

/// The number of the operating system for a failed read or write.
const EIO: i32 = 5;

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

/// # Safety
/// The list has so many entries.
unsafe fn orders(list: *const MaybeUninit<PandoTextOrder>, count: usize) -> pandodb::Result<Vec<TextOrder>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the caller vouches for it.
    let list = unsafe { std::slice::from_raw_parts(list, count) };
    let order = |order: &MaybeUninit<PandoTextOrder>| {
        Ok(match member(*order)? {
            PandoTextOrder::Keys => TextOrder::Keys,
            PandoTextOrder::Bytes => TextOrder::Bytes,
            PandoTextOrder::Padded => TextOrder::Padded,
        })
    };
    list.iter().map(order).collect()
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
        let (floor, measure) = (texts.floor, texts.measure);
        // SAFETY: the caller vouches for the lists.
        let (collations, tests, changes, floors, measures) = unsafe {
            (
                contexts(texts.collations, texts.collation_count),
                contexts(texts.tests, texts.test_count),
                contexts(texts.changes, texts.change_count),
                contexts(texts.floors, texts.floor_count),
                contexts(texts.measures, texts.measure_count),
            )
        };
        let mut of_query = Texts::default();
        // SAFETY: the caller vouches for the list.
        of_query.orders = unsafe { orders(texts.collation_orders, texts.collation_count) }.ok()?;
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
        for context in floors {
            of_query.floors.push(Arc::new(move |moment: i64| floor(context.pointer(), moment)));
        }
        for context in measures {
            of_query
                .measures
                .push(Arc::new(move |text: &[u8]| measure(context.pointer(), PandoBytes::from_slice(text))));
        }
        let (server, context) = (texts.server, Context(texts.server_context));
        of_query.server = Some(Arc::new(move |number, hearing, columns, rows| {
            served(server, context.pointer(), (number, hearing), columns, rows)
        }));
        Query::decode(bytes, of_query)
    });
    match made {
        Ok(Some(query)) => {
            let made = PandoAnalytic { query, answer: Answer::default(), why_not: String::new() };
            Box::into_raw(Box::new(made))
        }
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

/// Whether there is a plan for the query, so that it is answered unless its rows are in the way. If not, `why_not` says why; it
/// lives as long as the query.
///
/// # Safety
/// `query` is alive, and `why_not` can be written.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_is_answerable(
    query: *mut PandoAnalytic,
    why_not: *mut PandoBytes,
) -> u8 {
    // SAFETY: the caller vouches for both.
    let (query, to) = unsafe { (&mut *query, &mut *why_not) };
    let why_not = contain(|| query.query.why_not()).unwrap_or_else(|_| Some("a plan".into()));
    let is_answerable = why_not.is_none();
    query.why_not = why_not.unwrap_or_default();
    *to = PandoBytes::from_slice(query.why_not.as_bytes());
    u8::from(is_answerable)
}

/// Answers the query from what consistent reads of the transaction see of `count` tables. `Unsupported`: it is to be answered
/// some other way, `why` says why; nothing has come of it; likewise after `Bug`. The rows can be read from then on, and stay; those
/// for which there was no memory are in a temporary file in `tmp_dir`, which has no name; without such a directory, the query is
/// given back then.
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
    tmp_dir: PandoBytes,
    is_stopped: PandoIsStopped,
    context: *const c_void,
    why: *mut PandoAnalyticWhy,
) -> PandoStatus {
    // SAFETY: the caller vouches for all.
    let (query, txn, tables) = unsafe { (&mut *query, &mut *txn, std::slice::from_raw_parts(tables, count)) };
    // SAFETY: as above.
    let why = unsafe { &mut *why };
    *why = PandoAnalyticWhy::Unsupported;
    // SAFETY: the caller vouches for it.
    let tmp_dir = unsafe { tmp_dir.to_text() };
    let context = Context(context);
    run_contained(|| {
        query.query.spill_to =
            (!tmp_dir.is_empty()).then(|| SpillTo { vfs: RealVfs::new(false), dir: tmp_dir.into() });
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
                    Why::Open => PandoAnalyticWhy::Open,
                    Why::Several => PandoAnalyticWhy::Several,
                    Why::Told => PandoAnalyticWhy::Told,
                    Why::Unsure => PandoAnalyticWhy::Unsure,
                    Why::Disk => PandoAnalyticWhy::Disk,
                    Why::Pairs => PandoAnalyticWhy::Pairs,
                };
                return Ok(PandoStatus::Unsupported);
            }
        }
        *why = PandoAnalyticWhy::Answered;
        Ok(PandoStatus::Ok)
    })
}

/// Has what only warns asked of all rows of its table: after `Told`, the query may be answered so. 0: it was so already.
///
/// # Safety
/// `query` is alive, and nobody else uses it.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_ask_all(query: *mut PandoAnalytic) -> u8 {
    // SAFETY: the caller vouches for it.
    guard(|| u8::from(unsafe { &mut *query }.query.ask_all()))
}

/// How the query would be answered: from then on its operators can be read, and it has no rows. `Unsupported`: there is no plan.
///
/// # Safety
/// As [`pando_analytic_run`].
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_explain(
    query: *mut PandoAnalytic,
    txn: *mut PandoTxn,
    tables: *const *const PandoTable,
    count: usize,
    is_stopped: PandoIsStopped,
    context: *const c_void,
) -> PandoStatus {
    // SAFETY: the caller vouches for all.
    let (query, txn, tables) = unsafe { (&mut *query, &mut *txn, std::slice::from_raw_parts(tables, count)) };
    let context = Context(context);
    run_contained(|| {
        let stopped = || is_stopped(context.pointer()) != 0;
        // SAFETY: the caller vouches for them.
        let tables: Vec<&Table> = tables.iter().map(|table| &*unsafe { &**table }.table).collect();
        let Some(answer) = query.query.explain(&mut txn.txn, &tables, &stopped) else {
            return Ok(PandoStatus::Unsupported);
        };
        query.answer = answer;
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

/// Makes a row of the answer ready: its values can be asked for then, until another row is made ready. `Io`: it cannot be read from
/// the temporary file.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_go_to(query: *mut PandoAnalytic, row: u64) -> PandoStatus {
    // SAFETY: the caller vouches for it.
    let query = unsafe { &mut *query };
    run_contained(|| match query.answer.go_to(row as usize) {
        true => Ok(PandoStatus::Ok),
        false => Ok(fail(
            &pandodb::EngineError::io(
                "read",
                std::path::Path::new("a temporary file of a query"),
                0,
                std::io::Error::from_raw_os_error(EIO),
            )
            .into(),
        )),
    })
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

/// How many rows an OFFSET has skipped, where it has skipped all.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_rows_skipped(query: *const PandoAnalytic) -> u64 {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { &*query }.answer.rows_skipped)
}

/// An operator of the plan by which a query was answered.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoAnalyticOperator {
    /// The operator that its rows go to; -1: it is the last one.
    pub parent: i32,
    /// Of a scan: which of the tables that the query was given; else -1.
    pub table: i32,
    /// What it does.
    pub name: PandoBytes,
    /// Its condition, or what it makes groups of, or sorts by. A byte 1 or 2, digits and a byte 3 are a column, or an expression
    /// of the server's, by number.
    pub what: PandoBytes,
    /// Rows that it was thought to give.
    pub estimated: u64,
    /// Rows that it gave.
    pub rows: u64,
    /// Microseconds that it took to get the rows that it holds; 0: it holds none.
    pub held_us: u64,
}

/// How many operators the plan has by which a query was answered.
///
/// # Safety
/// `query` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_operators(query: *const PandoAnalytic) -> u64 {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { &*query }.answer.operators.len() as u64)
}

/// An operator: each comes before its inputs. Its texts live as long as the query.
///
/// # Safety
/// `query` is alive, and has so many.
#[no_mangle]
pub unsafe extern "C" fn pando_analytic_operator(
    query: *const PandoAnalytic,
    number: u64,
) -> PandoAnalyticOperator {
    guard(|| {
        // SAFETY: the caller vouches for it.
        let operator = &unsafe { &*query }.answer.operators[number as usize];
        let number = |number: Option<usize>| number.map_or(-1, |number| number as i32);
        PandoAnalyticOperator {
            parent: number(operator.parent),
            table: number(operator.table),
            name: PandoBytes::from_slice(operator.name.as_bytes()),
            what: PandoBytes::from_slice(operator.what.as_bytes()),
            estimated: operator.estimated as u64,
            rows: operator.rows,
            held_us: operator.held_us,
        }
    })
}

/// A value of a row of the answer that [`pando_analytic_go_to`] has made ready. Beyond it: NULL.
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
