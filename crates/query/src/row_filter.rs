//! Conditions for scans that give rows to the server, which evaluates them again on the rows that it gets.
//!
//! So a filter may leave too much. What it takes away has to be rows that the server would have passed by in silence: a
//! condition of which the server could tell an error is none for a filter (`range.rs`).

use std::sync::Arc;

use pandodb::layout::Layouts;
use pandodb::{Block, RowCondition, Table, Verdict, Want, Zones};

use crate::column::Column;
use crate::expression::Expression;
use crate::filter::Prepared;
use crate::frame::{Frame, Slots};
use crate::run::Query;
use crate::zone;

/// See the head of this file.
#[derive(Debug)]
pub struct RowFilter {
    columns: Vec<Column>,
    expressions: Vec<Expression>,
    prepared: Prepared,
    /// The columns that it looks at, in the order of `wants`.
    looked_at: Vec<usize>,
    wants: Vec<Want>,
    layouts: Arc<Layouts>,
}

impl Query {
    /// The query's condition as a filter of the rows of its only table. `None`: it has none, or is not one that can be
    /// evaluated of every row without fail.
    pub fn into_row_filter(self, table: &Table) -> Option<RowFilter> {
        let layouts = table.layouts()?.clone();
        let slots = Slots { columns: &self.columns, expressions: &self.expressions };
        if !self.equalities.is_empty()
            || !self.is_supported(&slots, &[&layouts])
            || !self.doubtful(&slots, &[&layouts])?.is_empty()
        {
            return None;
        }
        let filter = self.filter.as_ref()?;
        let prepared = filter.prepare(&slots, false)?;
        let (mut named, mut looked_at) = (Vec::new(), Vec::new());
        filter.slots(&mut named);
        named.iter().for_each(|slot| slots.columns_of(*slot, &mut looked_at));
        looked_at.sort_unstable();
        looked_at.dedup();
        let wants = looked_at.iter().map(|column| self.columns[*column].want()).collect();
        let (columns, expressions) = (self.columns, self.expressions);
        Some(RowFilter { columns, expressions, prepared, looked_at, wants, layouts })
    }
}

impl RowFilter {
    /// What blocks have to have of the rows.
    pub fn wants(&self) -> &[Want] {
        &self.wants
    }
}

impl RowCondition for RowFilter {
    fn verdict(&self, zones: &Zones<'_>) -> Verdict {
        zone::verdict_of_zones(&self.prepared, &self.columns, &self.looked_at, &self.layouts, zones)
    }

    fn select(&self, block: &Block) -> Option<Vec<u32>> {
        let slots = Slots { columns: &self.columns, expressions: &self.expressions };
        let mut frame = Frame::of_block(&slots, block.rows, &self.looked_at, &block.vectors);
        // Of trouble (bytes that are none of a value) the server tells, which gets all rows.
        self.prepared.select(&slots, &mut frame).ok().flatten()
    }
}
