//! Damage of one secondary index stays there: its table goes on without it.
//!
//! An index has nothing that the rows do not have. If its file is damaged or missing, the index becomes **unusable**:
//!
//! 1. That is made durable in the catalog ([`DictDescriptor::unusable`]) before anybody goes on. From then on rows change
//!    without it, so its file must never be read again, also if it comes back (a file system that was not mounted).
//! 2. In memory its dictionary says so ([`Dict::unusable`]), or one that stands for it ([`TreeFile::lost`]), where the file could not be opened.
//!    Reads by it are refused ([`Error::KeyUnusable`](crate::Error::KeyUnusable)), row changes leave it out, and background work
//!    and the log pass it by: no log is kept for it. Nobody can say whether a key of a unique index is free, so rows that would
//!    get a new one are refused; rows can be deleted, and changed otherwise.
//! 3. DROP KEY removes it; an index that is built anew in its place (`indexes`), or a copy of the table, ends it.
//!
//! Damage counts if it is met twice, one after the other. It is found when the table is opened, by recovery, by CHECK TABLE, and by background work that meets damage. A statement that meets
//! damage in an index that is usable so far gives the error of what it has met.
//!
//! An index may also be whole and have the entries of another one: what calls knows the rows and their entries, finds that, and has the
//! index given up ([`Db::give_up_misnamed_keys`], [`Db::give_up_key`]).
//!
//! What a transaction has written to an index before it became unusable stays with it, and goes nowhere.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::{DictId, Error, Result};
use pando_storage::TreeFile;
use pando_tree::Tree;

use crate::catalog::descriptor::{table_dir, DictDescriptor, TableDescriptor, CATALOG};
use crate::catalog::Change;
use crate::db::options::LogLevel;
use crate::db::{Db, Unrecovered};
use crate::ddl::encryption::{check_encryption, FileKey};
use crate::runtime::failure::Failure;
use crate::table::{Dict, Table};

/// How often background work has to meet damage once more before its index is given up.
const WORK_TRIES: usize = 3;

/// What the operator is told.
fn unusable_line(name: &str, path: &str, reason: &str) -> String {
    format!(
        "key {name} of table {path} is damaged and not used any more; the rows are not touched by that. REPAIR TABLE \
         builds it anew, or drop the key and add it again: {reason}"
    )
}

