//! Conditions that scans of a table's rows evaluate on whole columns ([`crate::PandoFetch`]).

use std::sync::Arc;

use pando_query::RowFilter;
use pandodb::{RowCondition, Table};

use crate::guard::{contain, guard};
use crate::query::PandoQuery;
use crate::table::PandoTable;

/// A condition on the rows of a table.
pub struct PandoFilter {
    pub(crate) filter: Arc<RowFilter>,
    /// The same, for cursors that keep it from one fetch to the next.
    pub(crate) condition: Arc<dyn RowCondition + Send + Sync>,
    pub(crate) table: Arc<Table>,
    /// Positions of the columns that are needed of rows.
    pub(crate) needed: Vec<usize>,
}

impl std::fmt::Debug for PandoFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.filter.fmt(f)
    }
}

/// Makes a filter of the condition of a query, which has one table and cannot be used any more; free it with
/// [`pando_filter_free`]. Null: there is no condition, or not one that can be evaluated of every row, without fail.
///
/// # Safety
/// Both objects are alive; what the query's collations and patterns point to lives as long as the filter.
#[no_mangle]
pub unsafe extern "C" fn pando_filter_new(
    query: *mut PandoQuery,
    table: *const PandoTable,
) -> *mut PandoFilter {
    // SAFETY: the caller vouches for both.
    let (query, table) = unsafe { (&mut *query, &(*table).table) };
    // Without a filter the scan gives all rows.
    let made = contain(|| {
        let filter = Arc::new(query.take_finished().and_then(|query| query.into_row_filter(table))?);
        let condition = filter.clone();
        Some(Box::new(PandoFilter { filter, condition, table: table.clone(), needed: Vec::new() }))
    });
    made.ok().flatten().map_or(std::ptr::null_mut(), Box::into_raw)
}

/// Of rows that scans give from now on, only the columns at these positions of the table's current layout count, and the key.
///
/// # Safety
/// `filter` is alive, `positions` are as many as are said.
#[no_mangle]
pub unsafe extern "C" fn pando_filter_need(filter: *mut PandoFilter, positions: *const u32, count: usize) {
    guard(|| {
        // SAFETY: the caller vouches for both.
        let (filter, positions) = unsafe { (&mut *filter, positions_of(positions, count)) };
        filter.needed.clear();
        filter.needed.extend(positions.iter().map(|position| *position as usize));
    });
}

/// # Safety
/// `positions` are as many as are said.
unsafe fn positions_of<'a>(positions: *const u32, count: usize) -> &'a [u32] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for them, and there are some.
    unsafe { std::slice::from_raw_parts(positions, count) }
}

/// Frees a filter. Null is allowed.
///
/// # Safety
/// `filter` is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_filter_free(filter: *mut PandoFilter) {
    guard(|| {
        if !filter.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(filter) });
        }
    });
}
