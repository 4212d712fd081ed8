//! Files of encrypted tables. All files of a table are encrypted, with one key, or none is; that is settled when it is created,
//! and a copy of it (ALTER TABLE) may be otherwise. What its transactions have in the log is encrypted with the log's key.
//!
//! **A table that is there** can be encrypted in place ([`Db::encrypt_table`]; the job `jobs::encryption` does the long part). Steps, each durable
//! before the next, so that a start after any crash finds what it can open, and goes on:
//!
//! 1. The descriptor and its copy get `encrypting_key_id`. Its files may be plain, mixed or encrypted from now on.
//! 2. Each file's superblock gets key and salt, and the file is mixed (`pando_storage`'s `mixed`). What is written to it from then on is
//!    encrypted, and so is what commits that touch it have in the log.
//! 3. The descriptor gets `encryption_key_id`, too: new files of the table are encrypted, and none is plain any more.
//! 4. The job rewrites the files, and each is encrypted as a whole.
//! 5. `encrypting_key_id` goes.
//!
//! A release that does not know `encrypting_key_id` takes the table for a plain one up to step 3, and can have it as long as all
//! files are; a mixed file it refuses as one of a newer format, which is no damage.
//!
//! **A file that is away** may come back as it was, unless it is given up for good. A key is, and the one that is built anew is encrypted. The file of
//! large values is not (`lost_values`): steps 2 and 3 pass it by, it may be plain as long as there is `encrypting_key_id`, and step 5 waits until it
//! is back and through steps 2 and 4, or is given up. Whoever opens its table when it is back does step 2 for it, before anybody writes to it.
//!
//! Steps 1 to 3 and 5 hold the DDL mutex: nobody creates, drops or renames files meanwhile, and no backup is pinned between two of them.

use std::path::Path;
use std::sync::Arc;

use pando_base::{DictId, Error, Result};
use pando_storage::TreeFile;

use crate::catalog::descriptor::{normalize, table_dir, TableDescriptor};
use crate::catalog::Change;
use crate::db::options::LogLevel;
use crate::db::Db;
use crate::table::Dict;

impl Db {
    /// Refuses to create an encrypted table if there is no key for its files, or none for the log.
    pub(crate) fn check_keys(&self, table: &TableDescriptor) -> Result<()> {
        let Some(key_id) = table.encryption_key_id else { return Ok(()) };
        self.keys.latest_version(Path::new(&table.path), key_id)?;
        self.wal.check_key()
    }

    /// Begins to encrypt a table that is there with this key, and lets the job do the rest: steps 1 to 3 at the head of this file. One whose
    /// encryption has begun before keeps its key. False: it was created encrypted, or is through.
    ///
    /// # Errors
    /// There is no such table; [`Error::Key`] if there is no such key, or none for the log; [`Error::InUse`] while indexes are
    /// added to it: nothing has changed then. Those of writing: it goes on with the next call, or after a restart.
    pub fn encrypt_table(&self, path: &str, key_id: u32) -> crate::Result<bool> {
        let _one_ddl = self.ddl.lock();
        let table = self.described(&normalize(path))?;
        self.begin_encryption(table, key_id)
    }

    /// As [`Db::encrypt_table`], whatever its name is by now; of one that was dropped it is false.
    pub(crate) fn encrypt_table_by_id(&self, id: u64, key_id: u32) -> crate::Result<bool> {
        let _one_ddl = self.ddl.lock();
        self.catalog.table_by_id(id).map_or(Ok(false), |table| self.begin_encryption(table, key_id))
    }

    /// Requires: the DDL mutex.
    fn begin_encryption(&self, mut table: TableDescriptor, key_id: u32) -> crate::Result<bool> {
        let path = table.path.clone();
        if table.temporary {
            return Err(Error::Unsupported { what: format!("encrypting temporary table {path}") }.into());
        }
        if table.encryption_key_id.is_some() {
            return Ok(table.encrypting_key_id.is_some());
        }
        // The files of the new indexes are made already, and no descriptor names them.
        if self.tables.read().get(&path).is_some_and(|table| !table.building.is_empty()) {
            return Err(Error::InUse { what: format!("table {path}") }.into());
        }
        let key_id = table.encrypting_key_id.unwrap_or(key_id);
        self.keys.latest_version(Path::new(&table.path), key_id)?;
        self.wal.check_key()?;
        // Whatever is damaged is told now, and the descriptor says so of an index.
        let _open = self.open_dicts_of(&table)?;
        table = self.described(&path)?;
        // 1.
        if table.encrypting_key_id.is_none() {
            table.encrypting_key_id = Some(key_id);
            self.change_catalog(Change { put: vec![table.clone()], ..Change::default() })?;
        }
        self.write_status(&table_dir(&self.base_dir, &path), &table)?;
        // 2.
        let dicts = self.open_dicts_of(&table)?;
        for dict in dicts.iter().filter(|dict| !dict.is_unusable()) {
            dict.file.begin_encryption(&self.keys, key_id)?;
        }
        // One that is away has its turn when it is back.
        // 3.
        table = self.described(&path)?;
        table.encryption_key_id = Some(key_id);
        self.change_catalog(Change { put: vec![table.clone()], ..Change::default() })?;
        self.write_status(&table_dir(&self.base_dir, &path), &table)?;
        let text = format!("table {path} is being encrypted with key {key_id}, while it is used");
        self.log(LogLevel::Note, &text);
        Ok(true)
    }

