//! What the change of a row comes to in indexes that are being built ([`Building`]).

use std::sync::Arc;

use pando_txn::WriteSet;

use crate::error::Result;
use crate::table::building::{journal_key, Building};
use crate::table::entry::{check_lengths, Entry};
use crate::table::{Dict, Table};
use crate::txn::transaction::Txn;

/// A write to an index that is being built: `None` is a delete.
struct Op<'a> {
    dict: &'a Arc<Dict>,
    key: Vec<u8>,
    value: Option<&'a [u8]>,
}

impl<'a> Op<'a> {
    fn new(building: &'a Building, entry: &Entry<'a>, is_put: bool) -> Op<'a> {
        match &building.journal {
            Some(journal) if entry.unique => {
                let value = if building.clustering.is_none() { &[] } else { entry.value };
                let key = journal_key(entry.key, building.clustering.name_of(entry.value));
                Op { dict: journal, key, value: is_put.then_some(value) }
            }
            _ => Op { dict: &building.dict, key: entry.key.to_vec(), value: is_put.then_some(entry.value) },
        }
    }
}

/// What a change of a row comes to in the indexes that are being built.
#[derive(Default)]
pub(crate) struct BuildingOps<'a> {
    ops: Vec<Op<'a>>,
}

impl<'a> BuildingOps<'a> {
    /// `old` and `new`: the row's entries, those of the table's dictionaries included.
    /// Errors: an entry is too long.
    pub(crate) fn new(table: &'a Table, old: &[Entry<'a>], new: &[Entry<'a>]) -> Result<BuildingOps<'a>> {
        let mut ops = Vec::new();
        for (position, building) in table.building.iter().enumerate() {
            if building.is_over() {
                continue;
            }
            let place = table.dicts.len() + position;
            let (before, after) = (old.get(place), new.get(place));
            if let (Some(before), Some(after)) = (before, after) {
                if before.key == after.key && before.value == after.value {
                    continue;
                }
            }
            ops.extend(before.map(|entry| Op::new(building, entry, false)));
            ops.extend(after.map(|entry| Op::new(building, entry, true)));
        }
        ops.iter().try_for_each(|op| check_lengths(&op.key, op.value.unwrap_or_default()))?;
        Ok(BuildingOps { ops })
    }

    /// Before the ops are written.
    pub(crate) fn touch(&self, txn: &mut Txn) {
        self.ops.iter().for_each(|op| txn.touch(op.dict));
    }

    pub(crate) fn write(&self, writes: &mut WriteSet) {
        for op in &self.ops {
            match op.value {
                Some(value) => writes.put(op.dict.id, &op.key, value),
                None => writes.delete(op.dict.id, &op.key),
            }
        }
    }
}
