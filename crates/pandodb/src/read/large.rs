//! Large values are read when somebody wants them, not with their rows (`table/large.rs`).

use std::sync::Arc;

use pando_base::{Error as EngineError, Seqno};
use pando_column::large::Reference;

use crate::error::Result;
use crate::table::{Dict, Table};
use crate::txn::transaction::Txn;

impl Txn {
    /// The value that a row refers to which consistent reads have given (`is_locked`: which this transaction has locked).
    /// `None`: it is gone, since the row was read without a lock.
    ///
    /// # Errors
    /// Those of reading; the value is lost with its file; the table has no large values, or the value has another length than the
    /// row says.
    pub fn large_value(
        &mut self,
        table: &Table,
        reference: Reference,
        is_locked: bool,
    ) -> Result<Option<Vec<u8>>> {
        self.check_own(table)?;
        let values = table.large.clone().ok_or_else(|| {
            let what = format!("large values of table {}, which has none", table.path());
            EngineError::Unsupported { what }
        })?;
        values.check_there(reference)?;
        let snapshot = (!is_locked).then(|| self.snapshot_seqno());
        let own = self.own(&values.dict, &reference.key())?;
        let found = match own {
            Some(own) => own,
            None => find(&values.dict, reference, snapshot)?,
        };
        found.map(|value| checked(&values.dict, reference, value)).transpose()
    }
}

/// A row that a transaction has written itself may keep a value that is newer than its snapshot.
pub(crate) fn find(
    dict: &Arc<Dict>,
    reference: Reference,
    snapshot: Option<Seqno>,
) -> Result<Option<Vec<u8>>> {
    let key = reference.key();
    if let Some(seqno) = snapshot {
        dict.check_readable(seqno)?;
        if let Some(value) = dict.tree.get(&key, seqno)? {
            return Ok(Some(value));
        }
    }
    Ok(dict.tree.get(&key, Seqno::MAX)?)
}

pub(crate) fn checked(dict: &Arc<Dict>, reference: Reference, value: Vec<u8>) -> Result<Vec<u8>> {
    if value.len() as u64 == reference.length {
        return Ok(value);
    }
    let what = format!("bytes of large value {}", reference.id);
    Err(EngineError::corruption(&dict.file.path(), 0, what, reference.length, value.len()).into())
}
