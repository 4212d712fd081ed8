//! Reading a table's directory without a database, for tools: nothing is written, the log is not
//! looked at for rows, so what is shown is the last durable checkpoint. And checking a log for itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pando_base::{DictId, Result};
use pando_run::BlockCache;
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::{ReadOnlyVfs, ShadowVfs, Vfs};
use pando_storage::{Superblock, TreeFile};
use pando_tree::{verify_without_key, Tree};
use pando_wal::{Wal, WalOptions};

pub use pando_tree::{LostRange, Salvaged, SalvagedRow, WithoutKey};

use crate::backup::copy::runs_of;
pub use crate::reports::described::{describe, Described};
use crate::reports::one_file::{open_one, CACHE_BYTES};
pub use crate::reports::rebuild::{rebuild_catalog, Rebuilt};
pub use crate::reports::salvage::{open_damaged, stopped, Damaged};

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
/// The first that is wrong; of an encrypted file, that its key is missing or another one.
pub fn verify_file(path: &Path, dict: u64, keys: &KeyRing) -> Result<Verified> {
    let vfs: Arc<dyn Vfs> = ReadOnlyVfs::new();
    if keys.is_empty() {
        let (file, superblock) = TreeFile::open(&vfs, path, DictId(dict))?;
        if superblock.encryption.is_some() {
            return Ok(Verified::WithoutKey(verify_without_key(&file, &superblock)?));
        }
    }
    check_key(path, dict, keys)?;
    let cache = BlockCache::new(CACHE_BYTES, Arc::default());
    open_one(&vfs, path, DictId(dict), &cache, keys)?.1.verify()?;
    Ok(Verified::Whole)
}

/// Makes sure that a tree file's key is there, if it is encrypted and there are keys at all: a file without blocks says nothing of it
/// when it is read, but recovery has to write there.
///
/// # Errors
/// The key is missing, or the file has no sound superblock.
pub fn check_key(path: &Path, dict: u64, keys: &KeyRing) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let vfs: Arc<dyn Vfs> = ReadOnlyVfs::new();
    TreeFile::open_with(&vfs, path, DictId(dict), keys)?.0.check_key()
}

/// What was checked of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifiedLog {
    /// Its transactions: their checksums and their order are right.
    pub transactions: u64,
    /// Those that were not looked into, for want of keys: how many are encrypted with which key (number, version).
    pub without_key: BTreeMap<(u32, u32), u64>,
}

/// Reads every transaction of the log in a directory and checks it, as far as the keys reach.
///
/// # Errors
/// The first that is wrong; or that cannot be decrypted, if there are keys.
pub fn verify_log(engine_dir: &Path, keys: &KeyRing) -> Result<VerifiedLog> {
    let options = WalOptions { keys: keys.clone(), ..WalOptions::default() };
    // Nothing is written to the disk.
    let shadow = ShadowVfs::over(ReadOnlyVfs::new());
    let (_, mut replay) = Wal::create_or_open(shadow, engine_dir, options, Arc::default())?;
    if keys.is_empty() {
        replay.without_keys();
    }
    let mut verified = VerifiedLog::default();
    replay.for_each(|seqno, batch| {
        verified.transactions += 1;
        if let Some(sealed) = batch.sealed() {
            *verified.without_key.entry((sealed.key_id, sealed.key_version)).or_default() += 1;
        }
        // Reads all that can be read.
        runs_of(engine_dir, seqno, batch).map(|_| ())
    })?;
    Ok(verified)
}

/// Prints the batches of a log file.
pub fn print_log(path: &Path, keys: &KeyRing, out: &mut dyn std::fmt::Write) -> Result<std::fmt::Result> {
    let vfs = ReadOnlyVfs::new();
    pando_wal::print(&*vfs, path, keys, out)
}
