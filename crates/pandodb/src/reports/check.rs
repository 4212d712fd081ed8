//! CHECK TABLE: every block, and the agreement of a table's dictionaries. OPTIMIZE TABLE.

use std::sync::Arc;

use pando_base::Seqno;

use crate::db::Db;
use crate::error::{Error, Result};
use crate::table::{Dict, Table};

/// While CHECK TABLE counts rows, it asks after so many whether to go on.
const ROWS_BETWEEN_LOOKS: u64 = 4096;

impl Db {
    /// OPTIMIZE TABLE: pushes everything into the leaves, rewrites them, and gives the space back. Others go
    /// on meanwhile. `watch` is told the part that is done before each leaf, and says whether to go on.
    ///
    /// # Errors
    /// Those of reading and writing; [`Error::Killed`] if `watch` said so: what was done stays.
    pub fn compact_table(&self, table: &Table, watch: &mut dyn FnMut(f64) -> bool) -> Result<()> {
        let weight = |dict: &Arc<Dict>| (dict.tree.stats().raw_bytes + 1) as f64;
        let total: f64 = table.dicts().iter().map(weight).sum();
        let mut before = 0.0;
        for dict in table.dicts() {
            let share = weight(dict) / total;
            // What was deleted just now is in the active memtable.
            dict.tree.seal(|| self.wal.last_seqno());
            let is_whole =
                dict.tree.compact_all_while(&mut |part| watch((before + share * part).min(1.0)))?;
            // What was replaced is free only when no checkpoint refers to it.
            self.checkpoint_dict(dict)?;
            if !is_whole {
                return Err(Error::Killed);
            }
            before += share;
        }
        Ok(())
    }

    /// CHECK TABLE: reads all of a table: blocks and their checksums, order, counts; then counts the rows of
    /// every dictionary at one snapshot, which must agree. `watch` is told now and then the part that is done, and
    /// says whether to go on.
    ///
    /// # Errors
    /// The first thing found wrong; [`Error::Killed`] if `watch` said so.
    pub fn check_table(&self, table: &Table, watch: &mut dyn FnMut(f64) -> bool) -> Result<()> {
        // Reading blocks, then counting rows: each takes about half of the time.
        let share = 0.5 / table.dicts().len() as f64;
        let mut before = 0.0;
        for dict in table.dicts() {
            if !dict.tree.verify_while(&mut |part| watch(before + share * part))? {
                return Err(Error::Killed);
            }
            before += share;
        }
        let snapshot = self.snapshots.take();
        let mut rows = None;
        for dict in table.dicts() {
            let about = rows.unwrap_or_else(|| dict.tree.rows_estimate()).max(1);
            let count = count_rows(dict, snapshot.seqno(), &mut |count| {
                watch(before + share * (count as f64 / about as f64).min(1.0))
            })?;
            let expected = *rows.get_or_insert(count);
            if count != expected {
                return Err(Error::from(pando_base::Error::corruption(
                    &dict.file.path(),
                    0,
                    "entries of an index",
                    format!("{expected}, one for each row"),
                    count,
                )));
            }
            before += share;
        }
        Ok(())
    }
}

/// Rows of a dictionary that a snapshot sees, counted one by one.
fn count_rows(dict: &Dict, seqno: Seqno, go_on: &mut dyn FnMut(u64) -> bool) -> Result<u64> {
    let mut count = 0u64;
    let mut cursor = dict.tree.cursor(seqno);
    cursor.seek_first()?;
    while cursor.valid() {
        if count % ROWS_BETWEEN_LOOKS == 0 && !go_on(count) {
            return Err(Error::Killed);
        }
        count += 1;
        cursor.next()?;
    }
    Ok(count)
}
