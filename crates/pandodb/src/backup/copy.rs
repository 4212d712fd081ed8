//! The copier's side of a backup (`backup::pin`), which may be in another process: what to copy of a pinned file, and making a
//! database of the copy.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use pando_base::{DictId, Error, Metrics, Result, Seqno};
use pando_run::{BlockCache, RunContext, RunMeta};
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::Vfs;
use pando_storage::{Place, Superblock, TreeFile};
use pando_tree::{places_without_key, Tree, TreeConfig};
use pando_wal::{BatchKind, BatchReader, Entry, Wal, WalOptions};

use crate::backup::pin::is_backed_up;
use crate::catalog::descriptor::table_dir;
use crate::db::options::{LeftOut, LogLevel, LogSink, Options};
use crate::db::Db;
use crate::runtime::horizon::Nobody;

/// Cache of a copier: it reads nodes only, and those not through it.
const CACHE_BYTES: u64 = 8 << 20;

/// The server's own prepared transactions have names that begin so: format 1, 24 bytes and none, and this.
const INTERNAL_NAME: &[u8] = b"\x01\0\0\0\0\0\0\0\x18\0MySQLXid";

/// Private runs that a log has dictionaries adopt, or would once a prepared transaction is committed.
#[derive(Clone, Debug, Default)]
pub struct Adopted {
    /// With the commits; for prepared transactions without an end the largest number.
    runs: HashMap<DictId, Vec<(Seqno, Vec<Place>)>>,
}

/// The extents of runs.
type Runs = Vec<(DictId, Vec<Place>)>;

/// Reads the copied log in this directory. No keys are needed.
///
/// # Errors
/// It is damaged.
pub fn adopted_by_log(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<Adopted> {
    let (_, mut replay) = Wal::create_or_open(vfs.clone(), dir, WalOptions::default(), Arc::default())?;
    let mut adopted = Adopted::default();
    let mut prepared: BTreeMap<Seqno, Runs> = BTreeMap::new();
    replay.without_keys();
    replay.for_each(|seqno, batch| {
        match batch.kind() {
            BatchKind::Commit => adopted.add(seqno, runs_of(dir, seqno, batch)?),
            BatchKind::Prepare { .. } => _ = prepared.insert(seqno, runs_of(dir, seqno, batch)?),
            BatchKind::PrepareAnew { previous, .. } => {
                prepared.remove(&previous);
                prepared.insert(seqno, runs_of(dir, seqno, batch)?);
            }
            BatchKind::CommitPrepared { prepare } => {
                adopted.add(seqno, prepared.remove(&prepare).unwrap_or_default());
            }
            BatchKind::RollbackPrepared { prepare } => _ = prepared.remove(&prepare),
        }
        Ok(())
    })?;
    prepared.into_values().for_each(|runs| adopted.add(Seqno::MAX, runs));
    Ok(adopted)
}

/// Reads all entries of a batch; of an encrypted one, what is in the clear.
pub(crate) fn runs_of(dir: &Path, seqno: Seqno, batch: BatchReader<'_>) -> Result<Runs> {
    let mut runs = Vec::new();
    if let Some(sealed) = batch.sealed() {
        let (what, expected) = ("clear bytes of an encrypted batch", "extents of runs");
        let wrong = || Error::corruption(&dir.join("log"), seqno, what, expected, "something else");
        return sealed.adopted().ok_or_else(wrong);
    }
    for entry in batch {
        if let Entry::Adopt { dict, run } = entry? {
            let meta = RunMeta::decode_private(run).map_err(|error| error.at(&dir.join("log"), seqno))?;
            runs.push((dict, meta.extents));
        }
    }
    Ok(runs)
}

impl Adopted {
    fn add(&mut self, seqno: Seqno, runs: Runs) {
        for (dict, extents) in runs {
            self.runs.entry(dict).or_default().push((seqno, extents));
        }
    }

    /// Where the runs are that a checkpoint up to `durable` does not have.
    fn places(&self, dict: DictId, durable: Seqno) -> impl Iterator<Item = Place> + '_ {
        let runs = self.runs.get(&dict).into_iter().flatten();
        runs.filter(move |(seqno, _)| *seqno > durable).flat_map(|(_, extents)| extents.iter().copied())
    }
}

/// What a copy of a pinned file consists of.
#[derive(Clone, Debug)]
pub struct PinnedCopy {
    /// Offsets and bytes of its two superblocks.
    pub slots: [(u64, Vec<u8>); 2],
    /// What to copy from the file to the same places, ascending and apart from each other.
    pub places: Vec<Place>,
    /// How long the copy is.
    pub file_bytes: u64,
}

