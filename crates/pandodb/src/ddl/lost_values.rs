//! The file of a table's large values is damaged or missing: the table goes on without it.
//!
//! Unlike an index (`damaged_keys`), nothing can make these values anew. So they are not given up before somebody says so:
//!
//! 1. The table opens with a dictionary that stands for the lost one, in memory alone. It is not written, neither by background work nor
//!    through the log; what the log has of the values is kept where recovery could not replay it (`held_log`). If the file is
//!    back at a later opening, all is well. Rows that were deleted meanwhile have left their values in it: these take space until a
//!    copy (`ALTER TABLE ... FORCE`), and CHECK TABLE passes them by, which the catalog remembers. An encryption of the table does not end
//!    without it (`encryption`).
//! 2. Rows are read and written as ever, but for the values: who wants one gets [`Error::ValuesLost`](crate::Error::ValuesLost), and so does
//!    who has a new one. A row keeps its reference until the column gets another value, or the row goes.
//! 3. [`Db::begin_large_values_anew`] (REPAIR TABLE) gives the file up: one record of the catalog names a new, empty one, with a
//!    dictionary of another id, so that neither the old file, which stays in its place, nor records of it in the log are ever read
//!    for it.
//!
//! No reference to a lost value ever meets another value. Numbers are given in **ages**: the new file begins a new one, and all
//! numbers before it are lost for ever ([`LostValues`]). An age begins also where somebody has to give numbers who cannot see the last: the
//! end of the dictionary is damaged, or a prepared transaction was committed while its values had no place.
//!
//! A damaged block inside the file costs the values in it, and nobody has to give up the rest: its readers get the error of a damaged
//! block.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::{DictId, Error as EngineError};
use pando_tree::Tree;

use crate::catalog::descriptor::{normalize, table_dir, DictDescriptor, Intent, TableDescriptor};
use crate::catalog::Change;
use crate::db::options::LogLevel;
use crate::db::Db;
use crate::error::Result;
use crate::runtime::files::sync_parent;
use crate::table::large::{LargeValues, LostValues};
use crate::table::Dict;

impl Db {
    /// Opens the dictionary of a table's large values, if it has one. Requires as [`Db::open_dict_of`]. Errors: those of opening
    /// it, but for damage; of the catalog.
    pub(crate) fn open_large(&self, table: &TableDescriptor) -> pando_base::Result<Option<LargeValues>> {
        let Some(dictionary) = &table.large else { return Ok(None) };
        let dict = self.open_dict_of(table, dictionary)?;
        self.begin_encryption_of_returned(table, &dict)?;
        let lost = table.lost_values.clone();
        match LargeValues::open(dict.clone(), lost, &self.snapshots.live()) {
            Err(error) if error.is_damage() => {
                self.log(
                    LogLevel::Error,
                    &format!("the last large value of table {} cannot be seen: {error}", table.path),
                );
                let lost = self.begin_age(table.id)?;
                Ok(Some(LargeValues::new(dict, lost, 0)))
            }
            opened => opened.map(Some),
        }
    }

    /// Numbers of large values are given from behind all that can have been given. Requires as [`Db::open_dict_of`].
    pub(crate) fn begin_age(&self, table: u64) -> pando_base::Result<LostValues> {
        let what = || EngineError::NotFound { what: format!("table {table}") };
        let mut table = self.catalog.table_by_id(table).ok_or_else(what)?;
        table.lost_values.begin_age();
        self.record_lost_values(&table)?;
        Ok(table.lost_values)
    }

    /// Makes durable what a descriptor says of large values; a new catalog that is made of the copies of the descriptors has to know
    /// it, too. Errors: those of the catalog.
    fn record_lost_values(&self, table: &TableDescriptor) -> pando_base::Result<()> {
        match self.change_catalog(Change { put: vec![table.clone()], ..Change::default() }) {
            Ok(_) => {}
            // While the log has failed, nothing is written.
            Err(error) => return self.wal.failed().map(|_| ()).ok_or(error),
        }
        let path = &table.path;
        if let Err(error) = self.write_status(&table_dir(&self.base_dir, path), table) {
            self.log(LogLevel::Warning, &format!("status.pando of {path} does not say so: {error}"));
        }
        Ok(())
    }

