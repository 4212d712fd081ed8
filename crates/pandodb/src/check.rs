//! CHECK TABLE: every block, and the agreement of a table's dictionaries. OPTIMIZE TABLE.

use pando_base::{Error, Result};

use crate::db::Db;
use crate::table::Table;

impl Db {
    /// OPTIMIZE TABLE: pushes everything into the leaves, rewrites them, and gives the space back. Others go
    /// on meanwhile.
    pub fn compact_table(&self, table: &Table) -> Result<()> {
        for dict in table.dicts() {
            // What was deleted just now is in the active memtable.
            dict.tree.seal(|| self.wal.last_seqno());
            dict.tree.compact_all()?;
            // What was replaced is free only when no checkpoint refers to it.
            self.checkpoint_dict(dict)?;
        }
        Ok(())
    }

    /// Reads all of a table: blocks and their checksums, order, counts; then counts the rows of
    /// every dictionary at one snapshot, which must agree. Errors: the first thing found wrong.
    pub fn check_table(&self, table: &Table) -> Result<()> {
        for dict in table.dicts() {
            dict.tree.verify()?;
        }
        let snapshot = self.snapshots.take();
        let mut rows = None;
        for dict in table.dicts() {
            let mut count = 0u64;
            let mut cursor = dict.tree.cursor(snapshot.seqno());
            cursor.seek_first()?;
            while cursor.valid() {
                count += 1;
                cursor.next()?;
            }
            let expected = *rows.get_or_insert(count);
            if count != expected {
                return Err(Error::corruption(
                    &dict.file.path(),
                    0,
                    "entries of an index",
                    format!("{expected}, one for each row"),
                    count,
                ));
            }
        }
        Ok(())
    }
}
