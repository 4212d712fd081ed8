//! Opening one tree file without a database.

use std::path::Path;
use std::sync::Arc;

use pando_base::{DictId, Metrics, Result};
use pando_run::{BlockCache, RunContext};
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::Vfs;
use pando_storage::{Superblock, TreeFile};
use pando_tree::{Tree, TreeConfig};

use crate::runtime::horizon::Nobody;

/// Cache of a tool: enough for one pass.
pub(crate) const CACHE_BYTES: u64 = 64 << 20;

/// A file's newest valid superblock, and its tree. Errors: those of reading; there is no sound superblock; its key is missing.
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
