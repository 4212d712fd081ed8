//! Large values are written and deleted with the rows that refer to them (`table/large.rs`).

use std::sync::Arc;

use pando_base::Error as EngineError;
use pando_column::large::{references_of, Reference};
use pando_txn::WriteSet;

use crate::error::Result;
use crate::table::entry::check_lengths;
use crate::table::large::{LargeValue, LargeValues};
use crate::table::Table;
use crate::txn::transaction::Txn;

/// What becomes of large values when a row is written.
#[derive(Debug, Default)]
pub(super) struct LargeChange<'a> {
    values: Option<Arc<LargeValues>>,
    put: &'a [LargeValue<'a>],
    delete: Vec<Reference>,
}

impl<'a> LargeChange<'a> {
    /// Of a new row that refers to these. Errors: the table has no place for them.
    pub(super) fn insert(table: &Table, put: &'a [LargeValue<'a>]) -> Result<LargeChange<'a>> {
        let values = match (&table.large, put) {
            (_, []) => None,
            (Some(values), _) => Some(values.clone()),
            (None, _) => {
                let what =
                    format!("large values in table {}, which has no dictionary for them", table.path());
                return Err(EngineError::Unsupported { what }.into());
            }
        };
        if let Some(values) = &values {
            values.check_writable()?;
        }
        for value in put {
            check_lengths(&value.id.to_be_bytes(), value.bytes)?;
        }
        Ok(LargeChange { values, put, delete: Vec::new() })
    }

    pub(super) fn bytes(&self) -> usize {
        self.put.iter().map(|value| value.bytes.len()).sum()
    }

    /// Before [`LargeChange::write`].
    pub(super) fn touch(&self, txn: &mut Txn) {
        let Some(values) = &self.values else { return };
        if !self.put.is_empty() {
            values.note_some();
        }
        txn.touch(&values.dict);
    }

    pub(super) fn write(&self, writes: &mut WriteSet) {
        let Some(values) = &self.values else { return };
        for gone in &self.delete {
            writes.delete(values.dict.id, &gone.key());
        }
        for value in self.put {
            writes.put(values.dict.id, &value.id.to_be_bytes(), value.bytes);
        }
    }
}

impl Txn {
    /// Of a row whose key the transaction has locked: `new` is what it becomes, `None`: it is deleted; `put` are the values that it
    /// did not refer to before. Errors: those of reading; the row is to refer to a value that is neither its own nor new.
    pub(super) fn change_large<'a>(
        &mut self,
        table: &Table,
        key: &[u8],
        new: Option<&[u8]>,
        put: &'a [LargeValue<'a>],
    ) -> Result<LargeChange<'a>> {
        let mut change = LargeChange::insert(table, put)?;
        let (Some(values), Some(layouts)) = (&table.large, table.layouts()) else { return Ok(change) };
        if !values.may_be_some() && put.is_empty() {
            return Ok(change);
        }
        let rows = table.rows();
        let references = |row: &[u8]| {
            let mut found = Vec::new();
            let read = references_of(layouts, row, &mut found);
            read.map(|()| found).map_err(|error| error.at(&rows.file.path(), 0))
        };
        let old = match self.newest_locked(rows, key)? {
            Some(row) => references(&row)?,
            None => Vec::new(),
        };
        let new = new.map_or(Ok(Vec::new()), references)?;
        let is_new = |reference: &Reference| put.iter().any(|value| value.id == reference.id);
        if let Some(other) = new.iter().find(|reference| !old.contains(reference) && !is_new(reference)) {
            let what =
                format!("a row of table {} with large value {} of another row", table.path(), other.id);
            return Err(EngineError::Unsupported { what }.into());
        }
        // What is lost cannot be deleted: its file is not written any more.
        let is_gone = |reference: &Reference| !new.contains(reference) && !values.is_lost(*reference);
        change.delete = old.into_iter().filter(is_gone).collect();
        if !change.delete.is_empty() {
            change.values = Some(values.clone());
        }
        Ok(change)
    }
}
