//! What a table consists of, for tools that read its directory without a database.
//!
//! 1. The copy of its descriptor beside its files, `status.pando`.
//! 2. If that cannot be read, the catalog's: of its last checkpoint, and what the log has of later changes. The log is read up to its first
//!    damage, and without keys what is encrypted is passed by. So the descriptor may be an older one; the note says so.
//!
//! Without both nobody knows which dictionary a file has, and which columns a row.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pando_base::{Error, Kind, Metrics, Result, Seqno};
use pando_column::layout::Layouts;
use pando_run::BlockCache;
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::{OpenMode, ReadOnlyVfs, ShadowVfs, Vfs};
use pando_wal::{BatchKind, Entry, Wal, WalOptions};

use crate::catalog::descriptor::{TableDescriptor, CATALOG, TABLE_PREFIX};
use crate::db::Db;
use crate::reports::one_file::{open_one, CACHE_BYTES};
use crate::runtime::files::STATUS_FILE;

/// What a table consists of.
#[derive(Clone, Debug)]
pub struct Described {
    pub(crate) descriptor: TableDescriptor,
    /// Why it is not taken from beside the table's files.
    pub note: Option<String>,
}

impl Described {
    /// What its rows consist of.
    pub fn layouts(&self) -> Option<&Layouts> {
        self.descriptor.layouts.as_ref()
    }

    /// Its files and their dictionaries.
    pub fn files(&self) -> Vec<(String, u64)> {
        self.descriptor.all_dictionaries().map(|its| (its.file.clone(), its.id)).collect()
    }
}

/// Finds out what the table in this directory consists of. `engine_dir` is where catalog and log are.
///
/// # Errors
/// Neither `status.pando` nor the catalog says so: the error names both.
pub fn describe(dir: &Path, engine_dir: &Path, keys: &KeyRing) -> Result<Described> {
    let vfs: Arc<dyn Vfs> = ReadOnlyVfs::new();
    describe_on(&vfs, dir, engine_dir, keys)
}

/// The same, on a file system.
pub(crate) fn describe_on(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    engine_dir: &Path,
    keys: &KeyRing,
) -> Result<Described> {
    let beside = match descriptor_of(&**vfs, dir) {
        Ok(descriptor) => return Ok(Described { descriptor, note: None }),
        Err(error) => error,
    };
    match from_catalog(vfs, dir, engine_dir, keys) {
        Ok((descriptor, unread)) => {
            let but =
                unread.map_or(String::new(), |unread| format!(", which may be older, because {unread}"));
            let note = format!("{beside}; the descriptor of the catalog is used instead{but}");
            Ok(Described { descriptor, note: Some(note) })
        }
        Err(error) => {
            let what = format!("a descriptor of the table in {}: {beside}; and {error}", dir.display());
            Err(Error::NotFound { what })
        }
    }
}

/// The copy of a table's descriptor in its directory.
pub(crate) fn descriptor_of(vfs: &dyn Vfs, dir: &Path) -> Result<TableDescriptor> {
    let status = dir.join(STATUS_FILE);
    let file = vfs.open(&status, OpenMode::Existing)?;
    let mut text = vec![0; file.len()? as usize];
    file.read_exact_at(&mut text, 0)?;
    TableDescriptor::decode(&status, &text)
}

/// The catalog's descriptor of the table in this directory, and why not all of the log was read for it.
fn from_catalog(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    engine_dir: &Path,
    keys: &KeyRing,
) -> Result<(TableDescriptor, Option<String>)> {
    let path = Db::catalog_path(engine_dir);
    let cache = BlockCache::new(CACHE_BYTES, Arc::default());
    let (superblock, tree) = open_one(vfs, &path, CATALOG, &cache, &KeyRing::empty())?;
    let mut records: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut cursor = tree.cursor(Seqno::MAX);
    cursor.seek_first()?;
    while cursor.valid() {
        records.insert(cursor.key().to_vec(), cursor.value().to_vec());
        cursor.next()?;
    }
    let unread = replay(vfs, engine_dir, keys, superblock.durable_seqno, &mut records);
    let unread = unread.unwrap_or_else(|error| Some(format!("the log cannot be read: {error}")));
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let (database, table) = (dir.parent().and_then(name), name(dir));
    let wanted = [database, table].map(Option::unwrap_or_default).join("/");
    let tables = records.iter().filter(|(key, _)| key.first() == Some(&TABLE_PREFIX));
    let mut tables = tables.filter_map(|(_, value)| TableDescriptor::decode(&path, value).ok());
    match tables.find(|table| format!("{}.pando", table.path) == wanted) {
        Some(table) => Ok((table, unread)),
        None => {
            let but = unread.map_or(String::new(), |unread| format!("; the log may have it, but {unread}"));
            Err(Error::NotFound { what: format!("table {wanted} in {}{but}", path.display()) })
        }
    }
}

/// Brings the catalog's records up to date. Says why not all of the log was read, if so.
fn replay(
    vfs: &Arc<dyn Vfs>,
    engine_dir: &Path,
    keys: &KeyRing,
    durable: Seqno,
    records: &mut BTreeMap<Vec<u8>, Vec<u8>>,
) -> Result<Option<String>> {
    let options = WalOptions { ends_at_damage: true, keys: keys.clone(), ..WalOptions::default() };
    // Nothing is written to the disk.
    let shadow = ShadowVfs::over(vfs.clone());
    let (_, mut replay) = Wal::create_or_open(shadow, engine_dir, options, Arc::new(Metrics::default()))?;
    if keys.is_empty() {
        replay.without_keys();
    }
    let mut has_sealed = false;
    let end = replay.for_each(|seqno, batch| {
        has_sealed |= seqno > durable && batch.sealed().is_some();
        // Changes of the catalog are commits of one phase.
        if seqno <= durable || batch.sealed().is_some() || batch.kind() != BatchKind::Commit {
            return Ok(());
        }
        for entry in batch {
            match entry? {
                Entry::Record { dict: CATALOG, kind: Kind::Put, key, value } => {
                    records.insert(key.to_vec(), value.to_vec());
                }
                Entry::Record { dict: CATALOG, key, .. } => _ = records.remove(key),
                _ => {}
            }
        }
        Ok(())
    })?;
    let damage = end.damage.map(|damage| format!("the log is read up to its first damage: {damage}"));
    Ok(damage.or(has_sealed.then(|| "parts of the log are encrypted (--keys)".to_owned())))
}
