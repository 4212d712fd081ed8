//! Loads beside others where somebody wants to know of each row at once whether its keys are there (IGNORE).
//!
//! The unique keys of a row are locked and looked up before it joins, exactly as an insert does (`rows`); only its entries go to
//! the sorters, and not into the write set. So nobody else can have them when the load ends, and it has nothing to lock or to look at
//! then but gaps. What the table does not know are the rows of the load itself: for these keys are noted
//! (`pando_load::Admissions`), unless the caller knows that they ascend.
//!
//! Rows with a key that is there leave what an insert would leave: a shared lock on it, and the locks of their keys before.

use std::sync::Arc;

use pando_load::{Admission, Notes};
use pando_txn::LockMode;

use crate::error::{Error, Result};
use crate::table::Table;
use crate::txn::transaction::Txn;
use crate::write::load::{BulkLoad, Ground, RowEncoder};

impl Txn {
    /// Begins a load as [`Txn::begin_load_beside`] does, of rows of each of which it is asked before ([`Txn::admit_to_load`]).
    ///
    /// # Errors
    /// As of that.
    pub fn begin_load_by_row<E: RowEncoder>(
        &mut self,
        table: &Arc<Table>,
        unique: &[bool],
        encoder: E,
    ) -> Result<Option<BulkLoad<E>>> {
        self.begin_load_on(table, unique, encoder, Ground::BesideByRow)
    }

    /// For a caller that has to know of each row at once whether its keys are there: asks for a row before it is
    /// added to a batch, with all keys that must be alone in their dictionaries. `notes`: whether rows of the load may have
    /// equal ones.
    ///
    /// # Errors
    /// Those of reading, and of locks; the row does not join.
    pub fn admit_to_load<'k, E: RowEncoder>(
        &mut self,
        load: &mut BulkLoad<E>,
        keys: impl Iterator<Item = (usize, &'k [u8])> + Clone,
        notes: Notes,
    ) -> Result<Admission> {
        let seen =
            keys.clone().position(|(dict, key)| notes != Notes::None && load.admissions.has_seen(dict, key));
        if load.ground == Ground::BesideByRow {
            for (position, (index, key)) in keys.clone().take(seen.unwrap_or(usize::MAX)).enumerate() {
                let dict = self.dict_of(load.table(), index)?.clone();
                match self.claim(&dict, index, key, LockMode::Shared) {
                    Err(Error::Duplicate { .. }) => return Ok(Admission::Seen(position)),
                    claimed => claimed?,
                }
            }
        }
        match seen {
            Some(position) => Ok(Admission::Seen(position)),
            None if notes == Notes::None => Ok(Admission::New),
            None => {
                let admission = load.admissions.note(keys);
                if admission == Admission::Full && notes == Notes::WhileRoom {
                    load.admissions.forget();
                }
                Ok(admission)
            }
        }
    }
}
