//! Reading a table's directory without a database, for tools: nothing is written, the log is not
//! looked at for rows, so what is shown is the last durable checkpoint.

use std::path::Path;
use std::sync::Arc;

use pando_base::{DictId, Metrics, Result, Seqno};
use pando_run::{BlockCache, RunContext};
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::{ReadOnlyVfs, Vfs};
use pando_storage::{Superblock, TreeFile};
use pando_tree::{verify_without_key, Horizon, Tree, TreeConfig};

pub use pando_tree::{LostRange, Salvaged, SalvagedRow, WithoutKey};

pub use crate::reports::described::{describe, Described};
pub use crate::reports::rebuild::{rebuild_catalog, Rebuilt};
pub use crate::reports::salvage::{open_damaged, stopped, Damaged};

/// Cache of a tool: enough for one pass.
pub(crate) const CACHE_BYTES: u64 = 64 << 20;

/// One dictionary of a table, as its file has it.
#[derive(Debug)]
pub struct OfflineDict {
    /// "main", or the index's name.
    pub name: String,
    /// Its entries hold the rows.
    pub is_clustering: bool,
    /// Its newest valid superblock.
    pub superblock: Superblock,
    /// Its tree.
    pub tree: Arc<Tree>,
}

#[derive(Debug)]
pub(crate) struct Nobody;

impl Horizon for Nobody {
    fn snapshots(&self) -> Vec<Seqno> {
        vec![Seqno::MAX]
    }
}

/// Opens the dictionaries of the table in this directory; each with its own error.
pub fn open_directory(
    dir: &Path,
    described: &Described,
    keys: &KeyRing,
) -> Vec<(String, Result<OfflineDict>)> {
    let vfs: Arc<dyn Vfs> = ReadOnlyVfs::new();
    let cache = BlockCache::new(CACHE_BYTES, Arc::default());
    let dicts = described.descriptor.all_dictionaries().map(|dictionary| {
        let path = dir.join(&dictionary.file);
        let opened = open_one(&vfs, &path, DictId(dictionary.id), &cache, keys);
        let (name, is_clustering) = (dictionary.name.clone(), !dictionary.clustering.is_none());
        let opened = opened.map(|(superblock, tree)| OfflineDict { name, is_clustering, superblock, tree });
        (dictionary.file.clone(), opened)
    });
    dicts.collect()
}

pub(crate) fn open_one(
    vfs: &Arc<dyn Vfs>,
    path: &Path,
    id: DictId,
    cache: &Arc<BlockCache>,
    keys: &KeyRing,
) -> Result<(Superblock, Arc<Tree>)> {
    let (file, superblock) = TreeFile::open_with(vfs, path, id, keys)?;
    let context = RunContext { file, cache: cache.clone(), metrics: Arc::new(Metrics::default()) };
    let tree = Tree::open(context, &superblock, TreeConfig::default(), Arc::new(Nobody))?;
    Ok((superblock, tree))
}

/// What was checked of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Everything: checksums, order and counts.
    Whole,
    /// Of an encrypted file, for want of keys: checksums, kinds and places of all blocks, but not what is in them.
    WithoutKey(WithoutKey),
}

/// Reads every block of a tree file and checks it, as far as the keys reach.
///
/// # Errors
/// The first that is wrong; of an encrypted file, that the keys are other ones.
pub fn verify_file(path: &Path, dict: u64, keys: &KeyRing) -> Result<Verified> {
    let vfs: Arc<dyn Vfs> = ReadOnlyVfs::new();
    if keys.is_empty() {
        let (file, superblock) = TreeFile::open(&vfs, path, DictId(dict))?;
        if superblock.encryption.is_some() {
            return Ok(Verified::WithoutKey(verify_without_key(&file, &superblock)?));
        }
    }
    let cache = BlockCache::new(CACHE_BYTES, Arc::default());
    open_one(&vfs, path, DictId(dict), &cache, keys)?.1.verify()?;
    Ok(Verified::Whole)
}

/// Prints the batches of a log file.
pub fn print_log(path: &Path, keys: &KeyRing, out: &mut dyn std::fmt::Write) -> Result<std::fmt::Result> {
    let vfs = ReadOnlyVfs::new();
    pando_wal::print(&*vfs, path, keys, out)
}