    /// Step 2 at the head of this file for one that was away when the others had it. Requires: the DDL mutex, and that nobody writes to the file yet.
    /// Errors: there is no such key; those of writing.
    pub(crate) fn begin_encryption_of_returned(&self, table: &TableDescriptor, dict: &Dict) -> Result<()> {
        let begun = table.encryption_key_id.filter(|_| table.encrypting_key_id.is_some());
        let Some(key_id) = begun.filter(|_| !dict.is_unusable() && dict.file.key_id().is_none()) else {
            return Ok(());
        };
        dict.file.begin_encryption(&self.keys, key_id)?;
        let file = dict.file.path();
        let text = format!("{} is back, and is being encrypted with key {key_id}", file.display());
        self.log(LogLevel::Note, &text);
        Ok(())
    }

    /// Step 5 at the head of this file, if step 4 is done for each file of the table with this id. False: not yet.
    pub(crate) fn end_encryption(&self, id: u64) -> crate::Result<bool> {
        let _one_ddl = self.ddl.lock();
        // Dropped since.
        let Some(table) = self.catalog.table_by_id(id) else { return Ok(true) };
        let Some(key_id) = table.encryption_key_id else { return Ok(false) };
        if table.encrypting_key_id.is_none() {
            return Ok(true);
        }
        let dicts = self.open_dicts_of(&table)?;
        let is_whole = |dict: &Arc<Dict>| dict.file.key_id() == Some(key_id) && !dict.file.is_mixed();
        let is_large = |dict: &Arc<Dict>| table.large.as_ref().is_some_and(|its| its.id == dict.id.0);
        let is_given_up = |dict: &Arc<Dict>| dict.is_unusable() && !is_large(dict);
        if !dicts.iter().all(|dict| is_given_up(dict) || is_whole(dict)) {
            return Ok(false);
        }
        let Some(mut table) = self.catalog.table_by_id(id) else { return Ok(true) };
        table.encrypting_key_id = None;
        self.change_catalog(Change { put: vec![table.clone()], ..Change::default() })?;
        self.write_status(&table_dir(&self.base_dir, &table.path), &table)?;
        let left = self.given_up_files(&table);
        let but = if left.is_empty() { String::new() } else { format!(", but not {}", left.join(", ")) };
        self.log(LogLevel::Note, &format!("table {} is encrypted with key {key_id}{but}", table.path));
        Ok(true)
    }

    /// Files of large values that were given up, but are there.
    fn given_up_files(&self, table: &TableDescriptor) -> Vec<String> {
        let dir = table_dir(&self.base_dir, &table.path);
        let paths = table.lost_values.files().iter().map(|file| dir.join(file));
        let there = paths.filter(|path| self.vfs.exists(path).unwrap_or(false));
        there.map(|path| format!("{}, which was given up", path.display())).collect()
    }

    /// All dictionaries of a table, as everybody has them. Requires: the DDL mutex.
    fn open_dicts_of(&self, table: &TableDescriptor) -> crate::Result<Vec<Arc<Dict>>> {
        let rows_and_indexes = table.dictionaries.iter().map(|its| self.open_dict_of(table, its));
        let mut dicts = rows_and_indexes.collect::<Result<Vec<_>>>()?;
        if let Some(large) = &table.large {
            dicts.push(self.open_dict_of(table, large)?);
        }
        Ok(dicts)
    }

    /// Creates a file of a table.
    pub(crate) fn create_file(&self, path: &Path, id: DictId, key_id: Option<u32>) -> Result<Arc<TreeFile>> {
        match key_id {
            Some(key_id) => TreeFile::create_encrypted(&self.vfs, path, id, &self.keys, key_id),
            None => TreeFile::create(&self.vfs, path, id),
        }
    }
}

/// How a file of a table may be encrypted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileKey {
    key_id: Option<u32>,
    /// It may be plain yet.
    or_none: bool,
}

impl FileKey {
    /// `is_large`: the file is that of large values, and may have been away when the encryption of the others began.
    pub(crate) fn of(table: &TableDescriptor, is_large: bool) -> FileKey {
        let may_have_been_away = is_large && table.encrypting_key_id.is_some();
        FileKey { key_id: table.key_id(), or_none: table.encryption_key_id.is_none() || may_have_been_away }
    }
}

/// Refuses a file that is not encrypted as its table is: somebody has put another in its place.
pub(crate) fn check_encryption(file: &TreeFile, key: &FileKey) -> Result<()> {
    let text = |key_id: Option<u32>| key_id.map_or("no key".to_owned(), |key_id| format!("key {key_id}"));
    match file.key_id() {
        found if found == key.key_id => Ok(()),
        None if key.or_none => Ok(()),
        found => Err(Error::corruption(&file.path(), 0, "encryption", text(key.key_id), text(found))),
    }
}
