//! Reading a table's directory without a database, for tools: nothing is written, the log is not
//! looked at, so what is shown is the last durable checkpoint.

use std::path::Path;
use std::sync::Arc;

use pando_base::{DictId, Metrics, Result, Seqno};
use pando_column::layout::Layouts;
use pando_run::{BlockCache, RunContext};
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::{OpenMode, RealVfs, Vfs};
use pando_storage::{Superblock, TreeFile};
use pando_tree::{verify_without_key, Horizon, Tree, TreeConfig};

pub use pando_tree::{LostRange, Salvaged, SalvagedRow, WithoutKey};

use crate::catalog::descriptor::{DictDescriptor, TableDescriptor};
use crate::runtime::files::STATUS_FILE;

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

/// What the rows of a table consist of, as `status.pando` of its directory says.
pub fn layouts_of(dir: &Path) -> Result<Option<Layouts>> {
    Ok(descriptor_of(&*RealVfs::new(false), dir)?.layouts)
}

pub(crate) fn descriptor_of(vfs: &dyn Vfs, dir: &Path) -> Result<TableDescriptor> {
    let status = dir.join(STATUS_FILE);
    let file = vfs.open(&status, OpenMode::Existing)?;
    let mut text = vec![0; file.len()? as usize];
    file.read_exact_at(&mut text, 0)?;
    TableDescriptor::decode(&status, &text)
}

/// Opens the dictionaries that `status.pando` of this directory names; each with its own error.
pub fn open_directory(dir: &Path, keys: &KeyRing) -> Result<Vec<(String, Result<OfflineDict>)>> {
    let vfs: Arc<dyn Vfs> = RealVfs::new(false);
    let descriptor = descriptor_of(&*vfs, dir)?;
    let cache = BlockCache::new(CACHE_BYTES, Arc::default());
    let dicts = descriptor.all_dictionaries().map(|dictionary| {
        let path = dir.join(&dictionary.file);
        let opened = open_one(&vfs, &path, DictId(dictionary.id), &cache, keys);
        let (name, is_clustering) = (dictionary.name.clone(), !dictionary.clustering.is_none());
        let opened = opened.map(|(superblock, tree)| OfflineDict { name, is_clustering, superblock, tree });
        (dictionary.file.clone(), opened)
    });
    Ok(dicts.collect())
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
    let vfs: Arc<dyn Vfs> = RealVfs::new(false);
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

/// The files that `status.pando` of this directory names, and their dictionaries.
///
/// # Errors
/// It cannot be read.
pub fn files_of(dir: &Path) -> Result<Vec<(String, u64)>> {
    let descriptor = descriptor_of(&*RealVfs::new(false), dir)?;
    let file = |dictionary: &DictDescriptor| (dictionary.file.clone(), dictionary.id);
    Ok(descriptor.all_dictionaries().map(file).collect())
}

/// Prints the batches of a log file.
pub fn print_log(path: &Path, keys: &KeyRing, out: &mut dyn std::fmt::Write) -> Result<std::fmt::Result> {
    let vfs = RealVfs::new(false);
    pando_wal::print(&*vfs, path, keys, out)
}