    /// A transaction that is brought back has values for this dictionary, if it is one of large values, and they have no place: its
    /// rows will refer to them. Errors: of the catalog.
    pub(crate) fn leave_out_values(&self, dict: DictId) -> pando_base::Result<()> {
        let has_it = |table: &TableDescriptor| table.large.as_ref().is_some_and(|its| its.id == dict.0);
        let table = self.catalog.tables(has_it).pop();
        table.map_or(Ok(()), |table| self.begin_age(table.id).map(|_| ()))
    }

    /// Rows change without the file from now on, which the catalog remembers. Requires as [`Db::open_dict_of`]. Errors: of the
    /// catalog.
    pub(crate) fn go_on_without_values(
        &self,
        table: &TableDescriptor,
        error: &EngineError,
    ) -> pando_base::Result<()> {
        let path = &table.path;
        self.log(
            LogLevel::Error,
            &format!(
                "the file of the large values of table {path} is damaged or missing: the values in it cannot be read, and new \
                 ones not written; all else goes on. Put it back and restart, or give the values up with REPAIR TABLE, which \
                 begins a new file: {error}"
            ),
        );
        let Some(mut now) = self.catalog.table_by_id(table.id) else { return Ok(()) };
        match now.lost_values.leave_file_behind() {
            true => self.record_lost_values(&now),
            false => Ok(()),
        }
    }

    /// Step 3 at the head of this file; nothing, if the file is not lost. Requires: the caller keeps others from the
    /// table. Errors: a transaction has uncommitted writes to it, or is prepared with some; I/O leaves nothing.
    pub fn begin_large_values_anew(self: &Arc<Self>, path: &str) -> Result<()> {
        let path = normalize(path);
        let table = self.open_table(&path)?;
        let _one_ddl = self.ddl.lock();
        let mut descriptor = self.described(&path)?;
        let Some(old) = descriptor.large.clone().filter(|_| table.has_lost_large_file()) else {
            return Ok(());
        };
        self.check_quiet(&table)?;
        self.prepared.check_unused(&descriptor)?;
        let intent = self.catalog.take_ids(2);
        let id = intent + 1;
        let new = DictDescriptor { id, file: format!("large-{id}.pando"), unusable: None, ..old.clone() };
        let files = Intent::Files { table: descriptor.id, files: vec![new.file.clone()] };
        self.change_catalog(Change { intend: vec![(intent, files)], ..Change::default() })?;
        let made = self.make_large(&descriptor, &new).and_then(|dict| {
            descriptor.lost_values.give_up(&old.file);
            descriptor.large = Some(new.clone());
            // The intent stays until the copy of the descriptor is written, too.
            self.change_catalog(Change { put: vec![descriptor.clone()], ..Change::default() })?;
            Ok(dict)
        });
        let dict = match made {
            Ok(dict) => dict,
            Err(error) => {
                if let Some(dict) = self.dicts.write().remove(&DictId(id)) {
                    dict.dropped.store(true, Ordering::Release);
                }
                // A failed log may have the descriptor: the file stays, for recovery to decide.
                if self.wal.failed().is_none() {
                    let named = self.described(&path)?;
                    self.remove_and_fulfil(intent, &named, [&new].into_iter());
                }
                return Err(error.into());
            }
        };
        let next = table.with_large(LargeValues::new(dict, descriptor.lost_values.clone(), 0));
        next.shared.writable_from.store(next.generation, Ordering::Release);
        let next = next.with_layouts(descriptor.layouts.clone().map(Arc::new), descriptor.clusterings());
        self.install(&Arc::new(next));
        let old_id = DictId(old.id);
        if let Some(dict) = self.dicts.write().remove(&old_id) {
            dict.dropped.store(true, Ordering::Release);
        }
        self.held_log.lock().remove(&old_id);
        self.remove_and_fulfil(intent, &descriptor, std::iter::empty());
        self.log(
            LogLevel::Warning,
            &format!(
                "table {path} has a new file for large values, {}; those in {} are given up",
                new.file, old.file
            ),
        );
        Ok(())
    }

    fn make_large(&self, table: &TableDescriptor, new: &DictDescriptor) -> pando_base::Result<Arc<Dict>> {
        let id = DictId(new.id);
        let path = table_dir(&self.base_dir, &table.path).join(&new.file);
        let file = self.create_file(&path, id, table.encryption_key_id)?;
        sync_parent(&*self.vfs, &path)?;
        let config = new.tree_config(&self.tree_config, table.compression());
        let tree = Tree::create(self.run_context(&file), config, self.horizon.clone());
        let dict = Arc::new(Dict::new(id, tree, file, 0));
        self.dicts.write().insert(id, dict.clone());
        Ok(dict)
    }
}
