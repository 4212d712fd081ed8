//! Expressions of a SELECT that the server's own code computes: columns go over, a column comes back.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use pando_analytic::{Column, Data, Hearing};
use pando_query::{Failure, Why};

use crate::bytes::PandoBytes;
use crate::member::member;

/// A column of some rows. One of the lists is there, with an entry for each row; those of NULLs mean nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoServerColumn {
    /// Numbers without their points.
    pub small: *const i64,
    /// Two for each number: the lower half, and the upper one.
    pub large: *const u64,
    /// DOUBLEs.
    pub real: *const f64,
    /// Texts.
    pub texts: *const PandoBytes,
    /// Not 0: NULL. Null: none is.
    pub nulls: *const u8,
}

/// What became of the values of an expression.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoServerOutcome {
    /// They are there.
    Values = 0,
    /// The server has something to say of them, or they are none that can be told: the query is its own.
    GivenBack = 1,
    /// Nobody waits for them any more.
    Stopped = 2,
    /// One of them is too large.
    Overflow = 3,
}

crate::member::members! {
    PandoServerOutcome: Values GivenBack Stopped Overflow;
}

/// What becomes of what the server says while it computes values.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoHearing {
    /// Where it has something to say, it is `GivenBack`, and asked again of all rows.
    Silent = 0,
    /// It is said of each row.
    Told = 1,
    /// Nothing else is wanted, of all rows that a plan could look at.
    Asked = 2,
}

/// Computes the values of an expression, by number, of so many rows of its columns. The result has to stay until the next call.
/// It is called in the thread that runs the query, and in no other.
pub type PandoServerValues = extern "C" fn(
    context: *const c_void,
    number: u32,
    hearing: PandoHearing,
    columns: *const PandoServerColumn,
    count: usize,
    rows: u64,
    result: *mut PandoServerColumn,
) -> MaybeUninit<PandoServerOutcome>;

/// The lists of a column, which stay as long as this.
struct Lists {
    large: Vec<u64>,
    texts: Vec<PandoBytes>,
    nulls: Vec<u8>,
}

impl Lists {
    fn of(column: &Column) -> Lists {
        let large = match &column.data {
            Data::Large(values) => {
                values.iter().flat_map(|value| [*value as u64, (*value >> 64) as u64]).collect()
            }
            _ => Vec::new(),
        };
        let texts = match &column.data {
            Data::Text(codes, dict) => {
                codes.iter().map(|code| PandoBytes::from_slice(dict.get(*code))).collect()
            }
            _ => Vec::new(),
        };
        let nulls = column
            .nulls
            .as_ref()
            .map_or_else(Vec::new, |nulls| nulls.iter().copied().map(u8::from).collect());
        Lists { large, texts, nulls }
    }

    fn column(&self, column: &Column) -> PandoServerColumn {
        let mut of_server = NOTHING;
        match &column.data {
            Data::Small(values) => of_server.small = values.as_ptr(),
            Data::Large(_) => of_server.large = self.large.as_ptr(),
            Data::Real(values) => of_server.real = values.as_ptr(),
            Data::Text(..) => of_server.texts = self.texts.as_ptr(),
        }
        if !self.nulls.is_empty() {
            of_server.nulls = self.nulls.as_ptr();
        }
        of_server
    }
}

const NOTHING: PandoServerColumn = PandoServerColumn {
    small: std::ptr::null(),
    large: std::ptr::null(),
    real: std::ptr::null(),
    texts: std::ptr::null(),
    nulls: std::ptr::null(),
};

/// Asks the server for the values of an expression.
pub(crate) fn served(
    server: PandoServerValues,
    context: *const c_void,
    (number, hearing): (u32, Hearing),
    columns: &[std::sync::Arc<Column>],
    rows: usize,
) -> Result<Column, Failure> {
    let hearing = match hearing {
        Hearing::Silent => PandoHearing::Silent,
        Hearing::Told => PandoHearing::Told,
        Hearing::Asked => PandoHearing::Asked,
    };
    let lists: Vec<Lists> = columns.iter().map(|column| Lists::of(column)).collect();
    let of_server: Vec<PandoServerColumn> =
        lists.iter().zip(columns).map(|(lists, column)| lists.column(column)).collect();
    let mut result = NOTHING;
    let outcome =
        server(context, number, hearing, of_server.as_ptr(), of_server.len(), rows as u64, &mut result);
    match member(outcome).unwrap_or(PandoServerOutcome::GivenBack) {
        PandoServerOutcome::Values => {}
        PandoServerOutcome::GivenBack => return Err(Failure::GivenBack(Why::Told)),
        PandoServerOutcome::Stopped => return Err(Failure::GivenBack(Why::Stopped)),
        PandoServerOutcome::Overflow => return Err(Failure::GivenBack(Why::Overflow)),
    }
    // SAFETY: the server says that the lists it gives have an entry for each row, and stay for now.
    unsafe { column_of(&result, rows) }
}

/// A list of the server's; `None` where there is none.
///
/// # Safety
/// It is null, or has so many entries.
unsafe fn list<'a, T>(list: *const T, count: usize) -> Option<&'a [T]> {
    if list.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for it.
    Some(unsafe { std::slice::from_raw_parts(list, count) })
}

/// # Safety
/// The lists have an entry for each row.
unsafe fn column_of(result: &PandoServerColumn, rows: usize) -> Result<Column, Failure> {
    // SAFETY: the caller vouches for all of them.
    let (small, large, real, texts, nulls) = unsafe {
        (
            list(result.small, rows),
            list(result.large, rows * 2),
            list(result.real, rows),
            list(result.texts, rows),
            list(result.nulls, rows),
        )
    };
    let nulls: Option<Vec<bool>> = nulls
        .filter(|nulls| nulls.iter().any(|is_null| *is_null != 0))
        .map(|nulls| nulls.iter().map(|is_null| *is_null != 0).collect());
    if let Some(texts) = texts {
        // SAFETY: as above.
        return Ok(Column::of_texts(texts.iter().map(|text| unsafe { text.as_slice() }), nulls));
    }
    let data = match (small, large, real) {
        (Some(small), ..) => Data::Small(small.to_vec()),
        (_, Some(large), _) => {
            let value = |pair: &[u64]| i128::from(pair[1] as i64) << 64 | i128::from(pair[0]);
            Data::Large(large.chunks_exact(2).map(value).collect())
        }
        (.., Some(real)) => Data::Real(real.to_vec()),
        _ => return Err(Failure::GivenBack(Why::Unsupported)),
    };
    Ok(Column { data, nulls })
}
