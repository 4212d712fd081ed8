//! How many rows conditions leave: by asking them of some blocks, spread over the table. No statistics say as much of LIKE,
//! of several conditions together, or of a column without a key.

use pandodb::layout::Layouts;
use pandodb::{Table, Txn, Verdict};

use crate::eval::{Eval, Result};
use crate::execute::want;
use crate::expr::{Expr, Slot};
use crate::plan::Plan;
use crate::table_rows::TableRows;

/// Blocks that are looked at.
const BLOCKS: usize = 12;

/// What tables are read with.
pub(crate) struct Sampler<'a, 'b> {
    pub txn: &'a mut Txn,
    pub tables: &'a [&'b Table],
    pub layouts: &'a [&'b Layouts],
    pub eval: Eval<'a>,
}

impl Sampler<'_, '_> {
    /// The part of a table's rows for which its conditions are true, about; more than 0. `None`: it is not known.
    pub(crate) fn part_left(&mut self, scan: &Plan) -> Result<Option<f64>> {
        let Plan::Scan { table, parts, columns, filter, .. } = scan else { return Ok(None) };
        if filter.iter().any(Expr::needs_server) {
            return Ok(None);
        }
        let mut looked_at = Vec::new();
        filter.iter().for_each(|part| part.slots(&mut looked_at));
        let columns: Vec<_> =
            columns.iter().filter(|column| looked_at.contains(&column.slot)).cloned().collect();
        let slots: Vec<Slot> = columns.iter().map(|column| column.slot).collect();
        let Some(filter) = filter.iter().map(|part| part.bound(&slots)).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let wants: Vec<_> = columns.iter().map(want).collect();
        let of_rows = TableRows::new(columns, filter, Vec::new(), None, Vec::new());
        let (mut seen, mut left) = (0, 0);
        let of_part = (BLOCKS / parts).max(1);
        for table in (*table..table + parts).step_by(parts.div_ceil(BLOCKS)) {
            let (Some(of_table), Some(layouts)) = (self.tables.get(table), self.layouts.get(table)) else {
                return Ok(None);
            };
            let view = self.txn.view(of_table, 0)?;
            let bounds = view.bounds();
            for number in 0..of_part.min(bounds.len() + 1) {
                let part = number * (bounds.len() + 1) / of_part.min(bounds.len() + 1);
                let begin = part.checked_sub(1).and_then(|before| bounds.get(before)).map(Vec::as_slice);
                let end = bounds.get(part).map(Vec::as_slice);
                let mut blocks = view.blocks(layouts, &wants, begin, end)?;
                if let Some(block) = blocks.next_where(&|_| Verdict::Some)? {
                    seen += block.rows;
                    of_rows.of_block(block, &mut |block, _| Ok(block.rows), self.eval, &mut |batch| {
                        left += batch.rows;
                        Ok(())
                    })?;
                }
            }
        }
        Ok((seen > 0).then(|| (left as f64).max(0.5) / seen as f64))
    }
}
