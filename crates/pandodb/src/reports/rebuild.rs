//! A new catalog from what lies beside the tables' files, for a database whose catalog is damaged or lost.
//!
//! Each table's directory has a copy of its descriptor (`status.pando`). A catalog of these is as old as the oldest commit: whatever
//! the log has of the catalog's own records is replayed on top of it at the next start. So a table that was made, changed or dropped
//! while the log goes back is as it was; one that was dropped before, and whose files could not be removed, comes back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_base::{Error, Kind, Metrics, Result};
use pando_run::{BlockCache, RunContext};
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::{RealVfs, Vfs};
use pando_storage::TreeFile;
use pando_tree::{Tree, TreeConfig};

use crate::catalog::descriptor::{TableDescriptor, CATALOG, NEXT_ID_KEY};
use crate::db::Db;
use crate::reports::described::descriptor_of;
use crate::reports::one_file::{open_one, CACHE_BYTES};
use crate::runtime::files::STATUS_FILE;
use crate::runtime::horizon::Nobody;

/// Ids of tables that are gone may still be in the log: new ones begin far behind all that are known.
const IDS_LEFT_OUT: u64 = 1_000_000;
/// Before all that a log has.
const FIRST_SEQNO: u64 = 1;

/// What [`rebuild_catalog`] has done.
#[derive(Debug, Default)]
pub struct Rebuilt {
    /// Paths of the tables in the new catalog.
    pub tables: Vec<String>,
    /// Directories of tables that it could not take in, and why.
    pub left_out: Vec<(PathBuf, Error)>,
    /// Where the old catalog is now, if there was one.
    pub old: Option<PathBuf>,
}

/// Makes a new catalog for the tables below `base_dir` in `engine_dir`, where the log is; the old one is kept under another name. No server
/// may run.
///
/// # Errors
/// A server runs; the catalog is of a newer version, whose plugin can read it; two directories say that they are of one table; those of
/// writing. The old catalog is in place then.
pub fn rebuild_catalog(base_dir: &Path, engine_dir: &Path) -> Result<Rebuilt> {
    let vfs: Arc<dyn Vfs> = RealVfs::new(false);
    let _lock = vfs.lock(&engine_dir.join("lock"))?;
    let mut rebuilt = Rebuilt::default();
    refuse_newer(&vfs, &Db::catalog_path(engine_dir))?;
    let tables = find_tables(&*vfs, base_dir, engine_dir, &mut rebuilt.left_out)?;
    let (path, new) = (Db::catalog_path(engine_dir), engine_dir.join("catalog.new"));
    if vfs.exists(&new)? {
        vfs.remove_file(&new)?;
    }
    write_catalog(&vfs, &new, tables.values())?;
    if vfs.exists(&path)? {
        let mut old = engine_dir.join("catalog.old");
        for number in 2.. {
            if !vfs.exists(&old)? {
                break;
            }
            old = engine_dir.join(format!("catalog.old-{number}"));
        }
        vfs.rename(&path, &old)?;
        rebuilt.old = Some(old);
    }
    vfs.rename(&new, &path)?;
    vfs.sync_dir(engine_dir)?;
    rebuilt.tables = tables.into_values().map(|table| table.path).collect();
    rebuilt.tables.sort();
    Ok(rebuilt)
}

/// Errors: what is there is not damaged, but of a format to come.
fn refuse_newer(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<()> {
    let cache = BlockCache::new(CACHE_BYTES, Arc::default());
    let read = open_one(vfs, path, CATALOG, &cache, &KeyRing::default()).and_then(|(_, tree)| tree.verify());
    match read {
        Err(error @ Error::NewerFormat { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// The descriptors of all tables, by their ids.
fn find_tables(
    vfs: &dyn Vfs,
    base_dir: &Path,
    engine_dir: &Path,
    left_out: &mut Vec<(PathBuf, Error)>,
) -> Result<BTreeMap<u64, TableDescriptor>> {
    let mut tables: BTreeMap<u64, TableDescriptor> = BTreeMap::new();
    for database in vfs.read_dir(base_dir)?.into_iter().filter(|entry| entry.is_dir) {
        let database_dir = base_dir.join(&database.name);
        if database_dir == engine_dir {
            continue;
        }
        for entry in vfs.read_dir(&database_dir)?.into_iter().filter(|entry| entry.is_dir) {
            let Some(name) = entry.name.strip_suffix(".pando") else { continue };
            let dir = database_dir.join(&entry.name);
            let mut table = match descriptor_of(vfs, &dir) {
                Ok(table) => table,
                Err(error) => {
                    left_out.push((dir, error));
                    continue;
                }
            };
            // Where it is counts: a crash may have come between a rename and the copy.
            table.path = format!("{}/{name}", database.name);
            if let Some(other) = tables.get(&table.id) {
                let found = format!("that of {}, too", other.path);
                let (what, expected) = ("id of the table", "one of its own");
                return Err(Error::corruption(&dir.join(STATUS_FILE), 0, what, expected, found));
            }
            tables.insert(table.id, table);
        }
    }
    Ok(tables)
}

fn write_catalog<'a>(
    vfs: &Arc<dyn Vfs>,
    path: &Path,
    tables: impl Iterator<Item = &'a TableDescriptor>,
) -> Result<()> {
    let metrics = Arc::new(Metrics::default());
    let cache = BlockCache::new(CACHE_BYTES, metrics.clone());
    let file = TreeFile::create(vfs, path, CATALOG)?;
    let context = RunContext { file, cache, metrics };
    let tree = Tree::create(context, TreeConfig::default(), Arc::new(Nobody));
    let mut last_id = 0;
    {
        let gate = tree.gate();
        for table in tables {
            let ids = table.all_dictionaries().map(|dictionary| dictionary.id);
            last_id = ids.chain([table.id, last_id]).max().unwrap_or(last_id);
            gate.insert(&TableDescriptor::key(table.id), FIRST_SEQNO, Kind::Put, &table.encode());
        }
        let next_id = last_id + IDS_LEFT_OUT;
        gate.insert(NEXT_ID_KEY, FIRST_SEQNO, Kind::Put, &next_id.to_be_bytes());
    }
    tree.checkpoint(|| FIRST_SEQNO, |_| Ok(()), || 0)?;
    Ok(())
}
