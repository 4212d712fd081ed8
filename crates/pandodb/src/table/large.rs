//! The large values of a table: a dictionary from numbers to values, beside those of rows and indexes.
//!
//! Rows refer to its entries ([`pando_column::large`] has the form of a reference, and the reasons). What holds:
//!
//! * An entry belongs to one row. It is written by the transaction that makes the row refer to it, and deleted by the one that
//!   makes the row refer to it no more (`write/large.rs`). So who sees a version of the row sees the entry in the same snapshot.
//! * Entries are not locked: the lock of their row protects them.
//! * No number is given twice while anybody could still look for the first value: numbers ascend, and begin behind all that the
//!   newest state or a live snapshot has when the table is opened; and behind all that were given while that could not be seen
//!   ([`LostValues`]).
//! * Who looks for a value that is lost with its file gets an error, now and ever: [`LargeValues::check_there`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::{Error, Result, Seqno};
use pando_column::large::Reference;
use serde::{Deserialize, Serialize};

use crate::table::Dict;

/// Numbers are given in ages of so many. Where nobody can say which were given, the next age begins: at a million values
/// a second one lasts for 12 days, and there are 16 million.
const AGE: u64 = 1 << 40;

/// See the head of this file. The same for all objects of a table.
#[derive(Debug)]
pub(crate) struct LargeValues {
    pub(crate) dict: Arc<Dict>,
    next: AtomicU64,
    /// There may be some.
    is_any: AtomicBool,
    lost: LostValues,
}

/// What the catalog knows of values that are gone with their file (`ddl/lost_values.rs`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LostValues {
    /// New values get numbers from here on: a row may refer to any smaller one.
    numbers_from: u64,
    /// Smaller ones are of values that are lost.
    below: u64,
    /// The files that had them.
    files: Vec<String>,
    /// Rows may have changed without the file: it may have values to which no row refers.
    #[serde(default)]
    has_leftovers: bool,
}

impl LostValues {
    pub(crate) fn is_none(&self) -> bool {
        *self == LostValues::default()
    }

    /// Rows may refer to numbers that no file knows.
    pub(crate) fn begin_age(&mut self) {
        self.numbers_from = (self.numbers_from / AGE).saturating_add(1).saturating_mul(AGE);
    }

    /// All values so far are lost with this file.
    pub(crate) fn give_up(&mut self, file: &str) {
        self.begin_age();
        self.below = self.numbers_from;
        self.files.push(file.to_owned());
        self.has_leftovers = false;
    }

    /// The files that had values which are lost.
    pub(crate) fn files(&self) -> &[String] {
        &self.files
    }

    /// From now on rows change without the file. False: that was known.
    pub(crate) fn leave_file_behind(&mut self) -> bool {
        !std::mem::replace(&mut self.has_leftovers, true)
    }
}

/// A large value that is written with its row.
#[derive(Clone, Copy, Debug)]
pub struct LargeValue<'a> {
    /// Its number: [`Table::next_large_value`](crate::Table::next_large_value).
    pub id: u64,
    /// The value.
    pub bytes: &'a [u8],
}

impl LargeValues {
    /// Of a dictionary that was just opened; `snapshots` are those that are alive. Errors: those of reading; a key that is no
    /// number.
    pub(crate) fn open(dict: Arc<Dict>, lost: LostValues, snapshots: &[Seqno]) -> Result<LargeValues> {
        let mut last = dict.prepared_hidden_key.load(Ordering::Acquire);
        for seqno in snapshots.iter().copied().chain([Seqno::MAX]) {
            let mut cursor = dict.tree.cursor(seqno);
            cursor.seek_last()?;
            if cursor.valid() {
                last = last.max(id_of(&dict, cursor.key())?);
            }
        }
        Ok(LargeValues::new(dict, lost, last))
    }

    /// Of a dictionary without a number beyond `last`, other than those of ages that are over.
    pub(crate) fn new(dict: Arc<Dict>, lost: LostValues, last: u64) -> LargeValues {
        let is_any = last > 0 || dict.writers.is_any() || dict.is_unusable() || !lost.is_none();
        let next = AtomicU64::new(lost.numbers_from.max(last + 1));
        LargeValues { dict, next, is_any: AtomicBool::new(is_any), lost }
    }

    /// Whether a value is lost with its file.
    pub(crate) fn is_lost(&self, reference: Reference) -> bool {
        reference.id < self.lost.below || self.dict.is_unusable()
    }

    /// Refuses to look for a value that is lost.
    pub(crate) fn check_there(&self, reference: Reference) -> crate::error::Result<()> {
        match self.is_lost(reference) {
            true => Err(self.lost_error(&format!("large value {} was", reference.id))),
            false => Ok(()),
        }
    }

    /// Refuses new values where there is no file for them.
    pub(crate) fn check_writable(&self) -> crate::error::Result<()> {
        let Some(reason) = self.dict.unusable.get() else { return Ok(()) };
        let file = self.dict.file.path();
        let what = format!(
            "{} is damaged or missing, and takes no new large values: put it back and restart, or begin a new file with REPAIR \
             TABLE: {reason}",
            file.display()
        );
        Err(crate::error::Error::ValuesLost { what })
    }

    /// The error of who needs what is lost; `what` ends in "was" or "were".
    pub(crate) fn lost_error(&self, what: &str) -> crate::error::Error {
        let path = self.dict.file.path();
        let what = match self.dict.unusable.get() {
            Some(reason) => format!("{what} in {}, which is damaged or missing: {reason}", path.display()),
            None => {
                let files: Vec<String> = self
                    .lost
                    .files
                    .iter()
                    .map(|file| path.with_file_name(file).display().to_string())
                    .collect();
                format!(
                    "{what} in {}, which was damaged or missing and has been given up",
                    files.join(" or ")
                )
            }
        };
        crate::error::Error::ValuesLost { what }
    }

    /// Whether there may be values to which no row refers.
    pub(crate) fn has_leftovers(&self) -> bool {
        self.lost.has_leftovers
    }

    /// A number for a value.
    pub(crate) fn take_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Somebody is about to write one.
    pub(crate) fn note_some(&self) {
        self.is_any.store(true, Ordering::Release);
    }

    /// False: no row of the table refers to one.
    pub(crate) fn may_be_some(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }
}

/// The number that a key of the dictionary is. Errors: it is none.
pub(crate) fn id_of(dict: &Dict, key: &[u8]) -> Result<u64> {
    let bytes = key
        .try_into()
        .map_err(|_| Error::corruption(&dict.file.path(), 0, "key of a large value", "8 bytes", key.len()))?;
    Ok(u64::from_be_bytes(bytes))
}