impl Db {
    /// Opens a dictionary of a table that is not open; that of an index that is damaged as an unusable one, and so that of large
    /// values (`lost_values`).
    /// Requires: the DDL mutex, or a database that is being opened. Errors: those of opening it; of the catalog.
    pub(crate) fn open_dict_of(
        &self,
        table: &TableDescriptor,
        dictionary: &DictDescriptor,
    ) -> Result<Arc<Dict>> {
        let id = DictId(dictionary.id);
        let is_index = table.dictionaries.iter().skip(1).any(|its| its.id == dictionary.id);
        let is_large = table.large.as_ref().is_some_and(|its| its.id == dictionary.id);
        if let Some(dict) = self.dict(id) {
            return Ok(dict);
        }
        let dict = match &dictionary.unusable {
            Some(reason) => self.stand_in(table, dictionary, reason),
            None => {
                let path = table_dir(&self.base_dir, &table.path).join(&dictionary.file);
                let config = dictionary.tree_config(&self.tree_config, table.compression());
                let open = || -> Result<Dict> {
                    let dict = self.open_dict(&path, id, config)?;
                    check_encryption(&dict.file, &FileKey::of(table, is_large))?;
                    self.catalog.ages.lock().check(&path, id, dict.file.epoch())?;
                    Ok(dict)
                };
                let is_lost = |error: &Error| (is_index || is_large) && error.is_damage();
                // It may be the reading that was bad: ask twice.
                match open().or_else(|error| if is_lost(&error) { open() } else { Err(error) }) {
                    Ok(dict) => dict,
                    Err(error) if is_large && is_lost(&error) => {
                        self.go_on_without_values(table, &error)?;
                        self.stand_in(table, dictionary, &error.to_string())
                    }
                    Err(error) if is_lost(&error) => {
                        let recorded = self.record_unusable(dictionary.id, &error);
                        // While the log has failed, no row changes, and the next start finds the same damage.
                        recorded.or_else(|error| self.wal.failed().map(|_| ()).ok_or(error))?;
                        self.stand_in(table, dictionary, &error.to_string())
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let dict = Arc::new(dict);
        self.pin_if_wanted(&dict);
        self.dicts.write().insert(id, dict.clone());
        Ok(dict)
    }

    /// A dictionary in place of one whose file cannot be used.
    fn stand_in(&self, table: &TableDescriptor, dictionary: &DictDescriptor, reason: &str) -> Dict {
        let id = DictId(dictionary.id);
        let path = table_dir(&self.base_dir, &table.path).join(&dictionary.file);
        let file = TreeFile::lost(&self.vfs, &path, id);
        let config = dictionary.tree_config(&self.tree_config, table.compression());
        let tree = Tree::create(self.run_context(&file), config, self.horizon.clone());
        let dict = Dict::new(id, tree, file, 0);
        // Nobody else has it yet.
        let _ = dict.unusable.set(reason.to_owned());
        dict
    }

    /// Step 1 at the head of this file, unless it is done. Requires as [`Db::open_dict_of`].
    fn record_unusable(&self, id: u64, error: &Error) -> Result<()> {
        let has_it = |t: &TableDescriptor| t.dictionaries.iter().skip(1).any(|its| its.id == id);
        let Some(mut table) = self.catalog.tables(has_it).pop() else { return Ok(()) };
        let path = table.path.clone();
        let Some(dictionary) = table.dictionaries.iter_mut().find(|its| its.id == id) else { return Ok(()) };
        if dictionary.unusable.is_some() {
            return Ok(());
        }
        dictionary.unusable = Some(error.to_string());
        let name = dictionary.name.clone();
        self.change_catalog(Change { put: vec![table.clone()], ..Change::default() })?;
        self.log(LogLevel::Error, &unusable_line(&name, &path, &error.to_string()));
        self.write_unusable_status(&path, &table);
        Ok(())
    }

    fn write_unusable_status(&self, path: &str, table: &TableDescriptor) {
        if let Err(error) = self.write_status(&table_dir(&self.base_dir, path), table) {
            self.log(LogLevel::Warning, &format!("status.pando of {path} does not say so: {error}"));
        }
    }

    /// The names that the catalog has of a table's dictionaries. Errors: no such table.
    pub fn dictionary_names(&self, table: &Table) -> crate::Result<Vec<String>> {
        self.check_own(table)?;
        let path = table.path();
        let names = self.catalog.dictionary_names(&path);
        Ok(names.ok_or_else(|| Error::NotFound { what: format!("table {path}") })?)
    }

    /// Indexes that are others in the server's definition than in the catalog, by their positions and the names that the server has for
    /// them: they have entries of one another, and become unusable under these names. Errors: the catalog cannot be written.
    pub fn give_up_misnamed_keys(&self, table: &Table, names: &[(usize, String)]) -> crate::Result<()> {
        self.check_own(table)?;
        let _one_ddl = self.ddl.lock();
        let path = table.path();
        let Some(mut descriptor) = self.catalog.table(&path) else { return Ok(()) };
        let (mut lines, mut found) = (Vec::new(), Vec::new());
        for (index, name) in names {
            let (Some(its), Some(dict)) = (descriptor.dictionaries.get_mut(*index), table.dicts.get(*index))
            else {
                continue;
            };
            // Changed since the names were compared: whoever opens the table next compares them again.
            if *index == 0 || its.id != dict.id.0 || its.name == *name {
                continue;
            }
            let old = std::mem::replace(&mut its.name, name.clone());
            let reason = format!(
                "it has the entries of key {old}, as an ALTER TABLE of an older version of the plugin left it"
            );
            lines.push(unusable_line(name, &path, &reason));
            its.unusable.get_or_insert_with(|| reason.clone());
            found.push((dict, reason));
        }
        if found.is_empty() {
            return Ok(());
        }
        let recorded = self.change_catalog(Change { put: vec![descriptor.clone()], ..Change::default() });
        // While the log has failed, no row changes, and the next start finds the same.
        recorded.map(|_| ()).or_else(|error| self.wal.failed().map(|_| ()).ok_or(error))?;
        for (dict, reason) in found {
            // It may have been unusable before.
            let _ = dict.unusable.set(reason);
        }
        table.shared.has_unusable.store(true, Ordering::Release);
        lines.iter().for_each(|line| self.log(LogLevel::Error, line));
        self.write_unusable_status(&path, &descriptor);
        Ok(())
    }

    /// Whoever checks a table has found in an index other entries than the rows have: it becomes unusable.
    /// Errors: what was found, or the catalog cannot be written.
    pub fn give_up_key(&self, table: &Table, index: usize) -> crate::Result<()> {
        self.check_own(table)?;
        let dict = table.dict(index)?;
        let what = "entries of an index";
        let error = Error::corruption(&dict.file.path(), 0, what, "those of the rows", "others");
        if index > 0 {
            self.mark_unusable(dict, &error)?;
        }
        Err(error.into())
    }

    /// Makes an index unusable that is in use. Errors: the catalog cannot be written; nothing has changed then.
    pub(crate) fn mark_unusable(&self, dict: &Dict, error: &Error) -> Result<()> {
        let _one_ddl = self.ddl.lock();
        self.mark_unusable_locked(dict, error)
    }

    fn mark_unusable_locked(&self, dict: &Dict, error: &Error) -> Result<()> {
        let has_it = |t: &TableDescriptor| t.dictionaries.iter().skip(1).any(|its| its.id == dict.id.0);
        let Some(table) = self.catalog.tables(has_it).pop() else { return Ok(()) };
        self.record_unusable(dict.id.0, error)?;
        // Another may have been first.
        let _ = dict.unusable.set(error.to_string());
        if let Some(open) = self.tables.read().get(&table.path) {
            open.shared.has_unusable.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// At the end of recovery: indexes that it could not open become unusable; if that cannot be recorded, the log is kept for
    /// them as for tables.
    pub(crate) fn settle_damaged_keys(&self, damaged: HashMap<DictId, Unrecovered>) {
        let _one_ddl = self.ddl.lock();
        for (id, unrecovered) in damaged {
            if let Err(error) = self.record_unusable(id.0, &unrecovered.error) {
                self.log(LogLevel::Error, &format!("cannot record that a key is damaged: {error}"));
                self.held_log.lock().insert(id, unrecovered);
            }
        }
    }

    /// Indexes in which background work meets damage become unusable: else memory and log would fill up with what cannot be
    /// written, and the rows with them.
    pub(crate) fn mark_failing_keys(&self) {
        for dict in self.open_dicts() {
            if dict.id == CATALOG || dict.is_dropped() {
                continue;
            }
            let Some(error) = self.damage_again(&dict) else { continue };
            // Else at the next tick.
            let Some(_one_ddl) = self.ddl.try_lock() else { return };
            if let Err(error) = self.mark_unusable_locked(&dict, &error) {
                self.log(LogLevel::Error, &format!("cannot record that a key is damaged: {error}"));
            }
        }
    }

    /// The damage that a dictionary's work has met, if it meets it again and again: it may have been the reading that was bad.
    fn damage_again(&self, dict: &Arc<Dict>) -> Option<Error> {
        let mut last = None;
        for _ in 0..WORK_TRIES {
            last = Some(self.work_again(dict)?);
        }
        last
    }

    /// The damage that the work which has met damage meets now.
    fn work_again(&self, dict: &Arc<Dict>) -> Option<Error> {
        let has_met = |failure: &Failure| failure.get().is_some_and(|error| error.is_damage());
        let again = if has_met(&dict.job_failure) {
            dict.tree.run_job().map(|_| ())
        } else if has_met(&dict.checkpoint_failure) {
            self.checkpoint_dict(dict)
        } else {
            return None;
        };
        again.err().filter(Error::is_damage)
    }
}