impl PinnedCopy {
    /// Looks into the file at `path`, which the server has pinned with this superblock.
    ///
    /// # Errors
    /// There is no such file, or it is that of another dictionary now; or it is damaged.
    pub fn open(
        vfs: &Arc<dyn Vfs>,
        path: &Path,
        superblock: &Superblock,
        adopted: &Adopted,
    ) -> Result<PinnedCopy> {
        let file = TreeFile::open_pinned(vfs, path, superblock)?;
        let mut places = match superblock.encryption {
            // Whoever copies it has no key, and needs none.
            Some(_) => places_without_key(&file, superblock)?,
            None => {
                let metrics = Arc::new(Metrics::default());
                let cache = BlockCache::new(CACHE_BYTES, metrics.clone());
                let context = RunContext { file, cache, metrics };
                Tree::open(context, superblock, TreeConfig::default(), Arc::new(Nobody))?.disk_places()
            }
        };
        places.extend(adopted.places(superblock.dict, superblock.durable_seqno));
        places.sort_unstable_by_key(|place| place.offset);
        places.dedup();
        // Pages are given out whole, and the copy has to have them.
        let page = pando_base::limits::PAGE_BYTES;
        let ends = places.iter().map(|place| place.end().next_multiple_of(page));
        let file_bytes = ends.chain([superblock.file_bytes]).max().unwrap_or(0);
        Ok(PinnedCopy { slots: superblock.slots(), places, file_bytes })
    }

    /// Bytes of all places.
    pub fn bytes(&self) -> u64 {
        self.places.iter().map(|place| place.len).sum()
    }
}

/// What making a database of a backup has done.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// Tables that the catalog has and the backup has not.
    pub tables_dropped: u64,
    /// Transactions that were being committed when the backup was taken, and had not got into the binary log.
    pub rolled_back: u64,
    /// Tables that are there now, also those that are not recovered.
    pub tables: u64,
    /// Tables without what the log has of them, and why. The log keeps it, and the next start tries again.
    pub not_recovered: Vec<(String, Error)>,
}

/// Makes a database of the copied files below `base_dir`: recovers it, drops the tables that the backup does not have, and
/// ends what the server was about to commit and had not decided. Then a server can start on it.
///
/// # Errors
/// The copy is not whole, or the disk is full.
pub fn prepare_restored(
    base_dir: &Path,
    wanted: impl Fn(&str) -> bool + Send + Sync + 'static,
    keys: KeyRing,
    log: LogSink,
) -> crate::Result<Restored> {
    let quiet: LogSink = Arc::new(move |level, text: &str| {
        if level != LogLevel::Note {
            log(level, text);
        }
    });
    let wanted = Arc::new(wanted);
    let asked = wanted.clone();
    let left_out = Some(LeftOut::new(move |path| !asked(path)));
    let db = Db::open(Options { keys, left_out, log: quiet, ..Options::new(base_dir) })?;
    let mut restored = Restored::default();
    for xid in db.report_prepared(usize::MAX) {
        if xid.starts_with(INTERNAL_NAME) && db.rollback_by_xid(&xid)? {
            restored.rolled_back += 1;
        }
    }
    for (path, is_whole) in db.tables_backed_up() {
        if is_whole && wanted(&path) {
            // It is for people and tools, and not copied.
            db.rewrite_status(&path)?;
            restored.tables += 1;
            restored.not_recovered.extend(db.not_recovered(&path).map(|error| (path, error)));
        } else {
            db.drop_table(&path)?;
            restored.tables_dropped += 1;
        }
    }
    db.close()?;
    Ok(restored)
}

impl Db {
    fn rewrite_status(&self, path: &str) -> Result<()> {
        match self.catalog.table(path) {
            Some(table) => self.write_status(&table_dir(&self.base_dir, path), &table),
            None => Ok(()),
        }
    }

    /// Why recovery could not bring a table up to date, if it could not.
    fn not_recovered(&self, path: &str) -> Option<Error> {
        let table = self.catalog.table(path)?;
        let held = self.held_log.lock();
        let mut dictionaries = table.all_dictionaries();
        dictionaries.find_map(|of| Some(held.get(&DictId(of.id))?.error.clone()))
    }

    /// All tables, and whether a backup has them.
    fn tables_backed_up(&self) -> Vec<(String, bool)> {
        let mut tables: Vec<_> = self
            .catalog
            .tables(|_| true)
            .into_iter()
            .map(|table| (table.path.clone(), is_backed_up(&table)))
            .collect();
        tables.sort();
        tables
    }
}
