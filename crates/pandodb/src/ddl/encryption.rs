//! Files of encrypted tables. All files of a table are encrypted, with one key, or none is; that is settled when it is created,
//! and a copy of it (ALTER TABLE) may be otherwise. What its transactions have in the log is encrypted with the log's key.

use std::path::Path;
use std::sync::Arc;

use pando_base::{DictId, Error, Result};
use pando_storage::TreeFile;

use crate::catalog::descriptor::TableDescriptor;
use crate::db::Db;

impl Db {
    /// Refuses to create an encrypted table if there is no key for its files, or none for the log.
    pub(crate) fn check_keys(&self, table: &TableDescriptor) -> Result<()> {
        let Some(key_id) = table.encryption_key_id else { return Ok(()) };
        self.keys.latest_version(Path::new(&table.path), key_id)?;
        self.wal.check_key()
    }

    /// Creates a file of a table.
    pub(crate) fn create_file(&self, path: &Path, id: DictId, key_id: Option<u32>) -> Result<Arc<TreeFile>> {
        match key_id {
            Some(key_id) => TreeFile::create_encrypted(&self.vfs, path, id, &self.keys, key_id),
            None => TreeFile::create(&self.vfs, path, id),
        }
    }
}

/// Refuses a file that is not encrypted as its table is: somebody has put another in its place.
pub(crate) fn check_encryption(file: &TreeFile, key_id: Option<u32>) -> Result<()> {
    let text = |key_id: Option<u32>| key_id.map_or("no key".to_owned(), |key_id| format!("key {key_id}"));
    match file.key_id() == key_id {
        true => Ok(()),
        false => Err(Error::corruption(&file.path(), 0, "encryption", text(key_id), text(file.key_id()))),
    }
}
